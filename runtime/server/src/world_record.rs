//! World record: what a world can be made again from, if it panics.
//!
//! A world of a kind that keeps checkpoints leaves one every `checkpoint_period_s`, and writes down all that enters it
//! since: so a world that is built again, is given the one and does the ticks of the other is where this one was when its
//! last tick began ([`crate::reload`]). Before its first checkpoint a world is as it was built.
//!
//! An operator's command may change anything and is in no log, so after one a checkpoint is taken at once, as after a log
//! that grows beyond [`LOG_BYTES_MAX`].
//!
//! Where the server is recorded, what is written down goes into the recording, too, and so do checkpoints
//! ([`crate::recording`]). A world of a kind that keeps none, or of a server that wants none, is recorded as it was built,
//! and cannot be made again.
//!
//! On the worker that has the world, between two of its ticks; worlds take turns, so that a thousand of them do not do it
//! in one frame. Memory: one checkpoint and one log for each world, both kept. Cost: that of a checkpoint, once in a
//! period; 16 bytes a tick, and a copy of what clients said.

use std::{mem, sync::Arc};

use throng_profiler::{log_category, log_error, scope};
use throng_replication::StateParts;
use throng_world::{GameWorld, checkpoint::PlayerEntities, input_log::InputLog};

use crate::{
    lifecycle::NewWorld,
    recording::{Due, EndReason, RecordingQueue, SharedTape, turn_of},
};

log_category!(RECORDS = "server.records");

/// After so much a checkpoint is taken before its time: 1,000 clients at 20 Hz with 20 bytes each say 4 MB in 10 s.
pub(crate) const LOG_BYTES_MAX: usize = 8 << 20;

/// A world with a larger checkpoint is not kept: to copy it would take its tick.
pub(crate) const CHECKPOINT_BYTES_MAX: usize = 64 << 20;

/// What is kept from one tick to the next by whoever has the world, for its memory.
#[derive(Default)]
pub(crate) struct RecordScratch {
    checkpoint: Vec<u8>,
    parts: StateParts,
}

/// What is written down of a world.
pub(crate) struct WorldRecord {
    plan: NewWorld,
    /// `None`: it cannot be made again, and is there for a recording alone.
    checkpoints: Option<Checkpoints>,
    /// Where the server can be recorded.
    queue: Option<Arc<RecordingQueue>>,
    /// What of it is in the recording that is on.
    tape: Option<SharedTape>,
    /// Of the recording that this world has its tape for, or has none for; 0: none is on.
    recording_number: u32,
}

/// A world's checkpoints, which its log goes with.
struct Checkpoints {
    /// At least 1.
    period_ticks: u32,
    /// Periods that were over, by the world's turn.
    periods: u32,
    /// The newest one; empty while the log begins with the world as it was built.
    newest: Vec<u8>,
    /// The log begins there. False: there was none yet, and the world has ticked elsewhere.
    has_log: bool,
}

impl Checkpoints {
    fn is_due(&mut self, world: &mut GameWorld, log_bytes: usize) -> bool {
        let periods = turn_of(world) / self.period_ticks;
        let is_over = mem::replace(&mut self.periods, periods) != periods;
        is_over || log_bytes > LOG_BYTES_MAX || !self.has_log || world.report_mut().was_changed_from_outside
    }

    /// Takes one by way of `scratch`, so that the one before is there if it cannot be taken.
    fn take(&mut self, world: &mut GameWorld, seed: u64, scratch: &mut Vec<u8>) -> Result<(), String> {
        scratch.clear();
        world.checkpoint(PlayerEntities::Stay, scratch).map_err(|error| error.to_string())?;
        if scratch.len() > CHECKPOINT_BYTES_MAX {
            return Err(format!("it takes {} bytes; {CHECKPOINT_BYTES_MAX} are possible", scratch.len()));
        }
        self.newest.clear();
        self.newest.extend_from_slice(scratch);
        world.restart_log(seed);
        self.has_log = true;
        Ok(())
    }
}

/// The record of a world that panicked.
pub(crate) struct LastRecord {
    pub checkpoint: Vec<u8>,
    pub log: InputLog,
}

impl WorldRecord {
    /// Begins the record of a world that is about to tick here; `None` if its kind keeps no checkpoints, or none are
    /// wanted, and it is not recorded.
    pub fn begin(
        world: &mut GameWorld,
        plan: &NewWorld,
        period_s: u32,
        queue: Option<&Arc<RecordingQueue>>,
    ) -> Option<Box<Self>> {
        // One that was loaded is not as it is built.
        let is_as_built = world.ticks() == 0 && world.is_as_built();
        let record = Self::new(world, plan, period_s, queue, is_as_built)?;
        Some(Box::new(record))
    }

    /// The record of a world that was made again from this checkpoint, which is of it as it is now.
    pub fn go_on(
        world: &mut GameWorld,
        plan: &NewWorld,
        period_s: u32,
        queue: Option<&Arc<RecordingQueue>>,
        checkpoint: Vec<u8>,
    ) -> Option<Box<Self>> {
        let mut record = Self::new(world, plan, period_s, queue, false)?;
        if let Some(tape) = &mut record.tape {
            tape.note_checkpoint(world, &checkpoint, false);
        }
        if let Some(checkpoints) = &mut record.checkpoints {
            (checkpoints.newest, checkpoints.has_log) = (checkpoint, true);
        }
        Some(Box::new(record))
    }

    fn new(
        world: &mut GameWorld,
        plan: &NewWorld,
        period_s: u32,
        queue: Option<&Arc<RecordingQueue>>,
        is_as_built: bool,
    ) -> Option<Self> {
        let recording_number = queue.map_or(0, |queue| queue.recording_number());
        let period_ticks = if world.keeps_checkpoints() { period_s * u32::from(world.rate().0) } else { 0 };
        let checkpoints = turn_of(world).checked_div(period_ticks).map(|periods| Checkpoints {
            period_ticks,
            periods,
            newest: Vec::new(),
            has_log: is_as_built,
        });
        // Without a checkpoint there is no other point from which it could be replayed.
        let is_recorded = recording_number > 0 && (checkpoints.is_some() || is_as_built);
        if checkpoints.is_none() && !is_recorded {
            return None;
        }
        let log = world.log_into(InputLog::empty(), plan.seed);
        let begin = |queue| SharedTape::begin(queue, (world, log), plan, is_as_built);
        let tape = queue.filter(|_| is_recorded).map(begin);
        let (queue, plan) = (queue.cloned(), plan.clone());
        Some(Self { plan, checkpoints, queue, tape, recording_number })
    }

    /// After a tick (not after a step in which the world listened): takes a checkpoint if it is time, and hands on what is
    /// recorded. `scratch` is the worker's. False: the world cannot be kept, and its record is of no use any more.
    pub fn note_tick(&mut self, world: &mut GameWorld, scratch: &mut RecordScratch) -> bool {
        if let Some(queue) = &self.queue
            && queue.recording_number() != self.recording_number
        {
            self.follow_recording(world);
        }
        let was_changed = world.report_mut().was_changed_from_outside;
        let log_bytes = world.log().map_or(0, |log| log.whole_ticks().len());
        let is_checkpoint_due = self.checkpoints.as_mut().is_some_and(|kept| kept.is_due(world, log_bytes));
        let has_checkpoints = self.checkpoints.is_some();
        let is_wanted = was_changed || is_checkpoint_due;
        let mut due = self.tape.as_mut().map_or(Due::default(), |tape| tape.due(world, log_bytes, is_wanted));
        // What somebody did from outside is in no log, and here no checkpoint comes between that and the hash.
        due.is_hash &= !was_changed || has_checkpoints;
        if let Some(tape) = self.tape.as_mut().filter(|_| due.is_anything) {
            let _in_world = world.enter_world();
            scope!("recording.copy");
            tape.take_ticks(!has_checkpoints);
        }
        if is_checkpoint_due && !self.take_checkpoint(world, &mut scratch.checkpoint, was_changed) {
            return false;
        }
        if let Some(tape) = self.tape.as_mut().filter(|_| due.is_anything) {
            tape.note_tick(world, &mut scratch.parts, due);
        }
        if has_checkpoints {
            return true;
        }
        // Changed from outside, or after a gap, it is another world than what was recorded of it leads to.
        let has_gap = |tape: &SharedTape| due.is_anything && !tape.lock().has_base();
        if was_changed || self.tape.as_ref().is_some_and(has_gap) {
            self.end_tape(EndReason::NotRecorded);
        }
        if self.tape.is_none() {
            world.take_log();
        }
        self.tape.is_some()
    }

    /// False: it cannot be taken.
    fn take_checkpoint(&mut self, world: &mut GameWorld, scratch: &mut Vec<u8>, was_changed: bool) -> bool {
        let Some(checkpoints) = &mut self.checkpoints else { return false };
        let _in_world = world.enter_world();
        scope!("checkpoint.take");
        if let Err(error) = checkpoints.take(world, self.plan.seed, scratch) {
            log_error!(
                RECORDS,
                world = %world.id(),
                kind = &**world.name(),
                error,
                "a world's checkpoint could not be taken: if it panics it begins anew"
            );
            world.take_log();
            self.end_tape(EndReason::NotRecorded);
            return false;
        }
        if let Some(tape) = &mut self.tape {
            tape.note_checkpoint(world, &checkpoints.newest, was_changed);
        }
        true
    }

    /// A recording has begun or ended.
    fn follow_recording(&mut self, world: &GameWorld) {
        self.end_tape(EndReason::NotRecorded);
        let Some(queue) = &self.queue else { return };
        self.recording_number = queue.recording_number();
        if self.recording_number > 0
            && self.checkpoints.is_some()
            && let Some(log) = world.shared_log()
        {
            self.tape = Some(SharedTape::begin(queue, (world, log), &self.plan, false));
        }
    }

    fn end_tape(&mut self, why: EndReason) {
        if let Some(tape) = self.tape.take() {
            tape.lock().end(why);
        }
    }

    /// What is left of a world that panicked; `None` if it is not enough.
    pub fn end(mut self, world: &mut GameWorld) -> Option<LastRecord> {
        self.end_tape(EndReason::Panicked);
        let (log, checkpoints) = (world.take_log()?, self.checkpoints?);
        checkpoints.has_log.then_some(LastRecord { checkpoint: checkpoints.newest, log })
    }
}
