//! Figures of a live server, and the difference between two moments: what an attack did to ticks, memory and processor.
//!
//! Shares of a window beside those of a quiet window in the same run: the machine is the same one, and busy with the
//! same.

use std::time::{Duration, Instant};

use throng_platform::process::{cpu_time_of, rss_bytes_of};

use crate::{
    child::Server,
    lifecycle::{get, metric},
};

/// How often it is looked whether the server has published its metrics again, which it does once a second.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a server did in a window of time.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub ticks: f64,
    /// Share of its ticks that did not begin within their period, or came late since their world's time was slowed.
    pub missed_share: f64,
    /// Ticks that did not begin within their period, and of which the host did not take the core.
    pub missed_own: f64,
    /// Mean length of a frame. (ms)
    pub frame_ms: f64,
    pub packets_in: f64,
    pub rss_grown_bytes: i64,
    pub cpu_s: f64,
}

struct Moment {
    ticks: f64,
    missed: f64,
    missed_own: f64,
    frames: f64,
    frame_s: f64,
    packets_in: f64,
    rss_bytes: i64,
    cpu_s: f64,
}

impl Moment {
    fn of(server: &Server) -> Self {
        let read = || get(server.admin_address, "/metrics").1;
        let mut text = read();
        // What has just happened is in the metrics after a whole second of theirs: the one that ends now may have been over.
        for _ in 0..2 {
            let before = metric(&text, "throng_server_frames_total");
            while metric(&text, "throng_server_frames_total") == before {
                std::thread::sleep(LOOK_EVERY);
                text = read();
            }
        }
        Self {
            ticks: metric(&text, "throng_server_ticks_total"),
            missed: metric(&text, "throng_server_ticks_missed_total")
                + metric(&text, "throng_server_ticks_slowed_total"),
            missed_own: metric(&text, "throng_server_ticks_missed_total")
                - metric(&text, "throng_server_ticks_missed_host_total"),
            frames: metric(&text, "throng_server_frames_total"),
            frame_s: metric(&text, "throng_server_frame_seconds_sum"),
            packets_in: metric(&text, "throng_net_packets_in_total"),
            rss_bytes: rss_bytes_of(server.pid()).expect("it runs") as i64,
            cpu_s: cpu_time_of(server.pid()).expect("it runs").as_secs_f64(),
        }
    }
}

/// Looks at the server while `act` happens, and up to two seconds longer.
pub fn window<T>(server: &Server, act: impl FnOnce() -> T) -> (Window, T) {
    let before = Moment::of(server);
    let acted = act();
    let after = Moment::of(server);
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let (ticks, frames) = (after.ticks - before.ticks, after.frames - before.frames);
    let window = Window {
        ticks,
        missed_share: share(after.missed - before.missed, ticks),
        missed_own: after.missed_own - before.missed_own,
        frame_ms: share(after.frame_s - before.frame_s, frames) * 1e3,
        packets_in: after.packets_in - before.packets_in,
        rss_grown_bytes: after.rss_bytes - before.rss_bytes,
        cpu_s: after.cpu_s - before.cpu_s,
    };
    (window, acted)
}

/// The same of a quiet time, to compare with.
pub fn quiet_window(server: &Server, length: Duration) -> Window {
    window(server, || std::thread::sleep(length)).0
}

/// Ticks went on under attack as they did before: at most this share more of them was missed. What a frame took is told
/// beside it; on a machine that attackers share with the server it says more about the machine.
#[track_caller]
pub fn check_ticks_kept(quiet: &Window, attacked: &Window, more_missed_share_max: f64) {
    println!("a frame took {:.2} ms, and {:.2} ms before", attacked.frame_ms, quiet.frame_ms);
    assert!(quiet.ticks > 0.0 && attacked.ticks > 0.0, "{quiet:?} {attacked:?}");
    let more = attacked.missed_share - quiet.missed_share;
    assert!(more <= more_missed_share_max, "{quiet:?}\n{attacked:?}");
}

/// Runs `act` in a thread while `beside` goes on, and waits for both.
pub fn both<A: Send, B>(act: impl FnOnce() -> A + Send, beside: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let act = scope.spawn(act);
        let beside = beside();
        (act.join().expect("an attacker does not panic"), beside)
    })
}

/// Calls `act` `count` times at a steady rate, in bursts of a millisecond.
pub fn at_rate(count: u64, per_s: u64, mut act: impl FnMut(u64)) {
    let begin = Instant::now();
    let burst = (per_s / 1_000).max(1);
    let mut number = 0;
    while number < count {
        for _ in 0..burst.min(count - number) {
            act(number);
            number += 1;
        }
        let due = begin + Duration::from_secs_f64(number as f64 / per_s as f64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}
