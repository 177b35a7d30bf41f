//! Inspection: what is in a store, by kind, and what is wrong with it. For operators and start-up; it writes nothing.
//!
//! Every record is read and its checksum verified, and so is the one before it where the record is damaged. What a value
//! says is its owner's to judge: whoever asks gives a function that does, and counts items on the way.
//!
//! Reads the whole store. Any thread but a frame's.

use std::collections::BTreeMap;

use crate::{
    conservation::{self, Count},
    key::{ItemKind, Key, Kind},
    store::Reads,
    store_error::StoreError,
};

/// Records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCount {
    /// Those that can be read.
    pub records: u64,
    /// Bytes of their values.
    pub bytes: u64,
    pub largest_bytes: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    pub kinds: BTreeMap<Kind, KindCount>,
    /// Items, and records that cannot be read or fell back to the one before.
    pub count: Count,
    /// Values that are as they were written, and that their owner cannot read, with the reason.
    pub refused: Vec<(Key, String)>,
}

impl Inspection {
    /// Every record is as it was written.
    pub fn is_whole(&self) -> bool {
        self.count.unreadable.is_empty() && self.count.fallen_back.is_empty()
    }
}

/// Reads everything. `judge` is given each value: it tells which items are in it, or why it cannot be read.
pub fn inspect(
    reads: &dyn Reads,
    mut judge: impl FnMut(Key, &[u8], &mut dyn FnMut(ItemKind, i64)) -> Result<(), String>,
) -> Result<Inspection, StoreError> {
    let (mut kinds, mut refused) = (BTreeMap::<Kind, KindCount>::new(), Vec::new());
    let count = conservation::check(reads, |key, value, items| {
        let kind = kinds.entry(key.kind).or_default();
        let bytes = value.len() as u64;
        (kind.records, kind.bytes) = (kind.records + 1, kind.bytes + bytes);
        kind.largest_bytes = kind.largest_bytes.max(bytes);
        if let Err(why) = judge(key, value, items) {
            refused.push((key, why));
        }
    })?;
    Ok(Inspection { kinds, count, refused })
}
