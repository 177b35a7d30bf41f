//! Conservation: as many items in all records as were created and not destroyed.
//!
//! A trade moves items and makes none. Commits that do make or destroy some say so ([`Commit::items_created`]), and the
//! store keeps the sum in the same transaction. So at any moment, after any crash, what all records hold together must
//! be that sum, kind by kind. The game says what a record holds; [`check`] adds it up over one moment's snapshot.
//!
//! For tests, the console and start-up; it reads the whole store. Any thread but a frame's.
//!
//! [`Commit::items_created`]: crate::Commit::items_created

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    key::{ItemKind, Key, Kind},
    store::Reads,
    store_error::StoreError,
};

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub records: u64,
    /// Items of each kind in all records but those of players who were left out.
    pub held: BTreeMap<ItemKind, i64>,
    /// Items created minus items destroyed, for each kind.
    pub balances: BTreeMap<ItemKind, i64>,
    /// Records of which nothing can be read: what they held is missing from `held`.
    pub unreadable: Vec<Key>,
    /// Records that fell back to the one before.
    pub fallen_back: Vec<Key>,
    /// Players of whom there is an old record alone ([`Kind::LeftOut`]): what they gave to others since is with those, and what they
    /// still had is missing from `held`.
    pub left_out: BTreeSet<Key>,
}

impl Count {
    /// Kinds of which there are too many or too few: kind, held, balance.
    pub fn differences(&self) -> Vec<(ItemKind, i64, i64)> {
        let kinds: BTreeSet<ItemKind> = self.held.keys().chain(self.balances.keys()).copied().collect();
        let of = |counts: &BTreeMap<ItemKind, i64>, kind| counts.get(&kind).copied().unwrap_or_default();
        let both = kinds.into_iter().map(|kind| (kind, of(&self.held, kind), of(&self.balances, kind)));
        both.filter(|(_, held, balance)| held != balance).collect()
    }

    /// Nothing doubled, nothing lost, every record as it was written.
    pub fn holds(&self) -> bool {
        self.differences().is_empty() && self.unreadable.is_empty() && self.fallen_back.is_empty()
    }
}

/// Counts the items of all records but those that are too old. `items_of` is given a record's value and tells kind and count of what is in it.
pub fn check(
    reads: &dyn Reads,
    mut items_of: impl FnMut(Key, &[u8], &mut dyn FnMut(ItemKind, i64)),
) -> Result<Count, StoreError> {
    let mut count = Count::default();
    let balances = reads.visit(&mut |key, saved| {
        count.records += 1;
        if key.kind == Kind::LeftOut {
            count.left_out.insert(key.leased_with());
        }
        let is_left_out = count.left_out.contains(&key);
        match saved {
            Ok(saved) => {
                if saved.is_previous {
                    count.fallen_back.push(key);
                }
                let held = &mut count.held;
                items_of(key, &saved.value, &mut |kind, items| {
                    if !is_left_out {
                        *held.entry(kind).or_default() += items;
                    }
                });
            }
            Err(_) => count.unreadable.push(key),
        }
    })?;
    count.balances = balances;
    Ok(count)
}
