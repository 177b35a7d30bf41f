//! Spread: diseases go from who has one to those of its side that stand too near.
//!
//! A disease hurts every two seconds, and every two seconds may be caught by the nearest that is not immune; whoever
//! has had it is immune for a minute, so it burns out even in a crowded town.
//!
//! Cost: 100 ns per sick actor every two seconds.

use crate::{
    deeds::Blow,
    events::{Burst, Means},
    neighbours::Question,
    protocol::Ability,
    zone::Zone,
};

const PULSE_MS: u32 = 2_000;
const DISEASE_POINTS: i32 = 3;
const CATCH_CHANCE: f32 = 0.4;

/// Plagues that have been cast take hold of their targets.
pub fn curse(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, done)) = zone.deeds.done_of(next, &[Ability::Plague]) {
        next = after;
        let target = zone.reachable(&done).filter(|&target| zone.actors.are_enemies(done.caster, target));
        let Some(target) = target else {
            throng::count!("casts_failed");
            continue;
        };
        zone.tell_landed(target, Ability::Plague);
        zone.infect(target);
        let (source, who) = (Some(zone.actors.who(done.caster)), zone.actors.who(target));
        zone.strike(Blow { target: who, source, amount: DISEASE_POINTS, means: Means::Disease, critical: false });
    }
}

/// Diseases hurt and spread.
pub fn spread(mut zone: Zone) {
    let sick = zone.batch(|actors| actors.diseased.list());
    let now = zone.now();
    for &carrier in &sick {
        if zone.actors[carrier].clocks.diseased <= now {
            zone.actors.diseased.remove(carrier);
            continue;
        }
        if !zone.is_due(carrier, PULSE_MS) {
            continue;
        }
        let target = zone.actors.who(carrier);
        zone.strike(Blow { target, source: None, amount: DISEASE_POINTS, means: Means::Disease, critical: false });
        let side = zone.actors[carrier].side;
        let near = zone.asked(Question::Spread, carrier, side.groups());
        let catches = near.iter().copied().filter(|&other| zone.actors[other].clocks.immune <= now);
        let nearest = catches
            .min_by(|&a, &b| zone.distance_m2(carrier, a).total_cmp(&zone.distance_m2(carrier, b)).then(a.cmp(&b)));
        zone.scratch.give_back(near);
        if let Some(other) = nearest
            && zone.chance() < CATCH_CHANCE
        {
            zone.infect(other);
            zone.burst(other, Burst::Leaves, "spell.disease");
            throng::count!("infections");
        }
    }
    throng::gauge!("diseased", zone.actors.diseased.len());
    zone.scratch.give_back(sick);
}
