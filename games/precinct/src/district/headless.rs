//! Districts without a server: the world that ships, with scripted players.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::prelude::*;
use throng_pack::envelope;
use throng_query::geometry::Aabb;
use throng_query::nav::WalkOutcome;
use throng_query::nav::sectors::{Damage, SectorStore};
use throng_world::testing::{TestWorld, goes_on_alike_after_a_load};

use super::{charges::Charges, level, streaming::Streets, *};
use crate::worlds::schema;

fn district(store: &Arc<SectorStore>, ordinal: u16, npcs: u16) -> TestWorld {
    let mut plan = Vec::new();
    envelope::write(&DistrictPlan { ordinal, npcs }, &mut plan).unwrap();
    let kind = District { store: store.clone(), keep_awake: false };
    TestWorld::with_id(kind, &schema(), WorldId::new(2, 0), 7, Some(&plan))
}

fn player(world: &TestWorld, client: u32) -> Entity {
    world.ecs().resource::<Inbox>().players().entity(ClientKey(client)).expect("it is there")
}

fn arrive(world: &mut TestWorld, client: u32) -> Entity {
    world.arrive(ClientKey(client));
    world.ticks(40);
    player(world, client)
}

fn streets(world: &TestWorld) -> &Streets {
    world.ecs().resource::<Streets>()
}

#[test]
fn who_arrives_gets_ground_and_walks_over_sides() {
    let store = level::store();
    let mut world = district(&store, 0, 30);
    world.tick();
    assert_eq!(streets(&world).sectors.resident().count(), 0, "nothing is baked for nobody");
    let own = arrive(&mut world, 1);
    assert!(world.ecs().get::<Footing>(own).unwrap().0.is_some());
    let held = streets(&world).sectors.resident().count();
    assert!((9..30).contains(&held), "{held}");
    let mut sectors = std::collections::BTreeSet::new();
    let mut heading = 0.3_f32;
    let mut last = world.ecs().get::<FarPose>(own).unwrap().feet();
    for tick in 0..1_200 {
        world.input(ClientKey(1), &Input::new([heading.sin(), heading.cos()], heading, 0.0, false, true));
        world.tick();
        let feet = world.ecs().get::<FarPose>(own).unwrap().feet();
        if tick % 10 == 9 {
            heading += if feet.distance(last) < 1.0 { 2.0 } else { 0.0 };
            last = feet;
        }
        sectors.insert(world.ecs().get::<Footing>(own).unwrap().0.unwrap().sector());
        streets(&world).sectors.check();
    }
    assert!(sectors.len() >= 3, "{sectors:?}");
    let counts = streets(&world).sectors.counts();
    assert!(counts.released > 0 && counts.streamed > held as u64, "{counts:?}");
    let counted = world.counted();
    assert!(counted.of("errands_over_sides") > 20 && counted.of("sides_crossed") > 20);
    // Yards are closed until somebody blows their gates away, so many errands end before one.
    assert!(counted.of("errands_complete") > 20 && counted.of("errands_complete") < counted.of("errands"));

    world.leave(ClientKey(1));
    world.ticks(20);
    assert!(streets(&world).sectors.is_empty() && world.ecs().resource::<MayBeDormant>().0);
    let idle = store.counts();
    assert!(idle.bytes <= store.limits().idle_bytes_max, "{idle:?}");
}

/// Whether the way from one side of a box to the other is open.
fn is_open(world: &TestWorld, gate: &Aabb) -> bool {
    let across = if gate.size_m().x > gate.size_m().z { Vec3::Z } else { Vec3::X };
    let middle = gate.center().with_y(0.0);
    let sectors = &streets(world).sectors;
    let from = sectors.nearest(middle - across * 2.0, 1.0).expect("there is ground before it");
    sectors.walk_straight(from, middle + across * 2.0).unwrap().outcome == WalkOutcome::Arrived
}

/// Promise: a charge opens a gate in its own district, and in no other.
#[test]
fn a_charge_opens_a_gate_in_one_district_alone() {
    let store = level::store();
    let [mut one, mut other] = [0, 0].map(|ordinal| district(&store, ordinal, 0));
    let own = arrive(&mut one, 1);
    arrive(&mut other, 1);
    let feet = one.ecs().get::<FarPose>(own).unwrap().feet();
    let is_gate = |solid: &&Aabb| solid.size_m().y == 3.0 && solid.center().distance(feet) < 80.0;
    let weak = &level::solids().boxes[level::solids().first_weak as usize..];
    let gate = *weak.iter().find(is_gate).expect("there is a gate within sight");
    assert!(!is_open(&one, &gate) && !is_open(&other, &gate));
    let baked = store.counts().baked;
    let due = one.ecs().resource::<TickInfo>().tick + 1;
    assert!(one.ecs_mut().resource_mut::<Charges>().lay(gate.center().with_y(0.0), due));
    one.ticks(1);
    assert!(!is_open(&one, &gate), "the old ground answers until the new one is there");
    one.ticks(20);
    other.ticks(20);
    assert!(is_open(&one, &gate) && !is_open(&other, &gate));
    let counts = store.counts();
    assert!(counts.damaged >= 1 && counts.baked == baked, "{counts:?}");
    assert!(streets(&one).sectors.damage().contains(&Damage::Removed { solid: solid_of(&gate) }));
    assert!(streets(&other).sectors.damage().is_empty());
    drop((one, other));
    assert_eq!((store.counts().damaged, store.counts().damaged_bytes), (0, 0));
}

fn solid_of(gate: &Aabb) -> u32 {
    level::solids().boxes.iter().position(|solid| solid == gate).unwrap() as u32
}

#[test]
fn a_charge_hurts_who_is_near_and_brings_rubble_down_where_nothing_is_weak() {
    let store = level::store();
    let mut world = district(&store, 3, 0);
    let own = arrive(&mut world, 1);
    let feet = world.ecs().get::<FarPose>(own).unwrap().feet();
    let mut place = None;
    for number in 0..200 {
        let (sin, cos) = (number as f32).sin_cos();
        let there = feet + Vec3::new(sin, 0.0, cos) * (2.0 + number as f32 * 0.3);
        let around = Aabb::new(there - Vec3::splat(6.0), there + Vec3::splat(6.0));
        let mut is_bare = true;
        store.level().geometry().each_overlapping(&around, |solid| is_bare &= !level::is_weak(solid));
        if is_bare && streets(&world).sectors.nearest(there, 0.3).is_ok() {
            place = Some(there);
            break;
        }
    }
    let place = place.expect("there is a bare place");
    let due = world.ecs().resource::<TickInfo>().tick + 1;
    let mut ecs = world.ecs_mut();
    ecs.resource_mut::<Charges>().lay(place, due);
    let ground = ecs.resource::<Streets>().sectors.nearest(place, 0.3).unwrap();
    ecs.get_mut::<Footing>(own).unwrap().0 = Some(ground);
    ecs.get_mut::<FarPose>(own).unwrap().set_feet(ground.position());
    world.tick();
    ecs = world.ecs_mut();
    assert!(!ecs.get::<Vitals>(own).unwrap().alive);
    assert_eq!(ecs.resource::<Streets>().sectors.damage().len(), 1);
    world.ticks(20);
    let sectors = &streets(&world).sectors;
    assert!(sectors.nearest(place, 0.3).is_err(), "nobody walks through a heap");
    world.ticks(100);
    assert!(world.ecs().get::<Vitals>(own).unwrap().alive, "it begins its next life");
}

/// Promise: a district that is made again after a panic has its damage, and goes on alike.
#[test]
fn a_district_goes_on_alike_after_a_load() {
    let store = level::store();
    let play = |world: &mut TestWorld, tick: u32| {
        if tick == 0 {
            world.arrive(ClientKey(1));
            world.arrive(ClientKey(2));
        }
        let heading = (tick / 30) as f32;
        let input = Input::new([heading.sin(), heading.cos()], heading, 0.0, tick.is_multiple_of(17), true);
        for client in [1, 2] {
            world.input(ClientKey(client), &input);
        }
    };
    for saved_at in [3, 41, 200] {
        goes_on_alike_after_a_load(|| district(&store, 1, 12), saved_at, 120, play);
    }
    let mut world = district(&store, 1, 12);
    for tick in 0..320 {
        play(&mut world, tick);
        world.tick();
    }
    assert!(!streets(&world).sectors.damage().is_empty() && store.counts().damaged > 0, "there was something to keep");
}
