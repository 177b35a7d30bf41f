//! Reader of an input log: believes nothing, and says of a log that ends badly how far it is good.
//!
//! Gives tick after tick until the log ends, at a whole tick or at a fault, after which nothing more is given. Borrows
//! from the log's bytes, and allocates nothing.

use thiserror::Error;
use throng_pack::{Fault, Reader};
use throng_scheduler::Hertz;

use super::{Entry, LogStart, MAGIC, START_BYTES, TICK_HEADING_BYTES, VERSION, entry};

/// What is wrong with a log. `at` is the place of the tick that cannot be read; all before it are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LogFault {
    #[error("these bytes are no input log")]
    NoLog,
    #[error("version {got} of the input log is not known; this program knows {VERSION}")]
    UnknownVersion { got: u16 },
    #[error("the input log's heading is damaged")]
    HeadingDamaged,
    #[error("the input log was not written to its end: it is whole up to byte {at}")]
    Torn { at: usize },
    #[error("the input log is damaged at byte {at}")]
    Damaged { at: usize },
    #[error("tick {got} stands in the input log where {expected} belongs")]
    TickOutOfOrder { got: u32, expected: u32 },
    #[error("there is no kind {got} of entries")]
    UnknownEntry { got: u8 },
    #[error("an entry of the input log: {0}")]
    Entry(#[from] Fault),
}

/// A log that is read tick by tick.
#[derive(Debug)]
pub struct InputLogReader<'a> {
    bytes: &'a [u8],
    at: usize,
    start: LogStart,
    tick_last: u32,
    is_over: bool,
}

/// All that entered a world for one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedTick<'a> {
    pub tick: u32,
    entries: &'a [u8],
}

impl<'a> InputLogReader<'a> {
    /// # Errors
    /// If the bytes do not begin as a log of a version that this program knows.
    pub fn new(bytes: &'a [u8]) -> Result<Self, LogFault> {
        let heading = bytes.get(..START_BYTES).ok_or(LogFault::NoLog)?;
        let mut from = Reader::new(heading);
        if from.array()? != MAGIC {
            return Err(LogFault::NoLog);
        }
        let version = u16::from_le_bytes(from.array()?);
        let (checked, crc) = heading.split_last_chunk().ok_or(LogFault::NoLog)?;
        if crc32fast::hash(checked) != u32::from_le_bytes(*crc) {
            return Err(LogFault::HeadingDamaged);
        }
        if version != VERSION {
            return Err(LogFault::UnknownVersion { got: version });
        }
        let rate = u16::from_le_bytes(from.array()?);
        if !(1..=255).contains(&rate) {
            return Err(Fault::OutOfRange.into());
        }
        let start = LogStart {
            rate: Hertz(rate),
            tick: u32::from_le_bytes(from.array()?),
            seed: u64::from_le_bytes(from.array()?),
            schema: u64::from_le_bytes(from.array()?),
        };
        Ok(Self { bytes, at: START_BYTES, start, tick_last: start.tick, is_over: false })
    }

    /// Ticks of a log without its heading, which others have kept: those after `start`'s.
    pub fn of_ticks(bytes: &'a [u8], start: LogStart) -> Self {
        Self { bytes, at: 0, start, tick_last: start.tick, is_over: false }
    }

    pub fn start(&self) -> LogStart {
        self.start
    }

    /// Up to where the log is read: what follows a torn tail may be written from here.
    pub fn good_bytes(&self) -> usize {
        self.at
    }

    fn read_tick(&mut self) -> Result<LoggedTick<'a>, LogFault> {
        let at = self.at;
        let rest = &self.bytes[at..];
        // A file that was lengthened before its bytes were on the disk ends in zeros; no heading is all zeros.
        let torn_or = |fault| if rest.iter().all(|byte| *byte == 0) { LogFault::Torn { at } } else { fault };
        let (heading, rest) = rest.split_first_chunk::<TICK_HEADING_BYTES>().ok_or(LogFault::Torn { at })?;
        let mut from = Reader::new(heading);
        let [tick, length, body_crc, crc] =
            [from.array()?, from.array()?, from.array()?, from.array()?].map(u32::from_le_bytes);
        if crc32fast::hash(&heading[..12]) != crc {
            return Err(torn_or(LogFault::Damaged { at }));
        }
        let expected = self.tick_last.wrapping_add(1);
        // Whether ticks may be left out the world knows.
        if tick.wrapping_sub(expected) > u32::MAX / 2 {
            return Err(LogFault::TickOutOfOrder { got: tick, expected });
        }
        let length = usize::try_from(length).map_err(|_| LogFault::Torn { at })?;
        let entries = rest.get(..length).ok_or(LogFault::Torn { at })?;
        if crc32fast::hash(entries) != body_crc {
            return Err(LogFault::Damaged { at });
        }
        self.at += TICK_HEADING_BYTES + length;
        self.tick_last = tick;
        Ok(LoggedTick { tick, entries })
    }
}

impl<'a> Iterator for InputLogReader<'a> {
    type Item = Result<LoggedTick<'a>, LogFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.at == self.bytes.len() {
            return None;
        }
        let tick = self.read_tick();
        self.is_over = tick.is_err();
        Some(tick)
    }
}

impl<'a> LoggedTick<'a> {
    /// What entered, in the order in which it did.
    pub fn entries(&self) -> Entries<'a> {
        Entries { rest: self.entries }
    }

    /// Appends the tick to `out` as a log has it, without the entry that comes after so many others: for those who test what a
    /// replay misses.
    #[doc(hidden)]
    pub fn write_without(&self, left_out: usize, out: &mut Vec<u8>) {
        let (mut kept, mut entries, mut number) = (Vec::new(), self.entries(), 0);
        loop {
            let before = entries.rest;
            let Some(Ok(_)) = entries.next() else { break };
            if number != left_out {
                kept.extend_from_slice(&before[..before.len() - entries.rest.len()]);
            }
            number += 1;
        }
        out.extend_from_slice(&super::tick_heading(self.tick, &kept));
        out.extend_from_slice(&kept);
    }
}

/// The entries of a tick; none after the first that cannot be read.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(super) fn of(rest: &'a [u8]) -> Self {
        Self { rest }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, LogFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut from = Reader::new(self.rest);
        let entry = entry::read(&mut from);
        let remaining_bytes = if entry.is_ok() { from.remaining_bytes() } else { 0 };
        self.rest = &self.rest[self.rest.len() - remaining_bytes..];
        Some(entry)
    }
}
