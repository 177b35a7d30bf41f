//! Watch: what is gathered for those who look at a running server, for as long as somebody does.
//!
//! A [`Watcher`] is somebody who looks, which [`PublishedMetrics::watch`] begins. While there is one, the frame's thread writes down how long each frame took, adds
//! up what each subsystem took in each kind of world, and publishes a [`WatchedSecond`] once a second. Without one it
//! reads a number once a frame, and keeps a few figures of each second (`past`) for who comes later.
//!
//! ```text
//!   frame's thread                                                  watcher's thread
//!   each frame    length --> ring of 1,024 frames -----------------> Watcher::frames
//!                 sums by subsystem and kind (`sums`) --+
//!   each second   status, worlds ----------------------> Latest ---> Watcher::second
//!    watched or not   some of the status --> ring of 300 seconds --> PublishedMetrics::past_seconds
//! ```
//!
//! Cost with a watcher: some 0.3 us a frame, and once a second 30 ns for each world and player and the copies of the
//! status. How many watch does not matter.
//!
//! [`PublishedMetrics::watch`]: crate::metrics::PublishedMetrics::watch

mod past;
mod ring;
mod sums;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use throng_platform::time::Nanos;

use past::Past;
pub use past::{HOST_FIGURES_KEPT, PastSecond, SECONDS_KEPT};
use ring::Ring;
pub(crate) use sums::WatchSums;
pub use sums::{KindSecond, SubsystemSecond, TakenInKind};

use crate::{latest::Latest, report::ServerStatus, world_row::WorldRow};

/// Frames that a watcher may be late by: eight seconds at 128 Hz. What is older is lost to it, and counted.
const FRAMES_KEPT: usize = 1024;

/// A frame's number has the upper bits of a word, its length the lower ones: up to 16.7 s (us).
const LENGTH_BITS: u32 = 24;
const LENGTH_US_MAX: u64 = (1 << LENGTH_BITS) - 1;

/// Between the frame's thread and those who watch.
pub(crate) struct Watch {
    /// How many watch. Written by them, read by the frame's thread once a frame: a frame more or less on either side
    /// does no harm, so relaxed order is enough.
    watchers: AtomicU32,
    /// The last frames. Written by the frame's thread alone, and only while somebody watches.
    frames: Ring<1>,
    second: Latest<Option<Arc<WatchedSecond>>>,
    /// Written by the frame's thread alone, once a second; read by the admin thread when a stream begins.
    past: Past,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            watchers: AtomicU32::default(),
            frames: Ring::new(FRAMES_KEPT),
            second: Latest::default(),
            past: Past::default(),
        }
    }
}

/// What was gathered in a second.
#[derive(Debug, Clone)]
pub struct WatchedSecond {
    /// When, by the server's clock.
    pub at: Nanos,
    /// How long it was (s).
    pub seconds: f64,
    pub workers: usize,
    /// Frames that the sums are of; none without a recorder.
    pub frames: u64,
    pub status: ServerStatus,
    /// All worlds, by id.
    pub worlds: Vec<WorldRow>,
    /// All subsystems that have been met, in the order of their numbers; none without a recorder.
    pub subsystems: Vec<SubsystemSecond>,
    /// Kinds of worlds of which ticks ended.
    pub kinds: Vec<KindSecond>,
}

/// Somebody who looks at a server. What is gathered for him alone ends when this is dropped.
pub struct Watcher {
    watch: Arc<Watch>,
    /// The first frame that was not told yet, as they are counted in the ring.
    next: u64,
    /// When the last second was over that was told; at first, when this watcher came.
    seen: Nanos,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watch.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Watcher {
    /// Somebody who looks from now on.
    pub(crate) fn begin(watch: Arc<Watch>, now: Nanos) -> Self {
        watch.watchers.fetch_add(1, Ordering::Relaxed);
        Self { next: watch.frames.written(), watch, seen: now }
    }

    /// Tells number and length (us, up to 16.7 s) of each frame that has ended since the last call. Returns how many are
    /// lost to this watcher, who came too late.
    pub fn frames(&mut self, mut tell: impl FnMut(u64, u32)) -> u64 {
        let (frames, first) = self.watch.frames.read(self.next);
        for &[word] in &frames {
            tell(word >> LENGTH_BITS, (word & LENGTH_US_MAX) as u32);
        }
        let lost = first - self.next;
        self.next = first + frames.len() as u64;
        lost
    }

    /// The second that was published last, once: `None` until there is another one.
    pub fn second(&mut self) -> Option<Arc<WatchedSecond>> {
        let second = self.watch.second.read();
        let second = (*second).as_ref().filter(|second| second.at > self.seen)?;
        self.seen = second.at;
        Some(second.clone())
    }
}

impl Watch {
    pub fn is_watched(&self) -> bool {
        self.watchers_count() > 0
    }

    pub fn watchers_count(&self) -> usize {
        self.watchers.load(Ordering::Relaxed) as usize
    }

    pub fn publish(&self, second: WatchedSecond) {
        self.second.publish(Some(Arc::new(second)));
    }

    /// Writes a frame down. On the frame's thread.
    pub fn frame(&self, number: u64, length: Nanos) {
        self.frames.write([number << LENGTH_BITS | length.as_micros().min(LENGTH_US_MAX)]);
    }

    /// Keeps a second for who comes later. On the frame's thread.
    pub fn keep_second(&self, second: PastSecond) {
        self.past.keep(second);
    }

    pub fn past_seconds(&self) -> Vec<PastSecond> {
        self.past.seconds()
    }
}

#[cfg(test)]
mod tests;
