//! The charts of a density run: frame time, cores and the processor's counters against the number of instances.

use plotters::prelude::*;

use super::{BLUE, Chart, ChartError, HALF, ORANGE, PURPLE, RED, TEAL, WIDE, configure, hex, text, top_above};
use crate::density::{Curve, DensityReport, Form, Point};

/// One line over the number of instances.
struct Line {
    name: &'static str,
    colour: RGBColor,
    dashed: bool,
    points: Vec<(f64, f64)>,
}

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
        let (measured, forecast, colour, beyond) = match curve.form {
            Form::Processes => ("instances", "forecast from half load", TEAL, BLUE),
            Form::Worlds => ("worlds in one process", "forecast of worlds", ORANGE, PURPLE),
        };
        lines.push(Line {
            name: measured,
            colour,
            dashed: false,
            points: points(curve, &|point| Some(point.frame_ms)),
        });
        if let Some(found) = &curve.forecast {
            let points = found.curve.iter().map(|point| (f64::from(point.instances), point.frame_ms)).collect();
            lines.push(Line { name: forecast, colour: beyond, dashed: true, points });
        }
    }
    let last = last_of(&lines);
    let budgets = report.curves.first().map_or(0.0, |curve| curve.budget_ms);
    lines.push(Line { name: "budget", colour: RED, dashed: true, points: vec![(0.0, budgets), (last, budgets)] });
    // What is far beyond the budget is not worth the room: there all that matters is that it is beyond.
    let top = lines.iter().flat_map(|line| &line.points).map(|(_, ms)| *ms).fold(0.0, f64::max).min(3.0 * budgets);
    let note = format!("ms ({}) against their number", report.statistic.name());
    draw_lines("Frame time", note, WIDE, &lines, top_above([top].into_iter()))
}

fn figure(
    report: &DensityReport,
    title: &'static str,
    note: &str,
    value: impl Fn(&Point) -> Option<f64>,
) -> Result<Chart, ChartError> {
    let line = |curve: &Curve| {
        let (name, colour) = match curve.form {
            Form::Processes => ("instances", TEAL),
            Form::Worlds => ("worlds in one process", ORANGE),
        };
        Line { name, colour, dashed: false, points: points(curve, &value) }
    };
    let lines: Vec<Line> = report.curves.iter().map(line).collect();
    let top = top_above(lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value));
    draw_lines(title, note.to_owned(), HALF, &lines, top)
}

fn points(curve: &Curve, value: &dyn Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
    let points = curve.points.iter().filter_map(|point| Some((f64::from(point.instances), value(point)?)));
    points.filter(|(_, value)| value.is_finite()).collect()
}

fn last_of(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|line| &line.points).map(|(instances, _)| *instances).fold(1.0, f64::max)
}

fn draw_lines(title: &str, note: String, size: (u32, u32), lines: &[Line], top: f64) -> Result<Chart, ChartError> {
    let last = last_of(lines);
    let svg = super::draw(title, size, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_right(14)
            .x_label_area_size(24)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..last, 0.0..top)
            .map_err(text)?;
        configure(&mut chart, &|x| format!("{x:.0}"))?;
        for line in lines {
            // What is beyond the top runs along the edge.
            let points: Vec<(f64, f64)> = line.points.iter().map(|&(at, value)| (at, value.min(top))).collect();
            let style = line.colour.stroke_width(2);
            if line.dashed {
                chart.draw_series(DashedLineSeries::new(points, 7, 5, style)).map_err(text)?;
            } else {
                chart.draw_series(LineSeries::new(points.iter().copied(), style)).map_err(text)?;
                let dots = points.iter().map(|point| Circle::new(*point, 3, line.colour.filled()));
                chart.draw_series(dots).map_err(text)?;
            }
        }
        Ok(())
    })?;
    let legend = lines.iter().map(|line| (line.name.to_owned(), hex(line.colour))).collect();
    Ok(Chart { title: title.to_owned(), note, legend, wide: size == WIDE, svg })
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
