//! Protocol: what a kind of world and its clients say to each other, declared once.
//!
//! A world replicates the components that its kind's protocol lists, and takes its inputs and requests and no others. A
//! game's schema is the union of the protocols of its kinds of worlds, so a component is named once:
//!
//! ```
//! use bevy_ecs::prelude::*;
//! use throng_pack::Pack;
//! use throng_replication::{ClientInput, ClientRequest, Protocol, Replicate};
//!
//! #[derive(Component, Clone, Replicate)]
//! struct Health {
//!     #[replicate(bits = 7)]
//!     points: u8,
//! }
//!
//! #[derive(Pack)]
//! struct Walk {
//!     x: i8,
//!     z: i8,
//! }
//! impl ClientInput for Walk {}
//!
//! #[derive(Pack)]
//! struct PickUp;
//! impl ClientRequest for PickUp {
//!     const PER_S_MAX: u16 = 5;
//! }
//!
//! let hub = Protocol::new().component::<Health>().input::<Walk>();
//! let arena = Protocol::new().component::<Health>().input::<Walk>().request::<PickUp>();
//! // Server and clients both make it, from the same kinds in the same order.
//! let schema = Protocol::union([&hub, &arena]);
//! assert_eq!((schema.kinds_count(), schema.inputs().len(), schema.requests().len()), (1, 1, 1));
//! ```
//!
//! Made once for each kind of world, at start.

use std::sync::Arc;

use bevy_ecs::prelude::*;

use crate::{
    ecs::collector::Collector,
    wire::{
        event::ReplicatedEvent,
        packed::{ClientInput, ClientMessage, ClientRequest},
        replicate::Replicate,
        schema::{Schema, SchemaBuilder},
    },
};

/// What a kind of world replicates, tells, takes and sends.
///
/// # Panics
/// Each method panics if its `T` is there already, is too large, or is one too many: the program's own mistake, at
/// start. The limits are those of [`SchemaBuilder`].
#[derive(Clone, Default)]
pub struct Protocol {
    declared: SchemaBuilder,
    /// Each makes a world replicate one component.
    replicate: Vec<fn(&mut Collector, &mut World)>,
}

impl Protocol {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends `T` of every entity with [`Replicated`](crate::ecs::Replicated) to the clients that are near enough,
    /// whenever it has changed. Its exact value also counts for the world's state hash.
    #[must_use]
    pub fn component<T: Component + Replicate>(mut self) -> Self {
        self.declared = self.declared.component::<T>();
        self.replicate.push(Collector::replicate::<T>);
        self
    }

    /// What happens once and is told to those who are near.
    #[must_use]
    pub fn event<T: ReplicatedEvent>(mut self) -> Self {
        self.declared = self.declared.event::<T>();
        self
    }

    /// What clients want in this moment: unreliable.
    #[must_use]
    pub fn input<T: ClientInput>(mut self) -> Self {
        self.declared = self.declared.input::<T>();
        self
    }

    /// What clients ask for once: reliable and in order.
    #[must_use]
    pub fn request<T: ClientRequest>(mut self) -> Self {
        self.declared = self.declared.request::<T>();
        self
    }

    /// What a world tells one client: reliable and in order.
    #[must_use]
    pub fn message<T: ClientMessage>(mut self) -> Self {
        self.declared = self.declared.message::<T>();
        self
    }

    /// Everything that is declared, as the schema's builder has it.
    pub fn declared(&self) -> &SchemaBuilder {
        &self.declared
    }

    /// The schema of a game with this one kind of world.
    pub fn schema(&self) -> Arc<Schema> {
        self.declared.clone().build()
    }

    /// The schema of a game: what the protocols of its kinds of worlds have, each thing once, in the order in which it
    /// first comes.
    ///
    /// # Panics
    /// If they are too many kinds together.
    pub fn union<'a>(protocols: impl IntoIterator<Item = &'a Self>) -> Arc<Schema> {
        let all = protocols.into_iter().fold(SchemaBuilder::new(), |all, each| all.and(&each.declared));
        all.build()
    }

    /// Makes a world replicate the components.
    ///
    /// # Panics
    /// If one of them is not in the collector's schema.
    pub fn replicate_in(&self, collector: &mut Collector, world: &mut World) {
        self.replicate.iter().for_each(|replicate| replicate(collector, world));
    }
}
