//! Held lease: a lease of this process, of a player or of a world, prolonged as long as it is wanted.
//!
//! It is prolonged when a third of its time is over. Where the process stood still for so long that it may be over, it is asked
//! for at once ([`HeldLease::doubt`]), and nothing is done with whom it is of until the store has said ([`Doubted`]).
//!
//! Frame thread; no allocation but for the doubted.

use std::collections::BTreeSet;

use throng_persistence::{Done, Key, Lease, LeaseRequest, Outcome, Refusal};
use throng_platform::time::Nanos;

use super::commits::Commits;

/// A store that does not answer is away, and play goes on while it is.
const DOUBT_FOR: Nanos = Nanos::from_secs(5);

/// How leases are asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseTerms {
    /// This process, among all that share the store.
    pub owner: u64,
    pub length: Nanos,
}

impl LeaseTerms {
    /// Nobody was here for so long: leases may be over, unless they were prolonged since.
    pub fn may_be_over(&self, stood_still: Nanos) -> bool {
        // One has two thirds of its time left when it is asked for again; the rest is for the store's answer.
        stood_still.0 > self.length.0 / 2
    }

    /// Asks for the lease of a key that this process does not have.
    pub fn take(&self, key: Key, unix_ms: u64) -> LeaseRequest {
        LeaseRequest::Take { key, owner: self.owner, now_ms: unix_ms, for_ms: self.for_ms() }
    }

    fn for_ms(&self) -> u64 {
        self.length.0 / 1_000_000
    }
}

/// A lease, if there is one, and when it is prolonged.
#[derive(Debug, Default)]
pub(crate) struct HeldLease {
    lease: Option<Lease>,
    prolong_at: Nanos,
    is_prolonging: bool,
    /// What was asked was asked too long ago to believe the answer.
    is_asked_again: bool,
}

/// What an answer about a lease that was to be prolonged is worth.
pub(crate) struct Answer {
    /// The store has said whose it is now, and not before this process stood still.
    pub is_sure: bool,
    /// The store failed: it is asked again at once.
    pub has_failed: bool,
}

impl HeldLease {
    pub fn get(&self) -> Option<Lease> {
        self.lease
    }

    /// It may be over: it is asked for at the next look.
    pub fn doubt(&mut self, now: Nanos) {
        self.prolong_at = now;
        self.is_asked_again = self.is_prolonging;
    }

    /// Prolongs it if it is time.
    pub fn prolong_if_due(&mut self, terms: &LeaseTerms, now: Nanos, unix_ms: u64, commits: &mut Commits) {
        if let Some(lease) = self.lease.filter(|_| now >= self.prolong_at && !self.is_prolonging) {
            let prolong = LeaseRequest::Prolong { lease, now_ms: unix_ms, for_ms: terms.for_ms() };
            self.is_prolonging = commits.lease(prolong, now);
        }
    }

    /// Notes what the store has said.
    pub fn take_answer(&mut self, outcome: &Outcome, terms: &LeaseTerms, now: Nanos) -> Answer {
        let was_prolonging = std::mem::take(&mut self.is_prolonging);
        let is_old = std::mem::take(&mut self.is_asked_again);
        match outcome {
            Ok(Done::Leased(lease)) => {
                self.lease = Some(*lease);
                self.prolong_at = if is_old { now } else { now + Nanos(terms.length.0 / 3) };
            }
            Ok(_) => {}
            Err(_) if was_prolonging => self.prolong_at = now,
            Err(_) => {}
        }
        let has_failed = was_prolonging && matches!(outcome, Err(Refusal::Store(_)));
        Answer { is_sure: was_prolonging && !is_old && !has_failed, has_failed }
    }

    /// Somebody else has it since the lease with this fence. True: it was this one, and is none any more.
    pub fn lost(&mut self, fence: u64) -> bool {
        self.lease.take_if(|lease| lease.fence == fence).is_some()
    }

    /// It was given up.
    pub fn given_up(&mut self) {
        self.lease = None;
    }
}

/// Of whom the lease may be over, and until when the store is waited for.
#[derive(Debug, Default)]
pub(crate) struct Doubted {
    ids: BTreeSet<u64>,
    until: Nanos,
}

impl Doubted {
    pub fn begin(&mut self, ids: BTreeSet<u64>, now: Nanos) {
        (self.ids, self.until) = (ids, now + DOUBT_FOR);
    }

    /// The store has said.
    pub fn settle(&mut self, id: u64) {
        self.ids.remove(&id);
    }

    pub fn is_on(&self, now: Nanos) -> bool {
        !self.ids.is_empty() && now < self.until
    }
}
