//! The screen of `throng top`: what a second of a server looks like in lines of text.
//!
//! ```text
//! 127.0.0.1:9100  running  83 s  2 workers                      12 players, 3 of 5 worlds awake
//! frame    1.9 ms of 16.7 at most, half under 0.4               ticks 60, missed 0 (0 the host's), late 0.0 ms
//! ▁▁▂▁▁▁█▁▁▁▁▂▁▁                                                the last frames; full height is the budget
//! ```

use std::io::{self, Write};

use rustyline::DefaultEditor;
use throng::text_table::{Cell, Column, TextTable};
use throng_admin::watch::document::{Health, InKind, Second, Subsystem, WorldNow};
use throng_capture::story::printable_text;

/// Rows of each of the two tables where nobody knows how many fit.
pub const ROWS: usize = 10;
/// Where nobody knows how wide the terminal is.
const COLUMNS: usize = 100;
/// Lines that are no rows of tables.
const OTHER_LINES: usize = 14;
const NAME_CHARACTERS_MAX: u32 = 34;

/// Draws anew, from the top of the terminal.
pub fn draw(
    server: &str,
    health: &Health,
    second: Option<&Second>,
    frames: &[u32],
    out: &mut impl Write,
) -> io::Result<()> {
    let size = DefaultEditor::new().ok().and_then(|mut editor| editor.dimensions());
    let (columns, lines_max) = size.map_or((COLUMNS, 2 * ROWS + OTHER_LINES), |(columns, rows)| {
        (usize::from(columns), usize::from(rows).saturating_sub(1))
    });
    let rows = lines_max.saturating_sub(OTHER_LINES) / 2;
    // Line by line, each emptied behind its text: what is cleared as a whole flickers.
    write!(out, "\x1b[H")?;
    for line in lines(server, health, second, frames, rows).iter().take(lines_max) {
        let cut: String = line.chars().take(columns).collect();
        write!(out, "{cut}\x1b[K\r\n")?;
    }
    write!(out, "\x1b[J")
}

/// All of it, with so many rows in each table at most.
pub fn lines(server: &str, health: &Health, second: Option<&Second>, frames: &[u32], rows: usize) -> Vec<String> {
    let mut lines = vec![head(server, health, second)];
    let Some(second) = second else {
        lines.push(format!("the last frame ended {:.0} ms ago", health.frame_age_ms));
        return lines;
    };
    let now = &second.server;
    let host = |name: &str| second.host.iter().find(|figure| figure.name == name).map(|figure| figure.value);
    let figure =
        |name: &str, digits: usize| host(name).map_or_else(|| "?".to_owned(), |value| format!("{value:.digits$}"));
    lines.push(format!(
        "frame    {:.1} ms of {:.1} at most, half under {:.1}; ticks {:.0}, missed {:.0} ({:.0} the host's), late {:.1} ms",
        now.frame_ms_max,
        now.frame_budget_ms,
        now.frame_ms_p50,
        now.ticks,
        now.ticks_missed,
        now.ticks_missed_host,
        now.tick_lateness_ms_max
    ));
    lines.push(bars(frames, now.frame_budget_ms * 1e3));
    lines.push(format!(
        "cores    {:.2} used, {} waited for, {} stolen, {} of {} busy on the host; throttled {}; memory {:.0} MB",
        now.cpu_cores,
        figure("inside.run_queue_wait_cores", 2),
        figure("outside.host_steal_cores", 2),
        figure("outside.host_busy_cores", 1),
        figure("outside.host_cores", 0),
        host("outside.group_throttled_share").map_or_else(|| "?".to_owned(), |share| format!("{:.0} %", share * 100.0)),
        now.rss_mb
    ));
    let load = &second.load;
    lines.push(format!(
        "load     overload {}, {} worlds on it, {} slowed to {:.0} % at worst; starvation {}, {} long tasks wait ({:.1} ms)",
        printable_text(&load.overload),
        load.worlds_overloaded,
        load.worlds_slowed,
        load.time_factor_min * 100.0,
        load.starvation_level,
        load.long_tasks_waiting,
        load.long_tasks_ms
    ));
    let closed = if load.admission_is_closed || load.admission_waits { "; newcomers wait" } else { "" };
    lines.push(format!(
        "door     {} in line, {} wait for their world{closed}; plans parked {}",
        second.door.join_queue, second.door.placements_pending, now.plans_parked
    ));
    lines.push(format!(
        "network  {:.0} packets/s in, {:.0} out, {:.1} kB/s out{}",
        now.packets_in_per_s,
        now.packets_out_per_s,
        now.bytes_out_per_s / 1e3,
        second.recorder.as_ref().map_or_else(String::new, |recorder| format!(
            "; captures {:.0}, {:.0} rested",
            recorder.captures, recorder.in_cooldown
        ))
    ));
    lines.push(String::new());
    lines.extend(subsystem_lines(&second.subsystems, rows));
    lines.push(String::new());
    lines.extend(world_lines(second, rows));
    lines
}

fn head(server: &str, health: &Health, second: Option<&Second>) -> String {
    let mut head = format!("{}  {}", printable_text(server), printable_text(&health.state));
    if health.worlds_stuck > 0 {
        head += &format!(", {} worlds hang", health.worlds_stuck);
    }
    if health.saves_are_away {
        head += ", nothing is saved";
    }
    if let Some(Second { server, .. }) = second {
        let (second, workers) = (server.second, server.workers);
        let (players, awake, worlds) = (server.players, server.worlds_awake, server.worlds);
        head += &format!("  {second:.0} s  {workers} workers  {players} players  {awake} of {worlds} worlds awake");
    }
    head
}

/// The last frames as bars, as many as a narrow terminal shows. A frame over its budget has a mark of its own.
fn bars(frames: &[u32], budget_us: f64) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = frames.len().min(COLUMNS - 20);
    let bar = |us: &u32| {
        let share = f64::from(*us) / budget_us.max(1.0);
        if share > 1.0 { '!' } else { HEIGHTS[((share * 8.0) as usize).min(7)] }
    };
    frames[frames.len() - shown..].iter().map(bar).collect()
}

fn subsystem_lines(subsystems: &[Subsystem], rows: usize) -> Vec<String> {
    let mut table = TextTable::new([
        Column::text_at_most("subsystem", "subsystem", NAME_CHARACTERS_MAX),
        Column::text_at_most("category", "category", NAME_CHARACTERS_MAX),
        Column::float("us a frame", "us_per_frame", 1),
        Column::float("costliest", "us_frame_max", 1),
        Column::float("budget", "budget_us", 1),
        Column::float("of it %", "budget_percent", 0),
    ]);
    // Waiting for work is none, nor is what threads do outside of every scope, such as sleep.
    let is_work = |of: &&Subsystem| of.category != "idle" && of.category != "outside";
    for of in subsystems.iter().filter(is_work).take(rows) {
        let cell = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Float);
        table.row(&[
            Cell::Text(&of.name),
            Cell::Text(&of.category),
            Cell::Float(of.us_per_frame),
            Cell::Float(of.us_frame_max),
            cell(of.budget_us),
            cell(budget_share(of).map(|share| share * 100.0)),
        ]);
    }
    printable_lines(&mut table)
}

/// Of the budget that it is nearest to; none without any.
fn budget_share(of: &Subsystem) -> Option<f64> {
    let of_frame = of.budget_us.map(|budget| of.us_frame_max / budget);
    let of_kind = |kind: &InKind| {
        let of_tick = Some(kind.us_per_tick? / kind.tick_budget_us?);
        [of_tick, kind.frame_budget_us.map(|budget| kind.us_frame_max / budget)].into_iter().flatten().reduce(f64::max)
    };
    of.kinds.iter().filter_map(of_kind).chain(of_frame).reduce(f64::max)
}

fn world_lines(second: &Second, rows: usize) -> Vec<String> {
    let mut table = TextTable::new([
        Column::text_at_most("world", "world", NAME_CHARACTERS_MAX),
        Column::integer("players", "players"),
        Column::float("tick us", "tick_us", 1),
        Column::float("longest us", "longest_tick_us", 1),
        Column::float("load %", "load_percent", 1),
        Column::float("missed", "ticks_missed", 0),
        Column::text("state", "state"),
    ]);
    for world in second.worlds.rows().take(rows) {
        table.row(&[
            Cell::Text(&format!("{} {}", world.kind, world.world)),
            Cell::Integer(world.players.into()),
            Cell::Float(world.tick_us),
            Cell::Float(world.longest_tick_us),
            Cell::Float(world.load * 100.0),
            Cell::Float(world.ticks_missed),
            Cell::Text(&state_of(&world)),
        ]);
    }
    printable_lines(&mut table)
}

fn state_of(world: &WorldNow) -> String {
    match world {
        WorldNow { hangs_for_ms: Some(ms), .. } => format!("hangs for {:.1} s", ms / 1e3),
        WorldNow { is_dormant: true, .. } => "dormant".to_owned(),
        WorldNow { time_percent: percent @ 0..100, .. } => format!("slowed to {percent} %"),
        WorldNow { overload, .. } if overload == "normal" => "awake".to_owned(),
        WorldNow { overload, .. } => overload.replace('_', " "),
    }
}

fn printable_lines(table: &mut TextTable) -> Vec<String> {
    table.text().lines().map(printable_text).collect()
}

#[cfg(test)]
mod tests {
    use throng_admin::watch::document::{HostFigure, ServerNow, Worlds};

    use super::*;

    fn second() -> Second {
        Second {
            server: ServerNow { second: 83.0, workers: 2, players: 12, frame_budget_ms: 16.0, ..ServerNow::default() },
            subsystems: vec![
                Subsystem { name: "idle".into(), category: "idle".into(), ..Subsystem::default() },
                Subsystem {
                    name: "ai".into(),
                    category: "gameplay".into(),
                    us_per_frame: 400.0,
                    us_frame_max: 900.0,
                    budget_us: Some(600.0),
                    ..Subsystem::default()
                },
            ],
            worlds: Worlds {
                world: vec!["7".into(), "8".into()],
                kinds: vec!["dark-zone".into(), "evil\u{1b}[2J".into()],
                kind: vec![0, 1],
                load: vec![0.25],
                time_percent: vec![100, 40],
                overload: vec!["normal".into()],
                ..Worlds::default()
            },
            host: vec![HostFigure { name: "outside.host_steal_cores".into(), value: 0.25 }],
            ..Second::default()
        }
    }

    #[test]
    fn a_second_is_told_in_lines_and_no_name_reaches_the_terminal_as_it_is() {
        let health = Health { state: "running".into(), worlds_stuck: 1, ..Health::default() };
        let told = lines("127.0.0.1:9100", &health, Some(&second()), &[1_000, 8_000, 20_000], 10);
        let has = |words: &str| assert!(told.iter().any(|line| line.contains(words)), "{words}: {told:#?}");
        has("127.0.0.1:9100  running, 1 worlds hang  83 s  2 workers  12 players");
        has("▁▅!");
        has("0.25 stolen");
        has("dark-zone 7");
        has("slowed to 40 %");
        let row = told.iter().find(|line| line.starts_with("ai ")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["ai", "gameplay", "400.0", "900.0", "600.0", "150"]);
        assert!(!told.iter().any(|line| line.starts_with("idle") || line.contains('\u{1b}')), "{told:#?}");
    }

    #[test]
    fn a_server_whose_frame_stands_still_is_told_as_such() {
        let health = Health { state: "stuck".into(), frame_age_ms: 4_210.0, ..Health::default() };
        let told = lines("127.0.0.1:9100", &health, None, &[], 10);
        assert_eq!(told, ["127.0.0.1:9100  stuck", "the last frame ended 4210 ms ago"]);
    }
}
