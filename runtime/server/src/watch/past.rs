//! Past seconds: of each of the last, the few figures that charts show, kept whether or not anybody watches, so that
//! whoever opens the console in a bad hour sees when it began.
//!
//! Written on the frame's thread when it makes the status of a second, without allocating; read on any, which allocates.
//! Sketch of the cost: fifteen stores, 120 bytes, a second, and 36 KB in all.

use throng_platform::time::Nanos;

use super::ring::Ring;
use crate::report::ServerStatus;

/// Five minutes. Fewer → who is called to a bad hour comes too late for its beginning; more → each stream begins with a
/// longer line, now some 20 KB.
pub const SECONDS_KEPT: usize = 300;

/// What of the host is kept, by its name in `docs/metrics.md`.
pub const HOST_FIGURES_KEPT: [&str; 5] = [
    "inside.cpu_cores",
    "inside.run_queue_wait_cores",
    "outside.host_busy_cores",
    "outside.host_softirq_cores",
    "outside.host_steal_cores",
];

/// A row's words, in this order: `at` and counts; amounts, as the bits of an `f64`; figures of the host, likewise.
const COUNTS: usize = 6;
const AMOUNTS: usize = 4;
const WORDS: usize = COUNTS + AMOUNTS + HOST_FIGURES_KEPT.len();
const _: () = assert!(WORDS * 8 == 120 && (SECONDS_KEPT + 1) * WORDS * 8 <= 37_000);

/// A second that is over; figures as in [`ServerStatus`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PastSecond {
    /// When it was over, by the server's clock.
    pub at: Nanos,
    /// Number of the second since the server's start [from 0 on].
    pub second: u64,
    /// Players on the server at its end.
    pub players: u64,
    /// Worlds on a step of the overload ladder at its end.
    pub worlds_overloaded: u64,
    /// The longest frame that ended in it, in ms.
    pub frame_ms_max: f64,
    /// What a frame may take, in ms.
    pub frame_budget_ms: f64,
    /// Ticks missed in it, by all worlds.
    pub ticks_missed: u64,
    /// Bytes to clients [bytes/s].
    pub bytes_out_per_s: u64,
    /// Processor time of the process in it, in cores.
    pub cpu_cores: f64,
    /// Resident memory of the process at its end, in MB.
    pub rss_mb: f64,
    /// Those of [`HOST_FIGURES_KEPT`]; `None` where the host does not report one.
    pub host: [Option<f64>; HOST_FIGURES_KEPT.len()],
}

impl PastSecond {
    /// The figures kept of the second that `status` describes; `host` gives a host figure by its name, `None` where the host
    /// does not report it.
    pub(crate) fn of(at: Nanos, status: &ServerStatus, host: impl Fn(&str) -> Option<f64>) -> Self {
        Self {
            at,
            second: status.second,
            players: status.players as u64,
            worlds_overloaded: status.worlds_overloaded as u64,
            frame_ms_max: status.frame_ms_max,
            frame_budget_ms: status.frame_budget_ms,
            ticks_missed: status.ticks_missed,
            bytes_out_per_s: status.bytes_out,
            cpu_cores: status.cpu_cores,
            rss_mb: status.rss_mb,
            host: HOST_FIGURES_KEPT.map(host),
        }
    }

    /// A host figure that is not reported becomes NaN, since a word has no room for `None`.
    fn to_words(self) -> [u64; WORDS] {
        let Self { at, second, players, worlds_overloaded, ticks_missed, bytes_out_per_s, .. } = self;
        let counts: [u64; COUNTS] = [at.0, second, players, worlds_overloaded, ticks_missed, bytes_out_per_s];
        let amounts: [f64; AMOUNTS] = [self.frame_ms_max, self.frame_budget_ms, self.cpu_cores, self.rss_mb];
        let host = self.host.map(|figure| figure.unwrap_or(f64::NAN));
        let mut words = [0; WORDS];
        words[..COUNTS].copy_from_slice(&counts);
        words[COUNTS..][..AMOUNTS].copy_from_slice(&amounts.map(f64::to_bits));
        words[COUNTS + AMOUNTS..].copy_from_slice(&host.map(f64::to_bits));
        words
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        let [at, second, players, worlds_overloaded, ticks_missed, bytes_out_per_s, figures @ ..] = words;
        let [frame_ms_max, frame_budget_ms, cpu_cores, rss_mb, host @ ..] = figures.map(f64::from_bits);
        Self {
            at: Nanos(at),
            second,
            players,
            worlds_overloaded,
            frame_ms_max,
            frame_budget_ms,
            ticks_missed,
            bytes_out_per_s,
            cpu_cores,
            rss_mb,
            host: host.map(|figure| Some(figure).filter(|figure| !figure.is_nan())),
        }
    }
}

/// The last [`SECONDS_KEPT`].
pub(super) struct Past(Ring<WORDS>);

impl Default for Past {
    fn default() -> Self {
        Self(Ring::new(SECONDS_KEPT))
    }
}

impl Past {
    /// On the frame's thread, once a second.
    pub fn keep(&self, second: PastSecond) {
        self.0.write(second.to_words());
    }

    /// The oldest first. Any thread; allocates.
    pub fn seconds(&self) -> Vec<PastSecond> {
        self.0.read(0).0.into_iter().map(PastSecond::from_words).collect()
    }
}
