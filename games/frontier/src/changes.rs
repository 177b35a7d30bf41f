//! Changes: at the end of a tick entities are made, taken away and marked.
//!
//! Systems only say what is to be ([`crate::deeds`]); here it is done, with the whole world in hand. In most ticks
//! there is nothing to do.

use bevy_ecs::prelude::*;
use throng_replication::{Team, VisibilityFiltered, Weight, ecs::Replicated};

use crate::{
    actors::{Actor, Actors, Slot},
    components::{Animation, Effects, Look, Points, Pose, Vitals},
    deeds::{Deeds, Mark, Plan},
    neighbours::Neighbours,
};

/// Traps, and totems, that a world has room for from the start; more of them allocate.
const THINGS_EXPECTED: usize = 256;

/// How much of an entity is told.
#[derive(Resource, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telling {
    /// Health in points, too.
    pub points: bool,
}

/// Makes, takes away and marks what this tick's systems have asked for.
pub fn apply(world: &mut World) {
    let deeds = world.resource::<Deeds>();
    if deeds.gone.is_empty() && deeds.plans.is_empty() && deeds.marks.is_empty() {
        return;
    }
    let mut deeds = world.resource_mut::<Deeds>();
    let mut marks = std::mem::take(&mut deeds.marks);
    let mut plans = std::mem::take(&mut deeds.plans);
    let mut gone = std::mem::take(&mut deeds.gone);
    for thing in gone.drain(..) {
        remove(world, thing);
    }
    for plan in plans.drain(..) {
        set_up(world, plan);
    }
    for mark in marks.drain(..) {
        apply_mark(world, mark);
    }
    let mut deeds = world.resource_mut::<Deeds>();
    (deeds.marks, deeds.plans, deeds.gone) = (marks, plans, gone);
}

fn apply_mark(world: &mut World, mark: Mark) {
    let (Mark::Filtered(entity, _) | Mark::Team(entity, _) | Mark::Weight(entity, _)) = mark;
    // It may have left since.
    let Ok(mut entity) = world.get_entity_mut(entity) else { return };
    match mark {
        Mark::Filtered(_, true) => entity.insert(VisibilityFiltered),
        Mark::Filtered(_, false) => entity.remove::<VisibilityFiltered>(),
        Mark::Team(_, 0) => entity.remove::<Team>(),
        Mark::Team(_, team) => entity.insert(Team(team)),
        Mark::Weight(_, weight) => entity.insert(Weight(weight)),
    };
}

fn set_up(world: &mut World, plan: Plan) {
    let look = Look { kind: plan.kind, level: plan.level, variety: 0 };
    let mut actors = world.resource_mut::<Actors>();
    let index = actors.add(look, plan.place, 0.0);
    let is_trap = plan.kind == crate::components::Kind::Trap;
    let row = &mut actors[index];
    (row.owner, row.side, row.expires_tick, row.filtered) = (Some(plan.owner), plan.side, plan.expires_tick, is_trap);
    if is_trap {
        actors.traps.insert(index)
    } else {
        actors.totems.insert(index)
    };
    embody(world, index, is_trap);
}

/// Has the world's tables grow to what [`THINGS_EXPECTED`] traps and as many totems need, so that the first ones do not
/// allocate.
pub fn make_room(world: &mut World) {
    let row = Actor::empty();
    let things: Vec<Entity> = (0..2 * THINGS_EXPECTED)
        .map(|index| {
            let entity = world.spawn(bundle(0, &row)).id();
            if index % 2 == 0 {
                world.entity_mut(entity).insert(VisibilityFiltered);
            }
            entity
        })
        .collect();
    for entity in things {
        world.despawn(entity);
    }
}

/// Gives a row its entity and its place in the neighbour lists.
pub fn embody(world: &mut World, index: u32, filtered: bool) -> Entity {
    let row = world.resource::<Actors>()[index].clone();
    let entity = world.spawn(bundle(index, &row)).id();
    if world.resource::<Telling>().points && row.look.kind.is_creature() {
        world.entity_mut(entity).insert(Points { points: row.health.max(0) as u16 });
    }
    if filtered {
        world.entity_mut(entity).insert(VisibilityFiltered);
    }
    world.resource_mut::<Actors>().embody(index, entity);
    world.resource_mut::<Neighbours>().insert(index, row.place, row.groups());
    entity
}

fn bundle(index: u32, row: &Actor) -> impl Bundle {
    let [x, z] = row.place;
    (
        Replicated::default(),
        Slot(index),
        Pose { x, z, heading: row.heading },
        Vitals { alive: true, ..row.vitals() },
        Animation::NONE,
        Effects { sneaking: row.filtered, ..Effects::default() },
        row.look,
        Weight(row.weight),
    )
}

/// Takes an actor and its entity out of the world.
pub fn remove(world: &mut World, index: u32) {
    let mut actors = world.resource_mut::<Actors>();
    let (entity, alive) = (actors[index].entity, actors[index].alive);
    actors.remove(index);
    if alive {
        world.resource_mut::<Neighbours>().remove(index);
    }
    world.despawn(entity);
}
