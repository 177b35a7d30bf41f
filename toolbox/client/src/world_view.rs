//! What the client knows of the world that it is in.
//!
//! Each stay in a world has an epoch, one more than the stay before. The control message that names
//! the new world is reliable, snapshots are not, so a snapshot of the new world may come first. It is
//! applied at once: the newer epoch itself ends the old stay, clears the replicas and leaves the
//! world without a name until the control message comes. The other ways would be wrong or unbounded:
//! the packet of a snapshot that is dropped has been acknowledged, so the server would never send its
//! values again; and one that is held back needs a queue, and a maximum for it.
//!
//! Messages of older epochs are dropped and counted; their replicas are gone.
//!
//! Sans-IO, on its client's thread. Allocates for a world's name when that is longer than any before.

use std::sync::Arc;

use throng_net::connection::Channel;
use throng_net::control::{AUDIT_SAMPLE, CONTROL, EVENT, EnterWorld, MESSAGE, SLOWED_SNAPSHOT, SNAPSHOT, SchemaHash};
use throng_platform::time::Nanos;
use throng_replication::{EventIn, NetId, Replicas, Replicate, Schema, Seen};

use crate::answers::Answers;
use crate::event::{ClientEvent, Events};
use crate::inbox::Inbox;
use crate::input_buffer::InputBuffer;
use crate::input_clock::InputClock;
use crate::input_latency::InputLatency;
use crate::message::Message;
use crate::own_state::OwnState;
use crate::server_clock::{ServerClock, ns_of};
use crate::view_clock::ViewClock;

/// How long a copy may stay behind the server's exact state before it is wrong (s).
const GRACE_S: u32 = 2;

/// The world that the server has put this client in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentWorld {
    /// Its number on the server.
    pub id: u32,
    /// Its kind, such as `hideout`.
    pub name: String,
    /// Its tick rate (Hz, > 0).
    pub tick_hz: u8,
    /// Its tick when the server wrote the message that let us in.
    pub entered_tick: u32,
    /// Which stay of this connection it is, wrapping.
    pub epoch: u8,
    /// The world that we were sent to did not take us: this is the one that sent us.
    pub has_returned: bool,
    /// It ticks when somebody says something and rests otherwise: with nothing to say, we are silent for up to two seconds and
    /// a half, and so is the server.
    pub is_reactive: bool,
}

/// Everything that the messages of a server change.
pub(crate) struct WorldView {
    /// Kept from stay to stay for the memory of its name; true only while `named`.
    world: CurrentWorld,
    named: bool,
    own_entity: Option<NetId>,
    pub schema: Arc<Schema>,
    /// The server's schema, if it is another one: then nothing that it says can be read.
    foreign_schema: Option<SchemaHash>,
    /// Its epoch is the view's: the newest heard of, from a control message or a snapshot.
    pub replicas: Replicas,
    pub inputs: InputLatency,
    /// Inputs on their way, and those that are said again.
    pub input_buffer: InputBuffer,
    /// Which input each tick took in last.
    answers: Answers,
    pub server_clock: ServerClock,
    pub view_clock: ViewClock,
    input_clock: InputClock,
    pub inbox: Inbox,
    /// Events of the current stay.
    pub events: Inbox,
    pub snapshots: u64,
    pub old_epoch_messages: u64,
    pub protocol_errors: u64,
    pub travels_refused: u64,
}

impl WorldView {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            world: CurrentWorld {
                id: 0,
                name: String::new(),
                tick_hz: 1,
                entered_tick: 0,
                epoch: 0,
                has_returned: false,
                is_reactive: false,
            },
            named: false,
            own_entity: None,
            replicas: Replicas::new(schema.clone()),
            schema,
            foreign_schema: None,
            inputs: InputLatency::new(),
            input_buffer: InputBuffer::default(),
            answers: Answers::default(),
            server_clock: ServerClock::default(),
            view_clock: ViewClock::default(),
            input_clock: InputClock::default(),
            inbox: Inbox::default(),
            events: Inbox::default(),
            snapshots: 0,
            old_epoch_messages: 0,
            protocol_errors: 0,
            travels_refused: 0,
        }
    }

    /// The world we are in; `None` before the first, and between a new epoch and its name.
    pub fn world(&self) -> Option<&CurrentWorld> {
        self.named.then_some(&self.world)
    }

    pub fn own_entity(&self) -> Option<NetId> {
        self.own_entity
    }

    /// Newest tick heard of in this stay.
    pub fn newest_tick(&self) -> u32 {
        let entered_tick = self.world().map_or(0, |world| world.entered_tick);
        self.replicas.newest_tick().max(entered_tick)
    }

    /// The moment of this stay's world that is shown now; `None` where there is no world.
    pub fn seen(&mut self, now: Nanos) -> Option<Seen> {
        let (tick_hz, newest_tick) = (self.world()?.tick_hz, self.newest_tick());
        Some(self.view_clock.seen(now, &mut self.server_clock, newest_tick, tick_hz))
    }

    /// How far behind the newest snapshot this stay's world is shown; `None` where there is no world.
    pub fn view_delay(&self) -> Option<Nanos> {
        let delay_ns = self.view_clock.delay_ns(self.world()?.tick_hz);
        Some(Nanos(delay_ns.unsigned_abs()))
    }

    /// An input is sent: returns its number.
    pub fn number_input(&mut self, now: Nanos) -> u16 {
        let number = self.inputs.sent(now);
        if let Some(server_ns) = self.server_ns(now) {
            self.input_clock.sent(number, server_ns);
        }
        number
    }

    /// How long after the tick whose snapshot comes now an input is taken that is sent now.
    pub fn input_lead(&self, rtt: Nanos) -> Option<Nanos> {
        let tick_hz = self.world()?.tick_hz;
        let lead_ns = self.input_clock.lead_ns(ns_of(rtt), self.server_clock.jitter_ns(), tick_hz);
        Some(Nanos(lead_ns.unsigned_abs()))
    }

    /// The tick in which an input is taken that is sent now.
    pub fn input_tick(&mut self, now: Nanos, rtt: Nanos) -> Option<u32> {
        let (server_ns, lead, tick_hz) = (self.server_ns(now)?, self.input_lead(rtt)?, self.world()?.tick_hz);
        Some(self.input_clock.tick(server_ns, ns_of(lead), tick_hz))
    }

    /// How many inputs are due.
    pub fn due_inputs(&mut self, now: Nanos) -> u32 {
        let Some(tick_hz) = self.world().map(|world| world.tick_hz) else { return 0 };
        self.server_ns(now).map_or(0, |server_ns| self.input_clock.due(server_ns, tick_hz))
    }

    /// The server's newest word on a component of the own entity, and the newest input that is in it.
    pub fn own_state<T: Replicate>(&self) -> Option<OwnState<'_, T>> {
        let (own, tick_hz) = (self.own_entity?, self.world()?.tick_hz);
        let (state, told_tick) = (self.replicas.get::<T>(own)?, self.replicas.tick_of::<T>(own)?);
        let answer = self.answers.holds_until(told_tick, tick_hz)?;
        Some(OwnState { state, tick: answer.tick, input: answer.input })
    }

    /// The time of the server whose snapshot comes now. (ns since its tick 0) `None` before the first one.
    fn server_ns(&mut self, now: Nanos) -> Option<i64> {
        let tick_hz = self.world()?.tick_hz;
        self.server_clock.read(now, tick_hz)
    }

    /// Our schema and the server's, if that has said that they differ.
    pub fn schema_mismatch(&self) -> Option<(SchemaHash, SchemaHash)> {
        self.foreign_schema.map(|foreign| (SchemaHash(self.schema.hash()), foreign))
    }

    /// Takes one message from the server. Unreadable ones are counted and change nothing.
    pub fn take(&mut self, now: Nanos, channel: Channel, message: &[u8], events: &mut Events) {
        if self.foreign_schema.is_some() {
            return;
        }
        let taken = match (channel, message.first()) {
            (Channel::Reliable, Some(&CONTROL)) => self.take_control(message, events),
            (_, Some(&(SNAPSHOT | SLOWED_SNAPSHOT))) => self.take_snapshot(now, message),
            (_, Some(&AUDIT_SAMPLE)) => self.take_audit_sample(message),
            (_, Some(&EVENT)) => self.take_event(channel, message),
            (Channel::Reliable, Some(&MESSAGE)) => self.take_message(channel, message),
            _ => None,
        };
        if taken.is_none() {
            self.protocol_errors += 1;
        }
    }

    fn take_control(&mut self, message: &[u8], events: &mut Events) -> Option<()> {
        if let Some(of_server) = SchemaHash::decode(message) {
            if of_server.0 != self.schema.hash() {
                self.foreign_schema = Some(of_server);
                // What came earlier, because it need not wait for a lost packet, was unreadable for this one reason.
                self.protocol_errors = 0;
            }
            return Some(());
        }
        let entered = EnterWorld::decode(message).ok()?;
        if !self.enter_epoch(entered.epoch) {
            // A snapshot has told of a later stay already; that one's own message follows.
            return Some(());
        }
        let own_entity = entered.own_entity.map(|(slot, generation)| NetId { slot, generation });
        let own_entity_changed = self.own_entity != own_entity;
        self.own_entity = own_entity;
        if !self.named {
            self.named = true;
            self.world.id = entered.world;
            self.world.name.clear();
            self.world.name.push_str(entered.name);
            self.world.tick_hz = entered.tick_hz;
            self.world.entered_tick = entered.tick;
            self.world.epoch = entered.epoch;
            self.world.has_returned = entered.has_returned;
            self.world.is_reactive = entered.is_reactive;
            self.travels_refused += u64::from(entered.has_returned);
            self.replicas.set_grace_ticks(GRACE_S * u32::from(entered.tick_hz));
            events.push(ClientEvent::EnteredWorld { epoch: entered.epoch });
        }
        if own_entity_changed {
            events.push(ClientEvent::OwnEntityChanged);
        }
        Some(())
    }

    fn take_snapshot(&mut self, now: Nanos, message: &[u8]) -> Option<()> {
        let &epoch = message.get(1)?;
        if !self.enter_epoch(epoch) {
            self.old_epoch_messages += 1;
            return Some(());
        }
        let header = self.replicas.apply(message).ok()?;
        self.replicas.check_audit_samples();
        self.inputs.answered(now, header.input);
        self.input_buffer.answered(header.input);
        self.answers.heard(header.tick, header.input, self.inputs.last_number());
        // Without its world's name we do not know how long its ticks are.
        if let Some(tick_hz) = self.world().map(|world| world.tick_hz) {
            self.server_clock.heard(now, header.tick, tick_hz, header.time_factor);
            self.input_clock.answered(header.input, header.tick, tick_hz);
        }
        self.snapshots += 1;
        Some(())
    }

    /// An event is about this stay or about nothing: one that is late or early is dropped. Reliable ones come after
    /// their stay's name.
    fn take_event(&mut self, channel: Channel, message: &[u8]) -> Option<()> {
        let event = EventIn::split(message)?;
        let kind = self.schema.events().get(event.id.index())?;
        if kind.reliable != (channel == Channel::Reliable) {
            return None;
        }
        if self.replicas.epoch() == Some(event.epoch) {
            self.events.push(channel, message);
        } else {
            self.old_epoch_messages += 1;
        }
        Some(())
    }

    /// Read once here, so that the game never sees one that is none.
    fn take_message(&mut self, channel: Channel, message: &[u8]) -> Option<()> {
        Message::split(&self.schema, message).filter(Message::is_readable)?;
        self.inbox.push(channel, message);
        Some(())
    }

    fn take_audit_sample(&mut self, message: &[u8]) -> Option<()> {
        let &epoch = message.get(1)?;
        if self.replicas.epoch() != Some(epoch) {
            self.old_epoch_messages += 1;
            return Some(());
        }
        self.replicas.hold_audit_sample(message, self.newest_tick()).ok()?;
        self.replicas.check_audit_samples();
        Some(())
    }

    /// True when `epoch` is the current stay, which it becomes if it is a newer one.
    fn enter_epoch(&mut self, epoch: u8) -> bool {
        let before = self.replicas.epoch();
        if !self.replicas.enter_epoch(epoch) {
            return false;
        }
        if before != Some(epoch) {
            self.named = false;
            self.own_entity = None;
            self.events.clear();
            self.inputs.left_world();
            self.input_buffer.left_world();
            self.answers.left_world(self.inputs.last_number());
            self.server_clock.left_world();
            self.view_clock.left_world();
            self.input_clock.left_world();
        }
        true
    }
}
