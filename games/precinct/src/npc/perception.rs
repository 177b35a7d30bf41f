//! Perception: whom each NPC sees, and what it remembers of it.
//!
//! Those whose turn it is this tick ask together: near lists for all of them, then one batch of lines of sight, at
//! most [`CANDIDATES_MAX`] for each. A candidate is an enemy within [`SIGHT_M`], in front of the NPC or so near that it
//! is heard, or the one that hurt it last. Of those in sight the nearest becomes the target; the present target counts
//! as nearer than it is, so that NPCs do not waver.
//!
//! Also decides the load level, since it is the one place that visits every NPC a few times a second.
//!
//! Cost: about 0.2 µs for the near list and 0.1 µs for each line of sight; some 4.3 looks and 4 lines per NPC and
//! second.

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::prelude::*;
use throng_query::casts::lines_of_sight;

use super::{LoadLevel, Moment, Pace, Senses, senses::Sight};
use crate::{
    actors::Actors,
    arena::{Arena, ArenaParts},
    components::{CHEST, EYE, Pose, Slot, Standing},
    rules::Rules,
    scene::Scene,
};

/// How far an NPC sees. (m)
pub const SIGHT_M: f32 = 32.0;
/// Enemies nearer than this are noticed behind one's back too. (m)
const HEARING_M: f32 = 10.0;
/// Cosine of the half angle of view: a little more than the half circle in front.
const VIEW_COSINE_MIN: f32 = -0.2;
/// Lines of sight that one look asks for.
const CANDIDATES_MAX: usize = 2;
/// How much nearer the present target seems than it is, squared.
const LOYALTY: f32 = 0.5;

/// Lets those look around whose turn it is: the askers.
pub fn perceive(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut npcs: Query<(&Pose, &Standing, &mut Pace, &mut Senses)>,
) {
    let ArenaParts { sight: Sight { askers, near, candidates, lines, seen }, actors, doors, .. } = &mut **arena;
    if askers.is_empty() {
        return;
    }
    throng::count!("perceptions", askers.len());

    let (x_m, z_m) = actors.places();
    near.find(x_m, z_m, askers, SIGHT_M);
    candidates.clear();
    lines.clear();
    for (index, &asker) in askers.iter().enumerate() {
        let slot = Slot(asker as u16);
        let Ok((pose, standing, mut pace, mut senses)) = npcs.get_mut(actors.entity(slot)) else { continue };
        let feet = standing.0.position();
        pace.level = LoadLevel::at_m2(actors.nearest_player_m2(feet));
        let chosen = choose(slot, pose, near.of(index), actors, &scene.rules, &mut senses);
        for candidate in chosen.into_iter().flatten() {
            let Some(other) = actors.feet(candidate) else { continue };
            candidates.push((index, candidate));
            lines.push((feet + EYE, other + CHEST));
        }
        senses.visible = false;
    }

    throng::count!("casts", u64::from(lines_of_sight(&scene.level.geometry, lines, seen).cast));
    for ((&(index, candidate), &seen), &(eyes, chest)) in candidates.iter().zip(seen.iter()).zip(lines.iter()) {
        let asker = actors.entity(Slot(askers[index] as u16));
        let Ok((.., mut senses)) = npcs.get_mut(asker) else { continue };
        // The nearer of two candidates comes first.
        if seen && !senses.visible && !doors.are_between(eyes, chest) {
            senses.visible = true;
            senses.target = Some(candidate);
            senses.seen = Moment::at(tick.tick);
            senses.seen_at = actors.standing(candidate);
        }
    }
}

/// Counts friends and enemies and picks the enemies worth a line of sight, nearest first.
fn choose(
    slot: Slot,
    pose: &Pose,
    near: &[u32],
    actors: &Actors,
    rules: &Rules,
    senses: &mut Senses,
) -> [Option<Slot>; CANDIDATES_MAX] {
    let (feet, side) = (pose.feet(), actors.side(slot));
    let (sin, cos) = pose.yaw.sin_cos();
    let forward = Vec3::new(sin, 0.0, cos);
    let (mut friends, mut enemies) = (0, 0);
    let mut best: [Option<(f32, Slot)>; CANDIDATES_MAX] = [None; CANDIDATES_MAX];
    for &other in near {
        let other = Slot(other as u16);
        let other_side = actors.side(other);
        if !rules.may_hurt(side, other_side) {
            friends += u32::from(other_side == side);
            continue;
        }
        let Some(there) = actors.feet(other) else { continue };
        enemies += 1;
        let way = there - feet;
        let distance_m2 = way.length_squared();
        let known = senses.target == Some(other) || senses.hurt_by == Some(other);
        let in_view = way.dot(forward) >= VIEW_COSINE_MIN * distance_m2.sqrt();
        if !(known || in_view || distance_m2 < HEARING_M * HEARING_M) {
            continue;
        }
        let seems_m2 = if senses.target == Some(other) { distance_m2 * LOYALTY } else { distance_m2 };
        insert_nearest(&mut best, seems_m2, other);
    }
    senses.friends = friends.min(255) as u8;
    senses.enemies = enemies.min(255) as u8;
    best.map(|entry| entry.map(|(_, slot)| slot))
}

fn insert_nearest(best: &mut [Option<(f32, Slot)>; CANDIDATES_MAX], distance: f32, slot: Slot) {
    let mut entry = Some((distance, slot));
    for place in best {
        if place.is_none_or(|(other, _)| entry.is_some_and(|(own, _)| own < other)) {
            std::mem::swap(place, &mut entry);
        }
        if entry.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_two_are_kept_in_order() {
        let mut best = [None; CANDIDATES_MAX];
        for (distance, slot) in [(9.0, 1), (4.0, 2), (16.0, 3), (1.0, 4)] {
            insert_nearest(&mut best, distance, Slot(slot));
        }
        assert_eq!(best, [Some((1.0, Slot(4))), Some((4.0, Slot(2)))]);
    }
}
