//! The bad frame beside the usual one: threads, worlds, subsystems, scopes.

use std::{cmp::Reverse, collections::HashMap};

use super::{
    context::{Context, is_urgent, median},
    facts::{
        CATEGORIES_MAX, CategoryFacts, FrameFacts, OverBudgetFacts, PageFaultFacts, ROWS_MAX, ScopeFacts,
        SubsystemFacts, THREADS_MAX, ThreadFacts, WorldFacts,
    },
    memory, words,
};
use crate::{
    attribution::{Attribution, Cost, Costs, FrameCost, Spent},
    model::{Capture, Event, ThreadClass, TriggerKind},
};

/// Index of the frame of that number, into the attribution's. `None` if the capture does not have it.
pub fn numbered(attribution: &Attribution, number: u64) -> Option<usize> {
    attribution.frames.iter().position(|frame| frame.number == number)
}

/// Index of the frame that the trigger fired in, into the attribution's; of the longest where nobody but a person fired
/// it. `None` if it has no frames.
pub fn of_trigger(capture: &Capture, attribution: &Attribution) -> Option<usize> {
    let frames = &attribution.frames;
    let longest = || (0..frames.len()).max_by_key(|&index| (frames[index].wall_ns(), Reverse(index)));
    let about = &capture.about;
    if about.trigger.kind == TriggerKind::Manual {
        return longest();
    }
    let at_ns = about.trigger.at_ns;
    frames
        .iter()
        .position(|frame| frame.number == about.frame)
        .or_else(|| frames.iter().position(|frame| (frame.begin_ns..frame.end_ns).contains(&at_ns)))
        .or_else(longest)
}

pub fn facts(context: &Context) -> Option<FrameFacts> {
    let frame = context.frame()?;
    let budget_ns = context.capture.frames[frame.frame].budget_ns;
    let usual_wall_ns = median(context.other_frames().map(FrameCost::wall_ns).collect());
    let frame_thread = frame.threads.iter().find(|it| context.class(it.thread) == ThreadClass::Frame);
    let mut busy = Spent::default();
    let mut busy_outside = Spent::default();
    for thread in frame.threads.iter().filter(|it| is_urgent(context.class(it.thread))) {
        busy.add(&thread.spent());
        busy_outside.add(&thread.outside.exclusive);
    }
    let not_blocked = |spent: Spent| spent.running_ns as f64 + spent.waiting_ns as f64;
    Some(FrameFacts {
        number: frame.number,
        is_the_triggers: frame.number == context.capture.about.frame || context.has_run(frame),
        wall_ms: words::ms(frame.wall_ns()),
        budget_ms: words::ms(budget_ns),
        usual_wall_ms: words::ms(usual_wall_ns),
        other_frames: context.other_frames().count(),
        unaccounted_share: frame_thread.map_or(0.0, |it| frame.unaccounted_share(it.thread)),
        unaccounted_share_of_workers: not_blocked(busy_outside) / not_blocked(busy).max(1.0),
        wall_ns: frame.wall_ns(),
        budget_ns,
        usual_wall_ns,
    })
}

/// The threads that the frame waits for, then long tasks and others that ran; those that waited and ran longest first.
pub fn threads(context: &Context) -> Vec<ThreadFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let mut facts: Vec<(Spent, ThreadFacts)> = frame
        .threads
        .iter()
        .filter_map(|cost| {
            let spent = noted(context, frame, cost.thread).unwrap_or_else(|| cost.spent());
            let is_shown = is_urgent(context.class(cost.thread)) || (spent.running_ns > 0 || spent.waiting_ns > 0);
            is_shown.then(|| {
                let facts = ThreadFacts {
                    name: context.thread(cost.thread),
                    class: context.class(cost.thread).name(),
                    running_ms: words::ms(spent.running_ns),
                    waiting_ms: words::ms(spent.waiting_ns),
                    blocked_ms: words::ms(spent.blocked_ns),
                    outside_of_scopes_ms: words::ms(cost.outside.exclusive.total_ns()),
                    is_estimate: cost.is_spread,
                    thread: cost.thread,
                    waiting_ns: spent.waiting_ns,
                    ..ThreadFacts::default()
                };
                (spent, facts)
            })
        })
        .collect();
    let order = |class: ThreadClass| match class {
        ThreadClass::Frame => 0,
        ThreadClass::ShortTask => 1,
        ThreadClass::LongTask => 2,
        ThreadClass::Other => 3,
    };
    facts.sort_by_key(|(spent, facts)| {
        (order(context.class(facts.thread)), Reverse(spent.waiting_ns), Reverse(spent.running_ns), facts.thread)
    });
    facts.truncate(THREADS_MAX);
    facts
        .into_iter()
        .map(|(_, mut facts)| {
            let usual: Vec<Spent> = context
                .other_frames()
                .filter_map(|frame| {
                    noted(context, frame, facts.thread).or_else(|| frame.thread(facts.thread).map(|cost| cost.spent()))
                })
                .collect();
            let of = |part: fn(&Spent) -> u64| words::ms(median(usual.iter().map(part).collect()));
            facts.usual_running_ms = of(|spent| spent.running_ns);
            facts.usual_waiting_ms = of(|spent| spent.waiting_ns);
            facts.usual_blocked_ms = of(|spent| spent.blocked_ns);
            facts
        })
        .collect()
}

/// The recorder's own sums, which know waits for a core after a wake-up too.
fn noted(context: &Context, frame: &FrameCost, thread: u32) -> Option<Spent> {
    let sums = context.capture.frames[frame.frame].threads.iter().find(|sums| sums.thread == thread)?;
    Some(Spent { running_ns: sums.running_ns, waiting_ns: sums.waiting_ns, blocked_ns: sums.blocked_ns })
}

/// The dearest worlds of the frame.
pub fn worlds(context: &Context, rows_max: usize) -> Vec<WorldFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let dearest = frame.worlds.iter().filter_map(|it| Some((it.world?, it))).take(rows_max);
    let mut facts: Vec<WorldFacts> = dearest
        .map(|(id, world)| {
            let spent = world.cost.exclusive;
            let usual = context.other_frames().filter_map(|frame| {
                let of_world = frame.worlds.iter().find(|other| other.world == Some(id))?;
                Some(of_world.cost.exclusive.total_ns())
            });
            let usual_wall_ns = median(usual.collect());
            let part = Attribution::of_part(context.capture, frame, &|_, of| of == Some(id));
            let (scope, dearest_scope_ns) = part.as_ref().and_then(dearest_scope).unzip();
            let threads = part.iter().flat_map(|part| &part.threads);
            WorldFacts {
                id,
                name: context.world(id),
                tick: world.tick,
                thread: context.thread(world.thread),
                wall_ms: words::ms(spent.total_ns()),
                running_ms: words::ms(spent.running_ns),
                waiting_ms: words::ms(spent.waiting_ns),
                blocked_ms: words::ms(spent.blocked_ns),
                usual_wall_ms: words::ms(usual_wall_ns),
                dearest_scope: scope.map(|site| context.site(site)),
                wall_ns: spent.total_ns(),
                running_ns_max: threads.map(|thread| thread.spent().running_ns).max().unwrap_or(0),
                usual_wall_ns,
                dearest_scope_ns: dearest_scope_ns.unwrap_or(0),
            }
        })
        .collect();
    facts.truncate(rows_max);
    facts
}

fn dearest_scope(part: &FrameCost) -> Option<(u32, u64)> {
    let dearest = part.sites.iter().max_by_key(|(_, cost)| cost.exclusive.total_ns())?;
    (dearest.1.exclusive.total_ns() > 0).then_some((dearest.0, dearest.1.exclusive.total_ns()))
}

/// The dearest subsystems, and the one that the trigger is about.
pub fn subsystems(context: &Context) -> Vec<SubsystemFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let trigger = &context.capture.about.trigger;
    let usual_wall = usual(context, |frame| &frame.subsystems, Spent::total_ns);
    let usual_busy = usual(context, |frame| &frame.subsystems, busy_ns);
    let mut facts: Vec<SubsystemFacts> = frame
        .subsystems
        .iter()
        .map(|&(subsystem, cost)| {
            let name = context.attribution.subsystems.get(subsystem as usize).copied().unwrap_or_default();
            let is_triggers = trigger.kind == TriggerKind::Subsystem && trigger.subsystem() == (name, None);
            SubsystemFacts {
                name: words::name(name),
                wall_ms: words::ms(cost.exclusive.total_ns()),
                running_ms: words::ms(cost.exclusive.running_ns),
                waiting_ms: words::ms(cost.exclusive.waiting_ns),
                blocked_ms: words::ms(cost.exclusive.blocked_ns),
                inclusive_ms: words::ms(cost.inclusive_ns),
                usual_wall_ms: words::ms(usual_wall.get(&subsystem).copied().unwrap_or(0)),
                scopes: cost.count,
                budget_ms: is_triggers.then(|| words::ms(trigger.allowed)),
                busy_ns: busy_ns(&cost.exclusive),
                usual_busy_ns: usual_busy.get(&subsystem).copied().unwrap_or(0),
            }
        })
        .collect();
    facts.sort_by(|a, b| a.budget_ms.is_none().cmp(&b.budget_ms.is_none()).then(b.wall_ms.total_cmp(&a.wall_ms)));
    facts.truncate(ROWS_MAX);
    facts
}

/// What kind of work the frame was: its categories, the busiest first, so that idleness comes last.
pub fn categories(context: &Context) -> Vec<CategoryFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let usual = usual(context, |frame| &frame.categories, Spent::total_ns);
    let mut dearest: Vec<(u32, Spent)> = frame.categories.iter().map(|&(key, cost)| (key, cost.exclusive)).collect();
    dearest.retain(|(_, spent)| spent.total_ns() > 0);
    dearest.sort_by_key(|(_, spent)| Reverse((busy_ns(spent), spent.blocked_ns)));
    dearest.truncate(CATEGORIES_MAX);
    dearest
        .into_iter()
        .map(|(category, spent)| CategoryFacts {
            name: words::name(context.attribution.categories.get(category as usize).copied().unwrap_or_default()),
            wall_ms: words::ms(spent.total_ns()),
            running_ms: words::ms(spent.running_ns),
            waiting_ms: words::ms(spent.waiting_ns),
            blocked_ms: words::ms(spent.blocked_ns),
            usual_wall_ms: words::ms(usual.get(&category).copied().unwrap_or(0)),
        })
        .collect()
}

/// The dearest scopes by exclusive time.
pub fn scopes(context: &Context) -> Vec<ScopeFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let mut dearest: Vec<(u32, Cost)> = frame.sites.clone();
    dearest.sort_by_key(|(_, cost)| Reverse(cost.exclusive.total_ns()));
    dearest.truncate(ROWS_MAX);
    let usual = usual(context, |frame| &frame.sites, Spent::total_ns);
    dearest
        .into_iter()
        .map(|(site, cost)| ScopeFacts {
            name: context.site(site),
            place: context
                .capture
                .sites
                .get(site as usize)
                .filter(|site| !site.file.is_empty())
                .map(|site| format!("{}:{}", words::name(&site.file), site.line))
                .unwrap_or_default(),
            wall_ms: words::ms(cost.exclusive.total_ns()),
            running_ms: words::ms(cost.exclusive.running_ns),
            waiting_ms: words::ms(cost.exclusive.waiting_ns),
            blocked_ms: words::ms(cost.exclusive.blocked_ns),
            inclusive_ms: words::ms(cost.inclusive_ns),
            usual_wall_ms: words::ms(usual.get(&site).copied().unwrap_or(0)),
            count: cost.count,
        })
        .collect()
}

fn busy_ns(spent: &Spent) -> u64 {
    spent.running_ns.saturating_add(spent.waiting_ns)
}

/// Median exclusive time over the other frames, frames without any included, by key.
fn usual(
    context: &Context,
    costs: impl Fn(&FrameCost) -> &Costs,
    part_ns: impl Fn(&Spent) -> u64,
) -> HashMap<u32, u64> {
    let mut values: HashMap<u32, Vec<u64>> = HashMap::new();
    let mut frames = 0;
    for frame in context.other_frames() {
        frames += 1;
        for &(key, cost) in costs(frame) {
            values.entry(key).or_default().push(part_ns(&cost.exclusive));
        }
    }
    let median_with_zeros = |mut values: Vec<u64>| {
        values.resize(frames, 0);
        median(values)
    };
    values.into_iter().map(|(key, values)| (key, median_with_zeros(values))).collect()
}

/// Scopes of the frame that took longer than was said of them, the farthest over first.
pub fn scopes_over_budget(context: &Context) -> Vec<OverBudgetFacts> {
    let (begin_ns, end_ns) = context.window_ns();
    let sites = &context.capture.sites;
    let mut facts: HashMap<u32, OverBudgetFacts> = HashMap::new();
    for (thread, it) in (0u32..).zip(&context.capture.threads) {
        for event in &it.events {
            let &Event::Scope { site, begin_ns: scope_begin_ns, end_ns: scope_end_ns } = event else { continue };
            let Some(budget_ns) = sites.get(site as usize).and_then(|site| site.budget_ns) else { continue };
            if scope_end_ns <= begin_ns || scope_begin_ns >= end_ns {
                continue;
            }
            let entry = facts.entry(site).or_insert_with(|| OverBudgetFacts {
                scope: context.site(site),
                budget_ms: words::ms(budget_ns),
                ..OverBudgetFacts::default()
            });
            let ns = scope_end_ns.saturating_sub(scope_begin_ns);
            entry.count += 1;
            entry.over += u64::from(ns > budget_ns);
            if words::ms(ns) > entry.longest_ms {
                entry.longest_ms = words::ms(ns);
                entry.thread = context.thread(thread);
            }
        }
    }
    let mut facts: Vec<_> = facts.into_values().filter(|it| it.over > 0).collect();
    facts.sort_by(|a, b| {
        (b.longest_ms - b.budget_ms).total_cmp(&(a.longest_ms - a.budget_ms)).then(a.scope.cmp(&b.scope))
    });
    facts.truncate(ROWS_MAX);
    facts
}

pub fn page_faults(context: &Context) -> Vec<PageFaultFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let of_scopes = frame.sites.iter().map(|&(site, cost)| (context.site(site), cost.page_faults));
    let outside = (memory::OUTSIDE.to_owned(), frame.outside.page_faults);
    let mut facts: Vec<_> = of_scopes
        .chain([outside])
        .filter(|(_, page_faults)| *page_faults > 0)
        .map(|(scope, page_faults)| PageFaultFacts { scope, page_faults })
        .collect();
    facts.sort_by_key(|it| Reverse(it.page_faults));
    facts
}
