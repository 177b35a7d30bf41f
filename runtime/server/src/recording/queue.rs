//! Queue: what worlds hand to the recording's thread, and what that tells them.
//!
//! Workers put parts in, one thread takes them out; nobody waits. Both the parts and their bytes have a maximum: what
//! finds no room is lost, counted, and the world it is of is recorded again from its next checkpoint on
//! ([`super::tape`]). Nobody is woken: the thread looks in by itself, so a part costs no system call.
//!
//! Empty buffers come back, so a steady recording allocates nothing.
//!
//! When the process dies, what worlds have not handed over yet is taken from them by another thread ([`LastPart`]).

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError, Weak,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_queue::ArrayQueue;
use throng_world::ids::WorldId;

use super::{blocks::WorldPlan, counts::RecordingCounts};

/// Parts that may wait: of 4,000 worlds, each with one a second, for four seconds.
const PARTS_MAX: usize = 16_384;

/// Empty buffers that are kept, and the largest of these (bytes).
const SPARE_MAX: usize = 2_048;
const SPARE_BYTES_MAX: usize = 256 << 10;

/// What a world hands over.
pub(crate) enum Message {
    /// A world is going to be recorded.
    World(WorldId, Box<WorldPlan>),
    /// Blocks of a world, and their number among the world's.
    Part { world: WorldId, number: u32, bytes: Vec<u8> },
    /// No part of it comes any more.
    Forget(WorldId),
}

/// Who has something of a world that is not handed over yet.
pub(crate) trait LastPart: Send + Sync {
    /// Hands it over, for a process that dies; nothing comes after it. Waits for the world's thread no longer than
    /// [`HELD_FOR_MAX`]: that may be the one which has died.
    fn hand_over_last(&self);
}

/// Where a lock is taken in a process that dies: whoever has it and lives gives it back sooner.
pub(crate) const HELD_FOR_MAX: Duration = Duration::from_millis(10);

/// Takes a lock whose holder may have died.
pub(crate) fn lock_within<T: ?Sized>(lock: &Mutex<T>, within: Duration) -> Option<MutexGuard<'_, T>> {
    const LOOK_EVERY: Duration = Duration::from_millis(1);
    let until = Instant::now() + within;
    loop {
        match lock.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}

/// Shared by all who record. Relaxed order is enough for its numbers: parts themselves go through the queue.
pub(crate) struct RecordingQueue {
    messages: ArrayQueue<Message>,
    spare: ArrayQueue<Vec<u8>>,
    bytes_max: usize,
    waiting_bytes: AtomicUsize,
    /// Which of this server's recordings is on, counted from 1; 0: none. Written by whoever starts and stops one.
    recording_number: AtomicU32,
    /// Counts segments up: each is to have a checkpoint of every world. Written by the thread.
    segment: AtomicU32,
    /// Counts up when parts were lost that nobody can name: every world begins again. Written by the thread.
    breaks: AtomicU32,
    /// The thread is to end when nothing waits.
    is_ending: AtomicBool,
    /// Of all worlds that are recorded, and of some that were. Locked where a world begins to be, and in a process that dies.
    last_parts: Mutex<Vec<Weak<dyn LastPart>>>,
    pub hash_period_s: u32,
    pub counts: RecordingCounts,
}

impl RecordingQueue {
    pub fn new(bytes_max: usize, hash_period_s: u32) -> Self {
        Self {
            messages: ArrayQueue::new(PARTS_MAX),
            spare: ArrayQueue::new(SPARE_MAX),
            bytes_max,
            waiting_bytes: AtomicUsize::new(0),
            recording_number: AtomicU32::new(0),
            segment: AtomicU32::new(1),
            breaks: AtomicU32::new(0),
            is_ending: AtomicBool::new(false),
            last_parts: Mutex::default(),
            hash_period_s,
            counts: RecordingCounts::default(),
        }
    }

    /// Which of this server's recordings is on, counted from 1; 0: none.
    #[inline]
    pub fn recording_number(&self) -> u32 {
        self.recording_number.load(Ordering::Relaxed)
    }

    pub fn set_recording_number(&self, number: u32) {
        self.recording_number.store(number, Ordering::Relaxed);
    }

    pub fn segment(&self) -> u32 {
        self.segment.load(Ordering::Relaxed)
    }

    pub fn begin_segment(&self) {
        self.segment.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub fn breaks(&self) -> u32 {
        self.breaks.load(Ordering::Relaxed)
    }

    pub fn break_all(&self) {
        self.breaks.fetch_add(1, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    pub fn set_running(&self) {
        self.is_ending.store(false, Ordering::Release);
    }

    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Bytes that wait for the thread.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// This one is to be asked for its last part.
    pub fn enter(&self, part: Weak<dyn LastPart>) {
        let mut parts = self.last_parts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.len() == parts.capacity() {
            // Before it grows: worlds come and go.
            parts.retain(|part| part.strong_count() > 0);
        }
        parts.push(part);
    }

    /// Has all worlds hand over what they have, for a process that dies.
    pub fn hand_over_last(&self) {
        let Some(parts) = lock_within(&self.last_parts, HELD_FOR_MAX) else { return };
        parts.iter().filter_map(Weak::upgrade).for_each(|part| part.hand_over_last());
    }

    /// An empty buffer.
    pub fn spare(&self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn give_back(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= SPARE_BYTES_MAX {
            buffer.clear();
            let _ = self.spare.push(buffer);
        }
    }

    /// Says what a world is, or that no part of it comes any more. False: there was no room.
    pub fn push_notice(&self, notice: Message) -> bool {
        self.messages.push(notice).is_ok()
    }

    /// Hands a world's blocks over. False: there was no room, and they are lost.
    pub fn push_part(&self, world: WorldId, number: u32, bytes: Vec<u8>) -> bool {
        let length = bytes.len();
        let before = self.waiting_bytes.fetch_add(length, Ordering::Relaxed);
        // One that is larger than the maximum goes alone.
        let has_room = before == 0 || before + length <= self.bytes_max;
        if has_room && self.messages.push(Message::Part { world, number, bytes }).is_ok() {
            self.counts.parts.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.waiting_bytes.fetch_sub(length, Ordering::Relaxed);
        self.count_lost(1, length);
        false
    }

    pub fn pop(&self) -> Option<Message> {
        let message = self.messages.pop()?;
        self.waiting_bytes.fetch_sub(bytes_of(&message), Ordering::Relaxed);
        Some(message)
    }

    pub fn count_lost(&self, parts: u64, bytes: usize) {
        self.counts.parts_lost.fetch_add(parts, Ordering::Relaxed);
        self.counts.bytes_lost.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

fn bytes_of(message: &Message) -> usize {
    match message {
        Message::Part { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_room_comes_back() {
        let queue = RecordingQueue::new(100, 5);
        let world = WorldId::new(1, 0);
        let push = |length| queue.push_part(world, 0, vec![0; length]);
        assert!(push(60) && push(40));
        assert!(!push(1));
        assert_eq!(queue.counts.bytes_lost.load(Ordering::Relaxed), 1);
        queue.pop();
        assert!(push(60));
        assert_eq!(queue.waiting_bytes(), 100);
        while queue.pop().is_some() {}
        assert!(push(1_000), "what is larger than all goes alone");
        assert!(!push(1));
        assert!(queue.push_notice(Message::Forget(world)), "what has no bytes has room");
        let [parts, lost] = [&queue.counts.parts, &queue.counts.parts_lost].map(|count| count.load(Ordering::Relaxed));
        assert_eq!((parts, lost), (4, 2));
    }
}
