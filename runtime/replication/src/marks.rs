//! Marks: what a game may say about a replicated entity beside its values. All are optional components beside `Replicated`.

use bevy_ecs::prelude::Component;

/// The entity is also relevant, wherever it is, to the clients of this team. [1 to 65,535; 0 is no team]
#[derive(Component, Copy, Clone, Debug, PartialEq, Eq)]
pub struct Team(pub u16);

/// How urgent the entity is beside others when a client's budget does not reach all of them [0.1 to 100; 1 is usual].
/// Too high → others wait longer, though never for ever; too low → it updates seldom in a crowd.
#[derive(Component, Copy, Clone, Debug, PartialEq)]
pub struct Weight(pub f32);

/// The world's visibility filter is asked about the entity, for every client near it and every tick; whom it denies the entity gets no byte
/// about it.
#[derive(Component, Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Concealed;
