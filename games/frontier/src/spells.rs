//! Spells: how long each takes, how far it reaches, and what becomes of one that has been begun.
//!
//! A spell that is done is handed to the system of its kind: area spells and taunts to [`crate::area`], group buffs to
//! [`crate::buffs`], beneficial ones to [`crate::beneficial`], songs to [`crate::auras`], traps and totems to [`crate::things`], diseases to
//! [`crate::spread`]. Bolts, stuns and recalls are about one target, or none, and end here.
//!
//! Cost: 50 ns per caster and tick.

use crate::{
    deeds::{Blow, Done},
    events::{Burst, Means},
    protocol::Ability,
    zone::Zone,
};

/// The numbers of a spell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spell {
    pub cast_ms: u32,
    /// Until it can be cast again, from its end on.
    pub cool_ms: u32,
    /// How far its target may be; 0 for spells without one. (m)
    pub reach_m: u16,
}

impl Spell {
    pub const fn of(ability: Ability) -> Self {
        let (cast_ms, cool_ms, reach_m) = match ability {
            Ability::None => (0, 0, 0),
            Ability::Bolt => (1_500, 1_500, 60),
            Ability::Blast => (2_000, 8_000, 0),
            Ability::Taunt => (500, 6_000, 0),
            Ability::Heal => (2_000, 2_000, 35),
            Ability::Bless => (2_500, 30_000, 0),
            Ability::Sing => (500, 5_000, 0),
            Ability::Trap => (1_500, 20_000, 0),
            Ability::Totem => (2_000, 25_000, 0),
            Ability::Plague => (2_000, 15_000, 40),
            Ability::Stun => (500, 12_000, 30),
            Ability::Recall => (6_000, 120_000, 0),
        };
        Self { cast_ms, cool_ms, reach_m }
    }
}

const BOLT_POINTS: i32 = 30;
const STUN_MS: u32 = 3_000;
/// How far from a hearth somebody stands who is taken there. (m)
pub const HEARTH_SCATTER_M: f32 = 8.0;

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

impl Zone<'_> {
    /// The target of a spell that is done, if it lives, is in reach and in line of sight.
    pub fn reachable(&mut self, done: &Done) -> Option<u32> {
        let target = self.actors.resolve(done.target?)?;
        let reach_m = f32::from(Spell::of(done.ability).reach_m);
        let in_reach = self.distance_m2(done.caster, target) <= reach_m * reach_m;
        (in_reach && self.sees(done.caster, target)).then_some(target)
    }

    /// A place within so many metres of another, by chance.
    pub fn scatter(&mut self, [x, z]: [f32; 2], metres: f32) -> [f32; 2] {
        let (aside, along) = (self.chance() * 2.0 - 1.0, self.chance() * 2.0 - 1.0);
        [x + aside * metres, z + along * metres]
    }
}
