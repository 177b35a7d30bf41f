//! Paths of NPCs: searched in slices, and walked.
//!
//! Each tick searches as many nav polygons for the requests of the [queue](super::path_queue) as the world's budget
//! allows and takes up the rest in the next tick, so a crowd that wants to go somewhere at once becomes a short wait
//! instead of a long tick.
//!
//! The scratch of a search is 40 bytes for each polygon of the level, too much for every world to own. It is
//! borrowed from the thread: a world holds one only while its search goes on over several ticks.
//!
//! Walking is a walk on the mesh too, so NPCs pass walls and closed doors no more than players do. Cost: 30 ns per step,
//! about 5 µs per search.

use std::cell::RefCell;

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_query::nav::{NavMesh, NavPoint, PathOutcome, PathSearch, SearchState, WalkOutcome};

use super::{
    Pace, PathFollow,
    path_queue::{ActiveSearch, BegunSearch, Way},
};
use crate::{
    arena::{Arena, ArenaParts},
    components::{Pose, Standing, Vitals},
    doors::{Doors, Stop},
    scene::Scene,
};

/// Nearer than this a goal needs no search if the straight way is free. (m)
const STRAIGHT_M_MAX: f32 = 15.0;
/// What trying the straight way counts in the node budget.
const STRAIGHT_NODES: u32 = 2;
const WALK_M_PER_S: f32 = 2.5;
const RUN_M_PER_S: f32 = 5.0;
/// Spare searches that a thread keeps.
const SPARES_MAX: usize = 4;

/// Searches ways until the tick's node budget is used up.
pub fn search_paths(scene: Res<Scene>, mut arena: ResMut<Arena>, mut npcs: Query<(&Standing, &mut PathFollow)>) {
    let ArenaParts { paths: queue, actors, .. } = &mut **arena;
    throng::count!("paths_refused", std::mem::take(&mut queue.refused));
    throng::gauge!("paths_waiting", queue.waiting.len());
    let navmesh = &scene.level.navmesh;
    let mut budget = queue.nodes_per_tick;
    while budget > 0 {
        let ActiveSearch { request, from, mut search } = match queue.active.take() {
            Some(active) => active,
            None => {
                let Some(request) = queue.waiting.pop_front() else { return };
                let Ok((standing, mut path)) = npcs.get_mut(actors.entity(request.slot)) else { continue };
                if !path.waits_for(&request) {
                    continue;
                }
                if go_straight(navmesh, standing.0, request.goal, &mut path) {
                    budget = budget.saturating_sub(STRAIGHT_NODES);
                    continue;
                }
                let mut search = borrow_search(navmesh);
                search.begin(navmesh, standing.0, request.goal);
                ActiveSearch { request, from: standing.0, search }
            }
        };
        let nodes_before = search.node_count();
        let state = search.advance(navmesh, budget);
        let nodes = search.node_count() - nodes_before;
        budget = budget.saturating_sub(nodes.max(1));
        throng::count!("path_nodes", nodes);
        if state == SearchState::Running {
            queue.active = Some(ActiveSearch { request, from, search });
            return;
        }
        throng::count!("paths");
        if let Ok((_, mut path)) = npcs.get_mut(actors.entity(request.slot))
            && path.waits_for(&request)
        {
            let found = search.finish(navmesh, &mut path.waypoints);
            path.begin(found.waypoint_count, found.outcome);
        }
        give_back(search);
    }
}

/// Does a search again that the world had begun that this one was made from. Runs after a load.
pub fn resume_search(scene: Res<Scene>, mut arena: ResMut<Arena>) {
    let queue = &mut arena.paths;
    let Some(BegunSearch { request, from, nodes }) = queue.to_resume.take() else { return };
    let navmesh = &scene.level.navmesh;
    let mut search = borrow_search(navmesh);
    search.begin(navmesh, from, request.goal);
    search.advance(navmesh, nodes);
    queue.active = Some(ActiveSearch { request, from, search });
}

/// Takes the straight way if the goal is near and nothing is in between.
fn go_straight(navmesh: &NavMesh, from: NavPoint, goal: NavPoint, path: &mut PathFollow) -> bool {
    if from.position().distance_squared(goal.position()) > STRAIGHT_M_MAX * STRAIGHT_M_MAX {
        return false;
    }
    let walk = navmesh.walk_straight(from, goal.position());
    let free = walk.outcome == WalkOutcome::Arrived && walk.end.polygon() == goal.polygon();
    if free {
        path.waypoints[0] = goal.position();
        path.begin(1, PathOutcome::Complete);
    }
    free
}

/// Moves those who walk, as often as their load levels say. Who meets a closed door opens it, and goes on with its next
/// step.
pub fn follow_paths(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut npcs: Query<(&Vitals, &mut Pace, &mut PathFollow, &mut Standing, &mut Pose)>,
) {
    let doors = &mut arena.doors;
    for (vitals, mut pace, mut path, mut standing, mut pose) in &mut npcs {
        if !vitals.alive || path.way() != Way::Walking {
            continue;
        }
        let Some(ticks) = pace.take_step(tick.tick, tick.rate.0) else { continue };
        let speed_m_per_s = if path.is_running() { RUN_M_PER_S } else { WALK_M_PER_S };
        let before = standing.0;
        let distance_m = speed_m_per_s * tick.dt_s * ticks as f32;
        let (end, stop) = walk(&scene.level.navmesh, doors, before, distance_m, &mut path);
        standing.0 = end;
        if let Some(stop) = stop {
            doors.open(stop.door, &tick);
            throng::count!("doors_opened_by_npcs");
        }
        let way = end.position() - before.position();
        if way.x != 0.0 || way.z != 0.0 {
            pose.set_feet(end.position());
            pose.yaw = way.x.atan2(way.z);
        }
    }
}

/// Walks `distance_m` along the waypoints, up to the first closed door.
fn walk(
    navmesh: &NavMesh,
    doors: &Doors,
    from: NavPoint,
    mut distance_m: f32,
    path: &mut PathFollow,
) -> (NavPoint, Option<Stop>) {
    let mut at = from;
    while path.way() == Way::Walking {
        let target = path.waypoint();
        let mut way = target - at.position();
        way.y = 0.0;
        let left_m = way.length();
        let is_last = left_m > distance_m;
        let goal = if is_last { at.position() + way * (distance_m / left_m) } else { target };
        let walked = navmesh.walk_sliding(at, goal);
        if let Some(stop) = doors.in_the_way(at.position(), walked.end.position()) {
            return (navmesh.walk_straight(at, stop.place).end, Some(stop));
        }
        at = walked.end;
        if is_last {
            // What rounding at a corner will not let pass counts as passed.
            if walked.outcome == WalkOutcome::Stopped {
                path.pass_waypoint();
            }
            break;
        }
        distance_m -= left_m;
        path.pass_waypoint();
    }
    (at, None)
}

thread_local! {
    static SPARES: RefCell<Vec<PathSearch>> = const { RefCell::new(Vec::new()) };
}

fn borrow_search(navmesh: &NavMesh) -> PathSearch {
    SPARES.with_borrow_mut(Vec::pop).unwrap_or_else(|| PathSearch::new(navmesh))
}

fn give_back(search: PathSearch) {
    SPARES.with_borrow_mut(|spares| {
        if spares.len() < SPARES_MAX {
            spares.push(search);
        }
    });
}
