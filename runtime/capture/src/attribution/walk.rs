//! One thread, from its last event to its first.
//!
//! Backwards, a scope comes before the scopes inside it, so one stack of open scopes is enough: time between two events
//! belongs to the scope on top. Each such piece is cut where the frame, the state or the world changes; those are read
//! backwards beside it.

use super::{
    Cost, Costs, FrameCost, LargeAllocationAt, LockWaitAt, Spent, ThreadCost, WorldCost,
    grouping::Grouping,
    table::{Raw, Spread, Table},
    timeline::{self, AtWork, State, Sums, Timeline, WorldNumbers},
};
use crate::model::{Capture, Event, FrameThread};

/// A frame's stretch of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Index into the capture's frames; `None` for a stretch of time that is not a frame.
    pub frame: Option<usize>,
    pub begin_ns: u64,
    pub end_ns: u64,
}

impl Window {
    /// How much of `[begin_ns, end_ns)` lies in it.
    pub fn overlap_ns(&self, begin_ns: u64, end_ns: u64) -> u64 {
        end_ns.min(self.end_ns).saturating_sub(begin_ns.max(self.begin_ns))
    }
}

/// Which costs are asked for, by innermost site and world.
pub(super) type Keep<'a> = dyn Fn(Option<u32>, Option<u32>) -> bool + 'a;

#[derive(Clone, Copy)]
struct Open {
    site: u32,
    begin_ns: u64,
}

/// A wait for a lock whose time is being handed to the frames that it lasted.
#[derive(Clone, Copy)]
struct OpenWait {
    site: Option<u32>,
    world: AtWork,
    begin_ns: u64,
    /// From here on it has been handed out.
    until_ns: u64,
}

/// Costs by site, by subsystem or by category, with which of them are open.
struct Group {
    table: Table,
    depth: Vec<u32>,
    /// Open keys, outermost first, with the time from which on their inclusive time has been handed out.
    open: Vec<(u32, u64)>,
}

impl Group {
    fn new(len: usize) -> Self {
        Self { table: Table::new(len), depth: vec![0; len], open: Vec::new() }
    }

    fn open(&mut self, key: u32, end_ns: u64) {
        let depth = &mut self.depth[key as usize];
        *depth += 1;
        if *depth == 1 {
            self.open.push((key, end_ns));
        }
    }

    fn close(&mut self, key: u32, begin_ns: u64, window: Option<&Window>) {
        let depth = &mut self.depth[key as usize];
        *depth -= 1;
        if *depth > 0 {
            return;
        }
        // Scopes close in the reverse order of their opening, and so do their keys.
        let Some((_, until_ns)) = self.open.pop() else { return };
        self.hand_out(key, begin_ns, until_ns, window);
    }

    /// The walk leaves `window`: open keys hand out what they have of it.
    fn leave(&mut self, window: &Window) {
        for index in 0..self.open.len() {
            let (key, until_ns) = self.open[index];
            self.hand_out(key, window.begin_ns, until_ns, Some(window));
            self.open[index].1 = until_ns.min(window.begin_ns);
        }
    }

    fn hand_out(&mut self, key: u32, begin_ns: u64, until_ns: u64, window: Option<&Window>) {
        let ns = window.map_or(0, |window| window.overlap_ns(begin_ns, until_ns));
        if ns > 0 {
            self.table.entry(key).cost.inclusive_ns += ns;
        }
    }
}

/// Walks threads one after the other; its tables are made once.
pub(super) struct Walker<'a> {
    capture: &'a Capture,
    groups: &'a Grouping<'a>,
    windows: &'a [Window],
    keep: &'a Keep<'a>,
    sums: Sums<'a>,
    world_numbers: WorldNumbers,
    sites: Group,
    subsystems: Group,
    categories: Group,
    worlds: Table,
    world_ticks: Vec<u32>,
    pub lock_waits: Vec<LockWaitAt>,
    pub large_allocations: Vec<LargeAllocationAt>,
}

impl<'a> Walker<'a> {
    pub fn new(
        capture: &'a Capture,
        groups: &'a Grouping<'a>,
        windows: &'a [Window],
        all_frames: &'a [Window],
        keep: &'a Keep<'a>,
    ) -> Self {
        let world_numbers = WorldNumbers::of(capture);
        Self {
            capture,
            groups,
            windows,
            keep,
            sums: Sums::of(capture, all_frames),
            sites: Group::new(capture.sites.len() + 1),
            subsystems: Group::new(groups.subsystems.len()),
            categories: Group::new(groups.categories.len()),
            worlds: Table::new(world_numbers.worlds.len()),
            world_ticks: vec![0; world_numbers.worlds.len()],
            world_numbers,
            lock_waits: Vec::new(),
            large_allocations: Vec::new(),
        }
    }

    /// Adds what `thread` did to the frames it is known in.
    pub fn walk(&mut self, thread: usize, frames: &mut [FrameCost]) {
        let events = &self.capture.threads[thread].events;
        let states = timeline::states(self.capture, &self.sums, thread);
        let worlds = timeline::worlds(&self.capture.threads[thread], &self.world_numbers);
        Walk {
            walker: self,
            frames,
            thread: thread as u32,
            window: None,
            windows_left: 0,
            states,
            worlds,
            stack: Vec::new(),
            wait: None,
            outside: Raw::default(),
            now_ns: u64::MAX,
        }
        .run(events);
    }
}

struct Walk<'w, 'a> {
    walker: &'w mut Walker<'a>,
    frames: &'w mut [FrameCost],
    thread: u32,
    /// The window that the walk is in or has yet to reach, the last of `windows_left`; all later ones have their costs.
    window: Option<Window>,
    windows_left: usize,
    states: Timeline<State>,
    worlds: Timeline<AtWork>,
    stack: Vec<Open>,
    wait: Option<OpenWait>,
    outside: Raw,
    /// Everything from here on has been given to a scope.
    now_ns: u64,
}

impl Walk<'_, '_> {
    fn run(mut self, events: &[Event]) {
        self.windows_left = self.walker.windows.len();
        self.window = self.walker.windows.last().copied();
        self.open_unfinished(events);
        let mut allocated = Cost::default();
        for event in events.iter().rev() {
            match *event {
                Event::Scope { site, begin_ns, end_ns } => self.scope(site, begin_ns, end_ns, &mut allocated),
                // It is on the stack already. What it allocated so far is the last frame's.
                Event::OpenScope { site, .. } => {
                    self.count_in_window(Some(self.known(site)), &std::mem::take(&mut allocated))
                }
                Event::Allocations { count, frees, bytes } => {
                    allocated.allocations += u64::from(count);
                    allocated.frees += u64::from(frees);
                    allocated.allocated_bytes = allocated.allocated_bytes.saturating_add(bytes);
                }
                Event::LockWait { lock, begin_ns, end_ns, holder } => {
                    let (site, world) = self.moment(end_ns);
                    let end_ns = end_ns.min(self.now_ns);
                    self.finish_wait();
                    self.wait = Some(OpenWait { site, world, begin_ns: begin_ns.min(end_ns), until_ns: end_ns });
                    let wait = LockWaitAt {
                        thread: self.thread,
                        site,
                        world: self.walker.world_numbers.worlds[world.number as usize],
                        lock,
                        begin_ns: begin_ns.min(end_ns),
                        end_ns,
                        holder,
                    };
                    self.walker.lock_waits.push(wait);
                }
                Event::PageFault { at_ns } => {
                    let (site, _) = self.moment(at_ns);
                    self.count(site, &Cost { page_faults: 1, ..Cost::default() });
                }
                Event::LargeAllocation { at_ns, bytes } => {
                    let (site, world) = self.moment(at_ns);
                    let world = self.walker.world_numbers.worlds[world.number as usize];
                    let allocation = LargeAllocationAt { thread: self.thread, site, world, at_ns, bytes };
                    self.walker.large_allocations.push(allocation);
                }
                Event::World { .. } | Event::Switch { .. } | Event::Count { .. } => {}
            }
        }
        self.close_until(0);
        self.finish_wait();
        while self.window.is_some() {
            self.leave_window();
        }
    }

    /// Scopes that were open at the end, the outermost first, whatever order they come in.
    fn open_unfinished(&mut self, events: &[Event]) {
        let mut open: Vec<Open> = events
            .iter()
            .rev()
            .filter_map(|event| match *event {
                Event::OpenScope { site, begin_ns } => Some(Open { site: self.known(site), begin_ns }),
                _ => None,
            })
            .collect();
        open.sort_by_key(|scope| scope.begin_ns);
        open.into_iter().for_each(|scope| self.open(scope, u64::MAX));
    }

    fn scope(&mut self, site: u32, begin_ns: u64, end_ns: u64, allocated: &mut Cost) {
        let end_ns = end_ns.min(self.now_ns);
        self.close_until(end_ns);
        let outer_begin_ns = self.stack.last().map_or(0, |outer| outer.begin_ns);
        let site = self.known(site);
        self.count(Some(site), &Cost { count: 1, ..std::mem::take(allocated) });
        self.open(Open { site, begin_ns: begin_ns.min(end_ns).max(outer_begin_ns) }, end_ns);
    }

    /// Goes back to a moment; returns the innermost scope and the world there.
    fn moment(&mut self, at_ns: u64) -> (Option<u32>, AtWork) {
        let at_ns = at_ns.min(self.now_ns);
        // A scope that begins at the very moment has it: events of a moment are noted inside of scopes more often than
        // between them.
        self.close_until(at_ns.saturating_add(1).min(self.now_ns));
        self.spend_until(at_ns);
        (self.stack.last().map(|scope| scope.site), self.worlds.at(at_ns))
    }

    /// Goes back to `end_ns`, closing the scopes that begin at or after it.
    fn close_until(&mut self, end_ns: u64) {
        while let Some(&scope) = self.stack.last().filter(|scope| scope.begin_ns >= end_ns) {
            self.spend_until(scope.begin_ns);
            self.stack.pop();
            let walker = &mut *self.walker;
            let window = self.window.as_ref();
            walker.sites.close(scope.site, scope.begin_ns, window);
            walker.subsystems.close(walker.groups.subsystem_of[scope.site as usize], scope.begin_ns, window);
            walker.categories.close(walker.groups.category_of[scope.site as usize], scope.begin_ns, window);
        }
        self.spend_until(end_ns);
    }

    fn open(&mut self, scope: Open, end_ns: u64) {
        self.stack.push(scope);
        let walker = &mut *self.walker;
        walker.sites.open(scope.site, end_ns);
        walker.subsystems.open(walker.groups.subsystem_of[scope.site as usize], end_ns);
        walker.categories.open(walker.groups.category_of[scope.site as usize], end_ns);
    }

    /// Gives the time from `begin_ns` to now to the scope on top.
    fn spend_until(&mut self, begin_ns: u64) {
        let site = self.stack.last().map(|scope| scope.site);
        let mut end_ns = self.now_ns;
        self.now_ns = begin_ns.min(end_ns);
        while end_ns > begin_ns {
            self.seek(end_ns);
            let Some(window) = self.window.filter(|window| window.end_ns > begin_ns) else { break };
            end_ns = end_ns.min(window.end_ns);
            let window_begin_ns = begin_ns.max(window.begin_ns);
            while end_ns > window_begin_ns {
                let (state_begin_ns, state) = self.states.before(end_ns);
                let (world_begin_ns, world) = self.worlds.before(end_ns);
                let piece_begin_ns = window_begin_ns.max(state_begin_ns).max(world_begin_ns);
                self.spend(site, world, state, end_ns - piece_begin_ns);
                end_ns = piece_begin_ns;
            }
        }
    }

    fn spend(&mut self, site: Option<u32>, world: AtWork, state: State, ns: u64) {
        if !self.keeps(site, world) {
            return;
        }
        let walker = &mut *self.walker;
        match site {
            Some(site) => walker.sites.table.entry(site).spend(state, ns),
            None => self.outside.spend(state, ns),
        }
        let entry = walker.worlds.entry(world.number);
        if entry.cost.exclusive == Spent::default() && entry.unknown_ns == 0 {
            walker.world_ticks[world.number as usize] = world.tick;
        }
        entry.spend(state, ns);
    }

    /// Adds counts to a scope and the world at this moment; times are not its business.
    fn count(&mut self, site: Option<u32>, counts: &Cost) {
        self.seek(self.now_ns);
        if self.window.is_some_and(|window| self.now_ns <= window.end_ns) {
            self.count_in_window(site, counts);
        }
    }

    fn count_in_window(&mut self, site: Option<u32>, counts: &Cost) {
        let (_, world) = self.worlds.before(self.now_ns);
        if !self.keeps(site, world) {
            return;
        }
        match site {
            Some(site) => self.walker.sites.table.entry(site).cost.add(counts),
            None => self.outside.cost.add(counts),
        }
        self.walker.worlds.entry(world.number).cost.add(counts);
    }

    /// Hands out the rest of the wait for a lock.
    fn finish_wait(&mut self) {
        let (Some(wait), Some(window)) = (self.wait.take(), self.window) else { return };
        self.hand_out_wait(&wait, &window);
    }

    fn hand_out_wait(&mut self, wait: &OpenWait, window: &Window) {
        let lock_wait_ns = window.overlap_ns(wait.begin_ns, wait.until_ns);
        if lock_wait_ns == 0 || !self.keeps(wait.site, wait.world) {
            return;
        }
        let cost = Cost { lock_wait_ns, ..Cost::default() };
        match wait.site {
            Some(site) => self.walker.sites.table.entry(site).cost.add(&cost),
            None => self.outside.cost.add(&cost),
        }
        self.walker.worlds.entry(wait.world.number).cost.add(&cost);
    }

    fn keeps(&self, site: Option<u32>, world: AtWork) -> bool {
        (self.walker.keep)(site, self.walker.world_numbers.worlds[world.number as usize])
    }

    /// Leaves the windows that begin at or after `end_ns`.
    fn seek(&mut self, end_ns: u64) {
        while self.window.is_some_and(|window| window.begin_ns >= end_ns) {
            self.leave_window();
        }
    }

    /// Writes the costs of the window down and turns to the one before it.
    fn leave_window(&mut self) {
        let Some(window) = self.window else { return };
        if let Some(mut wait) = self.wait {
            self.hand_out_wait(&wait, &window);
            wait.until_ns = wait.until_ns.min(window.begin_ns);
            self.wait = Some(wait);
        }
        let walker = &mut *self.walker;
        walker.sites.leave(&window);
        walker.subsystems.leave(&window);
        walker.categories.leave(&window);
        self.windows_left -= 1;
        let cost = self.drain(&window);
        if let Some(cost) = cost {
            self.frames[self.windows_left].threads.push(cost);
        }
        self.window = self.windows_left.checked_sub(1).map(|last| self.walker.windows[last]);
    }

    /// `None` if nothing is known of the thread in this frame.
    fn drain(&mut self, window: &Window) -> Option<ThreadCost> {
        let capture = self.walker.capture;
        let sums = self.walker.sums.get(self.thread as usize, window);
        let outside = std::mem::take(&mut self.outside);
        let sites = self.walker.sites.table.drain();
        let blocked_ns =
            sites.iter().map(|(_, raw)| raw).chain([&outside]).map(|raw| raw.cost.exclusive.blocked_ns).sum();
        let worlds = self.drain_worlds(sums, blocked_ns);
        if capture.threads[self.thread as usize].events.is_empty() && sums.is_none() {
            return None;
        }
        self.frames[self.windows_left].worlds.extend(worlds);

        let mut spread = Spread::new(sums, blocked_ns);
        let is_spread = sites.iter().any(|(_, raw)| raw.unknown_ns > 0) || outside.unknown_ns > 0;
        let sites: Costs = sites.into_iter().map(|(site, raw)| (site, settle(raw, &mut spread, true))).collect();
        let outside = settle(outside, &mut spread, false);
        let groups = self.walker.groups;
        let subsystems = add_up(&mut self.walker.subsystems.table, &groups.subsystem_of, &sites);
        let categories = add_up(&mut self.walker.categories.table, &groups.category_of, &sites);
        Some(ThreadCost { thread: self.thread, sites, subsystems, categories, outside, is_spread })
    }

    fn drain_worlds(&mut self, sums: Option<&FrameThread>, blocked_ns: u64) -> Vec<WorldCost> {
        let mut spread = Spread::new(sums, blocked_ns);
        let walker = &mut *self.walker;
        let raw = walker.worlds.drain();
        raw.into_iter()
            .map(|(number, raw)| {
                let mut cost = settle(raw, &mut spread, number != 0);
                cost.inclusive_ns = cost.exclusive.total_ns();
                let tick = walker.world_ticks[number as usize];
                WorldCost { world: walker.world_numbers.worlds[number as usize], tick, thread: self.thread, cost }
            })
            .collect()
    }

    /// The site's number; one past the last for all that are not in the list.
    fn known(&self, site: u32) -> u32 {
        site.min(self.walker.capture.sites.len() as u32)
    }
}

fn settle(raw: Raw, spread: &mut Spread, is_in_scope: bool) -> Cost {
    let mut cost = raw.cost;
    cost.exclusive.add(&spread.split(raw.unknown_ns, is_in_scope));
    cost
}

/// Costs of groups: inclusive times are in `table` already, the others are sums over the groups' sites.
fn add_up(table: &mut Table, group_of: &[u32], sites: &Costs) -> Costs {
    for &(site, ref cost) in sites {
        table.entry(group_of[site as usize]).cost.add(&Cost { inclusive_ns: 0, ..*cost });
    }
    table.drain().into_iter().map(|(group, raw)| (group, raw.cost)).collect()
}
