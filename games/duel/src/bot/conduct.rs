//! Conduct: how a bot does what it wants to do, and how it fights.
//!
//! It stops to shoot, fires a burst, steps aside while the weapon comes down, and hides while it loads. With nobody in
//! sight it goes where its task is, looks where it saw somebody last, peeks out of cover and goes back, and loads there.
//! Who holds an angle steps to and fro, and who waits for a round strolls about its base, as players do.
//!
//! Everything here ends in one [`Input`]: what a bot does a player could do with the same keys.

use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::time::Nanos;
use throng_query::geometry::Aabb;

use super::{
    eyes::{Eyes, Target},
    guide::{BotGuide, Post},
    hand::Hand,
    legs::{Legs, flat_m},
    manner::{Dawdling, Manner},
    role::Task,
    situation::Situation,
};
use crate::{
    components::Doing,
    movement::Motion,
    protocol::{Input, Kit},
};

/// Faster than this one does not shoot (m/s), but at somebody who is nearer than that (m).
const STEADY_M_PER_S: f32 = 1.2;
const CLOSE_M: f32 = 5.0;
/// To one side, and then to the other (ms).
const DODGE_MS: [u64; 2] = [350, 800];
/// To and fro while one holds an angle: a step, and how long one stands then (ms).
const SHIFT_MS: [u64; 2] = [250, 500];
const REST_MS: [u64; 2] = [60, 250];
/// One keeps so far from the edge of it (m): who leans against it runs off in the tick in which it falls, which nobody
/// predicts.
const FROM_EDGE_M: f32 = 1.5;
/// How long one goes for the same place of its base (ms).
const STROLL_MS: [u64; 2] = [1_500, 4_000];
/// How long one looks around a corner, and how long one stays behind it (ms).
const OUT_MS: [u64; 2] = [2_500, 7_000];
const IN_MS: [u64; 2] = [700, 2_000];
/// So near its post one walks quietly and looks where the post looks (m).
const NEAR_POST_M: f32 = 3.0;
/// Between two looks around for somewhere to hide (ms).
const HIDE_AGAIN_MS: u64 = 50;
/// Where one looks for somebody whose feet are there (m).
const CHEST: Vec3 = Vec3::new(0.0, 1.3, 0.0);

/// One thought: what it goes by. Bots think once for each tick, and what is expensive they do less often.
#[derive(Clone, Copy)]
pub struct Thought<'a> {
    pub now: Nanos,
    /// Since the thought before (s).
    pub dt_s: f32,
    pub situation: &'a Situation,
    pub guide: &'a BotGuide,
    /// What it was told last that it has.
    pub kit: Option<Kit>,
    pub manner: Manner,
}

/// One thing and the other in turns, each for some time.
#[derive(Debug, Clone, Copy, Default)]
struct Turns {
    is_first: bool,
    until: Nanos,
}

impl Turns {
    /// Whether it is the first one's turn; how long they last (ms).
    fn take(&mut self, now: Nanos, first_ms: [u64; 2], other_ms: [u64; 2], rng: &mut Xoshiro256PlusPlus) -> bool {
        if now >= self.until {
            self.is_first = !self.is_first;
            let [shortest, longest] = if self.is_first { first_ms } else { other_ms };
            self.until = now + Nanos::from_millis(rng.random_range(shortest..longest));
        }
        self.is_first
    }
}

/// A bot's body and what it does with it.
#[derive(Default)]
pub struct Conduct {
    pub eyes: Eyes,
    hand: Hand,
    legs: Legs,
    dawdling: Dawdling,
    dodge: Turns,
    peek: Turns,
    shift: Turns,
    /// Where in its base it goes, and for how long.
    stroll: Option<(Vec3, Nanos)>,
    hiding: Option<Vec3>,
    looks_to_hide_at: Nanos,
    /// Yaw and pitch of what it wants to throw, and whether it looks there.
    throw: Option<(f32, f32)>,
    is_throw_aimed: bool,
}

impl Conduct {
    /// Another match: it has other hands.
    pub fn begin_match(&mut self) {
        self.hand.forget();
        self.begin_round();
    }

    /// Another round: it stands elsewhere, and has seen nobody.
    pub fn begin_round(&mut self) {
        self.eyes.forget();
        self.legs.forget();
        self.stroll = None;
        self.hiding = None;
    }

    /// Feels how it stands, and how many shots it has fired since the last thought.
    pub fn feel(&mut self, thought: &Thought, motion: Motion, fired: u8) {
        self.legs.feel(motion);
        self.hand.feel(fired, thought.dt_s);
    }

    /// Where it looks out of.
    pub fn eye(&self) -> Vec3 {
        self.legs.motion().eye()
    }

    /// Looks for somebody to shoot at.
    pub fn look(&mut self, thought: &Thought, rng: &mut Xoshiro256PlusPlus) -> Option<Target> {
        let from = (self.eye(), self.hand.yaw);
        self.eyes.look(thought.now, thought.situation, from, thought.guide, rng)
    }

    /// Wants to throw something along these angles, or nothing.
    pub fn aim_throw(&mut self, throw: Option<(f32, f32)>) {
        (self.throw, self.is_throw_aimed) = (throw, false);
    }

    /// Whether it looks where it wants to throw.
    pub fn is_throw_aimed(&self) -> bool {
        self.is_throw_aimed
    }

    /// Stands still and looks on.
    pub fn stand(&mut self) -> Input {
        let direction = self.legs.halt();
        self.input(direction)
    }

    /// Strolls about what it may not leave.
    pub fn stroll(&mut self, thought: &Thought, home: &Aabb, rng: &mut Xoshiro256PlusPlus) -> Input {
        let is_there = |place: Vec3| self.legs.is_at(place);
        let place = match self.stroll.filter(|(place, until)| thought.now < *until && !is_there(*place)) {
            Some((place, _)) => place,
            None => {
                let mut somewhere = |from: f32, to: f32| from + (to - from) * rng.random::<f32>();
                let (min, max) = (home.min + Vec3::splat(FROM_EDGE_M), home.max - Vec3::splat(FROM_EDGE_M));
                let (x, z) = (somewhere(min.x, max.x), somewhere(min.z, max.z));
                let place = Vec3::new(x, self.legs.motion().at.y, z);
                let until = thought.now + Nanos::from_millis(rng.random_range(STROLL_MS[0]..STROLL_MS[1]));
                self.stroll = Some((place, until));
                place
            }
        };
        self.go(thought, place, rng)
    }

    /// Shoots at somebody.
    pub fn fight(&mut self, thought: &Thought, target: &Target, rng: &mut Xoshiro256PlusPlus) -> Input {
        let arms = thought.situation.me().arms;
        let pulls = self.hand.aim(self.eye(), target, arms.weapon, thought.manner.miss, thought.dt_s, rng);
        let is_empty = thought.kit.is_some_and(|kit| kit.rounds == 0);
        if arms.doing == Doing::Loading || is_empty {
            let direction = self.hide(thought, target.feet, rng);
            return self.input(direction).and_load();
        }
        self.hiding = None;
        let direction =
            if self.hand.is_spent(target.distance_m) { self.step_aside(thought.now, rng) } else { self.legs.halt() };
        let is_steady = self.legs.motion().speed_m_per_s() < STEADY_M_PER_S || target.distance_m < CLOSE_M;
        let input = self.input(direction);
        if pulls && is_steady { input.and_fire() } else { input }
    }

    /// Goes on with a task.
    pub fn work(&mut self, thought: &Thought, task: Task, rng: &mut Xoshiro256PlusPlus) -> Input {
        match task {
            Task::Go(place) => self.go(thought, place, rng),
            Task::Hold(post) => self.hold(thought, &post, rng),
            Task::Plant(place) | Task::Defuse(place) if self.legs.is_at(place) => self.stand().and_use(),
            Task::Plant(place) | Task::Defuse(place) => self.go(thought, place, rng),
        }
    }

    fn go(&mut self, thought: &Thought, place: Vec3, rng: &mut Xoshiro256PlusPlus) -> Input {
        let direction = self.way_to(thought, place, rng);
        self.look_ahead(thought, direction);
        let input = self.input(direction);
        if self.wants_to_load(thought, 0.35) { input.and_load() } else { input }
    }

    /// Peeks around a corner and goes back, in turns; and stays back while it loads.
    fn hold(&mut self, thought: &Thought, post: &Post, rng: &mut Xoshiro256PlusPlus) -> Input {
        let wants_to_load = self.wants_to_load(thought, 0.7);
        let is_loading = thought.situation.me().arms.doing == Doing::Loading;
        let is_out = self.peek.take(thought.now, OUT_MS, IN_MS, rng) && !wants_to_load && !is_loading;
        let place = if is_out { post.corner } else { post.cover };
        let direction = self.way_to(thought, place, rng);
        if flat_m(self.legs.motion().at, post.corner) > NEAR_POST_M {
            self.look_ahead(thought, direction);
            return self.input(direction);
        }
        let watched = self.remembered(thought).unwrap_or(post.watch);
        self.look_at(thought, watched + CHEST);
        let input = if direction == [0.0, 0.0] { self.shift(thought, rng) } else { self.walk(direction) };
        if wants_to_load { input.and_load() } else { input }
    }

    /// The direction to go in to get there; none while it stands about.
    fn way_to(&mut self, thought: &Thought, place: Vec3, rng: &mut Xoshiro256PlusPlus) -> [f32; 2] {
        if self.dawdling.stands(thought.now, thought.manner, rng) {
            [0.0, 0.0]
        } else {
            self.legs.go(thought.now, place, thought.guide)
        }
    }

    /// A step aside and a rest, in turns: who holds an angle is no easy mark.
    fn shift(&mut self, thought: &Thought, rng: &mut Xoshiro256PlusPlus) -> Input {
        if self.dawdling.stands(thought.now, thought.manner, rng)
            || !self.shift.take(thought.now, SHIFT_MS, REST_MS, rng)
        {
            return self.stand();
        }
        let direction = self.step_aside(thought.now, rng);
        self.walk(direction)
    }

    /// Whether less than this share of its rounds is left, and nobody is about.
    fn wants_to_load(&self, thought: &Thought, share: f32) -> bool {
        let Some(Kit { weapon, rounds, .. }) = thought.kit else { return false };
        let are_few = f32::from(rounds) < f32::from(weapon.traits().rounds) * share;
        are_few && (rounds == 0 || self.remembered(thought).is_none())
    }

    /// Where it saw somebody last who may still be about.
    fn remembered(&self, thought: &Thought) -> Option<Vec3> {
        let situation = thought.situation;
        self.eyes.remembered(thought.now, situation.score.alive & situation.team.other().seats())
    }

    /// Looks where somebody was seen, or where it goes.
    fn look_ahead(&mut self, thought: &Thought, direction: [f32; 2]) {
        if let Some(place) = self.remembered(thought) {
            self.look_at(thought, place + CHEST);
        } else if direction != [0.0, 0.0] {
            let ahead = Vec3::new(direction[0], 0.0, direction[1]);
            self.look_at(thought, self.eye() + ahead);
        }
    }

    /// Looks there, or where it wants to throw.
    fn look_at(&mut self, thought: &Thought, at: Vec3) {
        match self.throw {
            Some((yaw, pitch)) => self.is_throw_aimed = self.hand.look(yaw, pitch, thought.dt_s),
            None => _ = self.hand.look_at(self.eye(), at, thought.dt_s),
        }
    }

    /// The direction to somewhere near by where it cannot be seen from there; aside, if there is nothing.
    fn hide(&mut self, thought: &Thought, from: Vec3, rng: &mut Xoshiro256PlusPlus) -> [f32; 2] {
        let feet = self.legs.motion().at;
        if self.hiding.is_none() && thought.now >= self.looks_to_hide_at {
            self.hiding = thought.guide.hiding_place(feet, from, rng);
            self.looks_to_hide_at = thought.now + Nanos::from_millis(HIDE_AGAIN_MS);
        }
        match self.hiding {
            Some(place) => self.legs.go(thought.now, place, thought.guide),
            None => self.step_aside(thought.now, rng),
        }
    }

    /// To the right or the left of where it looks.
    fn step_aside(&mut self, now: Nanos, rng: &mut Xoshiro256PlusPlus) -> [f32; 2] {
        let (sin, cos) = self.hand.yaw.sin_cos();
        if self.dodge.take(now, DODGE_MS, DODGE_MS, rng) { [cos, -sin] } else { [-cos, sin] }
    }

    fn input(&mut self, direction: [f32; 2]) -> Input {
        self.legs.note(direction);
        Input::new(direction, self.hand.yaw, self.hand.pitch)
    }

    fn walk(&mut self, direction: [f32; 2]) -> Input {
        self.legs.note(direction);
        Input::new(direction, self.hand.yaw, self.hand.pitch).and_walk()
    }
}
