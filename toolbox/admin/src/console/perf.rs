//! `perf.`: what takes the time of a server that runs, in tables.
//!
//! ```text
//! perf.frame, perf.subsystems   watches for a second or more, as the page and `throng top` do    ([`throng::watch`])
//! perf.worlds                   asked of the frame
//! perf.systems                  read from what the recorder remembers: a world that hangs has it
//! perf.host, perf.threads       accounts of the kernel
//! perf.capture                  asked of the recorder
//! ```
//!
//! Nothing is measured for these in a tick: without an asker the server does nothing for them.

use std::{
    collections::HashMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use throng::{
    console::{Cell, Column, TextTable, integer, optional, text, world},
    metrics::PublishedMetrics,
    profiler::world_scopes::{WorldScope, of_world},
    questions::WorldRow,
    server::ServerControl,
};
use throng_platform::accounts::{self, FIGURES, ThreadAccount};

use super::{Call, Console, Outcome, of_server::state_of};
use crate::{
    AdminSource,
    access::Role,
    pages::NOTE_CHARACTERS_MAX,
    published::NO_RECORDER,
    watch::{
        ServerWatch, WatchSource,
        document::{Second, Subsystem},
    },
};

/// For the frame's thread, which answers within a tick.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A server tells a second once a second, asleep or not.
const SECOND_WITHIN: Duration = Duration::from_secs(3);
/// Between two looks whether a second is over.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Seconds that are watched at most. With the one that had begun before, it is less than an answer may take.
const SECONDS_MAX: i64 = 5;
/// What a world's systems and threads are told of.
const SPAN: Duration = Duration::from_secs(1);
/// Rows of each table at most, the costliest first.
const ROWS_MAX: usize = 100;
const NAME_CHARACTERS_MAX: u32 = 60;
/// A kind's name.
const WORD_CHARACTERS_MAX: usize = 200;

impl Console {
    /// Adds what is asked of a server that is slow.
    pub(super) fn with_perf(self, control: &ServerControl) -> Self {
        let [frames, subsystems, systems, host, capture] = [(); 5].map(|()| control.published());
        let worlds = control.clone();
        let kind = || optional(text("kind", WORD_CHARACTERS_MAX));
        self.with_arguments(
            "perf.frame",
            Role::Observe,
            optional(integer("seconds", 1..=SECONDS_MAX)),
            "watches a second, or some: how long frames take, and what they miss",
            move |call, seconds| frame(call, &frames, seconds.unwrap_or(1) as usize),
        )
        .with_arguments(
            "perf.subsystems",
            Role::Observe,
            kind(),
            "watches a second: what subsystems take of a frame, or of a tick of a kind of world, and may take",
            move |call, kind| subsystem_table(call, &subsystems, kind.as_deref()),
        )
        .with_arguments(
            "perf.worlds",
            Role::Observe,
            kind(),
            "the worlds that take most of a worker, all or of a kind: what their ticks take and may take",
            move |call, kind| world_table(call, &worlds, kind.as_deref()),
        )
        .with_arguments(
            "perf.systems",
            Role::Observe,
            (world("world"),),
            "what the systems of a world took in the last second, whether or not it answers",
            move |call, (id,)| {
                systems.recorder().ok_or(NO_RECORDER)?;
                Ok(system_table(call, &of_world(id.number(), SPAN).scopes))
            },
        )
        .with_arguments(
            "perf.host",
            Role::Observe,
            (),
            "cores, steal, throttling, waits for a core, disk and network, as of the last second",
            move |call, ()| Ok(host_table(call, &host)),
        )
        .with_arguments(
            "perf.threads",
            Role::Observe,
            (),
            "watches a second: what each thread runs, and waits for a core",
            |call, ()| thread_table(call),
        )
        .with("perf.capture", Role::Operate, "[NOTE]", "saves a capture of the last seconds", move |call| {
            let note: String = call.arguments.join(" ").chars().take(NOTE_CHARACTERS_MAX).collect();
            let saved = AdminSource::save_capture(&*capture, &note)?;
            let mut table = TextTable::new([Column::text("saved", "path"), Column::bytes("size", "bytes")]);
            table.row(&[Cell::Text(&saved.path), Cell::Bytes(saved.size_bytes)]);
            Ok(call.table(table))
        })
    }
}

/// What was watched: whole seconds, and how long each of their frames took (us).
struct Watched {
    seconds: Vec<Second>,
    frames_us: Vec<u32>,
}

/// Watches so many whole seconds. Waits for the one that has begun to end.
fn watch(published: &Arc<PublishedMetrics>, seconds: usize) -> Result<Watched, String> {
    let mut watch = ServerWatch::begin(published.clone());
    next_second(&mut watch, &mut Vec::new())?;
    let mut watched = Watched { seconds: Vec::new(), frames_us: Vec::new() };
    for _ in 0..seconds {
        let second = next_second(&mut watch, &mut watched.frames_us)?;
        watched.seconds.push(second);
    }
    Ok(watched)
}

/// Adds the frames until then to `frames_us`.
fn next_second(watch: &mut ServerWatch, frames_us: &mut Vec<u32>) -> Result<Second, String> {
    let until = Instant::now() + SECOND_WITHIN;
    loop {
        let second = watch.second();
        frames_us.extend(watch.frames().us);
        match second {
            Some(second) => return Ok(second),
            None if Instant::now() >= until => {
                let stuck = "the server's frame has told nothing for";
                return Err(format!("{stuck} {} s; `perf.systems WORLD` needs no frame", SECOND_WITHIN.as_secs()));
            }
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

fn frame(call: &Call<'_>, published: &Arc<PublishedMetrics>, seconds: usize) -> Outcome {
    let Watched { seconds, frames_us } = watch(published, seconds)?;
    Ok(frame_table(call, &seconds, frames_us))
}

const NS_PER_US: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;

fn frame_table(call: &Call<'_>, seconds: &[Second], mut frames_us: Vec<u32>) -> String {
    frames_us.sort_unstable();
    // The smallest length that so many percent of frames do not exceed.
    let percentile = |percent: usize| {
        let us = frames_us.get((frames_us.len() * percent).div_ceil(100).saturating_sub(1));
        us.map_or(Cell::Empty, |us| Cell::Duration(u64::from(*us) * 1_000))
    };
    let budget_ms = seconds.first().map_or(0.0, |second| second.server.frame_budget_ms);
    let over = frames_us.iter().filter(|us| f64::from(**us) > budget_ms * 1e3).count();
    let sum = |figure: fn(&Second) -> f64| Cell::Integer(seconds.iter().map(figure).sum::<f64>() as i64);
    let most = |figure: fn(&Second) -> f64| {
        Cell::Duration((seconds.iter().map(figure).fold(0.0, f64::max) * NS_PER_MS) as u64)
    };
    let mut table = TextTable::new([
        Column::integer("seconds", "seconds"),
        Column::integer("frames", "frames"),
        Column::integer("over budget", "frames_over_budget"),
        Column::duration("p50", "p50_ns"),
        Column::duration("p99", "p99_ns"),
        Column::duration("longest", "longest_ns"),
        Column::duration("budget", "budget_ns"),
        Column::integer("ticks", "ticks"),
        Column::integer("missed", "ticks_missed"),
        Column::integer("the host's", "ticks_missed_host"),
        Column::duration("latest tick", "tick_lateness_ns"),
        Column::duration("host took", "host_took_ns"),
    ]);
    table.row(&[
        Cell::Integer(seconds.len() as i64),
        Cell::Integer(frames_us.len() as i64),
        Cell::Integer(over as i64),
        percentile(50),
        percentile(99),
        percentile(100),
        Cell::Duration((budget_ms * NS_PER_MS) as u64),
        sum(|second| second.server.ticks),
        sum(|second| second.server.ticks_missed),
        sum(|second| second.server.ticks_missed_host),
        most(|second| second.server.tick_lateness_ms_max),
        most(|second| second.server.host_took_ms_max),
    ]);
    call.table(table)
}

fn subsystem_table(call: &Call<'_>, published: &Arc<PublishedMetrics>, kind: Option<&str>) -> Outcome {
    published.recorder().ok_or(NO_RECORDER)?;
    if let Some(kind) = kind {
        known_kind(kind, &published.kind_names())?;
    }
    let watched = watch(published, 1)?;
    let subsystems = watched.seconds.iter().flat_map(|second| &second.subsystems);
    Ok(match kind {
        None => in_frames(call, subsystems),
        Some(kind) => in_ticks(call, subsystems, kind),
    })
}

fn known_kind(kind: &str, kinds: &[String]) -> Result<(), String> {
    let is_known = kinds.iter().any(|known| known == kind);
    is_known
        .then_some(())
        .ok_or_else(|| format!("kind: there is no kind of world `{kind}`; there are {}", kinds.join(", ")))
}

fn duration_of(us: f64) -> Cell<'static> {
    Cell::Duration((us * NS_PER_US) as u64)
}

fn in_frames<'a>(call: &Call<'_>, subsystems: impl Iterator<Item = &'a Subsystem>) -> String {
    let mut table = TextTable::new([
        Column::text_at_most("subsystem", "subsystem", NAME_CHARACTERS_MAX),
        Column::text("category", "category"),
        Column::duration("a frame", "frame_ns_mean"),
        Column::duration("longest", "frame_ns_max"),
        Column::duration("budget", "budget_ns"),
        Column::duration("waits for locks", "lock_wait_ns_mean"),
    ]);
    for of in subsystems.take(ROWS_MAX) {
        table.row(&[
            Cell::Text(&of.name),
            Cell::Text(&of.category),
            duration_of(of.us_per_frame),
            duration_of(of.us_frame_max),
            of.budget_us.map_or(Cell::Empty, duration_of),
            duration_of(of.lock_wait_us_per_frame),
        ]);
    }
    call.table(table)
}

fn in_ticks<'a>(call: &Call<'_>, subsystems: impl Iterator<Item = &'a Subsystem>, kind: &str) -> String {
    let of_kind = |of: &'a Subsystem| Some((of, of.kinds.iter().find(|in_kind| in_kind.kind == kind)?));
    let mut rows: Vec<_> = subsystems.filter_map(of_kind).collect();
    rows.sort_by(|(_, a), (_, b)| b.us_per_tick.unwrap_or_default().total_cmp(&a.us_per_tick.unwrap_or_default()));
    let mut table = TextTable::new([
        Column::text_at_most("subsystem", "subsystem", NAME_CHARACTERS_MAX),
        Column::text("category", "category"),
        Column::duration("a tick", "tick_ns_mean"),
        Column::duration("budget", "tick_budget_ns"),
        Column::duration("longest of all in a frame", "frame_ns_max"),
        Column::duration("budget of all", "frame_budget_ns"),
    ]);
    for (of, in_kind) in rows.into_iter().take(ROWS_MAX) {
        table.row(&[
            Cell::Text(&of.name),
            Cell::Text(&of.category),
            in_kind.us_per_tick.map_or(Cell::Empty, duration_of),
            in_kind.tick_budget_us.map_or(Cell::Empty, duration_of),
            duration_of(in_kind.us_frame_max),
            in_kind.frame_budget_us.map_or(Cell::Empty, duration_of),
        ]);
    }
    call.table(table)
}

fn world_table(call: &Call<'_>, control: &ServerControl, kind: Option<&str>) -> Outcome {
    if let Some(kind) = kind {
        known_kind(kind, &control.published().kind_names())?;
    }
    let silent = || format!("the server has not answered within {} s: its frame is stuck", ANSWER_WITHIN.as_secs());
    let mut rows = control.worlds().wait(ANSWER_WITHIN).ok_or_else(silent)?.map_err(|error| error.to_string())?;
    rows.retain(|row| kind.is_none_or(|kind| &*row.kind == kind));
    Ok(worlds_by_cost(call, rows))
}

/// One that hangs adds nothing to what it takes, and is what is looked for.
fn worlds_by_cost(call: &Call<'_>, mut rows: Vec<WorldRow>) -> String {
    rows.sort_by(|a, b| {
        let hangs = |row: &WorldRow| row.hangs_for().is_some();
        hangs(b).cmp(&hangs(a)).then(b.load().total_cmp(&a.load())).then(a.id.cmp(&b.id))
    });
    let mut table = TextTable::new([
        Column::text("world", "world"),
        Column::text_at_most("kind", "kind", NAME_CHARACTERS_MAX),
        Column::integer("players", "players"),
        Column::text("state", "state"),
        Column::text("overload", "overload"),
        Column::float("load %", "load_percent", 1),
        Column::duration("usual tick", "tick_ns"),
        Column::duration("last", "last_tick_ns"),
        Column::duration("longest", "longest_tick_ns"),
        Column::duration("period", "period_ns"),
        Column::integer("missed", "ticks_missed"),
    ]);
    for row in rows.iter().take(ROWS_MAX) {
        table.row(&[
            Cell::Text(&row.id.to_string()),
            Cell::Text(&row.kind),
            Cell::Integer(row.players as i64),
            Cell::Text(&state_of(row)),
            Cell::Text(row.overload.name()),
            Cell::Float(100.0 * row.load()),
            Cell::Duration(row.tick_cost.0),
            Cell::Duration(row.last_tick.0),
            Cell::Duration(row.longest_tick.0),
            Cell::Duration(row.rate.period().0),
            Cell::Integer(row.ticks_missed.cast_signed()),
        ]);
    }
    call.table(table)
}

fn system_table(call: &Call<'_>, scopes: &[WorldScope]) -> String {
    let mut table = TextTable::new([
        Column::text_at_most("system", "scope", NAME_CHARACTERS_MAX),
        Column::text_at_most("subsystem", "subsystem", NAME_CHARACTERS_MAX),
        Column::integer("times", "count"),
        Column::duration("each", "own_ns_mean"),
        Column::duration("together", "own_ns"),
        Column::duration("longest", "longest_ns"),
    ]);
    for WorldScope { name, subsystem, count, own_ns, longest_ns, .. } in scopes.iter().take(ROWS_MAX) {
        table.row(&[
            Cell::Text(name),
            Cell::Text(subsystem),
            Cell::Integer(count.cast_signed()),
            Cell::Duration(own_ns / count.max(&1)),
            Cell::Duration(*own_ns),
            Cell::Duration(*longest_ns),
        ]);
    }
    call.table(table)
}

fn host_table(call: &Call<'_>, published: &PublishedMetrics) -> String {
    let known: HashMap<_, _> = published.account_figures().into_iter().collect();
    let mut table = TextTable::new([
        Column::text("figure", "figure"),
        Column::float("value", "value", 3),
        Column::text("what it is", "help"),
    ]);
    for figure in &FIGURES {
        let value = known.get(figure.name).map_or(Cell::Empty, |value| Cell::Float(*value));
        table.row(&[Cell::Text(figure.name), value, Cell::Text(figure.help)]);
    }
    call.table(table)
}

fn thread_table(call: &Call<'_>) -> Outcome {
    let (before, began) = (accounts::threads(), Instant::now());
    if before.is_empty() {
        return Err("this kernel does not tell what threads run and wait (schedstat)".to_owned());
    }
    thread::sleep(SPAN);
    Ok(threads_between(call, &before, accounts::threads(), began.elapsed().as_secs_f64()))
}

fn threads_between(call: &Call<'_>, before: &[ThreadAccount], after: Vec<ThreadAccount>, seconds: f64) -> String {
    let before: HashMap<u32, &ThreadAccount> = before.iter().map(|thread| (thread.tid, thread)).collect();
    let mut rows: Vec<(ThreadAccount, [f64; 2])> = after
        .into_iter()
        .map(|thread| {
            // A number that was given to another thread begins anew.
            let then = before.get(&thread.tid).filter(|then| then.cpu <= thread.cpu && then.name == thread.name);
            let then = then.map_or([0; 2], |then| [then.cpu.0, then.run_queue_wait.0]);
            let now = [thread.cpu.0, thread.run_queue_wait.0];
            let cores = [0, 1].map(|place| now[place].saturating_sub(then[place]) as f64 / 1e9 / seconds);
            (thread, cores)
        })
        .collect();
    rows.sort_by(|(a, [a_ran, _]), (b, [b_ran, _])| b_ran.total_cmp(a_ran).then(a.tid.cmp(&b.tid)));
    let mut table = TextTable::new([
        Column::text("thread", "thread"),
        Column::integer("id", "tid"),
        Column::float("runs, cores", "cpu_cores", 3),
        Column::float("waits for a core", "run_queue_wait_cores", 3),
    ]);
    for (thread, [ran, waited]) in rows.iter().take(ROWS_MAX) {
        let tid = Cell::Integer(thread.tid.into());
        table.row(&[Cell::Text(&thread.name), tid, Cell::Float(*ran), Cell::Float(*waited)]);
    }
    call.table(table)
}

#[cfg(test)]
mod tests {
    use throng::{overload::Level, prelude::Hertz};
    use throng_platform::time::Nanos;

    use super::*;
    use crate::watch::document::{InKind, ServerNow};

    fn call(as_json: bool) -> Call<'static> {
        Call { arguments: Vec::new(), as_json, who: "" }
    }

    /// The first cell of each row.
    fn names(table: &str) -> Vec<&str> {
        table.lines().skip(1).filter_map(|line| line.split(' ').next()).collect()
    }

    fn second(missed: f64, lateness_ms: f64) -> Second {
        let server = ServerNow {
            frame_budget_ms: 16.0,
            ticks: 20.0,
            ticks_missed: missed,
            tick_lateness_ms_max: lateness_ms,
            ..ServerNow::default()
        };
        Second { server, ..Second::default() }
    }

    #[test]
    fn frames_of_all_seconds_are_one_row() {
        // 1 to 100 ms, the longest first.
        let frames_us = (1..=100).rev().map(|ms| ms * 1_000).collect();
        let told = frame_table(&call(true), &[second(1.0, 7.0), second(2.0, 3.0)], frames_us);
        let row = "{\"seconds\":2,\"frames\":100,\"frames_over_budget\":84,\"p50_ns\":50000000,\"p99_ns\":99000000,\
                   \"longest_ns\":100000000,\"budget_ns\":16000000,\"ticks\":40,\"ticks_missed\":3,\
                   \"ticks_missed_host\":0,\"tick_lateness_ns\":7000000,\"host_took_ns\":0}";
        assert_eq!(told, format!("{{\"rows\":[{row}]}}"));
        let asleep = frame_table(&call(true), &[second(0.0, 0.0)], Vec::new());
        assert!(asleep.contains("\"frames\":0,\"frames_over_budget\":0,\"p50_ns\":null"), "{asleep}");
    }

    fn subsystem(name: &str, us: f64, in_kinds: &[(&str, f64)]) -> Subsystem {
        let in_kind = |(kind, us): &(&str, f64)| InKind {
            kind: (*kind).to_owned().into(),
            us_per_tick: Some(*us),
            tick_budget_us: Some(9.0),
            ..InKind::default()
        };
        let kinds = in_kinds.iter().map(in_kind).collect();
        Subsystem {
            name: name.to_owned().into(),
            us_per_frame: us,
            budget_us: Some(50.0),
            kinds,
            ..Subsystem::default()
        }
    }

    #[test]
    fn subsystems_stand_beside_their_budgets_in_frames_or_in_ticks_of_a_kind() {
        let all = [subsystem("ai", 40.0, &[("hub", 2.0)]), subsystem("physics", 30.0, &[("hub", 3.0), ("cave", 1.0)])];
        let frames = in_frames(&call(false), all.iter());
        assert_eq!(names(&frames), ["ai", "physics"], "{frames}");
        assert!(in_frames(&call(true), all.iter()).contains("\"frame_ns_mean\":40000,"));
        assert!(in_frames(&call(true), all.iter()).contains("\"budget_ns\":50000,"));
        let ticks = in_ticks(&call(false), all.iter(), "hub");
        assert_eq!(names(&ticks), ["physics", "ai"], "{ticks}");
        let ticks = in_ticks(&call(true), all.iter(), "cave");
        assert!(ticks.contains("\"subsystem\":\"physics\"") && !ticks.contains("\"ai\""), "{ticks}");
        assert!(ticks.contains("\"tick_ns_mean\":1000,\"tick_budget_ns\":9000,"), "{ticks}");
    }

    #[test]
    fn the_world_that_takes_most_is_first_and_one_that_hangs_before_it() {
        let row = |index: u32, us: u64| WorldRow {
            id: throng::ids::WorldId::new(index, 0),
            kind: "hub".into(),
            rate: Hertz(20),
            players: 0,
            is_dormant: false,
            time_percent: 100,
            tick_cost: Nanos::from_micros(us),
            last_tick: Nanos::ZERO,
            longest_tick: Nanos::ZERO,
            overload: Level::Normal,
            in_tick_for: None,
            ticks_missed: 0,
            behind: None,
        };
        let hangs = WorldRow { in_tick_for: Some(Nanos::from_secs(2)), ..row(3, 1) };
        let sleeps = WorldRow { is_dormant: true, ..row(4, 90_000) };
        let told = worlds_by_cost(&call(false), vec![row(0, 10), row(1, 25_000), sleeps, hangs]);
        assert_eq!(names(&told), ["3", "1", "0", "4"], "{told}");
        let told = worlds_by_cost(&call(true), vec![row(1, 25_000)]);
        assert!(told.contains("\"load_percent\":50.0,\"tick_ns\":25000000,"), "{told}");
        assert!(told.contains("\"period_ns\":50000000,"), "{told}");
    }

    #[test]
    fn threads_are_told_by_what_they_ran_between_two_looks() {
        let thread = |tid, name: &str, cpu_ms, waited_ms| ThreadAccount {
            tid,
            name: name.to_owned(),
            cpu: Nanos::from_millis(cpu_ms),
            run_queue_wait: Nanos::from_millis(waited_ms),
        };
        let before = [thread(1, "frame", 9_000, 500), thread(2, "worker-0", 70, 10), thread(3, "gone", 1, 1)];
        // The number of the third is another thread's now.
        let after = vec![thread(1, "frame", 9_200, 600), thread(2, "worker-0", 1_070, 10), thread(3, "new", 300, 0)];
        let told = threads_between(&call(true), &before, after, 2.0);
        let row = |name, tid, ran, waited| {
            format!("{{\"thread\":\"{name}\",\"tid\":{tid},\"cpu_cores\":{ran},\"run_queue_wait_cores\":{waited}}}")
        };
        let rows =
            [row("worker-0", 2, "0.500", "0.000"), row("new", 3, "0.150", "0.000"), row("frame", 1, "0.100", "0.050")];
        assert_eq!(told, format!("{{\"rows\":[{}]}}", rows.join(",")));
    }
}
