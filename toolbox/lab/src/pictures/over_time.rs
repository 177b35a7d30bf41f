//! Runs side by side, second by second: what a bench that compares two ways of doing a thing has seen of each.

use maud::html;
use throng_history::Machine;

use super::error::PictureError;
use super::sheet::{self, CAPTION, MARGIN, Sheet, TOP, WIDTH};
use crate::charts::{Line, LineChart, ORANGE, Stroke, TEAL, short, top_above};

const SIZE: (u32, u32) = (WIDTH - 2 * MARGIN, 190);
/// Between two charts (px).
const GAP: u32 = 18;

/// A figure of two runs.
pub struct FigureOverTime<'a> {
    pub title: &'a str,
    /// What it is measured in, and over what.
    pub note: &'a str,
    /// `(second, figure)` of each run, in the order of the runs' names.
    pub runs: [Vec<(f64, f64)>; 2],
}

/// What stands around the figures.
pub struct RunsOverTime<'a> {
    pub title: &'a str,
    pub subtitle: &'a str,
    /// The command that measured them, on this machine.
    pub command: &'a str,
    /// The first run in a warm colour, the second in a cool one.
    pub names: [&'a str; 2],
    pub figures: &'a [FigureOverTime<'a>],
}

/// One picture, a chart for each figure.
pub fn draw_over_time(runs: &RunsOverTime<'_>) -> Result<String, PictureError> {
    let points = || runs.figures.iter().flat_map(|figure| &figure.runs).flatten();
    let last = points().map(|(second, _)| *second).fold(1.0, f64::max);
    let mut charts = Vec::new();
    for FigureOverTime { title, note, runs: of_runs } in runs.figures {
        let top = top_above(of_runs.iter().flatten().map(|(_, figure)| *figure));
        let line = |((name, colour), points): ((&&str, _), &Vec<(f64, f64)>)| Line {
            name: (*name).to_owned(),
            colour,
            stroke: Stroke::Solid,
            points: points.clone(),
        };
        let lines: Vec<Line> = runs.names.iter().zip([ORANGE, TEAL]).zip(of_runs).map(line).collect();
        let x_label = |second: &f64| format!("{} s", short(second));
        let chart = LineChart { title, note, size: SIZE, x: 0.0..last, x_label: &x_label, top, shade: None };
        charts.push(chart.draw(&lines)?);
    }
    let step = CAPTION + SIZE.1 + GAP;
    let picture = html! {
        @for (place, chart) in (0..).zip(&charts) {
            (sheet::chart(chart, MARGIN, TOP + place * step, SIZE.0))
        }
    };
    let machine = Machine::here();
    let source = format!("{} · {}, {} cores", runs.command, machine.cpu, machine.cores);
    let sheet = Sheet { title: runs.title, subtitle: runs.subtitle, source: &source };
    Ok(sheet.draw((step * charts.len() as u32).saturating_sub(GAP), &picture))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_runs_of_each_figure_are_drawn_and_named() {
        let figure = |title| FigureOverTime {
            title,
            note: "MB",
            runs: [vec![(0.0, 1.0), (1.0, 900.0)], vec![(0.0, 1.0), (1.0, 2.0)]],
        };
        let figures = [figure("Memory"), figure("Waiting")];
        let runs = RunsOverTime {
            title: "Pile-up",
            subtitle: "",
            command: "x",
            names: ["without", "with"],
            figures: &figures,
        };
        let svg = draw_over_time(&runs).unwrap();
        let counts =
            ["Memory", "Waiting", ">without<", ">with<", "stroke-width=\"2\""].map(|it| svg.matches(it).count());
        assert_eq!(counts, [1, 1, 2, 2, 4], "{svg}");
    }
}
