//! What shots hit: what their shooter saw, nothing behind a wall, and no friend; and what grenades do.

use throng_platform::time::Nanos;

use super::*;
use crate::{
    components::HEALTH_MAX,
    map::layout::middle_of,
    protocol::{Blinded, Grenade, TICK_HZ, Throw},
    sight::Bodies,
    smoke::Smoke,
    throwing::PAUSE_MS,
    weapons::ticks_of,
};

/// A match that is played, with the two at these places, and rifles in their hands.
fn at(attacker: Vec3, defender: Vec3) -> Headless {
    let mut game = Headless::duel();
    game.until(Phase::Live);
    game.put(ATTACKER, attacker);
    game.put(DEFENDER, defender);
    game.arm(ATTACKER, WeaponKind::Rifle);
    game.arm(DEFENDER, WeaponKind::Rifle);
    game.ticks(40);
    game
}

#[test]
fn a_shot_through_a_wall_hits_nothing() {
    let mut game = at(middle_of(10, 12), middle_of(10, 4));
    game.shoot(ATTACKER, DEFENDER, 100);
    assert!(game.counted("shots") >= 5, "{}", game.counted("shots"));
    assert_eq!((game.counted("hits"), game.get::<Vitals>(DEFENDER).health), (0, HEALTH_MAX));
    // The same without a wall between.
    game.put(DEFENDER, middle_of(17, 12));
    // Until the weapon has come down.
    game.ticks(200);
    game.shoot(ATTACKER, DEFENDER, 100);
    assert!(game.counted("hits") > 0);
}

#[test]
fn a_friend_stops_a_shot_and_is_not_hurt() {
    let mut game = Headless::new(RULES, &[0, 1, DEFENDER], 1);
    game.until(Phase::Live);
    for (seat, column) in [(0, 8), (1, 10), (DEFENDER, 13)] {
        game.put(seat, middle_of(column, 12));
        game.arm(seat, WeaponKind::Rifle);
    }
    game.ticks(40);
    game.shoot(0, DEFENDER, 20);
    assert!(game.counted("shots") > 0 && game.counted("hits") == 0);
    assert_eq!(game.get::<Vitals>(1).health, HEALTH_MAX);
}

#[test]
fn a_head_is_hit_harder_than_a_body() {
    let health_after = |height_m: f32| {
        let mut game = at(middle_of(10, 12), middle_of(13, 12));
        let target = game.get::<Motion>(DEFENDER).at + Vec3::Y * height_m;
        let input = game.aim(ATTACKER, target).and_fire();
        game.hold(ATTACKER, input);
        game.tick();
        assert_eq!((game.counted("shots"), game.counted("hits")), (1, 1), "{height_m} m");
        game.get::<Vitals>(DEFENDER).health
    };
    assert_eq!((health_after(1.67), health_after(1.2)), (0, HEALTH_MAX - 40));
}

/// A claim to have seen the world so many ticks ago, on a line of 100 ms.
fn seen(game: &Headless, ago: u32) -> SeenMoment {
    let newest = game.world.ticks_done() - 1;
    let (tick, round_trip) = (newest - ago, Nanos::from_millis(100));
    SeenMoment { tick, part: 0, newest_tick: newest - ago + 2, acked_tick: newest - ago + 1, round_trip }
}

/// Has the defender cross in front of the attacker, who shoots at where it was so many ticks ago and says that it saw
/// it at `claimed` ticks ago; whether that hit.
fn hits_at(ago: u32, claimed: u32) -> bool {
    let mut game = at(middle_of(18, 4), middle_of(22, 4));
    let mut places = Vec::new();
    game.hold(DEFENDER, Input::new([0.0, 1.0], 0.0, 0.0));
    for _ in 0..60 {
        game.tick();
        places.push(game.get::<Motion>(DEFENDER).at);
    }
    let was_at = places[places.len() - 1 - ago as usize];
    let input = game.aim(ATTACKER, was_at + Vec3::Y * 1.25).and_fire();
    let seen = seen(&game, claimed);
    game.world.input_seen(client(ATTACKER), &input, seen);
    game.tick();
    assert_eq!(game.counted("shots"), 1);
    game.counted("hits") == 1
}

/// Promise: what a player saw and aimed at is hit, though it has gone on since; and what it did not see is not.
#[test]
fn a_shot_is_judged_by_what_its_shooter_saw() {
    assert!(hits_at(0, 0), "what is there now");
    assert!(hits_at(20, 20), "what was there 160 ms ago");
    assert!(!hits_at(20, 0), "it was not seen there");
    assert!(!hits_at(0, 20), "it was not there yet");
    assert!(!hits_at(50, 50), "nobody is believed to see what is older than 200 ms");
}

/// Has the attacker appear beside the defender, who stands at its base, with the first tick of play, and shoot as soon
/// as it may at what it saw 12 ticks before; whether that hit.
fn hits_at_once(rules: MatchRules) -> bool {
    let mut game = Headless::new(MatchRules { warm_up_ticks: 40, ..rules }, &[ATTACKER, DEFENDER], 1);
    game.until(Phase::Live);
    game.put(ATTACKER, game.get::<Motion>(DEFENDER).at - Vec3::X * 4.0);
    game.arm(ATTACKER, WeaponKind::Rifle);
    let input = game.aim(ATTACKER, game.get::<Motion>(DEFENDER).at + Vec3::Y * 1.25).and_fire();
    let seen = seen(&game, 12);
    game.world.input_seen(client(ATTACKER), &input, seen);
    game.tick();
    assert_eq!((game.counted("shots"), game.counted("shots.unrecorded")), (1, 0));
    game.counted("hits") == 1
}

/// Promise: who shoots as soon as it may hits what it saw, though that was before the round was played.
#[test]
fn the_first_shot_of_a_round_hits_what_its_shooter_saw() {
    assert!(hits_at_once(RULES), "in the phase in which one buys");
    assert!(hits_at_once(MatchRules { buy_ticks: 0, ..RULES }), "there is none: where it stood up");
}

/// Promise: while nobody can be hurt nothing is recorded and no pose sampled, and nobody is hit.
#[test]
fn a_phase_to_buy_costs_no_poses_and_hurts_nobody() {
    let mut game = Headless::duel();
    let counts = |game: &Headless| game.world.ecs().resource::<crate::past::Past>().history.counts();
    game.until(Phase::Buy);
    game.put(DEFENDER, game.get::<Motion>(ATTACKER).at + Vec3::Z * 4.0);
    game.shoot(ATTACKER, DEFENDER, 30);
    assert_eq!((counts(&game).placed, counts(&game).poses, game.counted("shots")), (0, 0, 0));
    game.until(Phase::Live);
    let before = counts(&game);
    game.ticks(128);
    let after = counts(&game);
    assert_eq!(after.placed - before.placed, 256);
    assert!((60..=68).contains(&(after.poses - before.poses)), "one tick in four: {after:?}");
}

#[test]
fn a_flash_blinds_who_looks_at_it_and_a_smoke_becomes_a_cloud() {
    let mut game = at(middle_of(8, 12), middle_of(18, 12));
    game.edit::<Purse>(ATTACKER, |purse| (purse.smokes, purse.flashes) = (1, 1));
    let input = game.aim(ATTACKER, middle_of(16, 12) + Vec3::Y * 3.0);
    game.hold(ATTACKER, input);
    let input = game.aim(DEFENDER, middle_of(8, 12) + Vec3::Y * 1.6);
    game.hold(DEFENDER, input);
    game.tick();
    game.world.request(client(ATTACKER), &Throw { grenade: Grenade::Flash });
    let mut blinded = Vec::new();
    for _ in 0..200 {
        game.tick();
        blinded.extend(game.world.told::<Blinded>(client(DEFENDER)));
        if !blinded.is_empty() {
            let blind = game.world.ecs().resource::<Bodies>().blind;
            assert_eq!(blind >> DEFENDER & 1, 1);
            break;
        }
    }
    assert_eq!(blinded.len(), 1, "it looks that way");
    for _ in 0..2 {
        game.world.request(client(ATTACKER), &Throw { grenade: Grenade::Smoke });
        game.ticks(ticks_of(PAUSE_MS, TICK_HZ));
    }
    game.ticks(100);
    assert_eq!(game.world.ecs().resource::<Smoke>().clouds.len(), 1, "it had one");
    assert_eq!(game.get::<Purse>(ATTACKER).smokes, 0);
    game.ticks(RULES.round_ticks);
    assert_eq!(game.world.ecs().resource::<Smoke>().clouds.len(), 0);
}
