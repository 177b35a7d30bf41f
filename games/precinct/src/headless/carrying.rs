//! What a player carries: through portals, into its weapon, off the ground.

use super::*;
use crate::{
    gear::Bag,
    inventory::{Inventory, Item},
    loot::LIES_MS,
    travel::{Facing, PLAYER_WEAPON, Passage},
    weapons::CarriedWeapon,
};

/// Somebody who stands up at a spawn point with the usual equipment.
pub(super) fn traveller(health: u8, passport: Passport) -> Traveller {
    Traveller {
        health,
        passport,
        passage: None,
        facing: Facing::default(),
        weapon: CarriedWeapon::loaded(PLAYER_WEAPON),
        inventory: Inventory::usual(PLAYER_WEAPON),
        bag: Bag::default(),
    }
}

fn faye(home: Option<u16>) -> Traveller {
    traveller(60, Passport { home, name: PlayerName::new("Faye").unwrap(), kills: 3, deaths: 1 })
}

/// Everywhere but at home.
const AWAY: Option<u16> = Some(9);

#[test]
fn who_comes_through_a_portal_stands_before_the_one_that_leads_back_with_all_that_is_its_own() {
    let mut zone = Headless::new(Destination::DarkZone, 0, 1);
    let mut inventory = Inventory::default();
    inventory.add(Item::RifleRounds, 77);
    inventory.add(Item::Credits, 1_234);
    let carried = Traveller {
        passage: Some(Passage { left: Destination::Hub, through: Destination::DarkZone }),
        facing: Facing { yaw: 0.5, pitch: -0.25 },
        weapon: CarriedWeapon { kind: WeaponKind::Marksman, rounds: 3, busy_ms: 400 },
        inventory,
        ..faye(AWAY)
    };
    let player = zone.arrive_with(1, carried);
    let back = shared().portals.to(Destination::Hub);
    let pose = zone.get::<Pose>(player);
    assert!(!back.holds(pose.feet()) && pose.feet().distance(back.middle) < 4.0, "{pose:?}");
    let away = pose.feet() - back.middle;
    let turned = (pose.yaw - away.x.atan2(away.z) - 0.5).rem_euclid(std::f32::consts::TAU);
    assert!(turned.min(std::f32::consts::TAU - turned) < 1e-4, "{turned}");
    assert_eq!(zone.get::<Inventory>(player), inventory);
    let weapon = zone.get::<Weapon>(player);
    assert_eq!((weapon.kind, weapon.rounds), (WeaponKind::Marksman, 3));
    assert!(!weapon.is_ready(11) && weapon.is_ready(12), "0.4 s are 12 ticks of 30 Hz");
    assert_eq!(zone.get::<Character>(player).weapon, WeaponKind::Marksman);
    assert_eq!(zone.get::<Passport>(player), carried.passport);

    // It stays there, however long it stands still, and is not sent back.
    zone.ticks(60);
    assert_eq!((zone.get::<Pose>(player), zone.tally().of("travels")), (pose, 0));
}

#[test]
fn who_was_turned_back_comes_out_where_it_went_in() {
    let mut hub = Headless::new(Destination::Hub, 0, 1);
    let passage = Some(Passage { left: Destination::Hub, through: Destination::DarkZone });
    let player = hub.arrive_with(1, Traveller { passage, ..faye(AWAY) });
    let portal = shared().portals.to(Destination::DarkZone);
    let feet = hub.get::<Pose>(player).feet();
    assert!(!portal.holds(feet) && feet.distance(portal.middle) < 4.0, "{feet}");
    hub.ticks(20);
    assert_eq!((hub.tally().of("travels"), hub.tally().of("turned_back")), (0, 1));
}

#[test]
fn a_crowd_that_comes_through_one_portal_does_not_stand_in_one_place() {
    let mut hub = Headless::new(Destination::Hub, 0, 1);
    let passage = Some(Passage { left: Destination::DarkZone, through: Destination::Hub });
    let players: Vec<Entity> =
        (0..12).map(|client| hub.arrive_with(client, Traveller { passage, ..faye(AWAY) })).collect();
    for (index, one) in players.iter().enumerate() {
        for other in &players[index + 1..] {
            let apart_m = hub.get::<Pose>(*one).feet().distance(hub.get::<Pose>(*other).feet());
            assert!(apart_m > 0.8, "{apart_m} m");
        }
    }
}

/// What happens to a player in the tick in which it enters a portal goes with it, and who dies in it stays.
#[test]
fn who_is_shot_dead_in_the_portal_stays() {
    let (mut zone, one, other) = duel(Destination::DarkZone, 8.0);
    zone.ticks(1);
    zone.put(other, shared().portals.to(Destination::Hub).middle);
    zone.put(one, shared().portals.to(Destination::Hub).middle + Vec3::Z * 5.0);
    zone.ecs_mut().get_mut::<Vitals>(other).unwrap().health = 1;
    let (from, to) = (zone.get::<Pose>(one).feet(), zone.get::<Pose>(other).feet());
    zone.tick();
    assert_eq!(zone.tally().of("travels"), 1, "nobody shot: it is gone");
    assert!(zone.ecs().get_entity(other).is_err());

    let (mut zone, one, other) = duel(Destination::DarkZone, 8.0);
    zone.ticks(1);
    zone.put(other, to);
    zone.put(one, from);
    zone.ecs_mut().get_mut::<Vitals>(other).unwrap().health = 1;
    assert!(exact_shot(&mut zone, one, other, WeaponKind::Rifle));
    assert_eq!(zone.tally().of("travels"), 0);
    assert!(!zone.get::<Vitals>(other).alive);
    assert_eq!(zone.get::<Passport>(other).deaths, 1);
    assert!(zone.ecs().resource::<Arena>().leavers.is_empty());
}

#[test]
fn who_is_taken_by_a_portal_fires_no_more() {
    let mut zone = Headless::new(Destination::DarkZone, 0, 1);
    let player = zone.arrive(1);
    zone.put(player, Vec3::new(16.0, 0.0, 16.0));
    zone.tick();
    zone.put(player, shared().portals.to(Destination::Hub).middle);
    zone.input(1, &Input::new([0.0, 0.0], 0.0, 0.0, true, false));
    zone.tick();
    assert_eq!((zone.tally().of("travels"), zone.tally().of("shots")), (1, 0));
}

/// Rounds are neither made nor lost: what was fired is missing from weapon and pockets together.
#[test]
fn every_shot_away_from_home_is_a_round_that_was_carried() {
    let mut zone = Headless::new(Destination::DarkZone, 0, 1);
    let mut inventory = Inventory::default();
    inventory.add(Item::RifleRounds, 40);
    let player = zone.arrive_with(1, Traveller { inventory, ..faye(AWAY) });
    let fire = Input::new([0.0, 0.0], 0.0, 0.0, true, false);
    for _ in 0..20 * 40 {
        zone.input(1, &fire);
        zone.tick();
        let left = u64::from(zone.get::<Inventory>(player).count(Item::RifleRounds));
        let loaded = u64::from(zone.get::<Weapon>(player).rounds);
        assert_eq!(left + loaded + zone.tally().of("shots"), 70);
    }
    assert_eq!(zone.tally().of("shots"), 70);
    assert!(zone.tally().of("triggers_empty") > 0, "then it only clicks");
}

#[test]
fn nobody_runs_dry_at_home() {
    let mut hideout = Headless::hideout(0, 1);
    let player = hideout.arrive(1);
    let fire = Input::new([0.0, 0.0], 0.0, 0.0, true, false);
    for _ in 0..20 * 120 {
        hideout.input(1, &fire);
        hideout.tick();
        hideout.get::<Inventory>(player).check();
    }
    let tally = hideout.tally();
    assert!(tally.of("shots") > 300, "{tally:?}");
    assert_eq!(tally.of("triggers_empty"), 0);
}

#[test]
fn what_a_fallen_npc_leaves_is_picked_up_and_a_medkit_heals_once() {
    let mut zone = Headless::new(Destination::DarkZone, 1, 1);
    let player = zone.arrive_with(1, Traveller { inventory: Inventory::default(), ..faye(AWAY) });
    let mut npcs = zone.ecs_mut().query_filtered::<Entity, With<Npc>>();
    let npc = npcs.single(zone.ecs()).unwrap();
    let street = Vec3::new(16.0, 0.0, 16.0);
    zone.put(npc, street + Vec3::Z * 6.0);
    zone.put(player, street);
    zone.ecs_mut().get_mut::<Vitals>(npc).unwrap().health = 1;
    zone.ecs_mut().get_mut::<Vitals>(player).unwrap().health = 20;
    assert!(exact_shot(&mut zone, player, npc, WeaponKind::Rifle));
    let body = zone.get::<Pose>(npc).feet();
    assert!(zone.get::<Inventory>(player).is_empty(), "too far away");
    zone.put(player, body);
    zone.tick();
    let pockets = zone.get::<Inventory>(player);
    assert_eq!((pockets.count(Item::Medkit), pockets.count(Item::Credits)), (1, 5), "{pockets:?}");
    assert_eq!(zone.tally().of("pick_ups"), 1);

    let health = zone.get::<Vitals>(player).health;
    let heal = Input::new([0.0, 0.0], 0.0, 0.0, false, false).and_heal();
    for _ in 0..100 {
        zone.input(1, &heal);
        zone.tick();
    }
    assert_eq!(zone.get::<Vitals>(player).health, health + 50);
    assert_eq!((zone.tally().of("medkits_used"), zone.get::<Inventory>(player).count(Item::Medkit)), (1, 0));
    const { assert!(LIES_MS > 5_000, "clients see the body that it lies by for the first while") }
}

#[test]
fn messages_of_worlds_that_cannot_be_read_are_counted_and_do_nothing() {
    let mut hideout = Headless::hideout(0, 1);
    hideout.arrive(1);
    let from = WorldId::new(0, 0);
    for _ in 0..3 {
        hideout.world.post(from, &traveller(50, faye(AWAY).passport)).unwrap();
    }
    hideout.tick();
    assert_eq!(hideout.tally().of("world_messages_refused"), 3);
    assert!(!hideout.ecs().resource::<MayBeDormant>().0);
}
