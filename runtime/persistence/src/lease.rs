//! Leases: one owner per player and per world, told apart by a number that only rises.
//!
//! Two processes must never both write a player or a world: each would save what it believes, and items would be doubled. Whoever
//! wants to write takes a lease, for so long, and gets a **fence**: a number larger than that of every owner before.
//! Commits carry it, and the store compares it in the transaction that writes. So an owner that was stopped for an
//! hour and wakes up writes nothing, however sure it is, and whatever its clock says: time decides only when somebody
//! else may take over, never who may write.
//!
//! The row of a key is never deleted, since the number must not begin again. Times are milliseconds since 1970. A store
//! that several hosts share counts them by its own clock, so that theirs need not agree; one that a single process has, by
//! the clock of whoever asks.

use crate::{
    commit::{Done, Outcome, Refusal},
    key::Key,
};

/// The right to write a key, until somebody else takes it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub key: Key,
    /// Who has it: a process, by a number that it drew or was given; not 0.
    pub owner: u64,
    /// Larger than that of every lease of this key before.
    pub fence: u64,
    /// From then on others may take it (ms since 1970).
    pub until_ms: u64,
}

/// What is asked about a lease. `now_ms` is what a store goes by that has no clock of its own (ms since 1970).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Takes a key that is free, whose time is over, or that this owner had before.
    Take { key: Key, owner: u64, now_ms: u64, for_ms: u64 },
    /// Has it longer. Refused if somebody else took it meanwhile.
    Prolong { lease: Lease, now_ms: u64, for_ms: u64 },
    /// Gives it up, so that nobody need wait for its end.
    Release { lease: Lease },
}

/// What a store keeps of a key: owner (0 for nobody), fence, end (ms since 1970).
pub(crate) type Row = (u64, u64, u64);

impl LeaseRequest {
    /// The key that it is about.
    pub fn key(&self) -> Key {
        match self {
            LeaseRequest::Take { key, .. } => *key,
            LeaseRequest::Prolong { lease, .. } | LeaseRequest::Release { lease } => lease.key,
        }
    }

    /// The new row, if there is one, and the answer. `store_ms` is the store's clock, if it has one.
    pub(crate) fn judge(&self, row: Option<Row>, store_ms: Option<u64>) -> (Option<Row>, Outcome) {
        let key = self.key();
        match *self {
            LeaseRequest::Take { owner, now_ms, for_ms, .. } => {
                let now_ms = store_ms.unwrap_or(now_ms);
                let (holder, newest, until_ms) = row.unwrap_or_default();
                if holder != 0 && holder != owner && now_ms < until_ms {
                    return (None, Err(Refusal::Held { key, owner: holder, until_ms }));
                }
                let lease = Lease { key, owner, fence: newest + 1, until_ms: now_ms.saturating_add(for_ms) };
                (Some((owner, lease.fence, lease.until_ms)), Ok(Done::Leased(lease)))
            }
            LeaseRequest::Prolong { lease, now_ms, for_ms } => match check_fence(key, lease.fence, row) {
                Err(refusal) => (None, Err(refusal)),
                Ok(()) => {
                    let now_ms = store_ms.unwrap_or(now_ms);
                    let lease = Lease { until_ms: now_ms.saturating_add(for_ms), ..lease };
                    (Some((lease.owner, lease.fence, lease.until_ms)), Ok(Done::Leased(lease)))
                }
            },
            LeaseRequest::Release { lease } => match check_fence(key, lease.fence, row) {
                Err(refusal) => (None, Err(refusal)),
                Ok(()) => (Some((0, lease.fence, 0)), Ok(Done::Released)),
            },
        }
    }
}

/// Whether whoever has this fence may write: it is the newest, and was not given up.
pub(crate) fn check_fence(key: Key, ours: u64, row: Option<Row>) -> Result<(), Refusal> {
    match row {
        Some((owner, newest, _)) if owner != 0 && newest == ours => Ok(()),
        Some((_, newest, _)) => Err(Refusal::Stale { key, ours, newest }),
        None => Err(Refusal::Stale { key, ours, newest: 0 }),
    }
}
