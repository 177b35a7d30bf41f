//! ECS: how a Bevy world feeds its replication.
//!
//! Read in this order: `replicated` (the component that makes clients hear of an entity, and the journal of what came
//! and went), `attributes` (what a game says of an entity beside its values), `collector` (carries a tick's changes
//! over), `walkers` (what it does for each component type), `links` (components that refer to entities), `protocol` (what a
//! kind of world declares), `state_hash` (one number for the whole state), `table_resource` (resources that a thousand
//! worlds have each).
//!
//! The only room that knows Bevy. It decides nothing about clients and writes no byte of a message.

pub(crate) mod attributes;
mod collector;
mod links;
pub(crate) mod protocol;
mod replicated;
pub(crate) mod state_hash;
mod table_resource;
mod walkers;

pub use attributes::{Team, VisibilityFiltered, Weight};
pub use collector::Collector;
pub use links::{NoEntity, write_event_in};
pub use protocol::Protocol;
pub use replicated::{Placed, Replicated, journal_name};

/// What [`table_resource!`](crate::table_resource) names of Bevy.
#[doc(hidden)]
pub mod bevy {
    pub use bevy_ecs::{
        component::{Component, ComponentId, Mutable, RequiredComponentsRegistrator, StorageType},
        resource::{IsResource, Resource},
    };
}
