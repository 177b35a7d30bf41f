//! Timeline: the numbered frames of a running server, and when each begins.

use throng_platform::time::Nanos;
use throng_scheduler::FrameGrid;

/// The frame grid, laid down at the time when the server began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    pub begin: Nanos,
    pub grid: FrameGrid,
}

impl Timeline {
    pub fn start_of(&self, frame: u64) -> Nanos {
        self.begin + self.grid.start_of(frame)
    }

    /// The frame that has begun last at `now`.
    pub fn frame_at(&self, now: Nanos) -> u64 {
        self.grid.frame_at(now.saturating_sub(self.begin))
    }
}
