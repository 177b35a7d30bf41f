//! Counts: what became of recordings, for metrics and the console.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use throng_metrics::counters;

use super::queue::RecordingQueue;

/// Counted since the server's start. Written by workers and by the thread, read by whoever asks; only sums matter, so
/// relaxed order is enough: parts themselves go through the queue.
#[derive(Debug, Default)]
pub(crate) struct RecordingCounts {
    /// As they are, not since the start. Written by the thread.
    pub worlds: AtomicU64,
    pub parts: AtomicU64,
    pub parts_lost: AtomicU64,
    pub bytes_lost: AtomicU64,
    pub bytes_written: AtomicU64,
    pub segments: AtomicU64,
    pub segments_dropped: AtomicU64,
    pub write_errors: AtomicU64,
}

/// What they were at one time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordingTotals {
    pub worlds: u64,
    pub parts: u64,
    pub parts_lost: u64,
    pub bytes_lost: u64,
    pub bytes_written: u64,
    pub segments: u64,
    pub segments_dropped: u64,
    pub write_errors: u64,
}

impl RecordingCounts {
    pub fn read(&self) -> RecordingTotals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RecordingTotals {
            worlds: read(&self.worlds),
            parts: read(&self.parts),
            parts_lost: read(&self.parts_lost),
            bytes_lost: read(&self.bytes_lost),
            bytes_written: read(&self.bytes_written),
            segments: read(&self.segments),
            segments_dropped: read(&self.segments_dropped),
            write_errors: read(&self.write_errors),
        }
    }
}

counters! {
    /// What became of recordings.
    pub(crate) struct RecordingFigures {
        Sum parts: "recording.parts", "parts",
            "Parts of worlds that were handed to the recording's thread: one a second of each world that ticks, as a rule.",
            "Follows the worlds that are awake, while a recording is on.";
        Sum parts_lost: "recording.parts_lost", "parts",
            "Parts that found no room in the queue, or none on the disk. Their worlds are recorded again from their next \
             checkpoints on.",
            "Any is a gap: a disk that is full or slow (`recording.write_errors`, the log), or a host without time for threads of \
             low priority. `[recording] queue_mb` helps over short stalls.";
        Sum bytes: "recording.bytes", "bytes",
            "Bytes of recordings that were written.",
            "Follows what players say.";
        Sum segments: "recording.segments", "segments",
            "Segments that were begun.",
            "One each `[recording] segment_s`; more where segments reach their size before.";
        Sum segments_dropped: "recording.segments_dropped", "segments",
            "Segments that went, since all have `[recording] max_mb` at most.",
            "Follows the segments begun once the folder is full.";
        Sum write_errors: "recording.write_errors", "errors",
            "Errors of the disk that recordings go to.",
            "Any is a gap: the log says why. Give the disk room, or a smaller `[recording] max_mb`.";
    }
}

/// Takes what was counted since it was last taken. Owned by the frame's thread.
#[derive(Default)]
pub(crate) struct RecordingCounter(RecordingTotals);

impl RecordingCounter {
    pub fn count_into(&mut self, queue: Option<&Arc<RecordingQueue>>, figures: &mut RecordingFigures) {
        let Some(queue) = queue else { return };
        let now = queue.counts.read();
        let before = mem::replace(&mut self.0, now);
        figures.parts = now.parts - before.parts;
        figures.parts_lost = now.parts_lost - before.parts_lost;
        figures.bytes = now.bytes_written - before.bytes_written;
        figures.segments = now.segments - before.segments;
        figures.segments_dropped = now.segments_dropped - before.segments_dropped;
        figures.write_errors = now.write_errors - before.write_errors;
    }
}
