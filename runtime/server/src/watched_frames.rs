//! Watched frames: what the frame's thread does for those who watch, while somebody does. See [`watch`](crate::watch).

use throng_platform::time::Nanos;
use throng_profiler::scope;

use crate::{report::ServerStatus, server::Server, watch::WatchedSecond};

impl Server {
    /// Notes a frame for those who watch. The frame in which the first one is seen, and that in which the last one is gone,
    /// allocates and frees.
    pub(crate) fn watch_frame(&mut self, length: Nanos) {
        let watch = self.control.published.watched();
        let is_watched = watch.is_watched();
        self.watch_sums.switch(is_watched);
        if is_watched {
            watch.frame(self.frame_number.unwrap_or_default(), length);
        }
    }

    /// Publishes the second that `status` is of, if somebody watches.
    pub(crate) fn publish_watched(&mut self, now: Nanos, seconds: f64, status: &ServerStatus) {
        if !self.watch_sums.is_on() {
            return;
        }
        scope!("watch.publish", budget_us = 5_000, fits_rate = true);
        let (frames, subsystems, kinds) = self.watch_sums.take();
        let second = WatchedSecond {
            at: now,
            seconds,
            workers: self.pool.worker_count(),
            frames,
            status: status.clone(),
            worlds: self.world_rows(now),
            subsystems,
            kinds,
        };
        self.control.published.watched().publish(second);
    }
}
