//! Stalls: cores that stood still for everybody, which looks like work on the thread that was on them.

use std::{cmp::Reverse, collections::HashMap};

use super::{context::Context, facts::HostStallFacts, words};

/// The longest within the time that is looked at.
pub fn facts(context: &Context, rows_max: usize) -> Vec<HostStallFacts> {
    let window = context.window_ns();
    let mut stalls: Vec<(u64, u32, u64)> = context
        .capture
        .host_stalls
        .iter()
        .map(|stall| (overlap_ns((stall.begin_ns, stall.end_ns), window), stall.core, stall.begin_ns.max(window.0)))
        .filter(|(ns, ..)| *ns > 0)
        .collect();
    stalls.sort_by_key(|&(ns, core, begin_ns)| (Reverse(ns), core, begin_ns));
    stalls.truncate(rows_max);
    stalls
        .into_iter()
        .map(|(ns, core, begin_ns)| HostStallFacts {
            core,
            begin_ms: words::ms(begin_ns.saturating_sub(window.0)),
            stalled_ms: words::ms(ns),
        })
        .collect()
}

/// What explains at least half of `wanted_ns` within `window`: the core that stood still longest. `the host held core 1
/// up for 200 ms: nothing of user space ran there`.
pub fn cause(context: &Context, window: (u64, u64), wanted_ns: u64) -> Option<String> {
    let mut by_core: HashMap<u32, u64> = HashMap::new();
    for stall in &context.capture.host_stalls {
        let sum_ns = by_core.entry(stall.core).or_default();
        *sum_ns = sum_ns.saturating_add(overlap_ns((stall.begin_ns, stall.end_ns), window));
    }
    let (core, ns) = by_core.into_iter().max_by_key(|&(core, ns)| (ns, Reverse(core)))?;
    let is_cause = ns > 0 && ns >= wanted_ns / 2;
    is_cause.then(|| format!("the host held core {core} up for {}: nothing of user space ran there", words::time(ns)))
}

fn overlap_ns(one: (u64, u64), other: (u64, u64)) -> u64 {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}
