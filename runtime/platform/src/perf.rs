//! Context switches and page faults of one of our own threads, as the kernel saw them; and in [`cores`], who had a core.
//!
//! A slow frame has two kinds of causes: the thread worked too long, or it had no core to work on. From inside the
//! process the two look alike. The kernel knows, and tells an unprivileged process about its own threads: every time a
//! thread gets a core, loses it or gives it up, and every fault for memory that was not there yet. [`ThreadEvents`]
//! asks for both and reads them from rings that the kernel writes; nothing is asked while it runs.
//!
//! Two rings per thread, since a world that touches 100 MiB of fresh memory makes 25,000 faults, and those must not
//! push out the switches. What finds its ring full is lost, and counted.
//!
//! The kernel says when a thread lost its core, never when it woke: the wait between waking and running is not in these
//! records ([`sched::ThreadSums`](crate::sched::ThreadSums) has its sum).
//!
//! One thread at a time reads, any one. Cost: two descriptors and 104 KiB per thread; [`ThreadEvents::read`] some 60 ns
//! per record, which comes from another core's cache, without a system call or an allocation. The kernel pays 2.1 us
//! more per switch (of 3.5 us that two of them over a pipe take) and 0.7 us more per fault (of 2.1 us), measured on two
//! virtual cores.

pub mod cores;
mod error;
mod parse;

use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

pub use error::PerfError;
pub(crate) use error::is_open_to_all;
use parse::{Parsed, parse};
pub(crate) use parse::{SWITCH, SWITCH_OUT, SWITCH_OUT_PREEMPT};

/// Room for switches between two reads: 2,048 records of 32 bytes. A thread that waits 20,000 times a second fills it
/// in 50 ms.
const SWITCHES_BYTES: usize = 64 * 1024;

/// Room for faults between two reads: 1,024 of them, which is 4 MiB of fresh memory.
const FAULTS_BYTES: usize = 32 * 1024;

/// What happened to the thread, and when on the monotonic clock (ns).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Has this core from here on.
    Running { at_ns: u64, core: u32 },
    /// Lost its core though it could have gone on: it waits for one. Also what a thread that yields looks like.
    Preempted { at_ns: u64 },
    /// Gave its core up to sleep or to wait for something.
    Blocked { at_ns: u64 },
    /// Touched memory in its own code that the kernel had to find first. (Faults inside a system call are not told to
    /// an unprivileged process.)
    PageFault { at_ns: u64 },
}

impl Record {
    /// When. (ns, monotonic clock)
    pub fn at_ns(self) -> u64 {
        match self {
            Record::Running { at_ns, .. }
            | Record::Preempted { at_ns }
            | Record::Blocked { at_ns }
            | Record::PageFault { at_ns } => at_ns,
        }
    }
}

/// The kernel's records about one thread, from the moment of opening until it is dropped.
///
/// A thread that ends leaves what was recorded. Its end is not: it looks as if it ran on.
pub struct ThreadEvents {
    switches: Stream,
    faults: Stream,
}

impl ThreadEvents {
    /// Begins recording a thread of this process; 0 means the calling thread.
    ///
    /// Fails where the kernel or a container forbids it; the error says how to allow it. Costs some 100 us.
    pub fn open(tid: u32) -> Result<ThreadEvents, PerfError> {
        let mut switches = Builder::new(Software::DUMMY);
        switches.context_switch(true);
        let mut faults = Builder::new(Software::PAGE_FAULTS);
        faults.sample_period(1);
        Ok(ThreadEvents {
            switches: Stream::open(switches, tid, SWITCHES_BYTES)?,
            faults: Stream::open(faults, tid, FAULTS_BYTES)?,
        })
    }

    /// Hands over what happened up to `until_ns` on the monotonic clock, oldest first, at most `records_max` records;
    /// the rest stays for the next call. Returns how many there were.
    ///
    /// A record of the last microsecond may come with the next call, after a newer one of the other ring.
    pub fn read(&mut self, until_ns: u64, records_max: usize, mut each: impl FnMut(Record)) -> usize {
        for count in 0..records_max {
            let fault_ns = self.faults.peek().map_or(u64::MAX, Record::at_ns);
            let switch_ns = self.switches.peek().map_or(u64::MAX, Record::at_ns);
            if fault_ns.min(switch_ns) > until_ns {
                return count;
            }
            let older = if fault_ns < switch_ns { &mut self.faults } else { &mut self.switches };
            let Some(record) = older.next.take() else {
                return count;
            };
            each(record);
        }
        records_max
    }

    /// Stops recording, or goes on: the kernel then spends nothing on it. A system call for each ring.
    pub fn switch_on(&mut self, is_on: bool) -> io::Result<()> {
        [&mut self.switches, &mut self.faults].into_iter().try_for_each(|stream| {
            let counter = stream.sampler.as_counter_mut();
            if is_on { counter.enable() } else { counter.disable() }
        })
    }

    /// Switches that were lost since opening because their ring was full. The kernel tells about them with the first
    /// record after.
    pub fn switches_lost(&self) -> u64 {
        self.switches.lost
    }

    /// The same for page faults.
    pub fn faults_lost(&self) -> u64 {
        self.faults.lost
    }
}

/// One ring, and the oldest record of it.
struct Stream {
    sampler: Sampler,
    next: Option<Record>,
    lost: u64,
}

impl Stream {
    fn open(mut event: Builder, tid: u32, bytes: usize) -> Result<Stream, PerfError> {
        // Every kind of record then carries thread, time and core, in this order, at its end.
        let stamp = SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU;
        event.sample(stamp).sample_id_all(true).clockid(Clock::MONOTONIC);
        event.exclude_kernel(true).exclude_hv(true).observe_pid(tid as libc::pid_t).any_cpu().enabled(true);
        let counter = event.build().map_err(PerfError::of_open)?;
        let sampler = counter.sampled(bytes).map_err(PerfError::of_map)?;
        Ok(Stream { sampler, next: None, lost: 0 })
    }

    fn peek(&mut self) -> Option<Record> {
        while self.next.is_none() {
            let raw = self.sampler.next_record()?;
            match parse(raw.ty(), raw.misc(), raw.data()) {
                Parsed::Record(record) => self.next = Some(record),
                Parsed::Lost(count) => self.lost += count,
                Parsed::Other => {}
            }
        }
        self.next
    }
}

#[cfg(test)]
mod tests;
