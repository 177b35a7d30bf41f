//! Mailboxes: which world has which, by id.
//!
//! Owned by the frame thread. An id whose world is no more finds none: its place may have another world's by now.
//!
//! Also counts the clients that were put into each since its world was last given to a worker. That is kept here, and
//! not in the mailbox, because workers write there: to look would cost the frame thread a cache miss for each world.

use std::{cell::Cell, sync::Arc};

use throng_world::{Client, MailItem, ids::WorldId, transfer::Transfer};

use crate::mailbox::Mailbox;

struct Place {
    world: WorldId,
    mailbox: Arc<Mailbox>,
    arrivals_count: Cell<u32>,
}

/// The mailboxes of all worlds.
#[derive(Default)]
pub(crate) struct Mailboxes(Vec<Option<Place>>);

impl Mailboxes {
    /// The mailbox of a world that takes mail. Cost: one look into a list.
    #[inline]
    pub fn get(&self, world: WorldId) -> Option<&Mailbox> {
        Some(&*self.place(world)?.mailbox)
    }

    #[inline]
    fn place(&self, world: WorldId) -> Option<&Place> {
        self.0.get(world.index())?.as_ref().filter(|place| place.world == world)
    }

    /// Puts a client into a world's mailbox. If the world takes no mail, the client is dropped.
    pub fn push_arrival(&self, world: WorldId, client: Box<Client>, from: Option<WorldId>, transfer: Option<Transfer>) {
        if let Some(place) = self.place(world) {
            place.mailbox.push(MailItem::Arrival { client, from, transfer });
            place.arrivals_count.set(place.arrivals_count.get() + 1);
        }
    }

    /// How many clients were put into a world's mailbox since the last call.
    #[inline]
    pub fn take_arrivals_count(&self, world: WorldId) -> u32 {
        self.place(world).map_or(0, |place| place.arrivals_count.take())
    }

    pub fn insert(&mut self, world: WorldId, mailbox: Arc<Mailbox>) {
        let places_count = self.0.len().max(world.index() + 1);
        self.0.resize_with(places_count, || None);
        self.0[world.index()] = Some(Place { world, mailbox, arrivals_count: Cell::new(0) });
    }

    /// From now on nobody can send to this world.
    pub fn remove(&mut self, world: WorldId) {
        if let Some(place) = self.0.get_mut(world.index())
            && place.as_ref().is_some_and(|place| place.world == world)
        {
            *place = None;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mailbox> {
        self.0.iter().flatten().map(|place| &*place.mailbox)
    }
}
