//! Beneficial: spells that mend, cast by players at whom they choose, and by shamans at whom they find worst off.
//!
//! Cost: 60 ns per shaman and second, where nobody is hurt.

use crate::{
    components::Kind,
    deeds::{Blow, Done},
    events::{Burst, Means},
    neighbours::{Question, groups},
    protocol::Ability,
    zone::Zone,
};

const CARE_MS: u32 = 1_000;
const HEAL_POINTS: i32 = 40;

/// Shamans look after their camp.
pub fn care(mut zone: Zone) {
    let (now, period) = (zone.now(), zone.ticks(CARE_MS));
    let npcs = zone.minds.rows.len() as u32;
    let first = (period - now % period) % period;
    for index in (first..npcs).step_by(period as usize) {
        let row = &zone.actors[index];
        if row.kind() != Kind::Shaman || !row.alive || row.casting.is_some() || !zone.minds.is_awake(index, now) {
            continue;
        }
        if row.ready_tick[Ability::Heal as usize] > now {
            continue;
        }
        let worst = if row.is_hurt() { Some((row.health, index)) } else { None };
        let near = zone.asked(Question::Beneficial, index, groups::HURT_MONSTERS);
        // The one with the least health; of equals the lowest.
        let worst = near.iter().map(|&other| (zone.actors[other].health, other)).chain(worst).min();
        zone.scratch.give_back(near);
        if let Some((_, worst)) = worst {
            let who = zone.actors.who(worst);
            zone.begin_cast(index, Ability::Heal, Some(who));
        }
    }
}

/// Healing that is done mends its target, or the caster if the target is not one to be mended by it.
pub fn heal(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, done)) = zone.deeds.done_of(next, &[Ability::Heal]) {
        next = after;
        let Done { caster, .. } = done;
        let side = zone.actors[caster].side;
        let target = zone.reachable(&done).filter(|&target| zone.actors[target].side == side).unwrap_or(caster);
        let (source, who) = (Some(zone.actors.who(caster)), zone.actors.who(target));
        let amount = HEAL_POINTS + i32::from(zone.actors[caster].look.level);
        zone.tell_landed(target, Ability::Heal);
        zone.burst(target, Burst::Leaves, "spell.heal");
        zone.strike(Blow { target: who, source, amount, means: Means::Heal, critical: false });
        throng::count!("heals");
    }
}
