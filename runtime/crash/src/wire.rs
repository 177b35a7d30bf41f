//! The line between a server and its crash monitor: a pair of sockets that keep messages apart.
//!
//! ```text
//! server → monitor   'H' settings as JSON, with the shared state's descriptor beside it   (once, at start)
//!                    'G'                                                                  (goodbye: the process ends in good order)
//!                    'C' u64 unix seconds, then the crashing thread's `CrashContext`      (from a signal handler)
//! monitor → server   'R'                                                                  (ready)
//!                    'D'                                                                  (done: you may die)
//! ```
//!
//! Numbers are as the machine has them: both ends are one executable. The end of the line without a goodbye means that
//! the server was killed.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crash_handler::CrashContext;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::{Deserialize, Serialize};
use throng_platform::crash_signal::{CRASH, CRASH_HEAD_BYTES, GOODBYE};
use throng_platform::message_pair::{receive, send};

pub(crate) const HELLO: u8 = b'H';
const READY: u8 = b'R';
pub(crate) const DONE: u8 = b'D';

/// What the monitor must know before it sleeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub folder: PathBuf,
    pub crashes_kept: usize,
    pub bytes_kept: u64,
    pub build: String,
    pub game: String,
    pub seed: Option<u64>,
    pub pid: u32,
}

/// What the monitor hears.
pub(crate) enum Word {
    Hello(Box<Hello>, OwnedFd),
    Goodbye,
    Crash {
        died_at_unix_s: u64,
        context: Box<CrashContext>,
    },
    /// The line went dead.
    Silence,
}

pub(crate) fn send_hello(line: BorrowedFd, hello: &Hello, shared_state: BorrowedFd) -> io::Result<()> {
    let mut message = vec![HELLO];
    serde_json::to_writer(&mut message, hello)?;
    send(line, &message, Some(shared_state))
}

/// Returns when the monitor is ready.
pub(crate) fn wait_ready(line: BorrowedFd, patience: Duration) -> io::Result<()> {
    if !readable_within(line, patience)? {
        return Err(io::Error::new(io::ErrorKind::TimedOut, format!("not a word in {patience:?}")));
    }
    match receive(line)?.0.as_slice() {
        [READY] => Ok(()),
        [] => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended at once")),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "an unknown word")),
    }
}

pub(crate) fn send_ready(line: BorrowedFd) -> io::Result<()> {
    send(line, &[READY], None)
}

pub(crate) fn send_done(line: BorrowedFd) -> io::Result<()> {
    send(line, &[DONE], None)
}

/// Sleeps until `fd` can be read (`true`) or the time is over. Unlike [`throng_platform::poll`], a request to stop does
/// not wake it.
pub(crate) fn readable_within(fd: BorrowedFd, within: Duration) -> io::Result<bool> {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], timeout) {
            Ok(count) => return Ok(count > 0),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sleeps until the server says something or is gone.
pub(crate) fn hear(line: BorrowedFd) -> io::Result<Word> {
    let (message, descriptor) = receive(line)?;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "not a word that this build of the monitor knows");
    let Some((&kind, rest)) = message.split_first() else { return Ok(Word::Silence) };
    match kind {
        HELLO => {
            let hello = serde_json::from_slice(rest)?;
            Ok(Word::Hello(Box::new(hello), descriptor.ok_or_else(broken)?))
        }
        GOODBYE => Ok(Word::Goodbye),
        CRASH => {
            let (at, context) = rest.split_at_checked(CRASH_HEAD_BYTES - 1).ok_or_else(broken)?;
            Ok(Word::Crash {
                died_at_unix_s: u64::from_ne_bytes(at.try_into().expect("8 bytes")),
                context: Box::new(CrashContext::from_bytes(context).ok_or_else(broken)?),
            })
        }
        _ => Err(broken()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use throng_platform::message_pair;

    use super::*;
    use crate::state::SharedState;

    #[test]
    fn what_is_said_is_heard() {
        let (server, monitor) = message_pair::new().unwrap();
        let hello = Hello {
            folder: "/tmp/crashes".into(),
            crashes_kept: 3,
            bytes_kept: 1 << 20,
            build: "b".into(),
            game: "g".into(),
            seed: Some(u64::MAX),
            pid: 1,
        };
        let shared = SharedState::new().unwrap();
        send_hello(server.as_fd(), &hello, shared.as_fd()).unwrap();
        let Word::Hello(heard, descriptor) = hear(monitor.as_fd()).unwrap() else { panic!("not a hello") };
        assert_eq!(*heard, hello);
        assert!(SharedState::from_fd(descriptor).read().unwrap().is_none());

        send_ready(monitor.as_fd()).unwrap();
        wait_ready(server.as_fd(), Duration::from_secs(600)).unwrap();
        send(server.as_fd(), &[GOODBYE], None).unwrap();
        assert!(matches!(hear(monitor.as_fd()).unwrap(), Word::Goodbye));
        drop(server);
        assert!(matches!(hear(monitor.as_fd()).unwrap(), Word::Silence));
    }

    #[test]
    fn words_that_make_no_sense_are_errors() {
        for message in [&b"H{"[..], b"H{}", b"C", b"C12345678", b"C12345678and not a context", b"?"] {
            let (server, monitor) = message_pair::new().unwrap();
            send(server.as_fd(), message, None).unwrap();
            assert!(hear(monitor.as_fd()).is_err(), "{message:?}");
        }
    }

    #[test]
    fn a_monitor_that_ends_at_once_is_an_error() {
        let (server, monitor) = message_pair::new().unwrap();
        drop(monitor);
        assert!(wait_ready(server.as_fd(), Duration::from_secs(600)).is_err());
    }
}
