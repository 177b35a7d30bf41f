//! Children: waiting for the end of a process of ours without ever waking, and ending when our parent does.
//!
//! For a supervisor and what it supervises. [`end_of`] gives a descriptor that [`wait_readable`](crate::poll::wait_readable)
//! sleeps on beside the stop request, so that a parent needs neither a timer nor SIGCHLD. [`end_with_parent`] is what the
//! child asks for, so that none is left behind however the parent dies.
//!
//! Any thread, but [`end_with_parent`] follows the parent's thread that started the child: that should be its main one.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getppid};

/// A descriptor that becomes readable when this child has ended, and stays so. Asked for before anybody waits for the
/// child, since its number is not given to another process until then.
pub fn end_of(child: u32) -> io::Result<OwnedFd> {
    // SAFETY: a system call without pointers; Linux has it since 5.3.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(child), 0_u32) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel made this descriptor for us just now, closed on exec, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}

/// Asks a child that nobody has waited for yet to end, as `kill` does.
pub fn ask_to_end(child: u32) {
    // 0 would be this process's own group, and 1 is `init`.
    if let Some(child) = i32::try_from(child).ok().filter(|&child| child > 1) {
        // It fails when the child has ended already.
        let _ = kill(Pid::from_raw(child), Signal::SIGTERM);
    }
}

/// Has a child that nobody has waited for yet die where it is, as `abort` does, so that its crash report has the stack.
pub fn abort(child: u32) {
    if let Some(child) = i32::try_from(child).ok().filter(|&child| child > 1) {
        // It fails when the child has ended already.
        let _ = kill(Pid::from_raw(child), Signal::SIGABRT);
    }
}

/// From now on this process is asked to end (SIGTERM) when its parent dies. `false`: `parent` is not its parent, or is
/// gone already, and nothing will be said.
pub fn end_with_parent(parent: u32) -> io::Result<bool> {
    set_pdeathsig(Signal::SIGTERM)?;
    // After the request, so that a parent which dies in between is not missed.
    Ok(i32::try_from(parent) == Ok(getppid().as_raw()))
}

/// Clears away what has ended and has no other parent left: the first process of a container inherits the children of
/// those that died in it. Not while a child of one's own is still to be waited for, whose status it would take.
pub fn clear_away_inherited() {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG;
    while matches!(waitid(Id::All, look), Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..))) {}
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::poll::wait_readable;
    use crate::time::Nanos;

    #[test]
    fn a_childs_end_is_waited_for_beside_its_order() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let end = end_of(child.id()).unwrap();
        assert!(!wait_readable(&[end.as_fd()], Some(Nanos::ZERO)).unwrap());
        ask_to_end(child.id());
        while !wait_readable(&[end.as_fd()], None).unwrap() {}
        assert!(wait_readable(&[end.as_fd()], Some(Nanos::ZERO)).unwrap(), "it stays readable");
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert!(wait_readable(&[end.as_fd()], Some(Nanos::ZERO)).unwrap());
    }

    #[test]
    fn what_is_no_process_has_no_end() {
        let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
        child.wait().unwrap();
        assert!(end_of(child.id()).is_err());
        assert!(end_of(u32::MAX).is_err());
        ask_to_end(u32::MAX);
        ask_to_end(0);
        abort(0);
    }
}
