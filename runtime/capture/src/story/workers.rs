//! Busy workers: what they did, by kind of world and by subsystem.

use std::{cmp::Reverse, collections::HashMap};

use super::{context::Context, words};
use crate::{
    attribution::{Attribution, FrameCost},
    model::{ThreadClass, WORKERS_BUSY_FRAMES},
};

/// Kinds of worlds that are named, the dearest first, and subsystems of each.
const KINDS: usize = 3;
const SUBSYSTEMS: usize = 3;

/// The sentence of the trigger.
pub fn busy(context: &Context) -> String {
    let trigger = &context.capture.about.trigger;
    let said = format!(
        "the workers were busy for {} % of {WORKERS_BUSY_FRAMES} frames in a row, allowed {} %",
        trigger.measured, trigger.allowed
    );
    let Some(window) = frames_of_trigger(context) else { return said };
    let Some(all) = Attribution::of_stretch(context.capture, window, &|_, world| world.is_some()) else { return said };
    let kinds: Vec<String> =
        by_kind(context, &all).iter().take(KINDS).map(|&(kind, ns)| told(context, window, kind, ns)).collect();
    if kinds.is_empty() { said } else { format!("{said}: they had {}", kinds.join("; ")) }
}

/// From the first to the last of the frames that the trigger is about, as far as they are in the capture.
fn frames_of_trigger(context: &Context) -> Option<(u64, u64)> {
    let number = context.capture.about.frame;
    let mut frames = context.attribution.frames.iter().rev().filter(|frame| frame.number <= number);
    let last = frames.next()?;
    let first = frames.take(WORKERS_BUSY_FRAMES - 1).last().unwrap_or(last);
    Some((first.begin_ns, last.end_ns))
}

/// What the worlds of each kind took, the dearest first. (ns)
fn by_kind<'capture>(context: &Context<'capture>, all: &FrameCost) -> Vec<(&'capture str, u64)> {
    let mut sums: HashMap<&str, u64> = HashMap::new();
    for world in &all.worlds {
        if let Some(kind) = world.world.and_then(|world| context.kind_of(world)) {
            let sum = sums.entry(kind).or_default();
            *sum = sum.saturating_add(world.cost.exclusive.total_ns());
        }
    }
    let mut kinds: Vec<(&str, u64)> = sums.into_iter().filter(|&(_, ns)| ns > 0).collect();
    kinds.sort_by_key(|&(kind, ns)| (Reverse(ns), kind));
    kinds
}

/// `worlds of kind hideout for 48 ms (ai 32 ms, server 16 ms)`.
fn told(context: &Context, window: (u64, u64), kind: &str, ns: u64) -> String {
    let said = format!("worlds of kind {} for {}", words::name(kind), words::time(ns));
    let is_its = |_, world: Option<u32>| world.is_some_and(|world| context.kind_of(world) == Some(kind));
    let Some(its) = Attribution::of_stretch(context.capture, window, &is_its) else { return said };
    let mut sums: HashMap<u32, u64> = HashMap::new();
    for thread in its.threads.iter().filter(|thread| context.class(thread.thread) == ThreadClass::ShortTask) {
        for (subsystem, cost) in &thread.subsystems {
            let sum = sums.entry(*subsystem).or_default();
            *sum = sum.saturating_add(cost.exclusive.total_ns());
        }
    }
    let mut dearest: Vec<(u32, u64)> = sums.into_iter().filter(|&(_, ns)| ns > 0).collect();
    dearest.sort_by_key(|&(subsystem, ns)| (Reverse(ns), subsystem));
    let names = &context.attribution.subsystems;
    let name = |subsystem: u32| words::name(names.get(subsystem as usize).copied().unwrap_or_default());
    let dearest: Vec<String> = dearest
        .into_iter()
        .take(SUBSYSTEMS)
        .map(|(subsystem, ns)| format!("{} {}", name(subsystem), words::time(ns)))
        .collect();
    if dearest.is_empty() { said } else { format!("{said} ({})", dearest.join(", ")) }
}
