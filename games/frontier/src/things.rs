//! Things: traps and totems, which somebody leaves behind.
//!
//! A trap lies unseen until an enemy of its maker steps into it: then all within three metres are hurt and held. A
//! totem mends the hurt of its maker's side around it. Both go after their time. They are entities of their own, made
//! and taken away between ticks ([`crate::changes`]), [`THINGS_MAX`] at most; more are refused and counted.
//!
//! Cost: 40 ns per trap and look, four times a second; 80 ns per totem and second.

use crate::{
    components::Kind,
    deeds::{Blow, Done, Plan, THINGS_MAX},
    events::{Burst, Means},
    neighbours::Question,
    protocol::Ability,
    zone::Zone,
};

const TRAP_LIFE_MS: u32 = 30_000;
const TOTEM_LIFE_MS: u32 = 20_000;
const TRAP_LOOK_MS: u32 = 250;
const TOTEM_PULSE_MS: u32 = 1_000;
const TRAP_POINTS: i32 = 25;
const TRAP_STUN_MS: u32 = 1_500;
const TOTEM_POINTS: i32 = 4;

/// Traps are laid and totems set up where their makers stand.
pub fn lay(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, Done { caster, ability, .. })) = zone.deeds.done_of(next, &[Ability::Trap, Ability::Totem]) {
        next = after;
        let standing = zone.actors.traps.len() + zone.actors.totems.len() + zone.deeds.plans.len();
        if standing >= THINGS_MAX {
            throng::count!("things_refused");
            continue;
        }
        let (kind, life_ms) =
            if ability == Ability::Trap { (Kind::Trap, TRAP_LIFE_MS) } else { (Kind::Totem, TOTEM_LIFE_MS) };
        let expires_tick = zone.now() + zone.ticks(life_ms);
        let row = &zone.actors[caster];
        let (owner, side, place, level) = (zone.actors.who(caster), row.side, row.place, row.look.level);
        zone.deeds.plans.push(Plan { kind, owner, side, place, level, expires_tick });
    }
}

/// Traps spring.
pub fn spring(mut zone: Zone) {
    let traps = zone.batch(|actors| actors.traps.list());
    let now = zone.now();
    for &trap in &traps {
        if zone.actors[trap].expires_tick <= now {
            zone.vanish(trap);
            continue;
        }
        if !zone.is_due(trap, TRAP_LOOK_MS) {
            continue;
        }
        let enemies = zone.actors[trap].side.enemies();
        let caught = zone.asked(Question::Trap, trap, enemies);
        if !caught.is_empty() {
            throng::count!("traps_sprung");
            let owner = zone.actors[trap].owner;
            for &victim in &caught {
                let target = zone.actors.who(victim);
                zone.stun(victim, TRAP_STUN_MS);
                zone.burst(victim, Burst::Dust, "combat.trap");
                let blow = Blow { target, source: owner, amount: TRAP_POINTS, means: Means::Trap, critical: false };
                zone.strike(blow);
            }
            zone.vanish(trap);
        }
        zone.scratch.give_back(caught);
    }
    zone.scratch.give_back(traps);
}

/// Totems mend.
pub fn mend(mut zone: Zone) {
    let totems = zone.batch(|actors| actors.totems.list());
    let now = zone.now();
    for &totem in &totems {
        if zone.actors[totem].expires_tick <= now {
            zone.vanish(totem);
            continue;
        }
        if !zone.is_due(totem, TOTEM_PULSE_MS) {
            continue;
        }
        let hurt = zone.actors[totem].side.hurt();
        let source = zone.actors[totem].owner;
        let near = zone.asked(Question::Totem, totem, hurt);
        for &patient in &near {
            let target = zone.actors.who(patient);
            zone.strike(Blow { target, source, amount: TOTEM_POINTS, means: Means::Totem, critical: false });
        }
        zone.scratch.give_back(near);
    }
    zone.scratch.give_back(totems);
}

impl Zone<'_> {
    /// Takes a thing away at the end of the tick; it does nothing more.
    fn vanish(&mut self, thing: u32) {
        self.actors.traps.remove(thing);
        self.actors.totems.remove(thing);
        self.deeds.gone.push(thing);
    }
}
