//! Transforms: where everybody was in each of the last ticks, in ring columns.
//!
//! ```text
//!            slot 0   1   2  ...
//! tick 96  x [  .     .   .  ]      a row for each tick, as many as the clamp has and two more
//! tick 97  x [  .     .   .  ]      (one to interpolate from, one for the present);
//!   ..                              columns x, y, z, rotation, holds
//! tick 95  x [  .     .   .  ]
//! ```
//!
//! A shot looks at one or two rows from end to end: places lie side by side there, and who is far from the ray costs a
//! few additions. Who is not there has a place that is no number, which no comparison finds near. The rows are those of
//! one run of ticks: where a tick was left out, history begins anew, and nobody is interpolated across the gap.
//!
//! Belongs to one world. Fixed memory: 29 bytes for each slot and row.

use glam::{Quat, Vec3};
use throng_pack::Pack;

use crate::view_time::ViewTime;

/// Beyond this (m) a place is refused: squares of distances stay numbers.
pub const PLACE_M_MAX: f32 = 1e7;

pub(crate) struct Transforms {
    slots: usize,
    rows: usize,
    x_m: Vec<f32>,
    y_m: Vec<f32>,
    z_m: Vec<f32>,
    rotation: Vec<Quat>,
    /// Until this row's tick the slot stays where it was in the row before: it jumped here, or is here no more.
    holds: Vec<bool>,
    run: Option<Run>,
}

/// Consecutive ticks that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pack)]
#[pack(name = "throng.history_run")]
pub(crate) struct Run {
    pub oldest: u32,
    pub newest: u32,
}

/// A recorded moment: two rows, and how far it is from one to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// First entries of both rows.
    earlier: usize,
    later: usize,
    fraction: f32,
}

/// How many candidates are looked at before one asks whether any of them is near.
const LANES: usize = 16;

impl Transforms {
    pub fn new(slots: usize, rows: usize) -> Self {
        let entries = slots * rows;
        Self {
            slots,
            rows,
            x_m: vec![f32::NAN; entries],
            y_m: vec![f32::NAN; entries],
            z_m: vec![f32::NAN; entries],
            rotation: vec![Quat::IDENTITY; entries],
            holds: vec![true; entries],
            run: None,
        }
    }

    pub fn run(&self) -> Option<Run> {
        self.run
    }

    /// Begins the row of a tick, in which nobody is yet. False: the tick does not follow the newest, so history begins
    /// with it.
    pub fn begin_tick(&mut self, tick: u32) -> bool {
        let follows = self.run.is_some_and(|run| run.newest.checked_add(1) == Some(tick));
        self.run = match self.run {
            Some(run) if follows => {
                Some(Run { oldest: run.oldest.max(tick.saturating_sub(self.rows as u32 - 1)), newest: tick })
            }
            _ => Some(Run { oldest: tick, newest: tick }),
        };
        let row = self.row(tick);
        self.x_m[row..row + self.slots].fill(f32::NAN);
        self.holds[row..row + self.slots].fill(true);
        follows
    }

    /// Where a slot is in the newest tick. `jumped`: it did not move here from where it was a tick before.
    pub fn place(&mut self, slot: usize, at: Vec3, rotation: Quat, jumped: bool) {
        let Some(run) = self.run else { return };
        let entry = self.row(run.newest) + slot;
        (self.x_m[entry], self.y_m[entry], self.z_m[entry]) = (at.x, at.y, at.z);
        self.rotation[entry] = rotation;
        self.holds[entry] = jumped;
    }

    /// Room for so many slots, if there is less. What is recorded stays.
    pub fn make_room(&mut self, slots: usize) {
        if slots <= self.slots {
            return;
        }
        let mut wider = Self::new(slots, self.rows);
        wider.run = self.run;
        for row in 0..self.rows {
            let (from, to) = (row * self.slots, row * slots);
            let (from, to) = (from..from + self.slots, to..to + self.slots);
            wider.x_m[to.clone()].copy_from_slice(&self.x_m[from.clone()]);
            wider.y_m[to.clone()].copy_from_slice(&self.y_m[from.clone()]);
            wider.z_m[to.clone()].copy_from_slice(&self.z_m[from.clone()]);
            wider.rotation[to.clone()].copy_from_slice(&self.rotation[from.clone()]);
            wider.holds[to].copy_from_slice(&self.holds[from]);
        }
        *self = wider;
    }

    /// How many ticks there is room for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Where a slot was in a tick of the run, how it was turned, and whether it holds; `None` if it was not there.
    pub fn entry(&self, slot: usize, tick: u32) -> Option<(Vec3, Quat, bool)> {
        let entry = self.row(tick) + slot;
        let at = Vec3::new(self.x_m[entry], self.y_m[entry], self.z_m[entry]);
        (!at.x.is_nan()).then(|| (at, self.rotation[entry], self.holds[entry]))
    }

    /// Nobody was anywhere, ever.
    pub fn forget_all(&mut self) {
        self.run = None;
        self.x_m.fill(f32::NAN);
        self.holds.fill(true);
    }

    /// Nobody was in this slot, ever.
    pub fn forget(&mut self, slot: usize) {
        for row in 0..self.rows {
            self.x_m[row * self.slots + slot] = f32::NAN;
            self.holds[row * self.slots + slot] = true;
        }
    }

    /// Whether a slot was there in a tick.
    pub fn was_there(&self, slot: usize, tick: u32) -> bool {
        let recorded = self.run.is_some_and(|run| run.oldest <= tick && tick <= run.newest);
        recorded && !self.x_m[self.row(tick) + slot].is_nan()
    }

    /// The rows of a moment; `None` for one that is not recorded.
    pub fn moment(&self, at: ViewTime) -> Option<Moment> {
        let run = self.run?;
        if at < ViewTime::of_tick(run.oldest) || at > ViewTime::of_tick(run.newest) {
            return None;
        }
        let earlier = self.row(at.tick());
        let later = if at.part() == 0 { earlier } else { self.row(at.tick() + 1) };
        Some(Moment { earlier, later, fraction: at.fraction() })
    }

    /// Where a slot was, and how it was turned; `None` if it was not there.
    pub fn transform(&self, moment: &Moment, slot: usize) -> Option<(Vec3, Quat)> {
        let (earlier, later) = (moment.earlier + slot, moment.later + slot);
        let place = |entry: usize| Vec3::new(self.x_m[entry], self.y_m[entry], self.z_m[entry]);
        let from = place(earlier);
        if from.x.is_nan() {
            return None;
        }
        // What was recorded comes back to the bit.
        if moment.fraction == 0.0 || self.holds[later] {
            return Some((from, self.rotation[earlier]));
        }
        let at = from + (place(later) - from) * moment.fraction;
        Some((at, self.rotation[earlier].lerp(self.rotation[later], moment.fraction)))
    }

    /// Broad phase: appends each slot that was within `around_m` of a ray's way. `unit` has a length of 1, and so far
    /// the ray reaches.
    pub fn find_near(
        &self,
        moment: &Moment,
        (origin, unit, reach_m): (Vec3, Vec3, f32),
        around_m: f32,
        found: &mut Vec<u32>,
    ) {
        let (earlier, later) = (moment.earlier..moment.earlier + self.slots, moment.later..moment.later + self.slots);
        let ends = [&self.x_m, &self.y_m, &self.z_m].map(|column| (&column[earlier.clone()], &column[later.clone()]));
        let holds = &self.holds[later];
        let around_m2 = around_m * around_m;
        for begin in (0..self.slots).step_by(LANES) {
            let end = (begin + LANES).min(self.slots);
            let mut near = [false; LANES];
            for (lane, slot) in (begin..end).enumerate() {
                // Where it holds, the later place may be no number.
                let towards = |(from, to): (&[f32], &[f32])| {
                    let to = if holds[slot] { from[slot] } else { to[slot] };
                    from[slot] + (to - from[slot]) * moment.fraction
                };
                let to_x = towards(ends[0]) - origin.x;
                let to_y = towards(ends[1]) - origin.y;
                let to_z = towards(ends[2]) - origin.z;
                let along_m = to_x * unit.x + to_y * unit.y + to_z * unit.z;
                let nearest_m = along_m.clamp(0.0, reach_m);
                let (off_x, off_y, off_z) =
                    (to_x - unit.x * nearest_m, to_y - unit.y * nearest_m, to_z - unit.z * nearest_m);
                near[lane] = off_x * off_x + off_y * off_y + off_z * off_z <= around_m2;
            }
            if near.contains(&true) {
                let lanes = near.iter().enumerate().filter(|(_, near)| **near);
                found.extend(lanes.map(|(lane, _)| (begin + lane) as u32));
            }
        }
    }

    fn row(&self, tick: u32) -> usize {
        tick as usize % self.rows * self.slots
    }

    /// Memory held (bytes).
    pub fn bytes(&self) -> usize {
        self.slots * self.rows * (3 * size_of::<f32>() + size_of::<Quat>() + size_of::<bool>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: f32) -> Vec3 {
        Vec3::new(x, 0.0, 0.0)
    }

    fn x_at(transforms: &Transforms, view: ViewTime, slot: usize) -> Option<f32> {
        transforms.transform(&transforms.moment(view)?, slot).map(|(at, _)| at.x)
    }

    #[test]
    fn a_tick_comes_back_as_it_was_and_what_lies_between_is_interpolated() {
        let mut transforms = Transforms::new(2, 4);
        let turned = Quat::from_rotation_y(0.3);
        for tick in 10..20 {
            transforms.begin_tick(tick);
            transforms.place(1, at(tick as f32 * 0.1), turned, false);
        }
        for tick in 16..20 {
            let moment = transforms.moment(ViewTime::of_tick(tick)).unwrap();
            assert_eq!(transforms.transform(&moment, 1), Some((at(tick as f32 * 0.1), turned)));
            assert_eq!(transforms.transform(&moment, 0), None);
        }
        let between = x_at(&transforms, ViewTime::new(17, 128), 1).unwrap();
        assert!((between - 1.75).abs() < 1e-5, "{between}");
        assert_eq!(transforms.run(), Some(Run { oldest: 16, newest: 19 }));
        assert_eq!(transforms.moment(ViewTime::new(15, 255)), None, "four rows");
        assert_eq!(transforms.moment(ViewTime::new(19, 1)), None, "it has not come yet");
    }

    #[test]
    fn who_jumps_or_goes_is_where_it_was_until_then_and_nowhere_between() {
        let mut transforms = Transforms::new(3, 8);
        transforms.begin_tick(5);
        (0..2).for_each(|slot| transforms.place(slot, at(1.0), Quat::IDENTITY, false));
        transforms.begin_tick(6);
        transforms.place(0, at(500.0), Quat::IDENTITY, true);
        transforms.place(2, at(2.0), Quat::IDENTITY, false);
        let late = ViewTime::new(5, 250);
        assert_eq!(x_at(&transforms, late, 0), Some(1.0), "on its way it would be at 489 m");
        assert_eq!(x_at(&transforms, ViewTime::of_tick(6), 0), Some(500.0));
        assert_eq!(x_at(&transforms, late, 1), Some(1.0));
        assert_eq!(x_at(&transforms, ViewTime::of_tick(6), 1), None);
        assert_eq!(x_at(&transforms, late, 2), None, "it was not there before");
        transforms.forget(0);
        assert_eq!(x_at(&transforms, late, 0), None);
    }

    #[test]
    fn where_a_tick_was_left_out_history_begins_anew() {
        let mut transforms = Transforms::new(1, 8);
        for tick in [3, 4, 6] {
            let follows = transforms.begin_tick(tick);
            assert_eq!(follows, tick == 4);
            transforms.place(0, at(tick as f32), Quat::IDENTITY, false);
        }
        assert_eq!(transforms.run(), Some(Run { oldest: 6, newest: 6 }));
        assert_eq!(x_at(&transforms, ViewTime::of_tick(4), 0), None);
        assert_eq!(x_at(&transforms, ViewTime::of_tick(6), 0), Some(6.0));
        assert!(!transforms.was_there(0, 4) && transforms.was_there(0, 6));
    }

    /// Promise: the broad phase leaves nobody out who is within reach of the ray.
    #[test]
    fn the_broad_phase_agrees_with_each_by_itself() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(5);
        let mut transforms = Transforms::new(77, 4);
        let mut found = Vec::new();
        for tick in 0..40 {
            transforms.begin_tick(tick);
            for slot in 0..77 {
                if rng.random_bool(0.9) {
                    let at = Vec3::from_array(std::array::from_fn(|_| rng.random_range(-20.0..20.0)));
                    transforms.place(slot, at, Quat::IDENTITY, rng.random_bool(0.1));
                }
            }
            let view = ViewTime::of_tick(tick).before(rng.random_range(0..300));
            let Some(moment) = transforms.moment(view) else { continue };
            let origin = Vec3::from_array(std::array::from_fn(|_| rng.random_range(-20.0..20.0)));
            let unit = Vec3::from_array(std::array::from_fn(|_| rng.random_range(-1.0_f32..1.0))).normalize();
            let reach_m = rng.random_range(1.0..40.0);
            found.clear();
            transforms.find_near(&moment, (origin, unit, reach_m), 2.5, &mut found);
            let expect = (0..77_u32).filter(|slot| {
                let Some((at, _)) = transforms.transform(&moment, *slot as usize) else { return false };
                let along_m = (at - origin).dot(unit).clamp(0.0, reach_m);
                at.distance(origin + unit * along_m) <= 2.5
            });
            assert_eq!(found, expect.collect::<Vec<_>>());
        }
    }
}
