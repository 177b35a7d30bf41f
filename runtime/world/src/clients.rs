//! Clients: the table of a world's clients.
//!
//! They lie densely in one list, in the order of arrival, since a tick visits all of them; a small map finds one by its
//! key. While they are served they are away in batches (`client_batch`) and come back in the same order, so a client's
//! place in the list is good for a tick.

use foldhash::{HashMap, HashMapExt};

use crate::{client::Client, ids::ClientKey};

/// All clients of a world.
#[derive(Default)]
pub(crate) struct Clients {
    list: Vec<Box<Client>>,
    place_of: HashMap<ClientKey, usize>,
}

impl Clients {
    pub fn add(&mut self, client: Box<Client>) {
        if self.place_of.capacity() == 0 {
            self.place_of = HashMap::with_capacity(1);
        }
        self.place_of.insert(client.key, self.list.len());
        self.list.push(client);
    }

    pub fn get_mut(&mut self, client: ClientKey) -> Option<&mut Client> {
        // One client is the usual case of a player's own world: no need to hash.
        let place = match &self.list[..] {
            [only] => (only.key == client).then_some(0)?,
            _ => self.place_of(client)?,
        };
        self.list.get_mut(place).map(|client| &mut **client)
    }

    /// Where the client is in the list, also while the clients are away.
    pub fn place_of(&self, client: ClientKey) -> Option<usize> {
        self.place_of.get(&client).copied()
    }

    /// Takes out the clients that are marked as leaving, in their order; the others keep theirs. Cost: one look at
    /// every client, and one entry of the map for each that moves up.
    pub fn take_leaving(&mut self, leaving: &mut Vec<Box<Client>>) {
        let Some(first) = self.list.iter().position(|client| client.leaving.is_some()) else { return };
        leaving.extend(self.list.extract_if(first.., |client| client.leaving.is_some()));
        for client in leaving.iter() {
            self.place_of.remove(&client.key);
        }
        for (place, client) in self.list.iter().enumerate().skip(first) {
            self.place_of.insert(client.key, place);
        }
    }

    /// Moves clients from the end of the list to `batch`, which gets at most `count` of them in their order. Who is
    /// taken must be given back before anything else happens.
    pub fn take_last(&mut self, count: usize, batch: &mut Vec<Box<Client>>) {
        debug_assert!(batch.is_empty());
        if count >= self.list.len() {
            std::mem::swap(&mut self.list, batch);
        } else {
            batch.extend(self.list.drain(self.list.len() - count..));
        }
    }

    /// Takes back who was taken: the batch that was taken last first.
    pub fn give_back(&mut self, batch: &mut Vec<Box<Client>>) {
        if self.list.is_empty() {
            std::mem::swap(&mut self.list, batch);
        } else {
            self.list.append(batch);
        }
    }

    /// Everybody, in their order, for whoever ends the world.
    pub fn drain(&mut self) -> impl Iterator<Item = Box<Client>> + '_ {
        self.place_of.clear();
        self.list.drain(..)
    }

    pub fn as_slice(&self) -> &[Box<Client>] {
        &self.list
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.list.iter_mut().map(|client| &mut **client)
    }

    pub fn at_mut(&mut self, place: u32) -> Option<&mut Client> {
        self.list.get_mut(place as usize).map(|client| &mut **client)
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Asserts what must hold while nobody is away.
    pub fn check(&self) {
        assert_eq!(self.list.len(), self.place_of.len());
        for (place, client) in self.list.iter().enumerate() {
            assert_eq!(self.place_of(client.key), Some(place));
        }
    }
}
