//! Legs: bring a bot to where it wants to be, by the rules that the match moves it by.
//!
//! A client is told where it was half a round trip ago, and not how fast it is. So a bot measures its speed by the places
//! that it is told of, and makes the match's own steps ([`step`]) with its last wish for what it has not heard of yet. By
//! that it knows when it has come to rest: who shoots while it runs misses.
//!
//! Ways come from the guide, and are looked for again when it gets nowhere. Sketch of the cost: some 3 µs a thought, and
//! 5 µs for a way.

use glam::Vec3;
use throng_platform::time::Nanos;
use throng_query::geometry::Aabb;

use super::guide::BotGuide;
use crate::{
    map::Map,
    movement::{Motion, RUN_M_PER_S, Wish, step},
};

/// Nearer than this a place counts as reached (m).
const REACHED_M: f32 = 0.5;
/// A goal that has moved by less is the same (m).
const SAME_GOAL_M: f32 = 0.5;
/// Speed is measured over so many ticks at least: a place is told to 1 cm, so it is right to 0.2 m/s.
const MEASURED_TICKS: u32 = 6;
/// Ticks that a bot looks ahead, at most: 200 ms.
const AHEAD_TICKS_MAX: u32 = 26;
/// Faster than this it runs against its own way to stop (m/s).
const BRAKE_M_PER_S: f32 = 3.0;
/// Who has not come so far (m) in so long (ms) is stuck.
const STUCK_M: f32 = 0.4;
const STUCK_MS: u64 = 700;

/// One pair of legs.
#[derive(Debug)]
pub struct Legs {
    motion: Motion,
    wish: Wish,
    /// When the speed was measured, and where it was then.
    measured: (u32, Vec3),
    velocity: Vec3,
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
            wish: Wish::default(),
            measured: (0, Vec3::ZERO),
            velocity: Vec3::ZERO,
            way: Vec::new(),
            next: 0,
            goal: None,
            progress: (Vec3::ZERO, Nanos::ZERO),
        }
    }
}

impl Legs {
    /// Takes where it was at `tick`, and thinks on to where it is `ahead_ticks` later.
    pub fn feel(&mut self, (tick, feet): (u32, Vec3), ahead_ticks: u32, zone: Option<&Aabb>, map: &Map, dt_s: f32) {
        let elapsed_ticks = tick.saturating_sub(self.measured.0);
        if elapsed_ticks >= MEASURED_TICKS || tick < self.measured.0 {
            let velocity = (feet - self.measured.1) / (elapsed_ticks.max(1) as f32 * dt_s);
            // Whoever was faster has stood up elsewhere.
            let is_real = velocity.with_y(0.0).length() < RUN_M_PER_S * 1.3;
            self.velocity = if is_real { velocity.with_y(0.0) } else { Vec3::ZERO };
            self.measured = (tick, feet);
        }
        self.motion = Motion { velocity: self.velocity, ..Motion::standing(feet) };
        for _ in 0..ahead_ticks.min(AHEAD_TICKS_MAX) {
            step(&mut self.motion, &self.wish, zone, map, dt_s);
        }
    }

    /// Where it is now, as far as it knows.
    pub fn motion(&self) -> &Motion {
        &self.motion
    }

    /// Keeps what it has told the match, to think on with.
    pub fn note(&mut self, wish: Wish) {
        self.wish = wish;
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
        let wants = self.wish.direction != [0.0, 0.0];
        wants && now.saturating_sub(self.progress.1) > Nanos::from_millis(STUCK_MS)
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
    use crate::{map::layout::middle_of, movement::BODY_HALF_M};

    const DT_S: f32 = 1.0 / 128.0;
    const THOUGHT_TICKS: u32 = 6;

    /// A body that the match moves, and legs that are told of it late.
    struct Run {
        body: Motion,
        tick: u32,
        told: Vec<Vec3>,
        legs: Legs,
    }

    impl Run {
        fn new(at: Vec3) -> Self {
            Self { body: Motion::standing(at), tick: 0, told: vec![at], legs: Legs::default() }
        }

        /// One thought: `wish` of what the legs know.
        fn think(&mut self, late_ticks: u32, wish: impl Fn(&mut Legs, Nanos) -> [f32; 2]) {
            let tick = self.tick.saturating_sub(late_ticks);
            let now = Nanos::from_millis(u64::from(self.tick) * 1_000 / 128);
            self.legs.feel((tick, self.told[tick as usize]), self.tick - tick, None, &Map::load(), DT_S);
            let wish = Wish { direction: wish(&mut self.legs, now), ..Wish::default() };
            self.legs.note(wish);
            for _ in 0..THOUGHT_TICKS {
                step(&mut self.body, &wish, None, &Map::load(), DT_S);
                self.told.push(self.body.at);
                self.tick += 1;
            }
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
                    run.think(6, |legs, now| legs.go(now, *goal, &guide));
                    assert!(run.tick - begin < 128 * 20, "{} to {goal}: {:?}", way.name, run.body);
                }
                let off_m = flat_m(run.body.at, *goal);
                assert!(off_m < 2.0 * REACHED_M + BODY_HALF_M, "{}: {off_m}", way.name);
            }
        }
    }

    #[test]
    fn a_runner_stands_still_soon_and_knows_it() {
        let mut run = Run::new(middle_of(2, 2));
        (0..12).for_each(|_| run.think(6, |_, _| [1.0, 0.0]));
        assert!((run.legs.motion().speed_m_per_s() - RUN_M_PER_S).abs() < 0.6, "{:?}", run.legs.motion());
        assert!(flat_m(run.legs.motion().at, run.body.at) < RUN_M_PER_S * DT_S * THOUGHT_TICKS as f32 + 0.15);
        (0..6).for_each(|_| run.think(6, |legs, _| legs.halt()));
        assert!(run.body.speed_m_per_s() < 0.8, "after 280 ms: {:?}", run.body);
    }
}
