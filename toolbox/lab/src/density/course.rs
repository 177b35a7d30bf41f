//! A run's course: for each number of instances that the search asks for, start or end some, settle, watch, judge.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use throng_platform::signals::StopFlag;
use throng_platform::{cores, limits};

use super::DensityPlan;
use super::error::DensityError;
use super::fleet::Fleet;
use super::forecast::{Form, Host, Measured, NoForecast, forecast};
use super::point::{Bar, Point, Statistic};
use super::report::{Curve, DensityReport};
use super::search::{Search, Verdict, first_failed, held};
use super::window::{self, Hardware, wait_until};

/// Pipes of 4,096 instances, and counters of the threads of some hundred.
const OPEN_FILES: u64 = 16_384;

/// A number of instances has failed if it did in so many windows, one after the other: all that is larger counts for
/// nothing then, which one noisy window must not decide.
const WINDOWS_OF_A_FAILURE: u32 = 2;

/// How far a run is.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Instances are started or ended until there are so many, or one that holds so many worlds.
    Starting {
        form: Form,
        instances: u32,
    },
    /// Once a second. A number that has failed is measured again.
    Measuring {
        form: Form,
        instances: u32,
        second: u32,
        of: u32,
    },
    Measured {
        form: Form,
        point: Point,
    },
    Stopping,
}

/// Runs the plan to its end. `Ok` means that there is a report; whether it is good is in `passed`.
pub fn run(
    plan: &DensityPlan,
    stop: &StopFlag,
    progress: &mut dyn FnMut(Progress),
) -> Result<DensityReport, DensityError> {
    plan.check()?;
    // Less is enough for a small run, and what finds no room is told then. Instances inherit it, which the guide says: to
    // lower it again between fork and exec takes `unsafe`.
    let _ = limits::raise_open_files(OPEN_FILES);
    let mut fleet = Fleet::new(plan)?;
    let mut report = DensityReport::new(plan, usable_cores(), fleet.nodes());
    let mut hardware = Hardware::default();
    let forms = if plan.worlds { &[Form::Processes, Form::Worlds][..] } else { &[Form::Processes][..] };
    for &form in forms {
        let mut curve = Curve::new(form);
        let swept = sweep(plan, &mut fleet, &mut hardware, &mut curve, stop, report.cores, progress);
        conclude(&mut curve, plan, report.cores);
        if !curve.points.is_empty() {
            report.curves.push(curve);
        }
        match swept {
            Ok(()) => {}
            Err(error) if report.curves.is_empty() => return Err(error),
            Err(DensityError::Interrupted) => {
                report.interrupted = true;
                break;
            }
            Err(error) => {
                report.ended_early = Some(error.to_string());
                break;
            }
        }
    }
    progress(Progress::Stopping);
    fleet.end_beyond(0);
    report.hardware_counts_missing = hardware.refused.map(|error| error.to_string());
    report.judge();
    Ok(report)
}

fn usable_cores() -> f64 {
    let cores = cores::usable();
    cores.quota.unwrap_or(f64::INFINITY).min(cores.affinity as f64)
}

/// Measures one curve; what was measured until an error is in it.
fn sweep(
    plan: &DensityPlan,
    fleet: &mut Fleet<'_>,
    hardware: &mut Hardware,
    curve: &mut Curve,
    stop: &StopFlag,
    cores: f64,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), DensityError> {
    let form = curve.form;
    let search = Search::new(plan.instances_max, plan.points, plan.load_share_max);
    let mut found = BTreeMap::new();
    let mut bar = None;
    while let Some(instances) = search.next(&found) {
        progress(Progress::Starting { form, instances });
        match form {
            Form::Processes => fleet.bring_to(instances as usize, 1, stop)?,
            Form::Worlds => {
                fleet.end_beyond(0);
                fleet.bring_to(1, instances, stop)?;
            }
        }
        wait_until(Instant::now() + Duration::from_secs(plan.settle_s.into()), stop)?;
        fleet.check()?;
        let mut windows_left = WINDOWS_OF_A_FAILURE;
        let point = loop {
            let seen = window::watch(fleet, plan.seconds, hardware, stop, &mut |second| {
                progress(Progress::Measuring { form, instances, second, of: plan.seconds });
            })?;
            let bar = match bar {
                Some(bar) => bar,
                None => *bar.insert(Bar::new(plan.budget_ms, plan.hz, &seen)?),
            };
            (curve.budget_ms, curve.frames_per_s_wanted) = (bar.budget_ms, bar.frames_per_s);
            let point = Point::new(instances, &seen, plan.statistic, bar, cores)?;
            windows_left -= 1;
            if point.holds || windows_left == 0 {
                break point;
            }
        };
        found.insert(instances, Verdict { holds: point.holds, load_share: point.load_share });
        curve.points.push(point.clone());
        progress(Progress::Measured { form, point });
    }
    Ok(())
}

/// What follows from the points.
fn conclude(curve: &mut Curve, plan: &DensityPlan, cores: f64) {
    curve.points.sort_by_key(|point| point.instances);
    let found = |point: &Point| (point.instances, Verdict { holds: point.holds, load_share: point.load_share });
    let found: BTreeMap<u32, Verdict> = curve.points.iter().map(found).collect();
    (curve.instances_held, curve.instances_failed) = (held(&found), first_failed(&found));
    let measured = |point: &Point| Measured {
        instances: point.instances,
        frame_ms: point.frame_ms,
        frames_per_s: point.frames_per_s.filter(|_| plan.counts_every_frame()),
        cores_busy: point.cores_busy,
    };
    let measured: Vec<Measured> = curve.points.iter().map(measured).collect();
    let forecast = match (curve.form, plan.statistic) {
        (Form::Processes, Statistic::P99) => Err(NoForecast::OfSlowest),
        (form, _) => forecast(form, &measured, Host { cores, budget_ms: curve.budget_ms }),
    };
    match forecast {
        Ok(forecast) => curve.forecast = Some(forecast),
        Err(why) => curve.forecast_missing = Some(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::{report_for_tests, tests::plan};

    #[test]
    fn of_instances_no_p99_is_forecast() {
        let check = |statistic, form, forecast: bool| {
            let points = report_for_tests().curves.swap_remove(0).points;
            let mut curve = Curve { budget_ms: 7.0, points, ..Curve::new(form) };
            conclude(&mut curve, &DensityPlan { statistic, ..plan("serve", "http://127.0.0.1:1/") }, 2.0);
            assert_eq!(
                (curve.forecast.is_some(), curve.forecast_missing.is_some()),
                (forecast, !forecast),
                "{curve:?}"
            );
        };
        check(Statistic::Mean, Form::Processes, true);
        check(Statistic::P99, Form::Processes, false);
        check(Statistic::P99, Form::Worlds, true);
    }
}
