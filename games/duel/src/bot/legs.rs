//! Legs: bring a bot to where it wants to be, by the rules that the match moves it by.
//!
//! Where it is and how fast, it has from what it predicts ([`crate::prediction`]), which is the match's own steps. By that it
//! knows when it has come to rest: who shoots while it runs misses.
//!
//! Ways come from the guide, and are looked for again when it gets nowhere. Sketch of the cost: next to nothing a thought,
//! and 5 µs for a way.

use glam::Vec3;
use throng_platform::time::Nanos;

use super::guide::BotGuide;
use crate::movement::Motion;

/// Nearer than this a place counts as reached (m).
const REACHED_M: f32 = 0.5;
/// A goal that has moved by less is the same (m).
const SAME_GOAL_M: f32 = 0.5;
/// Faster than this it runs against its own way to stop (m/s).
const BRAKE_M_PER_S: f32 = 3.0;
/// Who has not come so far (m) in so long (ms) is stuck.
const STUCK_M: f32 = 0.4;
const STUCK_MS: u64 = 700;

/// One pair of legs.
#[derive(Debug)]
pub struct Legs {
    motion: Motion,
    /// Whether it wanted to get somewhere, as of its last thought.
    is_going: bool,
    way: Vec<Vec3>,
    next: usize,
    goal: Option<Vec3>,
    /// Where it was when it last got somewhere, and when.
    progress: (Vec3, Nanos),
}

impl Default for Legs {
    fn default() -> Self {
        Self {
            motion: Motion::standing(Vec3::ZERO),
            is_going: false,
            way: Vec::new(),
            next: 0,
            goal: None,
            progress: (Vec3::ZERO, Nanos::ZERO),
        }
    }
}

impl Legs {
    /// Takes where it is and how it moves.
    pub fn feel(&mut self, motion: Motion) {
        self.motion = motion;
    }

    /// Where it is now, as far as it knows.
    pub fn motion(&self) -> &Motion {
        &self.motion
    }

    /// Keeps whether it wants to get somewhere.
    pub fn note(&mut self, direction: [f32; 2]) {
        self.is_going = direction != [0.0, 0.0];
    }

    /// Forgets where it was going.
    pub fn forget(&mut self) {
        self.goal = None;
        self.way.clear();
        self.next = 0;
    }

    /// The direction to run in to get to `goal`; none when it is there.
    pub fn go(&mut self, now: Nanos, goal: Vec3, guide: &BotGuide) -> [f32; 2] {
        let feet = self.motion.at;
        if flat_m(feet, self.progress.0) > STUCK_M {
            self.progress = (feet, now);
        }
        let is_new = self.goal.is_none_or(|known| known.distance(goal) > SAME_GOAL_M);
        if is_new || self.is_stuck(now) {
            guide.find_way(feet, goal, &mut self.way);
            (self.goal, self.next, self.progress) = (Some(goal), 0, (feet, now));
        }
        while let Some(&waypoint) = self.way.get(self.next) {
            let way = waypoint - feet;
            let left_m = way.x.hypot(way.z);
            if left_m > REACHED_M {
                return [way.x / left_m, way.z / left_m];
            }
            self.next += 1;
        }
        [0.0, 0.0]
    }

    /// Whether it wants to get somewhere and does not.
    fn is_stuck(&self, now: Nanos) -> bool {
        self.is_going && now.saturating_sub(self.progress.1) > Nanos::from_millis(STUCK_MS)
    }

    /// The direction to run in to stand still soon.
    pub fn halt(&self) -> [f32; 2] {
        let speed = self.motion.speed_m_per_s();
        if speed < BRAKE_M_PER_S {
            return [0.0, 0.0];
        }
        [-self.motion.velocity.x / speed, -self.motion.velocity.z / speed]
    }

    pub fn is_at(&self, place: Vec3) -> bool {
        flat_m(self.motion.at, place) <= 2.0 * REACHED_M
    }
}

/// How far two places are apart, seen from above (m).
pub fn flat_m(one: Vec3, other: Vec3) -> f32 {
    (other - one).with_y(0.0).length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        map::{Map, layout::middle_of},
        movement::{BODY_HALF_M, RUN_M_PER_S, Wish, step},
    };

    const DT_S: f32 = 1.0 / 128.0;

    /// A body that the match moves, and legs that know of it.
    struct Run {
        body: Motion,
        tick: u32,
        legs: Legs,
    }

    impl Run {
        fn new(at: Vec3) -> Self {
            Self { body: Motion::standing(at), tick: 0, legs: Legs::default() }
        }

        /// One thought, and one step: `wish` of what the legs know.
        fn think(&mut self, wish: impl Fn(&mut Legs, Nanos) -> [f32; 2]) {
            let now = Nanos::from_millis(u64::from(self.tick) * 1_000 / 128);
            self.legs.feel(self.body);
            let direction = wish(&mut self.legs, now);
            self.legs.note(direction);
            step(&mut self.body, &Wish { direction, ..Wish::default() }, None, &Map::load(), DT_S);
            self.tick += 1;
        }
    }

    #[test]
    fn they_get_to_every_place_of_every_way_around_every_corner() {
        let (map, guide) = (Map::load(), BotGuide::load());
        for way in map.sites.iter().flat_map(|site| &site.ways) {
            let mut run = Run::new(way.waypoints[0]);
            for goal in &way.waypoints[1..] {
                let begin = run.tick;
                while !run.legs.is_at(*goal) || run.tick == begin {
                    run.think(|legs, now| legs.go(now, *goal, &guide));
                    assert!(run.tick - begin < 128 * 20, "{} to {goal}: {:?}", way.name, run.body);
                }
                let off_m = flat_m(run.body.at, *goal);
                assert!(off_m < 2.0 * REACHED_M + BODY_HALF_M, "{}: {off_m}", way.name);
            }
        }
    }

    #[test]
    fn a_runner_stands_still_soon() {
        let mut run = Run::new(middle_of(2, 2));
        (0..72).for_each(|_| run.think(|_, _| [1.0, 0.0]));
        assert!((run.body.speed_m_per_s() - RUN_M_PER_S).abs() < 0.1, "{:?}", run.body);
        (0..36).for_each(|_| run.think(|legs, _| legs.halt()));
        assert!(run.body.speed_m_per_s() < 0.8, "after 280 ms: {:?}", run.body);
    }
}
