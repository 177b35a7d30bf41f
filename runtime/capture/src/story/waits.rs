//! Who waited for which lock, and who had it.

use std::collections::HashMap;

use super::{
    context::{Context, is_urgent},
    facts::{LockHolder, LockWaitFacts},
    words,
};
use crate::{
    attribution::LockWaitAt,
    model::{Holder, ThreadClass},
};

/// Waits of one thread for one lock within some time.
#[derive(Debug, Clone, Copy)]
pub struct LockWaits {
    pub longest: LockWaitAt,
    pub longest_ns: u64,
    pub sum_ns: u64,
    pub count: u64,
}

/// By thread and lock, the longest sum first; of a wait counts what lies within the time.
pub fn lock_waits(context: &Context, begin_ns: u64, end_ns: u64) -> Vec<LockWaits> {
    let mut by_lock: HashMap<(u32, u32), LockWaits> = HashMap::new();
    for wait in &context.attribution.lock_waits {
        let ns = wait.end_ns.min(end_ns).saturating_sub(wait.begin_ns.max(begin_ns));
        if ns == 0 {
            continue;
        }
        let of_lock = LockWaits { longest: *wait, longest_ns: ns, sum_ns: ns, count: 1 };
        by_lock
            .entry((wait.thread, wait.lock))
            .and_modify(|waits| {
                if ns > waits.longest_ns {
                    (waits.longest, waits.longest_ns) = (*wait, ns);
                }
                waits.sum_ns = waits.sum_ns.saturating_add(ns);
                waits.count += 1;
            })
            .or_insert(of_lock);
    }
    let mut waits: Vec<LockWaits> = by_lock.into_values().collect();
    waits.sort_by_key(|it| (std::cmp::Reverse(it.sum_ns), it.longest.thread, it.longest.lock));
    waits
}

pub fn facts(context: &Context, waits: &LockWaits) -> LockWaitFacts {
    let wait = &waits.longest;
    let holder = wait.holder.map(|holder| holder_facts(context, holder));
    LockWaitFacts {
        lock: context.lock(wait.lock),
        thread: context.thread(wait.thread),
        class: context.class(wait.thread).name(),
        scope: wait.site.map(|site| context.site(site)),
        world: wait.world,
        waited_ms: words::ms(waits.sum_ns),
        longest_ms: words::ms(waits.longest_ns),
        waits: waits.count,
        is_priority_inversion: is_inversion(context, wait),
        holder,
    }
}

fn holder_facts(context: &Context, holder: Holder) -> LockHolder {
    LockHolder {
        thread: context.thread(holder.thread),
        class: context.class(holder.thread).name(),
        scope: holder.site.map(|site| context.site(site)),
        world: holder.world,
    }
}

/// A thread that a frame waits for waited for one that nobody waits for.
fn is_inversion(context: &Context, wait: &LockWaitAt) -> bool {
    is_urgent(context.class(wait.thread))
        && wait.holder.is_some_and(|holder| {
            context.capture.threads.get(holder.thread as usize).is_some_and(|it| it.class == ThreadClass::LongTask)
        })
}

/// `waited 42.1 ms for lock "ledger" in scope a.b (world 17 (hideout)); long-task thread save-0 held it in scope c.d:
/// priority inversion`, with `waited_ns` for the time.
pub fn sentence(context: &Context, waits: &LockWaits, waited_ns: u64) -> String {
    let wait = &waits.longest;
    let mut said = format!("waited {} for lock \"{}\"", words::time(waited_ns), context.lock(wait.lock));
    if waits.count > 1 {
        said += &format!(" in {} waits", waits.count);
    }
    said += &place(context, wait.site, wait.world);
    match wait.holder {
        Some(holder) => {
            let class = match context.class(holder.thread) {
                ThreadClass::Other => "thread".to_owned(),
                class => format!("{} thread", class.name()),
            };
            said += &format!("; {class} {} held it", context.thread(holder.thread));
            said += &place(context, holder.site, holder.world);
        }
        None => said += "; who held it is not known",
    }
    if is_inversion(context, wait) {
        said += ": priority inversion";
    }
    said
}

fn place(context: &Context, site: Option<u32>, world: Option<u32>) -> String {
    let site = site.map(|site| format!(" in scope {}", context.site(site))).unwrap_or_default();
    let world = world.map(|world| format!(" of world {}", context.world(world))).unwrap_or_default();
    site + &world
}
