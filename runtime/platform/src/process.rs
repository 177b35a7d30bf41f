//! What a process has used: processor time and memory, for this one and for others on the host; and whose it is.
//!
//! Reports compare a server with its bots on the same machine, so both are read the same way. Reading
//! the processor time costs one system call and counts in nanoseconds; memory is read from `/proc`, with
//! an allocation or two, once a second at most.

use std::fs;
use std::io;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;
use nix::unistd::{Pid, geteuid};

use crate::time::Nanos;

/// The user whose rights this process has, as a number: the owner of the files that it makes.
pub fn user_id() -> u32 {
    geteuid().as_raw()
}

/// The host's name, as it has it itself; `None` where nobody tells it.
pub fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Processor time of this process since its start, user and system, all threads together.
pub fn cpu_time() -> Nanos {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap_or_default()
}

/// The part of it that the kernel took on the process's behalf. One system call; the kernel counts in microseconds, and
/// splits by samples where it does not measure.
pub fn kernel_time() -> Nanos {
    let used = getrusage(UsageWho::RUSAGE_SELF).map(|usage| usage.system_time().num_nanoseconds());
    Nanos(used.unwrap_or_default().unsigned_abs())
}

/// The same of another process. Fails when there is none of that number.
pub fn cpu_time_of(pid: u32) -> io::Result<Nanos> {
    if pid >= PID_END {
        return Err(io::ErrorKind::NotFound.into());
    }
    read(nix::time::clock_getcpuclockid(Pid::from_raw(pid as i32))?)
}

/// No process has this number or a higher one (PID_MAX_LIMIT of the kernel). Far above it, a number loses
/// its high bits inside a clock's id, where it would name another process.
const PID_END: u32 = 1 << 22;

/// Processor time of the calling thread since its start.
pub fn thread_cpu_time() -> Nanos {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// Bytes of this process that are in memory now; 0 where `/proc` cannot be read.
pub fn rss_bytes() -> u64 {
    rss_in("/proc/self/status").unwrap_or(0)
}

/// The same of another process. Fails when there is none of that number.
pub fn rss_bytes_of(pid: u32) -> io::Result<u64> {
    rss_in(&format!("/proc/{pid}/status"))
}

fn read(clock: ClockId) -> io::Result<Nanos> {
    let time = clock.now()?;
    Ok(Nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64))
}

/// Bytes that the host could give to programs without swapping; none where `/proc` does not tell. A control group's limit
/// may be lower.
pub fn available_memory_bytes() -> Option<u64> {
    available_bytes(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// The line `MemAvailable:   20446356 kB`.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

fn rss_in(path: &str) -> io::Result<u64> {
    resident_bytes(&fs::read_to_string(path)?).ok_or(io::ErrorKind::InvalidData.into())
}

/// The line `VmRSS:    4904 kB` of a `status` file.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn available_memory_is_read_by_its_name() {
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:    3 kB\n"), Some(3_072));
        assert_eq!(available_bytes("MemTotal: 9 kB\n"), None);
        assert!(available_memory_bytes().is_some_and(|bytes| bytes > 0));
    }

    #[test]
    fn work_takes_processor_time_of_thread_and_process() {
        let (thread, process) = (thread_cpu_time(), cpu_time());
        while thread_cpu_time() == thread {
            black_box(0..1_000).for_each(|n| {
                black_box(n);
            });
        }
        assert!(cpu_time() > process);
    }

    #[test]
    fn files_that_are_made_here_are_the_users() {
        use std::os::unix::fs::MetadataExt;
        let path = std::env::temp_dir().join(format!("throng-owner-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().uid(), user_id());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn this_process_reads_as_another_would() {
        let before = cpu_time();
        let own = cpu_time_of(std::process::id()).unwrap();
        assert!(before <= own && own <= cpu_time());
        assert!(rss_bytes_of(std::process::id()).unwrap() > 0);
        assert!(rss_bytes() > 100_000);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        for none in [PID_END - 1, PID_END, i32::MAX as u32, u32::MAX] {
            assert!(cpu_time_of(none).is_err());
            assert!(rss_bytes_of(none).is_err());
        }
    }

    #[test]
    fn resident_bytes_come_from_their_line() {
        assert_eq!(resident_bytes("VmHWM:\t    5000 kB\nVmRSS:\t    4904 kB\nRssAnon:\t1 kB\n"), Some(4904 * 1024));
        assert_eq!(resident_bytes("Name:\tkthreadd\n"), None);
        assert_eq!(resident_bytes("VmRSS:\tmuch\n"), None);
    }
}
