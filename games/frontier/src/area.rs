//! Area: spells that take effect on all around their caster, blasts and taunts.
//!
//! Cost: 100 ns per spell and 20 ns per victim.

use crate::{
    actors::Side,
    deeds::{Blow, Done},
    events::{Burst, Means},
    neighbours::{Question, groups},
    protocol::Ability,
    zone::Zone,
};

const BLAST_POINTS: i32 = 22;
const SNARE_MS: u32 = 4_000;

/// Blasts hurt and slow all enemies around.
pub fn blast(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, Done { caster, .. })) = zone.deeds.done_of(next, &[Ability::Blast]) {
        next = after;
        let (side, source) = (zone.actors[caster].side, zone.actors.who(caster));
        let amount = BLAST_POINTS + i32::from(zone.actors[caster].look.level) / 2;
        zone.burst(caster, Burst::Sparks, "spell.blast");
        throng::count!("area_spells");
        let near = zone.asked(Question::Area, caster, side.enemies());
        for &victim in &near {
            let target = zone.actors.who(victim);
            zone.strike(Blow { target, source: Some(source), amount, means: Means::Blast, critical: false });
            zone.afflict(victim, SNARE_MS, |clocks| &mut clocks.snared);
        }
        zone.scratch.give_back(near);
    }
}

/// Taunts turn all monsters around against their caster.
pub fn taunt(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, Done { caster, .. })) = zone.deeds.done_of(next, &[Ability::Taunt]) {
        next = after;
        if zone.actors[caster].side != Side::Folk {
            continue;
        }
        let who = zone.actors.who(caster);
        zone.tell_landed(caster, Ability::Taunt);
        let near = zone.asked(Question::Taunt, caster, groups::MONSTERS);
        for &monster in &near {
            zone.minds.rows[monster as usize].hate_most(who);
            throng::count!("taunts");
        }
        zone.scratch.give_back(near);
    }
}
