//! Wear: effects wear off, health comes back.
//!
//! Whoever lacks health gets some back five times a second, more if it is soothed, less in a fight: points, of which
//! clients are told only when the whole percentage changes.
//!
//! Cost: 10 ns per hurt or afflicted actor and tick.

use crate::{
    actors::{FIGHT_MS, dirty},
    zone::Zone,
};

/// Between two points of health, for a player or NPC of low level. (ms)
const MEND_MS: u32 = 200;
/// Between two looks whether an effect has worn off. (ms)
const WEAR_MS: u32 = 200;

/// Clocks that have run out are told.
pub fn wear_off(mut zone: Zone) {
    let afflicted = zone.batch(|actors| actors.afflicted.list());
    let (now, period) = (zone.now(), zone.ticks(WEAR_MS));
    for &index in &afflicted {
        if !zone.is_due(index, WEAR_MS) {
            continue;
        }
        let clocks = zone.actors[index].clocks;
        let untils = [clocks.stunned, clocks.snared, clocks.diseased, clocks.blessed, clocks.soothed];
        let just_over = untils.iter().any(|&until| until <= now && until + period > now && until > 0);
        if just_over {
            zone.actors.mark(index, dirty::EFFECTS);
        }
        if untils.iter().all(|&until| until + period <= now) {
            zone.actors.afflicted.remove(index);
        }
    }
    zone.scratch.give_back(afflicted);
}

/// Health comes back.
pub fn mend(mut zone: Zone) {
    let hurt = zone.batch(|actors| actors.mending.list());
    let (now, fight) = (zone.now(), zone.ticks(FIGHT_MS));
    for &index in &hurt {
        if !zone.is_due(index, MEND_MS) {
            continue;
        }
        let row = &zone.actors[index];
        let fights = row.fought_within(now, fight);
        let soothed = row.clocks.soothed > now;
        let points = match (fights, soothed) {
            (true, false) => i32::from(zone.is_due(index, 5 * MEND_MS)),
            (true, true) => 1,
            (false, false) => 1 + row.health_max / 400,
            (false, true) => 2 + row.health_max / 200,
        };
        if points > 0 {
            zone.actors[index].health += points;
            zone.health_changed(index);
        }
    }
    zone.scratch.give_back(hurt);
}
