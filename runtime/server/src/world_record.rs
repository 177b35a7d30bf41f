//! World record: what a world can be made again from, if it panics.
//!
//! A world of a kind that keeps checkpoints leaves one every `checkpoint_period_s`, and writes down all that enters it
//! since: so a world that is built again, is given the one and does the ticks of the other is where this one was when its
//! last tick began ([`crate::reload`]). Before its first checkpoint a world is as it was built.
//!
//! An operator's command may change anything and is in no log, so after one a checkpoint is taken at once, as after a log
//! that grows beyond [`LOG_BYTES_MAX`].
//!
//! On the worker that has the world, between two of its ticks; worlds take turns, so that a thousand of them do not do it
//! in one frame. Memory: one checkpoint and one log for each world, both kept. Cost: that of a checkpoint, once in a
//! period; 16 bytes a tick, and a copy of what clients said.

use throng_profiler::{log_category, log_error};
use throng_world::{GameWorld, checkpoint::PlayerEntities, input_log::InputLog};

log_category!(RECORDS = "server.records");

/// After so much a checkpoint is taken before its time: 1,000 clients at 20 Hz with 20 bytes each say 4 MB in 10 s.
const LOG_BYTES_MAX: usize = 8 << 20;

/// A world with a larger checkpoint is not kept: to copy it would take its tick.
const CHECKPOINT_BYTES_MAX: usize = 64 << 20;

/// What a world can be made again from.
pub(crate) struct WorldRecord {
    seed: u64,
    period_ticks: u32,
    /// The newest one; empty while the log begins with the world as it was built.
    checkpoint: Vec<u8>,
    /// The log goes with the checkpoint. False: there was none yet, and the world has ticked elsewhere.
    is_begun: bool,
}

/// The record of a world that panicked.
pub(crate) struct LastRecord {
    pub checkpoint: Vec<u8>,
    pub log: Box<InputLog>,
}

impl WorldRecord {
    /// Begins the record of a world that is about to tick here; `None` if its kind keeps no checkpoints, or none are
    /// wanted.
    pub fn begin(world: &mut GameWorld, seed: u64, period_s: u32) -> Option<Box<Self>> {
        if period_s == 0 || !world.keeps_checkpoints() {
            return None;
        }
        let period_ticks = period_s * u32::from(world.rate().0);
        let is_begun = world.ticks() == 0;
        world.log_into(Box::new(InputLog::empty()), seed);
        Some(Box::new(Self { seed, period_ticks, checkpoint: Vec::new(), is_begun }))
    }

    /// The record of a world that was made again from this checkpoint, which is of it as it is now.
    pub fn go_on(world: &mut GameWorld, seed: u64, period_s: u32, checkpoint: Vec<u8>) -> Option<Box<Self>> {
        let record = Self::begin(world, seed, period_s)?;
        Some(Box::new(Self { checkpoint, is_begun: true, ..*record }))
    }

    /// After a tick: takes a checkpoint if it is time. `scratch` is the worker's. False: the world cannot be kept, and
    /// its record is of no use any more.
    pub fn note_tick(&mut self, world: &mut GameWorld, scratch: &mut Vec<u8>) -> bool {
        let log_bytes = world.log().map_or(0, |log| log.whole_ticks().len());
        // Neighbours in the table are far apart in the period.
        let turn = world.ticks().wrapping_add(world.id().number().wrapping_mul(0x9E37_79B9));
        let is_due = turn.is_multiple_of(self.period_ticks) || log_bytes > LOG_BYTES_MAX || !self.is_begun;
        if !is_due && !world.report_mut().was_changed_from_outside {
            return true;
        }
        scratch.clear();
        let taken = world.checkpoint(PlayerEntities::Stay, scratch).map_err(|error| error.to_string());
        let too_large = || format!("it takes {} bytes; {CHECKPOINT_BYTES_MAX} are possible", scratch.len());
        let taken = taken.and_then(|()| if scratch.len() > CHECKPOINT_BYTES_MAX { Err(too_large()) } else { Ok(()) });
        if let Err(error) = taken {
            log_error!(
                RECORDS,
                world = %world.id(),
                kind = &**world.name(),
                error,
                "a world's checkpoint could not be taken: if it panics it begins anew"
            );
            world.take_log();
            return false;
        }
        self.checkpoint.clear();
        self.checkpoint.extend_from_slice(scratch);
        world.restart_log(self.seed);
        self.is_begun = true;
        true
    }

    /// What is left of a world that panicked; `None` if it is not enough.
    pub fn end(self, world: &mut GameWorld) -> Option<LastRecord> {
        let log = world.take_log()?;
        self.is_begun.then_some(LastRecord { checkpoint: self.checkpoint, log })
    }
}
