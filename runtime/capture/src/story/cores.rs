//! Who had the cores while a thread was ready and had none.

use std::cmp::Reverse;

use super::{
    context::{Context, is_urgent},
    facts::{CoreWaitFacts, HadCoreFacts, RanFacts},
    had_core, words,
};
use crate::model::{Event, Switch};

/// Cores per thread that are told apart; later ones are left out, so that a hostile capture cannot make the search
/// slow.
const CORES_MAX: usize = 64;

/// A stretch of time, with a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnCore {
    pub begin_ns: u64,
    pub end_ns: u64,
    /// Where it ran. Of a wait, which core it was for: the one that it lost; after a sleep the one that it got, for the
    /// kernel chooses anew when a thread wakes.
    pub core: u32,
}

/// What of ours ran during waits, per thread and core.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    pub thread: u32,
    pub core: u32,
    pub ns: u64,
    /// The part that it ran on the core that the waiting thread had.
    pub same_core_ns: u64,
}

/// When a thread ran, within `window`. Rising.
fn runs(context: &Context, thread: u32, window: (u64, u64)) -> Vec<OnCore> {
    let mut runs = Vec::new();
    let mut running = None;
    let mut latest_ns = 0;
    for (at_ns, change) in switches(context, thread) {
        let at_ns = at_ns.max(latest_ns);
        latest_ns = at_ns;
        if let Some((begin_ns, core)) = running.take() {
            push(&mut runs, OnCore { begin_ns, end_ns: at_ns, core }, window);
        }
        if let Switch::Running { core } = change {
            running = Some((at_ns, core));
        }
    }
    if let Some((begin_ns, core)) = running {
        push(&mut runs, OnCore { begin_ns, end_ns: u64::MAX, core }, window);
    }
    runs
}

/// When a thread did not run for one reason, within `window`. Rising.
///
/// `Switch::Preempted`: its core was taken. `Switch::Blocked`: it slept, some of which may have been a wait for a core
/// after its wake-up.
pub fn waits(context: &Context, thread: u32, reason: Switch, window: (u64, u64)) -> Vec<OnCore> {
    let mut waits = Vec::new();
    let mut since = None;
    let mut core_before = None;
    let mut latest_ns = 0;
    for (at_ns, change) in switches(context, thread) {
        let at_ns = at_ns.max(latest_ns);
        latest_ns = at_ns;
        let core_after = if let Switch::Running { core } = change { Some(core) } else { None };
        if let Some(begin_ns) = since.take() {
            let core = match reason {
                Switch::Blocked => core_after.or(core_before),
                _ => core_before.or(core_after),
            };
            let core = core.unwrap_or(u32::MAX);
            push(&mut waits, OnCore { begin_ns, end_ns: at_ns, core }, window);
        }
        core_before = core_after.or(core_before);
        if change == reason {
            since = Some(at_ns);
        }
    }
    if let Some(begin_ns) = since {
        push(&mut waits, OnCore { begin_ns, end_ns: u64::MAX, core: core_before.unwrap_or(u32::MAX) }, window);
    }
    waits
}

fn switches(context: &Context, thread: u32) -> impl Iterator<Item = (u64, Switch)> {
    context.events(thread).iter().filter_map(|event| match *event {
        Event::Switch { at_ns, change } => Some((at_ns, change)),
        _ => None,
    })
}

fn push(stretches: &mut Vec<OnCore>, mut it: OnCore, (begin_ns, end_ns): (u64, u64)) {
    it.begin_ns = it.begin_ns.max(begin_ns);
    it.end_ns = it.end_ns.min(end_ns);
    if it.begin_ns < it.end_ns {
        stretches.push(it);
    }
}

pub fn sum_ns(stretches: &[OnCore]) -> u64 {
    stretches.iter().map(|it| it.end_ns - it.begin_ns).sum()
}

/// Which of our other threads ran during `waits` of `thread`, the longest on the same core first, then the longest.
pub fn ran_during(context: &Context, thread: u32, waits: &[OnCore], window: (u64, u64)) -> Vec<Ran> {
    let mut all: Vec<Ran> = Vec::new();
    for other in (0..context.capture.threads.len() as u32).filter(|&other| other != thread) {
        let runs = runs(context, other, window);
        let mut of_thread: Vec<Ran> = Vec::new();
        let mut first = 0;
        for wait in waits {
            while first < runs.len() && runs[first].end_ns <= wait.begin_ns {
                first += 1;
            }
            for run in runs[first..].iter().take_while(|run| run.begin_ns < wait.end_ns) {
                let ns = run.end_ns.min(wait.end_ns).saturating_sub(run.begin_ns.max(wait.begin_ns));
                let same_core_ns = if run.core == wait.core { ns } else { 0 };
                match of_thread.iter().position(|ran| ran.core == run.core) {
                    Some(place) => {
                        of_thread[place].ns += ns;
                        of_thread[place].same_core_ns += same_core_ns;
                    }
                    None if of_thread.len() < CORES_MAX => {
                        of_thread.push(Ran { thread: other, core: run.core, ns, same_core_ns });
                    }
                    None => {}
                }
            }
        }
        all.append(&mut of_thread);
    }
    all.retain(|ran| ran.ns > 0);
    all.sort_by_key(|ran| (Reverse(ran.same_core_ns), Reverse(ran.ns), ran.thread));
    all
}

/// The longest waits for a core of the threads that the frame waits for.
pub fn facts(context: &Context, rows_max: usize) -> Vec<CoreWaitFacts> {
    let window = context.window_ns();
    let threads = (0..context.capture.threads.len() as u32).filter(|&it| is_urgent(context.class(it)));
    let mut longest: Vec<(u32, OnCore)> = threads
        .flat_map(|thread| waits(context, thread, Switch::Preempted, window).into_iter().map(move |it| (thread, it)))
        .collect();
    longest.sort_by_key(|(thread, wait)| (Reverse(wait.end_ns - wait.begin_ns), *thread));
    longest.truncate(rows_max);
    longest
        .into_iter()
        .map(|(thread, wait)| CoreWaitFacts {
            thread: context.thread(thread),
            begin_ms: words::ms(wait.begin_ns - window.0),
            waited_ms: words::ms(wait.end_ns - wait.begin_ns),
            core: wait.core,
            had_core: had_core_facts(context, &wait),
            ran: ran_during(context, thread, &[wait], window)
                .into_iter()
                .take(3)
                .map(|ran| RanFacts {
                    thread: context.thread(ran.thread),
                    class: context.class(ran.thread).name(),
                    core: ran.core,
                    ran_ms: words::ms(ran.ns),
                })
                .collect(),
        })
        .collect()
}

fn had_core_facts(context: &Context, wait: &OnCore) -> Vec<HadCoreFacts> {
    had_core::facts(&had_core::during(context, std::slice::from_ref(wait)), HAD_CORE_MAX)
}

/// Those who are listed for a wait.
const HAD_CORE_MAX: usize = 5;
