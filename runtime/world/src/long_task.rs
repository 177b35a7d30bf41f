//! Long tasks of a world: work that takes longer than a tick may, done beside the ticks.
//!
//! A system says what is to be done, with all that it needs by value or behind an `Arc`, and by when
//! ([`Outbox::start_long_task`](crate::tick_resources::Outbox::start_long_task)). The host does it on a thread of low
//! priority; what it brings comes as a message of the world to itself, before a later tick. So it enters the world as all
//! else does, in the order of its mail, and a log of what entered holds it. Which tick that will be nobody can say: a game
//! must not count on one.
//!
//! ```
//! use throng_pack::Pack;
//! use throng_world::{long_task::{LongTaskLost, LongTaskTerms}, prelude::*};
//! # use bevy_ecs::prelude::*;
//!
//! const SECTOR: LongTaskTerms = LongTaskTerms::new("nav.sector").within_ms(2_000);
//!
//! #[derive(Pack)]
//! #[pack(name = "mine.sector")]
//! struct Sector {
//!     x: i16,
//!     walkable: u32,
//! }
//!
//! fn ask(mut outbox: ResMut<Outbox>) {
//!     outbox.start_long_task(SECTOR, || Sector { x: 3, walkable: 0xff });
//! }
//!
//! fn take(messages: Res<WorldMessages>) {
//!     for message in &messages.0 {
//!         if message.is::<Sector>() {
//!             let sector = message.read::<Sector>();
//!         } else if message.is::<LongTaskLost>() {
//!             // Nothing will come of that one: ask again, or do without.
//!         }
//!     }
//! }
//! ```

use throng_pack::{HasSchema, Pack, PackError};
use throng_platform::time::Nanos;

use crate::{
    ids::WorldId,
    transfer::{WorldMessage, packed},
};

/// How a long task is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongTaskTerms {
    /// What it is, as the console, metrics and captures tell it: `nav.sector`. All tasks of a name are one kind, of which
    /// it is learnt what they take.
    pub kind: &'static str,
    /// It should be done within so much time after its start; the most urgent are begun first, and those that are late are
    /// counted.
    pub within: Nanos,
    /// What this one will take of a core, if more is known of it than of its kind; zero: as others of its kind.
    pub cost: Nanos,
}

impl LongTaskTerms {
    /// Within ten seconds, at the cost that such tasks usually have.
    pub const fn new(kind: &'static str) -> Self {
        Self { kind, within: Nanos::from_secs(10), cost: Nanos::ZERO }
    }

    /// By when it should be done [ms after its start]. Too low → others are put off for it, and it is counted as late; too
    /// high → whoever needs it waits.
    #[must_use]
    pub const fn within_ms(self, within_ms: u32) -> Self {
        Self { within: Nanos::from_millis(within_ms as u64), ..self }
    }

    /// What it will take of a core, for one that is larger or smaller than others. A guess to a factor of two will do.
    #[must_use]
    pub const fn cost_us(self, cost_us: u32) -> Self {
        Self { cost: Nanos::from_micros(cost_us as u64), ..self }
    }
}

/// Which long task of its world: what follows from the world alone, so two runs agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LongTaskNumber(pub u64);

impl LongTaskNumber {
    /// The first of a tick. More than 65,536 in one tick would share numbers with those of the next one.
    pub(crate) fn first_of(tick: u64) -> Self {
        Self(tick << 16)
    }
}

/// A long task of which nothing came: the message in its result's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "throng.long_task_lost")]
pub struct LongTaskLost {
    /// The number that its start gave.
    pub number: u64,
    pub loss: LongTaskLoss,
}

/// Why nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "throng.long_task_loss")]
pub enum LongTaskLoss {
    /// Too many long tasks waited.
    NotStarted,
    /// It panicked; the log has the crash.
    Panicked,
    /// What it brought breaks its type's limits.
    BreaksLimits,
}

/// A long task on its way to the host.
pub struct WorldLongTask {
    pub number: LongTaskNumber,
    pub terms: LongTaskTerms,
    /// Gives the result, packed.
    pub run: Box<dyn FnOnce() -> Result<Vec<u8>, PackError> + Send>,
}

impl WorldLongTask {
    pub(crate) fn new<T: HasSchema>(
        number: LongTaskNumber,
        terms: LongTaskTerms,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        Self { number, terms, run: Box::new(move || packed(&work())) }
    }

    /// Does it here, for a host without other threads, and gives the world's message. A panic is the caller's.
    ///
    /// # Panics
    /// If the work does.
    pub fn run_here(self, world: WorldId) -> Result<WorldMessage, PackError> {
        match (self.run)() {
            Ok(bytes) => Ok(WorldMessage::from_packed(world, bytes)),
            Err(_) => {
                WorldMessage::of(world, &LongTaskLost { number: self.number.0, loss: LongTaskLoss::BreaksLimits })
            }
        }
    }
}
