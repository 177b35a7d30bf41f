//! The state hash: whatever a match keeps from one tick to the next is in it, so a replay that differs is found out.

use rand::RngCore;

use super::*;
use crate::{
    chance::Chance,
    components::Cloud,
    past::Past,
    protocol::{Grenade, Throw},
    seats::{Known, Senses},
    smoke::Smoke,
    throwing::Thrown,
};

fn edit<T: Resource<Mutability = bevy_ecs::component::Mutable>>(game: &mut Headless, edit: impl FnOnce(&mut T)) {
    edit(&mut game.world.ecs_mut().resource_mut::<T>());
}

/// Promise: each thing that a match keeps is in its hash.
#[test]
fn whatever_a_match_keeps_is_in_the_hash() {
    type Edit = fn(&mut Headless);
    let edits: [(&str, Edit); 13] = [
        ("a round won", |game| {
            edit::<Rounds>(game, |rounds| {
                rounds.end_round(crate::components::RoundEnd::TimeRanOut, 0, &RULES);
            })
        }),
        ("who attacks", |game| edit::<Rounds>(game, |rounds| rounds.attackers = rounds.attackers.other())),
        ("where the spike is", |game| {
            edit::<SpikeState>(game, |spike_state| spike_state.spike = Spike::Dropped { x: 1.0, z: 0.0 })
        }),
        ("that it is defused", |game| edit::<SpikeState>(game, |spike_state| spike_state.is_defused = true)),
        ("who sits where", |game| edit::<Seats>(game, |seats| seats.clients.swap(0, 1))),
        ("what they have done", |game| edit::<Seats>(game, |seats| seats.passports[3].kills += 1)),
        ("smoke", |game| edit::<Smoke>(game, |smoke| smoke.add(Cloud { x: 0.0, z: 0.0, until_tick: 1 }))),
        ("what flies", |game| edit::<Thrown>(game, Thrown::clear)),
        ("where everybody was", |game| edit::<Past>(game, |past| past.history.remove(DEFENDER.into()))),
        ("chance", |game| edit::<Chance>(game, |chance| _ = chance.next_u32())),
        ("what a client was told", |game| game.edit::<Known>(DEFENDER, |known| known.rounds += 1)),
        ("a view", |game| game.edit::<Senses>(DEFENDER, |senses| senses.view.acknowledged(u32::MAX))),
        ("health", |game| game.edit::<Vitals>(DEFENDER, |vitals| vitals.health -= 1)),
    ];
    let mut game = Headless::duel();
    game.until(Phase::Live);
    game.edit::<Purse>(ATTACKER, |purse| purse.smokes = 1);
    game.world.request(client(ATTACKER), &Throw { grenade: Grenade::Smoke });
    game.ticks(2);
    assert_eq!(game.world.state_hash(), game.world.state_hash());
    for (name, edit) in edits {
        let before = game.world.state_hash();
        edit(&mut game);
        assert_ne!(game.world.state_hash(), before, "{name}");
    }
}

/// What all players' clients send in a tick: whatever follows from their seats and the tick.
fn play(world: &mut TestWorld, tick: u32) {
    if tick == 0 {
        for seat in ALL {
            let carries = Traveller { passport: Passport::default(), seat };
            world.arrive_from(client(seat), LOBBY_WORLD, &carries).expect("the match can read it");
        }
    }
    if tick == 700 {
        world.leave(client(3));
    }
    for seat in ALL {
        let luck = (tick / 16 * 31 + u32::from(seat) * 17).wrapping_mul(0x9e37_79b9) >> 8;
        let part = |shift: u32| (luck >> shift & 15) as f32 / 7.5 - 1.0;
        let mut input = Input::new([part(0), part(4)], part(8) * 3.0, 0.0);
        if luck & 0x1000 != 0 {
            input = input.and_fire();
        }
        // Some packets are late, and come in lumps.
        if !(tick + u32::from(seat)).is_multiple_of(5) {
            let round_trip = throng_platform::time::Nanos::from_millis(30);
            let seen =
                SeenMoment { tick: tick.saturating_sub(6), part: 9, newest_tick: tick, acked_tick: tick, round_trip };
            world.input_seen(client(seat), &input, seen);
        }
        if tick.is_multiple_of(40) {
            let grenade = if seat % 2 == 0 { Grenade::Smoke } else { Grenade::Flash };
            world.request(client(seat), &Throw { grenade });
            world.request(client(seat), &crate::protocol::Buy { item: crate::protocol::Item::Smoke });
        }
    }
}

/// Promise: a match that is made again after a panic goes on to the bit, in whatever phase it was: what shots hit, where
/// they stray, what flies and who has earned what.
#[test]
fn a_match_that_is_made_again_goes_on_alike() {
    let make = || {
        let (mut plan, kind) = (Vec::new(), Match { map: Map::load(), rules: RULES, faults: Vec::new() });
        envelope::write(&MatchPlan { lobby: LOBBY_WORLD, ordinal: 0 }, &mut plan).expect("it has no limits");
        TestWorld::with_id(kind, &schema(), WorldId::new(1, 0), 5, Some(&plan))
    };
    for saved_at in [2, 40, 300, 900] {
        throng_world::testing::goes_on_alike_after_a_load(make, saved_at, 200, play);
    }
    let mut world = make();
    (0..900).for_each(|tick| {
        play(&mut world, tick);
        world.tick();
    });
    let counted = world.counted();
    assert!(["shots", "grenades", "bought"].iter().all(|name| counted.of(name) > 0), "{counted:?}");
}
