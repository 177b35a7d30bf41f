//! Verdicts about one run of a scope: a scope over its budget, and a late tick.
//!
//! A run without long waits is told with the scopes inside it that had its time.

use super::{
    context::{Context, is_urgent},
    cores,
    run::Run,
    stalls,
    verdict::{dominates, is_over_by_itself},
    waits,
    without_core::{self, Wait},
    words,
};
use crate::{
    attribution::{Attribution, Cost, ThreadCost},
    model::{Event, Switch},
};

/// Scopes that are named where no single one had half of a run.
const DEAREST_SCOPES: usize = 3;

pub fn scope(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let run = context.run;
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
    let over_ns = trigger.measured.saturating_sub(trigger.allowed).max(1);
    match run.and_then(|run| run_cause(context, &run, trigger.allowed, over_ns)) {
        Some(cause) => format!("{said}: {cause}"),
        None => said,
    }
}

/// A tick is late because a core stood still, because it took long, or because it began late; then its worker had no
/// core, or other worlds.
pub fn tick(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let world = trigger.world.map_or_else(|| "a world".into(), |world| format!("world {}", context.world(world)));
    let said = format!("a tick of {world} ended {} after its period", words::time(trigger.measured));
    let Some(run) = context.run else { return said };
    let run_ns = run.end_ns.saturating_sub(run.begin_ns);
    let worlds = &context.capture.worlds;
    let tick_hz = worlds.iter().find(|it| Some(it.id) == trigger.world).map_or(0, |it| it.tick_hz);
    let period_ns = 1_000_000_000_u64.checked_div(tick_hz.into()).unwrap_or(0);
    // When it was due, and how long after that it began.
    let due_ns = run.end_ns.saturating_sub(trigger.measured.saturating_add(period_ns));
    let waited_ns = run.begin_ns.saturating_sub(due_ns);
    if let Some(cause) = stalls::cause(context, (due_ns, run.end_ns), trigger.measured) {
        return format!("{said}: {cause}");
    }
    if run_ns > waited_ns {
        let took = format!("{said}: it took {}", words::time(run_ns));
        return match run_cause(context, &run, period_ns, run_ns / 2) {
            Some(cause) => format!("{took}; {cause}"),
            None => took,
        };
    }
    let window = (due_ns, run.begin_ns);
    let began = format!("{said}: it began late");
    let without_core = |thread| cores::sum_ns(&cores::waits(context, thread, Switch::Preempted, window));
    let threads = (0..).zip(&context.capture.threads).filter(|(_, it)| is_urgent(it.class)).map(|(thread, _)| thread);
    let longest = threads.map(|thread| (without_core(thread), thread)).max();
    if let Some((longest_ns, thread)) = longest.filter(|&(longest_ns, _)| dominates(longest_ns, trigger.measured)) {
        let wait = Wait { thread, waited_ns: longest_ns, window, is_whole: false };
        return format!("{began}: {}", without_core::sentence(context, &wait));
    }
    let others_ns = other_runs_ns(context, &run, window);
    if dominates(others_ns, waited_ns) {
        let thread = context.thread(run.thread);
        return format!("{began}: {thread} had other worlds for {} before it", words::time(others_ns));
    }
    began
}

/// How long the run's thread was in other runs of the same scope, within `window`. (ns)
fn other_runs_ns(context: &Context, run: &Run, window: (u64, u64)) -> u64 {
    let Some(thread) = context.capture.threads.get(run.thread as usize) else { return 0 };
    let is_same = |site: u32| {
        context.capture.sites.get(site as usize).is_some_and(|it| it.name == context.capture.about.trigger.name)
    };
    let within = |event: &Event| match *event {
        Event::Scope { site, begin_ns, end_ns } if is_same(site) => {
            end_ns.min(window.1).saturating_sub(begin_ns.max(window.0))
        }
        _ => 0,
    };
    thread.events.iter().map(within).fold(0, u64::saturating_add)
}

/// What a run of a scope, or at least half of `over_ns` of it, went by with. A run that was over `budget_ns` by what it
/// ran, whatever it waited for besides, is told by that first.
fn run_cause(context: &Context, run: &Run, budget_ns: u64, over_ns: u64) -> Option<String> {
    let wait = wait_cause(context, run, over_ns);
    let costs = costs_of_run(context, run);
    let Some(wait) = wait else { return dearest_of_run(context, run, &costs?) };
    let running_ns = costs.as_ref().filter(|costs| !costs.is_spread).map_or(0, |costs| costs.spent().running_ns);
    if budget_ns == 0 || !is_over_by_itself(running_ns, budget_ns, over_ns) {
        return Some(wait);
    }
    let most = costs.iter().flat_map(|costs| &costs.sites).max_by_key(|(_, cost)| cost.exclusive.running_ns);
    let most = most.map_or_else(String::new, |(site, cost)| {
        format!(", most in {} ({})", context.site(*site), words::time(cost.exclusive.running_ns))
    });
    Some(format!("it ran for {} of that, which alone is too long{most}; besides, {wait}", words::time(running_ns)))
}

/// A wait for a lock or for a core that explains at least half of `over_ns`.
fn wait_cause(context: &Context, run: &Run, over_ns: u64) -> Option<String> {
    let locks = waits::lock_waits(context, run.begin_ns, run.end_ns);
    if let Some(lock) = locks.iter().find(|it| it.longest.thread == run.thread)
        && dominates(lock.sum_ns, over_ns)
    {
        return Some(format!("{} {}", context.thread(run.thread), waits::sentence(context, lock, lock.sum_ns)));
    }
    let window = (run.begin_ns, run.end_ns);
    let without_ns = cores::sum_ns(&cores::waits(context, run.thread, Switch::Preempted, window));
    dominates(without_ns, over_ns).then(|| {
        let wait = Wait { thread: run.thread, waited_ns: without_ns, window, is_whole: false };
        without_core::sentence(context, &wait)
    })
}

fn costs_of_run(context: &Context, run: &Run) -> Option<ThreadCost> {
    let world = context.capture.about.trigger.world.or(run.world);
    let costs_in = |world: Option<u32>| {
        let is_its = |_, of: Option<u32>| world.is_none() || of == world;
        let costs = Attribution::of_stretches(context.capture, &[(run.begin_ns, run.end_ns)], &is_its);
        costs.into_iter().find(|cost| cost.thread == run.thread && cost.spent().total_ns() > 0)
    };
    // Some threads do not say which world they work for.
    costs_in(world).or_else(|| costs_in(None))
}

/// The innermost scopes that had the time of a run: `40.0 ms of it in a.b, running; 9.00 ms in c.d, asleep`.
fn dearest_of_run(context: &Context, run: &Run, costs: &ThreadCost) -> Option<String> {
    let mut dearest: Vec<&(u32, Cost)> = costs.sites.iter().collect();
    dearest.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.exclusive.total_ns()));
    let run_ns = run.end_ns - run.begin_ns;
    let first_ns = dearest.first()?.1.exclusive.total_ns();
    let count = if dominates(first_ns, run_ns) { 1 } else { DEAREST_SCOPES };
    let said: Vec<String> = dearest
        .iter()
        .take(count)
        .filter(|(_, cost)| cost.exclusive.total_ns() >= (run_ns / 10).max(1))
        .enumerate()
        .map(|(place, (site, cost))| {
            let of_it = if place == 0 { " of it" } else { "" };
            let state = if costs.is_spread { "" } else { state_of(cost) };
            let time = words::time(cost.exclusive.total_ns());
            let name = context.capture.sites.get(*site as usize).map(|site| site.name.as_str());
            let itself = if name == Some(&context.capture.about.trigger.name) { " itself" } else { "" };
            format!("{time}{of_it} in {}{itself}{state}", context.site(*site))
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// What a scope was for most of its time.
fn state_of(cost: &Cost) -> &'static str {
    let spent = cost.exclusive;
    if cost.lock_wait_ns > spent.total_ns() / 2 {
        ", waiting for locks"
    } else if spent.running_ns >= spent.blocked_ns.max(spent.waiting_ns) {
        ", running"
    } else if spent.blocked_ns >= spent.waiting_ns {
        ", asleep"
    } else {
        ", without a core"
    }
}
