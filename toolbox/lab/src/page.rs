//! The page of a load run: verdict first, then the charts, then every figure.
//!
//! Everything that came from outside this program (names, the command line) is escaped where it enters the page.

use std::fmt::Write as _;

use serde_json::Value;

use crate::bars::Requirement;
use crate::charts::Chart;
use crate::load::LoadRun;
use crate::machine::Machine;

const STYLE: &str = include_str!("page.css");

pub(crate) fn html(run: &LoadRun, machine: &Machine, charts: &[Chart]) -> String {
    let report = &run.report;
    let verdict = if report.passed { "passed" } else { "failed" };
    let title = format!(
        "{}: {} players in {} worlds",
        report.game,
        grouped(report.players_connected as f64),
        grouped(report.worlds as f64)
    );
    let cut_short = match &report.not_filled {
        Some(not_filled) => format!(" · {not_filled}"),
        None if run.interrupted => " · stopped by hand before its time".to_owned(),
        None => String::new(),
    };
    let subtitle = format!(
        "{} NPCs · {} · steady for {} s{cut_short}",
        grouped(report.npcs as f64),
        rates(run),
        number(report.seconds)
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Load run {verdict}: {title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <header><p class=\"kind\">Throng load run</p><h1>{title}<span class=\"verdict {verdict}\">{verdict}</span></h1>\
         <p class=\"subtitle\">{subtitle}</p></header>\n\
         {tiles}{bars}<section class=\"charts\">\n{charts}</section>\n{packets}{figures}{surroundings}</main>\n</body>\n</html>\n",
        title = escape(&title),
        subtitle = escape(&subtitle),
        tiles = tiles(run),
        bars = bars(run),
        charts = charts.iter().map(chart).collect::<String>(),
        packets = packets(run),
        figures = figures(run),
        surroundings = surroundings(run, machine),
    )
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

/// The six figures that are asked for first.
fn tiles(run: &LoadRun) -> String {
    let report = &run.report;
    let tiles = [
        ("Ticks missed", grouped(report.ticks_missed as f64), format!("of {}", grouped(report.ticks as f64))),
        ("Latest tick", format!("{} ms", number(report.tick_lateness_ms.max)), "after its period".to_owned()),
        (
            "Frame p99",
            format!("{} ms", number(report.frame_ms.p99)),
            format!("budget {} ms", number(report.frame_budget_ms)),
        ),
        (
            "Server",
            format!("{} cores", number(report.server_cpu_cores)),
            format!("bots {}", number(report.bots_cpu_cores)),
        ),
        ("Memory", format!("{} MB", grouped(report.server_rss_mb.round())), "resident".to_owned()),
        (
            "Input to update",
            format!("{} ms", number(report.input_to_update_ms.p50)),
            format!("p99 {} ms", number(report.input_to_update_ms.p99)),
        ),
    ];
    let mut out = "<section class=\"tiles\">\n".to_owned();
    for (name, value, note) in tiles {
        let _ = writeln!(out, "<div><span>{name}</span><b>{value}</b><span>{note}</span></div>");
    }
    out + "</section>\n"
}

fn bars(run: &LoadRun) -> String {
    let mut out = "<section><h2>Bars</h2>\n<table class=\"bars\">\n\
                   <tr><th>What</th><th class=\"n\">Measured</th><th>Required</th><th></th></tr>\n"
        .to_owned();
    for bar in &run.report.bars {
        let requirement = match bar.requirement {
            Requirement::Exactly => "exactly",
            Requirement::AtMost => "at most",
            Requirement::AtLeast => "at least",
        };
        let verdict = if bar.passed { "passed" } else { "failed" };
        let _ = writeln!(
            out,
            "<tr class=\"{verdict}\"><td><code>{}</code></td><td class=\"n\">{}</td><td>{requirement} {}</td>\
             <td>{verdict}</td></tr>",
            escape(&bar.key),
            number(bar.measured),
            number(bar.limit)
        );
    }
    out + "</table></section>\n"
}

fn chart(chart: &Chart) -> String {
    let width = if chart.wide { "wide" } else { "half" };
    let legend: String = chart
        .legend
        .iter()
        .map(|(name, colour)| format!("<span><i style=\"background:{colour}\"></i>{name}</span>"))
        .collect();
    format!(
        "<figure class=\"{width}\"><figcaption><b>{}</b><span class=\"legend\">{legend}</span>\
         <span class=\"note\">{}</span></figcaption>\n{}</figure>\n",
        chart.title,
        escape(&chart.note),
        chart.svg
    )
}

/// Rows of the packet report that the page shows; the JSON has all of them.
const PACKET_ROWS_MAX: usize = 40;

/// What each kind of message and component takes, the dearest first; nothing if the server did not tell.
fn packets(run: &LoadRun) -> String {
    let rows = &run.report.packet_report;
    if rows.is_empty() {
        return String::new();
    }
    let bytes_per_s: f64 = rows.iter().map(|row| row.bytes_per_s).sum();
    let mut out = "<section><h2>Packets by kind</h2>\n<table class=\"packets\">\n\
                   <tr><th>Kind</th><th>Cause</th><th class=\"n\">Packets/s</th><th class=\"n\">Updates/s</th>\
                   <th class=\"n\">Bytes/s</th><th class=\"n\">Share</th></tr>\n"
        .to_owned();
    for row in rows.iter().take(PACKET_ROWS_MAX) {
        let share_percent = if bytes_per_s > 0.0 { 100.0 * row.bytes_per_s / bytes_per_s } else { 0.0 };
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code></td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{share_percent:.1} %</td></tr>",
            escape(&row.kind),
            escape(&row.cause),
            number(row.packets_per_s),
            number(row.updates_per_s),
            number(row.bytes_per_s),
        );
    }
    if let Some(more @ 1..) = rows.len().checked_sub(PACKET_ROWS_MAX) {
        let _ = writeln!(out, "<tr><td colspan=\"6\">and {more} smaller ones, in the JSON</td></tr>");
    }
    out + "</table></section>\n"
}

/// Every number of the report, by its key: the same words as in the JSON.
fn figures(run: &LoadRun) -> String {
    let mut rows = Vec::new();
    if let Ok(value) = serde_json::to_value(&run.report) {
        collect_numbers("", &value, &mut rows);
    }
    let mut out = "<section><h2>All figures</h2>\n<div class=\"figures\">\n".to_owned();
    for (key, value) in rows {
        let _ = writeln!(out, "<div><code>{}</code><span>{}</span></div>", escape(&key), number(value));
    }
    out + "</div></section>\n"
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

fn surroundings(run: &LoadRun, machine: &Machine) -> String {
    let or_unknown = |text: &str| {
        if text.is_empty() { "unknown".to_owned() } else { escape(text) }
    };
    let rows = [
        ("Command", format!("<code>{}</code>", escape(&run.command))),
        ("Processor", format!("{}, {} usable cores", or_unknown(&machine.cpu), machine.cores)),
        ("Memory", format!("{} MB", grouped(machine.memory_mb as f64))),
        ("Kernel", or_unknown(&machine.kernel)),
        ("Commit", or_unknown(&machine.commit)),
    ];
    let mut out = "<section><h2>Surroundings</h2>\n<table>\n".to_owned();
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{value}</td></tr>");
    }
    out + "</table></section>\n"
}

/// As many digits as mean something: whole numbers whole, others with three.
fn number(value: f64) -> String {
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
fn grouped(value: f64) -> String {
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(escape("<b class=\"x\">&"), "&lt;b class=&quot;x&quot;&gt;&amp;");
    }
}
