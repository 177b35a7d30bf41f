//! Sections: what a file consists of after its header.
//!
//! ```text
//! byte   0      1..5        5..9            9..9+length
//!        +------+-----------+---------------+------------+
//!        | kind | length    | checksum      | payload    |
//!        +------+-----------+---------------+------------+
//! ```
//!
//! `length` and `checksum` are little-endian; the checksum is the CRC-32 (IEEE) of kind, length and payload. A list
//! that does not fit into one section goes on in the next one of the same kind; an element is never split.

use std::io::Write;

use super::bytes::Cursor;
use super::{MAGIC, ReadError, VERSION, VERSION_MIN, WriteError};

/// Kinds, in the order in which they stand in a file. Numbers only tell them apart: the end came before some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    About = 1,
    Sites = 2,
    CommonSites = 3,
    Worlds = 4,
    Locks = 5,
    Counters = 6,
    /// All threads come before the events of any, since events refer to threads.
    Threads = 7,
    /// Of one thread, which the payload begins with; threads in order.
    Events = 8,
    Frames = 9,
    Logs = 10,
    MemoryMoments = 11,
    MemoryRows = 12,
    Processes = 13,
    // From version 2 on.
    HostThreads = 15,
    /// All cores come before the runs of any, as threads do.
    Cores = 16,
    /// Of one core, which the payload begins with; cores in order.
    CoreRuns = 17,
    HostStalls = 18,
    End = 14,
}

impl Kind {
    /// In their order.
    const ALL: [Kind; 18] = [
        Kind::About,
        Kind::Sites,
        Kind::CommonSites,
        Kind::Worlds,
        Kind::Locks,
        Kind::Counters,
        Kind::Threads,
        Kind::Events,
        Kind::Frames,
        Kind::Logs,
        Kind::MemoryMoments,
        Kind::MemoryRows,
        Kind::Processes,
        Kind::HostThreads,
        Kind::Cores,
        Kind::CoreRuns,
        Kind::HostStalls,
        Kind::End,
    ];

    fn of(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Whether a section of this kind may stand after one of `before`. The first is About and stands once; the others
    /// may be missing or go on, in this order.
    pub(super) fn may_follow(self, before: Option<Kind>) -> bool {
        match before {
            None => self == Kind::About,
            Some(before) => self.place() > before.place() || (self == before && self != Kind::About),
        }
    }

    fn place(self) -> usize {
        Kind::ALL.iter().position(|kind| *kind == self).unwrap_or_default()
    }
}

/// What stands before a payload.
pub(super) const HEADER_BYTES: usize = 9;

/// A section is closed once it is at least this long: large enough that its header costs nothing, small enough to hold
/// twice.
const FULL_BYTES: usize = 64 * 1024;

fn checksum(kind: u8, length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}

/// Cuts elements into sections and hands them to `out`.
pub(super) struct SectionWriter<W> {
    out: W,
    payload: Vec<u8>,
}

impl<W: Write> SectionWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, payload: Vec::with_capacity(FULL_BYTES + 1024) }
    }

    /// One element, written by `put`; begins a new section of `kind` after it if this one is full.
    pub(super) fn element(
        &mut self,
        kind: Kind,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        put(&mut self.payload)?;
        if self.payload.len() >= FULL_BYTES { self.close(kind) } else { Ok(()) }
    }

    /// The list of `kind` is complete.
    pub(super) fn end_list(&mut self, kind: Kind) -> Result<(), WriteError> {
        if self.payload.is_empty() { Ok(()) } else { self.close(kind) }
    }

    /// Writes what there is as a section, even if that is nothing.
    pub(super) fn close(&mut self, kind: Kind) -> Result<(), WriteError> {
        // An element has at most a few texts of 1 MiB, so this never comes near 4 GiB.
        let length = (self.payload.len() as u32).to_le_bytes();
        self.out.write_all(&[kind as u8])?;
        self.out.write_all(&length)?;
        self.out.write_all(&checksum(kind as u8, length, &self.payload).to_le_bytes())?;
        self.out.write_all(&self.payload)?;
        self.payload.clear();
        Ok(())
    }

    pub(super) fn flush(mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }
}

/// The version in the file's first bytes, before its sections.
pub(super) fn version(file: &mut Cursor<'_>) -> Result<u16, ReadError> {
    if file.array() != Ok(MAGIC) {
        return Err(ReadError::NotACapture);
    }
    match u16::from_le_bytes(file.array()?) {
        version @ VERSION_MIN..=VERSION => Ok(version),
        version => Err(ReadError::UnknownVersion { version }),
    }
}

/// Kind and length of the section that begins here, believed.
pub(super) fn peek(mut header: Cursor<'_>) -> Result<(Kind, u32), ReadError> {
    let offset = header.offset();
    let kind = header.byte()?;
    let length = u32::from_le_bytes(header.array()?);
    let _checksum: [u8; 4] = header.array()?;
    let kind = Kind::of(kind).ok_or(ReadError::UnexpectedSection { offset, kind })?;
    Ok((kind, length))
}

/// The section that begins here, whole; its payload as a cursor.
pub(super) fn next<'a>(file: &mut Cursor<'a>) -> Result<(Kind, Cursor<'a>), ReadError> {
    let offset = file.offset();
    let kind = file.byte()?;
    let length = file.array()?;
    let expected = u32::from_le_bytes(file.array()?);
    let payload_offset = file.offset();
    let payload = file.take(u32::from_le_bytes(length) as usize)?;
    if checksum(kind, length, payload) != expected {
        return Err(ReadError::Damaged { offset });
    }
    let kind = Kind::of(kind).ok_or(ReadError::UnexpectedSection { offset, kind })?;
    Ok((kind, Cursor::new(payload, payload_offset)))
}
