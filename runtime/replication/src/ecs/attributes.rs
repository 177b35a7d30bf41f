//! Attributes: what a game may say about a replicated entity beside its values. All are optional components beside
//! `Replicated`.
//!
//! They are immutable in Bevy's sense: to change one, insert it anew. So hooks see every change, and worlds without
//! them pay nothing. What changes counts from the next `Collector::collect` on, which is the end of the same tick.

use bevy_ecs::prelude::Component;

use crate::ecs::replicated::note_attribute;

/// The entity is also relevant, wherever it is, to the clients of this team. [1 to 65,535; 0 is no team]
#[derive(Component, Copy, Clone, Debug, PartialEq, Eq)]
#[component(immutable, on_insert = note_attribute, on_remove = note_attribute)]
pub struct Team(pub u16);

/// How urgent the entity is beside others when a client's budget does not reach all of them [0.1 to 100; 1 is usual].
/// Too high → others wait longer, though never for ever; too low → it updates seldom in a crowd.
#[derive(Component, Copy, Clone, Debug, PartialEq)]
#[component(immutable, on_insert = note_attribute, on_remove = note_attribute)]
pub struct Weight(pub f32);

/// The world's visibility filter is asked about the entity, for every client near it and in every tick. A client to
/// whom it denies the entity gets no byte about it.
#[derive(Component, Copy, Clone, Debug, Default, PartialEq, Eq)]
#[component(immutable, on_insert = note_attribute, on_remove = note_attribute)]
pub struct VisibilityFiltered;
