//! Tape: what one world puts into a recording.
//!
//! After each tick of the world, on the worker that has it: what entered that tick, as its input log has it, goes into the
//! tape's buffer, and about once a second the buffer goes to the recording's thread. A world can be replayed from a point at
//! which its state is known: as it was built, or a checkpoint. Checkpoints are those that are taken anyway
//! ([`crate::world_record`]): one for each segment, so that segments can be dropped; and one where the recording of the
//! world begins, after a gap, and after an operator has changed the world by a command, which is in no log. Without such a
//! point nothing is written: it could not be replayed.
//!
//! A process that dies takes the buffer with it, and the tick that it died in. So a tape is shared with the thread that writes a
//! death down, which hands over both ([`LastPart`]): what is on the disk then ends with the tick that ended the process.
//!
//! Cost: a copy of what the input log has, 2 to 5 ns a byte with the queue, and another of each tick before its systems run
//! (`input_log::TickUnderWay`); every `hash_period_s` a hash of the state, about 60 ns for each component that counts.
//! Allocates until buffers have their size.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use throng_profiler::scope;
use throng_replication::StateParts;
use throng_world::{GameWorld, input_log::TickUnderWay};

use super::{
    blocks::{self, CheckpointReason, EndReason, WorldPlan},
    queue::{HELD_FOR_MAX, LastPart, Message, RecordingQueue, lock_within},
};
use crate::lifecycle::NewWorld;

/// A buffer that has so much goes to the thread before its time (bytes).
const PART_BYTES: usize = 64 << 10;

/// A tape, as its world has it. Locked after each tick, and by another thread when the process dies.
pub(crate) struct SharedTape(Arc<Mutex<Tape>>);

impl SharedTape {
    /// See [`Tape::begin`].
    pub fn begin(queue: &Arc<RecordingQueue>, world: &mut GameWorld, plan: &NewWorld, is_as_built: bool) -> Self {
        let tape = Arc::new(Mutex::new(Tape::begin(queue, world, plan, is_as_built)));
        let last: Arc<dyn LastPart> = tape.clone();
        queue.enter(Arc::downgrade(&last));
        Self(tape)
    }

    pub fn lock(&self) -> MutexGuard<'_, Tape> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastPart for Mutex<Tape> {
    fn hand_over_last(&self) {
        if let Some(mut tape) = lock_within(self, HELD_FOR_MAX) {
            tape.hand_over_last();
        }
    }
}

/// What one world puts into one recording.
pub(crate) struct Tape {
    queue: Arc<RecordingQueue>,
    breaks: u32,
    world: throng_world::ids::WorldId,
    plan: WorldPlan,
    /// The thread knows the plan.
    is_known: bool,
    /// Of the next part.
    number: u32,
    buffer: Vec<u8>,
    /// Where the block of ticks begins that is being written.
    ticks_begin: Option<usize>,
    /// How much of the world's log is in the recording.
    log_at: usize,
    /// What is written can be replayed: it follows on from a known state.
    has_base: bool,
    /// Ticks done up to which it is recorded, where there is a gap since.
    recorded_until: Option<u32>,
    /// The segment that has a checkpoint of the world.
    checkpoint_segment: u32,
    /// Seconds and hash periods that were over, by the world's own time.
    second: u32,
    hash_turn: u32,
    /// The tick that the world is in.
    under_way: Arc<TickUnderWay>,
    /// Its last part was taken by another thread.
    is_over: bool,
}

impl Tape {
    /// The tape of a world that is on this recording from now on. `is_as_built`: it has not ticked, and is as its kind makes
    /// it.
    fn begin(queue: &Arc<RecordingQueue>, world: &mut GameWorld, plan: &NewWorld, is_as_built: bool) -> Self {
        let under_way = Arc::new(TickUnderWay::default());
        world.show_ticks(Some(under_way.clone()));
        let rate = u32::from(world.rate().0);
        let mut tape = Self {
            queue: queue.clone(),
            breaks: queue.breaks(),
            world: world.id(),
            plan: WorldPlan {
                kind: world.name().to_string(),
                rate_hz: world.rate().0,
                seed: plan.seed,
                parameters: plan.parameters.clone(),
                is_saved: world.is_saved(),
                saves_world: plan.save_id().is_some(),
            },
            is_known: false,
            number: 0,
            buffer: queue.spare(),
            ticks_begin: None,
            log_at: world.log().map_or(0, |log| log.whole_ticks().len()),
            has_base: is_as_built,
            recorded_until: None,
            checkpoint_segment: if is_as_built { queue.segment() } else { 0 },
            second: turn_of(world) / rate,
            hash_turn: turn_of(world) / hash_period_ticks(queue, world),
            under_way,
            is_over: false,
        };
        if is_as_built {
            blocks::write_built(&mut tape.buffer);
        }
        tape
    }

    /// Whether what is written now can be replayed.
    pub fn has_base(&self) -> bool {
        self.has_base
    }

    /// Takes what has entered the world since the last call. `takes_log`: nobody else wants the log, and it is emptied.
    pub fn take_ticks(&mut self, world: &mut GameWorld, takes_log: bool) {
        if self.is_over {
            return;
        }
        if self.breaks != self.queue.breaks() {
            self.breaks = self.queue.breaks();
            self.lose_base(world.ticks());
        }
        if self.has_base {
            let begin = *self.ticks_begin.get_or_insert_with(|| blocks::begin_ticks(&mut self.buffer));
            debug_assert!(begin < self.buffer.len());
            if let Some(log) = world.log() {
                self.buffer.extend_from_slice(&log.whole_ticks()[self.log_at..]);
            }
        }
        if takes_log {
            world.forget_logged();
        }
        self.log_at = world.log().map_or(0, |log| log.whole_ticks().len());
        self.under_way.clear();
    }

    /// After [`take_ticks`](Self::take_ticks), unless the world was changed from outside: writes a hash if it is time, and
    /// hands the buffer over if it is time for that.
    pub fn note_tick(&mut self, world: &mut GameWorld, parts: &mut StateParts) {
        if self.is_over {
            return;
        }
        if self.has_base {
            let turn = turn_of(world) / hash_period_ticks(&self.queue, world);
            if mem::replace(&mut self.hash_turn, turn) != turn {
                self.write_hash(world, parts);
            }
        }
        let second = turn_of(world) / u32::from(world.rate().0);
        let is_over = mem::replace(&mut self.second, second) != second;
        if is_over || self.buffer.len() >= PART_BYTES {
            self.flush(world.ticks());
        }
    }

    /// A checkpoint of the world as it is now was taken, and its log begins anew.
    pub fn note_checkpoint(&mut self, world: &GameWorld, checkpoint: &[u8], was_changed: bool) {
        if self.is_over {
            return;
        }
        self.log_at = world.log().map_or(0, |log| log.whole_ticks().len());
        let segment = self.queue.segment();
        let why = match (self.has_base, was_changed) {
            (false, _) => CheckpointReason::Begin { after: self.recorded_until.take() },
            (true, true) => CheckpointReason::Changed,
            (true, false) if segment != self.checkpoint_segment => CheckpointReason::Regular,
            (true, false) => return,
        };
        self.end_ticks();
        blocks::write_checkpoint(why, world.ticks(), checkpoint, &mut self.buffer);
        (self.has_base, self.checkpoint_segment) = (true, segment);
        self.flush(world.ticks());
    }

    /// Hands over what there is, with the tick that the world is in: the process dies, and nothing comes after it.
    fn hand_over_last(&mut self) {
        let mut tick = Vec::new();
        if self.has_base && self.breaks == self.queue.breaks() {
            if self.under_way.append_to(&mut tick) {
                self.ticks_begin.get_or_insert_with(|| blocks::begin_ticks(&mut self.buffer));
                self.buffer.extend_from_slice(&tick);
            }
            self.flush(0);
        }
        self.is_over = true;
    }

    /// Its last part, and `why` there is no more.
    pub fn end(&mut self, why: EndReason) {
        if self.is_over {
            return;
        }
        if mem::take(&mut self.has_base) || self.is_known {
            self.end_ticks();
            blocks::write_ended(why, &mut self.buffer);
            self.flush(0);
            self.queue.push(Message::Forget(self.world));
            self.is_known = false;
        }
    }

    fn write_hash(&mut self, world: &mut GameWorld, parts: &mut StateParts) {
        let _in_world = world.enter_world();
        scope!("recording.hash");
        self.end_ticks();
        let (whole, random) = world.hash_in_parts(parts);
        let entities = parts.of_entities().map(|(entity, hash)| (entity.index_u32(), hash));
        blocks::write_hash((world.ticks(), whole, random), &parts.columns, entities, &mut self.buffer);
    }

    fn end_ticks(&mut self) {
        if let Some(begin) = self.ticks_begin.take() {
            blocks::end_block(begin, &mut self.buffer);
        }
    }

    /// Hands over what there is. `ticks`: done by the world.
    fn flush(&mut self, ticks: u32) {
        self.end_ticks();
        if self.buffer.is_empty() {
            return;
        }
        scope!("recording.hand_over");
        self.is_known = self.is_known || self.queue.push(Message::World(self.world, Box::new(self.plan.clone())));
        let bytes = mem::replace(&mut self.buffer, self.queue.spare());
        let number = self.number;
        self.number = self.number.wrapping_add(1);
        if !self.is_known || !self.queue.push(Message::Part { world: self.world, number, bytes }) {
            self.lose_base(ticks);
        }
    }

    /// What comes now does not follow from what is recorded, until there is another checkpoint.
    fn lose_base(&mut self, ticks: u32) {
        self.buffer.clear();
        self.ticks_begin = None;
        if mem::take(&mut self.has_base) {
            self.recorded_until = Some(ticks);
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.end(EndReason::Ended);
    }
}

fn hash_period_ticks(queue: &RecordingQueue, world: &GameWorld) -> u32 {
    (queue.hash_period_s * u32::from(world.rate().0)).max(1)
}

/// Where it is in its periods: neighbours in the table are far apart. A world that rests leaves out ticks.
pub(crate) fn turn_of(world: &GameWorld) -> u32 {
    world.ticks().wrapping_add(world.id().number().wrapping_mul(0x9E37_79B9))
}
