//! The path queue: what NPCs ask for, wait for and walk along.
//!
//! A thought puts a [`PathRequest`] into the world's [`PathQueue`] and notes in the NPC's own [`PathFollow`] that it
//! waits. The way comes back as at most [`WAYPOINTS_MAX`] corners inside the row; a longer one is cut there and asked
//! for again when it has been walked. How ways are searched and walked is in [`super::paths`].

use std::collections::VecDeque;

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_pack::{ArrayVec, List, Pack};
use throng_query::nav::{NavPoint, PathOutcome, PathSearch};

use crate::components::Slot;

/// Corners that a row has room for.
pub const WAYPOINTS_MAX: usize = 8;

/// Where an NPC is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.way")]
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
    pub(super) waypoints: [Vec3; WAYPOINTS_MAX],
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

/// A way in a checkpoint, with the corners that are still to come.
#[derive(Debug, Clone, PartialEq, Pack)]
#[pack(name = "precinct.path")]
pub struct SavedPath {
    way: Way,
    running: bool,
    ticket: u8,
    cut: bool,
    goal: Option<NavPoint>,
    /// Of a way that is walked.
    waypoints: ArrayVec<[f32; 3], WAYPOINTS_MAX>,
}

impl From<&PathFollow> for SavedPath {
    fn from(path: &PathFollow) -> Self {
        let PathFollow { way, running, next, count, ticket, cut, goal, waypoints } = *path;
        let is_walking = way == Way::Walking;
        let left = waypoints.iter().take(count.into()).skip(next.into()).filter(|_| is_walking);
        // Only the end of a way that is walked asks whether it was cut.
        Self { way, running, ticket, cut: cut && is_walking, goal, waypoints: left.map(Vec3::to_array).collect() }
    }
}

impl From<SavedPath> for PathFollow {
    fn from(saved: SavedPath) -> Self {
        let SavedPath { way, running, ticket, cut, goal, waypoints } = saved;
        let way = if way == Way::Walking && waypoints.is_empty() { Way::Idle } else { way };
        let mut path = Self { way, running, count: waypoints.len() as u8, ticket, cut, goal, ..Self::default() };
        path.waypoints.iter_mut().zip(waypoints).for_each(|(to, from)| *to = from.into());
        path
    }
}

impl PathFollow {
    /// Where it wants to go, once it has ever wanted to.
    pub fn goal(&self) -> Option<NavPoint> {
        self.goal
    }

    pub fn way(&self) -> Way {
        self.way
    }

    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// The corner that is walked to.
    pub(super) fn waypoint(&self) -> Vec3 {
        self.waypoints[usize::from(self.next)]
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

    pub(super) fn waits_for(&self, request: &PathRequest) -> bool {
        self.way == Way::Asked && self.ticket == request.ticket
    }

    pub(super) fn begin(&mut self, count: usize, outcome: PathOutcome) {
        self.next = 0;
        self.count = count as u8;
        self.cut = outcome == PathOutcome::Cut;
        self.way = if count == 0 { Way::Blocked } else { Way::Walking };
    }

    /// Goes on to the next corner, or ends.
    pub(super) fn pass_waypoint(&mut self) {
        self.next += 1;
        if self.next == self.count {
            self.way = if self.cut { Way::Cut } else { Way::Arrived };
        }
    }
}

/// One NPC's wish to go somewhere. The way begins where it stands when the search does.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.path_request")]
pub struct PathRequest {
    pub(super) slot: Slot,
    ticket: u8,
    pub(super) goal: NavPoint,
}

/// A search that goes on over several ticks.
pub(super) struct ActiveSearch {
    pub request: PathRequest,
    /// Where it began.
    pub from: NavPoint,
    pub search: PathSearch,
}

/// The same without the search itself, which has a row for each polygon of the level: done again for as many nodes it is
/// where it was.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.begun_search")]
pub(super) struct BegunSearch {
    pub request: PathRequest,
    pub from: NavPoint,
    pub nodes: u32,
}

/// Path requests in a checkpoint.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.path_queue")]
pub struct SavedQueue {
    waiting: List<PathRequest, { u16::MAX as usize }>,
    begun: Option<BegunSearch>,
}

/// A world's path requests. At most one for each NPC (and no fewer than 8) waits; more are refused, which the NPC takes
/// as "blocked".
pub struct PathQueue {
    pub(super) waiting: VecDeque<PathRequest>,
    requests_max: usize,
    pub(super) nodes_per_tick: u32,
    pub(super) active: Option<ActiveSearch>,
    /// A search that another run of this world had begun: it is done again before the next tick.
    pub(super) to_resume: Option<BegunSearch>,
    pub(super) refused: u64,
}

impl PathQueue {
    /// A queue for a world of so many NPCs.
    pub fn new(npc_count: usize) -> Self {
        let requests_max = npc_count.max(8);
        Self {
            waiting: VecDeque::with_capacity(requests_max),
            requests_max,
            // A path takes some 40 nodes and an NPC wants one every 5 s: at 20 Hz 0.4 nodes per NPC and tick on
            // average.
            nodes_per_tick: 96.max(npc_count as u32),
            active: None,
            to_resume: None,
            refused: 0,
        }
    }

    /// What is kept of it between two ticks.
    pub fn save(&self) -> SavedQueue {
        debug_assert_eq!(self.refused, 0, "a tick counts them");
        let begun = |ActiveSearch { request, from, search }: &ActiveSearch| BegunSearch {
            request: *request,
            from: *from,
            nodes: search.node_count(),
        };
        let waiting: Vec<PathRequest> = self.waiting.iter().copied().collect();
        let waiting = waiting.try_into().expect("one for each character at most");
        SavedQueue { waiting, begun: self.active.as_ref().map(begun).or(self.to_resume) }
    }

    pub fn load(&mut self, SavedQueue { waiting, begun }: SavedQueue) {
        self.waiting.clear();
        self.waiting.extend(waiting.iter());
        (self.active, self.to_resume) = (None, begun);
    }

    /// All that it was asked and has not answered, with where they are to lead and come from.
    pub fn places(&self) -> impl Iterator<Item = (Slot, NavPoint)> {
        let begun =
            self.to_resume.iter().flat_map(|begun| [begun.from, begun.request.goal].map(|at| (begun.request.slot, at)));
        self.waiting.iter().map(|request| (request.slot, request.goal)).chain(begun)
    }

    /// So few nodes a tick that searches take several.
    #[cfg(test)]
    pub fn search_slowly(&mut self) {
        self.nodes_per_tick = 8;
    }

    #[cfg(test)]
    pub fn is_searching(&self) -> bool {
        self.active.is_some()
    }

    /// Whether there is anything to search.
    pub fn has_work(&self) -> bool {
        self.active.is_some() || !self.waiting.is_empty()
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
