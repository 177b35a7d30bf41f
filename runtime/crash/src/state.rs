//! What the process was doing: told by its [`StateSource`], kept in memory that outlives it.
//!
//! The state writer writes into a file in memory that the monitor has open as well, so that the last state is there
//! even if the process was killed. Two slots in turns: one that is half written when the end comes is never the one
//! that is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use throng_platform::crash_signal::CrashSite;

use crate::last_words::LastWords;
use crate::panics::PanicWords;

/// Tells what the process is doing. Called on a thread of its own, with a normal stack.
pub trait StateSource: Send {
    /// What every thread is doing now. Called 4 times a second, and once when the process dies, when other threads may
    /// hold any lock for ever: read what can be read without one.
    fn state(&mut self) -> ProcessState;

    /// Leaves more beside the report, such as the capture of the last frames, in `folder`, which is there. The process
    /// is held for at most 1.5 s; what must be whole is written under another name first.
    fn attach(&mut self, site: &CrashSite, folder: &Path);
}

/// What the process was doing. Text in it goes to the report; what looks like an address or a key is struck out there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessState {
    /// Whatever helps: players, worlds, the number of the frame.
    pub facts: BTreeMap<String, String>,
    pub threads: Vec<ThreadState>,
    /// What panics said. The state writer fills it in; a source leaves it empty.
    #[serde(default)]
    pub panics: Vec<PanicWords>,
    /// Why it ends itself, if it does. Filled in likewise.
    #[serde(default)]
    pub last_words: Option<LastWords>,
}

impl ProcessState {
    fn without_threads(&self) -> Self {
        Self { threads: Vec::new(), ..self.clone() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadState {
    /// As the kernel numbers it.
    pub tid: u32,
    pub name: String,
    /// What it is there for, such as `worker`.
    pub class: String,
    /// The world that it was ticking.
    pub world: Option<WorldState>,
    /// Scopes that were open, outermost first.
    pub open_scopes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorldState {
    pub id: u32,
    pub kind: Option<String>,
    pub tick: Option<u64>,
    pub seed: Option<u64>,
    /// What it was made from, in one number that is the same in the next process; `None` where nobody knows.
    #[serde(default)]
    pub plan: Option<u64>,
    /// The program makes it itself in each process, and as the same one by its id.
    #[serde(default)]
    pub keeps_place: bool,
    /// How long its tick had been running.
    #[serde(default)]
    pub ticking_ms: Option<u64>,
    /// What it was given last, oldest first: the names of messages, never their contents.
    pub last_inputs: Vec<String>,
}

/// Bytes of one slot. A state is some 200 B per thread and 50 B per open scope; 512 KiB are the threads of the largest
/// host.
const SLOT_BYTES: usize = 512 * 1024;
/// In front of a slot's text: its length and when it was written, in ms since 1970.
const SLOT_HEAD_BYTES: usize = 16;
/// In front of the slots: the number of states written so far. State `n` is in slot `n % 2`; none is written while this
/// is 0.
const COUNT_BYTES: usize = 8;

/// The newest [`ProcessState`], in memory of two processes. Written by the state writer, read by the monitor.
pub(crate) struct SharedState {
    file: File,
    /// States written so far; only the writer's is kept up to date.
    count: u64,
}

impl SharedState {
    pub fn new() -> io::Result<Self> {
        let file = File::from(memfd_create(c"throng-crash-state", MFdFlags::MFD_CLOEXEC)?);
        // Pages that nobody writes take no memory.
        file.set_len((COUNT_BYTES + 2 * SLOT_BYTES) as u64)?;
        Ok(Self { file, count: 0 })
    }

    /// The other process's view.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { file: File::from(fd), count: 0 }
    }

    /// Replaces the state. Threads that do not fit are left out, from the last.
    pub fn write(&mut self, state: &ProcessState) -> io::Result<()> {
        let text = text_that_fits(state)?;
        let next = self.count + 1;
        let mut head = [0; SLOT_HEAD_BYTES];
        head[..8].copy_from_slice(&(text.len() as u64).to_le_bytes());
        head[8..].copy_from_slice(&(unix_now().as_millis() as u64).to_le_bytes());
        self.file.write_all_at(&head, slot_position(next))?;
        self.file.write_all_at(&text, slot_position(next) + SLOT_HEAD_BYTES as u64)?;
        // Last: from here on a reader takes this slot. Both processes go through the kernel, which keeps the order.
        self.file.write_all_at(&next.to_le_bytes(), 0)?;
        self.count = next;
        Ok(())
    }

    /// The newest state and how old it is; `None` when there is none yet.
    pub fn read(&self) -> io::Result<Option<(ProcessState, Duration)>> {
        let mut count = [0; COUNT_BYTES];
        self.file.read_exact_at(&mut count, 0)?;
        let count = u64::from_le_bytes(count);
        if count == 0 {
            return Ok(None);
        }
        let mut slot = vec![0; SLOT_BYTES];
        self.file.read_exact_at(&mut slot, slot_position(count))?;
        let (head, text) = slot.split_at(SLOT_HEAD_BYTES);
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        // The writer is a process that broke: its length is not to be believed.
        let text = &text[..usize::try_from(number(0)).unwrap_or(usize::MAX).min(text.len())];
        let age = unix_now().saturating_sub(Duration::from_millis(number(8)));
        Ok(Some((serde_json::from_slice(text)?, age)))
    }
}

impl AsFd for SharedState {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn slot_position(count: u64) -> u64 {
    COUNT_BYTES as u64 + (count % 2) * SLOT_BYTES as u64
}

fn text_that_fits(state: &ProcessState) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(state)?;
    let mut kept = state.threads.len();
    while text.len() > SLOT_BYTES - SLOT_HEAD_BYTES {
        if kept == 0 {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the facts about the process are too long"));
        }
        kept /= 2;
        let less = ProcessState { threads: state.threads[..kept].to_vec(), ..state.without_threads() };
        text = serde_json::to_vec(&less)?;
    }
    Ok(text)
}

pub(crate) fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(frame: u64) -> ProcessState {
        let world = WorldState { id: 12, tick: Some(7), seed: Some(u64::MAX), ..Default::default() };
        let thread = ThreadState {
            tid: 99,
            name: "worker-0".into(),
            class: "worker".into(),
            world: Some(world),
            open_scopes: vec!["frame".into(), "ai.perception".into()],
        };
        let facts = BTreeMap::from([("frame".into(), frame.to_string())]);
        ProcessState { facts, threads: vec![thread], ..ProcessState::default() }
    }

    #[test]
    fn the_other_process_reads_the_newest_state() {
        let mut ours = SharedState::new().unwrap();
        let theirs = SharedState::from_fd(ours.as_fd().try_clone_to_owned().unwrap());
        assert!(theirs.read().unwrap().is_none());
        for frame in 0..5 {
            ours.write(&state(frame)).unwrap();
            assert_eq!(theirs.read().unwrap().unwrap().0, state(frame));
        }
    }

    #[test]
    fn a_state_that_is_cut_short_by_the_end_leaves_the_one_before() {
        let mut ours = SharedState::new().unwrap();
        ours.write(&state(1)).unwrap();
        // What a writer that is killed in the middle leaves: the other slot is rubbish, and the count as it was.
        ours.file.write_all_at(&[0xff; 100], slot_position(2)).unwrap();
        assert_eq!(ours.read().unwrap().unwrap().0, state(1));
    }

    #[test]
    fn a_broken_writer_is_an_error_and_no_panic() {
        let ours = SharedState::new().unwrap();
        ours.file.write_all_at(&[0xff; COUNT_BYTES + 2 * SLOT_BYTES], 0).unwrap();
        assert!(ours.read().is_err());
    }

    #[test]
    fn more_threads_than_fit_are_cut_and_not_lost_altogether() {
        let mut state = state(1);
        state.threads = vec![state.threads[0].clone(); 10_000];
        let mut ours = SharedState::new().unwrap();
        ours.write(&state).unwrap();
        let kept = ours.read().unwrap().unwrap().0.threads.len();
        assert!((1_000..10_000).contains(&kept), "{kept}");
    }
}
