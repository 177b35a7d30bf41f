//! Under which name the log has what becomes of events.

use throng_profiler::log_category;

log_category!(pub(crate) ANALYTICS = "server.analytics");
