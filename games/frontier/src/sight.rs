//! Sight: fighters keep an eye on whom they fight.
//!
//! Twice a second an NPC that fights looks along the line to its target. If a hill is in between it asks whom else it
//! could see, and hates the nearest of those a little more; if there is nobody, it follows the one it has lost. Lines
//! of sight are walked along the height of the ground
//! ([`Landscape::is_line_clear`](crate::landscape::Landscape::is_line_clear)).
//!
//! Cost: 100 ns per fighter and look.

use crate::{neighbours::Question, zone::Zone};

const LOOK_MS: u32 = 500;

/// NPCs that fight look for their targets.
pub fn look(mut zone: Zone) {
    let fighters = zone.batch(|actors| actors.fighting.list());
    for &index in &fighters {
        if zone.minds.rows.len() <= index as usize || !zone.is_due(index, LOOK_MS) {
            continue;
        }
        let Some(target) = zone.actors[index].target.and_then(|who| zone.actors.resolve(who)) else { continue };
        let sees = zone.is_line_clear(index, target);
        zone.minds.rows[index as usize].sees_target = sees;
        if sees {
            continue;
        }
        let enemies = zone.actors[index].side.enemies();
        let near = zone.asked(Question::Sight, index, enemies);
        let mut nearest: Option<(u32, f32)> = None;
        for &other in near.iter().filter(|&&other| other != target) {
            let away_m2 = zone.distance_m2(index, other);
            if nearest.is_none_or(|(_, nearest_m2)| away_m2 < nearest_m2) && zone.sees(index, other) {
                nearest = Some((other, away_m2));
            }
        }
        zone.scratch.give_back(near);
        if let Some((other, _)) = nearest {
            let who = zone.actors.who(other);
            zone.minds.rows[index as usize].hate_most(who);
            throng::count!("targets_changed");
        }
    }
    zone.scratch.give_back(fighters);
}
