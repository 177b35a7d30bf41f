//! Refused keys: what is built on a refused commit is refused too, until its giver knows.
//!
//! A world gives a sword from A to B and hands in the commit, then from B to C, and hands in another. If the first is
//! refused (a full disk) and the second taken, A has the sword in the store, C has it too, and nobody ever gave an
//! order to double it. So a refused commit's keys are noted. An order that touches one of them, and whose giver had
//! not yet seen that refusal, is refused as well, and its keys noted in turn. Who has seen it hands in the whole
//! present state of everybody concerned, and that is taken.
//!
//! One map, touched by the thread that writes. Empty unless something was refused.

use std::collections::HashMap;

use crate::{
    commit::{Commit, Ticket},
    key::Key,
};

/// Keys of refused commits, each with the newest refusal.
#[derive(Debug, Default)]
pub struct RefusedKeys {
    keys: HashMap<Key, Ticket>,
}

impl RefusedKeys {
    /// A key of the commit that stands in the way, if its giver had seen orders up to `seen` answered.
    pub fn in_the_way(&self, commit: &Commit, seen: Ticket) -> Option<Key> {
        if self.keys.is_empty() {
            return None;
        }
        let is_unseen = |key: &&Key| self.keys.get(*key).is_some_and(|refused| *refused > seen);
        commit.writes.keys().find(is_unseen).copied()
    }

    /// The commit of this ticket was refused.
    pub fn note(&mut self, commit: &Commit, ticket: Ticket) {
        self.keys.extend(commit.writes.keys().map(|key| (*key, ticket)));
    }

    /// All orders from now on were given with answers up to `seen` known.
    pub fn forget_until(&mut self, seen: Ticket) {
        if !self.keys.is_empty() {
            self.keys.retain(|_, refused| *refused > seen);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}
