//! Fog of war: which of many bodies each viewer may be told of, every tick.
//!
//! May be told of means: it is seen now, or it will be within the grace if one or both of them run for the corner. So the
//! grace is what an entity needs to be there when it comes into view, and what a cheat learns too much.
//!
//! For each pair is remembered what was found out of it, and for how long that holds:
//!
//! | found | holds for | asked meanwhile |
//! |---|---|---|
//! | hidden by cells or by one wall, wherever the two get until then | `recheck_ticks` | nothing |
//! | may be seen, along a line that is remembered | `recheck_ticks` | nothing |
//! | neither | `recheck_ticks` | every tick, whether it is seen as it is |
//!
//! So nobody who is seen waits for a turn. A viewer or a body that moves as its speed does not allow, by a jump or a
//! teleport, ends what was found out of it.
//!
//! What is told: everybody of whom one of the nine lines from the eye to the silhouette is free, in that tick; and whoever is
//! on a free line between places that both can reach within `grace_ms` and `recheck_ticks`, for `recheck_ticks` at most.
//!
//! A game may have what hides and is not solid, such as smoke: a veil, of which it is asked line by line. Around a wall one
//! comes from the side, and so the outermost places are looked at; out of a veil one comes in any direction, so where only
//! a veil is in between all places that both can reach are.
//!
//! Owned by its world, and used on its thread. Allocates at its start alone. Cost: a few nanoseconds for a pair of which all
//! is known; once in `recheck_ticks` a look at some cells, or up to 64 lines against one wall; for pairs near a corner up to
//! 18 casts, and for each body that is in such a pair 8. Behind a veil up to 99 lines are asked of the veil, and only those
//! that it leaves free are cast.

use std::cell::Cell;

use glam::Vec3;
use throng_profiler::scoped;

use super::{
    cells::CellVisibility,
    lines::{Body, LINES, LINES_NOW, RING, Sight, ring},
    proof::hides,
};
use crate::geometry::{Aabb, LevelGeometry, Line};

/// What viewers are told ahead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FogSettings {
    /// How often [`FogOfWar::begin_tick`] is called (from 1). Default 20.
    pub ticks_per_s: f32,
    /// How long before it can come into view a body is told of (ms, at least 0). Default 150. Too low → it pops up, as late
    /// as the way to the client is long and as it interpolates; too high → a cheat sees around corners.
    pub grace_ms: f32,
    /// What was found out holds for so many ticks (1 to 64). Default 4. Too low → time; too high → the grace of those who
    /// were told grows by as much.
    pub recheck_ticks: u32,
    /// How far an eye or a crown gets up within the grace, by a jump (m, at least 0). Default 0.
    pub rise_m: f32,
}

impl Default for FogSettings {
    fn default() -> Self {
        Self { ticks_per_s: 20.0, grace_ms: 150.0, recheck_ticks: 4, rise_m: 0.0 }
    }
}

impl FogSettings {
    /// For how long ahead a place counts as within reach (s).
    pub fn reach_s(&self) -> f32 {
        self.grace_ms / 1_000.0 + self.recheck_ticks as f32 / self.ticks_per_s
    }
}

/// Why a fog cannot be.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum FogError {
    #[error("{0} ticks per second: from 1 on")]
    Rate(f32),
    #[error("a grace of {0} ms: it may be 0 to 10000 ms")]
    Grace(f32),
    #[error("a look once in {0} ticks: it may be 1 to 64")]
    Recheck(u32),
    #[error("a rise of {0} m: from 0 on")]
    Rise(f32),
}

/// What a fog did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FogCounts {
    /// Pairs that were asked about, and of these the ones of which it was known.
    pub asked: u64,
    pub known: u64,
    /// Pairs that were hidden by cells, and by one wall.
    pub hidden_by_cells: u64,
    pub hidden_by_wall: u64,
    pub casts: u64,
    /// Bodies with numbers that are not finite: nobody sees them.
    pub rejected: u64,
}

/// Who may be told of whom. One for a world.
#[derive(Debug)]
pub struct FogOfWar {
    settings: FogSettings,
    bodies_max: usize,
    tick: Option<u32>,
    standing: Vec<Standing>,
    /// By viewer and body.
    pairs: Vec<Pair>,
    counts: FogCounts,
}

/// A body in this tick.
#[derive(Debug, Clone, Copy)]
struct Standing {
    body: Body,
    /// The last tick in which it moved as nobody could foresee.
    restless_at: u32,
    /// The tick of `ring`.
    ring_at: Option<u32>,
    ring: [Vec3; RING],
}

/// What is known of a viewer and a body.
#[derive(Debug, Clone, Copy)]
struct Pair {
    lives: [u32; 2],
    judged_at: u32,
    due_at: u32,
    /// The solid that was between them last.
    solid: u32,
    /// The line that was free last.
    line: u8,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Wherever they get until it is due.
    Hidden,
    /// Nothing was seen, and nothing is proven.
    Unseen,
    Seen,
}

const NO_SOLID: u32 = u32::MAX;
/// As a line: the one over what is between them.
const RAISED: u8 = LINES;
/// By so much more than its speed may a body move (rounding, and the last step of a slope).
const SPEED_SLACK: f32 = 1.01;
const STEP_SLACK_M: f32 = 0.001;
/// An eye that moves up or down by more than this is on its way over something. (m)
const LEVEL_M: f32 = 0.001;

impl FogOfWar {
    /// For viewers with an index below `viewers_max` and bodies with one below `bodies_max`: 24 bytes for each pair of them.
    ///
    /// # Errors
    /// If a setting is out of its range.
    pub fn new(settings: FogSettings, viewers_max: usize, bodies_max: usize) -> Result<Self, FogError> {
        let FogSettings { ticks_per_s, grace_ms, recheck_ticks, rise_m } = settings;
        if !(ticks_per_s >= 1.0 && ticks_per_s.is_finite()) {
            return Err(FogError::Rate(ticks_per_s));
        }
        if !(0.0..=10_000.0).contains(&grace_ms) {
            return Err(FogError::Grace(grace_ms));
        }
        if !(1..=64).contains(&recheck_ticks) {
            return Err(FogError::Recheck(recheck_ticks));
        }
        if !(rise_m >= 0.0 && rise_m.is_finite()) {
            return Err(FogError::Rise(rise_m));
        }
        let nobody = Pair { lives: [0; 2], judged_at: 0, due_at: 0, solid: NO_SOLID, line: 0, state: State::Unseen };
        Ok(Self {
            settings,
            bodies_max,
            tick: None,
            standing: Vec::with_capacity(bodies_max),
            pairs: vec![nobody; viewers_max * bodies_max],
            counts: FogCounts::default(),
        })
    }

    /// Where everybody is in this tick, by index. Once per tick, before the tick's looks.
    ///
    /// # Panics
    /// With more than `bodies_max` bodies.
    pub fn begin_tick(&mut self, tick: u32, bodies: &[Body]) {
        assert!(bodies.len() <= self.bodies_max, "{} bodies, and {} at most", bodies.len(), self.bodies_max);
        // After a pause nobody knows how they got where they are.
        let is_next = self.tick.is_some_and(|last| last.wrapping_add(1) == tick);
        self.tick = Some(tick);
        let new = Standing { body: Body::default(), restless_at: tick, ring_at: None, ring: [Vec3::ZERO; RING] };
        self.standing.resize(bodies.len(), new);
        for (standing, body) in self.standing.iter_mut().zip(bodies) {
            let body = if body.is_finite() {
                *body
            } else {
                self.counts.rejected += 1;
                Body::default()
            };
            if !is_next || !is_step(&standing.body, &body, self.settings.ticks_per_s) {
                standing.restless_at = tick;
            }
            standing.body = body;
        }
    }

    /// Which of the candidates, by index, this viewer may be told of: sets bit `i % 64` of word `i / 64` for the one at `i`,
    /// and leaves all others as they are. Itself it may. An index at which nobody is, it may not.
    ///
    /// # Panics
    /// With a viewer that is not below `viewers_max`, or with fewer bits than candidates.
    pub fn look(
        &mut self,
        level: &LevelGeometry,
        cells: Option<&CellVisibility>,
        viewer: u32,
        candidates: &[u32],
        seen: &mut [u64],
    ) {
        self.look_past(level, |_, _| false, cells, viewer, candidates, seen);
    }

    /// The same with a veil: whether something that is no part of the level, such as smoke, keeps an eye (the first place)
    /// from seeing a point. It may come and go from tick to tick.
    ///
    /// # Panics
    /// As `look` does.
    #[scoped("occlusion.look")]
    pub fn look_past(
        &mut self,
        level: &LevelGeometry,
        veil: impl Fn(Vec3, Vec3) -> bool,
        cells: Option<&CellVisibility>,
        viewer: u32,
        candidates: &[u32],
        seen: &mut [u64],
    ) {
        let lines = Lines::new(level, veil);
        for (at, body) in candidates.iter().enumerate() {
            if self.may_tell(&lines, cells, viewer as usize, *body as usize) {
                seen[at / 64] |= 1 << (at % 64);
            }
        }
        self.counts.casts += lines.casts.get();
    }

    /// What was done since it was last asked.
    pub fn take_counts(&mut self) -> FogCounts {
        std::mem::take(&mut self.counts)
    }

    /// Heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.standing.capacity() * size_of::<Standing>() + self.pairs.capacity() * size_of::<Pair>()
    }

    fn may_tell<V: Fn(Vec3, Vec3) -> bool>(
        &mut self,
        lines: &Lines<'_, V>,
        cells: Option<&CellVisibility>,
        viewer: usize,
        body: usize,
    ) -> bool {
        let (Some(eye), Some(other), Some(now)) = (self.standing.get(viewer), self.standing.get(body), self.tick)
        else {
            return false;
        };
        let lives = [eye.body.life, other.body.life];
        if lives.contains(&0) || viewer == body {
            return viewer == body && lives[0] != 0;
        }
        self.counts.asked += 1;
        let place = viewer * self.bodies_max + body;
        let mut pair = self.pairs[place];
        let is_older = |than: u32| (pair.judged_at.wrapping_sub(than) as i32) < 0;
        let is_known = pair.lives == lives && !is_older(eye.restless_at) && !is_older(other.restless_at);
        if !is_known || now.wrapping_sub(pair.due_at) as i32 >= 0 {
            pair.lives = lives;
            pair.judged_at = now;
            pair.due_at = self.next_turn(now, viewer + body);
            pair.state = self.judge(lines, cells, [viewer, body], &mut pair);
        } else if pair.state == State::Unseen {
            let sight = Sight::new(&eye.body, &other.body);
            let (eye, other) = (eye.body, other.body);
            if lines.is_seen_now(&sight, &eye, &other, &mut pair) {
                (pair.state, pair.judged_at) = (State::Seen, now);
                pair.due_at = self.next_turn(now, viewer + body);
            }
        } else {
            self.counts.known += 1;
        }
        self.pairs[place] = pair;
        pair.state == State::Seen
    }

    /// The first tick after this one in which it is a pair's turn: pairs have theirs in different ticks.
    fn next_turn(&self, now: u32, pair: usize) -> u32 {
        let (next, period) = (now.wrapping_add(1), self.settings.recheck_ticks);
        let phase = next.wrapping_add(pair as u32) % period;
        next.wrapping_add((period - phase) % period)
    }

    fn judge<V: Fn(Vec3, Vec3) -> bool>(
        &mut self,
        lines: &Lines<'_, V>,
        cells: Option<&CellVisibility>,
        [viewer, body]: [usize; 2],
        pair: &mut Pair,
    ) -> State {
        let [eye, other] = [viewer, body].map(|index| self.standing[index].body);
        let (reach_s, rise_m) = (self.settings.reach_s(), self.settings.rise_m);
        let [eye_reach_m, reach_m] = [eye, other].map(|body| body.speed_m_per_s_max * reach_s);
        let (from, to) = (eye.eye_region(eye_reach_m, rise_m), other.region(reach_m, rise_m));
        if cells.is_some_and(|cells| !cells.may_see(&from, &to)) {
            self.counts.hidden_by_cells += 1;
            return State::Hidden;
        }
        let level = lines.level;
        if self.is_walled_off(level, &from, &to, pair) {
            self.counts.hidden_by_wall += 1;
            return State::Hidden;
        }
        let sight = Sight::new(&eye, &other);
        lines.is_veiled.set(false);
        if lines.is_seen_now(&sight, &eye, &other, pair) {
            return State::Seen;
        }
        let (eye_ring, ring) = (self.ring_of(level, viewer, eye_reach_m), self.ring_of(level, body, reach_m));
        let (eyes, feet) = (sight.sides(&eye_ring), sight.sides(&ring));
        let within_reach = |number: u8| {
            if number == RAISED { sight.line_raised(rise_m) } else { sight.line_within_reach(number, &eyes, &feet) }
        };
        let last = if rise_m > 0.0 { RAISED + 1 } else { RAISED };
        let free = first_of(pair.line, LINES_NOW..last).find(|number| lines.is_free(within_reach(*number)));
        pair.line = free.unwrap_or(pair.line);
        let is_within_reach = free.is_some() || (lines.is_veiled.get() && lines.leave_a_veil(&sight, &eye_ring, &ring));
        if is_within_reach { State::Seen } else { State::Unseen }
    }

    /// Whether one solid is between all places that both may get to: the one that was last, or the one that is now.
    fn is_walled_off(&mut self, level: &LevelGeometry, from: &Aabb, to: &Aabb, pair: &mut Pair) -> bool {
        if pair.solid != NO_SOLID && hides(level, pair.solid, from, to) {
            return true;
        }
        let (begin, end) = (from.center(), to.center());
        self.counts.casts += 1;
        let between = Line::new(begin, end - begin).and_then(|line| level.first_hit(&line)).map(|(solid, _)| solid);
        let before = std::mem::replace(&mut pair.solid, between.unwrap_or(NO_SOLID));
        between.is_some_and(|solid| solid != before && hides(level, solid, from, to))
    }

    /// Where somebody may get to; found once in a tick.
    fn ring_of(&mut self, level: &LevelGeometry, index: usize, reach_m: f32) -> [Vec3; RING] {
        let standing = &mut self.standing[index];
        if standing.ring_at != self.tick {
            standing.ring_at = self.tick;
            standing.ring = ring(level, &standing.body, reach_m);
            self.counts.casts += RING as u64;
        }
        standing.ring
    }
}

/// Whether a body got from where it was to where it is as its speed allows, on the level.
fn is_step(before: &Body, after: &Body, ticks_per_s: f32) -> bool {
    let moved = after.feet - before.feet;
    let speed = before.speed_m_per_s_max.min(after.speed_m_per_s_max);
    let far_m = speed / ticks_per_s * SPEED_SLACK + STEP_SLACK_M;
    let is_level = moved.y.abs() <= LEVEL_M
        && (after.eye().y - before.eye().y).abs() <= LEVEL_M
        && (after.height_m - before.height_m).abs() <= LEVEL_M
        && (after.radius_m - before.radius_m).abs() <= LEVEL_M
        && after.speed_m_per_s_max <= before.speed_m_per_s_max;
    before.life == after.life && is_level && moved.x.hypot(moved.z) <= far_m
}

/// What stops lines, in one look.
struct Lines<'a, V> {
    level: &'a LevelGeometry,
    veil: V,
    /// Whether a line was stopped by the veil alone.
    is_veiled: Cell<bool>,
    casts: Cell<u64>,
}

impl<'a, V: Fn(Vec3, Vec3) -> bool> Lines<'a, V> {
    fn new(level: &'a LevelGeometry, veil: V) -> Self {
        Self { level, veil, is_veiled: Cell::new(false), casts: Cell::new(0) }
    }

    fn is_free(&self, (begin, end): (Vec3, Vec3)) -> bool {
        let is_veiled = (self.veil)(begin, end);
        // Of those that the veil stops one is enough that the level does not.
        if is_veiled && self.is_veiled.get() {
            return false;
        }
        self.casts.set(self.casts.get() + 1);
        let is_open = Line::new(begin, end - begin).is_some_and(|line| !self.level.any_hit(&line));
        self.is_veiled.set(self.is_veiled.get() || (is_open && is_veiled));
        is_open && !is_veiled
    }

    /// Whether one of the lines to its silhouette is free.
    fn is_seen_now(&self, sight: &Sight, eye: &Body, other: &Body, pair: &mut Pair) -> bool {
        let level = self.level;
        let is_hidden = |solid: u32| hides(level, solid, &eye.eye_region(0.0, 0.0), &other.region(0.0, 0.0));
        if pair.solid != NO_SOLID && is_hidden(pair.solid) {
            return false;
        }
        let free = first_of(pair.line, 0..LINES_NOW).find(|number| self.is_free(sight.line_now(*number)));
        match free {
            Some(line) => pair.line = line,
            None => {
                // Next time it may be the one that is between them by then.
                let (begin, end) = sight.line_now(0);
                let between = Line::new(begin, end - begin).and_then(|line| level.first_hit(&line));
                self.casts.set(self.casts.get() + 1);
                pair.solid = between.map_or(pair.solid, |(solid, _)| solid);
            }
        }
        free.is_some()
    }

    /// Whether one sees the other's crown once both have got out of a veil, in whatever direction.
    fn leave_a_veil(&self, sight: &Sight, eyes: &[Vec3; RING], feet: &[Vec3; RING]) -> bool {
        sight.lines_between(eyes, feet).any(|line| self.is_free(line))
    }
}

/// The numbers, beginning with one of them: the line that was free before is so most of the time.
fn first_of(first: u8, numbers: std::ops::Range<u8>) -> impl Iterator<Item = u8> {
    let is_one = numbers.contains(&first);
    let others = numbers.filter(move |number| !(is_one && *number == first));
    is_one.then_some(first).into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> FogSettings {
        FogSettings { ticks_per_s: 128.0, grace_ms: 100.0, ..FogSettings::default() }
    }

    /// A wall along x, from -4 to 4, with nothing beside it.
    fn level() -> LevelGeometry {
        let wall = Aabb::new(Vec3::new(-4.0, 0.0, 4.5), Vec3::new(4.0, 3.0, 5.0));
        LevelGeometry::from_boxes(&[wall]).unwrap()
    }

    fn body(life: u32, x: f32, z: f32) -> Body {
        Body { life, feet: Vec3::new(x, 0.0, z), ..Body::default() }
    }

    fn look(fog: &mut FogOfWar, level: &LevelGeometry, tick: u32, bodies: &[Body]) -> bool {
        fog.begin_tick(tick, bodies);
        let mut seen = [0];
        fog.look(level, None, 0, &[1], &mut seen);
        seen == [1]
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let check = |settings: FogSettings, expect: FogError| {
            assert_eq!(FogOfWar::new(settings, 1, 1).err(), Some(expect));
        };
        check(FogSettings { ticks_per_s: 0.5, ..settings() }, FogError::Rate(0.5));
        check(FogSettings { grace_ms: -1.0, ..settings() }, FogError::Grace(-1.0));
        check(FogSettings { recheck_ticks: 0, ..settings() }, FogError::Recheck(0));
        check(FogSettings { rise_m: f32::INFINITY, ..settings() }, FogError::Rise(f32::INFINITY));
    }

    /// Promise: who walks around a corner is told before anybody can see it, and not long before.
    #[test]
    fn who_comes_around_a_corner_is_told_before() {
        let level = level();
        let mut fog = FogOfWar::new(settings(), 1, 2).unwrap();
        let walks = |tick: u32| body(2, tick as f32 * (6.0 / 128.0), 9.0);
        let is_told = |fog: &mut FogOfWar, tick| look(fog, &level, tick, &[body(1, 0.0, 0.0), walks(tick)]);
        let told_at = (0..1_000).find(|tick| is_told(&mut fog, *tick)).expect("the wall ends");
        let sees = |tick: &u32| {
            let sight = Sight::new(&body(1, 0.0, 0.0), &walks(*tick));
            (0..LINES_NOW).any(|number| Lines::new(&level, |_, _| false).is_free(sight.line_now(number)))
        };
        let seen_at = (0..1_000).find(sees).expect("the wall ends");
        // The grace, and a few ticks for its turn; the viewer may move as well, and see around the corner sooner.
        let ahead_ms = f64::from(seen_at - told_at) / 128.0 * 1_000.0;
        assert!((100.0..400.0).contains(&ahead_ms), "{ahead_ms} ms");
    }

    /// Smoke of 3 m around a place, 1 m above the ground.
    fn smoke(x: f32, z: f32) -> impl Fn(Vec3, Vec3) -> bool + Copy {
        let middle = Vec3::new(x, 1.0, z);
        move |eye, point| {
            let way = point - eye;
            let along = ((middle - eye).dot(way) / way.length_squared()).clamp(0.0, 1.0);
            (eye + way * along).distance(middle) < 3.0
        }
    }

    /// Promise: who comes out of smoke, aside or straight on, is told before anybody can see it, and not long before; and who
    /// is in it or behind it is not.
    #[test]
    fn who_comes_out_of_smoke_is_told_before() {
        let (level, veil) = (level(), smoke(0.0, -12.0));
        for [x, z] in [[1.0, 0.0], [0.0, 1.0], [-0.7, 0.7], [0.7, -0.7]] {
            let walks = |tick: u32| body(2, x * tick as f32 * (6.0 / 128.0), -12.0 + z * tick as f32 * (6.0 / 128.0));
            let mut fog = FogOfWar::new(settings(), 1, 2).unwrap();
            let mut is_told = |tick| {
                fog.begin_tick(tick, &[body(1, 0.0, 0.0), walks(tick)]);
                let mut seen = [0];
                fog.look_past(&level, veil, None, 0, &[1], &mut seen);
                seen == [1]
            };
            let sees = |tick: &u32| {
                let sight = Sight::new(&body(1, 0.0, 0.0), &walks(*tick));
                (0..LINES_NOW).any(|number| Lines::new(&level, veil).is_free(sight.line_now(number)))
            };
            let seen_at = (0..1_000).find(sees).expect("the smoke ends");
            let told_at = (0..=seen_at).find(|tick| is_told(*tick)).expect("in that tick at the latest");
            let ahead_ms = f64::from(seen_at - told_at) / 128.0 * 1_000.0;
            assert!((90.0..400.0).contains(&ahead_ms), "{ahead_ms} ms on the way to {x}, {z}");
        }
    }

    /// Promise: what smoke leaves free a wall may hide, and the other way round: who is hidden by both together is not told.
    #[test]
    fn smoke_and_a_wall_hide_together() {
        let level = level();
        let told = |veil: &dyn Fn(Vec3, Vec3) -> bool| {
            let mut fog = FogOfWar::new(settings(), 1, 2).unwrap();
            // Behind the end of the wall, of which one side looks out.
            fog.begin_tick(0, &[body(1, 4.0, 0.0), body(2, 4.0, 9.0)]);
            let mut seen = [0];
            fog.look_past(&level, veil, None, 0, &[1], &mut seen);
            seen == [1]
        };
        assert!(told(&|_, _| false) && !told(&smoke(6.0, 5.0)));
    }

    /// Promise: what is proven is not asked again until its turn, and a pair of which nothing changes costs next to nothing.
    #[test]
    fn a_pair_behind_a_wall_is_asked_once_in_its_turn() {
        let level = level();
        let mut fog = FogOfWar::new(settings(), 1, 2).unwrap();
        for tick in 0..40 {
            assert!(!look(&mut fog, &level, tick, &[body(1, 0.0, 0.0), body(2, 0.0, 9.0)]));
        }
        let counts = fog.take_counts();
        assert_eq!((counts.asked, counts.known + counts.hidden_by_wall), (40, 40));
        assert!((10..=11).contains(&counts.hidden_by_wall), "{counts:?}");
        assert_eq!(counts.casts, 1, "the wall is the same each time");
    }

    #[test]
    fn a_teleport_ends_what_is_known_in_the_same_tick() {
        let level = level();
        let mut fog = FogOfWar::new(settings(), 1, 2).unwrap();
        let (hidden, open) = (body(2, 0.0, 9.0), body(2, 20.0, 9.0));
        for (tick, (there, expect)) in (0..).zip([(hidden, false), (open, true), (hidden, false), (open, true)]) {
            assert_eq!(look(&mut fog, &level, tick, &[body(1, 0.0, 0.0), there]), expect, "in tick {tick}");
        }
    }

    #[test]
    fn whoever_has_an_index_next_is_another() {
        let level = level();
        let mut fog = FogOfWar::new(settings(), 1, 2).unwrap();
        let mut told = |tick, life, x| look(&mut fog, &level, tick, &[body(1, 0.0, 0.0), body(life, x, 9.0)]);
        assert!(told(0, 2, 20.0));
        assert!(!told(1, 3, 0.0), "the one before it was seen");
        assert!(!told(2, 0, 20.0), "nobody is there");
        assert!(!told(3, 4, f32::NAN));
        assert_eq!(fog.take_counts().rejected, 1);
    }

    #[test]
    fn one_sees_itself_and_nobody_of_whom_nothing_is_known() {
        let mut fog = FogOfWar::new(settings(), 2, 2).unwrap();
        fog.begin_tick(0, &[body(1, 0.0, 0.0)]);
        let mut seen = [0];
        fog.look(&level(), None, 0, &[0, 1], &mut seen);
        fog.look(&level(), None, 1, &[0], &mut seen);
        assert_eq!(seen, [1]);
    }

    /// Promise: who jumps is told of before it looks over a wall.
    #[test]
    fn a_wall_to_jump_over_hides_nobody_who_can() {
        let low = Aabb::new(Vec3::new(-30.0, 0.0, 4.5), Vec3::new(30.0, 2.0, 5.0));
        let level = LevelGeometry::from_boxes(&[low]).unwrap();
        for (rise_m, expect) in [(0.0, false), (0.8, true)] {
            let mut fog = FogOfWar::new(FogSettings { rise_m, ..settings() }, 1, 2).unwrap();
            let bodies = [body(1, 0.0, 0.0), body(2, 0.0, 9.0)];
            assert_eq!(look(&mut fog, &level, 0, &bodies), expect, "{rise_m}");
        }
    }
}
