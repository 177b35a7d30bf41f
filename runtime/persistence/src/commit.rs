//! Commits: all writes that belong together, and what becomes of them.
//!
//! A trade changes two players; a player who opens a chest changes himself and the world. If one side were saved and
//! the other not, what was traded would be there twice or nowhere. So both sides go into one [`Commit`], and a store
//! takes it whole or not at all.
//!
//! Plain data. Packing a value allocates for its bytes, on the caller's thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use thiserror::Error;
use throng_pack::{HasSchema, PackError, envelope};

use crate::{
    key::{ItemKind, Key},
    lease::{Lease, LeaseRequest},
    store_error::StoreError,
};

/// Bytes that a write is counted with beside its value: key, header, and the tree around it.
const WRITE_BYTES: usize = 64;

/// Writes that belong together. An empty one is a question: its acknowledgement says that all before it are done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    pub(crate) writes: BTreeMap<Key, Write>,
    pub(crate) fences: BTreeMap<Key, u64>,
    pub(crate) items: BTreeMap<ItemKind, i64>,
    /// See [`Commit::from_source`].
    pub(crate) sources: BTreeSet<u64>,
    bytes: usize,
}

/// What becomes of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Shared, since whoever handed it in keeps it until it is acknowledged.
    Put(Arc<Vec<u8>>),
    Delete,
}

impl Commit {
    pub fn new() -> Commit {
        Commit::default()
    }

    /// The value is to stand under this key, in an envelope. Of several under one key the last counts.
    ///
    /// Refuses a value that breaks its own limits; the commit is as it was then.
    pub fn put<T: HasSchema>(&mut self, key: Key, value: &T) -> Result<&mut Commit, PackError> {
        let mut bytes = Vec::new();
        envelope::write(value, &mut bytes)?;
        Ok(self.put_bytes(key, bytes))
    }

    /// The same for a value that is already in its envelope, or a checkpoint with a format of its own.
    pub fn put_bytes(&mut self, key: Key, value: impl Into<Arc<Vec<u8>>>) -> &mut Commit {
        self.write(key, Write::Put(value.into()))
    }

    /// Nothing is to stand under this key.
    pub fn delete(&mut self, key: Key) -> &mut Commit {
        self.write(key, Write::Delete)
    }

    /// It counts only while this lease is the newest of its key. A key that was ever leased is written under a lease
    /// only, and so are the cells of a world that was.
    pub fn under(&mut self, lease: &Lease) -> &mut Commit {
        self.fences.insert(lease.key, lease.fence);
        self
    }

    /// It was built on all that came from this source before, a world for instance, whatever that wrote: if the store refuses
    /// one of those, and its giver does not know yet, this one is refused as well. The number means something to the giver alone.
    pub fn from_source(&mut self, source: u64) -> &mut Commit {
        self.sources.insert(source);
        self
    }

    /// So many items of this kind come into being with it; negative if they cease to be. The store keeps the sum, which
    /// [`crate::conservation`] holds the records against.
    pub fn items_created(&mut self, kind: ItemKind, count: i64) -> &mut Commit {
        let sum = self.items.entry(kind).or_default();
        *sum += count;
        if *sum == 0 {
            self.items.remove(&kind);
        }
        self
    }

    /// What is to stand under this key after it, as far as it says: `Some(None)` is that nothing is.
    pub fn value(&self, key: Key) -> Option<Option<&Arc<Vec<u8>>>> {
        self.writes.get(&key).map(|write| match write {
            Write::Put(value) => Some(value),
            Write::Delete => None,
        })
    }

    /// The keys that it writes, in their order.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.writes.keys().copied()
    }

    /// The same, and those whose leases it names.
    pub fn keys_and_leased(&self) -> impl Iterator<Item = Key> + '_ {
        let leased = self.fences.keys().filter(|key| !self.writes.contains_key(key));
        self.writes.keys().chain(leased).copied()
    }

    /// Items that come into being with it, by kind.
    pub fn items(&self) -> impl Iterator<Item = (ItemKind, i64)> + '_ {
        self.items.iter().map(|(kind, count)| (*kind, *count))
    }

    /// Makes one commit of two that came one after the other, as if what was between them had never been. Leases are
    /// those of both.
    pub fn append(&mut self, later: Commit) -> &mut Commit {
        for (key, write) in later.writes {
            self.write(key, write);
        }
        self.fences.extend(later.fences);
        self.sources.extend(later.sources);
        for (kind, count) in later.items {
            self.items_created(kind, count);
        }
        self
    }

    /// It writes nothing under this key any more.
    pub fn withdraw(&mut self, key: Key) -> &mut Commit {
        if let Some(write) = self.writes.remove(&key) {
            self.bytes -= write.bytes();
        }
        self.fences.remove(&key);
        self
    }

    /// Nothing is written by it and nothing counted.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.items.is_empty()
    }

    /// Bytes that it is counted with in queues.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, key: Key, write: Write) -> &mut Commit {
        self.bytes += write.bytes();
        if let Some(before) = self.writes.insert(key, write) {
            self.bytes -= before.bytes();
        }
        self
    }
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Write::Put(value) => WRITE_BYTES + value.len(),
            Write::Delete => WRITE_BYTES,
        }
    }
}

/// The number of an order; they count up, and are acknowledged in this order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What is asked of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub ticket: Ticket,
    /// The newest acknowledgement that whoever gave the order had seen: see [`crate::refused_keys`].
    pub seen: Ticket,
    pub request: Request,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Commit(Commit),
    Lease(LeaseRequest),
}

impl Request {
    pub fn bytes(&self) -> usize {
        match self {
            Request::Commit(commit) => commit.bytes(),
            Request::Lease(_) => WRITE_BYTES,
        }
    }
}

/// What became of an order. `Ok` means that it is on disk.
pub type Outcome = Result<Done, Refusal>;

/// What was done.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Every write of the commit is on disk.
    Committed,
    /// The lease was taken or prolonged.
    Leased(Lease),
    /// The lease was given up.
    Released,
}

/// Why nothing of an order was done. None of it is in the store, then or later.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("somebody else has {key:?}: this lease has number {ours}, the newest {newest}")]
    Stale { key: Key, ours: u64, newest: u64 },
    #[error("{key:?} is written under a lease only")]
    Unleased { key: Key },
    #[error("owner {owner} has {key:?} until {until_ms} ms")]
    Held { key: Key, owner: u64, until_ms: u64 },
    #[error("an order before it that wrote {key:?} was refused, which its giver did not know yet")]
    AfterRefused { key: Key },
    #[error("the store failed: {0}")]
    Store(#[source] StoreError),
}

/// An order's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub ticket: Ticket,
    pub outcome: Outcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_commits_become_one_in_which_the_later_counts() {
        let (ada, bob, hub) = (Key::player(1), Key::player(2), Key::world(1));
        let mut first = Commit::new();
        first.put_bytes(ada, vec![1; 10]).put_bytes(bob, vec![1; 10]).items_created(7, 3);
        let mut later = Commit::new();
        later.put_bytes(bob, vec![2; 30]).delete(hub).items_created(7, -1);
        first.append(later);
        assert_eq!(first.value(ada).flatten().map(|value| value.len()), Some(10));
        assert_eq!(first.value(bob).flatten().map(|value| value.len()), Some(30));
        assert_eq!(first.value(hub), Some(None));
        assert_eq!(first.items.get(&7), Some(&2));
        assert_eq!(first.bytes(), 3 * WRITE_BYTES + 40);
        first.withdraw(bob);
        assert_eq!((first.value(bob), first.bytes()), (None, 2 * WRITE_BYTES + 10));
        assert_eq!(first.keys().collect::<Vec<_>>(), [ada, hub]);
    }
}
