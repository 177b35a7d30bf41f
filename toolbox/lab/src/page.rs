//! The page of a load run: verdict first, then the charts, then every figure.
//!
//! Every text is escaped where it enters the page. Only the charts, which are ours, go in as they are. What stands around
//! the sections is in `document`.

use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use throng_history::Machine;

use crate::accounts_page::accounts;
use crate::bars::Requirement;
use crate::charts::Chart;
use crate::document::{Heading, document};
use crate::load::LoadRun;
use crate::load_report::LoadReport;
use crate::saves_page::saves;

pub(crate) fn page(run: &LoadRun, machine: &Machine, charts: &[Chart], by_build: &[Chart]) -> String {
    let heading = Heading {
        tab: "Load run",
        kind: "Throng load run",
        title: &title(run),
        verdict: verdict(run.report.passed),
        subtitle: html! { (subtitle(run)) },
    };
    let sections = html! {
        (tiles(run))
        (bars(run))
        section.charts { @for one in charts { (chart(one)) } }
        (tick_time(run))
        (beside_earlier_runs(by_build))
        (packets(run))
        (saves(run))
        (accounts(run))
        (left_behind(run))
        (figures(run))
        (surroundings(run, machine))
    };
    document(heading, sections)
}

/// What was played, by how many.
pub(crate) fn title(run: &LoadRun) -> String {
    let report = &run.report;
    let (players, worlds) = (grouped(report.players_connected as f64), grouped(report.worlds as f64));
    let scenario = match report.scenario.as_str() {
        "" | "usual" => String::new(),
        other => format!(", {other}"),
    };
    format!("{}{scenario}: {players} players in {worlds} worlds", report.game)
}

/// How the run went before it is judged: its size, its rates, how long it was measured, and why not to the end.
pub(crate) fn subtitle(run: &LoadRun) -> String {
    let report = &run.report;
    let ended = match (&report.not_filled, &report.ended_early, report.interrupted) {
        (Some(not_filled), ..) => Some(not_filled.to_string()),
        (None, Some(ended_early), _) => Some(ended_early.to_string()),
        (None, None, true) => Some("stopped by hand before its time".to_owned()),
        (None, None, false) => None,
    };
    let npcs = format!("{} NPCs", grouped(report.npcs as f64));
    let steady = format!("steady for {} s", number(report.seconds));
    let settled = report.settling.as_ref().map(ToString::to_string);
    let parts = [Some(npcs), Some(rates(run)), Some(steady), settled, ended];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

pub(crate) fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

/// Which kinds of worlds tick how often, the fastest first.
fn rates(run: &LoadRun) -> String {
    let report = &run.report;
    let mut kinds: Vec<(f64, &str)> = match report.more.get("tick_hz_by_kind") {
        Some(Value::Object(kinds)) => {
            kinds.iter().filter_map(|(kind, hz)| Some((hz.as_f64()?, kind.as_str()))).collect()
        }
        _ => Vec::new(),
    };
    kinds.sort_by(|(one_hz, one), (other_hz, other)| other_hz.total_cmp(one_hz).then(one.cmp(other)));
    let told = kinds.chunk_by(|(one_hz, _), (next_hz, _)| one_hz == next_hz).map(|same| {
        let names: Vec<&str> = same.iter().map(|(_, kind)| *kind).collect();
        format!("{} at {} Hz", names.join(" and "), number(same[0].0))
    });
    let told = told.collect::<Vec<_>>().join(", ");
    if told.is_empty() { format!("at {} Hz", number(report.tick_hz)) } else { told }
}

/// A figure that is asked for first: its name, its value, and what stands below it.
pub(crate) struct Tile {
    pub name: &'static str,
    pub value: String,
    pub note: String,
}

/// The six of them.
pub(crate) fn first_figures(run: &LoadRun) -> [Tile; 6] {
    let report = &run.report;
    let of_host = match report.ticks_missed_host {
        0 => String::new(),
        count => format!(", {} the host's", grouped(count as f64)),
    };
    let slowed = match report.of_server("ticks_slowed") {
        Some(count) if count > 0.0 => format!(", {} slowed", grouped(count)),
        _ => String::new(),
    };
    let missed = (grouped(report.ticks_missed as f64), format!("of {}{of_host}{slowed}", grouped(report.ticks as f64)));
    let latest = (format!("{} ms", number(report.tick_lateness_ms.max)), "after its period".to_owned());
    let frame =
        (format!("{} ms", number(report.frame_ms.p99)), format!("budget {} ms", number(report.frame_budget_ms)));
    let cores =
        (format!("{} cores", number(report.server_cpu_cores)), format!("bots {}", number(report.bots_cpu_cores)));
    let memory = (format!("{} MB", grouped(report.server_rss_mb.round())), "resident".to_owned());
    let input = &report.input_to_update_ms;
    let update = (format!("{} ms", number(input.p50)), format!("p99 {} ms", number(input.p99)));
    [
        ("Ticks missed", missed),
        ("Latest tick", latest),
        ("Frame p99", frame),
        ("Server", cores),
        ("Memory", memory),
        ("Input to update", update),
    ]
    .map(|(name, (value, note))| Tile { name, value, note })
}

fn tiles(run: &LoadRun) -> Markup {
    html! {
        section.tiles {
            @for tile in first_figures(run) {
                div { span { (tile.name) } b { (tile.value) } span { (tile.note) } }
            }
        }
    }
}

fn bars(run: &LoadRun) -> Markup {
    let required = |requirement| match requirement {
        Requirement::Exactly => "exactly",
        Requirement::AtMost => "at most",
        Requirement::AtLeast => "at least",
    };
    html! {
        section {
            h2 { "Bars" }
            table.bars {
                tr { th { "What" } th.n { "Measured" } th { "Required" } th {} }
                @for bar in &run.report.bars {
                    tr.(verdict(bar.passed)) {
                        td { code { (bar.key) } }
                        td.n { (number(bar.measured)) }
                        td { (required(bar.requirement)) " " (number(bar.limit)) }
                        td { (verdict(bar.passed)) }
                    }
                }
            }
            @if let Some(missed) = run.missed_ticks() {
                p { (missed) }
            }
        }
    }
}

pub(crate) fn chart(chart: &Chart) -> Markup {
    html! {
        figure.(if chart.wide { "wide" } else { "half" }) {
            figcaption {
                b { (chart.title) }
                span.legend {
                    @for (name, colour) in &chart.legend {
                        span { i style={ "background:" (colour) } {} (name) }
                    }
                }
                span.note { (chart.note) }
            }
            (PreEscaped(&chart.svg))
        }
    }
}

/// What a tick of a world costs: game, engine and kernel, by category and by subsystem, the costliest first; nothing if
/// the server ran without its flight recorder.
fn tick_time(run: &LoadRun) -> Markup {
    let figures_of = |key: &str| -> Vec<(String, f64)> {
        let object = run.report.more.get(key).and_then(Value::as_object);
        let figures = object.into_iter().flatten();
        figures.filter_map(|(name, us)| Some((name.clone(), us.as_f64()?))).collect()
    };
    let (parts, mut subsystems) = (figures_of("tick_time_us"), figures_of("scopes_us_per_tick"));
    let mut categories: Vec<_> = run.report.categories_us_per_tick.clone().into_iter().collect();
    for rows in [&mut subsystems, &mut categories] {
        rows.sort_by(|(_, one_us), (_, other_us)| other_us.total_cmp(one_us));
    }
    let all_us = |rows: &[(String, f64)]| rows.iter().map(|(_, us)| us).sum::<f64>();
    html! {
        @if !parts.is_empty() {
            section {
                h2 { "Time of a tick" }
                p {
                    "Of one world, mean of all worlds and of the window: what the processor did, and how long scopes "
                    "took, waits for a core included."
                }
                div.pair {
                    @for (title, rows) in [("Processor", parts), ("Category", categories), ("Scopes of", subsystems)] {
                        @let all_us = all_us(&rows);
                        table {
                            tr { th { (title) } th.n { "µs per tick" } th.n { "Share" } }
                            @for (name, us) in &rows {
                                tr {
                                    td { code { (name) } }
                                    td.n { (number(*us)) }
                                    td.n { (format!("{:.1} %", 100.0 * us / all_us.max(f64::MIN_POSITIVE))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a tick took in earlier runs like this one; nothing if there are none.
fn beside_earlier_runs(charts: &[Chart]) -> Markup {
    html! {
        @if !charts.is_empty() {
            section {
                h2 { "Beside earlier runs" }
                p {
                    "Of the same game, size and machine, from the reports in the folders beside this one: what a tick took, by "
                    "the build."
                }
                div.charts { @for one in charts { (chart(one)) } }
            }
        }
    }
}

/// Rows of the packet report that the page shows; the JSON has all of them.
const PACKET_ROWS_MAX: usize = 40;

/// What each kind of message and component takes, the costliest first; nothing if the server did not tell.
fn packets(run: &LoadRun) -> Markup {
    let rows = &run.report.packet_report;
    let bytes_per_s: f64 = rows.iter().map(|row| row.bytes_per_s).sum();
    let share_percent = |bytes: f64| if bytes_per_s > 0.0 { 100.0 * bytes / bytes_per_s } else { 0.0 };
    let left_out = rows.len().saturating_sub(PACKET_ROWS_MAX);
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Packets by kind" }
                table.packets {
                    tr {
                        th { "Kind" } th { "Cause" } th.n { "Packets/s" } th.n { "Updates/s" } th.n { "Bytes/s" } th.n { "Share" }
                    }
                    @for row in rows.iter().take(PACKET_ROWS_MAX) {
                        tr {
                            td { code { (row.kind) } }
                            td { (row.cause) }
                            td.n { (number(row.packets_per_s)) }
                            td.n { (number(row.updates_per_s)) }
                            td.n { (number(row.bytes_per_s)) }
                            td.n { (format!("{:.1} %", share_percent(row.bytes_per_s))) }
                        }
                    }
                    @if left_out > 0 {
                        tr { td colspan="6" { "and " (left_out) " smaller ones, in the JSON" } }
                    }
                }
            }
        }
    }
}

/// What it died of, what others died of, and the captures that were saved.
fn left_behind(run: &LoadRun) -> Markup {
    let report = &run.report;
    html! {
        @if let Some(ended_early) = &report.ended_early {
            section {
                h2 { "Ended early" }
                p { (ended_early) }
                p { "It was started with " code { (ended_early.command) } ". Its last words:" }
                pre { (ended_early.words) }
            }
        }
        @if !report.deaths.is_empty() {
            section {
                h2 { "Deaths" }
                p { "Of this server and of earlier ones that left their reports in the same folder." }
                table {
                    tr { th.n { "Count" } th { "Signature" } th { "Builds" } th { "Newest" } }
                    @for group in &report.deaths {
                        tr {
                            td.n { (group.count) }
                            td { code { (group.signature) } }
                            td { (group.builds.join(", ")) }
                            td { code { (group.newest.display().to_string()) } }
                        }
                    }
                }
            }
        }
        @if !report.capture_files.is_empty() {
            section {
                h2 { "Captures" }
                p { "Read one with " code { "throng capture show FILE" } ":" }
                ul { @for file in &report.capture_files { li { code { (file) } } } }
            }
        }
    }
}

/// Every number of the report, by its key: the same words as in the JSON.
fn figures(run: &LoadRun) -> Markup {
    let mut rows = Vec::new();
    if let Ok(value) = serde_json::to_value(&run.report) {
        collect_numbers("", &value, &mut rows);
    }
    html! {
        section {
            h2 { "All figures" }
            div.figures {
                @for (key, value) in rows {
                    div { code { (key) } span { (number(value)) } }
                }
            }
        }
    }
}

fn collect_numbers(path: &str, value: &Value, rows: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(value) => rows.extend(value.as_f64().map(|value| (path.to_owned(), value))),
        Value::Object(object) => {
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect_numbers(&path, value, rows);
            }
        }
        // Lists are the bars, which have their own table, and histograms, which have their chart.
        _ => {}
    }
}

fn surroundings(run: &LoadRun, machine: &Machine) -> Markup {
    let LoadReport { version, commit, .. } = &run.report;
    html! {
        section {
            h2 { "Surroundings" }
            table {
                tr { th { "Command" } td { code { (run.command) } } }
                (machine_rows(machine))
                tr { th { "Server" } td { "version " (or_unknown(version)) ", commit " (or_unknown(commit)) } }
            }
        }
    }
}

/// The host, as rows of a table.
pub(crate) fn machine_rows(machine: &Machine) -> Markup {
    html! {
        tr { th { "Processor" } td { (or_unknown(&machine.cpu)) ", " (machine.cores) " usable cores" } }
        tr { th { "Virtualisation" } td { (or_unknown(&machine.virtualisation)) } }
        tr { th { "Clock source" } td { (or_unknown(&machine.clock_source)) } }
        @if machine.calibration.integer_ns > 0.0 {
            tr {
                th { "Calibration" }
                td {
                    (number(machine.calibration.integer_ns)) " ns a step of integers, "
                    (number(machine.calibration.memory_ns)) " ns a wait for memory"
                }
            }
        }
        tr { th { "Memory" } td { (grouped(machine.memory_mb as f64)) " MiB" } }
        tr { th { "Kernel" } td { (or_unknown(&machine.kernel)) } }
    }
}

fn or_unknown(text: &str) -> &str {
    if text.is_empty() { "unknown" } else { text }
}

/// As many digits as mean something: whole numbers whole, others with three.
pub(crate) fn number(value: f64) -> String {
    if value == value.trunc() || value.abs() >= 1_000.0 {
        return grouped(value.round());
    }
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A whole number with a comma every three digits.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let check = |value: f64, expect| assert_eq!(number(value), expect);
        check(0.0, "0");
        check(0.0123, "0.012");
        check(1.234, "1.23");
        check(16.67, "16.7");
        check(123.4, "123");
        check(20_000.0, "20,000");
        check(1_234_567.8, "1,234,568");
        check(-1_000.0, "-1,000");
    }
}
