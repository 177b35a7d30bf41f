//! `[long_tasks]`: how many threads do what may take many frames, when worlds make room for them, and what is in time.

use serde::Deserialize;
use serde::de::Deserializer;
use throng_platform::time::Nanos;
use throng_scheduler::StarvationMarks;

use super::workers::{ReservedCores, auto_or_count};
use super::{Checks, Section};

/// `[long_tasks]`: making and dropping worlds, and what games have done beside their ticks; see
/// [`long_tasks`](crate::long_tasks).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct LongTaskSettings {
    /// Threads of low priority [1 to 64]. Default `"auto"`: one for each reserved core, one at least.
    /// Too low → tasks wait for each other though cores are free; too high → no more are done than there are cores for.
    pub threads: LongThreads,
    /// Leave cores to long tasks that pile up, and have newcomers wait where that is not enough. Default true.
    /// False → where worlds take all cores, what waits to be dropped grows until memory is gone.
    pub control: bool,
    /// When all that waits will take longer than this, a worker leaves its core to it, one more in each frame [ms of
    /// processor time, 1 to 600,000]. Default 200: some thousand small worlds that are to be dropped.
    /// Too low → worlds lose cores for work that would have been done anyway; too high → memory.
    pub high_mark_ms: u32,
    /// Below this a worker gets its core back, one in each frame [ms, 0 to `high_mark_ms`]. Default 50.
    /// Too near to the high mark → the number of workers swings; too low → worlds get their cores back late.
    pub low_mark_ms: u32,
    /// When what waits to be dropped will take longer than this, no world is made and nobody is let in from the line
    /// until half of it is done [ms, `high_mark_ms` to 600,000]. Default 1,000.
    /// Too low → players wait for a short rush; too high → memory.
    pub admission_mark_ms: u32,
    /// Tasks that may wait [tasks, 1 to 1,000,000]. Default 16,384. One more is refused, unless it gives memory back.
    /// Too low → a rush of players is refused worlds; too high → they wait for longer than people do.
    pub waiting_max: u32,
    /// A world that is asked for should be there within this [ms, 1 to 600,000]. Default 5,000.
    /// Too low → others' deadlines are missed for it, and builds that take long count as stuck; too high → players wait.
    pub make_within_ms: u32,
    /// A world that has ended should be gone within this [ms, 1 to 600,000]. Default 10,000.
    /// Too low → those who wait for a world wait longer, and drops that take long count as stuck; too high → memory.
    pub drop_within_ms: u32,
}

impl Default for LongTaskSettings {
    fn default() -> Self {
        Self {
            threads: LongThreads::Auto,
            control: true,
            high_mark_ms: 200,
            low_mark_ms: 50,
            admission_mark_ms: 1_000,
            waiting_max: 16_384,
            make_within_ms: 5_000,
            drop_within_ms: 10_000,
        }
    }
}

impl LongTaskSettings {
    pub(crate) fn marks(&self) -> StarvationMarks {
        StarvationMarks { high: ms(self.high_mark_ms), low: ms(self.low_mark_ms) }
    }

    pub(crate) fn admission_mark(&self) -> Nanos {
        ms(self.admission_mark_ms)
    }

    pub(crate) fn make_within(&self) -> Nanos {
        ms(self.make_within_ms)
    }

    pub(crate) fn drop_within(&self) -> Nanos {
        ms(self.drop_within_ms)
    }
}

fn ms(count: u32) -> Nanos {
    Nanos::from_millis(count.into())
}

impl Section for LongTaskSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        if let LongThreads::Count(count) = self.threads {
            checks.range("threads", count, 1..=64, "threads");
        }
        let Self { high_mark_ms: high, low_mark_ms: low, admission_mark_ms: admission, .. } = *self;
        checks.range("high_mark_ms", high, 1..=600_000, "ms");
        checks.range("admission_mark_ms", admission, 1..=600_000, "ms");
        checks.range("waiting_max", self.waiting_max, 1..=1_000_000, "tasks");
        checks.range("make_within_ms", self.make_within_ms, 1..=600_000, "ms");
        checks.range("drop_within_ms", self.drop_within_ms, 1..=600_000, "ms");
        if low > high {
            checks.mistake(
                if checks.has("low_mark_ms") { "low_mark_ms" } else { "high_mark_ms" },
                format!("low_mark_ms is {low} and high_mark_ms is {high}; make low_mark_ms the smaller one"),
            );
        }
        if admission < high {
            checks.mistake(
                if checks.has("admission_mark_ms") { "admission_mark_ms" } else { "high_mark_ms" },
                format!(
                    "admission_mark_ms is {admission} and high_mark_ms is {high}; players would wait before a core is left \
                     to long tasks: make admission_mark_ms at least high_mark_ms"
                ),
            );
        }
    }
}

/// How many threads do long tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongThreads {
    /// One for each core that no worker has, and one at least.
    Auto,
    Count(u16),
}

impl LongThreads {
    /// How many that are where this process may use so many cores.
    pub fn count(self, reserved: ReservedCores, usable_cores: usize) -> usize {
        match self {
            Self::Auto => reserved.count(usable_cores).clamp(1, 64),
            Self::Count(count) => usize::from(count),
        }
    }
}

impl<'de> Deserialize<'de> for LongThreads {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let count = auto_or_count(from, "\"auto\" or a whole number from 1 to 64")?;
        Ok(count.map_or(Self::Auto, Self::Count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_thread_for_each_reserved_core_and_always_one() {
        let auto = |cores| LongThreads::Auto.count(ReservedCores::Auto, cores);
        assert_eq!([1, 2, 8, 38].map(auto), [1, 1, 1, 2]);
        assert_eq!(LongThreads::Auto.count(ReservedCores::Count(5), 38), 5);
        assert_eq!(LongThreads::Count(3).count(ReservedCores::Auto, 1), 3);
    }
}
