//! Movement of players: wishes in, validated steps out.
//!
//! A client never says where it is. It says which way it wants to go, and each tick of the world moves its
//! player at most one step of `speed x tick` along the nav mesh, however many inputs have come: the step
//! follows the mean of the first [`INPUTS_PER_TICK_MAX`] of them, the rest is dropped and counted. So a fast clock,
//! a burst or a replay gains nothing. Walls hold because a step is a walk on the mesh, and a closed door ends it.
//!
//! When inputs are late the player goes on as it last wished, so that jitter does not make it stutter, but
//! from a time bank: [`HOLD_S_MAX`] seconds, refilled by an input that comes. A silent client stands still when
//! the bank is empty, and whoever arrives starts with an empty one.
//!
//! Distance in any window of `T` seconds is thus at most `SPRINT_M_PER_S x T` and one step. Cost: about 50 ns a player.

use bevy_ecs::prelude::*;
use glam::Vec3;
use throng_pack::Pack;
use throng_query::nav::NavMesh;

use crate::{
    components::{Pose, Standing},
    doors::Doors,
    protocol::Input,
    weapons::ticks_of,
};

pub const WALK_M_PER_S: f32 = 5.0;
pub const SPRINT_M_PER_S: f32 = 7.5;
/// Inputs of one client that one tick looks at. A client at 60 Hz in a world at 20 Hz needs three.
pub const INPUTS_PER_TICK_MAX: u8 = 4;
/// How long a player goes on without inputs. (s)
pub const HOLD_S_MAX: f32 = 0.25;
/// Between two grips at a door. (ms) Not longer than the time after which a silent client is forgotten.
const GRIP_MS: u32 = 250;
const _: () = assert!(GRIP_MS as f32 <= HOLD_S_MAX * 1e3);

/// What a player's client wants, as of this tick.
#[derive(Component, Debug, Clone, Copy, Default, Pack)]
#[pack(name = "precinct.controls")]
pub struct Controls {
    /// Sum of this tick's directions, and how many they are.
    direction_sum: [f32; 2],
    inputs: u8,
    /// The mean direction, held while inputs are late.
    direction: [f32; 2],
    sprint: bool,
    fire: bool,
    heal: bool,
    grip: bool,
    /// The first tick in which the hand is free for the next door.
    free_hand_tick: u32,
    yaw: f32,
    pitch: f32,
    /// Where it looked when it last pulled the trigger: yaw and pitch.
    #[pack(via = [f32; 2])]
    shot_aim: (f32, f32),
    /// How long the wish above is still followed without a new one. (s)
    hold_s: f32,
}

impl Controls {
    /// Of somebody who looks there and wants nothing yet.
    pub fn looking(yaw: f32, pitch: f32) -> Self {
        Self { yaw, pitch, ..Self::default() }
    }

    /// Takes one input; false if it is one too many for this tick.
    pub fn take(&mut self, input: &Input) -> bool {
        if self.inputs == INPUTS_PER_TICK_MAX {
            return false;
        }
        if self.inputs == 0 {
            self.direction_sum = [0.0; 2];
            self.fire = false;
            self.heal = false;
            self.grip = false;
        }
        let [x, z] = input.direction();
        self.direction_sum[0] += x;
        self.direction_sum[1] += z;
        self.inputs += 1;
        self.sprint = input.sprint();
        // A trigger pulled between two ticks counts, even if it has been let go since.
        self.fire |= input.fire();
        self.heal |= input.heal();
        self.grip |= input.grip();
        self.yaw = input.yaw();
        self.pitch = input.pitch();
        if input.fire() {
            self.shot_aim = self.aim();
        }
        true
    }

    /// Whether the trigger is pulled.
    pub fn fire(&self) -> bool {
        self.fire
    }

    /// Whether a medkit is wanted.
    pub fn heal(&self) -> bool {
        self.heal
    }

    /// Whether a hand goes to a door in this tick.
    pub fn take_grip(&mut self, tick: u32, tick_hz: u16) -> bool {
        let is_free = self.grip && tick >= self.free_hand_tick;
        if is_free {
            self.free_hand_tick = tick + ticks_of(GRIP_MS, tick_hz);
        }
        is_free
    }

    /// Yaw and pitch of the view. (radians)
    pub fn aim(&self) -> (f32, f32) {
        (self.yaw, self.pitch)
    }

    /// Yaw and pitch of the newest input that pulled the trigger, which later ones of the same tick may not have done.
    /// (radians)
    pub fn shot_aim(&self) -> (f32, f32) {
        self.shot_aim
    }

    /// Turns this tick's inputs into one wish and pays for it from the bank. [m/s along x and z]
    pub fn settle(&mut self, dt_s: f32) -> [f32; 2] {
        if self.inputs > 0 {
            self.direction = self.direction_sum.map(|sum| sum / f32::from(self.inputs));
            self.inputs = 0;
            self.hold_s = HOLD_S_MAX;
        } else {
            self.hold_s -= dt_s;
            if self.hold_s < 0.0 {
                *self = Self::looking(self.yaw, self.pitch);
            }
        }
        let speed = if self.sprint { SPRINT_M_PER_S } else { WALK_M_PER_S };
        self.direction.map(|part| part * speed)
    }
}

/// Moves a living player by one step at most: along a closed door that it would walk into.
pub fn step(
    velocity: [f32; 2],
    yaw: f32,
    dt_s: f32,
    (navmesh, doors): (&NavMesh, &Doors),
    pose: &mut Mut<Pose>,
    standing: &mut Standing,
) {
    if pose.yaw != yaw {
        pose.yaw = yaw;
    }
    let [x, z] = velocity;
    if x == 0.0 && z == 0.0 {
        return;
    }
    let step = Vec3::new(x, 0.0, z) * dt_s;
    let from = standing.0;
    let mut to = navmesh.walk_sliding(from, from.position() + step).end;
    if let Some(stop) = doors.in_the_way(from.position(), to.position()) {
        to = navmesh.walk_sliding(from, from.position() + stop.along * step.dot(stop.along)).end;
        if doors.in_the_way(from.position(), to.position()).is_some() {
            return;
        }
    }
    standing.0 = to;
    pose.set_feet(standing.0.position());
}

#[cfg(test)]
mod tests {
    use std::f32::consts::TAU;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use throng_query::nav::{NavPoint, PolygonId};

    use super::*;
    use crate::{level::Level, page};

    fn input(direction: [f32; 2], sprint: bool) -> Input {
        Input::new(direction, 0.0, 0.0, false, sprint)
    }

    /// Promise: the page that plays predicts by the same steps, where nothing is in the way. The tests in `web/` hold it to
    /// the file that this compares; `UPDATE_EXPECT=1 cargo test -p precinct --lib movement` writes it anew.
    #[test]
    fn the_page_is_held_to_these_steps() {
        let mut lines = Vec::new();
        for direction in [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.6, 0.8], [-0.7, 0.7], [0.3, -0.1]] {
            for (sprint, tick_hz) in [(false, 20.0), (true, 20.0), (true, 30.0)] {
                let mut controls = Controls::default();
                assert!(controls.take(&input(direction, sprint)));
                let [x, z] = controls.settle(1.0 / tick_hz).map(|part| part / tick_hz);
                lines.push(format!(
                    "{{\"direction\": {direction:?}, \"is_fast\": {sprint}, \"tick_hz\": {tick_hz:?}, \"metres\": [{x:.5}, {z:.5}]}}"
                ));
            }
        }
        page::check("tests/steps/precinct.json", &format!("[\n{}\n]\n", lines.join(",\n")));
    }

    /// Ticks with the same input.
    type Leg = ([f32; 2], bool, u32);

    const WALKS_HZ: f32 = 20.0;

    /// Promise: it predicts walks by the same ground, too: along walls, around corners, and at doors that are closed. Held
    /// to, and written anew, as the steps are.
    #[test]
    fn the_page_is_held_to_these_walks() {
        let level = Level::shared();
        let (open, mut closed) = (Doors::default(), Doors::default());
        level.doorways.iter().for_each(|doorway| closed.hang(Entity::PLACEHOLDER, *doorway));
        let poses = level.doorways.iter().map(|doorway| {
            let (Vec3 { x, z, .. }, yaw) = (doorway.middle(), doorway.along.x.atan2(doorway.along.z));
            format!("[{x:?}, {z:?}, {yaw:?}]")
        });
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut any_leg = || -> Leg {
            let (sin, cos) = rng.random_range(0.0..TAU).sin_cos();
            ([sin, cos], rng.random(), rng.random_range(10..60))
        };
        let mut walks = Vec::new();
        // Into the wall of a cover, and from there anywhere.
        for cover in level.cover_points.iter().step_by(10) {
            let mut legs: Vec<Leg> = vec![([cover.towards.x, cover.towards.z], false, 20)];
            legs.extend((0..5).map(|_| any_leg()));
            walks.push(walked(&level, &closed, cover.place, &legs));
        }
        // Straight into a doorway, and along it.
        for (doorway, doors) in level.doorways.iter().step_by(4).flat_map(|it| [(it, &closed), (it, &open)]) {
            let across = Vec3::new(doorway.along.z, 0.0, doorway.along.x);
            let from = level.navmesh.nearest(doorway.middle() - across * 3.0, 1.0).expect("there is ground before it");
            let aslant = (across + doorway.along).normalize();
            let legs = [across, aslant, -aslant].map(|way| ([way.x, way.z], true, 25));
            walks.push(walked(&level, doors, from, &legs));
        }
        // A step into each of eight directions from corners of the ground, where several polygons meet.
        let corners = (0..level.navmesh.polygon_count() as u32).step_by(12).map(|polygon| {
            let corner = level.navmesh.corners(PolygonId(polygon)).next().expect("a polygon has corners");
            let ends: Vec<String> = (0..8).map(|way| end_from(&level, corner, eighth(way))).collect();
            format!("{{\"begin\": [{:.4}, {:.4}], \"ends\": [{}]}}", corner.x, corner.z, ends.join(", "))
        });
        let text = format!(
            "{{\n\"tick_hz\": {WALKS_HZ:?},\n\"doors\": [{}],\n\"walks\": [\n{}\n],\n\"corners\": [\n{}\n]\n}}\n",
            poses.collect::<Vec<_>>().join(", "),
            walks.join(",\n"),
            corners.collect::<Vec<_>>().join(",\n")
        );
        page::check("tests/steps/precinct_walks.json", &text);
    }

    /// A walk as the file has it.
    fn walked(level: &Level, doors: &Doors, begin: NavPoint, legs: &[Leg]) -> String {
        let mut at = begin;
        let mut lines = Vec::new();
        for &leg in legs {
            at = go((&level.navmesh, doors), at, leg);
            let ((direction, sprint, ticks), at) = (leg, place(at));
            lines.push(format!(
                "  {{\"direction\": {direction:?}, \"is_fast\": {sprint}, \"ticks\": {ticks}, \"at\": {at}}}"
            ));
        }
        let (begin, is_closed) = (place(begin), doors.iter().next().is_some());
        format!("{{\"begin\": {begin}, \"doors_are_closed\": {is_closed}, \"legs\": [\n{}\n]}}", lines.join(",\n"))
    }

    /// Where a step from a corner ends; `null` if a tenth of a millimetre decides on which side of it somebody goes on.
    fn end_from(level: &Level, corner: Vec3, direction: [f32; 2]) -> String {
        let open = Doors::default();
        let end = |begin: Vec3| {
            let from = level.navmesh.nearest(begin, 0.1).expect("it is on the ground");
            go((&level.navmesh, &open), from, (direction, true, 1))
        };
        let right = end(corner);
        let is_same = |way: u8| {
            let [x, z] = eighth(way).map(|part| part * 1e-4);
            end(corner + Vec3::new(x, 0.0, z)).position().distance(right.position()) < 2e-3
        };
        if (0..8).all(is_same) { place(right) } else { "null".to_owned() }
    }

    /// To the north, to the north-east and so on.
    fn eighth(way: u8) -> [f32; 2] {
        let (sin, cos) = (TAU / 8.0 * f32::from(way)).sin_cos();
        [sin, cos]
    }

    /// Where a leg leads.
    fn go(ground: (&NavMesh, &Doors), from: NavPoint, (direction, sprint, ticks): Leg) -> NavPoint {
        let mut world = World::new();
        let body = world.spawn(Pose::new(from.position(), 0.0)).id();
        let mut pose = world.get_mut::<Pose>(body).expect("it was made with one");
        let mut standing = Standing(from);
        for _ in 0..ticks {
            let mut controls = Controls::default();
            assert!(controls.take(&input(direction, sprint)));
            step(controls.settle(1.0 / WALKS_HZ), 0.0, 1.0 / WALKS_HZ, ground, &mut pose, &mut standing);
        }
        standing.0
    }

    fn place(point: NavPoint) -> String {
        let Vec3 { x, z, .. } = point.position();
        format!("[{x:.4}, {z:.4}]")
    }

    #[test]
    fn a_step_follows_the_mean_of_a_ticks_inputs() {
        let mut controls = Controls::default();
        assert!(controls.take(&input([1.0, 0.0], false)));
        assert!(controls.take(&input([0.0, 0.0], false)));
        assert_eq!(controls.settle(0.05), [2.5, 0.0]);
    }

    #[test]
    fn a_shot_goes_where_its_player_looked_when_it_pulled_the_trigger() {
        let looks = |yaw, fire| Input::new([0.0, 0.0], yaw, 0.0, fire, false);
        let mut controls = Controls::default();
        for (yaw, fire) in [(1.0, true), (2.0, true), (3.0, false)] {
            assert!(controls.take(&looks(yaw, fire)));
        }
        assert!(controls.fire() && (controls.shot_aim().0 - 2.0).abs() < 0.001);
        assert!((controls.aim().0 - 3.0).abs() < 0.001);
    }

    #[test]
    fn the_fifth_input_of_a_tick_is_dropped() {
        let mut controls = Controls::default();
        let taken = (0..16).filter(|_| controls.take(&input([1.0, 0.0], true))).count();
        assert_eq!(taken, usize::from(INPUTS_PER_TICK_MAX));
        assert_eq!(controls.settle(0.05), [SPRINT_M_PER_S, 0.0], "one step at full speed, not four");
    }

    #[test]
    fn a_silent_client_stands_still_after_a_quarter_of_a_second() {
        let mut controls = Controls::default();
        controls.take(&input([0.0, 1.0], false));
        let moving = (0..40).take_while(|_| controls.settle(0.05) != [0.0, 0.0]).count();
        assert!((5..=6).contains(&moving), "one step for the input, 250 ms on credit: {moving}");
        assert!(!controls.fire());
    }
}
