//! Seats: who is connected, from where, and who may not be.
//!
//! A seat is taken when a response authenticated and given back when the server says so. By id and by
//! address it is one look-up, however many are connected.

use std::net::SocketAddr;

use rand::RngCore;

use super::super::ClientId;
use super::super::keyed_hash::{KeyedMap, KeyedState};
use super::Denial;

pub(super) struct Seats {
    by_client: KeyedMap<ClientId, Seat>,
    by_address: KeyedMap<SocketAddr, ClientId>,
    /// Numbers given back, to be given out again; beyond them all from `next_index` up are free.
    free_indices: Vec<u32>,
    next_index: u32,
    seats_max: usize,
}

struct Seat {
    address: SocketAddr,
    /// What netcode calls the client index: unique among the connected, below the maximum.
    index: u32,
}

impl Seats {
    pub(super) fn new(seats_max: usize, rng: &mut impl RngCore) -> Self {
        Self {
            by_client: KeyedMap::with_hasher(KeyedState::new(rng)),
            by_address: KeyedMap::with_hasher(KeyedState::new(rng)),
            free_indices: Vec::new(),
            next_index: 0,
            seats_max,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_client.len()
    }

    pub(super) fn holds_address(&self, address: SocketAddr) -> bool {
        self.by_address.contains_key(&address)
    }

    pub(super) fn denial(&self, client_id: ClientId) -> Option<Denial> {
        if self.by_client.contains_key(&client_id) {
            return Some(Denial::Connected);
        }
        (self.count() >= self.seats_max).then_some(Denial::Full)
    }

    pub(super) fn take(&mut self, client_id: ClientId, address: SocketAddr) -> u32 {
        assert!(self.denial(client_id).is_none(), "a seat is taken after asking for it");
        let index = self.free_indices.pop().unwrap_or_else(|| {
            self.next_index += 1;
            self.next_index - 1
        });
        self.by_client.insert(client_id, Seat { address, index });
        self.by_address.insert(address, client_id);
        index
    }

    pub(super) fn leave(&mut self, client_id: ClientId, address: SocketAddr) {
        if self.by_client.get(&client_id).is_none_or(|seat| seat.address != address) {
            return;
        }
        if let Some(seat) = self.by_client.remove(&client_id) {
            self.by_address.remove(&address);
            self.free_indices.push(seat.index);
        }
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
        let mut seats = Seats::new(100, &mut ChaCha20Rng::seed_from_u64(1));
        let address = |client: u64| SocketAddr::from(([10, 0, 0, 1], client as u16));
        let first: HashSet<u32> = (0..100).map(|client| seats.take(ClientId(client), address(client))).collect();
        assert_eq!(first, (0..100).collect());
        assert!(matches!(seats.denial(ClientId(100)), Some(Denial::Full)));
        assert!(matches!(seats.denial(ClientId(7)), Some(Denial::Connected)));

        seats.leave(ClientId(7), address(8));
        assert_eq!(seats.count(), 100, "another client's address gives nothing back");
        for client in [7, 7, 50] {
            seats.leave(ClientId(client), address(client));
        }
        assert_eq!(seats.count(), 98);
        assert!(!seats.holds_address(address(7)));
        let again: HashSet<u32> = (200..202).map(|client| seats.take(ClientId(client), address(client))).collect();
        assert_eq!(again, [7, 50].into());
    }
}
