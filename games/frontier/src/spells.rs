//! Spells: ends those whose time has come, and does what is about one target or none: bolts, stuns and recalls.
//!
//! Other spells that are done are left to the system of their kind: area spells and taunts to [`crate::area`], group
//! buffs to [`crate::buffs`], beneficial ones to [`crate::beneficial`], songs to [`crate::auras`], traps and totems to
//! [`crate::things`], diseases to [`crate::spread`].
//!
//! Cost: 50 ns per caster and tick.

use crate::{
    deeds::{Blow, Done},
    events::{Burst, Means},
    protocol::Ability,
    roster::HEARTH_SCATTER_M,
    zone::Zone,
};

const BOLT_POINTS: i32 = 30;
const STUN_MS: u32 = 3_000;

/// Ends the spells whose time has come.
pub fn finish(mut zone: Zone) {
    zone.deeds.done.clear();
    let now = zone.now();
    let casters = zone.batch(|actors| actors.casting.list());
    for &caster in &casters {
        let Some(casting) = zone.actors[caster].casting.filter(|casting| casting.ends_tick <= now) else { continue };
        zone.actors[caster].casting = None;
        zone.actors.casting.remove(caster);
        let done = Done { caster, ability: casting.ability, target: casting.target };
        zone.deeds.done.push(done);
    }
    zone.scratch.give_back(casters);
}

/// Spells that are about their target alone, or about the caster.
pub fn land(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, done)) = zone.deeds.done_of(next, &[Ability::Bolt, Ability::Stun, Ability::Recall]) {
        next = after;
        let Done { caster, ability, .. } = done;
        if ability == Ability::Recall {
            let player = zone.actors[caster].player;
            if let Some(hearth) = zone.roster.hearth(player) {
                let place = zone.scatter(hearth, HEARTH_SCATTER_M);
                zone.teleport(caster, place);
                throng::count!("teleports");
            }
            continue;
        }
        let Some(target) = zone.reachable(&done).filter(|&target| zone.actors.are_enemies(caster, target)) else {
            throng::count!("casts_failed");
            continue;
        };
        let (source, who) = (Some(zone.actors.who(caster)), zone.actors.who(target));
        zone.tell_landed(target, ability);
        let amount = if ability == Ability::Stun {
            zone.stun(target, STUN_MS);
            1
        } else {
            zone.burst(target, Burst::Sparks, "spell.bolt");
            BOLT_POINTS + i32::from(zone.actors[caster].look.level)
        };
        zone.strike(Blow { target: who, source, amount, means: Means::Bolt, critical: false });
    }
}
