//! Pages: where events lie between the tick that emits them and the thread that makes lines of them.
//!
//! ```text
//! event | kind u16 | bytes u16 | ordinal u32 | fields ... |
//! tick  | 65535    | 20        | 0           | world u64 | tick u32 | now ns u64 |
//! ```
//!
//! Little-endian. A tick's record stands before its first event. The ordinal counts all events that were emitted into the
//! page, those included that found no room: the sequence number of an event is the page's plus its ordinal.
//!
//! A page never grows.

use crate::event::{AnalyticsEvent, REFUSED};

/// What one page holds (bytes): some 1,000 events. With twenty ticks a second a worker fills one in a second when its
/// worlds emit a thousand events a second.
pub const PAGE_BYTES: usize = 64 << 10;

/// The kind of a tick's record.
const TICK: u16 = u16::MAX;
const HEADING_BYTES: usize = 8;
const TICK_BYTES: usize = 20;

/// Events of one thread.
pub struct Page {
    bytes: Vec<u8>,
    /// Emitted into it since it was empty, dropped ones included.
    emitted: u32,
    dropped: u32,
    /// What of these was counted already.
    told: (u32, u32),
    /// Of the events of this page, the sequence number of the first. Set when it is handed over.
    pub(crate) sequence: u64,
    /// What is added to a world's time to get milliseconds since 1970. Set when it is handed over.
    pub(crate) unix_offset_ms: i64,
}

/// Which tick emits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmittingTick {
    /// The world's id as a number.
    pub world: u64,
    pub tick: u32,
    /// The tick's time by the server's clock (ns).
    pub now_ns: u64,
}

/// A place in a page to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    bytes: usize,
    emitted: u32,
    dropped: u32,
}

impl Mark {
    /// Of an empty page.
    pub const EMPTY: Mark = Mark { bytes: 0, emitted: 0, dropped: 0 };
}

impl Default for Page {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(PAGE_BYTES),
            emitted: 0,
            dropped: 0,
            told: (0, 0),
            sequence: 0,
            unix_offset_ms: 0,
        }
    }
}

impl Page {
    /// Adds an event; `tick` is written before it if this is the tick's first. False: there was no room.
    #[inline]
    pub(crate) fn push<T: AnalyticsEvent>(&mut self, event: &T, tick: Option<&EmittingTick>) -> bool {
        let (kind, size) = (T::kind().number(), event.size_bytes());
        let ordinal = self.emitted;
        self.emitted += 1;
        let heading = if tick.is_some() { 2 * HEADING_BYTES + TICK_BYTES } else { HEADING_BYTES };
        let has_room = self.bytes.len() + heading + size <= PAGE_BYTES && size <= usize::from(u16::MAX);
        if !has_room || kind == REFUSED {
            self.dropped += 1;
            return false;
        }
        if let Some(EmittingTick { world, tick, now_ns }) = tick {
            self.heading(TICK, TICK_BYTES as u16, 0);
            self.bytes.extend_from_slice(&world.to_le_bytes());
            self.bytes.extend_from_slice(&tick.to_le_bytes());
            self.bytes.extend_from_slice(&now_ns.to_le_bytes());
        }
        self.heading(kind, size as u16, ordinal);
        event.write(&mut self.bytes);
        true
    }

    #[inline]
    fn heading(&mut self, kind: u16, bytes: u16, ordinal: u32) {
        let heading = u64::from(kind) | u64::from(bytes) << 16 | u64::from(ordinal) << 32;
        self.bytes.extend_from_slice(&heading.to_le_bytes());
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), emitted: self.emitted, dropped: self.dropped }
    }

    /// Forgets all that came since, as if it had never been emitted.
    pub(crate) fn go_back(&mut self, to: Mark) {
        self.bytes.truncate(to.bytes);
        (self.emitted, self.dropped) = (to.emitted, to.dropped);
    }

    /// Forgets all that is in it.
    pub fn clear(&mut self) {
        self.go_back(Mark::EMPTY);
        self.told = (0, 0);
    }

    /// Events emitted and dropped since this was last asked.
    pub(crate) fn take_news(&mut self) -> (u32, u32) {
        let (emitted, dropped) = std::mem::replace(&mut self.told, (self.emitted, self.dropped));
        (self.emitted - emitted, self.dropped - dropped)
    }

    /// Nothing was emitted into it.
    pub fn is_empty(&self) -> bool {
        self.emitted == 0
    }

    pub(crate) fn is_half_full(&self) -> bool {
        self.bytes.len() >= PAGE_BYTES / 2
    }

    /// Events emitted into it, dropped ones included.
    pub fn emitted(&self) -> u32 {
        self.emitted
    }

    /// Events that found no room in it.
    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    /// What it holds, in the order in which it was emitted.
    pub(crate) fn records(&self) -> Records<'_> {
        Records { bytes: &self.bytes, tick: EmittingTick::default() }
    }
}

/// An event in a page.
pub(crate) struct Record<'a> {
    pub kind: u16,
    pub ordinal: u32,
    pub tick: EmittingTick,
    pub fields: &'a [u8],
}

pub(crate) struct Records<'a> {
    bytes: &'a [u8],
    tick: EmittingTick,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let (heading, rest) = self.bytes.split_first_chunk()?;
            let heading = u64::from_le_bytes(*heading);
            let (kind, ordinal) = (heading as u16, (heading >> 32) as u32);
            let (fields, rest) = rest.split_at_checked(usize::from((heading >> 16) as u16))?;
            self.bytes = rest;
            if kind != TICK {
                return Some(Record { kind, ordinal, tick: self.tick, fields });
            }
            let (world, rest) = fields.split_first_chunk()?;
            let (tick, rest) = rest.split_first_chunk()?;
            let (now_ns, _) = rest.split_first_chunk()?;
            self.tick = EmittingTick {
                world: u64::from_le_bytes(*world),
                tick: u32::from_le_bytes(*tick),
                now_ns: u64::from_le_bytes(*now_ns),
            };
        }
    }
}
