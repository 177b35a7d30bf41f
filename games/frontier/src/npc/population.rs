//! Population: who lives in the landscape. Their number is the same for as long as the world lives.
//!
//! First some townsfolk, then camps of [`CAMP_SIZE`] monsters from the first town outwards, until all NPCs have a home;
//! when all sites are taken the camps are larger instead. Each camp has one kind of company. Nodes grow beside camps,
//! and towns have doors.

use bevy_ecs::world::World;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    actors::Actors,
    changes::embody,
    components::{Kind, Look},
    landscape::{Landscape, within_edge},
    mailboxes::Mailboxes,
    npc::{Mind, Minds},
    traits::NODE_STOCK,
};

/// Monsters of a camp, while there are camps enough.
pub const CAMP_SIZE: usize = 18;
const CAMP_RADIUS_M: f32 = 22.0;
const GUARDS_PER_TOWN: usize = 10;
const BANKERS_PER_TOWN: usize = 2;
const TOWNSFOLK_PER_TOWN: usize = GUARDS_PER_TOWN + BANKERS_PER_TOWN;
const DOORS_PER_TOWN: usize = 4;
/// A town for every so many NPCs, one at least.
const NPCS_PER_TOWN: usize = 1_000;
/// How far from its camp a node grows. (m)
const NODE_AWAY_M: f32 = 55.0;

/// Who keeps company with whom; a camp takes them in turn.
const COMPANIES: [&[Kind]; 4] = {
    use Kind::*;
    [
        &[Wolf, Wolf, Wolf, Howler],
        &[Bandit, Bandit, Stalker, Shaman, Bandit, Brute],
        &[Plaguebearer, Shaman, Bandit, Plaguebearer, Howler],
        &[Brute, Wolf, Bandit, Shaman, Stalker, Wolf],
    ]
};

/// How many are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub towns: usize,
    pub townsfolk: usize,
    pub camps: usize,
    pub monsters: usize,
}

impl Plan {
    /// Shares so many NPCs out.
    pub fn of(npcs: usize, landscape: &Landscape) -> Self {
        let towns = (npcs / NPCS_PER_TOWN).clamp(1, landscape.towns().len());
        let townsfolk = (towns * TOWNSFOLK_PER_TOWN).min(npcs);
        let monsters = npcs - townsfolk;
        let camps = monsters.div_ceil(CAMP_SIZE).min(landscape.camps().len());
        Self { towns, townsfolk, camps, monsters }
    }
}

/// Fills a world with NPCs and things. The resources must be in it already.
pub fn spawn(world: &mut World, npcs: usize, landscape: &Landscape, rng: &mut Xoshiro256PlusPlus) {
    let plan = Plan::of(npcs, landscape);
    let camps = plan.camps + plan.towns;
    let mut minds = Minds { mailboxes: Mailboxes::new(camps), awake_until: vec![0; camps], ..Minds::default() };
    minds.camps.extend_from_slice(&landscape.camps()[..plan.camps]);
    minds.camps.extend_from_slice(&landscape.towns()[..plan.towns]);
    world.insert_resource(minds);

    for index in 0..plan.monsters {
        let camp = index * plan.camps / plan.monsters;
        let company = COMPANIES[camp % COMPANIES.len()];
        let kind = company[index % company.len()];
        let level = rng.random_range(1..=30);
        let home = scatter(landscape.camps()[camp], CAMP_RADIUS_M, rng);
        add_npc(world, kind, level, home, camp, rng);
    }
    for index in 0..plan.townsfolk {
        let town = index % plan.towns;
        let kind = if index / plan.towns < BANKERS_PER_TOWN { Kind::Banker } else { Kind::Guard };
        let radius_m = if kind == Kind::Banker { 12.0 } else { 45.0 };
        let home = scatter(landscape.towns()[town], radius_m, rng);
        add_npc(world, kind, 40, home, plan.camps + town, rng);
    }
    for town in &landscape.towns()[..plan.towns] {
        for door in 0..DOORS_PER_TOWN {
            let (sin, cos) = (door as f32 * std::f32::consts::TAU / DOORS_PER_TOWN as f32).sin_cos();
            add_thing(world, Kind::Door, [town[0] + 20.0 * sin, town[1] + 20.0 * cos]);
        }
    }
    for camp in &landscape.camps()[..plan.camps] {
        let (sin, cos) = rng.random_range(0.0..std::f32::consts::TAU).sin_cos();
        add_thing(world, Kind::Node, [camp[0] + NODE_AWAY_M * sin, camp[1] + NODE_AWAY_M * cos]);
    }
}

/// Adds an NPC, before any other kind of actor.
pub fn add_npc(
    world: &mut World,
    kind: Kind,
    level: u8,
    home: [f32; 2],
    camp: usize,
    rng: &mut Xoshiro256PlusPlus,
) -> u32 {
    let look = Look { kind, level, variety: rng.random_range(0..32) };
    let heading = rng.random_range(0.0..std::f32::consts::TAU);
    let mut actors = world.resource_mut::<Actors>();
    let index = actors.add(look, home, heading);
    let filtered = kind == Kind::Stalker;
    actors[index].filtered = filtered;
    if filtered {
        actors.sneaking.insert(index);
    }
    let mut minds = world.resource_mut::<Minds>();
    assert_eq!(index as usize, minds.rows.len(), "NPCs come before all others");
    minds.rows.push(Mind::new(home, camp as u16));
    embody(world, index, filtered);
    index
}

/// Adds a door or a node.
pub fn add_thing(world: &mut World, kind: Kind, place: [f32; 2]) -> u32 {
    let look = Look { kind, level: 1, variety: 0 };
    let mut actors = world.resource_mut::<Actors>();
    let index = actors.add(look, place.map(within_edge), 0.0);
    actors[index].stock = if kind == Kind::Node { NODE_STOCK } else { 0 };
    embody(world, index, false);
    index
}

fn scatter(middle: [f32; 2], radius_m: f32, rng: &mut Xoshiro256PlusPlus) -> [f32; 2] {
    let (sin, cos) = rng.random_range(0.0..std::f32::consts::TAU).sin_cos();
    // The root spreads them evenly over the disc.
    let away_m = radius_m * rng.random_range(0.0_f32..1.0).sqrt();
    [middle[0] + sin * away_m, middle[1] + cos * away_m].map(within_edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_home() {
        let landscape = Landscape::load();
        for npcs in [0, 5, 12, 13, 200, 2_000, 10_000, 40_000] {
            let plan = Plan::of(npcs, &landscape);
            assert_eq!(plan.townsfolk + plan.monsters, npcs);
            assert!(plan.camps <= landscape.camps().len());
            assert!(plan.monsters == 0 || plan.camps > 0);
        }
        assert_eq!(Plan::of(10_000, &landscape), Plan { towns: 8, townsfolk: 96, camps: 551, monsters: 9_904 });
    }
}
