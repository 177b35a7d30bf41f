//! Attribution: which scope had each nanosecond of a frame, and whether it ran, waited for a core or was blocked.
//!
//! Every frame's wall time is cut, thread by thread, into pieces that belong to one innermost scope, one state and one
//! world. Pieces are never counted twice and never dropped, so that for each thread scopes and what is outside of all
//! scopes add up to the frame's wall time to the nanosecond.
//!
//! ```text
//!   thread   |<---------------- frame ---------------->|
//!   scopes   [ net.receive ]   [ game.tick [ai][query] ]     innermost wins
//!   states   rrrrrrrrrrrrrrbbbbrrrrrrrwwwwwwwrrrrrrrrrrr     from context switches
//!   worlds                     1111111111111222222222222     from world marks
//! ```
//!
//! States come from context switches. The kernel does not tell when a sleeping thread was woken: by the switches, only
//! the time after the core was taken away is *waiting*, and the time from giving it up to running again is *blocked*.
//! The sums that the recorder noted per frame know the waits after wake-ups too. What they have more of *waiting* is
//! taken from the ends of the thread's sleeps that ended in that frame, of each in proportion to its length within the
//! frame. Threads without context switches get the sums spread evenly over all of their time but known waits for locks;
//! [`ThreadCost::is_spread`] says so. Without sums, sleeps stay as they are, and without switches either, scopes count
//! as running and the time outside of them as blocked.
//!
//! Captures may be hostile: scopes that do not nest, frames that overlap and indices that point nowhere are cut to what
//! fits. Any thread; allocates. Cost: two passes over the events of each thread, about 50 ns per scope, and memory for
//! threads x frames x scopes in use, which [`CELLS_MAX`] limits.

use std::collections::HashMap;

use serde::Serialize;

use crate::model::{Capture, Event, Holder};

mod grouping;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod walk;

use grouping::Grouping;
use table::Merge;
use walk::{Walker, Window};

/// The largest number of (frame, thread, scope) costs that are kept: some 700 MB. A server with 4 frame threads of 100
/// scopes reaches it at 20,000 frames. Captures with more are attributed in the frames nearest to the trigger's; see
/// [`Attribution::frames_left_out`].
pub const CELLS_MAX: usize = 8_000_000;

/// Time by state. (ns)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    pub running_ns: u64,
    /// Ready to run, without a core.
    pub waiting_ns: u64,
    /// Asleep, or waiting for something.
    pub blocked_ns: u64,
}

impl Spent {
    pub fn total_ns(&self) -> u64 {
        self.running_ns.saturating_add(self.waiting_ns).saturating_add(self.blocked_ns)
    }

    pub fn add(&mut self, other: &Spent) {
        // Saturating, here and below: frames of hostile captures may last for centuries.
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(other.waiting_ns);
        self.blocked_ns = self.blocked_ns.saturating_add(other.blocked_ns);
    }
}

/// What a scope, a subsystem, a category or a world cost within one frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Time in which it was the innermost.
    pub exclusive: Spent,
    /// Time in which it was open; recursion counts once.
    pub inclusive_ns: u64,
    /// Time in waits for instrumented locks, as the threads measured it.
    pub lock_wait_ns: u64,
    /// Scopes that ended.
    pub count: u64,
    pub allocations: u64,
    pub frees: u64,
    pub allocated_bytes: u64,
    pub page_faults: u64,
}

impl Cost {
    pub fn add(&mut self, other: &Cost) {
        self.exclusive.add(&other.exclusive);
        self.inclusive_ns = self.inclusive_ns.saturating_add(other.inclusive_ns);
        self.lock_wait_ns = self.lock_wait_ns.saturating_add(other.lock_wait_ns);
        self.count += other.count;
        self.allocations = self.allocations.saturating_add(other.allocations);
        self.frees = self.frees.saturating_add(other.frees);
        self.allocated_bytes = self.allocated_bytes.saturating_add(other.allocated_bytes);
        self.page_faults += other.page_faults;
    }
}

/// Costs with what they belong to, by rising key: an index into the list that the field's comment names.
pub type Costs = Vec<(u32, Cost)>;

/// What a world cost within one frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorldCost {
    /// The world's id; `None`: work for no world.
    pub world: Option<u32>,
    /// Its last tick in the frame.
    pub tick: u32,
    /// The thread that worked on it last.
    pub thread: u32,
    /// Of every cost the inclusive time is the exclusive: worlds do not nest.
    pub cost: Cost,
}

/// One thread in one frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadCost {
    /// Index into the capture's threads.
    pub thread: u32,
    /// By index into the capture's sites; the number of sites stands for sites that are not in the list.
    pub sites: Costs,
    /// By index into [`Attribution::subsystems`].
    pub subsystems: Costs,
    /// By index into [`Attribution::categories`].
    pub categories: Costs,
    /// Outside of every scope. `sites` and this add up to the frame's wall time.
    pub outside: Cost,
    /// The split by state is an estimate: sums of the frame, spread evenly.
    pub is_spread: bool,
}

impl ThreadCost {
    /// How it spent the frame, in scopes and outside.
    pub fn spent(&self) -> Spent {
        let mut sum = self.outside.exclusive;
        self.sites.iter().for_each(|(_, cost)| sum.add(&cost.exclusive));
        sum
    }
}

/// One frame over all threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrameCost {
    /// Index into the capture's frames.
    pub frame: usize,
    pub number: u64,
    /// Where frames overlap, the later one begins at the end of the earlier one.
    pub begin_ns: u64,
    pub end_ns: u64,
    /// The threads that are known in this frame: those with events, and those that the recorder noted sums of.
    pub threads: Vec<ThreadCost>,
    pub sites: Costs,
    pub subsystems: Costs,
    pub categories: Costs,
    pub worlds: Vec<WorldCost>,
    /// Outside of every scope, over all threads.
    pub outside: Cost,
}

impl FrameCost {
    pub fn wall_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }

    pub fn thread(&self, thread: u32) -> Option<&ThreadCost> {
        self.threads.iter().find(|cost| cost.thread == thread)
    }

    /// Part of `thread`'s wall time outside of every scope [0 to 1]; 0 for a frame without length.
    pub fn unaccounted_share(&self, thread: u32) -> f64 {
        let outside = self.thread(thread).map_or(0, |cost| cost.outside.exclusive.total_ns());
        if self.wall_ns() == 0 { 0.0 } else { outside as f64 / self.wall_ns() as f64 }
    }
}

/// A wait for a lock, with where the thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockWaitAt {
    pub thread: u32,
    pub site: Option<u32>,
    pub world: Option<u32>,
    pub lock: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub holder: Option<Holder>,
}

/// A large allocation, with where the thread was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeAllocationAt {
    pub thread: u32,
    pub site: Option<u32>,
    pub world: Option<u32>,
    pub at_ns: u64,
    pub bytes: u64,
}

/// Where the time of all frames of a capture went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attribution<'capture> {
    /// In the order of time.
    pub frames: Vec<FrameCost>,
    /// Frames without length, and frames farther from the trigger's than [`CELLS_MAX`] allows.
    pub frames_left_out: usize,
    pub subsystems: Vec<&'capture str>,
    pub categories: Vec<&'capture str>,
    /// All waits for locks, within frames or not; by thread, the latest first.
    pub lock_waits: Vec<LockWaitAt>,
    /// All large allocations, within frames or not; by thread, the latest first.
    pub large_allocations: Vec<LargeAllocationAt>,
}

impl<'capture> Attribution<'capture> {
    /// Of all frames of `capture`.
    pub fn of(capture: &'capture Capture) -> Self {
        Self::build(capture, windows(capture), &|_, _| true)
    }

    /// The same for one frame and only for the time that `keep` says yes to, asked with the innermost site and the
    /// world: which worlds had the time of one subsystem, which scopes that of one world. What is left out is missing,
    /// also from the sum. `None` if the frame has no length.
    pub fn of_part(
        capture: &'capture Capture,
        frame: &FrameCost,
        keep: &dyn Fn(Option<u32>, Option<u32>) -> bool,
    ) -> Option<FrameCost> {
        let window = Window { frame: Some(frame.frame), begin_ns: frame.begin_ns, end_ns: frame.end_ns };
        Self::build(capture, vec![window], keep).frames.pop()
    }

    /// The same for any stretches of time, such as one run of a scope: one cost per thread and stretch. Where stretches
    /// overlap, the later one is cut. Threads without context switches have no sums here.
    pub fn of_stretches(
        capture: &'capture Capture,
        stretches: &[(u64, u64)],
        keep: &dyn Fn(Option<u32>, Option<u32>) -> bool,
    ) -> Vec<ThreadCost> {
        let windows =
            apart(stretches.iter().map(|&(begin_ns, end_ns)| Window { frame: None, begin_ns, end_ns }).collect());
        Self::build(capture, windows, keep).frames.into_iter().flat_map(|frame| frame.threads).collect()
    }

    /// The same for one stretch over all threads; `None` if it has no length.
    pub fn of_stretch(
        capture: &'capture Capture,
        (begin_ns, end_ns): (u64, u64),
        keep: &dyn Fn(Option<u32>, Option<u32>) -> bool,
    ) -> Option<FrameCost> {
        Self::build(capture, apart(vec![Window { frame: None, begin_ns, end_ns }]), keep).frames.pop()
    }

    fn build(
        capture: &'capture Capture,
        mut windows: Vec<Window>,
        keep: &dyn Fn(Option<u32>, Option<u32>) -> bool,
    ) -> Self {
        let groups = Grouping::of(&capture.sites);
        limit(capture, &mut windows);
        let mut frames: Vec<FrameCost> = windows
            .iter()
            .map(|window| FrameCost {
                frame: window.frame.unwrap_or_default(),
                number: window.frame.map(|frame| capture.frames[frame].number).unwrap_or_default(),
                begin_ns: window.begin_ns,
                end_ns: window.end_ns,
                ..FrameCost::default()
            })
            .collect();
        // What a thread was does not depend on what is asked for.
        let all_frames = self::windows(capture);
        let mut walker = Walker::new(capture, &groups, &windows, &all_frames, keep);
        for thread in 0..capture.threads.len() {
            walker.walk(thread, &mut frames);
        }
        let (lock_waits, large_allocations) = (walker.lock_waits, walker.large_allocations);
        let mut merge = Merge::new(capture.sites.len() + 1);
        for frame in &mut frames {
            frame.sites = merge.sum(frame.threads.iter().map(|thread| &thread.sites));
            frame.subsystems = merge.sum(frame.threads.iter().map(|thread| &thread.subsystems));
            frame.categories = merge.sum(frame.threads.iter().map(|thread| &thread.categories));
            frame.threads.iter().for_each(|thread| frame.outside.add(&thread.outside));
            merge_worlds(&mut frame.worlds);
        }
        Self {
            frames_left_out: capture.frames.len().saturating_sub(frames.len()),
            frames,
            subsystems: groups.subsystems,
            categories: groups.categories,
            lock_waits,
            large_allocations,
        }
    }

    /// The frame of that number.
    pub fn frame(&self, number: u64) -> Option<&FrameCost> {
        self.frames.iter().find(|frame| frame.number == number)
    }
}

/// Frames as stretches of time: rising, apart from each other, none empty.
fn windows(capture: &Capture) -> Vec<Window> {
    let frames = capture.frames.iter().enumerate();
    apart(frames.map(|(frame, it)| Window { frame: Some(frame), begin_ns: it.begin_ns, end_ns: it.end_ns }).collect())
}

/// Sorts them and cuts them to what does not overlap.
fn apart(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_by_key(|window| (window.begin_ns, window.end_ns));
    let mut end_ns = 0;
    for window in &mut windows {
        window.begin_ns = window.begin_ns.max(end_ns);
        end_ns = end_ns.max(window.end_ns);
    }
    windows.retain(|window| window.begin_ns < window.end_ns);
    windows
}

/// Drops the frames farthest from the trigger's until the result cannot have more than [`CELLS_MAX`] costs.
fn limit(capture: &Capture, windows: &mut Vec<Window>) {
    let mut last_seen = vec![u32::MAX; capture.sites.len() + 1];
    let mut cells_per_frame = 0;
    for (thread, it) in (0u32..).zip(&capture.threads) {
        let mut sites = 0;
        for event in &it.events {
            let (Event::Scope { site, .. } | Event::OpenScope { site, .. }) = event else { continue };
            let seen = &mut last_seen[(*site as usize).min(capture.sites.len())];
            sites += usize::from(*seen != thread);
            *seen = thread;
        }
        // Scopes, their subsystem and category, and the thread itself.
        cells_per_frame += 3 * sites + 1;
    }
    let frames_max = (CELLS_MAX / cells_per_frame.max(1)).max(1);
    if windows.len() <= frames_max {
        return;
    }
    let trigger = windows
        .iter()
        .position(|it| it.frame.is_some_and(|frame| capture.frames[frame].number >= capture.about.frame))
        .unwrap_or(windows.len() - 1);
    let begin = trigger.saturating_sub(frames_max / 2).min(windows.len() - frames_max);
    windows.truncate(begin + frames_max);
    windows.drain(..begin);
}

/// Makes one entry of the entries of each world, by falling time.
fn merge_worlds(worlds: &mut Vec<WorldCost>) {
    let mut places: HashMap<Option<u32>, usize> = HashMap::new();
    let mut merged: Vec<WorldCost> = Vec::new();
    for world in worlds.drain(..) {
        match places.get(&world.world) {
            Some(&place) => merged[place].cost.add(&world.cost),
            None => {
                places.insert(world.world, merged.len());
                merged.push(world);
            }
        }
    }
    merged.sort_by_key(|it| (std::cmp::Reverse(it.cost.exclusive.total_ns()), it.world));
    *worlds = merged;
}
