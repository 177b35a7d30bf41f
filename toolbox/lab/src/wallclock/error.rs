//! Why there is no profile of a process, and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a process was not sampled.
#[derive(Debug, thiserror::Error)]
pub enum WallclockError {
    #[error("there is no process {pid}; `pgrep -af NAME` lists those of a name")]
    NoProcess { pid: u32 },
    #[error("process {pid} has ended before it could be sampled")]
    Ended { pid: u32 },
    #[error("{pid} ({name}) is a thread of the kernel, which has no program whose stack could be read")]
    KernelThread { pid: u32, name: String },
    #[error("process {pid} may not be looked into: {fix}")]
    Forbidden { pid: u32, fix: String },
    #[error("stacks are read on Linux on x86-64 only so far")]
    Machine,
    #[error("{} cannot be read: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("{} cannot be written: {cause}; name another file with --out", path.display())]
    Write { path: PathBuf, cause: io::Error },
    #[error("the sampling thread cannot be started: {0}")]
    Thread(io::Error),
}

/// What an operator changes so that the kernel lets one process look into another.
///
/// `ptrace_scope` is the content of /proc/sys/kernel/yama/ptrace_scope where that exists.
pub(super) fn how_to_be_allowed(same_user: bool, ptrace_scope: Option<&str>) -> String {
    match ptrace_scope.map(str::trim) {
        _ if !same_user => "it belongs to another user; run as that user, as root, or with CAP_SYS_PTRACE".to_owned(),
        Some(scope @ ("1" | "2" | "3")) => format!(
            "kernel.yama.ptrace_scope is {scope}; run with CAP_SYS_PTRACE (sudo){}",
            if scope == "3" {
                " on a host that was started without it"
            } else {
                ", or `sysctl -w kernel.yama.ptrace_scope=0`"
            }
        ),
        _ => "run as root or with CAP_SYS_PTRACE; a process that changed its rights, or that is in a container whose \
              seccomp profile refuses process_vm_readv, needs it even for its own user"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::how_to_be_allowed;

    #[test]
    fn the_setting_that_forbids_is_named() {
        assert!(how_to_be_allowed(false, Some("1")).contains("another user"));
        assert!(how_to_be_allowed(true, Some("1\n")).contains("sysctl -w kernel.yama.ptrace_scope=0"));
        assert!(how_to_be_allowed(true, Some("3")).contains("ptrace_scope is 3"));
        assert!(how_to_be_allowed(true, Some("0")).contains("CAP_SYS_PTRACE"));
        assert!(how_to_be_allowed(true, None).contains("CAP_SYS_PTRACE"));
    }
}
