//! Judgement: what becomes of a batch of orders, before anything of it is written. The same for every store.
//!
//! Orders are judged in their order: a lease that is taken in a batch counts for the commits behind it. A store gives
//! the rows of all leases that the batch asks about, which it has read in the transaction that writes, and writes what
//! comes out of it. Of several writes under one key the last is left, which is the same, since nobody ever sees less
//! than the whole batch.
//!
//! No clock, no disk.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    commit::{Commit, Done, Order, Outcome, Refusal, Request, Write},
    key::{ItemKind, Key},
    lease::{Row, check_fence},
    refused_keys::RefusedKeys,
};

/// What a batch comes to.
#[derive(Debug, Default)]
pub(crate) struct Judged<'a> {
    /// One for each order.
    pub outcomes: Vec<Outcome>,
    pub writes: BTreeMap<Key, &'a Write>,
    pub items: BTreeMap<ItemKind, i64>,
    /// Leases that are not what they were.
    pub leases: BTreeMap<Key, Row>,
}

/// The keys whose leases decide about these orders.
pub(crate) fn leases_asked(orders: &[Order]) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for order in orders {
        match &order.request {
            Request::Lease(request) => _ = keys.insert(request.key()),
            Request::Commit(commit) => {
                keys.extend(commit.writes.keys().map(Key::leased_with));
                keys.extend(commit.fences.keys());
            }
        }
    }
    keys
}

/// Judges the orders. `rows` are the leases that there are, of those that were asked; `store_ms` is the store's clock, if it has
/// one.
pub(crate) fn judge<'a>(
    orders: &'a [Order],
    mut rows: BTreeMap<Key, Row>,
    refused: &mut RefusedKeys,
    store_ms: Option<u64>,
) -> Judged<'a> {
    let mut judged = Judged::default();
    for order in orders {
        refused.forget_until(order.seen);
        let outcome = match &order.request {
            Request::Lease(request) => {
                let key = request.key();
                let (row, outcome) = request.judge(rows.get(&key).copied(), store_ms);
                if let Some(row) = row {
                    rows.insert(key, row);
                    judged.leases.insert(key, row);
                }
                outcome
            }
            Request::Commit(commit) => match judge_commit(commit, order, &rows, refused) {
                Err(refusal) => {
                    refused.note(commit, order.ticket);
                    Err(refusal)
                }
                Ok(()) => {
                    judged.writes.extend(commit.writes.iter().map(|(key, write)| (*key, write)));
                    for (kind, count) in &commit.items {
                        *judged.items.entry(*kind).or_default() += count;
                    }
                    Ok(Done::Committed)
                }
            },
        };
        judged.outcomes.push(outcome);
    }
    judged
}

fn judge_commit(
    commit: &Commit,
    order: &Order,
    rows: &BTreeMap<Key, Row>,
    refused: &RefusedKeys,
) -> Result<(), Refusal> {
    if let Some(key) = refused.in_the_way(commit, order.seen) {
        return Err(Refusal::AfterRefused { key });
    }
    for (key, fence) in &commit.fences {
        check_fence(*key, *fence, rows.get(key).copied())?;
    }
    let is_unleased = |key: &&Key| {
        let of = key.leased_with();
        !commit.fences.contains_key(&of) && rows.contains_key(&of)
    };
    let unleased = commit.writes.keys().find(is_unleased);
    unleased.map_or(Ok(()), |key| Err(Refusal::Unleased { key: *key }))
}
