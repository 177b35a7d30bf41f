//! The report of a density run: what `throng density --json` prints and `report.json` holds, and where it is written.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use throng_history::Machine;

use super::DensityPlan;
use super::forecast::{Forecast, Form};
use super::page;
use super::point::{Point, Statistic};
use crate::charts;
use crate::page::{grouped, number};
use crate::report::{ReportError, ReportFiles};

/// Frame time against the number of instances, or of worlds in one process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    pub form: Form,
    /// What a frame may take, by the run's statistic, and frames that an instance must run to 1 %; null where frames are
    /// not counted.
    pub budget_ms: f64,
    pub frames_per_s_wanted: Option<f64>,
    /// The most that held while no fewer failed; and the fewest that failed, null if none did: then the limit was not
    /// reached.
    pub instances_held: u32,
    pub instances_failed: Option<u32>,
    pub forecast: Option<Forecast>,
    /// Why there is none.
    pub forecast_missing: Option<String>,
    /// By the number of instances.
    pub points: Vec<Point>,
}

impl Curve {
    pub(crate) fn new(form: Form) -> Self {
        Self {
            form,
            budget_ms: 0.0,
            frames_per_s_wanted: None,
            instances_held: 0,
            instances_failed: None,
            forecast: None,
            forecast_missing: None,
            points: Vec::new(),
        }
    }
}

/// The outcome in words, without a full stop.
impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: u32| format!("{} {}", grouped(count.into()), self.form.counted(count));
        write!(f, "{} held {} ms", counted(self.instances_held), number(self.budget_ms))?;
        if let Some(frames_per_s) = self.frames_per_s_wanted {
            write!(f, " at {} frames/s", number(frames_per_s))?;
        }
        match self.instances_failed {
            Some(failed) => write!(f, "; {failed} are too many")?,
            None => write!(f, "; more were not tried")?,
        }
        match (&self.forecast, &self.forecast_missing) {
            (Some(forecast), _) => {
                write!(f, "; forecast: {}", counted(forecast.instances))?;
                if let (Some(low), Some(high)) = (forecast.instances_low, forecast.instances_high) {
                    write!(f, " ({low} to {high} if any one point is left out)")?;
                }
                let percent = 100.0 * forecast.load_share;
                write!(f, ", from {} points at no more than {percent:.0} % of the cores", forecast.points)
            }
            (None, Some(why)) => write!(f, "; no forecast: {why}"),
            (None, None) => Ok(()),
        }
    }
}

/// All of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DensityReport {
    pub passed: bool,
    pub statistic: Statistic,
    /// Cores that instances may use, and the memory nodes to which they were tied in turns; none where they were not.
    pub cores: f64,
    pub nodes: Vec<u32>,
    pub instances_max: u32,
    /// So many must hold. In a run that ends at half load it is the forecast that counts.
    pub instances_wanted: u32,
    pub is_forecast_judged: bool,
    /// Somebody stopped it: the curves are as far as it came.
    pub interrupted: bool,
    /// Why it ended before its time; null if it did not.
    pub ended_early: Option<String>,
    /// Why the processor's counters are missing; null if they are there.
    pub hardware_counts_missing: Option<String>,
    /// Instances first; then worlds in one process, if they were wanted. A curve without points is left out.
    pub curves: Vec<Curve>,
    pub command: String,
    /// Known once it is written.
    pub machine: Option<Machine>,
    /// Where the page is, once it is written.
    pub report: Option<String>,
}

impl DensityReport {
    pub(crate) fn new(plan: &DensityPlan, cores: f64, nodes: Vec<u32>) -> Self {
        Self {
            passed: false,
            statistic: plan.statistic,
            cores,
            nodes,
            instances_max: plan.instances_max,
            instances_wanted: plan.at_least,
            is_forecast_judged: plan.load_share_max.is_some(),
            interrupted: false,
            ended_early: None,
            hardware_counts_missing: None,
            curves: Vec::new(),
            command: plan.command_line.clone(),
            machine: None,
            report: None,
        }
    }

    /// How many instances hold: measured, or forecast if the run was for that; `None` if that cannot be said.
    pub fn instances(&self) -> Option<u32> {
        let curve = self.curves.first()?;
        if self.is_forecast_judged {
            return curve.forecast.as_ref().map(|forecast| forecast.instances);
        }
        Some(curve.instances_held)
    }

    pub(crate) fn judge(&mut self) {
        let is_whole = !self.interrupted && self.ended_early.is_none();
        self.passed = is_whole && self.instances().is_some_and(|instances| instances >= self.instances_wanted);
    }
}

/// Writes `report.json` and `report.html` into `folder`, which is made if it is missing, and notes the page's path.
pub fn write(report: &mut DensityReport, folder: &Path) -> Result<ReportFiles, ReportError> {
    let machine = Machine::here();
    let files = ReportFiles::within(folder);
    report.report = Some(files.html.display().to_string());
    let html = page::page(report, &machine, &charts::density::draw(report)?);
    report.machine = Some(machine);
    files.write(folder, &serde_json::to_value(&*report)?, &html)?;
    Ok(files)
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;
    use crate::density::forecast::{self, Host, Measured};

    fn curve(form: Form, held: u32) -> Curve {
        let point = |instances: u32| Point {
            instances,
            seconds: 10.0,
            frame_ms: 1.0 + 0.05 * f64::from(instances),
            frame_ms_mean: 1.0 + 0.05 * f64::from(instances),
            frame_ms_p50: Some(1.0),
            frame_ms_p99: Some(2.0),
            frame_ms_mean_worst: 1.5,
            frames_per_s: Some(128.0),
            frames_per_s_least: Some(127.5),
            ticks_behind_share: Some(0.001),
            cores_busy: 0.15 * f64::from(instances),
            load_share: 0.075 * f64::from(instances),
            rss_mb: 20.0 * f64::from(instances),
            instructions_per_cycle: Some(1.5),
            instructions_per_frame: Some(3e6),
            cache_misses_per_frame: Some(1e3),
            cache_misses_per_1000_instructions: Some(0.33),
            holds: instances <= held,
        };
        let points: Vec<Point> = (1..=12).map(point).collect();
        let measured = |point: &Point| Measured {
            instances: point.instances,
            frame_ms: point.frame_ms,
            frames_per_s: point.frames_per_s,
            cores_busy: point.cores_busy,
        };
        let measured: Vec<Measured> = points.iter().map(measured).collect();
        let forecast = forecast::forecast(form, &measured, Host { cores: 2.0, budget_ms: 7.0 }).ok();
        Curve {
            budget_ms: 7.0,
            instances_held: held,
            instances_failed: Some(held + 1),
            forecast,
            points,
            ..Curve::new(form)
        }
    }

    /// A run of both forms.
    pub fn report() -> DensityReport {
        DensityReport {
            passed: true,
            statistic: Statistic::Mean,
            cores: 2.0,
            nodes: vec![0, 1],
            instances_max: 12,
            instances_wanted: 5,
            is_forecast_judged: false,
            interrupted: false,
            ended_early: None,
            hardware_counts_missing: None,
            curves: vec![curve(Form::Processes, 8), curve(Form::Worlds, 11)],
            command: "throng density --max 12 -- serve <{port}>".to_owned(),
            machine: None,
            report: None,
        }
    }

    #[test]
    fn a_run_passes_if_as_many_hold_as_are_wanted() {
        let check = |change: &dyn Fn(&mut DensityReport), passed: bool| {
            let mut report = report();
            change(&mut report);
            report.judge();
            assert_eq!(report.passed, passed, "{report:?}");
        };
        check(&|_| {}, true);
        check(&|report| report.instances_wanted = 8, true);
        check(&|report| report.instances_wanted = 9, false);
        check(&|report| report.interrupted = true, false);
        check(&|report| report.ended_early = Some("died".to_owned()), false);
        check(&|report| report.curves.clear(), false);
        let forecast = report().curves[0].forecast.as_ref().unwrap().instances;
        assert!(forecast > 8, "{forecast}");
        let forecast_is_wanted = |report: &mut DensityReport, wanted: u32| {
            (report.is_forecast_judged, report.instances_wanted) = (true, wanted);
        };
        check(&|report| forecast_is_wanted(report, forecast), true);
        check(&|report| forecast_is_wanted(report, forecast + 1), false);
        check(&|report| (report.is_forecast_judged, report.curves[0].forecast) = (true, None), false);
    }

    #[test]
    fn a_curve_says_its_outcome() {
        let said = curve(Form::Processes, 8).to_string();
        assert!(said.starts_with("8 instances held 7 ms; 9 are too many; forecast: "), "{said}");
        assert!(said.ends_with(" % of the cores"), "{said}");
        let why = Some("too few".to_owned());
        let one = Curve { instances_held: 1, forecast_missing: why, ..Curve::new(Form::Worlds) };
        let one = Curve { frames_per_s_wanted: Some(128.0), ..one }.to_string();
        assert!(one.starts_with("1 world in one process held "), "{one}");
        assert!(one.ends_with(" at 128 frames/s; more were not tried; no forecast: too few"), "{one}");
    }

    #[test]
    fn the_files_say_what_was_found() {
        let folder = std::env::temp_dir().join(format!("throng-density-{}", std::process::id()));
        let mut report = report();
        let files = write(&mut report, &folder).unwrap();
        let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&files.json).unwrap()).unwrap();
        assert_eq!((&json["curves"][0]["form"], &json["statistic"]), (&json!("processes"), &json!("mean")));
        assert_eq!(json["curves"][1]["points"][11]["instances"], 12);
        assert_eq!(json["curves"][0]["forecast"]["curve"][0]["instances"], 1);
        assert!(json["machine"]["cores"].is_u64() && json["report"].is_string());
        let html = std::fs::read_to_string(&files.html).unwrap();
        for part in ["<svg", "8 instances", "11 worlds", "forecast", "&lt;{port}&gt;", "memory nodes 0, 1", "</html>"] {
            assert!(html.contains(part), "{part:?} is not in the page");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
