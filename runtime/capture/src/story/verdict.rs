//! The verdict: one sentence that names what had the time, the core or the memory.
//!
//! Each kind of trigger has its sentence. A frame, a subsystem or a scope that took too long has a cause of its own,
//! looked for in this order: a core that stood still, a wait for a lock, a wait for a core, one dear world, sleep
//! within a world's tick, one subsystem that took more than usual. The first that explains at least half of the excess
//! is named; stalls and waits come first because they make everything around them look slow. But where a frame was
//! closed on time, a world that ran for longer than its budget comes before them: taking the waits away would not mend it.

use super::{
    context::{Context, is_urgent},
    facts::{Story, WorldFacts},
    memory, run_verdict, stalls, waits,
    without_core::{self, Wait},
    words, workers,
};
use crate::{
    attribution::{Attribution, Spent},
    model::{Event, PER_TICK, TriggerKind},
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
        TriggerKind::Scope => run_verdict::scope(context),
        TriggerKind::LockWait => lock_wait(context),
        TriggerKind::RunQueue => run_queue(context),
        TriggerKind::MemoryRate => memory_rate(context),
        TriggerKind::LargeAllocation => large_allocation(context),
        TriggerKind::Leak => leak(context),
        TriggerKind::Crash => crash(context),
        TriggerKind::Tick => run_verdict::tick(context),
        TriggerKind::WorkersBusy => workers::busy(context),
        TriggerKind::StuckTick => stuck_tick(context),
    }
}

/// `part` is what `whole` was mostly.
pub(super) fn dominates(part_ns: u64, whole_ns: u64) -> bool {
    part_ns > 0 && part_ns >= whole_ns / 2
}

/// What ran was over its budget with a core all the time, by a part of the excess that is worth naming first.
pub(super) fn is_over_by_itself(running_ns: u64, budget_ns: u64, excess_ns: u64) -> bool {
    let over_ns = running_ns.saturating_sub(budget_ns);
    over_ns > 0 && over_ns >= excess_ns / 4
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

    // No world makes a frame longer than its grid: what is longer waited for something.
    let was_closed = frame.wall_ns <= frame.budget_ns.saturating_add(frame.budget_ns / 10);
    let can_be_told = was_closed && context.capture.about.switches.has_each_switch();
    let is_over = |world: &&WorldFacts| is_over_by_itself(world.running_ns_max, frame.budget_ns, excess_ns);
    if let Some(world) = story.worlds.iter().filter(|_| can_be_told).find(is_over) {
        return Some(format!("{}, and ran for {} of that", of_world(world), words::time(world.running_ns_max)));
    }
    if let Some(cause) = stalls::cause(context, (begin_ns, end_ns), excess_ns) {
        return Some(cause);
    }
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
        let window = (begin_ns, end_ns);
        let wait = Wait { thread: thread.thread, waited_ns: thread.waiting_ns, window, is_whole: false };
        return Some(without_core::sentence(context, &wait));
    }
    if let Some(world) = story.worlds.first()
        && dominates(world.wall_ns.saturating_sub(world.usual_wall_ns), excess_ns)
    {
        return Some(of_world(world));
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

fn of_world(world: &WorldFacts) -> String {
    let scope = world.dearest_scope.as_ref().map(|scope| {
        if dominates(world.dearest_scope_ns, world.wall_ns) {
            format!(" in {scope}")
        } else {
            format!(", most of it in {scope} ({})", words::time(world.dearest_scope_ns))
        }
    });
    format!("world {} took {}{}", world.name, words::time(world.wall_ns), scope.unwrap_or_default())
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
    let (name, kind) = trigger.subsystem();
    let of_tick = name.strip_suffix(PER_TICK);
    let name = of_tick.unwrap_or(name);
    let mut said = format!(
        "subsystem {} took {}{}{}, {} over its budget of {}",
        words::name(name),
        words::time(trigger.measured),
        kind.map(|kind| format!(" in worlds of kind {}", words::name(kind))).unwrap_or_default(),
        if of_tick.is_some() { " per tick, on average".to_owned() } else { format!(" in frame {frame}") },
        words::percent(over_ns, trigger.allowed),
        words::time(trigger.allowed)
    );
    let Some(frame) = context.frame() else { return said };
    let sites = &context.capture.sites;
    let is_of_subsystem =
        |site: Option<u32>| site.and_then(|it| sites.get(it as usize)).is_some_and(|it| it.subsystem == name);
    let is_of_kind = |world: Option<u32>| kind.is_none() || world.is_some_and(|world| context.kind_of(world) == kind);
    let is_its = |site, world| is_of_subsystem(site) && is_of_kind(world);
    let Some(part) = Attribution::of_part(context.capture, frame, &is_its) else { return said };

    let mut spent = Spent::default();
    part.sites.iter().for_each(|(_, cost)| spent.add(&cost.exclusive));
    // What was in this frame alone says little of an average.
    let over_ns = if of_tick.is_some() { 0 } else { over_ns };
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
    let Some(thread) = context.thread_named(&trigger.name) else {
        return format!(
            "{} was ready and had no core for {}; {}",
            words::name(&trigger.name),
            words::time(trigger.measured),
            without_core::busiest(context)
        );
    };
    // It may lie between frames, as most waits of the frame's own thread do.
    let (begin_ns, end_ns) = (trigger.at_ns.saturating_sub(trigger.measured), trigger.at_ns);
    let is_whole = begin_ns < end_ns;
    let window = if is_whole { (begin_ns, end_ns) } else { context.window_ns() };
    without_core::sentence(context, &Wait { thread, waited_ns: trigger.measured, window, is_whole })
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
    let open = context.thread_named(&trigger.name).map(|thread| open_scopes(context, thread)).unwrap_or_default();
    if !open.is_empty() {
        said += &format!("; {} was in {}", words::name(&trigger.name), open.join(" > "));
    }
    said
}

/// `world 17 (hideout) was in one tick for 80 ms and went on, in world.tick > game.path on worker-1`.
fn stuck_tick(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let world = trigger.world.map_or_else(|| "a world".into(), |world| format!("world {}", context.world(world)));
    let said = format!("{world} was in one tick for {} and went on", words::time(trigger.measured));
    let is_its = |events: &[Event]| {
        let last = events.iter().rev().find_map(|event| match event {
            Event::World { world, .. } => Some(*world),
            _ => None,
        });
        last.flatten().is_some() && last.flatten() == trigger.world
    };
    let ticking = context.capture.threads.iter().position(|thread| is_its(&thread.events)).map(|it| it as u32);
    let open = ticking.map(|thread| open_scopes(context, thread)).unwrap_or_default();
    match ticking.filter(|_| !open.is_empty()) {
        Some(thread) => format!("{said}, in {} on {}", open.join(" > "), context.thread(thread)),
        None => said,
    }
}

/// What was open on a thread when the capture was saved, outermost first; the six innermost.
fn open_scopes(context: &Context, thread: u32) -> Vec<String> {
    const NAMED_MAX: usize = 6;
    let mut open: Vec<(u64, u32)> = context
        .events(thread)
        .iter()
        .filter_map(|event| match *event {
            Event::OpenScope { site, begin_ns } => Some((begin_ns, site)),
            _ => None,
        })
        .collect();
    open.sort_by_key(|&(begin_ns, _)| begin_ns);
    let innermost = open.split_off(open.len().saturating_sub(NAMED_MAX));
    innermost.into_iter().map(|(_, site)| context.site(site)).collect()
}
