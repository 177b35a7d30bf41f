//! Rampage: a brute in a fight strikes everybody around it, every few seconds.
//!
//! Cost: 100 ns per brute and rampage.

use crate::{
    components::{Gesture, Kind},
    deeds::Blow,
    events::{Burst, Means},
    neighbours::Question,
    traits::{REACH_M, Traits},
    zone::Zone,
};

const EVERY_MS: u32 = 4_000;
/// Its fist on all is weaker than that on one.
const PART: f32 = 0.6;

/// Brutes whose time it is and who have somebody in reach.
pub fn strike_around(mut zone: Zone) {
    let fighters = zone.batch(|actors| actors.fighting.list());
    let (now, pause) = (zone.now(), zone.ticks(EVERY_MS));
    for &index in &fighters {
        let row = &zone.actors[index];
        if row.kind() != Kind::Brute || row.is_stunned(now) || zone.minds.rows[index as usize].rampage_tick > now {
            continue;
        }
        let Some(target) = row.target.and_then(|who| zone.actors.resolve(who)) else { continue };
        if zone.distance_m2(index, target) > REACH_M * REACH_M {
            continue;
        }
        zone.minds.rows[index as usize].rampage_tick = now + pause;
        throng::count!("rampages");
        zone.actors.play(index, Gesture::Rampage);
        zone.burst(index, Burst::Dust, "combat.rampage");
        let (side, source) = (zone.actors[index].side, zone.actors.who(index));
        let amount = (Traits::of(Kind::Brute).damage_at(zone.actors[index].look.level) as f32 * PART) as i32;
        let near = zone.asked(Question::Rampage, index, side.enemies());
        for &victim in &near {
            let target = zone.actors.who(victim);
            zone.strike(Blow { target, source: Some(source), amount, means: Means::Rampage, critical: false });
        }
        zone.scratch.give_back(near);
    }
    zone.scratch.give_back(fighters);
}
