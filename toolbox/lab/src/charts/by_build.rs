//! Charts by build: what a tick takes under each heading in this run and in earlier ones like it, in the order of time.
//!
//! A small chart for the whole tick, for each category and for the costliest subsystems: each on a scale of its own, as
//! a category that doubles must be seen beside one that is ten times as large. The dashed line is what a tick may take:
//! the time of all workers, divided by the ticks, and of a subsystem what the rules let it take. Categories have no budget.

use std::collections::{BTreeMap, BTreeSet};

use plotters::prelude::*;

use super::{Chart, ChartError, HALF, RED, TEAL, configure, draw, hex, text, top_above};
use crate::earlier_runs::RunFigures;

/// Categories and subsystems that are drawn: those that take most in this run.
const CATEGORIES_MAX: usize = 10;
const SUBSYSTEMS_MAX: usize = 6;

/// Commits are told by so many letters.
const COMMIT_LETTERS: usize = 7;

/// What a chart shows of a run; nothing of one that does not tell.
type Figure<'a> = &'a dyn Fn(&RunFigures) -> Option<f64>;

/// All charts of these runs, the last of which is this one. None if it is alone: there is nothing to hold it against.
pub(crate) fn chart_by_build(runs: &[RunFigures]) -> Result<Vec<Chart>, ChartError> {
    let ([_, .., own], true) = (runs, runs.iter().all(RunFigures::tells)) else { return Ok(Vec::new()) };
    let whole = |run: &RunFigures| Some(run.categories_us_per_tick.values().sum::<f64>());
    let mut charts = vec![draw_runs("All of a tick", runs, &whole, Some(&RunFigures::tick_budget_us))?];
    for name in costliest(&own.categories_us_per_tick, CATEGORIES_MAX) {
        let of_category = |run: &RunFigures| run.categories_us_per_tick.get(name).copied();
        charts.push(draw_runs(name, runs, &of_category, None)?);
    }
    for name in costliest(&own.scopes_us_per_tick, SUBSYSTEMS_MAX) {
        let of_subsystem = |run: &RunFigures| run.scopes_us_per_tick.get(name).copied();
        let budget = |run: &RunFigures| run.budgets_us_per_tick.get(name).copied();
        let budget: Option<Figure<'_>> = runs.iter().any(|run| budget(run).is_some()).then_some(&budget);
        charts.push(draw_runs(&format!("Scopes of {name}"), runs, &of_subsystem, budget)?);
    }
    Ok(charts)
}

fn costliest(figures: &BTreeMap<String, f64>, count_max: usize) -> Vec<&str> {
    let mut names: Vec<_> = figures.iter().collect();
    names.sort_by(|(_, one_us), (_, other_us)| other_us.total_cmp(one_us));
    names.into_iter().take(count_max).map(|(name, _)| name.as_str()).collect()
}

fn draw_runs(
    title: &str,
    runs: &[RunFigures],
    figure: Figure<'_>,
    budget: Option<Figure<'_>>,
) -> Result<Chart, ChartError> {
    let points = |figure: Figure<'_>| -> Vec<(f64, f64)> {
        let figures = (0..).zip(runs).filter_map(|(place, run)| Some((f64::from(place), figure(run)?)));
        figures.filter(|(_, us)| us.is_finite()).collect()
    };
    let (line, budget_line) = (points(figure), budget.map(points).unwrap_or_default());
    let top = top_above(line.iter().chain(&budget_line).map(|(_, us)| *us));
    let last = runs.len().saturating_sub(1).max(1) as f64;
    let label = |place: &f64| {
        let is_run = (place - place.round()).abs() < 1e-6;
        let run = runs.get(place.round() as usize).filter(|_| is_run && *place >= 0.0);
        run.map_or_else(String::new, |run| run.commit.chars().take(COMMIT_LETTERS).collect())
    };
    let svg = draw(title, HALF, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_right(30)
            .x_label_area_size(24)
            .y_label_area_size(52)
            .build_cartesian_2d(0.0..last, 0.0..top)
            .map_err(text)?;
        configure(&mut chart, &label)?;
        chart.draw_series(LineSeries::new(line.iter().copied(), TEAL.stroke_width(2))).map_err(text)?;
        chart.draw_series(line.iter().map(|point| Circle::new(*point, 3, TEAL.filled()))).map_err(text)?;
        if !budget_line.is_empty() {
            let dashes = DashedLineSeries::new(budget_line.iter().copied(), 7, 5, RED.stroke_width(2));
            chart.draw_series(dashes).map_err(text)?;
        }
        Ok(())
    })?;
    let mut legend = vec![("µs per tick".to_owned(), hex(TEAL))];
    legend.extend((!budget_line.is_empty()).then(|| ("what a tick may take".to_owned(), hex(RED))));
    Ok(Chart { title: title.to_owned(), note: span_of(runs), legend, wide: false, svg })
}

/// How many runs of how many builds.
fn span_of(runs: &[RunFigures]) -> String {
    let builds: BTreeSet<&str> = runs.iter().map(|run| run.commit.as_str()).collect();
    format!("{} runs of {} builds, this one last", runs.len(), builds.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(commit: &str, ai_us: f64) -> RunFigures {
        RunFigures {
            commit: commit.to_owned(),
            seconds: 60.0,
            ticks: 1_200,
            workers: 2,
            categories_us_per_tick: [("ai".to_owned(), ai_us), ("network".to_owned(), 40.0)].into(),
            scopes_us_per_tick: [("ai".to_owned(), ai_us), ("net".to_owned(), 4.0)].into(),
            budgets_us_per_tick: [("ai".to_owned(), 20.0)].into(),
            ..RunFigures::default()
        }
    }

    #[test]
    fn a_run_is_drawn_beside_those_before_it_under_each_heading() {
        let runs = [run("0123456789ab", 10.0), run("123456789abc", 12.0), run("23456789abcd", 31.0)];
        let charts = chart_by_build(&runs).unwrap();
        let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["All of a tick", "network", "ai", "Scopes of ai", "Scopes of net"]);
        assert!(charts.iter().all(|chart| chart.note == "3 runs of 3 builds, this one last"));
        for commit in ["0123456", "1234567", "2345678"] {
            assert!(charts[2].svg.contains(commit), "{commit} is not at the axis:\n{}", charts[2].svg);
        }
        assert_eq!(charts[0].legend.len(), 2, "the whole has a budget");
        assert_eq!(charts[2].legend.len(), 1, "a category has none");
        assert_eq!((charts[3].legend.len(), charts[4].legend.len()), (2, 1), "a subsystem has one if the rules say so");
    }

    #[test]
    fn a_run_that_is_alone_or_tells_nothing_is_not_drawn() {
        assert!(chart_by_build(&[]).unwrap().is_empty());
        assert!(chart_by_build(&[run("0123456789ab", 10.0)]).unwrap().is_empty());
        let silent = RunFigures { ticks: 100, ..RunFigures::default() };
        assert!(chart_by_build(&[run("0123456789ab", 10.0), silent]).unwrap().is_empty());
    }
}
