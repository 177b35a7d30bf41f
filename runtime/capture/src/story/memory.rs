//! Who allocates and who drops, in the frame and over the whole capture, and what never comes back.

use std::collections::HashMap;

use super::{
    context::Context,
    facts::{AllocatorFacts, DropperFacts, LargeAllocationFacts, LeakFacts, ThreadAllocationFacts},
    words,
};
use crate::model::Event;

/// Stands where a scope's name would, for memory that was allocated outside of every scope.
pub const OUTSIDE: &str = "(outside of scopes)";

/// Blocks that a scope gives back in a frame beyond those that it allocates, from which on it is named: at some 50 ns each a
/// tenth of a millisecond. Too low: systems that empty their lists each tick. Too high: drops that a tick waits for.
const DROPPED_BLOCKS_MANY: u64 = 2_000;

/// What a thread allocated in a scope over the whole capture.
#[derive(Debug, Clone, Copy)]
pub struct Allocated {
    pub thread: u32,
    pub site: u32,
    pub count: u64,
    pub bytes: u64,
}

/// The most bytes first.
pub fn allocations(context: &Context) -> Vec<Allocated> {
    let mut by_place: HashMap<(u32, u32), Allocated> = HashMap::new();
    for (thread, it) in (0u32..).zip(&context.capture.threads) {
        let mut innermost = None;
        for event in &it.events {
            match *event {
                Event::Scope { site, .. } | Event::OpenScope { site, .. } => innermost = Some(site),
                Event::Allocations { count, bytes, .. } => {
                    let Some(site) = innermost else { continue };
                    let sum = by_place.entry((thread, site)).or_insert(Allocated { thread, site, count: 0, bytes: 0 });
                    sum.count += u64::from(count);
                    sum.bytes = sum.bytes.saturating_add(bytes);
                }
                _ => {}
            }
        }
    }
    let mut allocations: Vec<Allocated> = by_place.into_values().collect();
    allocations.sort_by_key(|it| (std::cmp::Reverse(it.bytes), it.thread, it.site));
    allocations
}

/// Scopes by the bytes that they allocated in the frame.
pub fn frame_allocators(context: &Context) -> Vec<AllocatorFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let mut facts: Vec<_> = frame
        .sites
        .iter()
        .filter(|(_, cost)| cost.allocations > 0)
        .map(|&(site, cost)| AllocatorFacts {
            scope: context.site(site),
            bytes: cost.allocated_bytes,
            allocations: cost.allocations,
            frees: cost.frees,
        })
        .collect();
    facts.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    facts
}

/// Scopes that gave back many more blocks in the frame than they allocated: they dropped something large that was made
/// elsewhere, and that a tick hands over.
pub fn frame_droppers(context: &Context) -> Vec<DropperFacts> {
    let Some(frame) = context.frame() else { return Vec::new() };
    let mut facts: Vec<_> = frame
        .sites
        .iter()
        .filter(|(_, cost)| cost.frees.saturating_sub(cost.allocations) >= DROPPED_BLOCKS_MANY)
        .map(|&(site, cost)| DropperFacts {
            scope: context.site(site),
            allocations: cost.allocations,
            frees: cost.frees,
        })
        .collect();
    facts.sort_by_key(|it| std::cmp::Reverse(it.frees));
    facts
}

/// Threads by the bytes that they allocated over the whole capture, each with its dearest scope.
pub fn thread_allocators(context: &Context) -> Vec<ThreadAllocationFacts> {
    let about = &context.capture.about;
    let seconds = about.end_ns.saturating_sub(about.begin_ns) as f64 / 1e9;
    let mut by_thread: Vec<(u32, ThreadAllocationFacts)> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    for allocated in allocations(context) {
        let place = *places.entry(allocated.thread).or_insert_with(|| {
            let facts = ThreadAllocationFacts {
                thread: context.thread(allocated.thread),
                bytes: 0,
                allocations: 0,
                bytes_per_s: 0.0,
                dearest_scope: context.site(allocated.site),
            };
            by_thread.push((allocated.thread, facts));
            by_thread.len() - 1
        });
        let facts = &mut by_thread[place].1;
        facts.bytes = facts.bytes.saturating_add(allocated.bytes);
        facts.allocations += allocated.count;
    }
    let mut facts: Vec<_> = by_thread.into_iter().map(|(_, facts)| facts).collect();
    facts.iter_mut().for_each(|it| it.bytes_per_s = if seconds > 0.0 { it.bytes as f64 / seconds } else { 0.0 });
    facts.sort_by_key(|it| std::cmp::Reverse(it.bytes));
    facts
}

/// Large allocations of the whole capture, those of the frame first, then the largest.
pub fn large_allocations(context: &Context) -> Vec<LargeAllocationFacts> {
    let (begin_ns, end_ns) = context.window_ns();
    let mut facts: Vec<_> = context
        .attribution
        .large_allocations
        .iter()
        .map(|it| LargeAllocationFacts {
            bytes: it.bytes,
            scope: it.site.map(|site| context.site(site)),
            world: it.world,
            world_name: it.world.map(|world| context.world(world)),
            thread: context.thread(it.thread),
            at_ms: words::ms(it.at_ns),
            is_in_frame: (begin_ns..end_ns).contains(&it.at_ns),
        })
        .collect();
    facts.sort_by_key(|it| (!it.is_in_frame, std::cmp::Reverse(it.bytes)));
    facts
}

/// Scopes whose live bytes grew between the first and the last moment that is known, the most growth first.
pub fn leaks(context: &Context) -> Vec<LeakFacts> {
    let memory = &context.capture.memory;
    let mut facts: Vec<_> = memory
        .by_site
        .iter()
        .filter_map(|live| {
            let moments = live.bytes.len().min(memory.at_ns.len());
            let (first, last) = (*live.bytes[..moments].first()?, *live.bytes[..moments].last()?);
            let ns = memory.at_ns[moments - 1].saturating_sub(memory.at_ns[0]);
            (last > first && ns > 0).then(|| LeakFacts {
                scope: live.site.map_or_else(|| OUTSIDE.into(), |site| context.site(site)),
                live_bytes_first: first,
                live_bytes_last: last,
                seconds: ns as f64 / 1e9,
                bytes_per_s: (last - first) as f64 / (ns as f64 / 1e9),
                // A cache that fills falls now and then; a leak does not.
                rising_share: rising_share(&live.bytes[..moments]),
            })
        })
        .collect();
    facts.sort_by_key(|it| std::cmp::Reverse(it.live_bytes_last - it.live_bytes_first));
    facts
}

fn rising_share(bytes: &[u64]) -> f64 {
    let rising = bytes.windows(2).filter(|pair| pair[1] >= pair[0]).count();
    if bytes.len() < 2 { 0.0 } else { rising as f64 / (bytes.len() - 1) as f64 }
}
