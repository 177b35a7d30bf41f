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
        ("where the spike is", |game| edit::<Case>(game, |case| case.spike = Spike::Dropped { x: 1.0, z: 0.0 })),
        ("that it is defused", |game| edit::<Case>(game, |case| case.is_defused = true)),
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
