//! Switches: when the process's threads ran, waited for a core, or slept.
//!
//! A frame that was slow although no scope was is a thread without a core. Three sources tell about that, of which
//! [`Switches`] uses the best that the host allows, and says which ([`Switches::source`]) and why no better one
//! ([`Switches::why_not`]):
//!
//! | source | knows | forbidden by |
//! | --- | --- | --- |
//! | perf_event | each switch and page fault, time and core | `kernel.perf_event_paranoid` above 2, most containers |
//! | schedstat | sums per thread and frame | hardly anything |
//! | none | nothing | |
//!
//! Which thread of another process ran instead is known only from records of whole cores, which take more than this:
//! see `cores`.
//!
//! With perf_event the kernel's sums are used too: its records tell when a thread lost its core, but not when a
//! sleeping one woke and began to wait for one (`account` puts the two together).
//!
//! Owned by the frame's thread. A steady frame allocates nothing and takes no lock that it would wait for. Cost per
//! frame and thread: with perf_event some 150 ns per record, and one system call if the thread got a core in this
//! frame; with schedstat two system calls. Such a call takes 1 us, the first one after the frame's thread slept 10 us;
//! four threads that each got a core once, 20 us in all. The kernel itself takes some 2 us more per switch with
//! perf_event. Memory: 0.5 MiB per thread.

mod account;
mod history;

use std::io;
use std::mem;
use std::sync::Arc;

use throng_capture::model::{FrameThread, SwitchSource};
use throng_platform::perf::{PerfError, Record, ThreadEvents};
use throng_platform::sched::{Sums, ThreadSums, thread_state};
use throng_platform::ticks::monotonic_ns;

use account::{Account, Split, Wait};
pub use history::SwitchHistory;
use history::ThreadHistory;

/// Threads followed at most; the memory for them is 128 MiB. Later ones are refused.
pub const FOLLOWED_MAX: usize = 256;

/// Records taken from the kernel that the history has no time for at the moment. Both of the kernel's rings fit in, so
/// that they are only left full when a saver copies for more than a frame.
const PENDING_MAX: usize = 4_096;

/// The longest single wait for a core of one thread, of those that ended since the last frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LongestWait {
    /// Index of the thread.
    pub thread: u32,
    /// When it became ready to run. (ns, monotonic clock)
    pub at_ns: u64,
    /// How long it waited at most.
    pub waited_ns: u64,
    /// How long it waited at least: the same where it was preempted or woke once; of several waits after sleeps only
    /// the sum is known.
    pub waited_ns_min: u64,
    /// The core on which it ran then; unknown with schedstat.
    pub core: Option<u32>,
}

/// Follows threads of this process.
pub struct Switches {
    source: SwitchSource,
    why_not: Option<String>,
    /// In the order in which they were followed.
    followed: Vec<Followed>,
    longest_waits: Vec<LongestWait>,
    history: SwitchHistory,
    /// When the frame began, if [`Switches::begin`] was told.
    begun_ns: Option<u64>,
    /// What threads that are no longer followed had lost.
    lost_before: u64,
}

/// One thread, and what tells about it.
struct Followed {
    index: u32,
    by: By,
}

enum By {
    Events(Box<Events>),
    Sums(FrameSums),
}

struct FrameSums {
    sums: ThreadSums,
    /// As they were at the end of the last frame and, if [`Switches::begin`] was told, at the begin of this one.
    last: Sums,
    at_begin: Sums,
}

struct Events {
    events: ThreadEvents,
    account: Account,
    /// The kernel's sum of waits, and its value when it was read last; `None` when the thread has ended.
    sums: Option<ThreadSums>,
    waiting_ns: u64,
    pending: Vec<Record>,
    history: Arc<ThreadHistory>,
    /// Frames in a row in which it ran without a single switch.
    silent_frames: u32,
}

/// So often is a thread without switches looked after: it may have ended, which the kernel does not record.
const SILENT_FRAMES_MAX: u32 = 8;

impl Switches {
    /// Finds out what the host allows; nothing is followed yet. Not `enabled`: never follows anything.
    pub fn new(enabled: bool) -> Switches {
        if !enabled {
            return Switches::with(SwitchSource::None, None);
        }
        let Err(error) = ThreadEvents::open(0) else {
            return Switches::with(SwitchSource::PerfEvent, None);
        };
        match ThreadSums::open(0) {
            Ok(_) => Switches::with(SwitchSource::Schedstat, Some(format!("{error}. Sums per frame are used instead"))),
            Err(sums_error) => {
                let message = format!("{error}. Sums per frame are not to be had either: {sums_error}");
                Switches::with(SwitchSource::None, Some(message))
            }
        }
    }

    fn with(source: SwitchSource, why_not: Option<String>) -> Switches {
        Switches {
            source,
            why_not,
            followed: Vec::new(),
            longest_waits: Vec::new(),
            history: SwitchHistory::default(),
            begun_ns: None,
            lost_before: 0,
        }
    }

    /// The best source that the host allows.
    pub fn source(&self) -> SwitchSource {
        self.source
    }

    /// Why it is not a better one, or why a thread is not followed by it, with what to do about it; each message once.
    pub fn why_not(&mut self) -> Option<String> {
        self.why_not.take()
    }

    /// Follows the thread with this index and number (0: the calling thread) from now on. False, with the reason in
    /// [`Switches::why_not`], if that cannot be. A thread that is followed already stays so. Allocates; about 0.2 ms.
    pub fn follow(&mut self, index: u32, tid: u32) -> bool {
        if self.source == SwitchSource::None || self.is_followed(index) {
            return self.is_followed(index);
        }
        if self.followed.len() >= FOLLOWED_MAX {
            self.why_not = Some(format!("of all threads, {FOLLOWED_MAX} are followed at most; thread {tid} is not"));
            return false;
        }
        let by = match self.source {
            SwitchSource::CpuWide | SwitchSource::PerfEvent => match self.events_of(index, tid) {
                Ok(events) => Ok(By::Events(Box::new(events))),
                Err(error) => {
                    self.why_not = Some(format!("thread {tid}: {error}"));
                    sums_of(tid)
                }
            },
            SwitchSource::Schedstat | SwitchSource::None => sums_of(tid),
        };
        match by {
            Ok(by) => self.followed.push(Followed { index, by }),
            Err(error) => {
                self.why_not = Some(format!("thread {tid} cannot be followed: {error}"));
                return false;
            }
        }
        // A frame then never needs more room than this.
        self.longest_waits.reserve(self.followed.len());
        true
    }

    fn is_followed(&self, index: u32) -> bool {
        self.followed.iter().any(|followed| followed.index == index)
    }

    fn events_of(&self, index: u32, tid: u32) -> Result<Events, PerfError> {
        let at_ns = monotonic_ns();
        let events = ThreadEvents::open(tid)?;
        let sums = ThreadSums::open(tid).ok();
        let waiting_ns = sums.as_ref().and_then(|sums| sums.read_waiting_ns().ok()).unwrap_or(0);
        // What changes from here on is in the records. A thread that is ready is taken for running: until its first
        // record nobody knows.
        let first = match thread_state(tid) {
            Ok(state) if !state.is_asleep => Record::Running { at_ns, core: state.core },
            _ => Record::Blocked { at_ns },
        };
        Ok(Events {
            events,
            account: Account::new(first),
            sums,
            waiting_ns,
            pending: Vec::with_capacity(PENDING_MAX),
            history: self.history.add(index, first),
            silent_frames: 0,
        })
    }

    /// Follows a thread no longer, because it ended. What it did stays in the history for a while. (One that ended and
    /// is still followed looks for some frames as if it ran on, then as if it slept.)
    pub fn forget(&mut self, index: u32) {
        let Some(at) = self.followed.iter().position(|followed| followed.index == index) else {
            return;
        };
        let mut followed = self.followed.remove(at);
        self.lost_before += followed.lost();
        if let By::Events(events) = &mut followed.by {
            events.read_until(u64::MAX);
        }
    }

    /// A frame begins now. Without this call, waits for a core between two frames can be taken for waits of the next
    /// frame.
    pub fn begin(&mut self, begin_ns: u64) {
        self.begun_ns = Some(begin_ns);
        for followed in &mut self.followed {
            match &mut followed.by {
                By::Events(events) => {
                    events.read_until(begin_ns);
                    events.account.pass_until(begin_ns);
                    events.settle();
                    events.account.begin_frame(begin_ns);
                }
                By::Sums(sums) => sums.at_begin = sums.sums.read().unwrap_or(sums.last),
            }
        }
    }

    /// Replaces the contents of `out` by how each followed thread spent the frame (ns, monotonic clock). The three
    /// numbers of a thread add up to the frame exactly.
    pub fn frame(&mut self, begin_ns: u64, end_ns: u64, out: &mut Vec<FrameThread>) {
        out.clear();
        self.longest_waits.clear();
        let has_begun = self.begun_ns.take() == Some(begin_ns);
        for Followed { index, by } in &mut self.followed {
            let (split, longest) = match by {
                By::Events(events) => events.frame(has_begun, begin_ns, end_ns),
                By::Sums(sums) => sums.frame(has_begun, begin_ns, end_ns),
            };
            self.longest_waits.extend(longest.map(|wait| LongestWait {
                thread: *index,
                at_ns: wait.begin_ns,
                waited_ns: wait.waited_ns,
                waited_ns_min: wait.waited_ns_min,
                core: wait.core,
            }));
            out.push(FrameThread {
                thread: *index,
                running_ns: split.running_ns,
                waiting_ns: split.waiting_ns,
                blocked_ns: split.blocked_ns,
            });
        }
    }

    /// Stops following without forgetting anybody, or goes on. What happens meanwhile is not known.
    pub fn switch_on(&mut self, is_on: bool) {
        for followed in &mut self.followed {
            if let By::Events(events) = &mut followed.by {
                // It has worked before; where it does not now, records are missing or too many, and no harm is done.
                let _ = events.events.switch_on(is_on);
            }
        }
    }

    /// Per thread that waited for a core, its longest wait of those that ended since the frame before; as of the last
    /// [`Switches::frame`].
    pub fn longest_waits(&self) -> &[LongestWait] {
        &self.longest_waits
    }

    /// What captures are made of; for a saver's thread.
    pub fn history(&self) -> SwitchHistory {
        self.history.clone()
    }

    /// Switches and faults that were lost since the beginning because they were more than fit between two frames.
    pub fn records_lost(&self) -> u64 {
        self.lost_before + self.followed.iter().map(Followed::lost).sum::<u64>()
    }
}

fn sums_of(tid: u32) -> io::Result<By> {
    let sums = ThreadSums::open(tid)?;
    let last = sums.read()?;
    Ok(By::Sums(FrameSums { sums, last, at_begin: last }))
}

impl Followed {
    fn lost(&self) -> u64 {
        match &self.by {
            By::Events(events) => events.events.switches_lost() + events.events.faults_lost(),
            By::Sums(_) => 0,
        }
    }
}

impl FrameSums {
    fn frame(&mut self, has_begun: bool, begin_ns: u64, end_ns: u64) -> (Split, Option<Wait>) {
        // A thread that ended adds nothing.
        let now = self.sums.read().unwrap_or(self.last);
        let before = mem::replace(&mut self.last, now);
        let begin = if has_begun { self.at_begin } else { before };
        let running_ns = now.running_ns.saturating_sub(begin.running_ns);
        let waiting_ns = now.waiting_ns.saturating_sub(begin.waiting_ns);
        let split = Split::of_sums(running_ns, waiting_ns, end_ns.saturating_sub(begin_ns));
        // One wait or many, and when: it may have been one.
        let waited_ns = now.waiting_ns.saturating_sub(before.waiting_ns);
        let begin_ns = begin_ns.min(end_ns.saturating_sub(waited_ns));
        (split, (waited_ns > 0).then_some(Wait { begin_ns, waited_ns, waited_ns_min: 0, core: None }))
    }
}

impl Events {
    fn frame(&mut self, has_begun: bool, begin_ns: u64, end_ns: u64) -> (Split, Option<Wait>) {
        if !has_begun {
            self.account.begin_frame(begin_ns);
        }
        let is_silent = self.read_until(end_ns) == 0;
        self.account.pass_until(end_ns);
        self.silent_frames = if is_silent && self.account.is_running() { self.silent_frames + 1 } else { 0 };
        if self.silent_frames == SILENT_FRAMES_MAX {
            self.silent_frames = 0;
            self.read_sum();
        }
        self.settle();
        self.account.take()
    }

    /// Takes records up to then; returns how many.
    fn read_until(&mut self, at_ns: u64) -> usize {
        let Events { events, account, pending, history, .. } = self;
        let count = events.read(at_ns, PENDING_MAX - pending.len(), |record| {
            account.note(record);
            pending.push(record);
        });
        if !pending.is_empty() {
            history.try_take(pending);
        }
        count
    }

    fn settle(&mut self) {
        if self.account.has_ended_absence() {
            let waited_ns = self.read_sum();
            self.account.settle(waited_ns);
        }
    }

    /// By how much the kernel's sum of waits has grown. Notices when the thread has ended.
    fn read_sum(&mut self) -> u64 {
        let Some(sums) = &self.sums else { return 0 };
        let Ok(waiting_ns) = sums.read_waiting_ns() else {
            self.sums = None;
            self.account.retire();
            return 0;
        };
        waiting_ns.saturating_sub(mem::replace(&mut self.waiting_ns, waiting_ns))
    }
}

#[cfg(test)]
mod tests;
