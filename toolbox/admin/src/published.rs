//! What the pages show of a Throng server: its published metrics, the age of its last frame, and whether its workers get
//! anything done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throng::metrics::{LabelledCounters, PublishedMetrics};
use throng_platform::time::Nanos;

use crate::watch::document::Past;
use crate::watch::{self, ServerWatch, WatchSource};
use crate::{AdminSource, Health, HealthState, MetricsFormat, SavedCapture};

/// Without a frame for this long a server that is not asleep is stuck: frames come every 17 ms, and at least once a
/// second. So it is when no worker has finished a tick for this long: frames go on then, and nobody can play.
const STUCK_AFTER: Nanos = Nanos::from_secs(3);

/// Said to whoever asks for what only a recorder knows.
pub(crate) const NO_RECORDER: &str = "this server records nothing: set [recorder] on = true";

impl AdminSource for PublishedMetrics {
    fn metrics(&self, format: MetricsFormat, counters: Vec<LabelledCounters>) -> Vec<u8> {
        match format {
            MetricsFormat::Text => self.to_prometheus_text(counters).into_bytes(),
            MetricsFormat::Protobuf => self.to_prometheus_protobuf(counters),
        }
    }

    fn health(&self) -> Health {
        let (frame_age, workers_stuck) = (self.frame_age(), self.workers_stuck_for());
        let state = match frame_age {
            _ if self.is_sleeping() => HealthState::Sleeping,
            age if age > STUCK_AFTER || workers_stuck > STUCK_AFTER => HealthState::Stuck,
            _ => HealthState::Running,
        };
        Health {
            state,
            frame_age_ms: frame_age.as_millis_f64(),
            workers_stuck_ms: workers_stuck.as_millis_f64(),
            are_saves_away: self.are_saves_away(),
            are_analytics_away: self.are_analytics_away(),
        }
    }

    fn packets(&self) -> String {
        serde_json::to_string(&self.packets()).expect("rows of plain numbers and texts")
    }

    fn clients(&self) -> String {
        serde_json::to_string(&self.clients()).expect("rows of plain numbers and texts")
    }

    fn counters(&self) -> String {
        serde_json::to_string(&self.counters()).expect("rows of plain numbers and texts")
    }

    fn past(&self) -> Past {
        watch::past(self)
    }

    fn begin_watch(self: Arc<Self>) -> Box<dyn WatchSource> {
        Box::new(ServerWatch::begin(self))
    }

    fn save_capture(&self, note: &str) -> Result<SavedCapture, String> {
        let recorder = self.recorder().ok_or(NO_RECORDER)?;
        let saved = recorder.save_now(note).map_err(|error| error.to_string())?;
        Ok(SavedCapture { path: saved.path.display().to_string(), size_bytes: saved.size_bytes })
    }

    fn captures_folder(&self) -> Option<PathBuf> {
        self.recorder()?.captures_folder().map(Path::to_path_buf)
    }
}
