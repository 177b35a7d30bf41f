//! Tape: what one world puts into a recording.
//!
//! About once a second of the world's time, on the worker that has it: what entered its ticks since, as its input log has it, goes
//! into the tape's buffer, and the buffer to the recording's thread. A world can be replayed from a point at
//! which its state is known: as it was built, or a checkpoint. Checkpoints are those that are taken anyway
//! ([`crate::world_record`]): one for each segment, so that segments can be dropped; and one where the recording of the
//! world begins, after a gap, and after an operator has changed the world by a command, which is in no log. Without such a
//! point nothing is written: it could not be replayed.
//!
//! A process that dies takes its logs with it, and the ticks that it died in. So a tape and its world's log are shared with the thread
//! that writes a death down, which hands over what is in both ([`LastPart`]): what is on the disk then ends with the tick that ended the
//! process. The tape's lock is taken before the log's.
//!
//! Cost: in most ticks the question whether anything is due, which looks at the world's record and how long its log is; then a copy of what the input
//! log has, 2 to 5 ns a byte with the queue; every `hash_period_s` a hash of the state, about 60 ns for each component that counts. A
//! thousand worlds find nothing of theirs in the processor's caches, so what each touches in each tick counts: 0.1 µs a line.
//! Allocates until buffers have their size.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use throng_profiler::scope;
use throng_replication::StateParts;
use throng_world::{GameWorld, input_log::SharedInputLog};

use super::{
    blocks::{self, CheckpointReason, EndReason, WorldPlan},
    queue::{HELD_FOR_MAX, LastPart, Message, RecordingQueue, lock_within},
};
use crate::lifecycle::NewWorld;

/// A buffer that has so much goes to the thread before its time (bytes).
const PART_BYTES: usize = 64 << 10;

/// A tape, as its world has it: locked when something is due, and by another thread when the process dies.
pub(crate) struct SharedTape {
    tape: Arc<Mutex<Tape>>,
    hash_period_ticks: u32,
    /// Seconds that were over, by the world's own time, and hash periods when it was hashed last: one that is over while there is no
    /// state from which the world can be replayed is caught up on.
    second: u32,
    hash_turn: u32,
    /// How much of the world's log is in the recording, as the tape has it.
    log_at: usize,
}

/// What a tape has to do after a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// What has entered the world is to be taken.
    pub is_anything: bool,
    pub is_hash: bool,
    is_part: bool,
}

impl SharedTape {
    /// See [`Tape::begin`].
    pub fn begin(
        queue: &Arc<RecordingQueue>,
        (world, log): (&GameWorld, SharedInputLog),
        plan: &NewWorld,
        is_as_built: bool,
    ) -> Self {
        let tape = Tape::begin(queue, (world, log), plan, is_as_built);
        let hash_period_ticks = (queue.hash_period_s * u32::from(world.rate().0)).max(1);
        let turn = turn_of(world);
        let (second, hash_turn) = (turn / u32::from(world.rate().0), turn / hash_period_ticks);
        let log_at = tape.log_at;
        let tape = Arc::new(Mutex::new(tape));
        let last: Arc<dyn LastPart> = tape.clone();
        queue.enter(Arc::downgrade(&last));
        Self { tape, hash_period_ticks, second, hash_turn, log_at }
    }

    /// What is due now that the world has ticked. `log_bytes`: of its log; `is_wanted`: what has entered is to be taken in any case.
    pub fn due(&mut self, world: &GameWorld, log_bytes: usize, is_wanted: bool) -> Due {
        let turn = turn_of(world);
        let second = turn / u32::from(world.rate().0);
        let is_hash = turn / self.hash_period_ticks != self.hash_turn;
        let is_full = log_bytes.saturating_sub(self.log_at) >= PART_BYTES;
        let is_part = mem::replace(&mut self.second, second) != second || is_full;
        Due { is_anything: is_wanted || is_hash || is_part, is_hash, is_part }
    }

    /// See [`Tape::take_ticks`].
    pub fn take_ticks(&mut self, takes_log: bool) {
        let log_at = {
            let mut tape = self.lock();
            tape.take_ticks(takes_log);
            tape.log_at
        };
        self.log_at = log_at;
    }

    /// See [`Tape::note_checkpoint`].
    pub fn note_checkpoint(&mut self, world: &GameWorld, checkpoint: &[u8], was_changed: bool) {
        let log_at = {
            let mut tape = self.lock();
            tape.note_checkpoint(world, checkpoint, was_changed);
            tape.log_at
        };
        self.log_at = log_at;
    }

    /// See [`Tape::note_tick`].
    pub fn note_tick(&mut self, world: &mut GameWorld, hash_parts: &mut StateParts, due: Due) {
        let was_hashed = self.lock().note_tick(world, hash_parts, due);
        if was_hashed {
            self.hash_turn = turn_of(world) / self.hash_period_ticks;
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// The world's log, how often it was begun anew when it was looked at last, and how much of it is in the recording.
    log: SharedInputLog,
    log_restarts: u32,
    log_at: usize,
    /// What is written can be replayed: it follows on from a known state.
    has_base: bool,
    /// Ticks done up to which it is recorded, where there is a gap since.
    recorded_until: Option<u32>,
    /// Ticks done when it was handed over last; where it began, before that.
    handed_until: u32,
    /// The segment that has a checkpoint of the world.
    checkpoint_segment: u32,
    /// Its last part was taken by another thread.
    is_closed: bool,
}

impl Tape {
    /// The tape of a world with this log that is on this recording from now on. `is_as_built`: it has not ticked, and is as its kind
    /// makes it.
    fn begin(
        queue: &Arc<RecordingQueue>,
        (world, log): (&GameWorld, SharedInputLog),
        plan: &NewWorld,
        is_as_built: bool,
    ) -> Self {
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
            log,
            log_restarts: 0,
            log_at: 0,
            has_base: is_as_built,
            recorded_until: None,
            handed_until: world.ticks(),
            checkpoint_segment: if is_as_built { queue.segment() } else { 0 },
            is_closed: false,
        };
        tape.leave_logged();
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
    pub fn take_ticks(&mut self, takes_log: bool) {
        if self.is_closed {
            return;
        }
        if self.breaks != self.queue.breaks() {
            self.breaks = self.queue.breaks();
            self.lose_base();
        }
        self.take_logged(takes_log);
    }

    /// Takes whole ticks from the log, for as long as they follow on from a known state.
    fn take_logged(&mut self, takes_log: bool) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let new = log.whole_ticks().get(self.log_at..).filter(|ticks| !ticks.is_empty() && self.has_base);
        if let Some(new) = new {
            self.ticks_begin.get_or_insert_with(|| blocks::begin_ticks(&mut self.buffer));
            self.buffer.extend_from_slice(new);
        }
        if takes_log {
            log.forget();
        }
        (self.log_restarts, self.log_at) = (log.restarts(), log.whole_ticks().len());
    }

    /// All that the log has is in the recording, or is not to be.
    fn leave_logged(&mut self) {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        (self.log_restarts, self.log_at) = (log.restarts(), log.whole_ticks().len());
    }

    /// After [`take_ticks`](Self::take_ticks), and after a checkpoint if there was one: writes a hash and hands the buffer over where that
    /// is due. Whether a hash was written.
    fn note_tick(&mut self, world: &mut GameWorld, hash_parts: &mut StateParts, due: Due) -> bool {
        if self.is_closed {
            return false;
        }
        let is_hashed = self.has_base && due.is_hash;
        if is_hashed {
            self.write_hash(world, hash_parts);
        }
        if due.is_part || self.buffer.len() >= PART_BYTES {
            self.flush(world.ticks());
        }
        is_hashed
    }

    /// A checkpoint of the world as it is now was taken, and its log begins anew.
    pub fn note_checkpoint(&mut self, world: &GameWorld, checkpoint: &[u8], was_changed: bool) {
        if self.is_closed {
            return;
        }
        self.leave_logged();
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
        if self.has_base && self.breaks == self.queue.breaks() {
            self.take_last_ticks();
            self.flush(0);
        }
        self.is_closed = true;
    }

    /// Takes what the log has, and the tick that is under way. A log that was begun anew meanwhile has none that the tape has not; and of one
    /// whose thread has stopped while it wrote there nothing is known.
    fn take_last_ticks(&mut self) {
        let Some(log) = lock_within(&self.log, HELD_FOR_MAX) else { return };
        let last = [log.whole_ticks().get(self.log_at..).unwrap_or_default(), log.tick_under_way().unwrap_or_default()];
        if log.restarts() == self.log_restarts && last.iter().any(|ticks| !ticks.is_empty()) {
            self.ticks_begin.get_or_insert_with(|| blocks::begin_ticks(&mut self.buffer));
            last.iter().for_each(|ticks| self.buffer.extend_from_slice(ticks));
        }
    }

    /// Its last part, and `why` there is no more.
    pub fn end(&mut self, why: EndReason) {
        if self.is_closed {
            return;
        }
        if self.breaks == self.queue.breaks() {
            self.take_logged(false);
        }
        if mem::take(&mut self.has_base) || self.is_known {
            self.end_ticks();
            blocks::write_ended(why, &mut self.buffer);
            self.flush(0);
            self.queue.push_notice(Message::Forget(self.world));
            self.is_known = false;
        }
    }

    fn write_hash(&mut self, world: &mut GameWorld, hash_parts: &mut StateParts) {
        let _in_world = world.enter_world();
        scope!("recording.hash");
        self.end_ticks();
        let (whole, random) = world.hash_in_parts(hash_parts);
        let entities = hash_parts.of_entities().map(|(entity, hash)| (entity.index_u32(), hash));
        blocks::write_hash((world.ticks(), whole, random), &hash_parts.columns, entities, &mut self.buffer);
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
        self.is_known =
            self.is_known || self.queue.push_notice(Message::World(self.world, Box::new(self.plan.clone())));
        let bytes = mem::replace(&mut self.buffer, self.queue.spare());
        let number = self.number;
        self.number = self.number.wrapping_add(1);
        let is_handed = if self.is_known {
            self.queue.push_part(self.world, number, bytes)
        } else {
            self.queue.count_lost(1, bytes.len());
            self.queue.give_back(bytes);
            false
        };
        if is_handed {
            self.handed_until = ticks;
        } else {
            self.lose_base();
        }
    }

    /// What comes now does not follow from what is recorded, until there is another checkpoint.
    fn lose_base(&mut self) {
        self.buffer.clear();
        self.ticks_begin = None;
        if mem::take(&mut self.has_base) {
            self.recorded_until = Some(self.handed_until);
        }
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.end(EndReason::Ended);
    }
}

/// Where it is in its periods: neighbours in the table are far apart. A world that rests leaves out ticks.
pub(crate) fn turn_of(world: &GameWorld) -> u32 {
    world.ticks().wrapping_add(world.id().number().wrapping_mul(0x9E37_79B9))
}
