//! Why the kernel does not tell about our threads, and what an operator can do about it.

use std::io;

use thiserror::Error;

/// What stands in the way.
#[derive(Debug, Error)]
pub enum PerfError {
    #[error(
        "context switches and page faults stay unknown: kernel.perf_event_paranoid is {level}. Run \
         `sysctl -w kernel.perf_event_paranoid=2` on the host, or give the program CAP_PERFMON"
    )]
    Paranoid { level: i32 },
    #[error(
        "context switches and page faults stay unknown: perf_event_open is forbidden ({source}), though kernel.perf_event_paranoid \
         would allow it. In a container, add CAP_PERFMON (`--cap-add PERFMON`) or allow perf_event_open in the seccomp profile"
    )]
    Forbidden { source: io::Error },
    #[error(
        "context switches and page faults stay unknown: no locked memory is left for the kernel's rings ({source}), about 104 KiB per \
         thread. Raise `ulimit -l`, or `sysctl -w kernel.perf_event_mlock_kb=4096` on the host"
    )]
    LockedMemory { source: io::Error },
    #[error("context switches and page faults stay unknown: {source}")]
    Failed { source: io::Error },
    #[error(
        "which other processes had a core stays unknown: kernel.perf_event_paranoid is {level}. Run \
         `sysctl -w kernel.perf_event_paranoid=0` on the host, or give the program CAP_PERFMON"
    )]
    CoresParanoid { level: i32 },
    #[error(
        "which other processes had a core stays unknown: {source}. It takes CAP_PERFMON and 260 KiB of locked memory per core"
    )]
    Cores { source: io::Error },
}

/// The strictest level at which a process may still watch its own threads outside the kernel.
const PARANOID_MAX: i32 = 2;

/// The same for whole cores, with all that runs on them.
const CORES_PARANOID_MAX: i32 = 0;

impl PerfError {
    /// Of the system call that opens the event.
    pub(super) fn of_open(source: io::Error) -> PerfError {
        PerfError::classify(source, paranoid_level())
    }

    /// Of mapping its ring.
    pub(super) fn of_map(source: io::Error) -> PerfError {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::ENOMEM | libc::EAGAIN) => PerfError::LockedMemory { source },
            _ => PerfError::Failed { source },
        }
    }

    /// Of the system call that opens the event of a whole core.
    pub(super) fn of_open_core(source: io::Error) -> PerfError {
        PerfError::classify_core(source, paranoid_level())
    }

    /// Of mapping its ring.
    pub(super) fn of_map_core(source: io::Error) -> PerfError {
        PerfError::Cores { source }
    }

    fn classify_core(source: io::Error, level: Option<i32>) -> PerfError {
        match (source.raw_os_error(), level) {
            (Some(libc::EACCES | libc::EPERM), Some(level)) if level > CORES_PARANOID_MAX => {
                PerfError::CoresParanoid { level }
            }
            _ => PerfError::Cores { source },
        }
    }

    fn classify(source: io::Error, level: Option<i32>) -> PerfError {
        match (source.raw_os_error(), level) {
            (Some(libc::EACCES | libc::EPERM), Some(level)) if level > PARANOID_MAX => PerfError::Paranoid { level },
            // A filter may also pretend that the call does not exist.
            (Some(libc::EACCES | libc::EPERM | libc::ENOSYS), _) => PerfError::Forbidden { source },
            _ => PerfError::Failed { source },
        }
    }
}

/// Whether the host's setting lets a process without privileges watch its own threads. Debian's own kernel does not.
pub(crate) fn is_open_to_all() -> bool {
    paranoid_level().is_none_or(|level| level <= PARANOID_MAX)
}

fn paranoid_level() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: PerfError, expect: &str) {
        let text = error.to_string();
        assert!(text.contains(expect), "{text}");
        assert!(!text.contains("  "), "{text}");
    }

    #[test]
    fn every_refusal_names_its_fix() {
        let open = |errno, level| PerfError::classify(io::Error::from_raw_os_error(errno), level);
        check(open(libc::EACCES, Some(3)), "kernel.perf_event_paranoid is 3. Run `sysctl -w");
        check(open(libc::EPERM, Some(2)), "--cap-add PERFMON");
        check(open(libc::ENOSYS, None), "seccomp profile");
        check(open(libc::ESRCH, Some(2)), "No such process");
        check(open(libc::EMFILE, Some(2)), "Too many open files");
        check(PerfError::of_map(io::Error::from_raw_os_error(libc::EPERM)), "`ulimit -l`");
        let core = |errno, level| PerfError::classify_core(io::Error::from_raw_os_error(errno), level);
        check(core(libc::EACCES, Some(2)), "kernel.perf_event_paranoid=0` on the host");
        check(core(libc::EPERM, Some(0)), "CAP_PERFMON");
        check(core(libc::ENOMEM, Some(2)), "locked memory");
    }
}
