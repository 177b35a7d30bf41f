//! Watch: somebody hears of each tick of a replay, on the thread that does it.
//!
//! For who wants more of a recording than whether it comes again: what was said, what the game counted, where players were.
//! A watched replay has one thread, so that what is heard comes in the order of the recording. What is heard is lent for the
//! call, and nothing that is done with it changes the worlds.

use throng_world::{GameWorld, ids::WorldId, input_log::LoggedTick};

use crate::recording::WorldPlan;

/// A tick that was done.
pub struct DoneTick<'a> {
    pub id: WorldId,
    /// As it is after it.
    pub world: &'a GameWorld,
    /// What the game counted in it, by the numbers that [`counter_name`](throng_metrics::game::counter_name) knows.
    pub counted: &'a [(usize, u64)],
}

/// Hears of a replay.
pub trait ReplayWatch {
    /// A world is about to do this tick, with what entered it.
    fn begins(&mut self, world: WorldId, plan: &WorldPlan, tick: &LoggedTick<'_>);

    /// It has done it.
    fn done(&mut self, tick: &DoneTick<'_>);

    /// A stretch of it is missing: its next tick, if there is one, does not follow on the last.
    fn gap(&mut self, _world: WorldId) {}

    /// It could not be made or led on, and why. Where it is picked up again ticks are missing, as behind a gap.
    fn failed(&mut self, _world: WorldId, _why: &str) {}

    /// It was hashed, where the recording has a hash: its state after the last tick.
    fn hashed(&mut self, _world: WorldId, _hash: u64) {}

    /// Nothing more is wanted: the replay ends with what was written at one time, a second at most.
    fn is_over(&self) -> bool {
        false
    }

    /// There is no more of this world.
    fn ended(&mut self, world: WorldId);
}
