//! What the processor itself counts of a thread of any process: instructions, cycles, cache misses.
//!
//! They say why a program takes longer beside others: fewer instructions per cycle with more cache misses is memory that
//! is shared; as many as before is a core that is shared. Not every host counts: a virtual machine does only where its
//! hypervisor hands the counters on.
//!
//! Any thread. Three descriptors per thread that is counted; the counted thread pays some 100 ns per switch. What is
//! counted is what it does in its own program, not in the kernel.

use std::io;

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};
use thiserror::Error;

/// Counts since the opening.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct HardwareCounts {
    pub instructions: u64,
    pub cycles: u64,
    /// Of the last level.
    pub cache_misses: u64,
}

/// Why nothing is counted.
#[derive(Debug, Error)]
pub enum HardwareError {
    #[error("this host has no counters of its processor ({source}), as most virtual machines; ask for a host that has")]
    Missing { source: io::Error },
    #[error(
        "the host does not let this user count ({source}): run `sysctl -w kernel.perf_event_paranoid=2` on the host, or give \
         the program CAP_PERFMON; the counted processes must be of the same user"
    )]
    Forbidden { source: io::Error },
    #[error("there is no thread {thread_id}")]
    NoThread { thread_id: u32 },
    #[error("the processor's counters cannot be opened: {source}")]
    Failed { source: io::Error },
}

/// Counters of one thread, from the opening until they are dropped; and of all threads that it starts meanwhile.
pub struct HardwareCounters {
    counters: [Counter; 3],
}

impl HardwareCounters {
    pub fn open(thread_id: u32) -> Result<HardwareCounters, HardwareError> {
        let no_thread = HardwareError::NoThread { thread_id };
        let Ok(pid) = i32::try_from(thread_id) else { return Err(no_thread) };
        let open = |event| Builder::new(event).observe_pid(pid).any_cpu().inherit(true).enabled(true).build();
        let opened = || -> io::Result<[Counter; 3]> {
            Ok([open(Hardware::INSTRUCTIONS)?, open(Hardware::CPU_CYCLES)?, open(Hardware::CACHE_MISSES)?])
        };
        match opened() {
            Ok(counters) => Ok(HardwareCounters { counters }),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(no_thread),
            Err(error) => Err(HardwareError::of_open(error)),
        }
    }

    /// What was counted until now. Where the processor has fewer counters than are wanted on it, they take turns and the
    /// counts are estimates.
    pub fn read(&mut self) -> io::Result<HardwareCounts> {
        let [instructions, cycles, cache_misses] = &mut self.counters;
        Ok(HardwareCounts {
            instructions: read_scaled(instructions)?,
            cycles: read_scaled(cycles)?,
            cache_misses: read_scaled(cache_misses)?,
        })
    }
}

fn read_scaled(counter: &mut Counter) -> io::Result<u64> {
    let read = counter.read_count_and_time()?;
    if read.time_running == 0 || read.time_running >= read.time_enabled {
        return Ok(read.count);
    }
    Ok((u128::from(read.count) * u128::from(read.time_enabled) / u128::from(read.time_running)) as u64)
}

impl HardwareError {
    fn of_open(source: io::Error) -> HardwareError {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL) => HardwareError::Missing { source },
            // A filter may also pretend that the call does not exist.
            Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => HardwareError::Forbidden { source },
            _ => HardwareError::Failed { source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::this_thread_id;

    #[test]
    fn a_thread_that_works_is_counted_where_the_host_counts() {
        let mut counters = match HardwareCounters::open(this_thread_id()) {
            Ok(counters) => counters,
            // No privilege gives a virtual machine what it has not.
            Err(error @ HardwareError::Missing { .. }) => return eprintln!("not tried: {error}"),
            Err(error) => return crate::testing::not_permitted(&error.to_string()),
        };
        let before = counters.read().unwrap();
        (0..1_000_000).for_each(|n| {
            std::hint::black_box(n);
        });
        let after = counters.read().unwrap();
        assert!(after.instructions - before.instructions >= 1_000_000, "{before:?} {after:?}");
        assert!(after.cycles > before.cycles, "{before:?} {after:?}");
    }

    #[test]
    fn every_refusal_says_what_is_missing() {
        let of = |errno| HardwareError::of_open(io::Error::from_raw_os_error(errno)).to_string();
        assert!(of(libc::ENOENT).contains("virtual machines"));
        assert!(of(libc::EACCES).contains("kernel.perf_event_paranoid=2"));
        assert!(of(libc::EMFILE).contains("Too many open files"));
    }

    #[test]
    fn a_thread_that_is_not_there_is_an_error() {
        assert!(HardwareCounters::open((1 << 22) - 1).is_err());
        assert!(HardwareCounters::open(u32::MAX).is_err());
    }
}
