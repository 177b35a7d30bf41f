//! Host rest: a server that sleeps does not look at its host.
//!
//! What tells of the host costs up to 1 % of a core where it is permitted: a heartbeat wakes each core 250 times a second,
//! and the recorder reads 50 times a second who had the cores. That is worth it while ticks may be late. With every world
//! dormant and nobody connected or about to come in, nothing can be late, so both rest (`Heartbeat::rest`,
//! `Recorder::rest`), once it has been so for [`AWAKE_FOR`]. They go on in the frame in
//! which a world is due again, before it ticks. What they would have noted meanwhile is missing and is told as missing: no
//! stall is counted, captures have nobody on the cores, and `host.heartbeats` is 0.
//!
//! Owned by the frame thread, which knows all this anyway. Cost: two comparisons a frame. To go on takes a system call for
//! each core and one for the recorder's reader, once after each sleep.

use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_debug};

use crate::server::Server;

log_category!(HOST = "server.host");

/// So long after the last world fell asleep they still look. Too low → worlds that are woken now and then, to be saved or by
/// messages, have them begin and end all the time; too high → an empty server takes what it need not.
const AWAKE_FOR: Nanos = Nanos::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct HostRest {
    /// Since when nothing can be late; `None` while something can.
    asleep_since: Option<Nanos>,
    rests: bool,
}

impl Server {
    /// Something is due or may be soon: whoever looks at the host does so from now on.
    pub(crate) fn look_at_host(&mut self) {
        self.host_rest.asleep_since = None;
        if self.host_rest.rests {
            self.let_host_rest(false);
        }
    }

    /// Nothing can be late at this moment.
    pub(crate) fn look_at_host_no_longer(&mut self, now: Nanos) {
        let since = *self.host_rest.asleep_since.get_or_insert(now);
        if !self.host_rest.rests && now >= since + AWAKE_FOR {
            self.let_host_rest(true);
        }
    }

    #[cold]
    fn let_host_rest(&mut self, rests: bool) {
        self.host_rest.rests = rests;
        self.heartbeat.iter().for_each(|heartbeat| heartbeat.rest(rests));
        self.recorder.iter_mut().for_each(|recorder| recorder.rest(rests));
        let cores_watched = if rests { 0 } else { self.host_watch.stall_cores() };
        self.metrics.iter_mut().for_each(|metrics| metrics.tell_heartbeats(cores_watched));
        log_debug!(HOST, rests, "no world is awake, so nobody looks at the host; or one is again");
    }
}
