//! Walk: the steps of NPCs that are on their way, straight over the hills.

use crate::{
    components::Kind,
    landscape::distance_m2,
    npc::minds::Errand,
    traits::{REACH_M, Traits},
    zone::Zone,
};

const STROLL_M_PER_S: f32 = 1.6;
/// How near a chase comes, so that fighters stand around their enemy and not in it. (m)
const CHASE_STOP_M: f32 = 0.6 * REACH_M;
/// Nearer than this a place is reached. (m)
const REACHED_M: f32 = 0.5;

/// One step of each NPC on its way.
pub fn walk(mut zone: Zone) {
    let walkers = zone.batch(|actors| actors.moving.list());
    throng::count!("steps", walkers.len());
    for &index in &walkers {
        step(&mut zone, index);
    }
    throng::gauge!("npcs_moving", walkers.len());
    zone.scratch.give_back(walkers);
}

fn step(zone: &mut Zone, index: u32) {
    let mind = zone.minds.rows[index as usize];
    let from = zone.actors[index].place;
    let (goal, stop_m, speed) = match mind.errand {
        Errand::Stand => {
            zone.actors.moving.remove(index);
            return;
        }
        Errand::Stroll if zone.actors[index].is_stunned(zone.now()) => (mind.goal, REACHED_M, 0.0),
        Errand::Stroll => (mind.goal, REACHED_M, STROLL_M_PER_S),
        Errand::Return => (mind.goal, REACHED_M, chase_speed(zone, index).max(STROLL_M_PER_S)),
        Errand::Chase => {
            let target = zone.actors[index].target.and_then(|who| zone.actors.resolve(who));
            // Who is gone is missed at the next thought.
            let Some(target) = target else { return };
            (zone.actors[target].place, CHASE_STOP_M, chase_speed(zone, index))
        }
    };
    let away_m = distance_m2(from, goal).sqrt();
    if away_m <= stop_m {
        if mind.errand != Errand::Chase {
            arrive(zone, index, mind.errand);
        }
        return;
    }
    let part = (speed * zone.tick.dt_s).min(away_m - 0.9 * stop_m) / away_m;
    if part > 0.0 {
        zone.face(index, goal);
        zone.walk_to(index, [from[0] + (goal[0] - from[0]) * part, from[1] + (goal[1] - from[1]) * part]);
    }
}

fn arrive(zone: &mut Zone, index: u32, errand: Errand) {
    zone.minds.rows[index as usize].errand = Errand::Stand;
    zone.actors.moving.remove(index);
    if errand == Errand::Return {
        // Home again, it is as it was before the fight.
        let row = &mut zone.actors[index];
        row.health = row.health_max;
        let kind = row.kind();
        zone.health_changed(index);
        if kind == Kind::Stalker {
            zone.set_filtered(index, true);
        }
    }
}

/// How fast a kind gives chase, by what lies on it. (m/s)
fn chase_speed(zone: &Zone, index: u32) -> f32 {
    let row = &zone.actors[index];
    let speed = Traits::of(row.kind()).chase_m_per_s;
    if row.is_stunned(zone.now()) || row.casting.is_some() {
        0.0
    } else if row.clocks.snared > zone.now() {
        speed * 0.5
    } else {
        speed
    }
}
