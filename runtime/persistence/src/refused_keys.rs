//! Refused keys: what is built on a refused commit is refused too, until its giver knows.
//!
//! A world gives a sword from A to B and hands in the commit, then from B to C, and hands in another. If the first is
//! refused (a full disk) and the second taken, A has the sword in the store, C has it too, and nobody ever gave an
//! order to double it. So a refused commit's keys are noted. An order that touches one of them, and whose giver had
//! not yet seen that refusal, is refused as well, and its keys noted in turn. Who has seen it hands in the whole
//! present state of everybody concerned, and that is taken.
//!
//! The same holds for what comes from the same source, as all cuts of a world do ([`Commit::from_source`]), though they have no
//! key in common: who picked up what another laid down is in a later one.
//!
//! Two maps, touched by the thread that writes. Empty unless something was refused.

use std::collections::HashMap;

use crate::{
    commit::{Commit, Ticket},
    key::Key,
};

/// Keys and sources of refused commits, each with the newest refusal.
#[derive(Debug, Default)]
pub struct RefusedKeys {
    keys: HashMap<Key, Ticket>,
    /// Of what the commits came from.
    sources: HashMap<u64, Ticket>,
}

impl RefusedKeys {
    /// A key of the commit that stands in the way, if its giver had seen orders up to `seen` answered.
    pub fn in_the_way(&self, commit: &Commit, seen: Ticket) -> Option<Key> {
        if self.is_empty() {
            return None;
        }
        let is_unseen = |key: &&Key| self.keys.get(*key).is_some_and(|refused| *refused > seen);
        let is_source_unseen = |source: &u64| self.sources.get(source).is_some_and(|refused| *refused > seen);
        let of_source = || commit.writes.keys().next().filter(|_| commit.sources.iter().any(is_source_unseen));
        commit.writes.keys().find(is_unseen).or_else(of_source).copied()
    }

    /// The commit of this ticket was refused.
    pub fn note(&mut self, commit: &Commit, ticket: Ticket) {
        self.keys.extend(commit.writes.keys().map(|key| (*key, ticket)));
        self.sources.extend(commit.sources.iter().map(|source| (*source, ticket)));
    }

    /// All orders from now on were given with answers up to `seen` known.
    pub fn forget_until(&mut self, seen: Ticket) {
        if !self.is_empty() {
            self.keys.retain(|_, refused| *refused > seen);
            self.sources.retain(|_, refused| *refused > seen);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.sources.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_the_same_source_is_in_the_way_until_its_giver_knows() {
        let mut refused = RefusedKeys::default();
        let of = |player, source| {
            let mut commit = Commit::new();
            commit.put_bytes(Key::player(player), vec![1]).from_source(source);
            commit
        };
        refused.note(&of(1, 7), Ticket(5));
        let in_the_way =
            |refused: &RefusedKeys, player, source, seen| refused.in_the_way(&of(player, source), Ticket(seen));
        assert_eq!(in_the_way(&refused, 1, 8, 4), Some(Key::player(1)), "the same player");
        assert_eq!(in_the_way(&refused, 2, 7, 4), Some(Key::player(2)), "the same source");
        assert_eq!((in_the_way(&refused, 2, 8, 4), in_the_way(&refused, 2, 7, 5)), (None, None));
        refused.forget_until(Ticket(5));
        assert!(refused.is_empty());
    }
}
