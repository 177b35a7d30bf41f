//! How many files, and so sockets, this process may open.
//!
//! A swarm of 2,000 bots needs a socket for each, and many hosts start with a limit of 1,024. Asked once
//! at start, so that the lack is an error with its fix then, and not a failed connection later.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use thiserror::Error;

/// Why the limit stays below what was wanted.
#[derive(Debug, Error)]
pub enum LimitError {
    #[error(
        "this process may open {hard} files and needs {wanted}: run `ulimit -n {wanted}` as root in the shell that starts it, or set LimitNOFILE={wanted} in its unit"
    )]
    OpenFiles { wanted: u64, hard: u64 },
    #[error(
        "the kernel lets no process open {wanted} files: run `sysctl -w fs.nr_open={wanted}`, then `ulimit -n {wanted}`"
    )]
    OpenFilesOfKernel { wanted: u64 },
    #[error("the limit of open files cannot be read: {0} (`ulimit -n` shows it)")]
    Unreadable(nix::Error),
}

/// Raises the limit of open files to at least `wanted`, and returns what holds now.
///
/// Raises the hard limit as well where this process is allowed to. Never lowers anything.
pub fn raise_open_files(wanted: u64) -> Result<u64, LimitError> {
    let (soft, hard) = open_files()?;
    if soft >= wanted {
        return Ok(soft);
    }
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).is_ok() {
        return Ok(wanted);
    }
    Err(match kernel_maximum() {
        Some(maximum) if maximum < wanted => LimitError::OpenFilesOfKernel { wanted },
        _ => LimitError::OpenFiles { wanted, hard },
    })
}

/// The soft limit, which holds, and the hard limit, up to which anybody may raise it.
pub(crate) fn open_files() -> Result<(u64, u64), LimitError> {
    getrlimit(Resource::RLIMIT_NOFILE).map_err(LimitError::Unreadable)
}

fn kernel_maximum() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/fs/nr_open").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_already_stays() {
        let (soft, _) = open_files().unwrap();
        assert_eq!(raise_open_files(1).unwrap(), soft);
        assert_eq!(raise_open_files(soft).unwrap(), soft);
    }

    #[test]
    fn what_cannot_be_had_is_an_error_with_its_command() {
        let wanted = 1 << 40;
        let error = raise_open_files(wanted).unwrap_err().to_string();
        assert!(error.contains(&format!("ulimit -n {wanted}")), "{error}");
        let error = LimitError::OpenFiles { wanted: 20_000, hard: 4_096 }.to_string();
        assert!(error.contains("`ulimit -n 20000`"), "{error}");
    }
}
