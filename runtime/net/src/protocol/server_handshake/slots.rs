//! Slots: who is connected, from where, and who may not be.
//!
//! A slot is taken when a client is admitted and given back when the server says so. By id and by
//! address it is one look-up, however many are connected.

use std::net::SocketAddr;

use rand::RngCore;

use super::super::ClientId;
use super::super::keyed_hash::{KeyedMap, KeyedState};

pub(super) struct Slots {
    by_client: KeyedMap<ClientId, Slot>,
    by_address: KeyedMap<SocketAddr, ClientId>,
    /// Numbers given back, to be given out again; beyond them all from `next_index` up are free.
    free_indices: Vec<u32>,
    next_index: u32,
    slots_max: usize,
}

struct Slot {
    /// What netcode calls the client index: unique among the connected, below the maximum.
    index: u32,
    address: SocketAddr,
}

impl Slots {
    pub(super) fn new(slots_max: usize, rng: &mut impl RngCore) -> Self {
        Self {
            by_client: KeyedMap::with_hasher(KeyedState::new(rng)),
            by_address: KeyedMap::with_hasher(KeyedState::new(rng)),
            free_indices: Vec::new(),
            next_index: 0,
            slots_max,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_client.len()
    }

    /// Who is connected from this address.
    pub(super) fn client_at(&self, address: SocketAddr) -> Option<ClientId> {
        self.by_address.get(&address).copied()
    }

    pub(super) fn holds_client(&self, client_id: ClientId) -> bool {
        self.by_client.contains_key(&client_id)
    }

    /// From where this client is connected.
    pub(super) fn address_of(&self, client_id: ClientId) -> Option<SocketAddr> {
        self.by_client.get(&client_id).map(|slot| slot.address)
    }

    pub(super) fn take(&mut self, client_id: ClientId, address: SocketAddr) -> u32 {
        assert!(self.count() < self.slots_max, "a slot is taken after asking for it");
        assert!(!self.holds_client(client_id), "a client has one slot");
        assert!(self.client_at(address).is_none(), "an address has one slot");
        let index = self.free_indices.pop().unwrap_or_else(|| {
            self.next_index += 1;
            self.next_index - 1
        });
        self.by_client.insert(client_id, Slot { index, address });
        self.by_address.insert(address, client_id);
        index
    }

    /// Frees the slot of the client at this address, and says whose it was.
    pub(super) fn leave(&mut self, address: SocketAddr) -> Option<ClientId> {
        let client_id = self.by_address.remove(&address)?;
        self.free_indices.extend(self.by_client.remove(&client_id).map(|slot| slot.index));
        Some(client_id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    #[test]
    fn indices_are_unique_and_come_back() {
        let mut slots = Slots::new(100, &mut ChaCha20Rng::seed_from_u64(1));
        let address = |client: u64| SocketAddr::from(([10, 0, 0, 1], client as u16));
        let first: HashSet<u32> = (0..100).map(|client| slots.take(ClientId(client), address(client))).collect();
        assert_eq!(first, (0..100).collect());
        assert!(slots.holds_client(ClientId(7)) && !slots.holds_client(ClientId(100)));

        assert_eq!(slots.leave(address(100)), None);
        assert_eq!(slots.count(), 100, "nobody's address gives nothing back");
        let left = [7, 7, 50].map(|client| slots.leave(address(client)));
        assert_eq!(left, [Some(ClientId(7)), None, Some(ClientId(50))]);
        assert_eq!(slots.count(), 98);
        assert_eq!(slots.client_at(address(7)), None);
        let again: HashSet<u32> = (200..202).map(|client| slots.take(ClientId(client), address(client))).collect();
        assert_eq!(again, [7, 50].into());
    }
}
