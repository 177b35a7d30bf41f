//! Paths of NPCs: asked for, searched in slices, and walked.
//!
//! A thought puts a [`PathRequest`] into the world's queue; each tick searches as many nav polygons as the world's budget
//! allows and takes up the rest in the next tick, so a crowd that wants to go somewhere at once becomes a short wait
//! instead of a long tick. The way comes back as at most [`WAYPOINTS_MAX`] corners inside the NPC's own row; a longer one
//! is cut there and asked for again when it has been walked.
//!
//! The scratch of a search is 40 bytes for each polygon of the level, too much for every world to own. It is
//! borrowed from the thread: a world holds one only while its search goes on over several ticks.
//!
//! Walking is a walk on the mesh too, so NPCs pass walls no more than players do. Cost: 30 ns per step, about 5 µs per search.

use std::{cell::RefCell, collections::VecDeque};

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng::prelude::*;
use throng_query::nav::{NavMesh, NavPoint, PathOutcome, PathSearch, SearchState, WalkOutcome};

use super::{NpcRow, NpcRowItem};
use crate::{arena::Arena, components::Slot, scene::Scene};

/// Corners that a row has room for.
pub const WAYPOINTS_MAX: usize = 8;
/// Nearer than this a goal needs no search if the straight way is free. (m)
const STRAIGHT_M_MAX: f32 = 15.0;
/// What trying the straight way counts in the node budget.
const STRAIGHT_NODES: u32 = 2;
const WALK_M_PER_S: f32 = 2.5;
const RUN_M_PER_S: f32 = 5.0;
/// Spare searches that a thread keeps.
const SPARES_MAX: usize = 4;

/// Where an NPC is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It has nowhere to go.
    Idle,
    /// The search waits or goes on.
    Asked,
    Walking,
    /// The end of a way that was cut: ask again.
    Cut,
    Arrived,
    /// There is no way.
    Blocked,
}

/// The way that an NPC walks.
#[derive(Component, Debug, Clone, Copy)]
pub struct PathFollow {
    way: Way,
    running: bool,
    next: u8,
    count: u8,
    /// Changes with every request, so that an answer to an older one is recognised.
    ticket: u8,
    cut: bool,
    goal: Option<NavPoint>,
    waypoints: [Vec3; WAYPOINTS_MAX],
}

impl Default for PathFollow {
    fn default() -> Self {
        Self {
            way: Way::Idle,
            running: false,
            next: 0,
            count: 0,
            ticket: 0,
            cut: false,
            goal: None,
            waypoints: [Vec3::ZERO; WAYPOINTS_MAX],
        }
    }
}

impl PathFollow {
    pub fn way(&self) -> Way {
        self.way
    }

    /// Asks for the way to `goal`; false if the queue is full.
    pub fn ask(&mut self, slot: Slot, goal: NavPoint, running: bool, queue: &mut PathQueue) -> bool {
        self.ticket = self.ticket.wrapping_add(1);
        self.running = running;
        self.goal = Some(goal);
        let taken = queue.push(PathRequest { slot, ticket: self.ticket, goal });
        self.way = if taken { Way::Asked } else { Way::Blocked };
        taken
    }

    /// Asks for the rest of a way that was cut.
    pub fn ask_on(&mut self, slot: Slot, queue: &mut PathQueue) -> bool {
        self.goal.is_some_and(|goal| self.ask(slot, goal, self.running, queue))
    }

    /// Stands still; an answer that is still to come will not be walked.
    pub fn stop(&mut self) {
        self.ticket = self.ticket.wrapping_add(1);
        self.way = Way::Idle;
    }

    fn waits_for(&self, request: &PathRequest) -> bool {
        self.way == Way::Asked && self.ticket == request.ticket
    }

    fn begin(&mut self, count: usize, outcome: PathOutcome) {
        self.next = 0;
        self.count = count as u8;
        self.cut = outcome == PathOutcome::Cut;
        self.way = if count == 0 { Way::Blocked } else { Way::Walking };
    }

    /// Goes on to the next corner, or ends.
    fn pass_waypoint(&mut self) {
        self.next += 1;
        if self.next == self.count {
            self.way = if self.cut { Way::Cut } else { Way::Arrived };
        }
    }
}

/// One NPC's wish to go somewhere. The way begins where it stands when the search does.
#[derive(Debug, Clone, Copy)]
pub struct PathRequest {
    slot: Slot,
    ticket: u8,
    goal: NavPoint,
}

/// A world's path requests. At most one for each NPC (and no fewer than 8) waits; more are refused, which the NPC takes as "blocked".
pub struct PathQueue {
    waiting: VecDeque<PathRequest>,
    requests_max: usize,
    nodes_per_tick: u32,
    active: Option<(PathRequest, PathSearch)>,
    refused: u64,
}

impl PathQueue {
    /// A queue for a world of so many NPCs.
    pub fn new(npc_count: usize) -> Self {
        let requests_max = npc_count.max(8);
        Self {
            waiting: VecDeque::with_capacity(requests_max),
            requests_max,
            // A path takes some 40 nodes and an NPC wants one every 5 s: at 20 Hz 0.4 nodes per NPC and tick on average.
            nodes_per_tick: 96.max(npc_count as u32),
            active: None,
            refused: 0,
        }
    }

    fn push(&mut self, request: PathRequest) -> bool {
        let room = self.waiting.len() < self.requests_max;
        if room {
            self.waiting.push_back(request);
        } else {
            self.refused += 1;
        }
        room
    }
}

/// Searches ways until the tick's node budget is used up.
pub fn solve(scene: &Scene, arena: &mut Arena, npcs: &mut Query<NpcRow>) {
    let Arena { paths: queue, actors, tally, .. } = arena;
    tally.paths_refused += std::mem::take(&mut queue.refused);
    tally.paths_waiting = queue.waiting.len() as i64;
    let navmesh = &scene.level.navmesh;
    let mut budget = queue.nodes_per_tick;
    while budget > 0 {
        let (request, mut search) = match queue.active.take() {
            Some(active) => active,
            None => {
                let Some(request) = queue.waiting.pop_front() else { return };
                let Ok(NpcRowItem { standing, mut path, .. }) = npcs.get_mut(actors.entity(request.slot)) else {
                    continue;
                };
                if !path.waits_for(&request) {
                    continue;
                }
                if go_straight(navmesh, standing.0, request.goal, &mut path) {
                    budget = budget.saturating_sub(STRAIGHT_NODES);
                    continue;
                }
                let mut search = borrow_search(navmesh);
                search.begin(navmesh, standing.0, request.goal);
                (request, search)
            }
        };
        let nodes_before = search.node_count();
        let state = search.advance(navmesh, budget);
        let nodes = search.node_count() - nodes_before;
        budget = budget.saturating_sub(nodes.max(1));
        tally.path_nodes += u64::from(nodes);
        if state == SearchState::Running {
            queue.active = Some((request, search));
            return;
        }
        tally.paths += 1;
        if let Ok(NpcRowItem { mut path, .. }) = npcs.get_mut(actors.entity(request.slot))
            && path.waits_for(&request)
        {
            let found = search.finish(navmesh, &mut path.waypoints);
            path.begin(found.waypoint_count, found.outcome);
        }
        give_back(search);
    }
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

/// Moves an NPC that walks, as often as its load level says.
pub fn follow(tick: &TickInfo, scene: &Scene, npc: &mut NpcRowItem) {
    if npc.path.way != Way::Walking {
        return;
    }
    let Some(ticks) = npc.pace.take_step(tick.tick, tick.rate.0) else { return };
    let speed_m_per_s = if npc.path.running { RUN_M_PER_S } else { WALK_M_PER_S };
    let before = npc.standing.0;
    let distance_m = speed_m_per_s * tick.dt_s * ticks as f32;
    npc.standing.0 = walk(&scene.level.navmesh, before, distance_m, &mut npc.path);
    let after = npc.standing.0.position();
    let way = after - before.position();
    if way.x != 0.0 || way.z != 0.0 {
        npc.pose.set_feet(after);
        npc.pose.yaw = way.x.atan2(way.z);
    }
}

/// Walks `distance_m` along the waypoints.
fn walk(navmesh: &NavMesh, from: NavPoint, mut distance_m: f32, path: &mut PathFollow) -> NavPoint {
    let mut at = from;
    while path.way == Way::Walking {
        let target = path.waypoints[usize::from(path.next)];
        let mut way = target - at.position();
        way.y = 0.0;
        let left_m = way.length();
        if left_m > distance_m {
            let walked = navmesh.walk_sliding(at, at.position() + way * (distance_m / left_m));
            // What rounding at a corner will not let pass counts as passed.
            if walked.outcome == WalkOutcome::Stopped {
                path.pass_waypoint();
            }
            return walked.end;
        }
        at = navmesh.walk_sliding(at, target).end;
        distance_m -= left_m;
        path.pass_waypoint();
    }
    at
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
