//! Windows: spans of time that a server is looked at through.
//!
//! The steady window is what the report is about; the status window is the last second. Counts are added up for a
//! window while it is open, and distributions are of the window alone. Owned by the frame thread.

use std::{collections::BTreeMap, sync::Arc};

use throng_metrics::{Counters, Histogram};
use throng_platform::{process, time::Nanos};
use throng_profiler::RecorderFigures;
use throng_replication::TimeFactor;

use crate::{accounts::Accounts, ids::WorldKindId, recorder_turns::RecorderShare, tick_time::TickTime, totals::Totals};

/// Game metrics of a window: sums, and the most in one frame, by the counter's number; the highest of each gauge by the
/// gauge's.
#[derive(Debug, Default)]
pub(crate) struct GameWindow {
    pub counters: Vec<(u64, u64)>,
    pub gauges_max: Vec<i64>,
}

impl GameWindow {
    pub fn count(&mut self, id: usize, in_frame: u64) {
        if id >= self.counters.len() {
            self.counters.resize((id + 1).next_power_of_two(), (0, 0));
        }
        let (sum, most) = &mut self.counters[id];
        *sum += in_frame;
        *most = in_frame.max(*most);
    }

    pub fn stand(&mut self, id: usize, value: i64) {
        if id >= self.gauges_max.len() {
            self.gauges_max.resize((id + 1).next_power_of_two(), i64::MIN);
        }
        self.gauges_max[id] = value.max(self.gauges_max[id]);
    }
}

/// How things stood when the window closed.
pub(crate) struct WindowEnd {
    pub at: Nanos,
    pub cpu: Nanos,
    pub kernel: Nanos,
    pub recorder_share: Option<RecorderShare>,
    pub players: usize,
    pub recorder: RecorderFigures,
    pub game_gauges: BTreeMap<&'static str, i64>,
    pub accounts: AccountsThen,
}

/// What was known of the accounts at that moment: a second old at most. `None` where nobody reads them, and before the
/// first reading.
pub(crate) type AccountsThen = Option<Arc<Option<Accounts>>>;

/// Ticks of one kind of world in a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TicksOfKind {
    pub count: u64,
    /// How long they took together.
    pub took: Nanos,
    /// How long after its period the latest of them ended.
    pub lateness_max: Nanos,
}

/// The steady window that the report is about.
pub(crate) struct Measure {
    pub began_at: Nanos,
    pub ended: Option<WindowEnd>,
    pub counts: Totals,
    pub game: GameWindow,
    pub cpu_at_begin: Nanos,
    pub kernel_at_begin: Nanos,
    pub accounts_at_begin: AccountsThen,
    pub tick_time: TickTime,
    /// By the number of the kind of world.
    pub ticks_by_kind: Vec<TicksOfKind>,
    pub recorder_at_begin: RecorderFigures,
    pub frame: Histogram,
    pub lateness: Histogram,
    /// Sum over frames of the share of the worlds part in which a worker had nothing left to do, and those frames.
    pub idle_tail_shares: f64,
    pub frames_with_worlds: u64,
    /// The slowest time of any world.
    pub time_factor_min: TimeFactor,
}

impl Default for Measure {
    fn default() -> Self {
        Self {
            began_at: Nanos::ZERO,
            ended: None,
            counts: Totals::default(),
            game: GameWindow::default(),
            cpu_at_begin: Nanos::ZERO,
            kernel_at_begin: Nanos::ZERO,
            accounts_at_begin: None,
            tick_time: TickTime::default(),
            ticks_by_kind: Vec::new(),
            recorder_at_begin: RecorderFigures::default(),
            frame: Histogram::new(),
            lateness: Histogram::new(),
            idle_tail_shares: 0.0,
            frames_with_worlds: 0,
            time_factor_min: TimeFactor::USUAL,
        }
    }
}

impl Measure {
    pub fn begin(&mut self, now: Nanos, recorder: RecorderFigures, accounts: AccountsThen) {
        *self = Self {
            began_at: now,
            cpu_at_begin: process::cpu_time(),
            kernel_at_begin: process::kernel_time(),
            recorder_at_begin: recorder,
            accounts_at_begin: accounts,
            ..Self::default()
        };
    }

    /// What happens now is not in the report any more.
    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub fn tick_lateness(&mut self, lateness: Nanos) {
        if self.ended.is_none() {
            self.lateness.record_time(lateness);
        }
    }

    /// A world's time runs like this.
    pub fn time_runs(&mut self, factor: TimeFactor) {
        if self.ended.is_none() {
            self.time_factor_min = self.time_factor_min.min(factor);
        }
    }

    /// A tick of a world of this kind is over. Allocates with the first one of a kind.
    pub fn tick(&mut self, kind: WorldKindId, took: Nanos, lateness: Nanos) {
        if self.ended.is_some() {
            return;
        }
        let number = usize::from(kind.0);
        if number >= self.ticks_by_kind.len() {
            self.ticks_by_kind.resize(number + 1, TicksOfKind::default());
        }
        let of_kind = &mut self.ticks_by_kind[number];
        of_kind.count += 1;
        of_kind.took.0 += took.0;
        of_kind.lateness_max = of_kind.lateness_max.max(lateness);
    }

    pub fn frame(&mut self, length: Nanos, counts: &Totals, idle_tail_share: Option<f64>) {
        if self.ended.is_some() {
            return;
        }
        self.frame.record_time(length);
        self.counts.merge(counts);
        if let Some(share) = idle_tail_share {
            self.frames_with_worlds += 1;
            self.idle_tail_shares += share;
        }
    }
}

/// The last second, for the status line.
pub(crate) struct StatusWindow {
    pub second: u64,
    pub next_at: Nanos,
    pub counts: Totals,
    pub cpu_at_begin: Nanos,
    pub frame: Histogram,
    pub lateness_max: Nanos,
    /// The most that the host took of a core for missed ticks.
    pub host_took_max: Nanos,
    /// The slowest time of any world.
    pub time_factor_min: TimeFactor,
}

impl Default for StatusWindow {
    fn default() -> Self {
        Self {
            second: 0,
            next_at: Nanos::ZERO,
            counts: Totals::default(),
            cpu_at_begin: Nanos::ZERO,
            frame: Histogram::new(),
            lateness_max: Nanos::ZERO,
            host_took_max: Nanos::ZERO,
            time_factor_min: TimeFactor::USUAL,
        }
    }
}

impl StatusWindow {
    pub fn tick_lateness(&mut self, lateness: Nanos) {
        self.lateness_max = self.lateness_max.max(lateness);
    }

    pub fn host_took(&mut self, taken: Nanos) {
        self.host_took_max = self.host_took_max.max(taken);
    }
}
