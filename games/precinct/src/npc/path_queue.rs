//! The path queue: what NPCs ask for, wait for and walk along.
//!
//! A thought puts a [`PathRequest`] into the world's [`PathQueue`] and notes in the NPC's own [`PathFollow`] that it
//! waits. The way comes back as at most [`WAYPOINTS_MAX`] corners inside the row; a longer one is cut there and asked
//! for again when it has been walked. How ways are searched and walked is in [`super::paths`].

use std::collections::VecDeque;

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_query::nav::{NavPoint, PathOutcome, PathSearch};

use crate::components::Slot;

/// Corners that a row has room for.
pub const WAYPOINTS_MAX: usize = 8;

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

impl PathFollow {
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
#[derive(Debug, Clone, Copy)]
pub struct PathRequest {
    pub(super) slot: Slot,
    ticket: u8,
    pub(super) goal: NavPoint,
}

/// A world's path requests. At most one for each NPC (and no fewer than 8) waits; more are refused, which the NPC takes
/// as "blocked".
pub struct PathQueue {
    pub(super) waiting: VecDeque<PathRequest>,
    requests_max: usize,
    pub(super) nodes_per_tick: u32,
    pub(super) active: Option<(PathRequest, PathSearch)>,
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
            refused: 0,
        }
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
