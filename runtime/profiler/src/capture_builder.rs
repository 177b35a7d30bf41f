//! The capture builder: from pinned blocks and the other sources to a [`Capture`].
//!
//! Runs on the recorder's own thread. Reads a few hundred thousand records, tens of nanoseconds each, and allocates as
//! it goes; no recording thread waits for it.

use std::collections::HashMap;

use throng_capture::model::{
    Event, Frame, FrameThread, Holder, LiveBytes, Lock, Memory, Site as SiteInfo, Switch, Thread, World,
};
use throng_capture::{Capture, model};
use throng_platform::perf;
use throng_platform::ticks::Calibration;

use crate::pace::Pace;
use crate::pool::Pinned;
use crate::record::Read;
use crate::site::{self, SiteId};
use crate::thread::{self, ThreadCells};
use crate::{counter, memory, pool, sync};

/// What a capture covers, and the clock that it is told by.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Window {
    pub begin_ticks: u64,
    pub end_ticks: u64,
    pub clock: Clock,
}

/// The recorder's clock: nanoseconds since it started.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Clock {
    pub calibration: Calibration,
    /// Of the monotonic clock, when the recorder started. (ns)
    pub start_ns: u64,
}

impl Clock {
    pub fn ns(&self, ticks: u64) -> u64 {
        self.of_monotonic(self.calibration.monotonic_ns(ticks))
    }

    pub fn of_monotonic(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_sub(self.start_ns)
    }
}

/// A frame as the frame's thread notes it, in ticks.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameNote {
    pub number: u64,
    pub begin_ticks: u64,
    pub end_ticks: u64,
    pub budget_ns: u64,
    pub threads: Vec<FrameThread>,
}

/// Takes everything that threads have recorded within the window. Frames, logs, memory and the rest are the caller's to
/// add.
pub(crate) fn threads(window: &Window, pace: &mut Pace) -> Capture {
    let all = thread::all();
    let pinned = pool().pin(window.begin_ticks, all.iter().filter_map(|cells| cells.block()));
    let mut builder = CaptureBuilder::new(window, &all);
    builder.read(&pinned, pace);
    drop(pinned);
    builder.finish(&all)
}

struct CaptureBuilder<'a> {
    window: &'a Window,
    threads: Vec<Thread>,
    /// Per thread, the place of the event that a record of the kind `allocations` or `lock holder` belongs to, if that
    /// was kept. A block's own word on its world may stand between the two.
    mains: Vec<Option<usize>>,
    /// Place in the capture of every site that occurs, in the order in which they were met.
    places: HashMap<u32, u32>,
    sites: Vec<u32>,
    worlds: Vec<u32>,
}

impl<'a> CaptureBuilder<'a> {
    fn new(window: &'a Window, all: &[&ThreadCells]) -> CaptureBuilder<'a> {
        let threads = all.iter().map(|cells| Thread {
            name: cells.name().into(),
            tid: cells.tid(),
            class: cells.class(),
            events: Vec::new(),
        });
        CaptureBuilder {
            window,
            threads: threads.collect(),
            mains: vec![None; all.len()],
            places: HashMap::new(),
            sites: Vec::new(),
            worlds: Vec::new(),
        }
    }

    fn read(&mut self, pinned: &Pinned, pace: &mut Pace) {
        // Some 20 MB of events per second of a busy server, which lists that double would take twice.
        let mut counts = vec![0; self.threads.len()];
        for (owner, records) in pinned.blocks() {
            if let Some(count) = counts.get_mut(owner as usize) {
                *count += records.size_hint().0;
            }
        }
        for (thread, count) in self.threads.iter_mut().zip(counts) {
            thread.events.reserve_exact(count);
        }
        for (owner, records) in pinned.blocks() {
            pace.rest_if_due();
            // A thread that registered after the list was made has nothing to tell of what came before.
            if (owner as usize) < self.threads.len() {
                records.for_each(|record| self.add(owner as usize, record.read()));
            }
        }
    }

    fn add(&mut self, owner: usize, read: Read) {
        let Window { begin_ticks, end_ticks, clock } = *self.window;
        let is_inside = |begin: u64, end: u64| end >= begin_ticks && begin <= end_ticks;
        let event = match read {
            Read::Scope { site, begin, length } if is_inside(begin, begin + length) => {
                let site = self.place(site);
                Event::Scope { site, begin_ns: clock.ns(begin), end_ns: clock.ns(begin + length) }
            }
            Read::World { at, world, tick } if at <= end_ticks => {
                let at_ns = clock.ns(at);
                if at < begin_ticks {
                    // Only the last one before the window matters: it says which world the thread is in when it begins.
                    let events = &mut self.threads[owner].events;
                    if let [.., Event::World { .. }] = events[..] {
                        events.pop();
                        self.mains[owner] = None;
                    }
                }
                self.worlds.extend(world);
                Event::World { at_ns, world, tick }
            }
            Read::Allocations { count, frees, bytes } => {
                if let Some(main) = self.mains[owner].take() {
                    self.threads[owner].events.insert(main + 1, Event::Allocations { count, frees, bytes });
                }
                return;
            }
            Read::LockWait { lock, begin, length } if is_inside(begin, begin + length) => {
                let (begin_ns, end_ns) = (clock.ns(begin), clock.ns(begin + length));
                Event::LockWait { lock, begin_ns, end_ns, holder: None }
            }
            Read::LockHolder { thread, site, world } => {
                let site = site.map(|site| self.place(site));
                // One that registered after the threads were listed has no place in the capture.
                if thread as usize >= self.threads.len() {
                    return;
                }
                let wait = self.mains[owner].take().and_then(|main| self.threads[owner].events.get_mut(main));
                if let Some(Event::LockWait { holder, .. }) = wait {
                    *holder = Some(Holder { thread, site, world });
                }
                return;
            }
            Read::LargeAllocation { at, bytes } if is_inside(at, at) => {
                Event::LargeAllocation { at_ns: clock.ns(at), bytes }
            }
            Read::Count { at, counter, value } if is_inside(at, at) => {
                Event::Count { at_ns: clock.ns(at), counter, value }
            }
            // What follows belongs to an event that was not kept.
            Read::Scope { .. } | Read::LockWait { .. } => {
                self.mains[owner] = None;
                return;
            }
            _ => return,
        };
        let events = &mut self.threads[owner].events;
        if matches!(event, Event::Scope { .. } | Event::LockWait { .. }) {
            self.mains[owner] = Some(events.len());
        }
        events.push(event);
    }

    fn place(&mut self, site: u32) -> u32 {
        *self.places.entry(site).or_insert_with(|| {
            self.sites.push(site);
            self.sites.len() as u32 - 1
        })
    }

    fn finish(mut self, all: &[&ThreadCells]) -> Capture {
        for (owner, cells) in all.iter().enumerate().filter(|(_, cells)| cells.is_alive()) {
            for (SiteId(site), begin) in cells.open_scopes() {
                if begin <= self.window.end_ticks {
                    let open = Event::OpenScope { site: self.place(site), begin_ns: self.window.clock.ns(begin) };
                    self.threads[owner].events.push(open);
                }
            }
        }
        self.worlds.sort_unstable();
        self.worlds.dedup();
        let world = |&id: &u32| World { id, ..World::default() };
        Capture {
            sites: self.sites.iter().map(|&site| site_info(SiteId(site))).collect(),
            worlds: self.worlds.iter().map(world).collect(),
            locks: sync::lock_names().into_iter().map(|name| Lock { name: name.into() }).collect(),
            counters: counter::names().into_iter().map(|name| model::Counter { name: name.into() }).collect(),
            threads: self.threads,
            ..Capture::default()
        }
    }
}

fn site_info(id: SiteId) -> SiteInfo {
    let Some(site) = site::get(id) else { return SiteInfo { name: "unknown".into(), ..SiteInfo::default() } };
    let (file, line) = site.place();
    SiteInfo {
        name: site.name().into(),
        subsystem: site.subsystem_name().into(),
        category: site.category_name().into(),
        file: file.into(),
        line,
        budget_ns: site.allowed_ns(),
    }
}

/// The place of a site in a capture's list, which is extended if it is not in it yet.
fn place_of(capture: &mut Capture, id: SiteId) -> u32 {
    let info = site_info(id);
    let known = capture.sites.iter().position(|site| site.name == info.name && site.line == info.line);
    known.unwrap_or_else(|| {
        capture.sites.push(info);
        capture.sites.len() - 1
    }) as u32
}

/// A frame in the capture's clock.
pub(crate) fn frame(note: &FrameNote, clock: &Clock) -> Frame {
    Frame {
        number: note.number,
        begin_ns: clock.ns(note.begin_ticks),
        end_ns: clock.ns(note.end_ticks),
        budget_ns: note.budget_ns,
        threads: note.threads.clone(),
    }
}

/// Puts moments (switches, faults) among a thread's events, which stand in the order of their ends. Both in order.
pub(crate) fn merge(events: &mut Vec<Event>, moments: Vec<Event>) {
    if moments.is_empty() {
        return;
    }
    let mut merged = Vec::with_capacity(events.len() + moments.len());
    let mut moments = moments.into_iter().peekable();
    let mut latest_ns = 0;
    for event in events.drain(..) {
        // What belongs to the event before it must stay right behind it.
        let stays_behind = matches!(event, Event::Allocations { .. } | Event::OpenScope { .. });
        latest_ns = if stays_behind { latest_ns } else { end_of(&event).max(latest_ns) };
        while !stays_behind && moments.peek().is_some_and(|moment| end_of(moment) < latest_ns) {
            merged.extend(moments.next());
        }
        if matches!(event, Event::OpenScope { .. }) {
            merged.extend(moments.by_ref());
        }
        merged.push(event);
    }
    merged.extend(moments);
    *events = merged;
}

fn end_of(event: &Event) -> u64 {
    match *event {
        Event::Scope { end_ns, .. } | Event::LockWait { end_ns, .. } => end_ns,
        Event::World { at_ns, .. }
        | Event::Switch { at_ns, .. }
        | Event::PageFault { at_ns }
        | Event::LargeAllocation { at_ns, .. }
        | Event::Count { at_ns, .. } => at_ns,
        Event::OpenScope { .. } | Event::Allocations { .. } => 0,
    }
}

/// What the kernel noted about a thread, in the capture's clock and within its window. What came before is told at its
/// beginning.
pub(crate) fn moments(records: Vec<perf::Record>, clock: &Clock, begin_ns: u64) -> Vec<Event> {
    let moment = |record: perf::Record| {
        let at_ns = clock.of_monotonic(record.at_ns()).max(begin_ns);
        match record {
            perf::Record::Running { core, .. } => Event::Switch { at_ns, change: Switch::Running { core } },
            perf::Record::Preempted { .. } => Event::Switch { at_ns, change: Switch::Preempted },
            perf::Record::Blocked { .. } => Event::Switch { at_ns, change: Switch::Blocked },
            perf::Record::PageFault { .. } => Event::PageFault { at_ns },
        }
    };
    records.into_iter().map(moment).collect()
}

/// Live bytes by scope over time, with the capture's own numbers of sites.
pub(crate) fn memory(capture: &mut Capture) -> Memory {
    let memory::View { at_ns, by_site } = memory::view();
    let by_site = by_site
        .into_iter()
        .map(|live| LiveBytes { site: live.site.map(|site| place_of(capture, site)), bytes: live.bytes });
    Memory { by_site: by_site.collect(), at_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(begin_ns: u64, end_ns: u64) -> Event {
        Event::Scope { site: 0, begin_ns, end_ns }
    }

    fn fault(at_ns: u64) -> Event {
        Event::PageFault { at_ns }
    }

    #[test]
    fn moments_stand_where_they_happened() {
        let allocations = Event::Allocations { count: 1, frees: 0, bytes: 8 };
        let open = Event::OpenScope { site: 0, begin_ns: 5 };
        let mut events = vec![scope(0, 10), allocations, scope(10, 30), open];
        merge(&mut events, vec![fault(4), fault(15), fault(40)]);
        assert_eq!(events, [fault(4), scope(0, 10), allocations, fault(15), scope(10, 30), fault(40), open]);
    }

    #[test]
    fn without_events_only_moments_are_left() {
        let mut events = Vec::new();
        merge(&mut events, vec![fault(1), fault(2)]);
        assert_eq!(events, [fault(1), fault(2)]);
    }
}
