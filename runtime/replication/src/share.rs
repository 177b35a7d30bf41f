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
        let Self { scene, views, found, .. } = self;
        if let (Some(scene), Some(entry)) = (scene, find(views, view)) {
            entry.refresh(view.0, scene, found);
        }
    }

    /// As `WorldReplication::write_snapshot`; 0 for clients that are not in this share.
    pub fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
        match (&self.scene, find(&mut self.views, view), &mut self.traffic) {
            (Some(scene), Some(view), Some(traffic)) => view.write_snapshot(scene, traffic, input, out),
            _ => 0,
        }
    }

    /// As `WorldReplication::sent`.
    pub fn sent(&mut self, view: ViewId, packet: u16) {
        if let (Some(scene), Some(view)) = (&self.scene, find(&mut self.views, view)) {
            view.sent(packet, scene);
        }
    }

    /// As `WorldReplication::acked`.
    pub fn acked(&mut self, view: ViewId, packet: u16) {
        if let Some(view) = find(&mut self.views, view) {
            view.acked(packet);
        }
    }

    /// As `WorldReplication::lost`.
    pub fn lost(&mut self, view: ViewId, packet: u16) {
        if let (Some(scene), Some(view)) = (&self.scene, find(&mut self.views, view)) {
            view.lost(packet, scene);
        }
    }

    /// As `WorldReplication::set_budget`.
    pub fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32) {
        if let Some(view) = find(&mut self.views, view) {
            view.budget_bytes_per_tick = bytes_per_tick;
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
        self.views.drain(..)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.found.heap_bytes()
            + self.traffic.as_ref().map_or(0, Traffic::heap_bytes)
            + self.views.capacity() * size_of::<(ViewId, Box<View>)>()
    }
}

fn find(views: &mut [(ViewId, Box<View>)], id: ViewId) -> Option<&mut View> {
    let index = views.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    Some(&mut views[index].1)
}

/// Shares go to threads that live on.
const _: fn() = || {
    fn goes_anywhere<T: Send + 'static>() {}
    goes_anywhere::<Share>();
    goes_anywhere::<WorldReplication>();
};
