//! Who has a core: every context switch of one core, of all threads of the host, as the kernel saw it.
//!
//! [`ThreadEvents`](super::ThreadEvents) tells when a thread of ours lost its core, and never to whom. The kernel tells
//! of threads that are not ours only to those who may watch a whole core: with CAP_PERFMON, or where
//! `kernel.perf_event_paranoid` is 0 or less. [`CoreEvents`] asks for that. Names come along: a thread that is started,
//! renamed or ended leaves a record as well, so that one that lived for 2 ms has its name too. Threads that were there
//! before are asked for theirs ([`ThreadName::of`]).
//!
//! In a container with process numbers of its own, threads outside of it have the number 0, as has an idle core: see
//! [`sees_all_processes`].
//!
//! One thread at a time reads, any one but a frame's. Cost: a descriptor and 260 KiB per core; the kernel makes two
//! records of 40 bytes for each switch of the core, some 2 us together, and reading takes some 60 ns a record. A core
//! that switches 20,000 times a second writes 1.6 MB/s and fills its ring in 160 ms.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};

use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::PerfError;
use super::parse::parse_core;

/// Room between two reads: 6,553 records of 40 bytes, two for each switch.
const RING_BYTES: usize = 256 * 1024;

/// What happened on a core, and when on the monotonic clock (ns).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CoreRecord {
    /// This thread has the core from here on; 0: none, or one that this container may not know of.
    Runs { at_ns: u64, pid: u32, tid: u32 },
    /// So many records found the ring full, up to here.
    Lost { at_ns: u64, count: u64 },
    /// A thread of this name from here on: it was renamed, or has another program.
    Named { at_ns: u64, pid: u32, tid: u32, name: ThreadName },
    /// A thread begins, named as the one that started it.
    Started { at_ns: u64, pid: u32, tid: u32, parent_tid: u32 },
    /// It ended.
    Ended { at_ns: u64, tid: u32 },
}

/// A thread's name as the kernel keeps it: 15 bytes at most, whatever they are.
#[derive(Copy, Clone, Default, PartialEq, Eq)]
pub struct ThreadName([u8; 16]);

impl ThreadName {
    /// What stands before the first zero, of 15 bytes at most.
    pub fn new(bytes: &[u8]) -> ThreadName {
        let mut name = [0; 16];
        let length = bytes.iter().take(name.len() - 1).take_while(|byte| **byte != 0).count();
        name[..length].copy_from_slice(&bytes[..length]);
        ThreadName(name)
    }

    /// Of a thread of any process, now; `None` if it is gone. Allocates; three system calls, some 10 us.
    pub fn of(pid: u32, tid: u32) -> Option<ThreadName> {
        let mut bytes = [0; 16];
        let length = File::open(format!("/proc/{pid}/task/{tid}/comm")).ok()?.read(&mut bytes).ok()?;
        Some(ThreadName::new(bytes[..length].strip_suffix(b"\n").unwrap_or(&bytes[..length])))
    }
}

/// What is not UTF-8 is replaced.
impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        f.write_str(&String::from_utf8_lossy(&self.0[..length]))
    }
}

impl fmt::Debug for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// The kernel's records about one core, from the moment of opening until it is dropped.
pub struct CoreEvents {
    sampler: Sampler,
}

impl CoreEvents {
    /// Begins recording this core.
    ///
    /// Fails where the kernel or a container forbids it; the error says how to allow it.
    pub fn open(core: u32) -> Result<CoreEvents, PerfError> {
        let mut event = Builder::new(Software::DUMMY);
        // Every kind of record then carries thread, time and core, in this order, at its end.
        let stamp = SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU;
        event.context_switch(true).task(true).comm(true).sample(stamp).sample_id_all(true).clockid(Clock::MONOTONIC);
        event.exclude_kernel(true).exclude_hv(true).any_pid().one_cpu(core as usize).enabled(true);
        let counter = event.build().map_err(PerfError::of_open_core)?;
        Ok(CoreEvents { sampler: counter.sampled(RING_BYTES).map_err(PerfError::of_map_core)? })
    }

    /// Hands over what happened since the last call, oldest first, at most `records_max` records; the rest stays for the
    /// next call. Never allocates.
    pub fn read(&mut self, records_max: usize, mut each: impl FnMut(CoreRecord)) {
        for _ in 0..records_max {
            let Some(raw) = self.sampler.next_record() else { return };
            if let Some(record) = parse_core(raw.ty(), raw.misc(), raw.data()) {
                each(record);
            }
        }
    }

    /// Stops recording, or goes on. What happens meanwhile is not known.
    pub fn switch_on(&mut self, is_on: bool) -> io::Result<()> {
        let counter = self.sampler.as_counter_mut();
        if is_on { counter.enable() } else { counter.disable() }
    }
}

/// Whether process numbers here are the host's own: then 0 is an idle core and nothing else.
pub fn sees_all_processes() -> bool {
    // The kernel's number of the first namespace (PROC_PID_INIT_INO) has been the same since there were any.
    fs::read_link("/proc/self/ns/pid").is_ok_and(|space| space.as_os_str() == "pid:[4026531836]")
}
