//! The charts of a load run, as SVG that stands inside the page.
//!
//! Titles and legends are the page's, in its own type; a chart holds axes, lines and the shaded steady window, so
//! that all of them line up. Every chart starts at zero: a server's figures are compared by their size.

use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;

use crate::load::LoadRun;
use crate::seconds::Second;

pub(crate) use by_build::chart_by_build;
pub(crate) use curve::{CurveLine, draw_curve};
pub(crate) use lines::{Line, LineChart, Stroke};

mod by_build;
mod curve;
pub(crate) mod density;
mod lines;

/// Width and height of charts (px): of one that has a row to itself, and of one of two in a row.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub wide: (u32, u32),
    pub half: (u32, u32),
}

const WIDE: (u32, u32) = (1120, 260);
const HALF: (u32, u32) = (548, 230);

pub(crate) const TEAL: RGBColor = RGBColor(15, 118, 110);
pub(crate) const ORANGE: RGBColor = RGBColor(217, 96, 26);
pub(crate) const BLUE: RGBColor = RGBColor(52, 98, 171);
pub(crate) const RED: RGBColor = RGBColor(178, 34, 52);
pub(crate) const PURPLE: RGBColor = RGBColor(112, 72, 152);
pub(crate) const OLIVE: RGBColor = RGBColor(124, 122, 30);
pub(crate) const SHADE: RGBColor = RGBColor(238, 243, 241);
pub(crate) const RULE: RGBColor = RGBColor(226, 226, 222);
pub(crate) const LABEL: RGBColor = RGBColor(105, 105, 100);

/// More bins than this on half a page are narrower than a reader can tell apart.
const BINS_MAX: usize = 36;

/// More points than this on the page's width fall on the same pixel.
const POINTS_MAX: usize = 1000;

/// A chart and what the page writes around it.
pub(crate) struct Chart {
    pub title: String,
    pub note: String,
    pub legend: Vec<(String, String)>,
    pub wide: bool,
    pub svg: String,
}

/// The drawing library refused: a bug here rather than a mistake of whoever asked for the report.
#[derive(Debug, thiserror::Error)]
#[error("the chart \"{title}\" cannot be drawn: {reason}")]
pub struct ChartError {
    title: String,
    reason: String,
}

/// All charts, in the order of the page.
pub(crate) fn draw_all(run: &LoadRun) -> Result<Vec<Chart>, ChartError> {
    let mut charts = Vec::from(draw_first(run, Sizes { wide: WIDE, half: HALF })?);
    charts.extend([packets(run)?, players(run)?, cores(run)?, memory(run)?]);
    Ok(charts)
}

/// What is looked at first, in the order of the page: a wide chart, and two that share a row.
pub(crate) fn draw_first(run: &LoadRun, sizes: Sizes) -> Result<[Chart; 3], ChartError> {
    Ok([frame_times(run, sizes.wide)?, distribution(run, sizes.half)?, players_by_kind(run, sizes.half)?])
}

fn frame_times(run: &LoadRun, size: (u32, u32)) -> Result<Chart, ChartError> {
    let lines = [
        LineOverTime::solid("slowest frame of the second", ORANGE, |second| second.frame_ms_max),
        LineOverTime::solid("median frame", TEAL, |second| second.frame_ms_p50),
        LineOverTime::dashed("budget of a frame", RED, |second| second.frame_budget_ms),
    ];
    let note = "ms, by second of the server's life; the steady window is shaded";
    let chart = draw_over_time(run, "Frame time", note, size, &lines)?;
    Ok(Chart { wide: true, ..chart })
}

fn packets(run: &LoadRun) -> Result<Chart, ChartError> {
    let lines = [
        LineOverTime::solid("out", BLUE, |second| second.packets_out as f64),
        LineOverTime::solid("in", ORANGE, |second| second.packets_in as f64),
    ];
    draw_over_time(run, "Packets", "per second, as the server counts them", HALF, &lines)
}

fn players(run: &LoadRun) -> Result<Chart, ChartError> {
    let lines = [
        LineOverTime::solid("players", ORANGE, |second| second.players as f64),
        LineOverTime::solid("worlds awake", TEAL, |second| second.worlds_awake as f64),
        LineOverTime::dashed("worlds", BLUE, |second| second.worlds as f64),
    ];
    draw_over_time(run, "Players and worlds", "at the end of each second", HALF, &lines)
}

/// Kinds beyond these would have colours that nobody can tell apart; those with the most players are drawn.
const KIND_COLOURS: [RGBColor; 6] = [TEAL, ORANGE, BLUE, RED, PURPLE, OLIVE];

fn players_by_kind(run: &LoadRun, size: (u32, u32)) -> Result<Chart, ChartError> {
    let most = |kind: &str| run.seconds.iter().map(|second| second.players_of(kind)).fold(0.0, f64::max);
    let mut kinds: Vec<&str> = Second::kinds(&run.seconds).into_iter().collect();
    kinds.sort_by(|one, other| most(other).total_cmp(&most(one)));
    let lines: Vec<LineOverTime> = kinds
        .iter()
        .zip(KIND_COLOURS)
        .map(|(&kind, colour)| {
            let name = kind.to_owned();
            let value = Box::new({
                let name = name.clone();
                move |second: &Second| second.players_of(&name)
            });
            LineOverTime { name, colour, stroke: Stroke::Solid, value }
        })
        .collect();
    draw_over_time(run, "Players by kind of world", "at the end of each second", size, &lines)
}

fn memory(run: &LoadRun) -> Result<Chart, ChartError> {
    let lines = [LineOverTime::solid("server", TEAL, |second| second.rss_mb)];
    draw_over_time(run, "Memory", "MB resident", HALF, &lines)
}

fn cores(run: &LoadRun) -> Result<Chart, ChartError> {
    let lines = [LineOverTime::solid("server", BLUE, |second| second.cpu_cores)];
    draw_over_time(run, "Processor", "cores busy with the server", HALF, &lines)
}

/// One line of a chart over time.
struct LineOverTime {
    name: String,
    colour: RGBColor,
    stroke: Stroke,
    value: Box<dyn Fn(&Second) -> f64>,
}

impl LineOverTime {
    fn solid(name: &'static str, colour: RGBColor, value: fn(&Second) -> f64) -> Self {
        Self { name: name.to_owned(), colour, stroke: Stroke::Solid, value: Box::new(value) }
    }

    fn dashed(name: &'static str, colour: RGBColor, value: fn(&Second) -> f64) -> Self {
        Self { name: name.to_owned(), colour, stroke: Stroke::Dashed, value: Box::new(value) }
    }
}

fn draw_over_time(
    run: &LoadRun,
    title: &str,
    note: &str,
    size: (u32, u32),
    lines: &[LineOverTime],
) -> Result<Chart, ChartError> {
    let at = |index: usize| run.seconds.get(index).map_or(0.0, |second| second.second as f64);
    let first = at(0);
    let last = at(run.seconds.len().saturating_sub(1)).max(first + 1.0);
    let top = top_above(lines.iter().flat_map(|line| run.seconds.iter().map(&line.value)));
    let shade_begin = at(run.window.start);
    let shade_end = at(run.window.end.saturating_sub(1)).max(shade_begin);
    let shade = (!run.window.is_empty()).then_some((shade_begin, shade_end));
    let drawn = lines.iter().map(|line| Line {
        name: line.name.clone(),
        colour: line.colour,
        stroke: line.stroke,
        points: thinned(&run.seconds, &line.value),
    });
    let drawn: Vec<Line> = drawn.collect();
    LineChart { title, note, size, x: first..last, x_label: &|x| format!("{x:.0} s"), top, shade }.draw(&drawn)
}

/// At most [`POINTS_MAX`] points of a line. Where seconds share a point the highest stands for them, so that the one
/// bad second of a long run is still seen.
fn thinned(seconds: &[Second], value: &dyn Fn(&Second) -> f64) -> Vec<(f64, f64)> {
    let share = seconds.len().div_ceil(POINTS_MAX).max(1);
    let highest = |seconds: &[Second]| {
        let points = seconds.iter().map(|second| (second.second as f64, value(second)));
        points.filter(|(_, value)| value.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    seconds.chunks(share).filter_map(highest).collect()
}

/// How frame times spread. From the server's own histogram if it sent one; else from the worst frame of each second,
/// which shows the tail that matters.
fn distribution(run: &LoadRun, size: (u32, u32)) -> Result<Chart, ChartError> {
    let title = "Distribution of frame times";
    let sent = run.report.more.get("frame_ms_histogram").and_then(histogram_sent);
    let (bins, note, name) = match sent {
        Some(bins) => (bins, "frames of the steady window, by their time in ms", "frames"),
        None => {
            let window = run.seconds.get(run.window.clone()).unwrap_or(&[]);
            let bins = count_into_bins(window.iter().map(|second| second.frame_ms_max));
            (bins, "seconds of the steady window, by their slowest frame in ms", "seconds")
        }
    };
    let right = bins.last().map_or(1.0, |bin| bin.end_ms).max(f64::EPSILON);
    let top = top_above(bins.iter().map(|bin| bin.count as f64));
    let svg = draw(title, size, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_right(14)
            .x_label_area_size(24)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..right, 0.0..top)
            .map_err(text)?;
        configure(&mut chart, &|x| format!("{} ms", short(x)))?;
        let bars = bins.iter().filter(|bin| bin.count > 0).map(|bin| {
            let gap_ms = (bin.end_ms - bin.begin_ms) * 0.08;
            let corners = [(bin.begin_ms + gap_ms, 0.0), (bin.end_ms - gap_ms, bin.count as f64)];
            Rectangle::new(corners, TEAL.filled())
        });
        chart.draw_series(bars).map_err(text)?;
        Ok(())
    })?;
    let legend = vec![(name.to_owned(), hex(TEAL))];
    Ok(Chart { title: title.to_owned(), note: note.to_owned(), legend, wide: false, svg })
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bin {
    begin_ms: f64,
    end_ms: f64,
    count: u64,
}

/// Reads `[[up_to_ms, frames], ...]`, ascending.
fn histogram_sent(value: &Value) -> Option<Vec<Bin>> {
    let mut begin_ms = 0.0;
    let bins = value.as_array()?.iter().map(|pair| {
        let (end_ms, count) = (pair.get(0)?.as_f64()?, pair.get(1)?.as_u64()?);
        let bin = Bin { begin_ms, end_ms, count };
        let ascending = end_ms > begin_ms;
        begin_ms = end_ms;
        ascending.then_some(bin)
    });
    bins.collect()
}

fn count_into_bins(values: impl Iterator<Item = f64>) -> Vec<Bin> {
    let values: Vec<f64> = values.filter(|value| value.is_finite() && *value >= 0.0).collect();
    let count = values.len().clamp(1, BINS_MAX);
    let width_ms = top_above(values.iter().copied()) / count as f64;
    let mut bins: Vec<Bin> = (0..count)
        .map(|i| Bin { begin_ms: width_ms * i as f64, end_ms: width_ms * (i + 1) as f64, count: 0 })
        .collect();
    for value in values {
        bins[((value / width_ms) as usize).min(count - 1)].count += 1;
    }
    bins
}

fn draw(
    title: &str,
    size: (u32, u32),
    paint: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), String>,
) -> Result<String, ChartError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = paint(&area).and_then(|()| area.present().map_err(text));
        drawn.map_err(|reason| ChartError { title: title.to_owned(), reason })?;
    }
    Ok(svg)
}

type Plane<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn configure(chart: &mut Plane<'_, '_>, x_label: &dyn Fn(&f64) -> String) -> Result<(), String> {
    let label = ("sans-serif", 14).into_font().color(&LABEL);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(RULE)
        .light_line_style(TRANSPARENT)
        .axis_style(RULE)
        .label_style(label)
        .x_labels(8)
        .y_labels(5)
        .x_label_formatter(x_label)
        .y_label_formatter(&short)
        .draw()
        .map_err(text)
}

/// A round number above all values, so that the highest is not on the edge.
pub(crate) fn top_above(values: impl Iterator<Item = f64>) -> f64 {
    let highest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if highest <= 0.0 {
        return 1.0;
    }
    let step = 10_f64.powf(highest.log10().floor()) / 4.0;
    ((highest * 1.05) / step).ceil() * step
}

/// A number in few letters: 0.25, 3, 1.5k, 20k, 1.2M.
pub(crate) fn short(value: &f64) -> String {
    let (scaled, letter) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e3 => (value / 1e3, "k"),
        _ => (*value, ""),
    };
    let digits = format!("{scaled:.2}");
    format!("{}{letter}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// In the letters that the drawing library writes, so that a style can name what it has drawn.
pub(crate) fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        let check = |value: f64, expect| assert_eq!(short(&value), expect);
        check(0.0, "0");
        check(0.25, "0.25");
        check(3.0, "3");
        check(1_500.0, "1.5k");
        check(20_000.0, "20k");
        check(1_200_000.0, "1.2M");
    }

    #[test]
    fn the_top_is_round_and_above() {
        let check = |value: f64, expect| assert_eq!(top_above([value].into_iter()), expect);
        check(0.0, 1.0);
        check(f64::NAN, 1.0);
        check(1.0, 1.25);
        check(16.7, 20.0);
        check(950.0, 1_000.0);
        check(20_000.0, 22_500.0);
    }

    #[test]
    fn one_bad_second_of_a_day_is_still_drawn() {
        let second = |second| Second { second, frame_ms_max: 1.0, ..Second::default() };
        let mut day: Vec<Second> = (0..86_400).map(second).collect();
        day[40_003].frame_ms_max = 900.0;
        let points = thinned(&day, &|second| second.frame_ms_max);
        assert!(points.len() <= POINTS_MAX);
        assert!(points.contains(&(40_003.0, 900.0)));
        assert_eq!(thinned(&day[..3], &|second| second.frame_ms_max).len(), 3);
    }

    #[test]
    fn every_value_is_in_a_bin() {
        let bins = count_into_bins([0.0, 1.0, 1.0, 9.9, 10.0, f64::NAN].into_iter());
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), 5);
        assert_eq!(count_into_bins([].into_iter()).iter().map(|bin| bin.count).sum::<u64>(), 0);
    }

    #[test]
    fn a_sent_histogram_must_ascend() {
        let bins = histogram_sent(&json!([[0.5, 10], [1.0, 3]])).unwrap();
        assert_eq!(bins[1], Bin { begin_ms: 0.5, end_ms: 1.0, count: 3 });
        assert_eq!(histogram_sent(&json!([[1.0, 10], [0.5, 3]])), None);
        assert_eq!(histogram_sent(&json!("no")), None);
    }
}
