//! Frame clock: each frame begins at its own time, however long the one before took, and is read as the host's clock is.
//!
//! A server that waits for its next frame would measure nothing more, and one whose clock stands still would read the
//! time for nothing and take all worlds to cost the same. So time goes on within a frame, and stops before the next one:
//! a host that stalls makes no tick late, and every run of a scene is the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use throng_platform::clock::{Clock, MonotonicClock};
use throng_platform::time::Nanos;

use crate::handshake::UNIX_S;

/// As far as a frame's time goes: a little less than a frame of 60 Hz.
const FRAME_SHOWN_MAX: Nanos = Nanos::from_millis(16);

/// Clones show the same time.
#[derive(Clone)]
pub struct FrameClock {
    host: MonotonicClock,
    /// The server's time when the frame began, and the host's. Written between two frames, when nobody else reads: so
    /// relaxed order is enough.
    begin: Arc<[AtomicU64; 2]>,
}

impl FrameClock {
    /// Stands at the beginning of the first frame.
    pub fn new() -> Self {
        Self { host: MonotonicClock::new(), begin: Arc::default() }
    }

    /// Begins the frame whose time is `at`.
    pub fn begin_frame(&self, at: Nanos) {
        self.begin[0].store(at.0, Ordering::Relaxed);
        self.begin[1].store(self.host.now().0, Ordering::Relaxed);
    }
}

impl Clock for FrameClock {
    fn now(&self) -> Nanos {
        let [begin, host_begin] = [0, 1].map(|index| Nanos(self.begin[index].load(Ordering::Relaxed)));
        begin + self.host.now().saturating_sub(host_begin).min(FRAME_SHOWN_MAX)
    }

    fn unix_seconds(&self) -> u64 {
        UNIX_S + self.now().0 / 1_000_000_000
    }

    /// The driver decides when frames begin.
    fn sleep_until(&self, _at: Nanos) {}
}
