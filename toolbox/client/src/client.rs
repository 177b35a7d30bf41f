//! The client itself: from a token to a world, and on until somebody says goodbye.
//!
//! ```text
//!   Connecting --keep-alive--> Connected --goodbye, silence, close--> Disconnected(reason)
//!    |      ^ +----------------- denied, silence, close --------------------^
//!    v      | fresh token
//!   Resting +   denied or silence, and it may pass
//! ```
//!
//! A disconnected client stays what it is; to come back, make a new one with a new token. Its last
//! view of the world and its counts stay readable.

use std::sync::Arc;

use throng_net::connection::{
    Connection, ConnectionStats, EndReason, PacketSink, Received, Refusal, SendError, UNRELIABLE_BYTES_MAX,
};
use throng_net::control::{self, SchemaHash};
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, HandshakeFailure, HandshakeState, QueueState,
};
use throng_pack::{PackError, pack_body};
use throng_platform::time::Nanos;
use throng_replication::{
    ClientInput, ClientRequest, EventIn, INPUT_REPEATS_MAX, NetId, PackedId, REQUEST_KIND, Replicas, Replicate,
    ReplicatedEvent, SEEN_BYTES, Schema, Seen, StateError, TimeFactor,
};

use crate::event::{ClientEvent, Events};
use crate::login::{Login, LoginStats, RetrySettings};
use crate::message::Message;
use crate::own_state::OwnState;
use crate::stats::ClientStats;
use crate::world_view::{CurrentWorld, WorldView};

/// Most bytes of one input, its kind included. An input repeats 20 to 128 times a second; what is longer is a request.
pub const INPUT_BYTES_MAX: usize = 512;

/// First byte, epoch and number come before the kind.
const INPUT_HEADER_BYTES: usize = 4;
const _: () = assert!(INPUT_HEADER_BYTES + SEEN_BYTES + INPUT_BYTES_MAX <= UNRELIABLE_BYTES_MAX);
const _: () = assert!(throng_replication::INPUT_BYTES_MAX < INPUT_BYTES_MAX);
const _: () = assert!(control::REQUEST == REQUEST_KIND && control::MESSAGE == throng_replication::MESSAGE_KIND);

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    /// The handshake is under way; [`Client::queue`] says whether we stand in line.
    Connecting,
    /// Not let in. After a rest it wants a fresh token for the next attempt.
    Resting,
    /// The server has taken us in. A world follows, and others after it.
    Connected,
    /// Over; nothing is sent or taken any more.
    Disconnected(DisconnectReason),
}

/// Why a client is disconnected; its text is for a player to read, with what he can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DisconnectReason {
    /// It never got in.
    #[error("{0}")]
    Handshake(HandshakeFailure),
    #[error("the server ended the connection")]
    ClosedByServer,
    #[error("the connection was lost: the server has been silent for too long")]
    TimedOut,
    /// Its packets broke a rule of the channels, or it stopped acknowledging ours.
    #[error("the connection broke: {0}")]
    Refused(Refusal),
    /// What this client and the server replicate is not the same: the hashes of both schemas.
    #[error(
        "this client and this server were built from different versions of the game (schema {own:016x} here, \
         {server:016x} there): bring both to the same version"
    )]
    SchemaMismatch { own: u64, server: u64 },
    /// `Client::close` was called.
    #[error("you left")]
    ClosedByClient,
}

/// A kind that is known by a number that the schema does not have.
const UNNAMED: &str = "of an unknown number";

/// Why an input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendInputError {
    /// Ordinary: not connected yet, or between two worlds. Try again with the next input.
    #[error("not in a world")]
    NotInWorld,
    #[error("an input has at most {INPUT_BYTES_MAX} bytes")]
    TooLarge,
    /// The program's own mistake.
    #[error("the input `{0}` is not in this client's schema: add it to the protocol of a kind of world")]
    NotInSchema(&'static str),
    /// It breaks its type's limits.
    #[error(transparent)]
    Value(#[from] PackError),
}

/// One player's end of the game, without a screen.
pub struct Client {
    state: ClientState,
    handshake: Option<Box<ClientHandshake>>,
    login: Login,
    connection: Option<Box<Connection>>,
    view: WorldView,
    events: Events,
    /// Where what we say is put together; reused.
    said: Vec<u8>,
    /// Reused by every datagram.
    received: Received,
    inputs_sent: u64,
}

/// Packets of one `poll`: a burst of reliable data goes out at 60 times this many per second at
/// least, and a long one does not crowd out other clients of the thread.
const PACKETS_PER_POLL_MAX: usize = 8;

/// How often the server is told that our schema is another one: nothing confirms it, and at 20 % loss it misses all of
/// them once in 125 times.
const MISMATCHES_SAID: usize = 3;

impl Client {
    /// Begins to connect with `token`. Nothing is sent before [`poll`](Self::poll).
    ///
    /// `seed` must be fresh for every client; it is where the link's sequence numbers start.
    pub fn new(token: ConnectToken, schema: Arc<Schema>, now: Nanos, seed: [u8; 32]) -> Self {
        let handshake = ClientHandshake::new(token, ClientHandshakeSettings { cookie_first: true }, now, seed);
        Self {
            state: ClientState::Connecting,
            handshake: Some(Box::new(handshake)),
            login: Login::new(seed),
            connection: None,
            view: WorldView::new(schema),
            events: Events::new(),
            said: Vec::with_capacity(INPUT_HEADER_BYTES + SEEN_BYTES + INPUT_BYTES_MAX),
            received: Received::default(),
            inputs_sent: 0,
        }
    }

    /// Lets it try again where that may help; without this it tries once.
    pub fn with_retries(mut self, settings: RetrySettings) -> Self {
        self.login.set(settings);
        self
    }

    /// Whether it has rested after a failed attempt and waits for a fresh token: see [`try_again`](Self::try_again).
    pub fn wants_token(&self, now: Nanos) -> bool {
        self.login.next_at.is_some_and(|at| now >= at)
    }

    /// The next attempt begins. Nothing happens unless the client is [resting](ClientState::Resting). `token` has
    /// not been shown before, and `seed` is fresh, as for [`new`](Self::new).
    pub fn try_again(&mut self, token: ConnectToken, now: Nanos, seed: [u8; 32]) {
        if self.state != ClientState::Resting {
            return;
        }
        let settings = ClientHandshakeSettings { cookie_first: true };
        self.handshake = Some(Box::new(ClientHandshake::new(token, settings, now, seed)));
        self.login.begun();
        self.state = ClientState::Connecting;
    }

    /// What the server says about our waiting to come in: our place in its line, or that our world is being made.
    /// `None` while it has said nothing, and once we are in.
    pub fn queue(&self) -> Option<QueueState> {
        self.handshake.as_ref().and_then(|handshake| handshake.queue())
    }

    /// Attempts to come in, and why they failed.
    pub fn login_stats(&self) -> LoginStats {
        self.login.stats
    }

    /// Takes a datagram from the server's address, in place: its bytes are lost. Whatever it holds, it
    /// is applied or counted, never a panic.
    pub fn receive(&mut self, now: Nanos, datagram: &mut [u8]) {
        if let Some(handshake) = &mut self.handshake {
            handshake.handle(now, datagram);
            self.follow_handshake(now);
        } else if let (ClientState::Connected, Some(connection)) = (self.state, &mut self.connection) {
            self.received.clear();
            // The connection counts what it refuses; what came before the fault is still good.
            let _ = connection.receive(now, datagram, &mut self.received);
            for (channel, message) in self.received.messages() {
                self.view.take(now, channel, message, &mut self.events);
            }
            connection.set_quiet(self.view.world().is_some_and(|world| world.is_reactive));
            if let Some(reason) = reason_of_end(connection, now) {
                self.disconnect(reason);
            }
        }
    }

    /// Sends what is due: the handshake's next step, or a packet if there is an input, reliable data,
    /// an acknowledgement or a keep-alive to send; further ones only for reliable data. Call it after
    /// `receive` while connecting, after every input, and at least every 50 ms.
    pub fn poll(&mut self, now: Nanos, unix_s: u64, sink: &mut dyn PacketSink) {
        if let Some(handshake) = &mut self.handshake {
            let mut datagram = [0; 1400];
            if let Some((to, len)) = handshake.poll(now, unix_s, &mut datagram) {
                sink.buffer()[..len].copy_from_slice(&datagram[..len]);
                sink.commit(to, len);
            }
            self.follow_handshake(now);
        } else if let (ClientState::Connected, Some(connection)) = (self.state, &mut self.connection) {
            self.received.clear();
            connection.update(now, &mut self.received);
            if let Some(reason) = reason_of_end(connection, now) {
                connection.close(now, sink);
                self.disconnect(reason);
                return;
            }
            if let Some((SchemaHash(own), SchemaHash(server))) = self.view.schema_mismatch() {
                for _ in 0..MISMATCHES_SAID {
                    // A full queue drops its oldest, an input that nobody needs any more.
                    let _ = connection.send_unreliable(&SchemaHash(own).encode());
                    connection.send_packet(now, &[], sink);
                }
                connection.close(now, sink);
                self.disconnect(DisconnectReason::SchemaMismatch { own, server });
                return;
            }
            let inputs = &mut self.view.input_buffer;
            if inputs.has_unsent() || connection.wants_packet(now) {
                // A full queue drops its oldest, which the connection counts: inputs may be lost anyway.
                inputs.queue_due(|input| _ = connection.send_unreliable(input));
            }
            for _ in 0..PACKETS_PER_POLL_MAX {
                if !connection.wants_packet(now) {
                    break;
                }
                connection.send_packet(now, &[], sink);
            }
        }
    }

    /// Sends `input` as the next numbered one, with the next packet; returns its number.
    ///
    /// Inputs may be lost, and are sent once unless their kind [says otherwise](ClientInput::REPEATS): each should say what
    /// holds now (keys that are down), not what has changed. A second input before the next `poll` goes out in the same
    /// packet. One of a kind that [says what was seen](ClientInput::SAYS_SEEN) carries what [`seen`](Self::seen) gives now.
    ///
    /// # Errors
    /// [`SendInputError::NotInWorld`] is ordinary; the others are mistakes of the program.
    pub fn send_input<T: ClientInput>(&mut self, now: Nanos, input: &T) -> Result<u16, SendInputError> {
        let kind = self.view.schema.input_of::<T>().ok_or(SendInputError::NotInSchema(T::SCHEMA.name))?;
        self.said.clear();
        self.said.extend_from_slice(&[control::INPUT, 0, 0, 0, kind.0]);
        if T::SAYS_SEEN {
            let seen = self.view.seen(now).ok_or(SendInputError::NotInWorld)?;
            self.said.extend_from_slice(&seen.encode());
        }
        pack_body(input, &mut self.said)?;
        self.send_numbered(now, T::REPEATS)
    }

    /// Sends an input that is packed already, of the kind that stands at this place in the schema, as
    /// [`send_input`](Self::send_input) would send it: for inputs that were recorded.
    ///
    /// # Errors
    /// As [`send_input`](Self::send_input); bytes that are no value of the kind are [`SendInputError::Value`].
    pub fn send_packed_input(&mut self, now: Nanos, kind: PackedId, packed: &[u8]) -> Result<u16, SendInputError> {
        let own = self.view.schema.inputs().get(kind.index()).ok_or(SendInputError::NotInSchema(UNNAMED))?;
        let (says_seen, repeats) = (own.says_seen, own.repeats);
        own.check(packed)?;
        self.said.clear();
        self.said.extend_from_slice(&[control::INPUT, 0, 0, 0, kind.0]);
        if says_seen {
            let seen = self.view.seen(now).ok_or(SendInputError::NotInWorld)?;
            self.said.extend_from_slice(&seen.encode());
        }
        self.said.extend_from_slice(packed);
        self.send_numbered(now, repeats)
    }

    /// Sends any bytes as the next numbered input, for tests of what a hostile client may do: a kind's place in the schema
    /// and what it packs.
    ///
    /// # Errors
    /// As [`send_input`](Self::send_input), and if there are more than [`INPUT_BYTES_MAX`].
    #[doc(hidden)]
    pub fn send_raw_input(&mut self, now: Nanos, bytes: &[u8]) -> Result<u16, SendInputError> {
        if bytes.len() > INPUT_BYTES_MAX {
            return Err(SendInputError::TooLarge);
        }
        self.said.clear();
        self.said.extend_from_slice(&[control::INPUT, 0, 0, 0]);
        self.said.extend_from_slice(bytes);
        self.send_numbered(now, 0)
    }

    /// Sends any bytes as an unreliable message with the next packet, for tests of what a hostile client may do.
    #[doc(hidden)]
    pub fn send_raw_unreliable(&mut self, message: &[u8]) {
        if let (ClientState::Connected, Some(connection)) = (self.state, &mut self.connection) {
            let _ = connection.send_unreliable(message);
        }
    }

    /// Sends what was put together, with its stay and its number.
    fn send_numbered(&mut self, now: Nanos, repeats: u8) -> Result<u16, SendInputError> {
        let epoch = self.view.world().map(|world| world.epoch);
        let (ClientState::Connected, Some(connection), Some(epoch)) = (self.state, &mut self.connection, epoch) else {
            return Err(SendInputError::NotInWorld);
        };
        let number = self.view.number_input(now);
        let [low, high] = number.to_le_bytes();
        self.said[1..INPUT_HEADER_BYTES].copy_from_slice(&[epoch, low, high]);
        let repeats = repeats.min(INPUT_REPEATS_MAX);
        self.view.input_buffer.push(number, repeats, &self.said, |input| _ = connection.send_unreliable(input));
        self.inputs_sent += 1;
        Ok(number)
    }

    /// Asks the world that we are in for something: arrives exactly once and in order with other requests. Where the
    /// server has sent us elsewhere by then, and we have not heard of it, nobody hears it, but for a kind that is
    /// [`FOR_ANY_WORLD`](ClientRequest::FOR_ANY_WORLD): so ask again after a
    /// [`ClientEvent::EnteredWorld`] for what is still wanted.
    ///
    /// # Errors
    /// [`SendMessageError::NotInWorld`] is ordinary. If we are not connected, or too much waits to be acknowledged; the
    /// others are mistakes of the program.
    pub fn request<T: ClientRequest>(&mut self, request: &T) -> Result<(), SendMessageError> {
        let kind = self.view.schema.request_of::<T>().ok_or(SendMessageError::NotInSchema(T::SCHEMA.name))?;
        let epoch = self.view.world().map(|world| world.epoch);
        self.said.clear();
        self.said.extend_from_slice(&[REQUEST_KIND, epoch.unwrap_or_default(), kind.0]);
        pack_body(request, &mut self.said)?;
        match (self.state, &mut self.connection) {
            (ClientState::Connected, Some(_)) if epoch.is_none() && !T::FOR_ANY_WORLD => {
                Err(SendMessageError::NotInWorld)
            }
            (ClientState::Connected, Some(connection)) => Ok(connection.send_reliable(&self.said)?),
            _ => Err(SendMessageError::NotConnected),
        }
    }

    /// Asks for something that is packed already, of the kind that stands at this place in the schema, as
    /// [`request`](Self::request) would: for requests that were recorded.
    ///
    /// # Errors
    /// As [`request`](Self::request); bytes that are no value of the kind are [`SendMessageError::Value`].
    pub fn request_packed(&mut self, kind: PackedId, packed: &[u8]) -> Result<(), SendMessageError> {
        let own = self.view.schema.requests().get(kind.index()).ok_or(SendMessageError::NotInSchema(UNNAMED))?;
        own.check(packed)?;
        let is_for_any_world = own.is_for_any_world;
        let epoch = self.view.world().map(|world| world.epoch);
        self.said.clear();
        self.said.extend_from_slice(&[REQUEST_KIND, epoch.unwrap_or_default(), kind.0]);
        self.said.extend_from_slice(packed);
        match (self.state, &mut self.connection) {
            (ClientState::Connected, Some(_)) if epoch.is_none() && !is_for_any_world => {
                Err(SendMessageError::NotInWorld)
            }
            (ClientState::Connected, Some(connection)) => Ok(connection.send_reliable(&self.said)?),
            _ => Err(SendMessageError::NotConnected),
        }
    }

    /// Sends any bytes as a reliable message, for tests of what a hostile client may do.
    ///
    /// # Errors
    /// If we are not connected, or too much waits to be acknowledged.
    #[doc(hidden)]
    pub fn send_raw(&mut self, message: &[u8]) -> Result<(), SendMessageError> {
        match (self.state, &mut self.connection) {
            (ClientState::Connected, Some(connection)) => Ok(connection.send_reliable(message)?),
            _ => Err(SendMessageError::NotConnected),
        }
    }

    /// Says goodbye, several times because nothing confirms it, and is disconnected.
    pub fn close(&mut self, now: Nanos, sink: &mut dyn PacketSink) {
        if let (ClientState::Connected, Some(connection)) = (self.state, &mut self.connection) {
            connection.close(now, sink);
        }
        self.disconnect(DisconnectReason::ClosedByClient);
    }

    pub fn state(&self) -> ClientState {
        self.state
    }

    /// The world we are in; `None` before the first, and for a moment between two.
    pub fn world(&self) -> Option<&CurrentWorld> {
        self.view.world()
    }

    /// The entity that the player steers, if the server has named one in this world. It may be named
    /// a little before its first values arrive.
    pub fn own_entity(&self) -> Option<NetId> {
        self.view.own_entity()
    }

    /// The server's entities as far as this client is told of them.
    pub fn replicas(&self) -> &Replicas {
        &self.view.replicas
    }

    /// Tick of the newest snapshot of this world.
    pub fn newest_tick(&self) -> u32 {
        self.view.newest_tick()
    }

    /// How fast the time of our world runs: a server that has too little time slows it, down to a tenth. The usual one where
    /// there is no world. What comes of [`seen`](Self::seen), [`due_inputs`](Self::due_inputs) and
    /// [`input_tick`](Self::input_tick) goes by it already; it is for what goes by a clock (cooldowns that are shown, sounds), and
    /// to tell the player.
    pub fn time_factor(&self) -> TimeFactor {
        self.view.server_clock.time_factor()
    }

    /// Which moment of its world a player is to be shown now: an even walk behind the newest snapshot, in which a renderer
    /// draws everybody between the two snapshots around it, and never one before what was shown already. `None` where
    /// there is no world.
    ///
    /// Shots are judged by it on the server, so what is drawn should be this moment and no other.
    pub fn seen(&mut self, now: Nanos) -> Option<Seen> {
        self.view.seen(now)
    }

    /// Shows worlds so much behind their newest snapshot, instead of by two ticks.
    ///
    /// Too little → a snapshot that is late or lost makes everybody stop for a moment. Too much → everybody is seen later
    /// than need be, and servers do not believe shots at what is older than they allow.
    pub fn set_interpolation_delay(&mut self, delay: Nanos) {
        self.view.view_clock.set_delay(delay);
    }

    /// By how much worlds are shown behind their newest snapshot. `None` where there is no world.
    pub fn interpolation_delay(&self) -> Option<Nanos> {
        self.view.view_delay()
    }

    /// How many inputs are due in a game that sends one for each tick of its world: one for each tick that has begun since
    /// this was last asked, those of 250 ms at most. 0 where there is no world, and before its first snapshot.
    ///
    /// It goes by the server's ticks, as they are heard of here: never back, and at most 2 % faster or slower than time.
    /// Only where the clock was half a second or more off, after a standstill of the world or the line, it jumps ahead, so
    /// that many are due at once, or waits, so that none is.
    pub fn due_inputs(&mut self, now: Nanos) -> u32 {
        self.view.due_inputs(now)
    }

    /// The tick in which the server takes an input that is sent now, as far as is known; a few inputs in a hundred are
    /// taken later. Never an earlier one than was said before. `None` where there is no world, and before its first
    /// snapshot.
    pub fn input_tick(&mut self, now: Nanos) -> Option<u32> {
        let rtt = self.rtt()?;
        self.view.input_tick(now, rtt)
    }

    /// How far ahead inputs are: the time from the tick whose snapshot comes now to the one that takes an input which is
    /// sent now. Measured by what snapshots say of earlier inputs; before the first of these, the round trip, the jitter
    /// and a tick. `None` where there is no world.
    pub fn input_lead(&self) -> Option<Nanos> {
        self.view.input_lead(self.rtt()?)
    }

    /// A component of the own entity as the server has it, and the newest input that is in it: what a prediction is
    /// [held against](crate::prediction::Predictor::reconcile). `None` while either is not known.
    pub fn own_state<T: Replicate>(&self) -> Option<OwnState<'_, T>> {
        self.view.own_state()
    }

    /// What worlds have told us since the last [`clear_messages`](Self::clear_messages), in order.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.view.inbox.iter().filter_map(|(_, bytes)| Message::split(&self.view.schema, bytes))
    }

    /// Events of this stay since the last [`clear_messages`](Self::clear_messages), reliable and unreliable ones in the
    /// order of their arrival; which kind an id means, the schema says. Where one kind is wanted:
    /// [`events_of`](Self::events_of).
    pub fn events(&self) -> impl Iterator<Item = EventIn<'_>> {
        self.view.events.iter().filter_map(|(_, message)| EventIn::split(message))
    }

    /// Those of [`events`](Self::events) that are of one kind and can be read. None, if it is not in the schema.
    pub fn events_of<T: ReplicatedEvent>(&self) -> impl Iterator<Item = T> {
        let kind = self.view.schema.event_of::<T>();
        self.events().filter(move |event| Some(event.id) == kind).filter_map(|event| event.decode().ok())
    }

    /// Forgets the messages and events that have been read.
    pub fn clear_messages(&mut self) {
        self.view.inbox.clear();
        self.view.events.clear();
    }

    /// What happened, oldest first. The last 32 are kept.
    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop()
    }

    /// Samples of `input_to_update`, one per answered input, oldest first. The last 512 are kept.
    pub fn next_input_to_update(&mut self) -> Option<Nanos> {
        self.view.inputs.next_sample()
    }

    /// What the last state errors were about, oldest first; their count is in the stats.
    pub fn next_state_error(&mut self) -> Option<StateError> {
        self.view.replicas.take_state_error()
    }

    /// Smoothed round trip time; `None` while not connected.
    pub fn rtt(&self) -> Option<Nanos> {
        self.connection.as_ref().map(|connection| connection.rtt())
    }

    /// What the client counts; readable after the end too.
    pub fn stats(&self) -> ClientStats {
        let WorldView { replicas, inputs, inbox, events, .. } = &self.view;
        let replicated = replicas.counts();
        let connection = self.connection_stats().unwrap_or_default();
        ClientStats {
            snapshots: self.view.snapshots,
            old_epoch_messages: self.view.old_epoch_messages,
            protocol_errors: self.view.protocol_errors + connection.malformed + connection.acks_of_unsent,
            travels_refused: self.view.travels_refused,
            datagrams_refused: connection.unopened + connection.duplicates + connection.late,
            messages_dropped: inbox.dropped() + events.dropped(),
            inputs_sent: self.inputs_sent,
            inputs_unanswered: inputs.unanswered(),
            clock_jumps: self.view.server_clock.jumps(),
            samples_lost: inputs.samples_lost(),
            entity_updates: replicated.updates_applied,
            state_checks: replicated.state_checks,
            state_errors: replicated.state_errors,
            state_checks_superseded: replicated.superseded,
        }
    }

    /// What the connection counts; `None` before there was one.
    pub fn connection_stats(&self) -> Option<ConnectionStats> {
        self.connection.as_ref().map(|connection| connection.stats())
    }

    fn follow_handshake(&mut self, now: Nanos) {
        match self.handshake.as_ref().map(|handshake| handshake.state()) {
            Some(HandshakeState::Connected) => {
                let handshake = self.handshake.take().expect("its state was just read");
                let address = handshake.server_address();
                // Only the server knows our id: it lies in the sealed part of the token.
                let connection = Connection::new(handshake.into_link(), address, ClientId(0), now);
                self.connection = Some(Box::new(connection));
                self.state = ClientState::Connected;
                self.events.push(ClientEvent::Connected);
            }
            Some(HandshakeState::Failed(failure)) if self.login.failed(failure, now) => {
                self.handshake = None;
                self.state = ClientState::Resting;
                self.events.push(ClientEvent::AttemptFailed(failure));
            }
            Some(HandshakeState::Failed(failure)) => self.disconnect(DisconnectReason::Handshake(failure)),
            Some(HandshakeState::Connecting) | None => {}
        }
    }

    fn disconnect(&mut self, reason: DisconnectReason) {
        if matches!(self.state, ClientState::Disconnected(_)) {
            return;
        }
        self.state = ClientState::Disconnected(reason);
        self.handshake = None;
        self.login.next_at = None;
        self.events.push(ClientEvent::Disconnected(reason));
    }
}

fn reason_of_end(connection: &Connection, now: Nanos) -> Option<DisconnectReason> {
    Some(match connection.ended(now)? {
        EndReason::Disconnected => DisconnectReason::ClosedByServer,
        EndReason::TimedOut => DisconnectReason::TimedOut,
        EndReason::Refused(refusal) => DisconnectReason::Refused(refusal),
    })
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendMessageError {
    #[error("not connected")]
    NotConnected,
    /// Ordinary: before the first world, or between two. Ask again when we are in one.
    #[error("not in a world")]
    NotInWorld,
    /// The program's own mistake.
    #[error("the request `{0}` is not in this client's schema: add it to the protocol of a kind of world")]
    NotInSchema(&'static str),
    /// It breaks its type's limits.
    #[error(transparent)]
    Value(#[from] PackError),
    #[error(transparent)]
    Connection(#[from] SendError),
}

#[cfg(test)]
mod tests;
