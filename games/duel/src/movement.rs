//! Movement: acceleration, friction, gravity and jumps, against the map's solids; wishes in, places out.
//!
//! [`step`] is one tick of one body. It is pure, and the same on both sides: a client that makes the same steps from
//! the same motion is where the server has it. Of a motion it is told the place; velocity, and whether it stands on the
//! ground, it has from its own steps. A body is a box along the axes, and slides along whatever it meets.
//!
//! A client never says where it is: it says what it wants, and how many steps come of that is
//! [`controls`](crate::controls)' affair. Speed on the ground is never above [`RUN_M_PER_S`], in the air neither, so
//! distance in so many steps is at most theirs. Sketch of the cost: some 0.15 µs for each step.

use glam::Vec3;
use throng::prelude::*;
use throng_query::geometry::Aabb;

use crate::{map::Map, protocol::Input};

/// Fastest along the ground (m/s).
pub const RUN_M_PER_S: f32 = 5.4;
/// With the walk button (m/s).
pub const WALK_M_PER_S: f32 = 2.7;
/// Half the width of a body (m).
pub const BODY_HALF_M: f32 = 0.35;
/// Feet to crown (m).
pub const BODY_HEIGHT_M: f32 = 1.8;
/// Feet to eyes, which shots leave from (m).
pub const EYE_M: f32 = 1.65;
/// How fast a jump leaves the ground (m/s), and what pulls it down (m/s²): 1.0 m high, onto crates.
pub const JUMP_M_PER_S: f32 = 4.5;
pub const GRAVITY_M_PER_S2: f32 = 10.0;

/// Part of the lacking speed that a second on the ground makes up, and in the air.
const ACCELERATION_PER_S: f32 = 11.0;
const AIR_ACCELERATION_PER_S: f32 = 1.5;
/// Part of the speed that a second on the ground takes.
const FRICTION_PER_S: f32 = 7.0;
/// Below this speed friction is as strong as at it, so that a body comes to rest (m/s).
const STOP_M_PER_S: f32 = 1.5;
/// What touches is no overlap (m).
const TOUCH_M: f32 = 1e-3;

/// Where a body is and how it moves.
#[derive(Component, Pack, Debug, Clone, Copy, PartialEq)]
#[pack(name = "duel.motion")]
pub struct Motion {
    /// The feet.
    #[pack(via = [f32; 3])]
    pub at: Vec3,
    /// m/s.
    #[pack(via = [f32; 3])]
    pub velocity: Vec3,
    pub is_on_ground: bool,
}

impl Motion {
    pub fn standing(at: Vec3) -> Self {
        Self { at, velocity: Vec3::ZERO, is_on_ground: true }
    }

    /// Along the ground (m/s).
    pub fn speed_m_per_s(&self) -> f32 {
        self.velocity.x.hypot(self.velocity.z)
    }

    pub fn eye(&self) -> Vec3 {
        self.at + Vec3::Y * EYE_M
    }
}

impl StateHash for Motion {
    fn hash_state(&self, hasher: &mut StateHasher) {
        self.at.to_array().into_iter().chain(self.velocity.to_array()).for_each(|number| hasher.write_f32(number));
        hasher.write_u64(self.is_on_ground.into());
    }
}

/// What a body wants in a tick.
#[derive(Pack, Debug, Clone, Copy, PartialEq, Default)]
#[pack(name = "duel.wish")]
pub struct Wish {
    /// Along x and z, never longer than 1.
    pub direction: [f32; 2],
    pub is_walking: bool,
    pub is_jumping: bool,
}

impl From<&Input> for Wish {
    fn from(input: &Input) -> Self {
        Self { direction: input.direction(), is_walking: input.walk(), is_jumping: input.jump() }
    }
}

/// Moves a body by one tick of `dt_s`. Within a `zone`, it stays within: that is for the phase in which one buys.
pub fn step(motion: &mut Motion, wish: &Wish, zone: Option<&Aabb>, map: &Map, dt_s: f32) {
    let [x, z] = wish.direction;
    let mut flat = Vec3::new(motion.velocity.x, 0.0, motion.velocity.z);
    if motion.is_on_ground {
        flat *= friction(flat.length(), dt_s);
    }
    let speed = if wish.is_walking { WALK_M_PER_S } else { RUN_M_PER_S };
    flat = accelerate(flat, Vec3::new(x, 0.0, z), speed, motion.is_on_ground, dt_s).clamp_length_max(RUN_M_PER_S);
    let mut up = motion.velocity.y - GRAVITY_M_PER_S2 * dt_s;
    if motion.is_on_ground && wish.is_jumping {
        up = JUMP_M_PER_S;
    }
    motion.velocity = flat.with_y(up);
    slide_all(motion, zone, map.near(motion.at), dt_s);
}

/// What is left of a speed after a tick on the ground, as a part of it.
fn friction(speed: f32, dt_s: f32) -> f32 {
    if speed <= 0.0 {
        return 0.0;
    }
    (1.0 - speed.max(STOP_M_PER_S) * FRICTION_PER_S * dt_s / speed).max(0.0)
}

/// Faster towards where the body wants to go, up to the speed that it wants.
fn accelerate(flat: Vec3, wished: Vec3, speed: f32, is_on_ground: bool, dt_s: f32) -> Vec3 {
    let length = wished.length();
    if length < 1e-3 {
        return flat;
    }
    let (along, wanted) = (wished / length, speed * length.min(1.0));
    let lacking = (wanted - flat.dot(along)).max(0.0);
    let rate = if is_on_ground { ACCELERATION_PER_S } else { AIR_ACCELERATION_PER_S };
    flat + along * lacking.min(rate * speed * dt_s)
}

/// Goes along one axis after the other, as far as nothing is in the way.
fn slide_all(motion: &mut Motion, zone: Option<&Aabb>, near: &[Aabb], dt_s: f32) {
    let way = motion.velocity * dt_s;
    for axis in [0, 2] {
        let mut is_stopped = slide(&mut motion.at, axis, way[axis], near);
        if let Some(zone) = zone {
            let inside = motion.at[axis].clamp(zone.min[axis] + BODY_HALF_M, zone.max[axis] - BODY_HALF_M);
            is_stopped |= inside != motion.at[axis];
            motion.at[axis] = inside;
        }
        if is_stopped {
            motion.velocity[axis] = 0.0;
        }
    }
    let mut is_stopped = slide(&mut motion.at, 1, way.y, near);
    if motion.at.y <= 0.0 {
        motion.at.y = 0.0;
        is_stopped = true;
    }
    motion.is_on_ground = is_stopped && way.y <= 0.0;
    if is_stopped {
        motion.velocity.y = 0.0;
    }
}

/// Moves a body along an axis as far as no solid is in the way; whether one was.
fn slide(at: &mut Vec3, axis: usize, way_m: f32, near: &[Aabb]) -> bool {
    let wide = Vec3::new(BODY_HALF_M, 0.0, BODY_HALF_M);
    let (min, max) = (*at - wide, *at + wide + Vec3::Y * BODY_HEIGHT_M);
    let mut far_m = way_m.abs();
    for solid in near {
        let beside = (0..3).any(|other| {
            other != axis && (max[other] <= solid.min[other] + TOUCH_M || min[other] >= solid.max[other] - TOUCH_M)
        });
        let ahead_m = if way_m > 0.0 { solid.min[axis] - max[axis] } else { min[axis] - solid.max[axis] };
        // Whoever is within a solid, which nobody gets into, may leave it.
        if !beside && ahead_m >= -TOUCH_M {
            far_m = far_m.min(ahead_m.max(0.0));
        }
    }
    let is_stopped = far_m < way_m.abs();
    at[axis] += far_m.copysign(way_m);
    is_stopped
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::{
        map::layout::{letters, middle_of},
        teams::Side,
    };

    const DT_S: f32 = 1.0 / 128.0;

    fn run(motion: &mut Motion, wish: Wish, ticks: usize) {
        (0..ticks).for_each(|_| step(motion, &wish, None, &Map::load(), DT_S));
    }

    fn towards(direction: [f32; 2]) -> Wish {
        Wish { direction, ..Wish::default() }
    }

    /// A way that the page that plays is held to.
    struct Path {
        name: &'static str,
        begin: Vec3,
        /// Whether its player attacks and buys, and so stays in the base.
        buys: bool,
        legs: &'static [Leg],
    }

    /// A direction, a button or none, and for how many ticks.
    type Leg = ([f32; 2], &'static str, usize);

    fn paths() -> [Path; 6] {
        const NONE: [f32; 2] = [0.0, 0.0];
        const NORTH: [f32; 2] = [0.0, 1.0];
        const EAST: [f32; 2] = [1.0, 0.0];
        const WEST: [f32; 2] = [-1.0, 0.0];
        fn path(name: &'static str, begin: Vec3, legs: &'static [Leg]) -> Path {
            Path { name, begin, buys: false, legs }
        }
        let starts_and_stops: &'static [Leg] = &[
            (EAST, "", 1),
            (EAST, "", 1),
            (EAST, "", 2),
            (EAST, "", 4),
            (EAST, "", 8),
            (EAST, "", 48),
            (NONE, "", 1),
            (NONE, "", 2),
            (NONE, "", 4),
            (NONE, "", 8),
            (NONE, "", 48),
            (WEST, "walk", 8),
            (WEST, "walk", 56),
            ([0.6, -0.8], "", 4),
            ([0.6, -0.8], "", 28),
            ([0.3, 0.4], "", 32),
            (NONE, "walk", 64),
        ];
        let jumps: &'static [Leg] = &[
            (NONE, "jump", 1),
            (NONE, "", 31),
            (NONE, "", 32),
            (NONE, "", 64),
            (NORTH, "", 32),
            (NORTH, "jump", 1),
            (EAST, "", 16),
            (WEST, "", 64),
            (NONE, "jump", 1),
            (NONE, "jump", 130),
        ];
        let onto_a_crate: &'static [Leg] = &[
            (EAST, "", 100),
            (EAST, "jump", 16),
            (EAST, "jump", 44),
            (EAST, "", 30),
            (NONE, "", 32),
            (WEST, "", 16),
            (WEST, "", 16),
            (WEST, "", 64),
        ];
        let along_a_wall: &'static [Leg] = &[([0.7, -0.7], "", 64), ([0.7, -0.7], "", 64), ([-0.7, -0.7], "walk", 64)];
        let into_a_corner: &'static [Leg] = &[([-0.7, 0.7], "", 128), ([-0.7, 0.7], "", 128), (EAST, "", 32)];
        [
            path("starts, stops and turns", middle_of(8, 4), starts_and_stops),
            path("jumps and steers in the air", middle_of(4, 10), jumps),
            path("up a low crate and down again", middle_of(9, 2), onto_a_crate),
            path("along a wall", middle_of(9, 4), along_a_wall),
            path("into a corner", middle_of(3, 3), into_a_corner),
            Path { buys: true, ..path("stays in the base", middle_of(4, 13), &[(EAST, "", 160), (NORTH, "", 32)]) },
        ]
    }

    /// Promise: the page that plays predicts by the same steps. The tests in `web/` hold it to the file that this compares;
    /// `UPDATE_EXPECT=1 cargo test -p duel --lib movement` writes it anew.
    #[test]
    fn the_page_is_held_to_these_steps() {
        let map = Map::load();
        let rows = letters().map(|row| format!("\"{}\"", String::from_utf8_lossy(&row)));
        let mut text = format!("{{\n\"map\": [\n{}\n],\n\"dt_s\": {DT_S:?},\n\"paths\": [", rows.join(",\n"));
        for (number, Path { name, begin, buys, legs }) in paths().iter().enumerate() {
            let zone = buys.then(|| &map.bases[Side::Attackers.index()]);
            let mut motion = Motion::standing(*begin);
            let comma = if number == 0 { "" } else { "," };
            let [x, y, z] = begin.to_array();
            text += &format!(
                "{comma}\n{{\"name\": \"{name}\", \"begin\": [{x:?}, {y:?}, {z:?}], \"buys\": {buys}, \"legs\": ["
            );
            for (number, (direction, button, ticks)) in legs.iter().enumerate() {
                let input = Input::new(*direction, 0.0, 0.0);
                let input = match *button {
                    "walk" => input.and_walk(),
                    "jump" => input.and_jump(),
                    _ => input,
                };
                (0..*ticks).for_each(|_| step(&mut motion, &Wish::from(&input), zone, &map, DT_S));
                let comma = if number == 0 { "" } else { "," };
                let Motion { at, velocity, is_on_ground } = motion;
                let [x, y, z] = at.to_array();
                let [along_x, along_y, along_z] = velocity.to_array();
                text += &format!(
                    "{comma}\n  {{\"direction\": {direction:?}, \"button\": \"{button}\", \"ticks\": {ticks}, \
                     \"at\": [{x:.4}, {y:.4}, {z:.4}], \"velocity\": [{along_x:.3}, {along_y:.3}, {along_z:.3}], \
                     \"is_on_ground\": {is_on_ground}}}"
                );
            }
            text += "\n]}";
        }
        text += "\n]\n}\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/tests/steps/duel.json");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, &text).expect("the file is writable");
        }
        let known = std::fs::read_to_string(path).expect("the file of the page's tests");
        assert_eq!(known, text, "run the test with UPDATE_EXPECT=1, and the tests in web/");
    }

    #[test]
    fn a_body_gets_up_to_speed_and_comes_to_rest() {
        let mut motion = Motion::standing(middle_of(8, 4));
        run(&mut motion, towards([1.0, 0.0]), 8);
        let early = motion.speed_m_per_s();
        assert!(early > 1.0 && early < 5.0, "{early} after 60 ms");
        run(&mut motion, towards([1.0, 0.0]), 60);
        assert!((motion.speed_m_per_s() - RUN_M_PER_S).abs() < 0.05, "{}", motion.speed_m_per_s());
        run(&mut motion, Wish { is_walking: true, ..towards([1.0, 0.0]) }, 60);
        assert!((motion.speed_m_per_s() - WALK_M_PER_S).abs() < 0.05, "{}", motion.speed_m_per_s());
        run(&mut motion, Wish::default(), 60);
        assert_eq!(motion.speed_m_per_s(), 0.0);
        assert!(motion.is_on_ground && motion.at.y == 0.0);
    }

    #[test]
    fn a_jump_is_a_metre_high_and_leads_onto_a_crate() {
        let mut motion = Motion::standing(middle_of(5, 10));
        let mut top_m = 0.0_f32;
        for tick in 0..128 {
            run(&mut motion, Wish { is_jumping: tick == 0, ..Wish::default() }, 1);
            top_m = top_m.max(motion.at.y);
        }
        assert!((0.95..1.05).contains(&top_m) && motion.is_on_ground, "{top_m} m");
        // West of the low crate in the long way.
        let mut motion = Motion::standing(middle_of(9, 2));
        run(&mut motion, towards([1.0, 0.0]), 100);
        assert!(motion.at.y == 0.0 && motion.at.x < middle_of(11, 2).x - 1.3, "it is stopped: {motion:?}");
        run(&mut motion, Wish { is_jumping: true, ..towards([1.0, 0.0]) }, 60);
        run(&mut motion, towards([1.0, 0.0]), 30);
        assert!((motion.at.y - 0.9).abs() < 0.01 && motion.is_on_ground, "{motion:?}");
    }

    #[test]
    fn a_body_slides_along_a_wall() {
        let mut motion = Motion::standing(middle_of(9, 4));
        run(&mut motion, towards([0.7, -0.7]), 128);
        let wall_z = middle_of(9, 4).z - 1.0;
        assert!((motion.at.z - wall_z - BODY_HALF_M).abs() < 0.01, "{motion:?}");
        assert!(motion.at.x > middle_of(9, 4).x + 2.0, "{motion:?}");
    }

    #[test]
    fn nobody_leaves_the_base_while_it_buys() {
        let map = Map::load();
        let base = &map.bases[Side::Attackers.index()];
        let mut motion = Motion::standing(map.spawn(Side::Attackers, 0));
        for _ in 0..600 {
            step(&mut motion, &towards([1.0, 0.0]), Some(base), &map, DT_S);
            assert!(motion.at.x <= base.max.x - BODY_HALF_M + 1e-3);
        }
        run(&mut motion, towards([1.0, 0.0]), 60);
        assert!(motion.at.x > base.max.x, "it may go when the phase is over");
    }

    /// Promise: whatever a body wants, it is never within a solid, never faster than it may be, and stays on the map.
    #[test]
    fn a_body_that_runs_wild_is_within_the_rules_in_every_tick() {
        let map = Map::load();
        for seed in 0..20 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut motion = Motion::standing(map.spawn(Side::Attackers, seed as usize));
            let mut wish = Wish::default();
            for tick in 0..6_000 {
                if tick % 20 == 0 {
                    let angle: f32 = rng.random_range(0.0..6.3);
                    wish = Wish { is_jumping: rng.random_bool(0.5), ..towards([angle.sin(), angle.cos()]) };
                }
                let before = motion;
                step(&mut motion, &wish, None, &map, DT_S);
                let moved = motion.at - before.at;
                assert!(moved.x.hypot(moved.z) <= RUN_M_PER_S * DT_S * 1.001, "seed {seed}, tick {tick}: {moved}");
                assert!(motion.at.y >= 0.0 && motion.at.y < 3.5, "seed {seed}, tick {tick}: {motion:?}");
                let shrink = Vec3::new(BODY_HALF_M - 0.01, 0.0, BODY_HALF_M - 0.01);
                let (min, max) = (motion.at - shrink + Vec3::Y * 0.01, motion.at + shrink + Vec3::Y * BODY_HEIGHT_M);
                let overlaps = |solid: &&Aabb| solid.min.cmplt(max).all() && solid.max.cmpgt(min).all();
                assert_eq!(map.geometry.boxes().iter().find(overlaps), None, "seed {seed}, tick {tick}: {motion:?}");
            }
        }
    }
}
