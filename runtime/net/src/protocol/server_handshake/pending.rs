//! Handshakes that wait for their response.
//!
//! An entry is made only for a token that opened, so junk never gets here. It lives for 5 s; when the table
//! is full the oldest makes room, so a crowd of half-open handshakes costs a bounded amount of memory and
//! an honest client, which answers within a round trip, is through before its turn to be evicted comes.
//!
//! While a handshake is pending its token belongs to its address: shown from another it is refused.
//!
//! About 1.5 KB an entry, on the heap, allocated when a token was accepted.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rand::RngCore;
use throng_platform::time::Nanos;

use super::super::ClientId;
use super::super::cipher::TAG_BYTES;
use super::super::keyed_hash::{KeyedMap, KeyedState};
use super::super::link::SealedLink;

/// How long a challenge may stay unanswered.
const PENDING_LIFE: Nanos = Nanos::from_secs(5);

pub(super) struct PendingTable {
    entries: KeyedMap<SocketAddr, Box<Pending>>,
    /// Which address each pending token belongs to: one per entry.
    holders: KeyedMap<[u8; TAG_BYTES], SocketAddr>,
    /// Oldest first. May name entries that are gone or were replaced: their stamp tells.
    order: VecDeque<(SocketAddr, u64)>,
    entries_max: usize,
    next_stamp: u64,
}

/// A client that has shown a good token and not yet answered its challenge.
pub(super) struct Pending {
    pub link: SealedLink,
    pub client_id: ClientId,
    pub token_mac: [u8; TAG_BYTES],
    pub expires_unix_s: u64,
    /// Came by the cookie.
    pub knows_queue: bool,
    /// Number of the first challenge that was sent to it: who answers an earlier one copies an earlier handshake.
    pub first_challenge: u64,
    since: Nanos,
    /// Given by the table.
    stamp: u64,
}

impl Pending {
    pub(super) fn new(
        link: SealedLink,
        client_id: ClientId,
        token_mac: [u8; TAG_BYTES],
        expires_unix_s: u64,
        knows_queue: bool,
        first_challenge: u64,
        now: Nanos,
    ) -> Box<Self> {
        Box::new(Self {
            link,
            client_id,
            token_mac,
            expires_unix_s,
            knows_queue,
            first_challenge,
            since: now,
            stamp: 0,
        })
    }
}

impl PendingTable {
    pub(super) fn new(entries_max: usize, rng: &mut impl RngCore) -> Self {
        assert!(entries_max > 0, "a server with room for no handshake admits nobody");
        Self {
            entries: KeyedMap::with_hasher(KeyedState::new(rng)),
            holders: KeyedMap::with_hasher(KeyedState::new(rng)),
            order: VecDeque::new(),
            entries_max,
            next_stamp: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get_mut(&mut self, from: SocketAddr) -> Option<&mut Pending> {
        self.entries.get_mut(&from).map(|entry| &mut **entry)
    }

    /// The address that is shaking hands with this token.
    pub(super) fn holder_of(&self, token_mac: &[u8; TAG_BYTES]) -> Option<SocketAddr> {
        self.holders.get(token_mac).copied()
    }

    /// Puts a handshake in, in place of an older one from the same address. Gives how many others were
    /// evicted for it: 0 or 1. The token must have no holder but this address.
    pub(super) fn insert(&mut self, from: SocketAddr, mut pending: Box<Pending>) -> usize {
        let replaced = self.remove(from).is_some();
        let full = !replaced && self.entries.len() >= self.entries_max;
        if full {
            self.evict_oldest();
        }
        pending.stamp = self.next_stamp;
        self.next_stamp += 1;
        self.order.push_back((from, pending.stamp));
        let earlier_holder = self.holders.insert(pending.token_mac, from);
        assert!(earlier_holder.is_none(), "a token has one holder");
        self.entries.insert(from, pending);
        if self.order.len() > 2 * self.entries_max {
            // At least half of the names are stale, so this pass is paid for by the pushes before it.
            let entries = &self.entries;
            self.order.retain(|(from, stamp)| entries.get(from).is_some_and(|entry| entry.stamp == *stamp));
        }
        debug_assert!(self.entries.len() <= self.entries_max);
        debug_assert_eq!(self.entries.len(), self.holders.len());
        usize::from(full)
    }

    pub(super) fn remove(&mut self, from: SocketAddr) -> Option<Box<Pending>> {
        let pending = self.entries.remove(&from)?;
        self.holders.remove(&pending.token_mac);
        Some(pending)
    }

    /// Forgets handshakes that were not answered in time; gives how many.
    pub(super) fn expire(&mut self, now: Nanos) -> usize {
        let before = self.entries.len();
        while let Some(&(from, stamp)) = self.order.front() {
            if let Some(entry) = self.entries.get(&from).filter(|entry| entry.stamp == stamp) {
                if now.saturating_sub(entry.since) < PENDING_LIFE {
                    break;
                }
                self.remove(from);
            }
            self.order.pop_front();
        }
        before - self.entries.len()
    }

    fn evict_oldest(&mut self) {
        while let Some((from, stamp)) = self.order.pop_front() {
            if self.entries.get(&from).is_some_and(|entry| entry.stamp == stamp) {
                self.remove(from);
                return;
            }
        }
    }
}
