//! Share: some clients of a world, lent to another thread.
//!
//! A tick's changes are taken in by the world's own thread. What is left then is done for each client by itself: look
//! who is near, write, name the packets. What all of it reads is shared and does not change (`scene`); what it writes is
//! the client's own. So any number of threads give the same bytes as one.
//!
//! ```text
//! world   begin_tick, changes, conceal | lend ---> share: refresh, write_snapshot, sent     --> give_back | ...
//!                                      | lend ---> share: the same for others, meanwhile    --> give_back |
//! ```
//!
//! A share owns its clients and holds the scene by an `Arc`; nothing is borrowed, so it can be handed to threads that
//! live on. Lending and giving back moves a pointer per client and allocates nothing once the buffers have grown.

use std::sync::Arc;

use throng_platform::prefetch;

use crate::{
    interest::Found,
    scene::Scene,
    traffic::Traffic,
    view::View,
    world::{ViewId, WorldReplication},
};

/// Some clients of a world. See `WorldReplication::lend`; to be given back before the world's next tick.
#[derive(Default)]
pub struct Share {
    scene: Option<Arc<Scene>>,
    /// By id.
    views: Vec<(ViewId, Box<View>)>,
    /// Where the last one asked for is. Clients are told by id, so the next one asked for is mostly this one or the one after it.
    at: usize,
    found: Found,
    /// Made when it is first lent.
    pub(crate) traffic: Option<Traffic>,
}

impl Share {
    /// Its clients, by id.
    pub fn ids(&self) -> impl Iterator<Item = ViewId> + '_ {
        self.views.iter().map(|(id, _)| *id)
    }

    /// Rebuilds a client's relevant set, if it is its turn: its part of `WorldReplication::refresh_interest`.
    pub fn refresh(&mut self, view: ViewId) {
        let Some(place) = self.find(view) else { return };
        if let Some(scene) = &self.scene {
            self.views[place].1.refresh(view.0, scene, &mut self.found);
        }
    }

    /// As `WorldReplication::write_snapshot`; 0 for clients that are not in this share.
    pub fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
        let Some(place) = self.find(view) else { return 0 };
        match (&self.scene, &mut self.traffic) {
            (Some(scene), Some(traffic)) => self.views[place].1.write_snapshot(scene, traffic, input, out),
            _ => 0,
        }
    }

    /// As `WorldReplication::sent`.
    pub fn sent(&mut self, view: ViewId, packet: u16) {
        let Some(place) = self.find(view) else { return };
        if let Some(scene) = &self.scene {
            self.views[place].1.sent(packet, scene);
        }
    }

    /// As `WorldReplication::acked`.
    pub fn acked(&mut self, view: ViewId, packet: u16) {
        if let Some(place) = self.find(view) {
            self.views[place].1.acked(packet);
        }
    }

    /// As `WorldReplication::lost`.
    pub fn lost(&mut self, view: ViewId, packet: u16) {
        let Some(place) = self.find(view) else { return };
        if let Some(scene) = &self.scene {
            self.views[place].1.lost(packet, scene);
        }
    }

    /// As `WorldReplication::set_budget`.
    pub fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32) {
        if let Some(place) = self.find(view) {
            self.views[place].1.budget_bytes_per_tick = bytes_per_tick;
        }
    }

    /// Asks for the memory of a client that is told soon (`throng_platform::prefetch`).
    pub fn prefetch(&self, view: ViewId) {
        if let Some(place) = self.place_of(view) {
            prefetch::value(&*self.views[place].1);
        }
    }

    /// As `prefetch`, a turn later: what that client's own memory points to.
    pub fn prefetch_lists(&self, view: ViewId) {
        if let Some(place) = self.place_of(view) {
            self.views[place].1.prefetch_lists();
        }
    }

    pub(crate) fn fill(&mut self, scene: Arc<Scene>, views: impl Iterator<Item = (ViewId, Box<View>)>) {
        debug_assert!(self.views.is_empty());
        self.traffic.get_or_insert_with(|| Traffic::new(&scene.entities.schema));
        self.scene = Some(scene);
        self.views.extend(views);
        self.views.sort_unstable_by_key(|(id, _)| *id);
    }

    /// Lets go of the scene and of all clients.
    pub(crate) fn empty(&mut self) -> impl Iterator<Item = (ViewId, Box<View>)> + '_ {
        self.scene = None;
        self.at = 0;
        self.views.drain(..)
    }

    fn find(&mut self, id: ViewId) -> Option<usize> {
        self.at = self.place_of(id)?;
        Some(self.at)
    }

    fn place_of(&self, id: ViewId) -> Option<usize> {
        let near = self.views.get(self.at..).unwrap_or(&[]).iter().take(3).position(|(each, _)| *each == id);
        near.map(|ahead| self.at + ahead).or_else(|| self.views.binary_search_by_key(&id, |(id, _)| *id).ok())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.found.heap_bytes()
            + self.traffic.as_ref().map_or(0, Traffic::heap_bytes)
            + self.views.capacity() * size_of::<(ViewId, Box<View>)>()
    }
}

/// Shares go to threads that live on.
const _: fn() = || {
    fn goes_anywhere<T: Send + 'static>() {}
    goes_anywhere::<Share>();
    goes_anywhere::<WorldReplication>();
};
