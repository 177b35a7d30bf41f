//! The promise: what budgets and rules call `ai` is what all systems of NPCs take, and `precinct.players` what those of
//! players take.

use precinct::{level::Level, scene::Shared, schema, worlds::DarkZone};
use throng::prelude::*;
use throng_profiler::{pool::PoolSettings, site, start_recording};
use throng_world::testing::TestWorld;

#[test]
fn the_systems_of_npcs_are_one_subsystem_and_those_of_players_another() {
    start_recording(PoolSettings { blocks_max: 64, reserve: 4, history: u64::MAX });
    let shared = Shared::new(Level::load(), 1);
    let here = WorldId::new(1, 0);
    shared.worlds.set(WorldId::new(0, 0), here);
    let zone = DarkZone { shared, npcs: 20, keep_awake: false };
    let mut zone = TestWorld::with_id(zone, &schema(), here, 1, None);
    zone.arrive(ClientKey(1));
    zone.ticks(60);
    let subsystems = site::subsystems();
    for named in ["ai", "precinct.players"] {
        assert!(subsystems.contains(&named), "{named} is none of {subsystems:?}");
    }
    let others: Vec<_> = subsystems.iter().filter(|name| name.starts_with("precinct.npc")).collect();
    assert!(others.is_empty(), "in no budget: {others:?}");
}
