//! What a system sees of the server: the tick, who came and went, what clients said, and what shall be sent.
//!
//! All of these are resources of the Bevy world. They are filled before a tick's systems run and emptied after, by the
//! world's own thread; nothing here is shared between worlds. Their buffers are reused from tick to tick.

use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::protocol::{ClientId, UserData};
use throng_pack::{HasSchema, PackError, pack_body};
use throng_platform::time::Nanos;
use throng_replication::{ClientMessage, MESSAGE_KIND, table_resource};
use throng_scheduler::Hertz;

use crate::{
    declared::Declared,
    ids::{ClientKey, WorldId},
    long_task::{LongTaskNumber, LongTaskTerms, WorldLongTask},
    saving::{SaveAnswers, SaveRequest, SaveStore, SaveWishes, add_items},
    transfer::{Transfer, WorldMessage},
};

/// The tick that is being run.
#[derive(Debug, Clone, Copy)]
pub struct TickInfo {
    /// Ticks of this world before this one.
    pub tick: u32,
    /// From the tick before to this one: 1 / rate; in a [reactive](crate::reactive) world more after a rest, up to
    /// [`REST_S_MAX`](crate::reactive::REST_S_MAX). (s)
    pub dt_s: f32,
    pub rate: Hertz,
    pub world: WorldId,
    /// How long the tick before this one took, from the first datagram to the last packet, as the host measured it; zero
    /// before the second tick, and in simulations. It is another time in a replay, so it is for metrics alone: whatever
    /// a world computes of it, two runs part.
    pub last_tick_took: Nanos,
}

impl TickInfo {
    /// The world's time: when this tick begins, counted from the world's first. Ticks alone make it, so two runs agree; it
    /// is what a job at a rate is asked with ([`Every::due`](throng_scheduler::Every::due)).
    pub fn now(&self) -> Nanos {
        let (tick, hz) = (u64::from(self.tick), u64::from(self.rate.0));
        Nanos::from_secs(tick / hz).saturating_add(Nanos(tick % hz * Nanos::from_secs(1).0 / hz))
    }
}

/// The world's only source of chance, seeded at its creation: the same inputs give the same world.
#[derive(Debug, Clone)]
pub struct WorldRng(pub Xoshiro256PlusPlus);

/// Why a client that was sent to another world is back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TravelRefusal {
    /// That world is no more: it was retired, or it panicked.
    NoSuchWorld,
    /// That world cannot read what the client carries.
    TransferUnreadable,
    /// This world, with who leaves it, could not be saved in that tick: it has what its type does not allow.
    NotSaved,
}

/// A journey that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedTravel {
    /// The world that the client was sent to.
    pub to: WorldId,
    pub reason: TravelRefusal,
}

/// A client that has come into this world: newly connected (no transfer) or from another world.
pub struct Arrival {
    pub client: ClientKey,
    pub client_id: ClientId,
    /// What the connect token said about the client, 256 bytes of the game's own.
    pub user_data: Box<UserData>,
    /// The world it comes from; `None` for one that has just connected.
    pub from: Option<WorldId>,
    /// What it carries; `None` for one that has just connected. Can be read, if the world says what it takes
    /// ([`WorldBuilder::accept_transfers`](crate::world_builder::WorldBuilder::accept_transfers)).
    pub transfer: Option<Transfer>,
    /// It was here before and is back, because the world that it was sent to did not take it. It carries what it was sent
    /// with.
    pub refused: Option<RefusedTravel>,
}

/// Who came since the last tick.
#[derive(Default)]
pub struct Arrivals(pub Vec<Arrival>);

/// Whose connection ended since the last tick. A client that travelled away is not in it: its world sent it itself.
#[derive(Default)]
pub struct Departures(pub Vec<ClientKey>);

/// What other worlds have sent to this one.
#[derive(Default)]
pub struct WorldMessages(pub Vec<WorldMessage>);

/// Whether this world may stop ticking while nobody is in it. Set from the kind; a system may change it.
#[derive(Debug, Clone, Copy)]
pub struct MayBeDormant(pub bool);

/// How far a game's neighbour lists reach. A game that keeps some inserts it and follows it; an operator's rules change
/// it while the world runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanRange {
    /// As the game has it (m).
    pub usual_m: f32,
    /// The widest that the game asks for (m): with less, such questions look at everybody.
    pub asked_m: f32,
    /// As the rules have it; none: they say nothing (m).
    pub ruled_m: Option<f32>,
}

impl ScanRange {
    /// What holds now (m).
    pub fn range_m(&self) -> f32 {
        self.ruled_m.unwrap_or(self.usual_m)
    }
}

table_resource!(
    TickInfo,
    WorldRng,
    Arrivals,
    Departures,
    WorldMessages,
    MayBeDormant,
    ScanRange,
    Outbox,
    SaveAnswers,
    SaveStore
);

/// One thing that a world wants done after its tick.
pub(crate) enum Order {
    Reliable { client: ClientKey, end: usize },
    Player { client: ClientKey, entity: Entity },
    Team { client: ClientKey, team: Option<u16> },
    Teleported { entity: Entity },
    Travel { client: ClientKey, to: WorldId, transfer: Transfer },
    Disconnect { client: ClientKey, reason: &'static str },
    Post { to: WorldId, message: WorldMessage },
}

/// What this world sends. Carried out after the tick's systems, in order.
pub struct Outbox {
    declared: Arc<Declared>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) orders: Vec<Order>,
    pub(crate) next_tick_hint: Nanos,
    pub(crate) wake_after: Option<u32>,
    pub(crate) saves: SaveWishes,
    /// Behind a lock that nobody ever waits for: what a task holds may belong to one thread at a time, a resource not.
    pub(crate) long_tasks: Mutex<Vec<WorldLongTask>>,
    pub(crate) next_long_task: LongTaskNumber,
}

impl Outbox {
    pub(crate) fn new(declared: Arc<Declared>) -> Self {
        Self {
            declared,
            bytes: Vec::new(),
            orders: Vec::new(),
            next_tick_hint: Nanos::ZERO,
            wake_after: None,
            saves: SaveWishes::default(),
            long_tasks: Mutex::default(),
            next_long_task: LongTaskNumber::first_of(0),
        }
    }

    /// Tells a client something, reliably and in order with all that it is told so. What does not fit the client's send
    /// queue ends its connection, counted, since order could not be kept. A client that has left hears nothing.
    ///
    /// # Errors
    /// If the message breaks its type's limits: nothing is sent then.
    ///
    /// # Panics
    /// If `T` is not in the server's schema: the program's own mistake.
    pub fn send<T: ClientMessage>(&mut self, client: ClientKey, message: &T) -> Result<(), PackError> {
        let kind = self.declared.message::<T>();
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&[MESSAGE_KIND, kind.0]);
        if let Err(error) = pack_body(message, &mut self.bytes) {
            self.bytes.truncate(begin);
            return Err(error);
        }
        self.orders.push(Order::Reliable { client, end: self.bytes.len() });
        Ok(())
    }

    /// Nothing of what was ordered is done, the next tick is this one, and so many requests to be saved came before.
    pub(crate) fn forget(&mut self, tick: u32, save_requests: u32) {
        self.saves = SaveWishes { newest: save_requests, ..SaveWishes::default() };
        self.next_long_task = LongTaskNumber::first_of(tick.into());
        self.long_tasks_mut().clear();
        self.bytes.clear();
        self.orders.clear();
        self.next_tick_hint = Nanos::ZERO;
        self.wake_after = None;
    }

    /// Names the entity that is the client's player: the centre of its view, always relevant to it, and told to it.
    pub fn set_player(&mut self, client: ClientKey, entity: Entity) {
        self.orders.push(Order::Player { client, entity });
    }

    /// Puts the client into a team, or takes it out: entities of its team (`throng_replication::Team`) are relevant to
    /// it wherever they are.
    pub fn set_team(&mut self, client: ClientKey, team: Option<u16>) {
        self.orders.push(Order::Team { client, team });
    }

    /// Says that an entity was moved at once over a distance: what changed of it goes with this tick's packets to all
    /// who hold it, however seldom they hear of it otherwise.
    pub fn teleported(&mut self, entity: Entity) {
        self.orders.push(Order::Teleported { entity });
    }

    /// Moves the client to another world after this tick, without reconnecting, with what it carries. The game despawns
    /// its entity here itself. If the other world is no more, or cannot read the transfer, the client comes back here
    /// with it, as an arrival that says so ([`Arrival::refused`]).
    ///
    /// # Errors
    /// If what it carries breaks its type's limits: it stays then.
    pub fn travel<T: HasSchema>(&mut self, client: ClientKey, to: WorldId, carries: &T) -> Result<(), PackError> {
        let transfer = Transfer::of(carries)?;
        self.orders.push(Order::Travel { client, to, transfer });
        Ok(())
    }

    /// Ends the connection; `reason` is logged and the disconnect counted; the client learns that it was disconnected.
    pub fn disconnect(&mut self, client: ClientKey, reason: &'static str) {
        self.orders.push(Order::Disconnect { client, reason });
    }

    /// Sends a message to another world, from this one: delivered before its next tick. To a world that is no more it
    /// is lost, counted.
    ///
    /// # Errors
    /// If the message breaks its type's limits.
    pub fn post<T: HasSchema>(&mut self, from: WorldId, to: WorldId, message: &T) -> Result<(), PackError> {
        let message = WorldMessage::of(from, message)?;
        self.orders.push(Order::Post { to, message });
        Ok(())
    }

    /// Says that the world's next tick will take so much longer than its last ones (ns of one core; several hints add
    /// up): a wave of NPCs is about to come, or a door to open on a thousand things. Of worlds that are equally urgent
    /// those that cost most start first, so a world that gets busy all at once starts in time. Said while the world is
    /// built, it is about the first tick, of which nothing else is known.
    ///
    /// A guess to a factor of two will do. Too low → the world starts behind others, and that tick may be late; too high
    /// → it starts before others once. It counts for one tick, and never changes what a world computes. Clients that
    /// come in are no reason for a hint: the host knows of them.
    pub fn hint_next_tick(&mut self, extra: Nanos) {
        self.next_tick_hint = self.next_tick_hint.saturating_add(extra);
    }

    /// Says that the world is to tick again after so many ticks of its rate at the latest, if nothing comes before (ticks;
    /// 0 is as 1): it waits for something that nobody tells it of, or a time is up then. Of several the first counts. It
    /// holds until the next tick, whatever that is for, so who still waits says so again. Means nothing in a world that is
    /// not [reactive](crate::reactive).
    pub fn wake_after(&mut self, ticks: u32) {
        self.wake_after = Some(self.wake_after.map_or(ticks, |before| before.min(ticks)));
    }

    /// Wants the world and its players saved as they are at the end of this tick. The answer comes among the
    /// [`SaveAnswers`] of a later tick, when it is on disk: as a rule after 0.1 s.
    pub fn save(&mut self) -> SaveRequest {
        self.saves.newest = self.saves.newest.wrapping_add(1);
        let request = SaveRequest(self.saves.newest);
        self.saves.requests.push(request);
        request
    }

    /// Says that so many items of a kind have come into being in this tick; negative: they ceased to be. Kinds are
    /// numbered by the game. The store keeps the sums, and they can be held against all that is saved.
    pub fn items_created(&mut self, kind: u32, count: i64) {
        add_items(&mut self.saves.items, kind, count);
    }

    /// Says what one who has gone is saved as, in the tick that has them among the [`Departures`]: for games that take
    /// something from them then. Otherwise they are saved with what they had when their connection ended.
    ///
    /// # Errors
    /// If it breaks its type's limits.
    pub fn left_with<T: HasSchema>(&mut self, client: ClientKey, has: &T) -> Result<(), PackError> {
        let transfer = Transfer::of(has)?;
        self.saves.left_with.push((client, transfer));
        Ok(())
    }

    /// Has something done beside the ticks that takes longer than a tick may, on a thread of low priority. What it brings
    /// comes before a later tick, as a message of this world to itself ([`WorldMessages`]); a
    /// [`LongTaskLost`](crate::long_task::LongTaskLost) of this number comes in its place if there is none. If the world
    /// has ended by then, neither. Which tick that is depends on the host: see [`long_task`](crate::long_task).
    ///
    /// Starts after the tick. Allocates.
    pub fn start_long_task<T: HasSchema>(
        &mut self,
        terms: LongTaskTerms,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> LongTaskNumber {
        let number = self.next_long_task;
        self.next_long_task = LongTaskNumber(number.0 + 1);
        self.long_tasks_mut().push(WorldLongTask::new(number, terms, work));
        number
    }

    pub(crate) fn long_tasks_mut(&mut self) -> &mut Vec<WorldLongTask> {
        self.long_tasks.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worlds_time_follows_its_ticks_without_drift() {
        let check = |tick, hz, expect| {
            let world = WorldId::new(0, 0);
            let info =
                TickInfo { tick, dt_s: 1.0 / f32::from(hz), rate: Hertz(hz), world, last_tick_took: Nanos::ZERO };
            assert_eq!(info.now(), expect, "tick {tick} at {hz} Hz");
        };
        check(0, 128, Nanos::ZERO);
        check(3, 20, Nanos::from_millis(150));
        check(1, 30, Nanos(33_333_333));
        check(30 * 86_400, 30, Nanos::from_secs(86_400));
    }
}
