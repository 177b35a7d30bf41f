//! Replicated: the component that makes clients hear of an entity, and the journal of what came and went.
//!
//! Hooks write the journal when it happens, and the collector takes it at the end of the tick, so nothing is searched
//! for.

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use crate::wire::ids::NetId;

/// Marks an entity whose components clients hear of. Holds its id from the end of its first tick on.
#[derive(Component, Debug, Default, Clone, PartialEq, Eq)]
#[component(on_insert = note_arrival, on_discard = note_departure)]
pub struct Replicated {
    pub(crate) id: Option<NetId>,
}

impl Replicated {
    /// The entity's id, once `collect` has seen it.
    pub fn id(&self) -> Option<NetId> {
        self.id
    }
}

/// Says where an entity is, for interest.
pub trait Placed {
    /// Place in the plane of the interest grid. (m)
    fn place(&self) -> [f32; 2];
}

/// What hooks saw since the last `collect`.
#[derive(Default)]
pub(crate) struct Journal {
    pub arrivals: Vec<Entity>,
    pub departures: Vec<NetId>,
    /// Entities of which a team, a weight or a visibility filter came or went.
    pub attribute_changes: Vec<Entity>,
}

crate::table_resource!(Journal);

fn note_arrival(mut world: DeferredWorld<'_>, context: HookContext) {
    if let Some(mut journal) = world.get_resource_mut::<Journal>() {
        journal.arrivals.push(context.entity);
    }
}

fn note_departure(mut world: DeferredWorld<'_>, context: HookContext) {
    if let Some(id) = world.get::<Replicated>(context.entity).and_then(Replicated::id)
        && let Some(mut journal) = world.get_resource_mut::<Journal>()
    {
        journal.departures.push(id);
    }
}

/// A `Team`, a `Weight` or a `VisibilityFiltered` came or went.
pub(crate) fn note_attribute(mut world: DeferredWorld<'_>, context: HookContext) {
    if let Some(mut journal) = world.get_resource_mut::<Journal>() {
        journal.attribute_changes.push(context.entity);
    }
}
