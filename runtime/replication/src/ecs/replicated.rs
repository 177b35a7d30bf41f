//! Replicated: the component that makes clients hear of an entity, and the journal of what came and went.
//!
//! Hooks write the journal when it happens, and the collector takes it at the end of the tick, so nothing is searched
//! for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bevy_ecs::{lifecycle::HookContext, prelude::*, world::DeferredWorld};

use crate::wire::ids::NetId;

/// Marks an entity whose components clients hear of. Holds its id from the end of its first tick on.
///
/// A clone that is put into a world begins without one, as does what is taken from an entity and inserted again: an id
/// names one entity, once.
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

/// A world's journal. The collector holds it, too: in most ticks nobody comes or goes, and to find a resource in order
/// to learn that costs a small world several cache misses. Only the world's own thread ever locks it.
#[derive(Default, Clone)]
pub(crate) struct SharedJournal(Arc<Mutex<Journal>>);

crate::table_resource!(SharedJournal);

/// The name of the journal's type, for whoever lists what a world has.
#[doc(hidden)]
pub fn journal_name() -> &'static str {
    std::any::type_name::<SharedJournal>()
}

impl SharedJournal {
    pub fn lock(&self) -> MutexGuard<'_, Journal> {
        // A push that panicked leaves its list whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note_arrival(mut world: DeferredWorld<'_>, context: HookContext) {
    // Of a clone or of an earlier stay: with two holders, the one that goes would take the other's copies away.
    if world.get::<Replicated>(context.entity).is_some_and(|inserted| inserted.id.is_some())
        && let Some(mut inserted) = world.get_mut::<Replicated>(context.entity)
    {
        inserted.id = None;
    }
    if let Some(journal) = world.get_resource::<SharedJournal>() {
        journal.lock().arrivals.push(context.entity);
    }
}

fn note_departure(world: DeferredWorld<'_>, context: HookContext) {
    if let Some(id) = world.get::<Replicated>(context.entity).and_then(Replicated::id)
        && let Some(journal) = world.get_resource::<SharedJournal>()
    {
        journal.lock().departures.push(id);
    }
}

/// A `Team`, a `Weight` or a `VisibilityFiltered` came or went.
pub(crate) fn note_attribute(world: DeferredWorld<'_>, context: HookContext) {
    if let Some(journal) = world.get_resource::<SharedJournal>() {
        journal.lock().attribute_changes.push(context.entity);
    }
}
