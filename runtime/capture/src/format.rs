//! The capture file: a header, then sections with a checksum each.
//!
//! A capture is written once, in a hurry, and read for years; so it is small without a compressor (about 5 bytes per
//! scope: one for what it is, the rest for when), and every byte of it is covered by a checksum. `docs/spec/capture.md`
//! draws it byte by byte.
//!
//! Writing streams: no more than a section (64 KiB and one element) is held beside the capture. Reading sizes nothing
//! by what the file claims: lists have no counts, they go on to the end of their section, and each has a maximum. Two
//! bytes of a file can still be an event of 48, so the whole has a maximum as well ([`maximum::MEMORY_BYTES`]). Bytes
//! that do not fit give a [`ReadError`] that names the place; no bytes give a panic. Any thread; cost: one pass, about
//! 10 ns per event either way. A list of captures takes [`read_summary`], which passes over the events.

mod bytes;
mod elements;
mod events;
mod read;
mod section;
mod summary;
#[cfg(test)]
mod tests;
mod write;

use thiserror::Error;

pub use read::{read, read_within};
pub use summary::{Summary, read_summary};
pub use write::write;

/// What a file begins with, before the version.
pub const MAGIC: [u8; 14] = *b"throng-capture";
/// The version that is written.
pub const VERSION: u16 = 2;
/// The oldest that is read. It knew nothing of the host's threads, cores and stalls, nor why switches have no better
/// source.
pub const VERSION_MIN: u16 = 1;

/// How many of each thing a file may hold. The writer refuses more, and so does the reader.
pub mod maximum {
    /// Bytes of one name, path or text.
    pub const TEXT_BYTES: usize = 1 << 20;
    pub const SITES: usize = 1 << 16;
    pub const WORLDS: usize = 1 << 20;
    pub const LOCKS: usize = 1 << 16;
    pub const COUNTERS: usize = 1 << 16;
    pub const THREADS: usize = 1 << 12;
    /// Of one thread: an hour of a thread that records 18,000 scopes/s.
    pub const EVENTS: usize = 1 << 26;
    pub const FRAMES: usize = 1 << 20;
    pub const FRAME_THREADS: usize = THREADS;
    pub const LOGS: usize = 1 << 20;
    pub const MEMORY_MOMENTS: usize = 1 << 16;
    pub const MEMORY_ROWS: usize = 1 << 17;
    pub const PROCESSES: usize = 1 << 16;
    pub const HOST_THREADS: usize = 1 << 16;
    pub const CORES: usize = 1 << 12;
    /// Of one core: five minutes of one that switches 50,000 times a second.
    pub const CORE_RUNS: usize = 1 << 24;
    pub const HOST_STALLS: usize = 1 << 20;

    /// What all lists of a capture that is read may take (bytes), unless the caller allows more. Texts come on top, and
    /// are never larger than in the file; so does the room that a list keeps to grow, up to as much again.
    ///
    /// 44 million events. A recorder makes at most one event of 16 bytes of its memory, beside those of context
    /// switches: 4 million of the 64 MiB it has by default, 268 million (12.9 GB here) of the 4 GiB it may be given.
    pub const MEMORY_BYTES: u64 = 2 << 30;

    const _: () = assert!(size_of::<crate::model::Event>() <= 48, "the figures above are of events of 48 bytes");
}

/// Why a capture could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error("the capture could not be written: {0}")]
    Io(#[from] std::io::Error),
    #[error("the capture holds more than {maximum} {what}; record for a shorter time")]
    TooMany { what: &'static str, maximum: usize },
    #[error("{what} is longer than {} bytes; cut it before recording", maximum::TEXT_BYTES)]
    TextTooLong { what: &'static str },
    #[error("something refers to {what} {index}, but the capture has only {count}")]
    NoSuch { what: &'static str, index: u32, count: usize },
    #[error("a row of live bytes has {values} values for {moments} moments; give it one for each")]
    UnevenMemory { values: usize, moments: usize },
}

/// Why bytes are not a capture. `offset` is the place in the file. (bytes)
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    #[error("this is not a capture: it does not begin with `throng-capture`")]
    NotACapture,
    #[error(
        "at byte 14: version {version} is not known, only {VERSION_MIN} to {VERSION}; open it with the `throng` that wrote it"
    )]
    UnknownVersion { version: u16 },
    #[error("at byte {offset}: the file ends in the middle; it was cut short, copy it again")]
    CutShort { offset: usize },
    #[error("at byte {offset}: the section that begins here is damaged (its checksum differs); copy the file again")]
    Damaged { offset: usize },
    #[error("at byte {offset}: a section of kind {kind} cannot stand here")]
    UnexpectedSection { offset: usize, kind: u8 },
    #[error("at byte {offset}: {what} is out of range")]
    OutOfRange { offset: usize, what: &'static str },
    #[error("at byte {offset}: {what} is not UTF-8")]
    BadText { offset: usize, what: &'static str },
    #[error("at byte {offset}: more than {maximum} {what}")]
    TooMany { offset: usize, what: &'static str, maximum: usize },
    #[error("at byte {offset}: the capture takes more than {} MiB of memory", maximum_bytes / (1 << 20))]
    TooMuchMemory { offset: usize, maximum_bytes: u64 },
    #[error("at byte {offset}: {what} {index} does not exist, the capture has only {count}")]
    NoSuch { offset: usize, what: &'static str, index: u32, count: usize },
    #[error("at byte {offset}: bytes after the end of the capture")]
    BytesAfterEnd { offset: usize },
}

impl From<ReadError> for std::io::Error {
    fn from(error: ReadError) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, error)
    }
}
