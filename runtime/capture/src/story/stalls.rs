//! Stalls: cores that stood still for everybody, which looks like work on the thread that was on them.

use std::{cmp::Reverse, collections::HashMap};

use super::{context::Context, facts::HostStallFacts, words};

/// The longest of the whole capture: what came of one is late, and often in the next frame only.
pub fn facts(context: &Context, rows_max: usize) -> Vec<HostStallFacts> {
    let frame_begin_ns = context.window_ns().0;
    let mut stalls: Vec<(u64, u32, u64)> = context
        .capture
        .host_stalls
        .iter()
        .map(|stall| (stall.end_ns.saturating_sub(stall.begin_ns), stall.core, stall.begin_ns))
        .filter(|(ns, ..)| *ns > 0)
        .collect();
    stalls.sort_by_key(|&(ns, core, begin_ns)| (Reverse(ns), core, begin_ns));
    stalls.truncate(rows_max);
    stalls
        .into_iter()
        .map(|(ns, core, begin_ns)| HostStallFacts {
            core,
            begin_ms: (begin_ns as f64 - frame_begin_ns as f64) / 1e6,
            stalled_ms: words::ms(ns),
        })
        .collect()
}

/// What explains at least half of `wanted_ns` within `window`: the core that stood still longest. `core 1 stood still for
/// 200 ms: the host had it, or this process was stopped`.
pub fn cause(context: &Context, window: (u64, u64), wanted_ns: u64) -> Option<String> {
    let mut by_core: HashMap<u32, u64> = HashMap::new();
    for stall in &context.capture.host_stalls {
        let sum_ns = by_core.entry(stall.core).or_default();
        *sum_ns = sum_ns.saturating_add(overlap_ns((stall.begin_ns, stall.end_ns), window));
    }
    let (core, ns) = by_core.into_iter().max_by_key(|&(core, ns)| (ns, Reverse(core)))?;
    let is_cause = ns > 0 && ns >= wanted_ns / 2;
    let stalled = words::time(ns);
    is_cause.then(|| format!("core {core} stood still for {stalled}: the host had it, or this process was stopped"))
}

fn overlap_ns(one: (u64, u64), other: (u64, u64)) -> u64 {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}
