//! Kept: what a world goes on from after a panic, as it stands between two ticks.
//!
//! Each component is kept as it is, and of the [`Arena`] what is no tick's own. What follows from that is made again after
//! a load: who stands where in the [columns](crate::actors::Actors), and the search for a path that was under way. A
//! component that is added and not registered here fails `headless::reloading`, by its name.
//!
//! Bytes are believed no further than they can be checked: a place off the nav mesh, a node that the behaviour graph does
//! not have, or a slot that is nobody's fails the load.
//!
//! Size: about 140 bytes for each NPC, 100 more for each character in worlds in which players fire, and 300 for each player:
//! 6 KB for a hideout with 20 NPCs, 210 KB for a dark zone with 800. Every `checkpoint_period_s` for each world; allocates.

use std::collections::BTreeSet;

use bevy_ecs::prelude::*;
use speech::SpeechAllowance;
use throng::prelude::*;
use throng_pack::Pack;
use throng_query::nav::NavPoint;
use throng_rewind::ecs::Shoots;

use crate::{
    arena::{Arena, SavedArena},
    components::{Action, Character, Door, Lying, Pose, Slot, Standing, Vitals},
    gear::Bag,
    ground::Lies,
    inventory::{Inventory, Stacks},
    lives::LifeClock,
    movement::Controls,
    npc::{Brain, Npc, Pace, PathFollow, Senses, path_queue::SavedPath, paths},
    passport::{Passport, PlayerClient},
    portals::PortalWatch,
    scene::Scene,
    stash::Stash,
    weapons::Weapon,
};

/// What players carry, as it is packed.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.inventory")]
struct SavedInventory {
    #[pack(via = Stacks)]
    inventory: Inventory,
}

/// Registers the state of a world of players.
pub struct KeptState;

impl WorldPlugin for KeptState {
    fn build(&self, world: &mut WorldBuilder) {
        // What clients are told.
        world.checkpoint::<Pose>().checkpoint::<Vitals>().checkpoint::<Character>().checkpoint::<Action>();
        world.checkpoint::<Door>().checkpoint::<Lying>();
        // Everybody.
        world.checkpoint::<Slot>().checkpoint::<Standing>().checkpoint::<Weapon>().checkpoint::<LifeClock>();
        // NPCs.
        world.checkpoint::<Npc>().checkpoint::<Pace>().checkpoint::<Senses>().checkpoint::<Brain>();
        world.checkpoint_as::<PathFollow, SavedPath>(|path| path.into(), PathFollow::from);
        // Players.
        world.checkpoint::<PlayerClient>().checkpoint::<Passport>().checkpoint::<Controls>().checkpoint::<Shoots>();
        world.checkpoint::<Bag>().checkpoint::<PortalWatch>().checkpoint::<SpeechAllowance>();
        world.checkpoint_as::<Inventory, SavedInventory>(
            |inventory| SavedInventory { inventory: *inventory },
            |saved| saved.inventory,
        );
        // Things.
        world.checkpoint::<Lies>().checkpoint::<Stash>();
        world.checkpoint_part::<Arena, SavedArena>(Arena::save, Arena::load).transient::<Scene>();
        world
            .after_load(check)
            .after_load(forget_who_is_gone)
            .after_load(place_everybody)
            .after_load(paths::resume_search);
    }
}

/// Refuses what no world of this game has written.
fn check(
    scene: Res<Scene>,
    arena: Res<Arena>,
    standing: Query<(&Standing, &Slot)>,
    npcs: Query<(&Brain, &Senses, &PathFollow)>,
) -> Result<(), BevyError> {
    let is_on_mesh = |at: NavPoint| scene.level.navmesh.holds(at);
    let is_slot = |slot: Slot| slot.index() < arena.actors.slots();
    let mut taken = BTreeSet::new();
    let are_sound = standing.iter().all(|(at, slot)| is_on_mesh(at.0) && is_slot(*slot) && taken.insert(*slot))
        && npcs.iter().all(|(brain, senses, path)| {
            brain.is_of(&scene.graph)
                && [senses.seen_at, path.goal()].into_iter().flatten().all(is_on_mesh)
                && [senses.target, senses.hurt_by].into_iter().flatten().all(is_slot)
        })
        && arena.paths.places().all(|(slot, at)| is_slot(slot) && is_on_mesh(at))
        && arena.actors.is_sound();
    if are_sound { Ok(()) } else { Err("it is of another level, graph or number of characters".into()) }
}

/// Players who were left out of a load: their slots are free, and what they had went with them.
fn forget_who_is_gone(
    mut arena: ResMut<Arena>,
    (slots, entities): (Query<&Slot>, Query<()>),
    (bags, chests, lying): (Query<&Bag>, Query<&Stash>, Query<&Lies>),
) {
    let there: BTreeSet<Slot> = slots.iter().copied().collect();
    let gone: Vec<Slot> = arena.actors.players().iter().copied().filter(|slot| !there.contains(slot)).collect();
    if gone.is_empty() {
        return;
    }
    for slot in gone {
        arena.actors.remove_player(slot);
        arena.past.forget(slot);
    }
    arena.trades.retain(|entity| entities.contains(entity));
    arena.sent_off.clear();
    let pieces = bags.iter().map(|bag| bag.gear.len()).sum::<usize>()
        + chests.iter().map(|stash| stash.gear.len()).sum::<usize>()
        + lying.iter().count();
    arena.ledger.leave_but(pieces);
}

/// Who stands where, in the columns.
fn place_everybody(mut arena: ResMut<Arena>, everybody: Query<(Entity, &Slot, &Standing, &Character, &Vitals)>) {
    let actors = &mut arena.actors;
    for (entity, slot, standing, character, vitals) in &everybody {
        actors.place(*slot, entity, standing.0, character.into());
        if !vitals.alive {
            actors.take_away(*slot);
        }
    }
}
