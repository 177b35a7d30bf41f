//! What panics said: a bounded copy of each thread's last one, for the report of a death that follows.
//!
//! A panic that nobody catches ends the process when its frames are gone already: stacks then show how the process ended and
//! not why. So a hook in front of the usual one, which writes to stderr, notes text and place. A panic that was caught is
//! noted as well; the report tells that of the thread that died, and how long before.
//!
//! The hook runs on the thread that panics, in ordinary code. It allocates nothing: the heap may be what is short.

use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use throng_platform::threads::this_thread_id;

/// A panic, as the process told it. What looks like an address, a key or a player's words is struck out in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanicWords {
    /// The thread's number by the kernel.
    pub tid: u32,
    /// The first bytes of its text; empty for one that carried no text.
    pub text: String,
    /// File and line of the code, such as `games/precinct/src/npc.rs:77`.
    pub place: String,
    /// How long before it was asked.
    pub ms_before: u64,
}

/// Of a text, and of the file's name; more is cut off.
const TEXT_BYTES: usize = 512;
const FILE_BYTES: usize = 128;
/// Threads that are remembered; of more, those whose panics are the oldest are forgotten.
const THREADS_MAX: usize = 8;

#[derive(Clone, Copy)]
struct Noted {
    tid: u32,
    at: Instant,
    text: Bounded<TEXT_BYTES>,
    file: Bounded<FILE_BYTES>,
    line: u32,
}

/// Written by threads that panic, one entry each; read by the state writer.
static NOTED: Mutex<[Option<Noted>; THREADS_MAX]> = Mutex::new([None; THREADS_MAX]);

/// Notes panics from now on, before whoever was told of them until now.
pub(crate) fn note_from_now_on() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            note(info);
            before(info);
        }));
    });
}

fn note(info: &PanicHookInfo) {
    let (file, line) = info.location().map_or(("", 0), |place| (place.file(), place.line()));
    let text = Bounded::of(info.payload_as_str().unwrap_or_default());
    let noted = Noted { tid: this_thread_id(), at: Instant::now(), text, file: Bounded::of(file), line };
    // Whole between any two statements that could panic under it.
    let mut all = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = all.iter().position(|known| known.is_some_and(|known| known.tid == noted.tid));
    let oldest = || (0..THREADS_MAX).min_by_key(|&place| all[place].map(|known| known.at)).unwrap_or_default();
    let place = own.unwrap_or_else(oldest);
    all[place] = Some(noted);
}

/// The last panic of each thread. Waits for nobody: of a panic that is just being noted nothing is told.
pub(crate) fn all() -> Vec<PanicWords> {
    let Ok(all) = NOTED.try_lock() else { return Vec::new() };
    let words = |noted: &Noted| PanicWords {
        tid: noted.tid,
        text: noted.text.to_text(),
        place: if noted.line == 0 { String::new() } else { format!("{}:{}", noted.file.to_text(), noted.line) },
        ms_before: noted.at.elapsed().as_millis() as u64,
    };
    all.iter().flatten().map(words).collect()
}

/// The first bytes of a text, up to the end of a word where there are more: of a key that is cut in two nobody would see
/// that it was one.
#[derive(Clone, Copy)]
struct Bounded<const BYTES: usize> {
    bytes: [u8; BYTES],
    len: usize,
}

impl<const BYTES: usize> Bounded<BYTES> {
    fn of(text: &str) -> Self {
        let mut bytes = [0; BYTES];
        let is_whole = text.len() <= BYTES;
        let fits = &text[..text.floor_char_boundary(BYTES)];
        let len = if is_whole { fits.len() } else { fits.rfind(char::is_whitespace).unwrap_or_default() };
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len }
    }

    fn to_text(self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.len]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another test may be noting a panic just now, and nobody waits for that.
    fn noted_of(tid: u32) -> PanicWords {
        let looks = std::iter::repeat_with(|| all().into_iter().find(|words| words.tid == tid));
        looks.take(100_000).flatten().next().expect("it panicked")
    }

    #[test]
    fn the_last_panic_of_a_thread_is_known_with_its_place() {
        note_from_now_on();
        let tid = std::thread::spawn(|| {
            let _ = panic::catch_unwind(|| panic!("the first"));
            let long = "é".repeat(TEXT_BYTES);
            let _ = panic::catch_unwind(|| panic!("the second is {long}"));
            this_thread_id()
        });
        let tid = tid.join().unwrap();
        let words = noted_of(tid);
        assert_eq!(words.text, "the second is", "a word that does not fit is left out");
        assert!(words.place.contains("src/panics.rs:"), "{words:?}");
    }

    #[test]
    fn a_panic_without_text_has_a_place_all_the_same() {
        note_from_now_on();
        let tid = std::thread::spawn(|| {
            let _ = panic::catch_unwind(|| panic::panic_any(7));
            this_thread_id()
        });
        let tid = tid.join().unwrap();
        let words = noted_of(tid);
        assert!(words.text.is_empty() && words.place.contains("src/panics.rs:"), "{words:?}");
    }
}
