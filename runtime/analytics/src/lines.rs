//! Lines: events as JSON, one object a line.
//!
//! ```text
//! {"event":"player.downed","version":1,"at_ms":1764154800123,"tick":4711,"world":"7","server":"eu-1","session":"9f3c5a7e11d2b480","sequence":17,"fields":{"player":7,"by_npc":true,"height_m":1.5}}
//! ```
//!
//! `docs/guide/analytics.md` says what each key is. A float that is no number is `null`; whole numbers have all their
//! digits, up to 2^64. Made on the exporter's thread, some 500 ns an event.

use std::io::Write;

use crate::{
    event::{Kind, copy_kinds},
    field::FieldValue,
    page::{Page, Record},
};

/// Lines are handed to sinks in batches of about this size (bytes).
pub const BATCH_BYTES: usize = 128 << 10;

/// Who emits: in every line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The server, by the operator's word.
    pub server: String,
    /// This run of it: another one after each start.
    pub session: String,
}

/// Whole lines, each with its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub lines: Vec<u8>,
    pub events: u64,
}

/// Makes lines of pages.
pub(crate) struct LineWriter {
    kinds: Vec<&'static Kind>,
    /// What all lines have in common.
    identity: String,
    batch: Batch,
}

impl LineWriter {
    pub fn new(identity: &Identity) -> Self {
        let (server, session) = (quoted(&identity.server), quoted(&identity.session));
        let identity = format!("\"server\":{server},\"session\":{session}");
        Self { kinds: Vec::new(), identity, batch: Batch::default() }
    }

    /// Adds a page's events; `full` takes each batch that is large enough. Returns how many could not be read.
    pub fn add(&mut self, page: &Page, mut full: impl FnMut(Batch)) -> u64 {
        let mut malformed = 0;
        let mut seen = 0;
        for record in page.records() {
            seen += 1;
            let begin = self.batch.lines.len();
            match self.line(page, &record) {
                Some(()) => self.batch.events += 1,
                None => {
                    self.batch.lines.truncate(begin);
                    malformed += 1;
                }
            }
            if self.batch.lines.len() >= BATCH_BYTES {
                full(self.take());
            }
        }
        malformed + u64::from(page.emitted() - page.dropped()).saturating_sub(seen)
    }

    /// What is left, if anything is.
    pub fn rest(&mut self) -> Option<Batch> {
        (self.batch.events > 0).then(|| self.take())
    }

    fn take(&mut self) -> Batch {
        let next = Batch { lines: Vec::with_capacity(self.batch.lines.len()), events: 0 };
        std::mem::replace(&mut self.batch, next)
    }

    fn line(&mut self, page: &Page, record: &Record<'_>) -> Option<()> {
        if usize::from(record.kind) >= self.kinds.len() {
            copy_kinds(&mut self.kinds);
        }
        let kind = *self.kinds.get(usize::from(record.kind))?;
        let out = &mut self.batch.lines;
        let at_ms = (record.tick.now_ns / 1_000_000) as i64 + page.unix_offset_ms;
        // Names are letters, digits, dots and low lines.
        write!(out, "{{\"event\":\"{}\",\"version\":{},\"at_ms\":{at_ms},", kind.name, kind.version).ok()?;
        let sequence = page.sequence + u64::from(record.ordinal);
        write!(out, "\"tick\":{},\"world\":\"{}\",", record.tick.tick, WorldId(record.tick.world)).ok()?;
        write!(out, "{},\"sequence\":{sequence},\"fields\":{{", self.identity).ok()?;
        let mut bytes = record.fields;
        for (place, (name, of)) in kind.fields.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(out, "{comma}\"{name}\":").ok()?;
            match FieldValue::read(*of, &mut bytes)? {
                FieldValue::Unsigned(value) => write!(out, "{value}").ok()?,
                FieldValue::Signed(value) => write!(out, "{value}").ok()?,
                FieldValue::Bool(value) => write!(out, "{value}").ok()?,
                // An f32 has its own shortest digits.
                FieldValue::F32(value) => serde_json::to_writer(&mut *out, &value).ok()?,
                FieldValue::F64(value) => serde_json::to_writer(&mut *out, &value).ok()?,
                FieldValue::Text(value) => serde_json::to_writer(&mut *out, value).ok()?,
            }
        }
        out.extend_from_slice(b"}}\n");
        bytes.is_empty().then_some(())
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A world's id as people and logs write it: its place, and behind a dot how often that was used before.
struct WorldId(u64);

impl std::fmt::Display for WorldId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (place, generation) = (self.0 as u32, (self.0 >> 32) as u32);
        match generation {
            0 => write!(out, "{place}"),
            generation => write!(out, "{place}.{generation}"),
        }
    }
}
