//! The server's loop: frames, one after the other, until somebody says stop; sleep between them; and the way out.
//!
//! With every world dormant nothing is due, and the thread sleeps in the kernel until a packet comes; with worlds that rest,
//! until a packet comes or the first of them is due again. With every world dormant and nobody there, nobody looks at the host
//! either (`host_rest`). On the thread that calls [`Server::run`], which is the frame's from then on.

use std::time::{Duration, Instant};

use throng_platform::{signals::StopFlag, threads::shorten_slice, time::Nanos};
use throng_profiler::{log_category, log_debug, scope};

use crate::{
    report::{ServerReport, ServerStatus},
    server::{Server, ServerError},
    watchdog::Watchdog,
    world_slot::WorldSlot,
};

log_category!(HOST = "server.host");

/// How long a server that was told to stop goes on ticking so that its clients hear of it.
const DRAIN_MAX: Nanos = Nanos::from_millis(1500);

/// A server that was told to stop is gone by then, whatever does not answer: 15 s are promised (R36), and a second is for the
/// program around it. Whoever exports has what the drain and the flush leave of it. Beside more than a thousand worlds a store that
/// stands still may have 10 s for each thousand.
const ENDS_WITHIN: Duration = Duration::from_secs(14);

/// With nothing due, the frame thread looks up this often all the same, to publish metrics and to time out handshakes.
const IDLE_WAKE_PERIOD: Nanos = Nanos::from_secs(1);

/// A wait that may be so long counts as sleep.
const SLEEP_MIN: Nanos = Nanos::from_millis(100);

impl Server {
    /// Runs frames until `stop`, `ServerControl::stop` or SIGTERM; then tells the clients and returns the report.
    /// The calling thread keeps the short slice of a frame's thread afterwards ([`shorten_slice`]).
    pub fn run(
        &mut self,
        stop: &StopFlag,
        on_status: &mut dyn FnMut(&ServerStatus),
    ) -> Result<ServerReport, ServerError> {
        self.prepare(self.clock.now())?;
        shorten_slice();
        let mut frame = 0;
        while !stop.requested() && !self.control.is_stopping() {
            self.frame(frame);
            if let Some(status) = self.status_if_due(self.timeline.start_of(frame)) {
                on_status(&status);
            }
            frame = self.sleep_until_next_frame(frame);
        }
        let ends_by = Instant::now() + ENDS_WITHIN;
        self.ends_by = Some(ends_by);
        self.announce_end_of_analytics();
        let mut frame = self.drain(frame);
        let saves_missing = !self.flush_saves(&mut frame);
        self.end_recording();
        self.end_analytics_by(ends_by);
        Ok(ServerReport { saves_missing, ..self.report() })
    }

    /// Until when the program may wait for what it exports itself, after [`Server::run`]. `None` before the server was told to
    /// stop.
    pub fn ends_by(&self) -> Option<Instant> {
        self.ends_by
    }

    /// Sleeps until the next frame that has something to do, and returns its number. With every world dormant the
    /// thread waits for packets. When frames are late, the newest one that has begun is next: those between are lost,
    /// their ticks are not.
    ///
    /// A frame is never returned before it has begun: strangers' packets may wake the thread as often as they like, and
    /// time still passes at its own rate.
    fn sleep_until_next_frame(&mut self, frame: u64) -> u64 {
        scope!("idle.next_frame");
        // Nor may a frame be left out while a world is being made or ended, or somebody waits to come in.
        let someone_away = self.maker.outstanding() > 0
            || !self.ending.is_empty()
            || !self.asked_by_worlds.is_empty()
            || !self.stranded.is_empty()
            || self.long_tasks.of_worlds.is_waiting()
            || self.addresses.has_waiting()
            || self.saves.as_ref().is_some_and(|saves| !saves.is_settled())
            || self.worlds.iter().any(WorldSlot::is_away);
        let mut next_due = self.worlds.iter().filter_map(WorldSlot::next_frame).min();
        // What a world has said to one that sleeps or rests came at the end of the frame.
        if next_due.is_none_or(|due| due > frame + 1) && self.worlds.iter().any(WorldSlot::is_woken) {
            next_due = Some(frame + 1);
        }
        let frames_per_wake = u64::from(self.timeline.grid.frame_hz());
        let mut next = match next_due {
            Some(due) if !someone_away => due.clamp(frame + 1, frame + frames_per_wake),
            _ => frame + 1,
        };
        let may_be_late = next_due.is_some() || someone_away || self.addresses.players_count() > 0;
        if may_be_late {
            self.look_at_host();
        } else if self.host_rest.begins(self.clock.now()) {
            self.let_host_rest(true);
        }
        // Dormant worlds wait for packets, and so do resting ones; what is due meanwhile has its frame.
        let waits_for_packets = next_due.is_none() || self.worlds.iter().any(WorldSlot::is_resting);
        if waits_for_packets && !someone_away {
            let timeout = match next_due {
                None => IDLE_WAKE_PERIOD,
                Some(_) => self.timeline.start_of(next).saturating_sub(self.clock.now()),
            };
            // Who watches over the server sleeps as well, unless it would have to be woken at once.
            let is_long = timeout >= SLEEP_MIN;
            if is_long {
                self.control.published.set_sleeping(true);
            }
            if timeout > Nanos::ZERO {
                self.transport.wait(Some(timeout));
            }
            if is_long {
                self.control.published.set_sleeping(false);
                self.watchdog.iter().for_each(Watchdog::wake);
            }
            self.woke_at = self.clock.now();
            if next_due.is_some() {
                // Woken by a packet: the first frame from now on.
                next = next.min(self.timeline.frame_at(self.woke_at).max(frame) + 1);
            }
        }
        let begin = self.timeline.start_of(next);
        if self.clock.now() < begin {
            self.clock.sleep_until(begin);
        }
        self.timeline.frame_at(self.clock.now()).max(next)
    }

    /// Something is due or may be soon: whoever looks at the host does so from now on.
    pub(crate) fn look_at_host(&mut self) {
        if self.host_rest.ends() {
            self.let_host_rest(false);
        }
    }

    #[cold]
    fn let_host_rest(&mut self, rests: bool) {
        self.heartbeat.iter().for_each(|heartbeat| heartbeat.rest(rests));
        self.recorder.iter_mut().for_each(|recorder| recorder.rest(rests));
        let cores_watched = if rests { 0 } else { self.host_watch.stall_cores() };
        self.metrics.iter_mut().for_each(|metrics| metrics.tell_heartbeats(cores_watched));
        log_debug!(HOST, rests, "no world is awake, so nobody looks at the host; or one is again");
    }

    /// Dismisses every client and goes on ticking until all are told, or for `DRAIN_MAX`.
    fn drain(&mut self, mut frame: u64) -> u64 {
        let give_up_at = self.clock.now() + DRAIN_MAX;
        self.end_measure(self.clock.now());
        self.addresses.close();
        while self.addresses.players_count() > 0 && self.clock.now() < give_up_at {
            // Every frame: a client that travelled meanwhile is told by the world that it has reached.
            self.addresses.dismiss_all(&self.mailboxes, "the server is closing");
            frame = self.sleep_until_next_frame(frame);
            self.frame(frame);
        }
        frame
    }
}
