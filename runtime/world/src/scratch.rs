//! Scratch: what a tick works with and leaves empty.
//!
//! It is kept for its memory and is no part of a world's state. So it belongs to the worker, and a world has it for as
//! long as its tick takes: it is in the core's cache from the world before, and a thousand worlds need as many as there
//! are workers. Buffers in which a world's own things grow stay with the world: else a small world would hold on to what
//! a crowded one before it had needed.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use bevy_ecs::entity::Entity;
use throng_replication::{UpdateBuffers, ViewScratch};

use crate::{client::Client, client_batch::ClientBatch, opened::Buffer};

/// One worker's.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Batches of clients, empty between their uses.
    pub batches: Vec<ClientBatch>,
    pub spare_batches: Vec<ClientBatch>,
    /// For batches that are opened; the inbox has theirs while systems read what is in there.
    pub spare_buffers: Vec<Buffer>,
    /// Changes places with the mail's bytes while batches read them.
    pub mail_bytes: Arc<Vec<u8>>,
    pub leavers: Vec<Box<Client>>,
    pub audit_sample: Vec<u8>,
    /// Places of clients in their table, of those who hear one event.
    pub hearing: Vec<u32>,
    /// Whom the visibility filter is asked about for one client.
    pub candidates: Vec<Entity>,
    /// For what views are asked outside of batches.
    pub views: ViewScratch,
    /// Changes places with those of the world's replication for the time of the tick.
    pub updates: UpdateBuffers,
}

/// A worker's scratch, while a world has it.
#[derive(Default)]
pub(crate) struct Lent(Option<Box<Scratch>>);

impl Lent {
    /// Takes a worker's scratch, which gets it back with [`Self::give_back`]. One that a panic kept is made anew.
    pub fn take(&mut self, worker: &mut Option<Box<Scratch>>) {
        self.0 = Some(worker.take().unwrap_or_default());
    }

    pub fn give_back(&mut self, worker: &mut Option<Box<Scratch>>) {
        debug_assert!(self.batches.is_empty() && self.leavers.is_empty(), "a tick leaves it empty");
        *worker = self.0.take();
    }

    /// Whether the worker has it.
    pub fn is_back(&self) -> bool {
        self.0.is_none()
    }

    /// What a panic left in it; `None` between two ticks.
    pub fn left(&mut self) -> Option<&mut Scratch> {
        self.0.as_deref_mut()
    }
}

impl Deref for Lent {
    type Target = Scratch;

    fn deref(&self) -> &Scratch {
        self.0.as_deref().expect("a tick has its worker's scratch")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Scratch {
        self.0.as_deref_mut().expect("a tick has its worker's scratch")
    }
}
