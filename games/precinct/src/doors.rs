//! Doors: they close the doorways of halls to feet, eyes and shots, until somebody opens them.
//!
//! In the hub and the dark zone. Hideouts have none: there are a thousand of them, and their doorways stay open at no
//! cost. Where a doorway is belongs to the level ([`Level::doorways`](crate::level::Level)); whether its door is open is
//! the world's state, and clients are told of it as an entity with a [`Door`](crate::components::Door).
//!
//! Paths lead through doorways, since the nav mesh knows nothing of doors. It is the step that ends before a closed
//! one. A player opens the nearest within [`REACH_M`] by a button, an NPC the one that its step has met. A door shuts by
//! itself [`OPEN_MS`] after it was last opened, unless somebody stands in it. Nobody can shut one, so nobody can hold
//! another up with it.
//!
//! Cost: a few comparisons for each door of the level per step, line of sight and hit; a look at everybody, twice a
//! second, for each door that has been open for long enough. Nothing else, and nothing is allocated once doors are hung.
//! How they are hung and shut is in [`crate::swinging`].

use bevy_ecs::entity::Entity;
use glam::Vec3;
use throng::prelude::TickInfo;
use throng_pack::{List, Pack};
use throng_query::geometry::Aabb;
use throng_replication::EntityLink;

use crate::{components::BODY_RADIUS_M, level::Doorway, weapons::ticks_of};

/// From how far a player can open a door. (m) From its middle; a doorway is 3 m wide.
pub const REACH_M: f32 = 2.5;
/// How long a door stays open at least. (ms)
pub const OPEN_MS: u32 = 4_000;
/// Between two looks whether somebody still stands in a door. (ms)
const LOOK_MS: u32 = 500;
/// How far from a closed door the middle of a body keeps. (m) A little less than its radius: who walks along the wall,
/// which the nav mesh keeps him a radius away from, is not caught at the door.
const KEEP_OUT_M: f32 = BODY_RADIUS_M - 0.05;
/// How far before a door somebody stops who would have walked into it. (m) More than a walk's rounding.
const GAP_M: f32 = 0.01;

/// A door that ends a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stop {
    /// Which of [`Doors`] it is.
    pub door: usize,
    /// Just before it, on the straight way.
    pub place: Vec3,
    /// Unit vector along the door.
    pub along: Vec3,
}

/// All doors of a world.
#[derive(Default)]
pub struct Doors {
    /// At most [`DOORS_MAX`].
    rows: Vec<Row>,
    /// Which are open.
    open: Vec<usize>,
    /// Which were opened or shut and clients have not been told.
    turned: Vec<usize>,
}

struct Row {
    entity: Entity,
    doorway: Doorway,
    /// What the middle of nobody enters while the door is closed, at any height.
    keep_out: Aabb,
    is_open: bool,
    /// When it may shut; meaningless for a closed one.
    shuts_tick: u32,
}

/// Doors of a world at most, in a checkpoint.
const DOORS_MAX: usize = 256;

/// Doors in a checkpoint. Where they hang is the level's.
#[derive(Debug, Clone, Default, Pack)]
#[pack(name = "precinct.doors")]
pub struct SavedDoors {
    doors: List<SavedDoor, DOORS_MAX>,
    /// In the order in which they are looked after.
    open: List<u8, DOORS_MAX>,
}

#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.hung_door")]
struct SavedDoor {
    #[pack(via = EntityLink)]
    entity: Entity,
    /// `None`: it is closed.
    shuts_tick: Option<u32>,
}

impl Doors {
    /// What is kept of them between two ticks, when clients have been told of those that were turned.
    pub fn save(&self) -> SavedDoors {
        debug_assert!(self.turned.is_empty(), "a tick tells of all");
        let door = |row: &Row| SavedDoor { entity: row.entity, shuts_tick: row.is_open.then_some(row.shuts_tick) };
        let mut saved = SavedDoors::default();
        self.rows.iter().map(door).for_each(|door| _ = saved.doors.push(door));
        self.open.iter().for_each(|&open| _ = saved.open.push(open as u8));
        saved
    }

    /// Those that hang here become as they were.
    pub fn load(&mut self, saved: SavedDoors) {
        for (row, door) in self.rows.iter_mut().zip(saved.doors.iter()) {
            row.entity = door.entity;
            row.is_open = door.shuts_tick.is_some();
            row.shuts_tick = door.shuts_tick.unwrap_or_default();
        }
        self.turned.clear();
        self.open.clear();
        let listed = saved.open.iter().map(|&door| usize::from(door));
        // Whatever the list says, it is those that are open, and each once.
        for door in listed.chain(0..self.rows.len()) {
            if self.rows.get(door).is_some_and(|row| row.is_open) && !self.open.contains(&door) {
                self.open.push(door);
            }
        }
    }

    /// Hangs a closed door. `entity` is what clients are told of it.
    pub fn hang(&mut self, entity: Entity, doorway: Doorway) {
        let Aabb { min, max } = doorway.solid;
        let around = Vec3::new(KEEP_OUT_M, f32::INFINITY, KEEP_OUT_M);
        let keep_out = Aabb::new(min - around, max + around);
        self.rows.push(Row { entity, doorway, keep_out, is_open: false, shuts_tick: 0 });
        assert!(self.rows.len() <= DOORS_MAX, "a level has at most {DOORS_MAX} doors");
        // Room for all of them at once, so that no tick allocates.
        self.open.reserve(self.rows.len());
        self.turned.reserve(self.rows.len());
    }

    /// The first closed door that a straight step would walk into. Who stands in one already may walk out.
    pub fn in_the_way(&self, from: Vec3, to: Vec3) -> Option<Stop> {
        let way = to - from;
        let closed = self.rows.iter().enumerate().filter(|(_, row)| !row.is_open);
        let met = closed.filter_map(|(door, row)| Some((entered_at(&row.keep_out, from, way)?, door)));
        let (at, door) = met.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        let back = GAP_M / way.length().max(GAP_M);
        let place = from + way * (at - back).max(0.0);
        Some(Stop { door, place, along: self.rows[door].doorway.along })
    }

    /// Whether a closed door is between two points.
    pub fn are_between(&self, from: Vec3, to: Vec3) -> bool {
        self.rows.iter().any(|row| !row.is_open && entered_at(&row.doorway.solid, from, to - from).is_some())
    }

    /// The nearest closed door that somebody who stands there can reach.
    pub fn in_reach(&self, feet: Vec3) -> Option<usize> {
        let distance_m2 = |row: &Row| row.doorway.middle().distance_squared(feet);
        let closed = self.rows.iter().enumerate().filter(|(_, row)| !row.is_open);
        let near = closed.map(|(door, row)| (distance_m2(row), door)).filter(|(m2, _)| *m2 <= REACH_M * REACH_M);
        near.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, door)| door)
    }

    /// Opens a door, at once.
    pub fn open(&mut self, door: usize, tick: &TickInfo) {
        let row = &mut self.rows[door];
        row.shuts_tick = tick.tick + ticks_of(OPEN_MS, tick.rate.0);
        if !std::mem::replace(&mut row.is_open, true) {
            self.open.push(door);
            self.turn(door);
        }
    }

    /// Those that are open, and when each may shut.
    pub fn open_until(&self) -> impl Iterator<Item = (usize, u32)> {
        self.open.iter().map(|&door| (door, self.rows[door].shuts_tick))
    }

    /// Opens a door that was open in another run of the world, if it hangs here.
    pub fn reopen(&mut self, door: usize, shuts_tick: u32) {
        let Some(row) = self.rows.get_mut(door) else { return };
        row.shuts_tick = shuts_tick;
        if !std::mem::replace(&mut row.is_open, true) {
            self.open.push(door);
            self.turn(door);
        }
    }

    /// Whether all are closed, and have been for longer than this tick.
    pub fn are_at_rest(&self) -> bool {
        self.open.is_empty() && self.turned.is_empty()
    }

    /// How many are open.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Shuts those whose time has come and in which nobody stands. `places`: where everybody is, along x and z; who is
    /// nowhere has no number for a place.
    pub fn shut(&mut self, tick: &TickInfo, places: (&[f32], &[f32])) {
        for index in (0..self.open.len()).rev() {
            let door = self.open[index];
            let row = &mut self.rows[door];
            if row.shuts_tick > tick.tick {
                continue;
            }
            if is_occupied(&row.keep_out, places) {
                row.shuts_tick = tick.tick + ticks_of(LOOK_MS, tick.rate.0);
                continue;
            }
            row.is_open = false;
            self.open.swap_remove(index);
            self.turn(door);
        }
    }

    /// Notes what clients are to be told of, once: a door can be opened in the tick in which it has shut.
    fn turn(&mut self, door: usize) {
        if !self.turned.contains(&door) {
            self.turned.push(door);
        }
    }

    /// Calls `tell` with the entity of each door that was opened or shut since the last call, and whether it is open.
    pub fn take_turned(&mut self, mut tell: impl FnMut(Entity, bool)) {
        for door in self.turned.drain(..) {
            let Row { entity, is_open, .. } = self.rows[door];
            tell(entity, is_open);
        }
    }

    /// Where doorways are and whether their doors are open.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = (Doorway, bool)> {
        self.rows.iter().map(|row| (row.doorway, row.is_open))
    }
}

fn is_occupied(keep_out: &Aabb, (x_m, z_m): (&[f32], &[f32])) -> bool {
    x_m.iter()
        .zip(z_m)
        .any(|(x, z)| (keep_out.min.x..=keep_out.max.x).contains(x) && (keep_out.min.z..=keep_out.max.z).contains(z))
}

/// Where a straight way enters a box, as a share of the way; `None` if it does not, or begins inside.
fn entered_at(bounds: &Aabb, from: Vec3, way: Vec3) -> Option<f32> {
    let (mut enters, mut leaves) = (f32::NEG_INFINITY, 1.0_f32);
    for axis in 0..3 {
        let (low, high) = (bounds.min[axis] - from[axis], bounds.max[axis] - from[axis]);
        if way[axis] == 0.0 {
            // Along a face is outside.
            if low >= 0.0 || high <= 0.0 {
                return None;
            }
            continue;
        }
        let (one, other) = (low / way[axis], high / way[axis]);
        enters = enters.max(one.min(other));
        leaves = leaves.min(one.max(other));
    }
    (enters >= 0.0 && enters < leaves).then_some(enters)
}

#[cfg(test)]
mod tests {
    use throng::prelude::*;
    use throng_platform::time::Nanos;

    use super::*;

    fn doors() -> Doors {
        let solid = Aabb::new(Vec3::new(-1.5, 0.0, -0.25), Vec3::new(1.5, 4.0, 0.25));
        let mut doors = Doors::default();
        doors.hang(Entity::PLACEHOLDER, Doorway { solid, along: Vec3::X });
        doors
    }

    #[track_caller]
    fn check_step(from: [f32; 2], to: [f32; 2], stops_at_z: Option<f32>) {
        let [from, to] = [from, to].map(|[x, z]| Vec3::new(x, 0.1, z));
        let stop = doors().in_the_way(from, to);
        assert_eq!(stop.is_some(), stops_at_z.is_some(), "{from} to {to}: {stop:?}");
        if let (Some(stop), Some(z)) = (stop, stops_at_z) {
            assert!((stop.place.z - z).abs() < 2.0 * GAP_M && stop.place.z.abs() > 0.6, "{from} to {to}: {stop:?}");
            assert_eq!(doors().in_the_way(from, stop.place), None, "one can stand there");
        }
    }

    #[test]
    fn a_step_ends_before_a_closed_door() {
        check_step([0.0, -2.0], [0.0, 2.0], Some(-0.6));
        check_step([0.3, 2.0], [0.5, -9.0], Some(0.6));
        check_step([0.0, -2.0], [0.0, -0.65], None);
        check_step([-2.0, -0.65], [2.0, -0.65], None);
        check_step([2.0, -2.0], [2.0, 2.0], None);
        // From inside, whichever way.
        check_step([0.0, 0.1], [0.0, 3.0], None);
        check_step([0.0, -3.0], [0.0, -3.0], None);
    }

    #[test]
    fn a_closed_door_hides_what_is_behind_it_and_not_what_is_beside_or_above() {
        let between = |from: [f32; 3], to: [f32; 3]| doors().are_between(from.into(), to.into());
        assert!(between([0.0, 1.6, -5.0], [0.0, 1.2, 5.0]));
        assert!(!between([0.0, 1.6, -5.0], [0.0, 1.2, -1.0]), "it ends before");
        assert!(!between([2.0, 1.6, -5.0], [2.0, 1.2, 5.0]));
        assert!(!between([0.0, 4.5, -5.0], [0.0, 4.5, 5.0]));
    }

    #[test]
    fn only_a_closed_door_is_in_reach() {
        let mut doors = doors();
        let (world, last_tick_took) = (WorldId::new(0, 0), Nanos::ZERO);
        let tick = TickInfo { tick: 7, dt_s: 0.05, rate: Hertz(20), world, last_tick_took };
        assert_eq!(doors.in_reach(Vec3::new(0.0, 0.0, REACH_M + 0.1)), None);
        let feet = Vec3::new(1.0, 0.0, 1.0);
        assert_eq!(doors.in_reach(feet), Some(0));
        doors.open(0, &tick);
        doors.open(0, &tick);
        assert_eq!((doors.in_reach(feet), doors.open.len(), doors.turned.len()), (None, 1, 1));
        assert!(!doors.are_between(Vec3::new(0.0, 1.0, -1.0), Vec3::new(0.0, 1.0, 1.0)));
        doors.shut(&TickInfo { tick: 7 + 79, ..tick }, (&[], &[]));
        assert_eq!(doors.in_reach(feet), None, "not yet");
        doors.shut(&TickInfo { tick: 7 + 80, ..tick }, (&[f32::NAN, 0.5], &[f32::NAN, 0.6]));
        assert_eq!(doors.in_reach(feet), None, "somebody stands in it");
        doors.shut(&TickInfo { tick: 7 + 90, ..tick }, (&[f32::NAN, 0.5], &[f32::NAN, 0.7]));
        assert_eq!((doors.in_reach(feet), doors.open.len(), doors.turned.len()), (Some(0), 0, 1));
    }
}
