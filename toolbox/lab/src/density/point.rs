//! One point of the curve: what was measured with so many instances, and whether it held.

use std::str::FromStr;

use serde::Serialize;
use throng_platform::hardware::HardwareCounts;

use super::error::DensityError;
use super::frame_times::FrameTimes;

/// By what frame times of a window are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    Mean,
    P50,
    P99,
}

impl Statistic {
    /// All that there are, as they are written.
    pub const NAMES: [&str; 3] = ["mean", "p50", "p99"];

    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
        }
    }

    fn of(self, times: &FrameTimes) -> Option<f64> {
        match self {
            Self::Mean => times.mean_ms(),
            Self::P50 => times.quantile_ms(0.5),
            Self::P99 => times.quantile_ms(0.99),
        }
    }
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Self::Mean, Self::P50, Self::P99].into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("{text:?} is none of {}", Self::NAMES.join(", ")))
    }
}

/// What was read of all instances in a window.
#[derive(Debug, Clone, Default)]
pub(crate) struct WindowReading {
    pub seconds: f64,
    /// Of all instances together.
    pub times: FrameTimes,
    /// The mean of the instance with the longest.
    pub worst_mean_ms: f64,
    /// Of the median instance; where frames are counted.
    pub frames_per_s: Option<f64>,
    /// Of the slowest one: the most that it can have been.
    pub frames_per_s_least: Option<f64>,
    /// The sum of all.
    pub frames_per_s_all: Option<f64>,
    /// Of the instance with the largest; `None` where none tells.
    pub ticks_behind_share: Option<f64>,
    pub cores_busy: f64,
    pub rss_mb: f64,
    /// Of these seconds, which are the same for all; each one's frames are of a window of its own, a little longer.
    pub hardware: Option<HardwareCounts>,
}

/// What each point of a curve is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    pub budget_ms: f64,
    /// `None` where frames are not counted.
    pub frames_per_s: Option<f64>,
}

/// Share of its frames that an instance must run: one that leaves frames out has no time for them.
const RATE_SHARE_MIN: f64 = 0.99;
/// Share of its period that a frame may take, if nobody says otherwise.
const PERIOD_SHARE: f64 = 0.9;

impl Bar {
    /// From what was wanted and what the fewest instances did.
    pub fn new(budget_ms: Option<f64>, hz: Option<f64>, fewest: &WindowReading) -> Result<Self, DensityError> {
        let frames_per_s = fewest.frames_per_s.map(|measured| hz.unwrap_or(measured));
        let period_ms = hz.or(frames_per_s).map(|hz| 1e3 / hz);
        let budget_ms = budget_ms.or(period_ms.map(|ms| ms * PERIOD_SHARE)).ok_or(DensityError::NoBudget)?;
        Ok(Self { budget_ms, frames_per_s })
    }
}

/// A number of instances (or of worlds) with what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    pub instances: u32,
    pub seconds: f64,
    /// By the run's statistic, over all frames of all instances.
    pub frame_ms: f64,
    pub frame_ms_mean: f64,
    /// Null where the source tells count and sum alone.
    pub frame_ms_p50: Option<f64>,
    pub frame_ms_p99: Option<f64>,
    /// The mean of the instance whose frames took longest.
    pub frame_ms_mean_worst: f64,
    /// Of the median instance, and of the slowest, of which it is the most that its page or its lines allow for; null
    /// where frames are not counted.
    pub frames_per_s: Option<f64>,
    pub frames_per_s_least: Option<f64>,
    /// Share of the ticks of the instance with the largest share that were missed, or run in slow motion for overload; null
    /// of servers that do not tell.
    pub ticks_behind_share: Option<f64>,
    /// Cores that all instances together kept busy, and what share that is of those that they may use.
    pub cores_busy: f64,
    pub load_share: f64,
    /// Resident memory of all, added up: pages that they share count once for each.
    pub rss_mb: f64,
    /// Null where the host does not count.
    pub instructions_per_cycle: Option<f64>,
    pub instructions_per_frame: Option<f64>,
    pub cache_misses_per_frame: Option<f64>,
    pub cache_misses_per_1000_instructions: Option<f64>,
    /// Frame time and rate both held, and ticks were run at their time.
    pub holds: bool,
}

impl Point {
    pub(crate) fn new(
        instances: u32,
        seen: &WindowReading,
        statistic: Statistic,
        bar: Bar,
        cores: f64,
    ) -> Result<Self, DensityError> {
        let no_frames = DensityError::NoFrames { seconds: seen.seconds };
        let mean_ms = seen.times.mean_ms().ok_or(no_frames)?;
        let no_statistic = DensityError::NoStatistic { statistic: statistic.name() };
        let frame_ms = statistic.of(&seen.times).ok_or(no_statistic)?;
        // One that hangs adds no long frame, and the others' median knows nothing of it. What the slowest one can have run
        // at most is a generous figure where pages are read late, which is where all of them leave frames out.
        let keeps_rate = [seen.frames_per_s_least, seen.frames_per_s].iter().all(|measured| {
            measured.zip(bar.frames_per_s).is_none_or(|(measured, wanted)| measured >= RATE_SHARE_MIN * wanted)
        });
        // One that slows its worlds' time runs as many frames as it likes, and short ones.
        let keeps_time = seen.ticks_behind_share.is_none_or(|share| share <= 1.0 - RATE_SHARE_MIN);
        let counted = seen.hardware.filter(|counts| counts.cycles > 0 && counts.instructions > 0);
        let of_counts = |figure: &dyn Fn(&HardwareCounts) -> f64| counted.as_ref().map(figure);
        // A rate through a rate: frames and counts are of different windows.
        let per_frame = |count: fn(&HardwareCounts) -> u64| {
            let frames = seen.frames_per_s_all.filter(|frames_per_s| *frames_per_s > 0.0)? * seen.seconds;
            Some(count(counted.as_ref()?) as f64 / frames)
        };
        Ok(Self {
            instances,
            seconds: seen.seconds,
            frame_ms,
            frame_ms_mean: mean_ms,
            frame_ms_p50: Statistic::P50.of(&seen.times),
            frame_ms_p99: Statistic::P99.of(&seen.times),
            frame_ms_mean_worst: seen.worst_mean_ms,
            frames_per_s: seen.frames_per_s,
            frames_per_s_least: seen.frames_per_s_least,
            ticks_behind_share: seen.ticks_behind_share,
            cores_busy: seen.cores_busy,
            load_share: seen.cores_busy / cores,
            rss_mb: seen.rss_mb,
            instructions_per_cycle: of_counts(&|counts| counts.instructions as f64 / counts.cycles as f64),
            instructions_per_frame: per_frame(|counts| counts.instructions),
            cache_misses_per_frame: per_frame(|counts| counts.cache_misses),
            cache_misses_per_1000_instructions: of_counts(&|counts| {
                1e3 * counts.cache_misses as f64 / counts.instructions as f64
            }),
            holds: frame_ms <= bar.budget_ms && keeps_rate && keeps_time,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(frames: &[f64], frames_per_s: Option<f64>) -> WindowReading {
        let mut seen = WindowReading {
            seconds: 2.0,
            frames_per_s,
            frames_per_s_least: frames_per_s,
            frames_per_s_all: frames_per_s.map(|one| 3.0 * one),
            cores_busy: 0.5,
            ..WindowReading::default()
        };
        frames.iter().for_each(|ms| seen.times.record(*ms));
        seen
    }

    fn point(seen: &WindowReading, statistic: Statistic, bar: Bar) -> Point {
        Point::new(3, seen, statistic, bar, 2.0).unwrap()
    }

    #[test]
    fn a_point_holds_by_its_statistic_and_by_its_rate() {
        let bar = Bar { budget_ms: 4.0, frames_per_s: Some(100.0) };
        let times: Vec<f64> = (0..100).map(|at| if at < 95 { 1.0 } else { 10.0 }).collect();
        assert!(point(&seen(&times, Some(100.0)), Statistic::Mean, bar).holds);
        assert!(!point(&seen(&times, Some(100.0)), Statistic::P99, bar).holds);
        assert!(point(&seen(&times, Some(99.1)), Statistic::P50, bar).holds);
        assert!(!point(&seen(&times, Some(98.9)), Statistic::P50, bar).holds, "it leaves frames out");
        let one_hangs = WindowReading { frames_per_s_least: Some(0.0), ..seen(&times, Some(100.0)) };
        let read_late = WindowReading { frames_per_s_least: Some(130.0), ..seen(&times, Some(92.0)) };
        assert!(!point(&read_late, Statistic::P50, bar).holds, "half of them leave frames out");
        assert!(!point(&one_hangs, Statistic::P50, bar).holds, "the others are as fast as ever");
        assert!(point(&seen(&times, None), Statistic::P50, bar).holds, "nobody counts them");
        let behind = |share| WindowReading { ticks_behind_share: share, ..seen(&times, Some(100.0)) };
        assert!(point(&behind(Some(0.009)), Statistic::P50, bar).holds);
        assert!(!point(&behind(Some(0.011)), Statistic::P50, bar).holds, "it slows time, and its frames are short");
        assert!((point(&seen(&times, None), Statistic::Mean, bar).load_share - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_budget_is_what_was_said_or_most_of_the_period() {
        let bar = |budget_ms, hz, rate| Bar::new(budget_ms, hz, &seen(&[1.0], rate));
        assert_eq!(bar(None, None, Some(100.0)).unwrap(), Bar { budget_ms: 9.0, frames_per_s: Some(100.0) });
        assert_eq!(bar(Some(2.0), None, Some(100.0)).unwrap(), Bar { budget_ms: 2.0, frames_per_s: Some(100.0) });
        assert_eq!(bar(None, Some(50.0), Some(49.9)).unwrap(), Bar { budget_ms: 18.0, frames_per_s: Some(50.0) });
        assert_eq!(bar(None, Some(50.0), None).unwrap(), Bar { budget_ms: 18.0, frames_per_s: None });
        assert!(bar(None, None, None).unwrap_err().to_string().contains("--budget-ms"));
    }

    #[test]
    fn counters_are_told_where_there_are_any() {
        let bar = Bar { budget_ms: 4.0, frames_per_s: None };
        let counts = HardwareCounts { instructions: 3_000, cycles: 2_000, cache_misses: 6 };
        // The windows of the pages are longer: there are more frames in them than in these 2 s, which have 6.
        let counted = WindowReading { hardware: Some(counts), ..seen(&[1.0; 8], Some(1.0)) };
        let told = point(&counted, Statistic::Mean, bar);
        assert_eq!((told.instructions_per_cycle, told.cache_misses_per_1000_instructions), (Some(1.5), Some(2.0)));
        assert_eq!((told.instructions_per_frame, told.cache_misses_per_frame), (Some(500.0), Some(1.0)));
        let nothing = WindowReading { hardware: Some(HardwareCounts::default()), ..seen(&[1.0], Some(1.0)) };
        assert_eq!(point(&nothing, Statistic::Mean, bar).instructions_per_cycle, None);
    }

    #[test]
    fn what_the_source_does_not_tell_is_an_error() {
        let bar = Bar { budget_ms: 4.0, frames_per_s: None };
        let error = |seen: &WindowReading, statistic| Point::new(1, seen, statistic, bar, 2.0).unwrap_err().to_string();
        assert!(error(&WindowReading::default(), Statistic::Mean).contains("--seconds"));
        let mut summary = WindowReading::default();
        (summary.times.count, summary.times.sum_ms) = (2.0, 4.0);
        assert!(error(&summary, Statistic::P99).contains("--statistic mean"));
        assert_eq!("p99".parse(), Ok(Statistic::P99));
        assert!("p999".parse::<Statistic>().unwrap_err().contains("mean, p50, p99"));
    }
}
