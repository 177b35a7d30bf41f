//! Gathering: asks each part of the story for its facts, and keeps the first rows of each.

use super::{
    accounts,
    context::Context,
    cores,
    facts::{AboutFacts, LogFacts, ProcessFacts, ROWS_MAX, Story, TriggerFacts},
    foreign, frame, memory, stalls, waits, words,
};
use crate::model::SwitchSource;

/// Figures of the accounts; there are fewer, unless a stranger made the capture.
const ACCOUNTS_MAX: usize = 32;

/// Everything but the verdict.
pub fn gather(context: &Context) -> Story {
    let (begin_ns, end_ns) = context.window_ns();
    let lock_waits = waits::lock_waits(context, begin_ns, end_ns);
    let worlds_count =
        context.frame().map_or(0, |frame| frame.worlds.iter().filter(|world| world.world.is_some()).count());
    let mut story = Story {
        verdict: String::new(),
        about: about(context),
        frame: frame::facts(context),
        threads: frame::threads(context),
        worlds: frame::worlds(context, ROWS_MAX),
        worlds_count,
        subsystems: frame::subsystems(context),
        categories: frame::categories(context),
        scopes: frame::scopes(context),
        scopes_over_budget: frame::scopes_over_budget(context),
        lock_waits: lock_waits.iter().take(ROWS_MAX).map(|it| waits::facts(context, it)).collect(),
        core_waits: cores::facts(context, ROWS_MAX),
        host_stalls: stalls::facts(context, ROWS_MAX),
        accounts: accounts::facts(context, ACCOUNTS_MAX),
        allocators: memory::frame_allocators(context),
        droppers: memory::frame_droppers(context),
        thread_allocations: memory::thread_allocators(context),
        large_allocations: memory::large_allocations(context),
        page_faults: frame::page_faults(context),
        leaks: memory::leaks(context),
        processes: processes(context),
        ..Story::default()
    };
    (story.logs, story.logs_count) = logs(context);
    story.allocators.truncate(ROWS_MAX);
    story.droppers.truncate(ROWS_MAX);
    story.thread_allocations.truncate(ROWS_MAX);
    story.large_allocations.truncate(ROWS_MAX);
    story.page_faults.truncate(ROWS_MAX);
    story.leaks.truncate(ROWS_MAX);
    story
}

fn about(context: &Context) -> AboutFacts {
    let capture = context.capture;
    let about = &capture.about;
    let trigger = &about.trigger;
    AboutFacts {
        build: words::name(&about.build),
        game: words::name(&about.game),
        cores: about.cores,
        saved: words::date(about.saved_unix_s),
        saved_unix_s: about.saved_unix_s,
        covers_ms: words::ms(about.end_ns.saturating_sub(about.begin_ns)),
        frames: capture.frames.len(),
        threads: capture.threads.len(),
        worlds: capture.worlds.len(),
        trigger: TriggerFacts {
            kind: trigger.kind,
            name: if trigger.name.is_empty() { String::new() } else { words::name(&trigger.name) },
            measured: trigger.measured,
            allowed: trigger.allowed,
            unit: trigger.kind.unit().symbol(),
            world: trigger.world,
            world_name: trigger.world.map(|world| context.world(world)),
            frame: about.frame,
            note: words::text(&trigger.note),
        },
        switches: about.switches,
        switches_lost: switches_lost(about.switches).into(),
        switches_why_not: words::text(&about.switches_why_not),
        records_lost: about.records_lost,
        has_free_text: about.has_free_text,
    }
}

fn switches_lost(source: SwitchSource) -> &'static str {
    match source {
        SwitchSource::CpuWide | SwitchSource::PerfEvent => "",
        SwitchSource::Schedstat => {
            "sums per thread and frame, spread evenly over scopes; when a thread waited and for whom is not known"
        }
        SwitchSource::None => "unknown; scopes count as running but for waits for locks, waits for a core are not seen",
    }
}

fn logs(context: &Context) -> (Vec<LogFacts>, usize) {
    let (begin_ns, end_ns) = context.window_ns();
    let in_frame = || context.capture.logs.iter().filter(|line| (begin_ns..end_ns).contains(&line.at_ns));
    let facts = in_frame().take(ROWS_MAX).map(|line| LogFacts {
        at_ms: words::ms(line.at_ns.saturating_sub(begin_ns)),
        level: words::name(&line.level),
        thread: context.thread(line.thread),
        target: words::name(&line.target),
        text: words::text(&line.text),
    });
    (facts.collect(), in_frame().count())
}

fn processes(context: &Context) -> Vec<ProcessFacts> {
    let mut processes = foreign::facts(context);
    processes.truncate(ROWS_MAX);
    processes
}
