//! Who had the cores while a thread was ready and had none: our own long tasks, another thread of ours, or other
//! processes.
//!
//! Where the kernel told of every switch of the core that the thread waited for, who had it is known exactly
//! ([`had_core`]). Elsewhere nobody is blamed without figures: long tasks ran, together, for at least half of the wait,
//! or other processes used so much of the cores that it explains half of the wait. Otherwise the sentence says that it
//! is not known, and what is.

use std::cmp::Reverse;

use super::{context::Context, cores, foreign, had_core, words};
use crate::{
    attribution::Attribution,
    model::{Switch, ThreadClass},
};

/// Waits that are looked into for the long tasks' scopes, the longest ones: a hostile capture may have millions.
const WAITS_MAX: usize = 1_000;

/// What is to be explained.
pub struct Wait {
    pub thread: u32,
    pub waited_ns: u64,
    /// Where it lies.
    pub window: (u64, u64),
    /// The window is the wait from its beginning to its end: a sleep in it was a wait too, after a wake-up.
    pub is_whole: bool,
}

/// Long tasks that ran meanwhile.
struct LongTasks {
    /// The one that ran longest.
    largest: u32,
    /// The core that it ran on, if that is known.
    core: Option<u32>,
    others: usize,
    dearest_site: Option<u32>,
}

pub fn sentence(context: &Context, wait: &Wait) -> String {
    let name = context.thread(wait.thread);
    let waited = words::time(wait.waited_ns);
    let wall_ns = wait.window.1.saturating_sub(wait.window.0);
    let of = if !wait.is_whole && wall_ns >= wait.waited_ns {
        format!(" of {}", words::time(wall_ns))
    } else {
        String::new()
    };
    let (waits, is_waiting) = waits(context, wait);
    let had = if is_waiting { had_core::during(context, &waits) } else { Vec::new() };
    let exactly = || {
        let (core, had) = (had_core::core_of(&waits), had_core::words_of(&had));
        format!("{name} waited {waited}{of} for {core}; {had}")
    };
    if is_half(had_core::foreign_ns(&had), wait.waited_ns) {
        return format!("the cores were taken by other processes: {}", exactly());
    }
    if let Some(long) = long_tasks(context, wait) {
        let largest = context.thread(long.largest);
        if long.others > 0 {
            let most = long.dearest_site.map(|site| format!(", most in {}", context.site(site))).unwrap_or_default();
            let others = long.others;
            return format!(
                "our own long tasks ran while {name} waited {waited} for a core: {largest} and {others} more{most}"
            );
        }
        return match long.core {
            Some(core) => format!("our own long task {largest} ran on core {core} while {name} waited {waited} for it"),
            None => {
                format!("our own long task {largest} ran while {name} waited {waited} for it (as far as sums can tell)")
            }
        };
    }

    let was_ready = format!("{name} was ready and had no core for {waited}{of}");
    let ran = cores::ran_during(context, wait.thread, &waits, wait.window);
    if let Some(own) = ran.first().filter(|ran| is_half(ran.same_core_ns, wait.waited_ns)) {
        let (class, thread) = (context.class(own.thread).name(), context.thread(own.thread));
        return format!("{was_ready}; our own {class} thread {thread} ran on core {} meanwhile", own.core);
    }

    if is_half(had_core::sum_ns(&had), wait.waited_ns) {
        return exactly();
    }
    let processes = foreign::facts(context);
    let busiest = processes.first().map(|process| format!("busiest: {}", foreign::words_of(process, " cores")));
    let foreign_ns = f64::from(foreign::cores(context)) * wall_ns as f64;
    if foreign_ns >= wait.waited_ns as f64 / 2.0 {
        let busiest = busiest.unwrap_or_else(|| "which ones is not known".into());
        return format!("the cores were taken by other processes: {was_ready}; {busiest}");
    }
    let mut said = format!("{was_ready}; who had the cores is not known");
    if let Some(own) = ran.iter().max_by_key(|ran| (ran.ns, Reverse(ran.thread))) {
        let (class, thread) = (context.class(own.thread).name(), context.thread(own.thread));
        said += &format!("; of our own, {class} thread {thread} ran for {} of it", words::time(own.ns));
    }
    match busiest {
        Some(busiest) => said + &format!("; other processes, {busiest}"),
        None => said,
    }
}

fn is_half(part_ns: u64, whole_ns: u64) -> bool {
    part_ns > 0 && part_ns >= whole_ns / 2
}

/// Saturating: a hostile capture has threads that run for centuries.
fn total(parts_ns: impl Iterator<Item = u64>) -> u64 {
    parts_ns.fold(0, u64::saturating_add)
}

/// When the thread did not run, and whether all of that was waiting.
fn waits(context: &Context, wait: &Wait) -> (Vec<cores::OnCore>, bool) {
    let mut waits = cores::waits(context, wait.thread, Switch::Preempted, wait.window);
    if is_half(cores::sum_ns(&waits), wait.waited_ns) {
        return (waits, true);
    }
    // The rest of the wait came after wake-ups, which look like sleep.
    let asleep = cores::waits(context, wait.thread, Switch::Blocked, wait.window);
    if wait.is_whole {
        waits.extend(asleep);
        waits.sort_by_key(|it| it.begin_ns);
        return (waits, true);
    }
    (asleep, false)
}

/// The long tasks that ran while the thread was ready, if they did, together, for at least half of the time.
fn long_tasks(context: &Context, wait: &Wait) -> Option<LongTasks> {
    let is_long = |thread: u32| context.class(thread) == ThreadClass::LongTask;
    let (waits, is_waiting) = waits(context, wait);
    let ran: Vec<cores::Ran> = cores::ran_during(context, wait.thread, &waits, wait.window)
        .into_iter()
        .filter(|it| is_long(it.thread))
        .collect();
    let same_core_ns = total(ran.iter().map(|ran| ran.same_core_ns));
    let all_ns = total(ran.iter().map(|ran| ran.ns));
    // While it slept others had a right to the cores; then only who had the thread's own core is blamed.
    let (ran_ns, to_explain_ns) =
        if is_waiting { (all_ns, cores::sum_ns(&waits).min(wait.waited_ns)) } else { (same_core_ns, wait.waited_ns) };
    if is_half(ran_ns, to_explain_ns) {
        let parts = ran.iter().map(|ran| (ran.thread, if is_waiting { ran.ns } else { ran.same_core_ns }));
        let (largest, others) = largest_of(parts)?;
        let core = ran.iter().find(|ran| ran.thread == largest).map(|ran| ran.core);
        return Some(LongTasks { largest, core, others, dearest_site: dearest_site(context, waits, &is_long) });
    }
    let is_known = is_waiting && !waits.is_empty();
    if is_known || context.capture.about.switches.has_each_switch() || foreign::cores(context) >= 0.5 {
        return None;
    }
    let frame = context.frame()?;
    let sums = context.capture.frames[frame.frame].threads.iter().filter(|it| is_long(it.thread));
    let ran: Vec<(u32, u64)> = sums.map(|it| (it.thread, it.running_ns)).collect();
    let ran_ns = total(ran.iter().map(|it| it.1));
    if !is_half(ran_ns, wait.waited_ns) {
        return None;
    }
    let (largest, others) = largest_of(ran.into_iter())?;
    let window = cores::OnCore { begin_ns: frame.begin_ns, end_ns: frame.end_ns, core: 0 };
    Some(LongTasks { largest, core: None, others, dearest_site: dearest_site(context, vec![window], &is_long) })
}

/// The thread with the most time, and how many others had a part worth naming: together at least a tenth of all.
fn largest_of(parts: impl Iterator<Item = (u32, u64)>) -> Option<(u32, usize)> {
    let mut by_thread: Vec<(u32, u64)> = Vec::new();
    for (thread, ns) in parts.filter(|part| part.1 > 0) {
        match by_thread.iter_mut().find(|it| it.0 == thread) {
            Some(it) => it.1 = it.1.saturating_add(ns),
            None => by_thread.push((thread, ns)),
        }
    }
    let &(largest, most_ns) = by_thread.iter().max_by_key(|it| (it.1, Reverse(it.0)))?;
    let all_ns = total(by_thread.iter().map(|it| it.1));
    let others = if all_ns - most_ns >= all_ns / 10 { by_thread.len() - 1 } else { 0 };
    Some((largest, others))
}

/// The scope in which such threads ran longest.
fn dearest_site(context: &Context, mut waits: Vec<cores::OnCore>, is_wanted: &dyn Fn(u32) -> bool) -> Option<u32> {
    waits.sort_by_key(|it| Reverse(it.end_ns - it.begin_ns));
    waits.truncate(WAITS_MAX);
    let stretches: Vec<(u64, u64)> = waits.iter().map(|it| (it.begin_ns, it.end_ns)).collect();
    let mut running_ns = vec![0u64; context.capture.sites.len()];
    for thread in Attribution::of_stretches(context.capture, &stretches, &|_, _| true) {
        for (site, cost) in thread.sites.iter().filter(|_| is_wanted(thread.thread)) {
            if let Some(sum_ns) = running_ns.get_mut(*site as usize) {
                *sum_ns = sum_ns.saturating_add(cost.exclusive.running_ns);
            }
        }
    }
    let dearest = (0u32..).zip(running_ns).max_by_key(|&(site, ns)| (ns, Reverse(site)))?;
    (dearest.1 > 0).then_some(dearest.0)
}

/// The busiest of the other processes, for threads that are not in the capture.
pub fn busiest(context: &Context) -> String {
    match foreign::facts(context).first() {
        Some(process) => format!("busiest: {}", foreign::words_of(process, " cores")),
        None => "which processes ran is not known".into(),
    }
}
