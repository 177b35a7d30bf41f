//! Mailboxes: which world has which, by id.
//!
//! Owned by the frame thread. An id whose world is no more finds none: its place may have another world's by now.

use std::sync::Arc;

use throng_world::ids::WorldId;

use crate::mailbox::Mailbox;

/// The mailboxes of all worlds.
#[derive(Default)]
pub(crate) struct Mailboxes(Vec<Option<(WorldId, Arc<Mailbox>)>>);

impl Mailboxes {
    /// The mailbox of a world that takes mail. Cost: one look into a list.
    #[inline]
    pub fn get(&self, world: WorldId) -> Option<&Mailbox> {
        let (id, mailbox) = self.0.get(world.index())?.as_ref()?;
        (*id == world).then_some(&**mailbox)
    }

    pub fn insert(&mut self, world: WorldId, mailbox: Arc<Mailbox>) {
        let places_count = self.0.len().max(world.index() + 1);
        self.0.resize_with(places_count, || None);
        self.0[world.index()] = Some((world, mailbox));
    }

    /// From now on nobody can send to this world.
    pub fn remove(&mut self, world: WorldId) {
        if let Some(place) = self.0.get_mut(world.index())
            && place.as_ref().is_some_and(|(id, _)| *id == world)
        {
            *place = None;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mailbox> {
        self.0.iter().flatten().map(|(_, mailbox)| &**mailbox)
    }
}
