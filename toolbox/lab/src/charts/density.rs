//! The charts of a density run: frame time, cores and the processor's counters against the number of instances.

use super::lines::{Line, LineChart, Stroke};
use super::{BLUE, Chart, ChartError, HALF, ORANGE, PURPLE, RED, TEAL, WIDE, top_above};
use crate::density::{Curve, DensityReport, Form, Point};

/// All charts, in the order of the page. Those of the processor's counters are there where it counted.
pub(crate) fn draw(report: &DensityReport) -> Result<Vec<Chart>, ChartError> {
    let mut charts = vec![frame_times(report)?];
    charts.push(figure(report, "Cores", "busy with all of them", |point| Some(point.cores_busy))?);
    charts.push(figure(report, "Memory", "MB resident, of all of them", |point| Some(point.rss_mb))?);
    if report.hardware_counts_missing.is_none() {
        let note = "fewer: they wait for memory, or share a core with a sibling";
        charts.push(figure(report, "Instructions per cycle", note, |point| point.instructions_per_cycle)?);
        let note = "of the last cache, per 1,000 instructions";
        charts.push(figure(report, "Cache misses", note, |point| point.cache_misses_per_1000_instructions)?);
    }
    Ok(charts)
}

fn frame_times(report: &DensityReport) -> Result<Chart, ChartError> {
    let mut lines = Vec::new();
    for curve in &report.curves {
        let (forecast, beyond) = match curve.form {
            Form::Processes => ("forecast from half load", BLUE),
            Form::Worlds => ("forecast of worlds", PURPLE),
        };
        lines.push(measured(curve, &|point| Some(point.frame_ms)));
        if let Some(found) = &curve.forecast {
            let points = found.curve.iter().map(|point| (f64::from(point.instances), point.frame_ms)).collect();
            lines.push(Line { name: forecast.to_owned(), colour: beyond, stroke: Stroke::Dashed, points });
        }
    }
    let last = last_of(&lines);
    let budgets = report.curves.first().map_or(0.0, |curve| curve.budget_ms);
    let points = vec![(0.0, budgets), (last, budgets)];
    lines.push(Line { name: "budget".to_owned(), colour: RED, stroke: Stroke::Dashed, points });
    // What is far beyond the budget is not worth the room: there all that matters is that it is beyond.
    let top = lines.iter().flat_map(|line| &line.points).map(|(_, ms)| *ms).fold(0.0, f64::max).min(3.0 * budgets);
    let note = format!("ms ({}) against their number", report.statistic.name());
    let chart = draw_lines("Frame time", &note, WIDE, &lines, top_above([top].into_iter()))?;
    Ok(Chart { wide: true, ..chart })
}

fn figure(
    report: &DensityReport,
    title: &'static str,
    note: &str,
    value: impl Fn(&Point) -> Option<f64>,
) -> Result<Chart, ChartError> {
    let lines: Vec<Line> = report.curves.iter().map(|curve| measured(curve, &value)).collect();
    let top = top_above(lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value));
    draw_lines(title, note, HALF, &lines, top)
}

fn measured(curve: &Curve, value: &dyn Fn(&Point) -> Option<f64>) -> Line {
    let points = curve.points.iter().filter_map(|point| Some((f64::from(point.instances), value(point)?)));
    let colour = match curve.form {
        Form::Processes => TEAL,
        Form::Worlds => ORANGE,
    };
    Line {
        name: curve.form.counted(2).to_owned(),
        colour,
        stroke: Stroke::Dotted,
        points: points.filter(|(_, value)| value.is_finite()).collect(),
    }
}

fn last_of(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| &line.points).map(|(instances, _)| *instances).fold(1.0, f64::max)
}

fn draw_lines(title: &str, note: &str, size: (u32, u32), lines: &[Line], top: f64) -> Result<Chart, ChartError> {
    let x_label = |x: &f64| format!("{x:.0}");
    LineChart { title, note, size, x: 0.0..last_of(lines), x_label: &x_label, top, shade: None }.draw(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::report_for_tests;

    #[test]
    fn both_forms_are_drawn_with_their_forecasts_and_the_budget() {
        let mut report = report_for_tests();
        let charts = draw(&report).unwrap();
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["Frame time", "Cores", "Memory", "Instructions per cycle", "Cache misses"]);
        assert_eq!(charts[0].legend.len(), 5, "{:?}", charts[0].legend);
        assert!(charts.iter().all(|chart| chart.svg.contains("<svg")));

        report.hardware_counts_missing = Some("a virtual machine".to_owned());
        report.curves.truncate(1);
        report.curves[0].forecast = None;
        let charts = draw(&report).unwrap();
        assert_eq!((charts.len(), charts[0].legend.len()), (3, 2));
    }
}
