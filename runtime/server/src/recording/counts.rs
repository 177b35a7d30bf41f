//! Counts: what became of recordings, for metrics and the console.

use std::sync::atomic::{AtomicU64, Ordering};

use throng_metrics::counters;

use super::queue::{RecordingCounts, RecordingQueue};

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
pub(crate) struct RecordingCounter([u64; 6]);

impl RecordingCounter {
    pub fn count_into(&mut self, queue: Option<&std::sync::Arc<RecordingQueue>>, figures: &mut RecordingFigures) {
        let Some(queue) = queue else { return };
        let RecordingCounts {
            worlds: _,
            parts,
            parts_lost,
            bytes_lost: _,
            bytes_written,
            segments,
            segments_dropped,
            write_errors,
        } = &queue.counts;
        let now = [parts, parts_lost, bytes_written, segments, segments_dropped, write_errors].map(read);
        let new: [u64; 6] = std::array::from_fn(|index| now[index] - self.0[index]);
        self.0 = now;
        [
            figures.parts,
            figures.parts_lost,
            figures.bytes,
            figures.segments,
            figures.segments_dropped,
            figures.write_errors,
        ] = new;
    }
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
