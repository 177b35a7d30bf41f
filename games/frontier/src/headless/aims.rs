//! Strikes and spells at what a player saw: it was in reach and in sight then, and the limits of that. Beside each promise
//! is a player who is judged by the present.

use throng_platform::time::Nanos;

use super::*;

/// 200 ms.
const CLAMP_TICKS: u32 = 4;

/// What a client says that it was shown so many ticks before the newest that it can have been told of.
fn seen(zone: &Headless, ago: u32) -> SeenMoment {
    let newest_tick = zone.world.ticks_done() - 1;
    let round_trip = Nanos::from_secs(1);
    SeenMoment { tick: newest_tick - ago, part: 0, newest_tick, acked_tick: 0, round_trip }
}

/// A player beside a brute that cannot move, and has been its target for a while.
fn beside_a_brute() -> (Headless, u32) {
    let mut zone = Headless::scene(&[(Kind::Brute, [2.0, 0.0])], 1);
    zone.actor_mut(0).clocks.stunned = u32::MAX / 2;
    zone.put(0, [2.0, 0.0]);
    zone.target(0, 0);
    zone.ticks(10);
    (zone, 0)
}

/// Whether a player strikes at a brute that was taken out of its reach so many ticks ago, and that it saw some ticks ago.
fn strikes(gone_ticks: u32, seen_ago: u32) -> bool {
    let (mut zone, brute) = beside_a_brute();
    zone.put(brute, [20.0, 0.0]);
    zone.ticks(gone_ticks);
    let before = zone.tally().of("swings");
    let seen = seen(&zone, seen_ago);
    zone.world.input_seen(ClientKey(0), &standing().attacking(true), seen);
    zone.tick();
    zone.tally().of("swings") > before
}

#[test]
fn a_player_strikes_at_whom_it_saw_in_its_reach() {
    assert!(strikes(2, 2), "two ticks ago it was there");
    assert!(!strikes(2, 0), "who sees the present misses");
    assert!(!strikes(2, 1));
}

#[test]
fn what_a_player_saw_a_second_ago_is_no_more() {
    assert!(strikes(CLAMP_TICKS, CLAMP_TICKS));
    assert!(strikes(CLAMP_TICKS, 10), "it is judged as far back as anybody is");
    assert!(!strikes(CLAMP_TICKS + 1, 10), "and no further");
}

#[test]
fn nobody_sees_what_was_before_what_it_struck_at_last() {
    let strike = |zone: &mut Headless, ago| {
        let player = zone.player(0);
        zone.actor_mut(player).swing_tick = 0;
        let before = zone.tally().of("swings");
        let seen = seen(zone, ago);
        zone.world.input_seen(ClientKey(0), &standing().attacking(true), seen);
        zone.tick();
        zone.tally().of("swings") > before
    };
    let strikes_at_last = |has_looked: bool| {
        let (mut zone, brute) = beside_a_brute();
        assert!(strike(&mut zone, 0));
        zone.put(brute, [20.0, 0.0]);
        zone.tick();
        if has_looked {
            assert!(!strike(&mut zone, 0), "it is gone");
        } else {
            zone.tick();
        }
        strike(&mut zone, 3)
    };
    assert!(!strikes_at_last(true), "he has seen that");
    assert!(strikes_at_last(false), "he may not have seen it yet");
}

/// A bolt takes 1.5 s, so what counts is what its caster is shown at its end.
#[test]
fn a_bolt_reaches_whom_its_caster_saw_in_range_when_it_was_done() {
    let lands = |seen_ago: u32| {
        let (mut zone, brute) = beside_a_brute();
        let player = zone.player(0);
        zone.input(0, standing().casting(Ability::Bolt));
        zone.tick();
        let ends_tick = zone.actor(player).casting.expect("it was begun").ends_tick;
        while zone.world.ticks_done() + 2 < ends_tick {
            zone.tick();
        }
        zone.put(brute, [70.0, 0.0]);
        zone.ticks(2);
        let (hits, failed) = (zone.tally().of("hits"), zone.tally().of("casts_failed"));
        let seen = seen(&zone, seen_ago);
        zone.world.input_seen(ClientKey(0), &standing(), seen);
        zone.tick();
        assert!(zone.actor(player).casting.is_none(), "it is done");
        (zone.tally().of("hits") - hits, zone.tally().of("casts_failed") - failed)
    };
    assert_eq!(lands(2), (1, 0));
    assert_eq!(lands(0), (0, 1), "70 m are too far");
}
