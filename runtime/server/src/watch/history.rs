//! History: the few figures that charts show, of each of the last seconds, kept whether or not anybody watches: who comes
//! when it is bad sees since when.
//!
//! The frame's thread writes a row when it makes the status of a second, of what is known by then. Cost: 120 bytes and
//! less than a microsecond a second, and 36 KB in all.

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

const FIGURES: usize = 10;
const WORDS: usize = FIGURES + HOST_FIGURES_KEPT.len();

/// A second that is over; figures as in [`ServerStatus`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PastSecond {
    /// When it was over, by the server's clock.
    pub at: Nanos,
    pub second: u64,
    pub players: u64,
    pub worlds_overloaded: u64,
    pub frame_ms_max: f64,
    pub frame_budget_ms: f64,
    pub ticks_missed: u64,
    pub bytes_out: u64,
    pub cpu_cores: f64,
    pub rss_mb: f64,
    /// Those of [`HOST_FIGURES_KEPT`]; none where the host does not tell.
    pub host: [Option<f64>; HOST_FIGURES_KEPT.len()],
}

impl PastSecond {
    /// That of which `status` is. `host` gives a figure of the host by its name.
    pub(crate) fn of(at: Nanos, status: &ServerStatus, host: impl Fn(&str) -> Option<f64>) -> Self {
        Self {
            at,
            second: status.second,
            players: status.players as u64,
            worlds_overloaded: status.worlds_overloaded as u64,
            frame_ms_max: status.frame_ms_max,
            frame_budget_ms: status.frame_budget_ms,
            ticks_missed: status.ticks_missed,
            bytes_out: status.bytes_out,
            cpu_cores: status.cpu_cores,
            rss_mb: status.rss_mb,
            host: HOST_FIGURES_KEPT.map(host),
        }
    }

    /// What the host does not tell is not a number.
    fn to_words(self) -> [u64; WORDS] {
        let Self { at, second, players, worlds_overloaded, ticks_missed, bytes_out, .. } = self;
        let figures = [self.frame_ms_max, self.frame_budget_ms, self.cpu_cores, self.rss_mb];
        let host = self.host.map(|figure| figure.unwrap_or(f64::NAN));
        let counts = [at.0, second, players, worlds_overloaded, ticks_missed, bytes_out];
        let mut words = counts.into_iter().chain(figures.into_iter().chain(host).map(f64::to_bits));
        std::array::from_fn(|_| words.next().expect("as many words as figures"))
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        let [at, second, players, worlds_overloaded, ticks_missed, bytes_out, figures @ ..] = words;
        let [frame_ms_max, frame_budget_ms, cpu_cores, rss_mb, host @ ..] = figures.map(f64::from_bits);
        Self {
            at: Nanos(at),
            second,
            players,
            worlds_overloaded,
            frame_ms_max,
            frame_budget_ms,
            ticks_missed,
            bytes_out,
            cpu_cores,
            rss_mb,
            host: host.map(|figure| Some(figure).filter(|figure| !figure.is_nan())),
        }
    }
}

/// The last [`SECONDS_KEPT`].
pub(super) struct History(Ring<WORDS>);

impl Default for History {
    fn default() -> Self {
        Self(Ring::new(SECONDS_KEPT))
    }
}

impl History {
    /// On the frame's thread.
    pub fn keep(&self, second: PastSecond) {
        self.0.write(second.to_words());
    }

    /// The oldest first. Any thread; allocates.
    pub fn seconds(&self) -> Vec<PastSecond> {
        self.0.read(0).0.into_iter().map(PastSecond::from_words).collect()
    }
}
