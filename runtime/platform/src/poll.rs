//! Sleeping in the kernel until a socket has something to read.
//!
//! An idle server costs nothing: it sleeps here, and a datagram, the next tick's time or a stop request
//! wakes it. [`wait_readable`] serves a server with its few sockets; [`Epoll`] serves a swarm of bots
//! with thousands. Neither allocates after creation. Cost: one system call.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::epoll::{EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;

use crate::signals;
use crate::time::Nanos;

/// More than this in one wait are a case for [`Epoll`]: 32 sockets and a [`Wake`](crate::wake::Wake); one place is kept for
/// the stop request.
pub const WAIT_FDS_MAX: usize = 33;

/// Sleeps until one of `fds` can be read (`true`), or `timeout` has passed (`false`; `None` = no end).
///
/// Returns `false` early when a signal arrives: SIGINT and SIGTERM wake every thread that waits here,
/// each once, whichever thread the kernel gave the signal to (see [`signals::install_stop`]).
///
/// # Panics
/// With more than [`WAIT_FDS_MAX`] descriptors.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Nanos>) -> io::Result<bool> {
    assert!(fds.len() <= WAIT_FDS_MAX);
    let stop = signals::unseen_stop();
    let Some(unused) = fds.first().copied().or(stop) else {
        return sleep(timeout);
    };
    let mut polled = [const { None }; WAIT_FDS_MAX + 1];
    for (slot, fd) in polled.iter_mut().zip(fds.iter().copied().chain(stop)) {
        *slot = Some(PollFd::new(fd, PollFlags::POLLIN));
    }
    let mut polled = polled.map(|fd| fd.unwrap_or(PollFd::new(unused, PollFlags::empty())));
    let count = fds.len() + usize::from(stop.is_some());
    match nix::poll::ppoll(&mut polled[..count], timeout.map(time_spec), None) {
        Ok(0) => return Ok(false),
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    if stop.is_some() && polled[count - 1].any() == Some(true) {
        signals::mark_stop_seen();
    }
    Ok(polled[..fds.len()].iter().any(|fd| fd.any() == Some(true)))
}

fn sleep(timeout: Option<Nanos>) -> io::Result<bool> {
    match nix::poll::ppoll(&mut [], timeout.map(time_spec), None) {
        Ok(_) | Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn time_spec(nanos: Nanos) -> TimeSpec {
    TimeSpec::from_duration(nanos.into())
}

/// Thousands of sockets, of which only the readable ones are looked at.
///
/// Level triggered: a socket that was not read empty is reported again.
pub struct Epoll {
    epoll: nix::sys::epoll::Epoll,
    events: Box<[EpollEvent]>,
}

/// Readable sockets reported by one wait; the rest come with the next one.
const EVENTS_MAX: usize = 256;

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        let epoll = nix::sys::epoll::Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Epoll { epoll, events: vec![EpollEvent::empty(); EVENTS_MAX].into() })
    }

    /// Watches `fd` from now on; `token` comes back when it can be read. Closing the descriptor ends it.
    pub fn add(&self, fd: impl AsFd, token: u64) -> io::Result<()> {
        Ok(self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token))?)
    }

    /// Replaces the contents of `tokens` by those of up to 256 readable sockets.
    ///
    /// Waits at most `timeout_ms`: 0 = only look. Ends early, with nothing, when a signal arrives.
    pub fn wait(&mut self, tokens: &mut Vec<u64>, timeout_ms: u16) -> io::Result<()> {
        tokens.clear();
        match self.epoll.wait(&mut self.events, EpollTimeout::from(timeout_ms)) {
            Ok(count) => tokens.extend(self.events[..count].iter().map(EpollEvent::data)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_datagram_ends_the_wait_and_silence_lets_it_pass() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let wait = || wait_readable(&[receiver.as_fd()], Some(Nanos::from_millis(1))).unwrap();
        while wait() {}
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", receiver.local_addr().unwrap()).unwrap();
        assert!(wait_readable(&[receiver.as_fd()], Some(Nanos::from_secs(60))).unwrap());
    }

    #[test]
    fn epoll_names_the_readable_sockets_until_they_are_read() {
        let sockets: Vec<_> = (0..20).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let mut epoll = Epoll::new().unwrap();
        for (index, socket) in sockets.iter().enumerate() {
            epoll.add(socket, 100 + index as u64).unwrap();
        }
        let mut tokens = vec![7];
        epoll.wait(&mut tokens, 0).unwrap();
        assert!(tokens.is_empty());

        for chosen in [3, 11] {
            sockets[0].send_to(b"x", sockets[chosen].local_addr().unwrap()).unwrap();
        }
        for _ in 0..2 {
            epoll.wait(&mut tokens, 1_000).unwrap();
            tokens.sort_unstable();
            assert_eq!(tokens, [103, 111]);
        }
        sockets[3].recv_from(&mut [0; 16]).unwrap();
        epoll.wait(&mut tokens, 1_000).unwrap();
        assert_eq!(tokens, [111]);
    }
}
