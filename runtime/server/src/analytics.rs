//! Analytics: what games emit about their play is exported, as `[analytics]` of the settings says.
//!
//! A worker has a page that the ticks of its worlds write into; at each frame's end the frame's thread hands pages over
//! to the exporter, whose threads have a low priority (`throng_analytics`). Cost: one look at each worker a frame, and
//! nothing in a server that exports nothing. `docs/guide/analytics.md` says how a game emits.

mod of_server;

use std::sync::Arc;

use throng_analytics::{Exporter, FrameEvents, SharedCounts};

pub use throng_analytics::{
    AnalyticsCounts, AnalyticsEvent, Identity, Kind, StartError, Text, field,
    file_sink::FileSettings,
    post_sink::{Post, PostError, PostSettings},
    read,
};

/// What the frame's thread has of it.
pub(crate) struct Analytics {
    frame: FrameEvents,
    exporter: Exporter,
    counts: Arc<SharedCounts>,
    told: AnalyticsCounts,
}

impl Analytics {
    /// What was counted since this was last asked.
    pub fn take_counts(&mut self) -> AnalyticsCounts {
        let sums = self.counts.sums();
        let before = std::mem::replace(&mut self.told, sums);
        sums.since(&before)
    }

    pub fn is_away(&self) -> bool {
        self.counts.is_away()
    }
}
