//! Assist: whoever is struck by a monster has the guards around it on its side.
//!
//! Asked by the victim, once a second at most, of those whom last tick's blows hit.
//!
//! Cost: 60 ns a victim; there are guards only in towns.

use crate::{
    actors::Side,
    neighbours::{Question, groups},
    zone::Zone,
};

const ASSIST_MS: u32 = 1_000;

/// Guards near those who were struck turn on who struck them.
pub fn call_guards(mut zone: Zone) {
    let mut struck = std::mem::take(&mut zone.deeds.struck);
    for (victim, attacker) in struck.drain(..) {
        let (Some(victim), Some(attacker)) = (zone.actors.resolve(victim), zone.actors.resolve(attacker)) else {
            continue;
        };
        let folk_by_monster = zone.actors[victim].side == Side::Folk && zone.actors[attacker].side == Side::Monsters;
        if !folk_by_monster || zone.actors[victim].help_tick > zone.now() {
            continue;
        }
        zone.actors[victim].help_tick = zone.now() + zone.ticks(ASSIST_MS);
        let who = zone.actors.who(attacker);
        let guards = zone.asked(Question::GuardAssist, victim, groups::GUARDS);
        for &guard in &guards {
            if !zone.minds.rows[guard as usize].hates_anybody() {
                zone.minds.rows[guard as usize].hate(who, 1);
                throng::count!("assists");
            }
        }
        zone.scratch.give_back(guards);
    }
    zone.deeds.struck = struck;
}
