//! Density: how many instances of a program a host holds.
//!
//! Any program that tells its frame times is started once, twice, and so on, each instance beside the others; with every
//! number of them the time of a frame is measured until it is over the budget. What comes of it is a curve of frame time
//! against instances, the most that hold, and a forecast of that number from those measurements alone that were taken at
//! no more than half of the host's load: it tells in minutes what filling the host would take hours for. The host must
//! have nothing else to do: only the load of the measured instances is seen.
//!
//! ```text
//!        ┌────────── next number (search) <──────────────┐
//!        v                                               │
//! start or end instances ─ ready ─ settle ─ window ─> point: frame time, rate, cores, memory, processor's counters
//!                                             ^          └─> curve ─> held, forecast ─> report.json, report.html
//!        pages of metrics, lines of log ──────┘
//! ```
//!
//! Frame times come from a page of metrics in Prometheus' format ([`exposition`]) or from lines of a log ([`log_pattern`]).
//! Processor time is the kernel's word about the instance's whole process group. Where a host has several memory nodes,
//! instances are tied to them in turns.
//!
//! The same can be done within one process that holds so many worlds ([`Form::Worlds`]), to hold both forms of hosting
//! against each other.
//!
//! Runs on the caller's thread; one thread per instance reads what it writes. No instance outlives the run: each is asked
//! to end, then killed with all that it has started, and a watchdog kills them if this process dies. What leaves its
//! process group on purpose, as a daemon does, is out of reach.
//!
//! Cost beside the instances: a request per instance at the begin and end of a window (for gauges one a second), and the
//! reading of what they write.
//!
//! [`exposition`]: FrameMetric
//! [`log_pattern`]: LogPattern

mod course;
mod error;
mod exposition;
mod fleet;
mod forecast;
mod frame_times;
mod hardware;
mod http;
mod instance;
mod log_pattern;
mod page;
mod placeholders;
mod point;
mod ports;
mod report;
mod search;
mod ticks_behind;
mod watch;
mod watchdog;
mod window;

pub use course::{Progress, run};
pub use error::DensityError;
pub use exposition::{FrameMetric, FrameMetricError, Unit};
pub use forecast::{CurvePoint, Forecast, Form};
pub use log_pattern::{LogPattern, LogPatternError};
pub use point::{Point, Statistic};
pub use report::{Curve, DensityReport, write};
pub use watch::FrameSource;

#[cfg(test)]
pub(crate) use report::tests::report as report_for_tests;

/// What to measure, and how.
#[derive(Debug, Clone)]
pub struct DensityPlan {
    /// Program and arguments. `{index}`, `{port}`, `{metrics_port}` and `{worlds}` in them are replaced for each instance.
    pub command: Vec<String>,
    /// The most instances that are tried (1 to 4,096). Too low → the host's limit is not seen, only forecast.
    pub instances_max: u32,
    pub source: FrameSource,
    pub statistic: Statistic,
    /// What a frame may take, by that statistic (ms, above 0). `None` = nine tenths of the period, which is told by how
    /// many frames the fewest instances run in a second; lines of a log do not tell it.
    pub budget_ms: Option<f64>,
    /// Frames per second that each instance must keep, to 1 %; of a log, lines that it must write, which need not be one for
    /// each frame. `None` = those of the fewest instances.
    pub hz: Option<f64>,
    /// Length of a window (s, >= 1). Too low → noise, of pages that are published once a second above all.
    pub seconds: u32,
    /// Waited for before each window (s). Too low → instances that have just started count as what they are not.
    pub settle_s: u32,
    /// An instance must show its first frame time within this long (s, >= 1).
    pub ready_within_s: u32,
    /// Numbers of instances that the sweep measures (2 to 4,096), at even steps from 1 to the most.
    pub points: u32,
    /// End the sweep when the instances take more than this share of the host's cores: for the forecast alone.
    pub load_share_max: Option<f64>,
    /// Measure worlds in one process as well.
    pub worlds: bool,
    /// Tie instances to memory nodes in turns, where there are several.
    pub spread_over_nodes: bool,
    /// Ports are looked for from here on.
    pub first_port: u16,
    /// The run has passed if so many instances hold.
    pub at_least: u32,
    /// The command line as the person wrote it, for the report.
    pub command_line: String,
}

impl DensityPlan {
    /// Half of the host's load: what a forecast is made from.
    pub const HALF_LOAD: f64 = forecast::LOAD_SHARE_MAX;
    /// Below the ports that the kernel hands out by itself.
    pub const FIRST_PORT: u16 = 20_000;

    /// Whether a rate that was counted is that of the frames. Somebody who says how many lines a log is to have may well mean
    /// one in a hundred.
    fn counts_every_frame(&self) -> bool {
        !(matches!(self.source, FrameSource::Log(_)) && self.hz.is_some())
    }

    /// Finds mistakes before anything is started.
    pub fn check(&self) -> Result<(), DensityError> {
        if self.worlds && !self.command.iter().any(|word| word.contains(placeholders::WORLDS)) {
            return Err(DensityError::NoWorlds);
        }
        if self.load_share_max.is_some() && self.statistic == Statistic::P99 {
            return Err(DensityError::NoForecast(forecast::NoForecast::OfSlowest));
        }
        let url = match &self.source {
            FrameSource::Metrics { url, .. } => url,
            FrameSource::Log(_) if self.budget_ms.is_none() => return Err(DensityError::NoBudgetOfLog),
            FrameSource::Log(_) => return Ok(()),
        };
        http::parts(url)?;
        if self.instances_max > 1 && placeholders::apart_in(url).next().is_none() {
            return Err(DensityError::OneAddress { url: url.clone() });
        }
        let is_told = |name: &&'static str| self.command.iter().any(|word| word.contains(name));
        match placeholders::apart_in(url).find(|name| !is_told(name)) {
            Some(name) => Err(DensityError::NotTold { url: url.clone(), name }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn plan(command: &str, url: &str) -> DensityPlan {
        DensityPlan {
            command: command.split(' ').map(str::to_owned).collect(),
            instances_max: 4,
            source: FrameSource::Metrics { url: url.to_owned(), metric: FrameMetric::new("frame_ms", None).unwrap() },
            statistic: Statistic::Mean,
            budget_ms: None,
            hz: None,
            seconds: 1,
            settle_s: 0,
            ready_within_s: 1,
            points: 4,
            load_share_max: None,
            worlds: false,
            spread_over_nodes: true,
            first_port: DensityPlan::FIRST_PORT,
            at_least: 1,
            command_line: String::new(),
        }
    }

    #[test]
    fn mistakes_are_found_before_anything_is_started() {
        let told = |plan: DensityPlan, part: &str| {
            let error = plan.check().unwrap_err().to_string();
            assert!(error.contains(part), "{part:?} is not in {error}");
        };
        let url = "http://127.0.0.1:{metrics_port}/metrics";
        plan("serve --metrics {metrics_port}", url).check().unwrap();
        plan("serve {index}", "http://127.0.0.1:90{index}/metrics").check().unwrap();
        told(plan("serve", "http://127.0.0.1:9100/metrics"), "write {metrics_port}");
        told(plan("serve", url), "the command has not");
        told(plan("serve", "https://host:1/{index}"), "http://HOST:PORT/PATH");
        told(DensityPlan { worlds: true, ..plan("serve {metrics_port}", url) }, "{worlds}");
        let at_half_load = DensityPlan { load_share_max: Some(0.5), ..plan("serve {metrics_port}", url) };
        told(DensityPlan { statistic: Statistic::P99, ..at_half_load }, "--statistic mean");
        DensityPlan { instances_max: 1, ..plan("serve", "http://127.0.0.1:9100/metrics") }.check().unwrap();
        let source = FrameSource::Log("{ms} ms".parse().unwrap());
        let logged = DensityPlan { source, hz: Some(2.0), ..plan("serve", url) };
        told(logged.clone(), "--budget-ms");
        DensityPlan { budget_ms: Some(4.0), ..logged }.check().unwrap();
    }

    #[test]
    fn a_log_with_a_rate_of_its_own_does_not_tell_how_many_frames_there_are() {
        let metrics = plan("serve {metrics_port}", "http://127.0.0.1:{metrics_port}/metrics");
        let logged = DensityPlan { source: FrameSource::Log("{ms} ms".parse().unwrap()), ..metrics.clone() };
        assert!(logged.counts_every_frame() && DensityPlan { hz: Some(2.0), ..metrics }.counts_every_frame());
        assert!(!DensityPlan { hz: Some(2.0), ..logged }.counts_every_frame());
    }
}
