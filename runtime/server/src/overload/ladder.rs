//! Ladder: how overloaded one world is, in steps, from how much of its period was over when each of its ticks ended.
//!
//! ```text
//! share = (end of the tick - begin of its period) / period     1 = the next tick was due at once
//! mean of a window   >= busy, two windows in a row           -> one step up, and up to the slowing of time
//!                    > 1, on a step already                  -> another one after each window
//!                    <= calm, four in a row                  -> one step down
//!                    between                                 -> stays
//! ```
//!
//! The share grows when the world's own tick takes long and when it waits for a worker, so that one hot world and a
//! process full of them show in the same way. A single tick that takes long, or a hitch of the host, spoils one window,
//! and one window moves nothing.
//!
//! Above the steps that relieve a world its time slows ([`TimeFactor`]). How far follows from what was measured: a period so
//! long that three quarters of it would have been over. Where a world's own ticks take more than there is, that is how long they
//! took, since its shares tell of the ticks before as well: so one decision leads from any load to what holds it, and one leads back
//! once the load has gone. A slowed world's share is that of its longer period.
//!
//! A step that helps makes the world calm, and going back would make it busy again. So whoever is busy within 10 s of a step
//! down waits twice as long the next time, up to 16 times. A world that is calmer than half of `calm` does not wait: no
//! step helps as much as that, so the load itself has gone. Of many small worlds that is not true, since they are spread
//! over a period and each waits little until all cores are full. So what all worlds together would need at full speed
//! (`demand`) holds them back, too: a step down needs room for it, and nobody's time goes faster than all worlds' could.
//!
//! Pure: it reads no clock. Cost: some additions for each tick of a world.

use throng_platform::time::Nanos;
use throng_replication::TimeFactor;

/// Ticks are looked at together for so long, or for one tick where that is longer: five ticks at 20 Hz.
const WINDOW: Nanos = Nanos::from_millis(250);

/// Busy windows before a step up, so that no single hitch reaches anything.
const BUSY_WINDOWS: u32 = 2;

/// The same before the next step of a world that is on one and whose ticks take longer than there is: what is missed until
/// time slows nobody gets back. So that is after a second: two windows, one and one. A hitch that spoils two windows is one
/// step still.
const BUSY_WINDOWS_AGAIN: u32 = 1;

/// Calm windows before a step down, if patience is 1.
const CALM_WINDOWS: u32 = 4;

/// The same where the load itself has gone.
const IDLE_WINDOWS: u32 = 2;

/// Much later is not worse: the tick after a hitch is late as well, and must not spoil a second window by itself.
const SHARE_MAX: f32 = 2.0;

/// Busy again so soon after a step down: the step was what helped.
pub(crate) const RELAPSE: Nanos = Nanos::from_secs(10);

/// With a window of 250 ms one step down is tried in 16 s at most.
const PATIENCE_MAX: u32 = 16;

/// A slowed world's period is so long that this share of it would be over: between calm and busy, so that it stays.
const SHARE_WANTED: f32 = 0.75;

/// What all worlds together may need of all cores, at the factor that is given to them.
const DEMAND_WANTED: f32 = 0.85;

/// A world whose time runs at half of its speed or less is one that nobody else should come to.
const ADMISSION_CLOSES_AT: TimeFactor = TimeFactor::HALF;

/// Clients hear of their world at least this often, however slow its time: some give up after five seconds of silence.
const PERIOD_MAX: Nanos = Nanos::from_secs(1);

/// A slowed world's window is one tick of up to half a second at 20 Hz and the floor; from there to full speed it takes a
/// window that has begun and the idle ones, and another period to the next tick.
const _: () = assert!(
    500 * (1 + IDLE_WINDOWS as u64 + 1) + WINDOW.0 / 1_000_000 * CALM_WINDOWS as u64 * 2 <= 5_000,
    "normal again within five seconds"
);

/// What is done about an overload. Each level does what those before it do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    Normal,
    /// Long tasks are to leave the cores to ticks.
    LongTasksYield,
    /// Clients are told half as often of what is not near them.
    FarUpdatesThin,
    /// The world's ticks come less often, and its time goes slower.
    TimeSlows,
    /// Its time runs at half of its speed or less, or as slowly as it may: newcomers wait in line.
    AdmissionClosed,
}

impl Level {
    pub const ALL: [Self; 5] =
        [Self::Normal, Self::LongTasksYield, Self::FarUpdatesThin, Self::TimeSlows, Self::AdmissionClosed];

    /// As logs and metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::LongTasksYield => "long_tasks_yield",
            Self::FarUpdatesThin => "far_updates_thin",
            Self::TimeSlows => "time_slows",
            Self::AdmissionClosed => "admission_closed",
        }
    }

    fn down(self) -> Self {
        Self::ALL[(self as usize).saturating_sub(1)]
    }
}

/// By what a world is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// When a world counts as busy, and when as calm: mean shares of its period. `calm` is below `busy`.
    pub busy: f32,
    pub calm: f32,
    /// As slow as time may get.
    pub slowest: TimeFactor,
    /// What all worlds would need at full speed: time of workers for that of all workers.
    pub demand: f32,
}

impl Limits {
    /// For a world with this period: its clients must not take it for dead.
    pub fn for_period(self, period: Nanos) -> Self {
        let of_period = TimeFactor::from_percent((100 * period.0).div_ceil(PERIOD_MAX.0) as u32);
        Self { slowest: self.slowest.max(of_period), ..self }
    }

    /// As fast as all worlds' time could run.
    fn fastest(self) -> TimeFactor {
        TimeFactor::of_share(DEMAND_WANTED / self.demand.max(DEMAND_WANTED))
    }
}

/// The state of one world.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ladder {
    level: Level,
    factor: TimeFactor,
    window_began: Nanos,
    shares_sum: f32,
    /// Of what the ticks themselves took.
    costs_sum: f32,
    ticks: u32,
    busy_windows: u32,
    calm_windows: u32,
    /// Those in which the load had gone.
    idle_windows: u32,
    eased_at: Option<Nanos>,
    /// By how much longer than usual it waits before a step down; 0 is as 1.
    patience: u32,
}

impl Ladder {
    pub fn level(&self) -> Level {
        self.level
    }

    /// How fast the world's time is to run from its next tick on.
    pub fn time_factor(&self) -> TimeFactor {
        self.factor
    }

    /// The world sleeps: there is nothing to be overloaded with.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// A tick ended at `now` with this share of its period over, of which it took `cost` itself. Returns whether the level
    /// changed.
    pub fn observe(&mut self, now: Nanos, share: f32, cost: f32, limits: Limits) -> bool {
        self.shares_sum += share.min(SHARE_MAX);
        self.costs_sum += cost;
        self.ticks += 1;
        if now.saturating_sub(self.window_began) < WINDOW {
            return false;
        }
        let ticks = std::mem::take(&mut self.ticks) as f32;
        let [mean, cost] = [&mut self.shares_sum, &mut self.costs_sum].map(|sum| std::mem::take(sum) / ticks);
        self.window_began = now;
        let before = self.level;
        self.judge(now, mean, cost, limits);
        self.level != before
    }

    fn judge(&mut self, now: Nanos, mean: f32, cost: f32, limits: Limits) {
        let count = |windows: u32, is_one: bool| if is_one { windows + 1 } else { 0 };
        self.busy_windows = count(self.busy_windows, mean >= limits.busy);
        self.calm_windows = count(self.calm_windows, mean <= limits.calm);
        let is_idle = mean <= limits.calm / 2.0 && limits.demand <= limits.calm;
        self.idle_windows = count(self.idle_windows, is_idle);
        let is_next = matches!(self.level, Level::LongTasksYield | Level::FarUpdatesThin);
        let busy_windows = if is_next && mean > 1.0 { BUSY_WINDOWS_AGAIN } else { BUSY_WINDOWS };
        if self.busy_windows >= busy_windows {
            self.busy_windows = 0;
            self.note_relapse(now);
            self.step_up(if cost >= limits.busy { cost } else { mean }, limits);
        }
        let waited = self.calm_windows >= CALM_WINDOWS * self.patience.max(1);
        if self.level > Level::Normal && (waited || self.idle_windows >= IDLE_WINDOWS) && self.step_down(mean, limits) {
            (self.calm_windows, self.idle_windows) = (0, 0);
            self.eased_at = Some(now);
        }
    }

    fn note_relapse(&mut self, now: Nanos) {
        // Once for each step down, however many steps up follow it.
        match self.eased_at.take() {
            Some(at) if now.saturating_sub(at) <= RELAPSE => {
                self.patience = (self.patience.max(1) * 2).min(PATIENCE_MAX);
            }
            Some(_) => self.patience = 1,
            None => {}
        }
    }

    fn step_up(&mut self, share: f32, limits: Limits) {
        match self.level {
            Level::Normal => self.level = Level::LongTasksYield,
            Level::LongTasksYield => self.level = Level::FarUpdatesThin,
            _ if self.factor <= limits.slowest => self.level = Level::AdmissionClosed,
            _ => {
                let wanted = TimeFactor::of_share(self.factor.share() * SHARE_WANTED / share);
                let slower = TimeFactor::from_percent(u32::from(self.factor.percent()) - 1);
                self.factor = wanted.min(slower).min(limits.fastest()).max(limits.slowest);
                let is_slow = self.factor <= ADMISSION_CLOSES_AT;
                self.level = if is_slow { Level::AdmissionClosed } else { Level::TimeSlows };
            }
        }
    }

    /// Returns whether anything is better than it was.
    fn step_down(&mut self, mean: f32, limits: Limits) -> bool {
        if self.factor.is_usual() {
            let has_room = limits.demand < limits.busy;
            if has_room {
                // Where time may not slow, newcomers waited with nothing below it.
                let is_last = self.level == Level::AdmissionClosed;
                self.level = if is_last { Level::FarUpdatesThin } else { self.level.down() };
            }
            return has_room;
        }
        let wanted = TimeFactor::of_share(self.factor.share() * SHARE_WANTED / mean.max(0.01)).min(limits.fastest());
        if wanted <= self.factor {
            return false;
        }
        self.factor = wanted;
        self.level = match wanted {
            TimeFactor::USUAL => Level::FarUpdatesThin,
            wanted if wanted <= ADMISSION_CLOSES_AT => Level::AdmissionClosed,
            _ => Level::TimeSlows,
        };
        true
    }
}

#[cfg(test)]
mod tests;
