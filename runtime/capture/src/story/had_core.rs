//! Who had the core that a thread of ours waited for, where the kernel told of every switch of it: exact, whoever it
//! was.

use std::{cmp::Reverse, collections::HashMap};

use super::{context::Context, cores::OnCore, facts::HadCoreFacts, words};
use crate::model::Owner;

/// Those who are named in a sentence.
const NAMED_MAX: usize = 3;

/// One who had the core: a thread of ours, all other processes of one name, or nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Had {
    pub owner: Owner,
    /// As it may be printed.
    pub name: String,
    /// Of the one of the name that had it longest; 0 for nobody.
    pub pid: u32,
    /// How many have the name.
    pub processes: usize,
    pub ns: u64,
}

/// Who had the cores of `waits` meanwhile, the longest first; what of it is not known is missing. `waits` in the order
/// of time, and apart from each other.
pub fn during(context: &Context, waits: &[OnCore]) -> Vec<Had> {
    let capture = context.capture;
    let mut waits_of: HashMap<u32, Vec<&OnCore>> = HashMap::new();
    for wait in waits {
        waits_of.entry(wait.core).or_default().push(wait);
    }
    let mut had_ns = vec![0u64; capture.host_threads.len()];
    for core in &capture.cores {
        let Some(waits) = waits_of.get(&core.number) else { continue };
        let (mut first, mut begin_ns) = (0, 0);
        for (place, run) in core.runs.iter().enumerate() {
            // A hostile capture's times go as they like.
            begin_ns = run.at_ns.max(begin_ns);
            let end_ns = core.runs.get(place + 1).map_or(capture.about.end_ns, |next| next.at_ns);
            while waits.get(first).is_some_and(|wait| wait.end_ns <= begin_ns) {
                first += 1;
            }
            let Some(had_ns) = run.thread.and_then(|thread| had_ns.get_mut(thread as usize)) else { continue };
            for wait in waits[first..].iter().take_while(|wait| wait.begin_ns < end_ns) {
                let ns = end_ns.min(wait.end_ns).saturating_sub(begin_ns.max(wait.begin_ns));
                *had_ns = had_ns.saturating_add(ns);
            }
        }
    }
    summed(context, &had_ns)
}

/// By thread of ours, name of process, or nobody.
fn summed(context: &Context, had_ns: &[u64]) -> Vec<Had> {
    let mut by_pid: HashMap<(Owner, u32, &str), u64> = HashMap::new();
    for (thread, &ns) in context.capture.host_threads.iter().zip(had_ns).filter(|(_, ns)| **ns > 0) {
        let key = match thread.owner {
            Owner::Foreign => (Owner::Foreign, thread.pid, &*thread.process),
            owner => (owner, thread.tid, &*thread.name),
        };
        let sum = by_pid.entry(key).or_default();
        *sum = sum.saturating_add(ns);
    }
    let mut parts: Vec<((Owner, u32, &str), u64)> = by_pid.into_iter().collect();
    parts.sort_by_key(|&((_, number, name), ns)| (Reverse(ns), number, name));
    let mut places: HashMap<(Owner, &str), usize> = HashMap::new();
    let mut all: Vec<Had> = Vec::new();
    for ((owner, pid, name), ns) in parts {
        let place = *places.entry((owner, name)).or_insert_with(|| {
            all.push(Had { owner, name: words::name(name), pid, processes: 0, ns: 0 });
            all.len() - 1
        });
        all[place].processes += 1;
        all[place].ns = all[place].ns.saturating_add(ns);
    }
    all.sort_by_key(|had| Reverse(had.ns));
    all
}

pub fn sum_ns<'a>(all: impl IntoIterator<Item = &'a Had>) -> u64 {
    all.into_iter().fold(0, |sum_ns, had| had.ns.saturating_add(sum_ns))
}

/// What of it other processes had.
pub fn foreign_ns(all: &[Had]) -> u64 {
    sum_ns(all.iter().filter(|had| had.owner == Owner::Foreign))
}

/// `rustc (pid 123) ran 9.80 ms of these, kworker/0:1 (pid 17) 0.60 ms`; empty for nobody.
pub fn words_of(all: &[Had]) -> String {
    let mut said = Vec::new();
    for (place, had) in all.iter().take(NAMED_MAX).enumerate() {
        let who = match (had.owner, had.processes) {
            (Owner::Idle, _) => had.name.clone(),
            (Owner::Own, _) => format!("our own {}", had.name),
            (Owner::Foreign, 0 | 1) => format!("{} (pid {})", had.name, had.pid),
            (Owner::Foreign, count) => format!("{count} x {} (pid {}, ...)", had.name, had.pid),
        };
        let (ran, of_these) =
            if place == 0 { (if had.owner == Owner::Idle { "" } else { "ran " }, " of these") } else { ("", "") };
        said.push(format!("{who} {ran}{}{of_these}", words::time(had.ns)));
    }
    said.join(", ")
}

pub fn facts(all: &[Had], rows_max: usize) -> Vec<HadCoreFacts> {
    let facts = |had: &Had| HadCoreFacts {
        owner: had.owner,
        name: had.name.clone(),
        pid: had.pid,
        processes: had.processes,
        ran_ms: words::ms(had.ns),
    };
    all.iter().take(rows_max).map(facts).collect()
}

/// `core 0` if all of them were for that one, else `a core`.
pub fn core_of(waits: &[OnCore]) -> String {
    match waits {
        [first, rest @ ..] if rest.iter().all(|wait| wait.core == first.core) => format!("core {}", first.core),
        _ => "a core".into(),
    }
}
