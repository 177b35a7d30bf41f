//! The verdict: one sentence that names what had the time, the core or the memory.
//!
//! Each kind of trigger has its sentence. A frame, a subsystem or a scope that took too long has a cause of its own, looked for in this
//! order: a wait for a lock, a wait for a core, one dear world, sleep within a world's tick, one subsystem that took more than usual. The first that explains at least
//! half of the excess is named; waits come first because they make everything around them look slow.

use super::{
    context::{Context, is_urgent},
    cores,
    facts::Story,
    memory, waits, words,
};
use crate::{
    attribution::{Attribution, Spent},
    model::{Event, Switch, SwitchSource, ThreadClass, TriggerKind},
};

/// Worlds that are named as the dearest of a subsystem.
const DEAREST_WORLDS: usize = 3;

/// What the capture was saved for.
pub fn of_trigger(context: &Context, story: &Story) -> String {
    let trigger = &context.capture.about.trigger;
    match trigger.kind {
        TriggerKind::Manual => by_hand(context, story),
        TriggerKind::Frame => frame(context, story),
        TriggerKind::Subsystem => subsystem(context),
        TriggerKind::Scope => scope(context),
        TriggerKind::LockWait => lock_wait(context),
        TriggerKind::RunQueue => run_queue(context),
        TriggerKind::MemoryRate => memory_rate(context),
        TriggerKind::LargeAllocation => large_allocation(context),
        TriggerKind::Leak => leak(context),
        TriggerKind::Crash => crash(context),
    }
}

/// `part` is what `whole` was mostly.
fn dominates(part_ns: u64, whole_ns: u64) -> bool {
    part_ns > 0 && part_ns >= whole_ns / 2
}

/// Another frame than the trigger's.
pub fn of_frame(context: &Context, story: &Story) -> String {
    let Some(frame) = &story.frame else { return "the capture has no frames".into() };
    let said =
        format!("frame {} took {}, budget {}", frame.number, words::time(frame.wall_ns), words::time(frame.budget_ns));
    if frame.wall_ns <= frame.budget_ns {
        return said;
    }
    match frame_cause(context, story) {
        Some(cause) => format!("{said}: {cause}"),
        None => said + "; no single wait, world or subsystem explains it",
    }
}

fn by_hand(context: &Context, story: &Story) -> String {
    let note = &story.about.trigger.note;
    let note = if note.is_empty() { String::new() } else { format!(" (\"{note}\")") };
    format!("saved by hand{note}; {}", of_frame(context, story))
}

fn frame(context: &Context, story: &Story) -> String {
    let about = &context.capture.about;
    let (measured, allowed) = (words::time(about.trigger.measured), words::time(about.trigger.allowed));
    let said = format!("frame {} took {measured}, budget {allowed}", about.frame);
    match frame_cause(context, story) {
        Some(cause) => format!("{said}: {cause}"),
        None => said + "; no single wait, world or subsystem explains it",
    }
}

/// What made the frame that long.
fn frame_cause(context: &Context, story: &Story) -> Option<String> {
    let frame = story.frame.as_ref()?;
    let usual_ns = if frame.other_frames > 0 { frame.usual_wall_ns } else { frame.budget_ns };
    let excess_ns = frame.wall_ns.saturating_sub(usual_ns).max(1);
    let (begin_ns, end_ns) = context.window_ns();

    let lock = waits::lock_waits(context, begin_ns, end_ns);
    if let Some(lock) = lock.iter().find(|it| is_urgent(context.class(it.longest.thread)))
        && dominates(lock.sum_ns, excess_ns)
    {
        let thread = context.thread(lock.longest.thread);
        return Some(format!("{thread} {}", waits::sentence(context, lock, lock.sum_ns)));
    }
    if let Some(thread) =
        story.threads.iter().filter(|it| is_urgent(context.class(it.thread))).max_by_key(|it| it.waiting_ns)
        && dominates(thread.waiting_ns, excess_ns)
    {
        return Some(without_a_core(context, thread.thread, thread.waiting_ns));
    }
    if let Some(world) = story.worlds.first()
        && dominates(world.wall_ns.saturating_sub(world.usual_wall_ns), excess_ns)
    {
        let scope = world.dearest_scope.as_ref().map(|scope| {
            if dominates(world.dearest_scope_ns, world.wall_ns) {
                format!(" in {scope}")
            } else {
                format!(", most of it in {scope} ({})", words::time(world.dearest_scope_ns))
            }
        });
        return Some(format!("world {} took {}{}", world.name, words::time(world.wall_ns), scope.unwrap_or_default()));
    }
    if let Some((thread, site, blocked_ns)) = blocked_in_a_world(context)
        && dominates(blocked_ns, excess_ns)
    {
        let (thread, scope) = (context.thread(thread), context.site(site));
        return Some(format!("{thread} was blocked for {} in scope {scope}", words::time(blocked_ns)));
    }
    // Without what was blocked: a thread that waits for the others waits longer in a long frame.
    let grown = story.subsystems.iter().max_by_key(|it| it.busy_ns.saturating_sub(it.usual_busy_ns))?;
    let growth_ns = grown.busy_ns.saturating_sub(grown.usual_busy_ns);
    dominates(growth_ns, excess_ns).then(|| {
        let (busy, usual) = (words::time(grown.busy_ns), words::time(grown.usual_busy_ns));
        format!("subsystem {} took {busy}, usually {usual}", grown.name)
    })
}

/// Where a thread was blocked longest while it worked for a world, which is never idling.
fn blocked_in_a_world(context: &Context) -> Option<(u32, u32, u64)> {
    let part = Attribution::of_part(context.capture, context.frame()?, &|_, world| world.is_some())?;
    let urgent = part.threads.iter().filter(|it| is_urgent(context.class(it.thread)));
    urgent
        .flat_map(|thread| thread.sites.iter().map(|&(site, cost)| (thread.thread, site, cost.exclusive.blocked_ns)))
        .max_by_key(|&(.., blocked_ns)| blocked_ns)
}

fn subsystem(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let frame = context.frame().map_or(context.capture.about.frame, |frame| frame.number);
    let over_ns = trigger.measured.saturating_sub(trigger.allowed);
    let mut said = format!(
        "subsystem {} took {} in frame {frame}, {} over its budget of {}",
        words::name(&trigger.name),
        words::time(trigger.measured),
        words::percent(over_ns, trigger.allowed),
        words::time(trigger.allowed)
    );
    let Some(frame) = context.frame() else { return said };
    let sites = &context.capture.sites;
    let is_of_subsystem =
        |site: Option<u32>| site.and_then(|it| sites.get(it as usize)).is_some_and(|it| it.subsystem == trigger.name);
    let Some(part) = Attribution::of_part(context.capture, frame, &|site, _| is_of_subsystem(site)) else {
        return said;
    };

    let mut spent = Spent::default();
    part.sites.iter().for_each(|(_, cost)| spent.add(&cost.exclusive));
    if over_ns > 0 && dominates(spent.waiting_ns, over_ns) {
        said += &format!("; {} of it without a core", words::time(spent.waiting_ns));
    } else if over_ns > 0 && dominates(spent.blocked_ns, over_ns) {
        said += &format!("; {} of it blocked", words::time(spent.blocked_ns));
    }
    let dearest: Vec<String> = part
        .worlds
        .iter()
        .filter_map(|it| Some((it.world?, it.cost.exclusive.total_ns())))
        .filter(|&(_, ns)| ns > 0)
        .take(DEAREST_WORLDS)
        .map(|(world, ns)| format!("{} {}", context.world(world), words::time(ns)))
        .collect();
    if !dearest.is_empty() {
        said += &format!("; dearest worlds {}", dearest.join(", "));
    }
    said
}

/// One run of a scope.
struct Run {
    thread: u32,
    begin_ns: u64,
    end_ns: u64,
    world: Option<u32>,
}

/// The run of the trigger's scope whose length is nearest to what the trigger measured, within the frame if there is one.
fn run_of_scope(context: &Context) -> Option<Run> {
    let trigger = &context.capture.about.trigger;
    // Several places in the code may share a name.
    let is_wanted = |site: u32| context.capture.sites.get(site as usize).is_some_and(|site| site.name == trigger.name);
    let (window_begin_ns, window_end_ns) = context.window_ns();
    let mut found: Option<(u64, Run)> = None;
    for (thread, it) in (0u32..).zip(&context.capture.threads) {
        let mut world = None;
        for event in &it.events {
            match *event {
                // Work for no world follows on work for one before the scope around both ends; the last world is the better guess.
                Event::World { world: of, .. } => world = of.or(world),
                Event::Scope { site, begin_ns, end_ns }
                    if is_wanted(site) && end_ns > window_begin_ns && begin_ns < window_end_ns =>
                {
                    let distance = end_ns.saturating_sub(begin_ns).abs_diff(trigger.measured);
                    if found.as_ref().is_none_or(|(nearest, _)| distance < *nearest) {
                        found = Some((distance, Run { thread, begin_ns, end_ns, world }));
                    }
                }
                _ => {}
            }
        }
    }
    found.map(|(_, run)| run)
}

fn scope(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let run = run_of_scope(context);
    let who = match (trigger.world.or(run.as_ref().and_then(|run| run.world)), &run) {
        (Some(world), _) => format!("world {}", context.world(world)),
        (None, Some(run)) => format!("thread {}", context.thread(run.thread)),
        (None, None) => "a thread".into(),
    };
    let said = format!(
        "{who} took {} in {}, budget {}",
        words::time(trigger.measured),
        words::name(&trigger.name),
        words::time(trigger.allowed)
    );
    let Some(run) = run else { return said };
    let over_ns = trigger.measured.saturating_sub(trigger.allowed).max(1);
    let locks = waits::lock_waits(context, run.begin_ns, run.end_ns);
    if let Some(lock) = locks.iter().find(|it| it.longest.thread == run.thread)
        && dominates(lock.sum_ns, over_ns)
    {
        return format!("{said}: {} {}", context.thread(run.thread), waits::sentence(context, lock, lock.sum_ns));
    }
    let window = (run.begin_ns, run.end_ns);
    let without_ns = cores::sum_ns(&cores::waits(context, run.thread, Switch::Preempted, window));
    if dominates(without_ns, over_ns) {
        return format!("{said}: {}", without_a_core_within(context, run.thread, without_ns, window));
    }
    said
}

fn lock_wait(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let (begin_ns, end_ns) = context.window_ns();
    let is_named = |wait: &waits::LockWaits| {
        context.capture.locks.get(wait.longest.lock as usize).is_some_and(|lock| lock.name == trigger.name)
    };
    // The wait may have ended in the frame after; then it is looked for everywhere.
    let of_lock = [(begin_ns, end_ns), (0, u64::MAX)].into_iter().find_map(|(begin_ns, end_ns)| {
        waits::lock_waits(context, begin_ns, end_ns)
            .into_iter()
            .filter(is_named)
            .max_by_key(|wait| (is_urgent(context.class(wait.longest.thread)), wait.longest_ns))
    });
    match of_lock {
        Some(mut wait) => {
            // The trigger is about one wait, not about the sum.
            wait.count = 1;
            format!("{} {}", context.thread(wait.longest.thread), waits::sentence(context, &wait, trigger.measured))
        }
        None => format!(
            "a thread waited {} for lock \"{}\", allowed {}; the wait itself is not in the capture",
            words::time(trigger.measured),
            words::name(&trigger.name),
            words::time(trigger.allowed)
        ),
    }
}

fn run_queue(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    match context.thread_named(&trigger.name) {
        Some(thread) => without_a_core(context, thread, trigger.measured),
        None => format!(
            "{} was ready and had no core for {}; {}",
            words::name(&trigger.name),
            words::time(trigger.measured),
            busiest(context)
        ),
    }
}

/// Who had the cores that `thread` was ready for, in the frame.
fn without_a_core(context: &Context, thread: u32, waited_ns: u64) -> String {
    without_a_core_within(context, thread, waited_ns, context.window_ns())
}

fn without_a_core_within(context: &Context, thread: u32, waited_ns: u64, window: (u64, u64)) -> String {
    let name = context.thread(thread);
    if let Some((long, core)) = long_task_instead(context, thread, waited_ns, window) {
        let core = core.map(|core| format!(" ran on core {core}")).unwrap_or_else(|| " ran".into());
        let estimate = if core == " ran" { " (as far as sums can tell)" } else { "" };
        let name_of_long = context.thread(long);
        return format!(
            "our own long task {name_of_long}{core} while {name} waited {} for it{estimate}",
            words::time(waited_ns)
        );
    }
    let wall_ns = window.1 - window.0;
    let of = if wall_ns >= waited_ns { format!(" of {}", words::time(wall_ns)) } else { String::new() };
    let preempted = cores::waits(context, thread, Switch::Preempted, window);
    let ran = cores::ran_during(context, thread, &preempted, window);
    let own: Vec<String> = ran
        .iter()
        .filter(|ran| dominates(ran.same_core_ns, waited_ns))
        .take(1)
        .map(|ran| {
            format!(
                "{} thread {} ran on core {}",
                context.class(ran.thread).name(),
                context.thread(ran.thread),
                ran.core
            )
        })
        .collect();
    match own.first() {
        Some(own) => {
            format!("{name} was ready and had no core for {}{of}; our own {own} meanwhile", words::time(waited_ns))
        }
        None => format!(
            "the cores were taken by other processes: {name} was ready and had no core for {}{of}; {}",
            words::time(waited_ns),
            busiest(context)
        ),
    }
}

/// The long task that ran while `thread` was ready, if one did for at least half of the time, and on which core.
fn long_task_instead(context: &Context, thread: u32, waited_ns: u64, window: (u64, u64)) -> Option<(u32, Option<u32>)> {
    let is_long = |thread: u32| context.class(thread) == ThreadClass::LongTask;
    let preempted = cores::waits(context, thread, Switch::Preempted, window);
    let preempted_ns = cores::sum_ns(&preempted);
    if preempted_ns > 0 {
        let ran = cores::ran_during(context, thread, &preempted, window).into_iter().find(|ran| is_long(ran.thread));
        if let Some(ran) = ran.filter(|ran| dominates(ran.same_core_ns.max(ran.ns), preempted_ns)) {
            return Some((ran.thread, Some(ran.core)));
        }
    }
    if dominates(preempted_ns, waited_ns) {
        return None;
    }
    // The rest of the wait came after wake-ups, which look like sleep. Then only a long task on the thread's own core is blamed.
    let asleep = cores::waits(context, thread, Switch::Blocked, window);
    let ran = cores::ran_during(context, thread, &asleep, window).into_iter().find(|ran| is_long(ran.thread));
    if let Some(ran) = ran.filter(|ran| dominates(ran.same_core_ns, waited_ns)) {
        return Some((ran.thread, Some(ran.core)));
    }
    if context.capture.about.switches == SwitchSource::PerfEvent || foreign_cores(context) >= 0.5 {
        return None;
    }
    let sums = &context.capture.frames[context.frame()?.frame].threads;
    let long = sums.iter().filter(|it| is_long(it.thread)).max_by_key(|it| it.running_ns)?;
    dominates(long.running_ns, waited_ns).then_some((long.thread, None))
}

fn foreign_cores(context: &Context) -> f32 {
    context.capture.processes.iter().map(|process| process.cores).sum()
}

fn busiest(context: &Context) -> String {
    match context.capture.processes.first() {
        Some(process) => {
            format!("busiest: {} (pid {}) {:.2} cores", words::name(&process.name), process.pid, process.cores)
        }
        None => "which ones is not known".into(),
    }
}

fn memory_rate(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let thread = context.thread_named(&trigger.name);
    let dearest = memory::allocations(context).into_iter().find(|it| Some(it.thread) == thread);
    let most = dearest.map(|it| format!(", most in scope {}", context.site(it.site))).unwrap_or_default();
    format!(
        "thread {} allocates {}{most}; allowed {}",
        words::name(&trigger.name),
        words::rate(trigger.measured as f64),
        words::rate(trigger.allowed as f64)
    )
}

fn large_allocation(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let found = context
        .attribution
        .large_allocations
        .iter()
        .min_by_key(|it| (it.bytes.abs_diff(trigger.measured), it.at_ns.abs_diff(trigger.at_ns)));
    let world = trigger.world.or(found.and_then(|it| it.world));
    let tick = world.map(|world| format!(" in a tick of world {}", context.world(world))).unwrap_or_default();
    let scope = match found.and_then(|it| it.site) {
        Some(site) => format!(" in scope {}", context.site(site)),
        None if !trigger.name.is_empty() => format!(" in scope {}", words::name(&trigger.name)),
        None => String::new(),
    };
    format!("a {} allocation{tick}{scope}", words::binary_bytes(trigger.measured))
}

fn leak(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let name = if trigger.name.is_empty() { memory::OUTSIDE.into() } else { words::name(&trigger.name) };
    match memory::leaks(context).into_iter().find(|leak| leak.scope == name) {
        Some(leak) => format!(
            "scope {name} leaks: live bytes grew from {} to {} in {:.0} s ({})",
            words::bytes(leak.live_bytes_first),
            words::bytes(leak.live_bytes_last),
            leak.seconds,
            words::rate(leak.bytes_per_s)
        ),
        None => format!("scope {name} leaks: live bytes grow by {}", words::rate(trigger.measured as f64)),
    }
}

fn crash(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let note = words::text(&trigger.note);
    let mut said = "the process died".to_owned();
    if !note.is_empty() {
        said += &format!(": {note}");
    }
    if let Some(world) = trigger.world {
        said += &format!("; world {} was running", context.world(world));
    }
    let thread = context.thread_named(&trigger.name);
    let open: Vec<String> = thread
        .map(|thread| context.events(thread))
        .unwrap_or_default()
        .iter()
        .rev()
        .filter_map(|event| if let Event::OpenScope { site, .. } = event { Some(context.site(*site)) } else { None })
        .take(6)
        .collect();
    if !open.is_empty() {
        said += &format!("; {} was in {}", words::name(&trigger.name), open.join(" > "));
    }
    said
}
