//! What is counted of events, by cause where they are dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use throng_metrics::counters;

counters! {
    /// What became of a server's analytics events.
    pub struct AnalyticsCounts {
        Sum emitted: "analytics.events", "events",
            "Analytics events that worlds emitted, dropped ones included.",
            "Follows play.";
        Sum dropped_page: "analytics.dropped_page", "events",
            "Events dropped because their thread's page was full: more were emitted than the exporter took.",
            "The exporter starves, or a game emits in bulk. Raise [analytics] queue_kb, or emit less.";
        Sum dropped_malformed: "analytics.dropped_malformed", "events",
            "Events dropped because they could not be read back.",
            "A bug: any is one too many.";
        Sum file_events: "analytics.file_events", "events",
            "Events written into files.",
            "Follows `analytics.events`, where [analytics] folder is set.";
        Sum file_errors: "analytics.file_errors", "errors",
            "Times a file could not be made, written or brought to the disk; tried again after a pause.",
            "The log says why: as a rule the disk is full. Make room.";
        Sum dropped_file: "analytics.dropped_file", "events",
            "Events that are in no file: so many waited while files could not be written.",
            "As `analytics.file_errors`, or a disk that is too slow.";
        Sum removed_files: "analytics.removed_files", "files",
            "Oldest files removed to keep within [analytics] folder_mb.",
            "Fetch them more often, or raise it.";
        Sum posted_events: "analytics.posted_events", "events",
            "Events that the receiver has acknowledged.",
            "Follows `analytics.events`, where [analytics] url is set.";
        Sum post_errors: "analytics.post_errors", "requests",
            "Requests that failed and are sent again after a pause.",
            "The log says why: the receiver is away, slow, or refuses the key. Events wait in the spool meanwhile.";
        Sum spooled_events: "analytics.spooled_events", "events",
            "Events that were put onto the disk because the receiver did not take them.",
            "As `analytics.post_errors`.";
        Sum dropped_refused: "analytics.dropped_refused", "events",
            "Events that the receiver said it will never take (400, 413, 415 or 422).",
            "The receiver does not know their schema, or takes smaller requests: [analytics] post_kb.";
        Sum dropped_post: "analytics.dropped_post", "events",
            "Events that were not posted: so many waited in memory while the spool could not take them.",
            "The disk of the spool is too slow.";
        Sum dropped_spool_full: "analytics.dropped_spool_full", "events",
            "Events that were not posted: the spool was full.",
            "The receiver is away for longer than [analytics] spool_mb holds.";
        Sum dropped_spool_error: "analytics.dropped_spool_error", "events",
            "Events that were not posted: the spool could not be written or read.",
            "The log says why: as a rule the disk is full. Make room.";
    }
}

macro_rules! shared {
    ($($count:ident),* $(,)?) => {
        /// Counts of all threads: added to by whoever counts, read by the frame's thread. Only sums matter, so relaxed
        /// order is enough.
        #[derive(Debug, Default)]
        pub struct SharedCounts {
            $(pub(crate) $count: AtomicU64,)*
            /// Files cannot be written now, or the receiver does not take anything.
            pub(crate) file_is_away: AtomicBool,
            pub(crate) receiver_is_away: AtomicBool,
        }

        impl SharedCounts {
            /// All sums since the start.
            pub fn sums(&self) -> AnalyticsCounts {
                AnalyticsCounts { $($count: self.$count.load(Ordering::Relaxed),)* }
            }
        }

        impl AnalyticsCounts {
            /// By how much these sums grew beyond earlier ones.
            pub fn since(&self, before: &AnalyticsCounts) -> AnalyticsCounts {
                AnalyticsCounts { $($count: self.$count - before.$count,)* }
            }
        }
    };
}

shared!(
    emitted,
    dropped_page,
    dropped_malformed,
    file_events,
    file_errors,
    dropped_file,
    removed_files,
    posted_events,
    post_errors,
    spooled_events,
    dropped_refused,
    dropped_post,
    dropped_spool_full,
    dropped_spool_error,
);

impl SharedCounts {
    /// Some sink takes nothing now: events wait, and are dropped when too many do.
    pub fn is_away(&self) -> bool {
        self.file_is_away.load(Ordering::Relaxed) || self.receiver_is_away.load(Ordering::Relaxed)
    }
}

impl AnalyticsCounts {
    /// Events that some sink will never have, by all causes.
    pub fn dropped(&self) -> u64 {
        self.dropped_page
            + self.dropped_malformed
            + self.dropped_file
            + self.dropped_refused
            + self.dropped_post
            + self.dropped_spool_full
            + self.dropped_spool_error
    }
}

pub(crate) fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
