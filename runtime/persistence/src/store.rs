//! Store: what keeps the records, behind one small interface.
//!
//! A store takes batches of orders, judges them one after the other in one transaction, and comes back when that is on
//! disk. What it is not sure of, after an error, it finds out by [`Store::settle`]; until then it takes nothing.
//! Readers ([`Reads`]) are handed out for other threads.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use crate::{
    commit::{Order, Outcome},
    key::{ItemKind, Key},
    refused_keys::RefusedKeys,
    store_error::StoreError,
};

/// Keeps records. One thread has it and writes.
pub trait Store: Send {
    /// Judges and carries out the orders in their order, in one transaction, and returns when all that was not refused
    /// is on disk: one outcome for each. It asks and fills `refused`.
    ///
    /// After an error nothing is known of any of them: [`Store::settle`] must come next.
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError>;

    /// After an error: opens what is on disk anew, verifies it, and finds out what became of the last batch: its
    /// outcomes if it is there, on disk, and `None` if nothing of it is. May be called again and again; while it fails,
    /// readers still read what is committed if the disk lets them.
    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError>;

    /// Whether other processes may write in it at the same time. If so, worlds need leases as players do.
    fn is_shared(&self) -> bool {
        false
    }

    /// For other threads, which may read what is committed at any time.
    fn reader(&self) -> Arc<dyn Reads>;
}

/// Reads what is committed. Any thread but a frame's: it may wait for the disk. As long as somebody has it, the store is
/// open, and nobody else can open it.
pub trait Reads: Send + Sync {
    /// The record under this key.
    fn get(&self, key: Key) -> Result<Option<Saved>, StoreError>;

    /// The records under the keys of a range, as of one moment and in the order of keys. It costs as much as the records in
    /// the range do, however many there are in the store. A record that is damaged beyond help comes as an error in its
    /// place and keeps no other from coming.
    fn range(&self, keys: RangeInclusive<Key>, each: Each<'_>) -> Result<(), StoreError>;

    /// Every record as of one moment, in the order of keys, and how many items there must be in them by then. A record
    /// that is damaged beyond help comes as an error in its place and keeps no other from coming.
    fn visit(&self, each: Each<'_>) -> Result<Balances, StoreError>;

    /// Damaged records that were met since the start.
    fn damaged(&self) -> u64;
}

/// What is done with each record.
pub type Each<'a> = &'a mut dyn FnMut(Key, Result<Saved, StoreError>);

/// Items created minus items destroyed, for each kind.
pub type Balances = BTreeMap<ItemKind, i64>;

/// A record's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// An envelope, as a rule: see [`crate::versions`].
    pub value: Vec<u8>,
    /// The record was damaged, and this is the one before it. Somebody should be told.
    pub is_previous: bool,
}
