//! Doors in worlds that ship: whom and what a closed one stops, who opens it, and that it shuts again.

use throng_query::nav::WalkOutcome;

use super::*;
use crate::{components::Door, doors::OPEN_MS, level::Doorway};

/// How near the middle of a closed door the middle of a body can be. (m)
const CLOSED_M: f32 = 0.6;

/// A doorway with free ground on both sides, and a place `apart_m` before and behind it.
fn doorway(apart_m: f32) -> (Doorway, Vec3, Vec3) {
    let Level { navmesh, doorways, .. } = &*shared().level;
    let free = doorways.iter().find_map(|doorway| {
        let [one, other] = [-apart_m, apart_m].map(|metres| doorway.middle() + across(doorway) * metres);
        let from = navmesh.nearest(one, 0.3).ok()?;
        let walk = navmesh.walk_straight(from, other);
        (walk.outcome == WalkOutcome::Arrived).then(|| (*doorway, from.position(), walk.end.position()))
    });
    free.expect("some doorway has nothing before it")
}

fn across(doorway: &Doorway) -> Vec3 {
    Vec3::new(doorway.along.z, 0.0, doorway.along.x)
}

/// How far somebody is from a doorway's line, with the side as sign, and how far along it from its middle. (m)
fn beside(doorway: &Doorway, feet: Vec3) -> (f32, f32) {
    let way = feet - doorway.middle();
    (way.dot(across(doorway)), way.dot(doorway.along).abs())
}

/// What clients are told: how many doors are open.
fn told_open(zone: &mut Headless) -> usize {
    zone.ecs_mut().query::<&Door>().iter(zone.world.ecs()).filter(|door| door.open).count()
}

#[test]
fn a_closed_door_stops_a_player_until_it_opens_it() {
    let (doorway, before, behind) = doorway(2.0);
    let mut zone = Headless::new(Destination::DarkZone, 0, 1);
    let player = zone.arrive(1);
    let way = (behind - before).normalize();
    let walk = Input::new([way.x, way.z], 0.0, 0.0, false, true);
    let aside_m = |zone: &Headless| beside(&doorway, zone.get::<Pose>(player).feet()).0;

    // In the middle of a crossing there is none to open.
    zone.put(player, Vec3::new(16.0, 0.0, 16.0));
    zone.input(1, &Input::default().and_grip());
    zone.tick();
    assert_eq!(zone.tally().of("doors_opened_by_players"), 0);

    zone.put(player, before);
    for _ in 0..60 {
        zone.input(1, &walk);
        zone.tick();
        zone.check();
        assert!(aside_m(&zone) < -CLOSED_M + 0.01, "{}", aside_m(&zone));
    }
    for _ in 0..60 {
        zone.input(1, &walk.and_grip());
        zone.tick();
        assert_eq!((zone.tally().standing("doors_open"), told_open(&mut zone)), (1, 1), "and stays open");
    }
    assert!(aside_m(&zone) > CLOSED_M, "{}", aside_m(&zone));
    assert_eq!(zone.tally().of("doors_opened_by_players"), 1, "once, however long the button is held");

    zone.ticks(ticks_of(OPEN_MS, zone.tick_hz));
    assert_eq!((zone.tally().standing("doors_open"), told_open(&mut zone)), (0, 0), "by itself");
}

#[test]
fn a_door_does_not_shut_on_who_stands_in_it() {
    let (doorway, before, _) = doorway(2.0);
    let mut zone = Headless::new(Destination::Hub, 0, 1);
    let player = zone.arrive(1);
    zone.put(player, before);
    zone.input(1, &Input::default().and_grip());
    zone.tick();
    zone.put(player, doorway.middle());
    zone.ticks(4 * ticks_of(OPEN_MS, zone.tick_hz));
    assert_eq!(told_open(&mut zone), 1);
    zone.put(player, before);
    zone.ticks(u32::from(zone.tick_hz));
    assert_eq!(told_open(&mut zone), 0);
}

#[test]
fn a_closed_door_stops_shots_until_it_is_open() {
    let (_, before, behind) = doorway(2.0);
    let mut zone = Headless::new(Destination::DarkZone, 0, 2);
    let (one, other) = (zone.arrive(1), zone.arrive(2));
    zone.put(one, before);
    zone.put(other, behind);
    zone.tick();
    assert!(!exact_shot(&mut zone, one, other, WeaponKind::Rifle));
    zone.input(1, &Input::default().and_grip());
    zone.tick();
    assert!(exact_shot(&mut zone, one, other, WeaponKind::Rifle));
    zone.ticks(ticks_of(OPEN_MS, zone.tick_hz));
    assert!(!exact_shot(&mut zone, one, other, WeaponKind::Rifle), "it has shut");
}

/// Promise: whoever walks from one side of a door to the other does so while it is open.
#[test]
fn npcs_open_the_doors_in_their_way_and_walk_through_no_closed_one() {
    let mut hub = Headless::new(Destination::Hub, 80, 6);
    let closed = |hub: &Headless| -> Vec<Doorway> {
        let doors = hub.ecs().resource::<Arena>().doors.iter();
        doors.filter(|(_, open)| !open).map(|(doorway, _)| doorway).collect()
    };
    let places = |hub: &mut Headless| -> Vec<Vec3> {
        let mut query = hub.ecs_mut().query::<(&Slot, &Pose)>();
        let mut places = vec![Vec3::NAN; 80];
        query.iter(hub.world.ecs()).for_each(|(slot, pose)| places[slot.index()] = pose.feet());
        places
    };
    hub.tick();
    let (mut closed_before, mut places_before) = (closed(&hub), places(&mut hub));
    assert_eq!(closed_before.len(), shared().level.doorways.len(), "all are hung, and closed");
    let mut passed = 0;
    for _ in 0..1_200 {
        hub.tick();
        let (closed_after, places_after) = (closed(&hub), places(&mut hub));
        for doorway in &shared().level.doorways {
            let is_closed = closed_before.contains(doorway) && closed_after.contains(doorway);
            for (before, after) in places_before.iter().zip(&places_after) {
                let ((from_m, from_along_m), (to_m, to_along_m)) = (beside(doorway, *before), beside(doorway, *after));
                let is_step = before.distance(*after) < 2.0 && from_along_m.max(to_along_m) < 1.5;
                // Who began in a doorway may walk out.
                if is_step && from_m.abs() > CLOSED_M && from_m.abs() - to_m * from_m.signum() > 0.02 {
                    assert!(!is_closed || to_m * from_m.signum() > CLOSED_M - 0.02, "{before} to {after}: {doorway:?}");
                    passed += u32::from(to_m * from_m < 0.0 || to_m.abs() < CLOSED_M);
                }
            }
        }
        (closed_before, places_before) = (closed_after, places_after);
    }
    hub.check();
    let opened = hub.tally().of("doors_opened_by_npcs");
    println!("{opened} doors opened, {passed} steps into an open one");
    assert!(opened > 0 && passed > 0, "{opened} opened, {passed} steps into one");
    assert!((hub.tally().standing("doors_open") as usize) < shared().level.doorways.len());
}
