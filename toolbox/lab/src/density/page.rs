//! A density run as one page: how many hold, the curves, and every point.

use maud::{Markup, html};
use throng_history::Machine;

use super::forecast::Form;
use super::report::{Curve, DensityReport};
use crate::charts::Chart;
use crate::document::{Heading, document};
use crate::page::{chart, grouped, machine_rows, number, verdict};

pub(crate) fn page(report: &DensityReport, machine: &Machine, charts: &[Chart]) -> String {
    let heading = Heading {
        tab: "Density",
        kind: "Throng density run",
        title: &report.curves.iter().map(held).collect::<Vec<_>>().join(", "),
        verdict: verdict(report.passed),
        subtitle: subtitle(report),
    };
    let sections = html! {
        @if let Some(why) = &report.ended_early { section { h2 { "Ended early" } pre { (why) } } }
        section.charts { @for one in charts { (chart(one)) } }
        @for curve in &report.curves { (points(curve)) }
        @if let Some(why) = &report.hardware_counts_missing {
            p { "Instructions and cache misses are missing: " (why) "." }
        }
        section {
            h2 { "Surroundings" }
            table {
                tr { th { "Command" } td { code { (report.command) } } }
                (machine_rows(machine))
            }
        }
    };
    document(heading, sections)
}

/// What was asked for, and whether it went to its end.
fn subtitle(report: &DensityReport) -> Markup {
    html! {
        (number(report.cores)) " cores · wanted: " (report.instances_wanted)
        @if report.is_forecast_judged { " by the forecast" }
        @if !report.nodes.is_empty() { " · memory nodes " (list(&report.nodes)) " in turns" }
        @if report.interrupted { " · stopped by hand before its time" }
    }
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn held(curve: &Curve) -> String {
    let held = curve.instances_held;
    match curve.instances_failed {
        Some(_) => format!("{} {}", grouped(held.into()), curve.form.counted(held)),
        None => format!("{} or more {}", grouped(held.into()), curve.form.counted(2)),
    }
}

fn points(curve: &Curve) -> Markup {
    let maybe = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let name = match curve.form {
        Form::Processes => "Instances",
        Form::Worlds => "Worlds",
    };
    html! {
        section {
            h2 { (name) }
            p { (curve.to_string()) "." }
            table {
                tr {
                    th.n { (name) } th.n { "Frame, ms" } th.n { "Mean" } th.n { "p50" } th.n { "p99" } th.n { "Worst mean" }
                    th.n { "Frames/s" } th.n { "Least" } th.n { "Behind, %" } th.n { "Cores" } th.n { "MB" } th.n { "Instr./cycle" } th.n { "Misses/1,000" } th {}
                }
                @for point in &curve.points {
                    @let verdict = verdict(point.holds);
                    tr.(verdict) {
                        td.n { (point.instances) }
                        td.n { (number(point.frame_ms)) }
                        td.n { (number(point.frame_ms_mean)) }
                        td.n { (maybe(point.frame_ms_p50)) }
                        td.n { (maybe(point.frame_ms_p99)) }
                        td.n { (number(point.frame_ms_mean_worst)) }
                        td.n { (maybe(point.frames_per_s)) }
                        td.n { (maybe(point.frames_per_s_least)) }
                        td.n { (maybe(point.ticks_behind_share.map(|share| 100.0 * share))) }
                        td.n { (number(point.cores_busy)) }
                        td.n { (number(point.rss_mb)) }
                        td.n { (maybe(point.instructions_per_cycle)) }
                        td.n { (maybe(point.cache_misses_per_1000_instructions)) }
                        td { (verdict) }
                    }
                }
            }
        }
    }
}
