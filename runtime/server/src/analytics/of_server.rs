//! The server's part in analytics: it hands pages over, and ends the exporter when it ends.

use std::time::{Duration, Instant};

use throng_analytics::{AnalyticsCounts, Identity, Page, Sinks, StartError, post_sink::Post, start};
use throng_metrics::Counters;
use throng_platform::random;
use throng_profiler::{log_category, log_info, log_warn};

use super::Analytics;
use crate::{server::Server, settings::AnalyticsSettings};

log_category!(ANALYTICS = "server.analytics");

/// How long sinks are waited for where nobody says until when.
const FINISH_MAX: Duration = Duration::from_secs(20);
/// Sinks have so long at least, however long the saves took: for what only has to be written to the disk.
const FINISH_MIN: Duration = Duration::from_millis(500);
/// How often it tries to hand over the last pages meanwhile.
const LAST_PAGES_PERIOD: Duration = Duration::from_millis(10);

impl Server {
    /// From now on what worlds emit ([`analytics!`](crate::analytics!)) goes into files, and with `post` to a receiver, as the
    /// settings say; with neither, nothing is exported and emitting costs nothing. Once, before the first frame. `server` is
    /// what the settings do not say: who emits.
    ///
    /// # Errors
    /// If a folder cannot be written, or a thread not started.
    pub fn start_analytics(
        &mut self,
        settings: &AnalyticsSettings,
        post: Option<Box<dyn Post>>,
        server: &str,
    ) -> Result<(), StartError> {
        let file = settings.file();
        if settings.url.is_some() && post.is_none() {
            log_warn!(
                ANALYTICS,
                "analytics events are not posted: this program was given nothing that posts to [analytics] url"
            );
        }
        let post = settings.post().zip(post);
        if file.is_none() && post.is_none() {
            return Ok(());
        }
        let identity = Identity {
            server: settings.server.clone().unwrap_or_else(|| server.to_owned()),
            // Not drawn as games draw theirs: what they draw must not depend on it.
            session: random::seed()[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        log_info!(
            ANALYTICS,
            server = %identity.server,
            session = %identity.session,
            folder = file.as_ref().map(|file| file.folder.display().to_string()),
            posted = post.is_some(),
            "analytics events are exported"
        );
        let (frame, exporter) = start(&identity, settings.queue_bytes(), Sinks { file, post })?;
        self.pool.with_workers(|_, worker| *worker.events_mut() = Some(Box::<Page>::default()));
        let counts = frame.counts().clone();
        self.analytics = Some(Analytics { frame, exporter, counts, told: AnalyticsCounts::default() });
        Ok(())
    }

    /// At the frame's end.
    pub(crate) fn hand_over_events(&mut self) {
        let Some(Analytics { frame, .. }) = &mut self.analytics else { return };
        let unix_offset_ms = self.clock.unix_millis() as i64 - (self.clock.now().0 / 1_000_000) as i64;
        self.pool.with_workers(|_, worker| frame.hand_over(worker.events_mut(), unix_offset_ms));
    }

    /// The order to stop has come, and there are frames yet. A request that waits for its answer now has its time-out while
    /// clients are told and worlds are saved.
    pub(crate) fn announce_end_of_analytics(&self) {
        self.analytics.iter().for_each(|analytics| analytics.exporter.announce_end());
    }

    /// After the last frame, as [`Server::run`] does at its end: what was emitted is in files, with the receiver, in the spool,
    /// or counted as dropped. Waits for the sinks, for 20 s at most.
    pub fn end_analytics(&mut self) {
        self.end_analytics_by(Instant::now() + FINISH_MAX);
    }

    /// The same, and waits until then at most, or for `FINISH_MIN` if that is longer.
    pub(crate) fn end_analytics_by(&mut self, end: Instant) {
        let Some(mut analytics) = self.analytics.take() else { return };
        let end = end.max(Instant::now() + FINISH_MIN);
        let unix_offset_ms = self.clock.unix_millis() as i64 - (self.clock.now().0 / 1_000_000) as i64;
        while Instant::now() < end {
            let mut is_empty = true;
            self.pool.with_workers(|_, worker| {
                analytics.frame.hand_over(worker.events_mut(), unix_offset_ms);
                is_empty &= worker.events_mut().as_ref().is_none_or(|page| page.is_empty());
            });
            if is_empty {
                break;
            }
            std::thread::sleep(LAST_PAGES_PERIOD);
        }
        let Analytics { exporter, counts, told, .. } = analytics;
        exporter.finish(end.saturating_duration_since(Instant::now()));
        let last = counts.sums().since(&told);
        self.totals.analytics.merge(&last);
        let AnalyticsCounts { emitted, file_events, posted_events, spooled_events, .. } = counts.sums();
        let dropped = counts.sums().dropped();
        log_info!(
            ANALYTICS,
            emitted,
            file_events,
            posted_events,
            spooled_events,
            dropped,
            "analytics events were exported"
        );
    }
}
