//! Lines: the last of the log, kept so that a capture can show what was said around a bad frame.
//!
//! A ring of [`LINES_MAX`] lines of at most [`LINE_BYTES_MAX`] bytes, 300 KB, made once. In a line the message, numbers
//! and booleans come first, and texts, which a player may have had a hand in, after them; so a capture without free
//! text drops the end of the line and nothing else. Messages of libraries may be formatted from anything and count as
//! texts. Control characters are escaped.
//!
//! Any thread writes; whoever saves a capture reads. A writer never waits: it builds its line on its stack, tries for
//! the lock a few times to copy it, and otherwise counts it as missed.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use throng_capture::model::LogLine;
use throng_platform::ticks;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::{Level, is_ours};
use crate::thread;

/// Lines kept at most; the oldest go first. A minute of the busiest server that is well, two seconds of one that is
/// flooded.
pub const LINES_MAX: usize = 1024;

/// What of a line is kept at most (bytes of UTF-8, escapes included).
pub const LINE_BYTES_MAX: usize = 256;

/// How often a writer tries for the lock, which is held for about 20 ns unless somebody reads.
const TRIES_MAX: usize = 16;

/// One line as it was kept.
#[derive(Copy, Clone, Debug)]
pub struct Line {
    /// When it was written (ticks).
    pub at_ticks: u64,
    /// The thread's index, if it had recorded anything.
    pub thread: Option<u32>,
    pub level: Level,
    /// The category's name, or what a library calls its part.
    pub target: &'static str,
    bytes: [u8; LINE_BYTES_MAX],
    /// Where the texts begin, and where the line ends.
    texts_at: u16,
    end: u16,
}

impl Line {
    /// The whole line: message, numbers, texts.
    pub fn text(&self) -> &str {
        self.text_to(self.end)
    }

    /// The line without anything that a player may have written.
    pub fn text_without_texts(&self) -> &str {
        self.text_to(self.texts_at)
    }

    /// As a capture has it; `thread` is the index there.
    pub fn to_model(&self, at_ns: u64, thread: u32, has_free_text: bool) -> LogLine {
        let text = if has_free_text { self.text() } else { self.text_without_texts() };
        LogLine {
            at_ns,
            thread,
            level: self.level.name().to_owned(),
            target: self.target.to_owned(),
            text: text.to_owned(),
        }
    }

    fn text_to(&self, end: u16) -> &str {
        // Only whole characters are ever written.
        std::str::from_utf8(&self.bytes[..usize::from(end)]).unwrap_or_default()
    }

    fn of(event: &Event<'_>) -> Line {
        let metadata = event.metadata();
        let mut line = Line {
            at_ticks: ticks::now(),
            thread: thread::index_to_log_with(),
            level: (*metadata.level()).into(),
            target: metadata.target(),
            bytes: [0; LINE_BYTES_MAX],
            texts_at: 0,
            end: 0,
        };
        let message_is_ours = is_ours(metadata);
        event.record(&mut Fields { line: &mut line, message_is_ours, takes_texts: false });
        line.texts_at = line.end;
        event.record(&mut Fields { line: &mut line, message_is_ours, takes_texts: true });
        line
    }

    fn is_full(&self) -> bool {
        usize::from(self.end) == LINE_BYTES_MAX
    }
}

/// Writes escaped, and cuts at a border between characters.
impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let mut push = |part: char| {
                let place = usize::from(self.end)..(usize::from(self.end) + part.len_utf8());
                let place = self.bytes.get_mut(place).ok_or(fmt::Error)?;
                part.encode_utf8(place);
                self.end += part.len_utf8() as u16;
                Ok(())
            };
            match character {
                // Harmless, though `escape_debug` would escape them for the sake of Rust's syntax.
                '\\' | '\'' | '"' => push(character)?,
                _ => character.escape_debug().try_for_each(push)?,
            }
        }
        Ok(())
    }
}

/// Writes an event's fields into a line: those that can only be ours, or the texts.
struct Fields<'l> {
    line: &'l mut Line,
    message_is_ours: bool,
    takes_texts: bool,
}

impl Fields<'_> {
    fn write(&mut self, field: &Field, is_text: bool, value: fmt::Arguments<'_>) {
        if is_text != self.takes_texts || self.line.is_full() {
            return;
        }
        let gap = if self.line.end == 0 { "" } else { " " };
        // An error means that the line is full: it is cut there.
        let _ = match field.name() {
            "message" => write!(self.line, "{gap}{value}"),
            name => write!(self.line, "{gap}{name}={value}"),
        };
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, true, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.write(field, !self.message_is_ours, format_args!("{value}")),
            _ => self.write(field, true, format_args!("{value:?}")),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.write(field, false, format_args!("{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write(field, false, format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, false, format_args!("{value}"));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.write(field, false, format_args!("{value}"));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.write(field, false, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, false, format_args!("{value}"));
    }
}

struct Ring {
    /// Full length from the first [`Lines::new`] on, empty before.
    lines: Vec<Line>,
    /// Lines that were ever written; the next one goes to this place, counted around.
    written: usize,
}

impl Ring {
    fn push(&mut self, line: &Line) {
        if self.lines.len() < LINES_MAX {
            // Within the capacity that it was made with.
            self.lines.push(*line);
        } else {
            self.lines[self.written % LINES_MAX] = *line;
        }
        self.written += 1;
    }

    fn oldest_first(&self) -> impl Iterator<Item = &Line> {
        let oldest = if self.lines.len() < LINES_MAX { 0 } else { self.written % LINES_MAX };
        self.lines[oldest..].iter().chain(&self.lines[..oldest])
    }
}

/// The process's one ring, as there is one recorder.
static RING: Mutex<Ring> = Mutex::new(Ring { lines: Vec::new(), written: 0 });

static MISSED: AtomicU64 = AtomicU64::new(0);

fn ring() -> MutexGuard<'static, Ring> {
    RING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_ring() -> Option<MutexGuard<'static, Ring>> {
    let attempt = || match RING.try_lock() {
        Ok(ring) => Some(ring),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::hint::spin_loop();
            None
        }
    };
    (0..TRIES_MAX).find_map(|_| attempt())
}

/// The `tracing` layer that keeps the last lines of the process.
#[derive(Debug)]
pub struct Lines(());

impl Lines {
    /// Sets memory aside for the ring; a second one shares it.
    #[expect(clippy::new_without_default, reason = "it allocates for the whole process")]
    pub fn new() -> Lines {
        let mut ring = ring();
        let missing = LINES_MAX - ring.lines.len();
        ring.lines.reserve_exact(missing);
        Lines(())
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let line = Line::of(event);
        match try_ring() {
            Some(mut ring) => ring.push(&line),
            None => drop(MISSED.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

/// The kept lines of a time, oldest first, from and to these ticks inclusive. Lines that are written meanwhile are
/// missed.
pub fn lines_between(begin_ticks: u64, end_ticks: u64) -> Vec<Line> {
    // Before the lock, which writers do not wait for.
    let mut found = Vec::with_capacity(LINES_MAX);
    let is_within = |line: &&Line| (begin_ticks..=end_ticks).contains(&line.at_ticks);
    found.extend(ring().oldest_first().filter(is_within));
    found
}

/// Lines that were not kept because somebody read or wrote the ring at that moment.
pub fn lines_missed() -> u64 {
    MISSED.load(Ordering::Relaxed)
}

/// Reads for as long as the guard lives, as somebody would who was put to sleep while reading.
#[cfg(test)]
pub(super) fn hold_ring() -> impl Drop {
    ring()
}
