//! Yell: monsters in a fight call others of their camp.
//!
//! A bandit calls as soon as it fights, a wolf calls its pack, the others when half of their health is gone; each every
//! eight seconds at most. Whoever is within hearing gets a signal ([`crate::signals`]).
//!
//! Cost: 80 ns per call.

use crate::{
    components::{Gesture, Kind},
    mailboxes::Call,
    neighbours::{Question, groups},
    zone::Zone,
};

const YELL_EVERY_MS: u32 = 8_000;

/// Those who fight and have reason to call do.
pub fn call(mut zone: Zone) {
    let fighters = zone.batch(|actors| actors.fighting.list());
    let (now, pause) = (zone.now(), zone.ticks(YELL_EVERY_MS));
    for &index in &fighters {
        let row = &zone.actors[index];
        let Some(target) = row.target.filter(|_| row.is_monster()) else { continue };
        let mind = &zone.minds.rows[index as usize];
        let call = match row.kind() {
            Kind::Wolf => Call::Pack,
            Kind::Bandit => Call::Yell,
            _ if row.health * 2 < row.health_max => Call::Yell,
            _ => continue,
        };
        if mind.yell_tick > now {
            continue;
        }
        let camp = mind.camp;
        zone.minds.rows[index as usize].yell_tick = now + pause;
        zone.actors.play(index, Gesture::Shout);
        throng::count!("yells");
        let near = zone.asked(Question::Yell, index, groups::MONSTERS);
        for &other in &near {
            if zone.minds.rows[other as usize].camp == camp && zone.actors[other].target.is_none() {
                zone.signal(other, call, target);
            }
        }
        zone.scratch.give_back(near);
    }
    zone.scratch.give_back(fighters);
}
