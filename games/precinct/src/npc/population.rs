//! Population: a world's NPCs are made with it, equally many for as long as it lives.
//!
//! Every [`NPCS_PER_POST`] of them share a post, half of either faction, and begin their first lives around it, so
//! there is a fight from the first second on. Archetypes and weapons come in turn; posts come from the world's seed. Who
//! dies keeps its row, and begins its next life in it.

use bevy_ecs::{prelude::*, query::QueryData};
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::{Outbox, TickInfo, WorldRng};
use throng_platform::time::Nanos;
use throng_replication::ecs::Replicated;

use super::{Brain, Npc, Pace, PathFollow, Senses, graph::ARCHETYPES};
use crate::{
    arena::Arena,
    components::{Action, Character, Faction, Pose, Standing, Vitals},
    lives::{LifeClock, begin_life, near_spawn},
    scene::Scene,
    weapons::{Weapon, WeaponKind},
};

/// NPCs that fight for one place.
pub const NPCS_PER_POST: usize = 20;
/// How far around their post they begin. (m)
const START_RADIUS_M: f32 = 16.0;

/// What the first tick of a world takes for each of its NPCs, which are encoded whole in it: a hideout of 16, ticked
/// between other worlds, took some 150 µs, and half of that later on.
const FIRST_TICK_PER_NPC: Nanos = Nanos::from_micros(10);

/// What each archetype of the graph carries.
const WEAPONS: [WeaponKind; ARCHETYPES] = {
    use WeaponKind::*;
    [
        Rifle, Submachine, Marksman, MachineGun, Submachine, Rifle, Submachine, Pistol, MachineGun, Rifle, Pistol,
        MachineGun, Marksman, Pistol, MachineGun, Rifle,
    ]
};

/// Fills a world with NPCs, and has its first tick start early. Its scene and arena must be in it already.
pub fn spawn(world: &mut World, count: usize, rng: &mut Xoshiro256PlusPlus) {
    let scene = world.resource::<Scene>().clone();
    let mut post = 0;
    for index in 0..count {
        if index % NPCS_PER_POST == 0 {
            post = rng.random_range(0..scene.places.spawn_count()) as u16;
        }
        let side = index % 2;
        let archetype = (index / 2 + rng.random_range(0..2)) % ARCHETYPES;
        let weapon = if scene.rules.no_weapons { WeaponKind::Fists } else { WEAPONS[archetype] };
        let start = near_spawn(&scene.level.navmesh, scene.places.cover_around(post, START_RADIUS_M, rng), rng);
        let slot = world.resource_mut::<Arena>().actors.add_npc();
        world.spawn((
            (
                Replicated::default(),
                Pose::new(start.position(), rng.random_range(0.0..std::f32::consts::TAU)),
                Vitals::FULL,
                Character { npc: true, faction: [Faction::Rioters, Faction::Cleaners][side], weapon },
                Action::NONE,
            ),
            slot,
            Standing(start),
            Npc { archetype: archetype as u8, home: scene.places.homes(post)[side], post },
            Weapon::new(weapon),
            LifeClock::default(),
            Pace::new(index as u32),
            Senses::default(),
            Brain::new(scene.graph.root(archetype)),
            PathFollow::default(),
        ));
    }
    world.resource_mut::<Outbox>().hint_next_tick(Nanos(FIRST_TICK_PER_NPC.0 * count as u64));
}

/// Of an NPC: what a new life writes.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct NpcLife {
    npc: &'static Npc,
    life: &'static LifeClock,
    vitals: &'static mut Vitals,
    pose: &'static mut Pose,
    standing: &'static mut Standing,
    weapon: &'static mut Weapon,
    brain: &'static mut Brain,
    senses: &'static mut Senses,
    path: &'static mut PathFollow,
}

/// The dead whose time has come begin their next lives at home, with fresh minds.
pub fn rise(tick: Res<TickInfo>, scene: Res<Scene>, mut rng: ResMut<WorldRng>, mut npcs: Query<NpcLife>) {
    for mut npc in &mut npcs {
        if npc.vitals.alive || !npc.life.is_over(tick.tick) {
            continue;
        }
        let home = scene.places.spawn(npc.npc.home);
        let NpcLifeItem { vitals, pose, standing, weapon, .. } = &mut npc;
        begin_life(home, &scene, &mut rng.0, vitals, pose, standing, weapon);
        npc.brain.reset();
        *npc.senses = Senses::default();
        npc.path.stop();
    }
}
