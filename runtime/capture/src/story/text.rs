//! The story as text: at most 110 columns, what matters most on top, lists only where there is something to list.

use std::io::{self, Write};

use super::{
    facts::{AccountFacts, CoreWaitFacts, HadCoreFacts, HostStallFacts, LockHolder, Story, TriggerFacts},
    foreign, words,
};
use crate::model::{Owner, SwitchSource, TriggerKind};

pub const COLUMNS_MAX: usize = 110;

pub fn write(story: &Story, with_emphasis: bool, out: &mut impl Write) -> io::Result<()> {
    let mut page = Page { out, with_emphasis };
    page.headline(&story.verdict)?;
    about(story, &mut page)?;
    frame(story, &mut page)?;
    processes(story, &mut page)?;
    worlds(story, &mut page)?;
    subsystems(story, &mut page)?;
    categories(story, &mut page)?;
    scopes(story, &mut page)?;
    waits(story, &mut page)?;
    memory(story, &mut page)?;
    rest(story, &mut page)
}

struct Page<'a, W> {
    out: &'a mut W,
    with_emphasis: bool,
}

impl<W: Write> Page<'_, W> {
    fn headline(&mut self, verdict: &str) -> io::Result<()> {
        for line in wrap(verdict, COLUMNS_MAX) {
            self.emphasised(&line)?;
        }
        Ok(())
    }

    /// An empty line and the head of a list.
    fn section(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out)?;
        self.emphasised(&cut(title, COLUMNS_MAX))
    }

    fn emphasised(&mut self, line: &str) -> io::Result<()> {
        if self.with_emphasis { writeln!(self.out, "\x1b[1m{line}\x1b[0m") } else { writeln!(self.out, "{line}") }
    }

    fn row(&mut self, row: &str) -> io::Result<()> {
        writeln!(self.out, "  {}", cut(row.trim_end(), COLUMNS_MAX - 2))
    }

    /// A sentence that may need several lines.
    fn sentence(&mut self, sentence: &str) -> io::Result<()> {
        let mut indent = "  ";
        for line in wrap(sentence, COLUMNS_MAX - 4) {
            writeln!(self.out, "{indent}{line}")?;
            indent = "    ";
        }
        Ok(())
    }
}

fn about(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    let about = &story.about;
    writeln!(page.out)?;
    page.row(&format!("{}, game {}, {} cores; saved {}", about.build, about.game, about.cores, about.saved))?;
    page.sentence(&format!("trigger: {}", trigger(&about.trigger)))?;
    page.row(&format!(
        "covers {:.1} s, {} frames, {} threads, {} worlds; {} records lost",
        about.covers_ms / 1e3,
        about.frames,
        about.threads,
        about.worlds,
        about.records_lost
    ))?;
    let source = match about.switches {
        SwitchSource::CpuWide => {
            "context switches: all of our threads, and who else had our cores (cpu-wide)".to_owned()
        }
        SwitchSource::PerfEvent => "context switches: all of our threads (perf_event)".to_owned(),
        SwitchSource::Schedstat => format!("context switches: schedstat only; {}", about.switches_lost),
        SwitchSource::None => format!("context switches: {}", about.switches_lost),
    };
    let why_not = &about.switches_why_not;
    page.sentence(&if why_not.is_empty() { source } else { format!("{source}; {why_not}") })
}

fn trigger(trigger: &TriggerFacts) -> String {
    let figures = match trigger.unit {
        "ns" => Some((words::time(trigger.measured), words::time(trigger.allowed))),
        "bytes/s" => Some((words::rate(trigger.measured as f64), words::rate(trigger.allowed as f64))),
        "bytes" => Some((words::binary_bytes(trigger.measured), words::binary_bytes(trigger.allowed))),
        "%" => Some((format!("{} %", trigger.measured), format!("{} %", trigger.allowed))),
        _ => None,
    };
    let mut said = trigger.kind.name().to_owned();
    if !trigger.name.is_empty() {
        said += &format!(" {}", trigger.name);
    }
    if let Some((measured, allowed)) = figures {
        said += &format!(", {measured} measured, {allowed} allowed");
    }
    if let Some(world) = &trigger.world_name {
        said += &format!(", world {world}");
    }
    said += &format!(", frame {}", trigger.frame);
    if !trigger.note.is_empty() && !matches!(trigger.kind, TriggerKind::Manual | TriggerKind::Crash) {
        said += &format!("; {}", trigger.note);
    }
    said
}

fn frame(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    let Some(frame) = &story.frame else { return page.section("no frames in the capture") };
    page.section(&format!(
        "frame {}: {}, budget {}, usually {} ({} other frames)",
        frame.number,
        words::time(frame.wall_ns),
        words::time(frame.budget_ns),
        words::time(frame.usual_wall_ns),
        frame.other_frames
    ))?;
    if story.threads.is_empty() {
        return Ok(());
    }
    page.row(&format!(
        "{:<20} {:<10} {:>9} {:>9} {:>9}   {:>29}   {:>9}",
        "thread (ms)", "class", "running", "no core", "blocked", "usually", "no scope"
    ))?;
    for thread in &story.threads {
        let usual = format!(
            "{:>9.2} {:>9.2} {:>9.2}",
            thread.usual_running_ms, thread.usual_waiting_ms, thread.usual_blocked_ms
        );
        page.row(&format!(
            "{:<20} {:<10} {:>9.2} {:>9.2} {:>9.2}   {usual}   {:>9.2}",
            cut(&thread.name, 20),
            thread.class,
            thread.running_ms,
            thread.waiting_ms,
            thread.blocked_ms,
            thread.outside_of_scopes_ms
        ))?;
    }
    page.row(&format!(
        "in no scope: {:.1} % of the frame thread's time, {:.1} % of the time that frame and short-task threads were busy",
        100.0 * frame.unaccounted_share,
        100.0 * frame.unaccounted_share_of_workers
    ))
}

/// Who else had cores: beside what our own threads had, since each figure below is to be read with it.
fn processes(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if story.processes.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = story.processes.iter().map(|it| foreign::words_of(it, "")).collect();
    page.section("cores used by other processes")?;
    page.sentence(&list.join(", "))
}

/// Name, wall, states and the usual wall time.
fn timed_row(name: &str, wall_ms: f64, running_ms: f64, waiting_ms: f64, blocked_ms: f64, usual_ms: f64) -> String {
    let name = cut(name, 31);
    format!("{name:<31} {wall_ms:>9.2} {running_ms:>9.2} {waiting_ms:>9.2} {blocked_ms:>9.2} {usual_ms:>9.2}")
}

/// The head of such rows, as a section's title: two columns wider, for rows are indented.
fn timed_head(name: &str) -> String {
    format!("{name:<33} {:>9} {:>9} {:>9} {:>9} {:>9}", "wall", "running", "no core", "blocked", "usually")
}

fn worlds(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if story.worlds.is_empty() {
        return Ok(());
    }
    page.section(&format!("{}  dearest scope", timed_head(&format!("worlds, {} in all (ms)", story.worlds_count))))?;
    for world in &story.worlds {
        let row = timed_row(
            &format!("{}, tick {}", world.name, world.tick),
            world.wall_ms,
            world.running_ms,
            world.waiting_ms,
            world.blocked_ms,
            world.usual_wall_ms,
        );
        page.row(&format!("{row}  {}", world.dearest_scope.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

fn subsystems(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if story.subsystems.is_empty() {
        return Ok(());
    }
    page.section(&timed_head("subsystems, exclusive (ms)"))?;
    for it in &story.subsystems {
        let row = timed_row(&it.name, it.wall_ms, it.running_ms, it.waiting_ms, it.blocked_ms, it.usual_wall_ms);
        let budget = it.budget_ms.map(|budget| format!("  budget {budget:.2}")).unwrap_or_default();
        page.row(&format!("{row}{budget}"))?;
    }
    Ok(())
}

fn categories(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if story.categories.is_empty() {
        return Ok(());
    }
    page.section(&timed_head("categories, exclusive (ms)"))?;
    for it in &story.categories {
        page.row(&timed_row(&it.name, it.wall_ms, it.running_ms, it.waiting_ms, it.blocked_ms, it.usual_wall_ms))?;
    }
    Ok(())
}

fn scopes(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if !story.scopes.is_empty() {
        page.section(&timed_head("scopes, exclusive (ms)"))?;
    }
    for it in &story.scopes {
        let row = timed_row(&it.name, it.wall_ms, it.running_ms, it.waiting_ms, it.blocked_ms, it.usual_wall_ms);
        page.row(&format!("{row}  {} x", it.count))?;
    }
    if !story.scopes_over_budget.is_empty() {
        page.section("scopes over their budgets")?;
    }
    for it in &story.scopes_over_budget {
        page.sentence(&format!(
            "{}: {} of {}, longest {} ms of {} on {}",
            it.scope,
            it.over,
            it.count,
            small_ms(it.longest_ms),
            small_ms(it.budget_ms),
            it.thread
        ))?;
    }
    Ok(())
}

/// With as many figures as it takes for a budget below a microsecond not to be nothing.
fn small_ms(ms: f64) -> String {
    if ms > 0.0 && ms < 0.01 { format!("{ms:.4}") } else { format!("{ms:.2}") }
}

fn waits(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if !story.lock_waits.is_empty() {
        page.section("waits for locks")?;
    }
    for it in &story.lock_waits {
        let inversion = if it.is_priority_inversion { "  PRIORITY INVERSION" } else { "" };
        let waits =
            if it.waits > 1 { format!(" in {} waits, longest {:.2}", it.waits, it.longest_ms) } else { String::new() };
        let holder = it.holder.as_ref().map_or_else(|| "an unknown thread".into(), holder);
        page.sentence(&format!(
            "{:.2} ms{waits}: {} for \"{}\"{}, held by {holder}{inversion}",
            it.waited_ms,
            it.thread,
            it.lock,
            place(it.scope.as_deref(), it.world)
        ))?;
    }
    if !story.core_waits.is_empty() {
        page.section("waits for a core")?;
    }
    for it in &story.core_waits {
        if !it.had_core.is_empty() {
            page.sentence(&had_core(it))?;
            continue;
        }
        let ran: Vec<String> = it
            .ran
            .iter()
            .map(|ran| format!("{} ({}) {:.2} ms on core {}", ran.thread, ran.class, ran.ran_ms, ran.core))
            .collect();
        let ran = if ran.is_empty() { "none of our threads".to_owned() } else { ran.join(", ") };
        page.sentence(&format!(
            "{:.2} ms: {}, {:.2} ms into the frame; meanwhile ran {ran}",
            it.waited_ms, it.thread, it.begin_ms
        ))?;
    }
    if !story.host_stalls.is_empty() {
        page.section("cores that stood still, in the whole capture")?;
    }
    for it in &story.host_stalls {
        let side = if it.begin_ms < 0.0 { "before" } else { "into" };
        let HostStallFacts { core, begin_ms, stalled_ms } = it;
        page.row(&format!("{stalled_ms:.2} ms: core {core}, {:.2} ms {side} the frame", begin_ms.abs()))?;
    }
    if !story.accounts.is_empty() {
        page.section("what the server used, from inside and from outside, around the frame")?;
    }
    for it in &story.accounts {
        let AccountFacts { name, last, most, .. } = it;
        page.row(&format!("{:<46} {last:>14.2} last {most:>14.2} at most", cut(name, 46)))?;
    }
    Ok(())
}

/// `10.50 ms: worker-1 for core 0, 3.00 ms into the frame; the core had rustc (pid 123) 9.80 ms, ...`.
fn had_core(it: &CoreWaitFacts) -> String {
    let who = |had: &HadCoreFacts| match (had.owner, had.processes) {
        (Owner::Own | Owner::Idle, _) => format!("{} {:.2} ms", had.name, had.ran_ms),
        (Owner::Foreign, 0 | 1) => format!("{} (pid {}) {:.2} ms", had.name, had.pid, had.ran_ms),
        (Owner::Foreign, count) => format!("{count} x {} {:.2} ms (pid {}, ...)", had.name, had.ran_ms, had.pid),
    };
    let had: Vec<String> = it.had_core.iter().map(who).collect();
    let CoreWaitFacts { thread, core, waited_ms, begin_ms, .. } = it;
    format!(
        "{waited_ms:.2} ms: {thread} for core {core}, {begin_ms:.2} ms into the frame; the core had {}",
        had.join(", ")
    )
}

fn holder(holder: &LockHolder) -> String {
    format!("{} ({}){}", holder.thread, holder.class, place(holder.scope.as_deref(), holder.world))
}

fn place(scope: Option<&str>, world: Option<u32>) -> String {
    let scope = scope.map(|scope| format!(" in {scope}")).unwrap_or_default();
    let world = world.map(|world| format!(" of world {world}")).unwrap_or_default();
    scope + &world
}

fn memory(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if !story.allocators.is_empty() {
        page.section("allocations in the frame, by scope")?;
    }
    for it in &story.allocators {
        page.row(&format!(
            "{:<31} {:>9} in {} allocations, {} frees",
            cut(&it.scope, 31),
            words::bytes(it.bytes),
            it.allocations,
            it.frees
        ))?;
    }
    if !story.droppers.is_empty() {
        page.section("large drops in the frame that were not handed over, by scope")?;
    }
    for it in &story.droppers {
        page.row(&format!("{:<31} {} frees, {} allocations", cut(&it.scope, 31), it.frees, it.allocations))?;
    }
    if !story.thread_allocations.is_empty() {
        page.section("allocations in the whole capture, by thread")?;
    }
    for it in &story.thread_allocations {
        page.row(&format!(
            "{:<31} {:>9} at {}, most in {}",
            cut(&it.thread, 31),
            words::bytes(it.bytes),
            words::rate(it.bytes_per_s),
            it.dearest_scope
        ))?;
    }
    if !story.large_allocations.is_empty() {
        page.section("large allocations")?;
    }
    for it in &story.large_allocations {
        let world = it.world_name.as_ref().map(|world| format!(" of world {world}")).unwrap_or_default();
        let scope = place(it.scope.as_deref(), None);
        let when = if it.is_in_frame { "" } else { " (in another frame)" };
        page.row(&format!("{}{scope}{world} on {}{when}", words::binary_bytes(it.bytes), it.thread))?;
    }
    if !story.leaks.is_empty() {
        page.section("live memory that grew, by scope")?;
    }
    for it in &story.leaks {
        page.row(&format!(
            "{:<31} {:>9} to {:>9} in {:.0} s, {}, rising {:.0} % of the time",
            cut(&it.scope, 31),
            words::bytes(it.live_bytes_first),
            words::bytes(it.live_bytes_last),
            it.seconds,
            words::rate(it.bytes_per_s),
            100.0 * it.rising_share
        ))?;
    }
    Ok(())
}

fn rest(story: &Story, page: &mut Page<impl Write>) -> io::Result<()> {
    if !story.page_faults.is_empty() {
        let list: Vec<String> = story.page_faults.iter().map(|it| format!("{} {}", it.scope, it.page_faults)).collect();
        page.section("page faults in the frame")?;
        page.sentence(&list.join(", "))?;
    }
    if !story.logs.is_empty() {
        page.section(&format!("log lines in the frame, {} in all", story.logs_count))?;
    }
    for line in &story.logs {
        page.sentence(&format!(
            "{:>7.2} ms {:<5} {} {}: {}",
            line.at_ms, line.level, line.thread, line.target, line.text
        ))?;
    }
    Ok(())
}

/// At most `chars_max` characters; what is cut off is replaced by `…`.
fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    text.chars().take(chars_max - 1).chain(['…']).collect()
}

/// Lines of at most `columns` characters, broken at spaces where there are any.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let word = cut(word, columns);
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > columns {
            lines.push(String::new());
            length = 0;
        }
        if let Some(line) = lines.last_mut() {
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            line.push_str(&word);
            length += word_length;
        }
    }
    lines
}
