//! Think: whom to fight, whether to go home, whether to stroll.

use crate::{
    components::Kind,
    landscape::distance_m2,
    npc::minds::{Errand, THOUGHT_MS},
    protocol::Ability,
    traits::REACH_M,
    zone::{FIGHTER_WEIGHT, Zone},
};

/// Between two thoughts of one that nobody is near. (ms)
const ASLEEP_THOUGHT_MS: u32 = 4_000;
/// Farther from home it gives up the chase. (m)
pub const LEASH_M: f32 = 90.0;
/// Farther from home it goes back, when there is nobody to fight. (m)
const HOME_M: f32 = 30.0;
/// How far from home it strolls. (m)
const STROLL_M: f32 = 10.0;
/// Chance that a thought with nothing in it becomes a stroll: every 80 seconds, so that one in twelve is on its legs.
const STROLL_CHANCE: f32 = 0.003;

/// All NPCs whose turn it is.
pub fn think(mut zone: Zone) {
    let (now, period, asleep) = (zone.now(), zone.ticks(THOUGHT_MS), zone.ticks(ASLEEP_THOUGHT_MS));
    let npcs = zone.minds.rows.len() as u32;
    // The NPCs of this tick: every period-th, beginning with another one each tick.
    let first = (period - now % period) % period;
    for index in (first..npcs).step_by(period as usize) {
        let awake = zone.minds.is_awake(index, now);
        if zone.actors[index].alive && (awake || (now.wrapping_add(index)).is_multiple_of(asleep)) {
            throng::count!("thoughts");
            think_one(&mut zone, index, awake);
        }
    }
}

fn think_one(zone: &mut Zone, index: u32, awake: bool) {
    let mind = &mut zone.minds.rows[index as usize];
    let home = mind.home;
    let actors = &zone.actors;
    if mind.errand == Errand::Return {
        return; // the walk ends it
    }
    let in_leash = |place: [f32; 2]| distance_m2(place, home) <= LEASH_M * LEASH_M;
    let target = if mind.hates_anybody() && in_leash(actors[index].place) {
        mind.most_hated(|who| actors.resolve(who).is_some_and(|enemy| in_leash(actors[enemy].place)))
    } else {
        mind.forget_all();
        None
    };
    if target != zone.actors[index].target {
        zone.actors.set_target(index, target);
        let weight = if target.is_some() { FIGHTER_WEIGHT } else { 1.0 };
        zone.weigh(index, weight);
    }
    let kind = zone.actors[index].kind();
    let mind = &mut zone.minds.rows[index as usize];
    if target.is_some() {
        if mind.errand != Errand::Chase && kind != Kind::Banker {
            mind.errand = Errand::Chase;
            zone.actors.moving.insert(index);
        }
        fight_on(zone, index, kind);
        return;
    }
    let from_home_m2 = distance_m2(zone.actors[index].place, home);
    if mind.errand == Errand::Chase || from_home_m2 > HOME_M * HOME_M {
        (mind.errand, mind.goal) = (Errand::Return, home);
        zone.actors.moving.insert(index);
    } else if awake && mind.errand == Errand::Stand && kind != Kind::Banker {
        idle(zone, index, kind, home);
    }
}

/// What a fight makes it do beside striking.
fn fight_on(zone: &mut Zone, index: u32, kind: Kind) {
    let target = zone.actors[index].target;
    match kind {
        Kind::Shaman => drop(zone.begin_cast(index, Ability::Totem, None)),
        Kind::Stalker => {
            let near = target.and_then(|who| zone.actors.resolve(who)).is_some_and(|enemy| {
                let reach_m = 4.0 * REACH_M;
                zone.distance_m2(index, enemy) <= reach_m * reach_m
            });
            if near {
                zone.begin_cast(index, Ability::Trap, None);
            }
        }
        _ => {}
    }
}

fn idle(zone: &mut Zone, index: u32, kind: Kind, home: [f32; 2]) {
    match kind {
        Kind::Stalker => zone.set_filtered(index, true),
        Kind::Howler if !zone.actors[index].singing => drop(zone.begin_cast(index, Ability::Sing, None)),
        _ => {}
    }
    if zone.chance() < STROLL_CHANCE {
        let goal = zone.scatter(home, STROLL_M);
        let mind = &mut zone.minds.rows[index as usize];
        (mind.errand, mind.goal) = (Errand::Stroll, goal);
        zone.actors.moving.insert(index);
    }
}
