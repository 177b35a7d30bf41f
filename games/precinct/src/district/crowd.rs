//! The crowd: NPCs that run errands through the streamed part of a district.
//!
//! Where no player is, no ground is, so nobody can live there: who is left behind turns up again where players are. Errands
//! lead anywhere in the streamed part, so most of them over several sectors. Searches are done within a budget of nodes
//! for each tick; their scratch is the worker's thread's, since a world needs it for some microseconds.

use std::cell::RefCell;

use bevy_ecs::{component::Component, prelude::*};
use glam::Vec3;
use rand::Rng;
use throng::prelude::*;
use throng_pack::{ArrayVec, Pack};
use throng_query::nav::sectors::{SectorPoint, SectorSearch, WorldSectors};
use throng_query::nav::{PathOutcome, WalkOutcome};
use throng_replication::ecs::Replicated;

use super::{
    body::{FarPose, Footing},
    streaming::Streets,
};
use crate::{
    components::{Action, Character, Faction, Vitals},
    lives::LifeClock,
    weapons::{WeaponKind, ticks_of},
};

/// Polygons that one tick of a world searches. One search may go over it.
const NODES_PER_TICK: u32 = 2_000;
/// Of one search: what is not found by then is walked as far as it is known.
const NODES_MAX: u32 = 4_000;
/// Corners that a row has room for; the rest is searched when these have been walked.
const WAYPOINTS_MAX: usize = 8;
const WALK_M_PER_S: f32 = 2.5;
/// Between two errands, at most. (ms)
const REST_MS: u32 = 4_000;
/// Those who come to where players are, in one tick at most.
const GATHERED_PER_TICK: usize = 4;

/// Where an NPC is going.
#[derive(Component, Debug, Clone, Copy, Default)]
pub struct Errand {
    waypoints: [Vec3; WAYPOINTS_MAX],
    next: u8,
    count: u8,
    /// It has no errand before. (ticks)
    rests_until: u32,
}

/// An errand in a checkpoint, with the corners that are still to come.
#[derive(Debug, Clone, Pack)]
#[pack(name = "precinct.errand")]
pub struct SavedErrand {
    waypoints: ArrayVec<[f32; 3], WAYPOINTS_MAX>,
    rests_until: u32,
}

impl From<&Errand> for SavedErrand {
    fn from(errand: &Errand) -> Self {
        let left = errand.waypoints.iter().take(errand.count.into()).skip(errand.next.into());
        Self { waypoints: left.map(Vec3::to_array).collect(), rests_until: errand.rests_until }
    }
}

impl From<SavedErrand> for Errand {
    fn from(saved: SavedErrand) -> Self {
        let mut errand = Self { count: saved.waypoints.len() as u8, rests_until: saved.rests_until, ..Self::default() };
        errand.waypoints.iter_mut().zip(saved.waypoints).for_each(|(to, from)| *to = from.into());
        errand
    }
}

/// Fills a district with NPCs, who are nowhere yet.
pub fn spawn(world: &mut World, count: usize) {
    let nobody = Vitals { health: 0, alive: false };
    for number in 0..count {
        let faction = if number % 2 == 0 { Faction::Rioters } else { Faction::Cleaners };
        let character = Character { npc: true, faction, weapon: WeaponKind::Rifle };
        world.spawn((
            (FarPose::new(Vec3::ZERO, 0.0), nobody, character, Action::NONE),
            (Footing::default(), Errand::default(), LifeClock::default()),
        ));
    }
}

/// An NPC as it is brought somewhere, and whether clients are told of it.
type Resident =
    (Entity, &'static mut FarPose, &'static mut Vitals, &'static mut Footing, &'static mut Errand, Has<Replicated>);

/// Brings those to where players are who have no ground under their feet.
pub fn gather(
    tick: Res<TickInfo>,
    streets: Res<Streets>,
    mut rng: ResMut<WorldRng>,
    mut crowd: Query<Resident>,
    mut commands: Commands,
) {
    if streets.sectors.is_empty() {
        return;
    }
    let is_lost = |footing: &Footing| footing.0.is_none_or(|ground| streets.sectors.up_to_date(ground).is_none());
    let lost = crowd.iter_mut().filter(|(_, _, _, footing, ..)| is_lost(footing));
    for (npc, mut pose, mut vitals, mut footing, mut errand, is_told) in lost.take(GATHERED_PER_TICK) {
        let Some(ground) = streets.sectors.random_point(&mut rng.0) else { return };
        pose.set_feet(ground.position());
        *vitals = Vitals::FULL;
        footing.0 = Some(ground);
        *errand = Errand { rests_until: tick.tick + rng.0.random_range(0..20), ..Errand::default() };
        if !is_told {
            commands.entity(npc).insert(Replicated::default());
        }
        throng::count!("gathered");
    }
}

/// Finds ways for those who have none.
pub fn search(
    tick: Res<TickInfo>,
    streets: Res<Streets>,
    mut rng: ResMut<WorldRng>,
    mut crowd: Query<(&Vitals, &Footing, &mut Errand)>,
) {
    let mut budget = NODES_PER_TICK;
    for (vitals, footing, mut errand) in &mut crowd {
        if !vitals.alive || errand.next < errand.count || tick.tick < errand.rests_until {
            continue;
        }
        let Some(from) = footing.0 else { continue };
        if budget == 0 {
            throng::count!("errands_put_off");
            return;
        }
        let Some(goal) = streets.sectors.random_point(&mut rng.0) else { return };
        let Some((path, crosses)) = SEARCH.with_borrow_mut(|search| {
            if !search.begin(&streets.sectors, from, goal.position()) {
                return None;
            }
            search.advance(&streets.sectors, NODES_MAX);
            let path = search.finish(&streets.sectors, &mut errand.waypoints);
            Some((path, from.sector() != goal.sector()))
        }) else {
            continue;
        };
        budget = budget.saturating_sub(path.node_count.max(1));
        (errand.next, errand.count) = (0, path.waypoint_count as u8);
        errand.rests_until = tick.tick + rng.0.random_range(1..ticks_of(REST_MS, tick.rate.0));
        throng::count!("errands");
        throng::count!("errands_complete", path.outcome != PathOutcome::Partial);
        throng::count!("errands_over_sides", crosses);
        throng::count!("path_nodes", path.node_count);
    }
}

thread_local! {
    /// Grows to what is streamed in the largest world that the thread ticks.
    static SEARCH: RefCell<SectorSearch> = RefCell::default();
}

/// Moves those who are on their way.
pub fn walk(
    tick: Res<TickInfo>,
    streets: Res<Streets>,
    mut crowd: Query<(&Vitals, &mut FarPose, &mut Footing, &mut Errand)>,
) {
    for (vitals, mut pose, mut footing, mut errand) in &mut crowd {
        let Some(from) = footing.0.filter(|_| vitals.alive && errand.next < errand.count) else { continue };
        let waypoint = errand.waypoints[usize::from(errand.next)];
        let Some((end, passed)) = step(&streets.sectors, from, waypoint, WALK_M_PER_S * tick.dt_s) else { continue };
        errand.next += u8::from(passed);
        let way = end.position() - from.position();
        throng::count!("sides_crossed", from.sector() != end.sector());
        footing.0 = Some(end);
        if way.x != 0.0 || way.z != 0.0 {
            pose.set_feet(end.position());
            pose.yaw = way.x.atan2(way.z);
        }
    }
}

/// A step towards a corner, and whether that is passed: reached, or blocked by what has come down since.
fn step(sectors: &WorldSectors, from: SectorPoint, waypoint: Vec3, distance_m: f32) -> Option<(SectorPoint, bool)> {
    let way = (waypoint - from.position()).with_y(0.0);
    let left_m = way.length();
    let is_last = left_m <= distance_m;
    let to = if is_last { waypoint } else { from.position() + way * (distance_m / left_m) };
    let walk = sectors.walk_sliding(from, to)?;
    Some((walk.end, is_last || walk.outcome == WalkOutcome::Stopped))
}
