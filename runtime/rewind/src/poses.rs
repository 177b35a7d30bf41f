//! Poses: how each body stood at a few of the last ticks, in rings.
//!
//! A pose costs a hundred times what a place does, and in 31 ms (four ticks of 128 a second) no limb turns far. So each
//! body's pose is sampled every few ticks only and interpolated between: `tests/pose_error.rs` says how many centimetres
//! that is wrong by. Bodies take turns, so that every tick samples equally many.
//!
//! ```text
//! slot 0   | pose at 96 | pose at 100 | pose at 104 | ..        each pose: both ends of each limb,
//! slot 1   | pose at 97 | pose at 101 | pose at 105 | ..        as seen from the body
//! ```
//!
//! Belongs to one world. Fixed memory: 24 bytes for each limb, pose and slot.

use crate::{rig::Ends, view_time::ViewTime};

/// A pose that is not there.
const NO_TICK: u32 = u32::MAX;

pub(crate) struct Poses {
    /// Ticks from one pose of a body to its next.
    every: u32,
    /// Poses of each slot.
    keys: usize,
    /// Limbs of each pose.
    limbs: usize,
    /// When each pose was; by slot, then by place in its ring.
    ticks: Vec<u32>,
    ends: Vec<Ends>,
    /// Where the next pose of each slot goes.
    next: Vec<u16>,
}

/// The poses around a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Around {
    /// None of this slot, or none that old.
    Nothing,
    /// This one holds: entries of its limbs.
    One(usize),
    /// Between these two.
    Two { earlier: usize, later: usize, fraction: f32 },
    /// After this one, and the next has not been sampled yet.
    After { earlier: usize, tick: u32 },
}

impl Poses {
    /// Room for so many ticks into the past.
    pub fn new(slots: usize, limbs: usize, every: u32, ticks_back: u32) -> Self {
        let every = every.max(1);
        // One before the oldest moment, one after the newest, and one that came out of turn.
        let keys = (ticks_back.div_ceil(every) as usize + 3).min(usize::from(u16::MAX));
        let slots = if limbs == 0 { 0 } else { slots };
        Self {
            every,
            keys,
            limbs,
            ticks: vec![NO_TICK; slots * keys],
            ends: vec![Ends::default(); slots * keys * limbs],
            next: vec![0; slots],
        }
    }

    /// Room for so many slots, if there is less. What is recorded stays: each slot's ring lies by itself.
    pub fn make_room(&mut self, slots: usize) {
        if self.limbs > 0 && slots > self.next.len() {
            self.ticks.resize(slots * self.keys, NO_TICK);
            self.ends.resize(slots * self.keys * self.limbs, Ends::default());
            self.next.resize(slots, 0);
        }
    }

    /// Ticks from one pose to the next (at least 1).
    pub fn every(&self) -> u32 {
        self.every
    }

    /// Whether a body that is in this slot is sampled now: it is its turn, or its last one is longer ago than that, since
    /// it has come or was away when its turn was.
    pub fn is_due(&self, slot: usize, tick: u32) -> bool {
        tick.wrapping_add(slot as u32).is_multiple_of(self.every)
            || self.newest(slot).is_none_or(|newest| tick.saturating_sub(newest) > self.every)
    }

    /// When the newest pose of a slot was.
    fn newest(&self, slot: usize) -> Option<u32> {
        let newest = (usize::from(self.next[slot]) + self.keys - 1) % self.keys;
        Some(self.ticks[slot * self.keys + newest]).filter(|tick| *tick != NO_TICK)
    }

    /// Where to write the newest pose of a slot.
    pub fn push(&mut self, slot: usize, tick: u32) -> &mut [Ends] {
        let next = usize::from(self.next[slot]);
        self.next[slot] = ((next + 1) % self.keys) as u16;
        let key = slot * self.keys + next;
        self.ticks[key] = tick;
        &mut self.ends[key * self.limbs..(key + 1) * self.limbs]
    }

    /// Nobody was in this slot, ever.
    pub fn forget(&mut self, slot: usize) {
        if let Some(ticks) = self.ticks.get_mut(slot * self.keys..(slot + 1) * self.keys) {
            ticks.fill(NO_TICK);
        }
    }

    /// Nobody was anywhere.
    pub fn forget_all(&mut self) {
        self.ticks.fill(NO_TICK);
    }

    /// The poses of a slot around a moment. Those that are farther apart than two turns are not mixed: somebody went
    /// and came back.
    pub fn around(&self, slot: usize, at: ViewTime) -> Around {
        let Some(ticks) = self.ticks.get(slot * self.keys..(slot + 1) * self.keys) else { return Around::Nothing };
        let known = || ticks.iter().enumerate().filter(|(_, tick)| **tick != NO_TICK);
        let earlier = known().filter(|(_, tick)| ViewTime::of_tick(**tick) <= at).max_by_key(|(_, tick)| **tick);
        let later = known().filter(|(_, tick)| ViewTime::of_tick(**tick) > at).min_by_key(|(_, tick)| **tick);
        let entry = |key: usize| (slot * self.keys + key) * self.limbs;
        match (earlier, later) {
            (None, _) => Around::Nothing,
            (Some((key, tick)), _) if ViewTime::of_tick(*tick) == at => Around::One(entry(key)),
            (Some((earlier, from)), Some((later, to))) if to - from <= self.every => {
                let fraction = self.fraction(*from, *to, at);
                Around::Two { earlier: entry(earlier), later: entry(later), fraction }
            }
            (Some((key, _)), Some(_)) => Around::One(entry(key)),
            (Some((key, tick)), None) => Around::After { earlier: entry(key), tick: *tick },
        }
    }

    /// How far a moment is on the way from one tick to another: 0 to 1.
    pub fn fraction(&self, from: u32, to: u32, at: ViewTime) -> f32 {
        let way = ViewTime::of_tick(to).parts_since(ViewTime::of_tick(from)).max(1);
        (at.parts_since(ViewTime::of_tick(from)) as f32 / way as f32).min(1.0)
    }

    /// Limbs of each pose; 0 if no body has bones.
    pub fn limbs_count(&self) -> usize {
        self.limbs
    }

    /// The poses of a slot, from the oldest on: when each was, and its limbs.
    pub fn of_slot(&self, slot: usize) -> impl Iterator<Item = (u32, &[Ends])> {
        let next = self.next.get(slot).map_or(0, |next| usize::from(*next));
        let keys = if slot < self.next.len() { self.keys } else { 0 };
        let entries = (0..keys).map(move |key| slot * self.keys + (next + key) % self.keys);
        let known = entries.filter(|entry| self.ticks[*entry] != NO_TICK);
        known.map(|entry| (self.ticks[entry], &self.ends[entry * self.limbs..(entry + 1) * self.limbs]))
    }

    /// The limbs of a pose, as [`Around`] names it.
    pub fn limbs(&self, entry: usize) -> &[Ends] {
        &self.ends[entry..entry + self.limbs]
    }

    /// Memory held (bytes).
    pub fn bytes(&self) -> usize {
        self.ticks.len() * size_of::<u32>() + self.ends.len() * size_of::<Ends>() + self.next.len() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick_of(poses: &Poses, entry: usize) -> u32 {
        poses.ticks[entry / poses.limbs]
    }

    #[test]
    fn a_moment_lies_between_the_poses_before_and_after_it() {
        let mut poses = Poses::new(2, 3, 4, 16);
        for tick in 0..100 {
            for slot in 0..2 {
                if poses.is_due(slot, tick) {
                    poses.push(slot, tick);
                }
            }
        }
        let Around::Two { earlier, later, fraction } = poses.around(1, ViewTime::new(89, 128)) else { panic!() };
        assert_eq!((tick_of(&poses, earlier), tick_of(&poses, later)), (87, 91));
        assert!((fraction - 2.5 / 4.0).abs() < 1e-6);
        let Around::One(entry) = poses.around(0, ViewTime::of_tick(88)) else { panic!() };
        assert_eq!(tick_of(&poses, entry), 88);
        let Around::After { tick, .. } = poses.around(0, ViewTime::of_tick(99)) else { panic!() };
        assert_eq!(tick, 96);
        assert_eq!(poses.around(0, ViewTime::of_tick(60)), Around::Nothing, "longer ago than 16 ticks");
        assert_eq!(poses.around(2, ViewTime::of_tick(96)), Around::Nothing, "there are two");
        poses.forget(0);
        assert_eq!(poses.around(0, ViewTime::of_tick(96)), Around::Nothing);
    }

    #[test]
    fn who_went_and_came_back_is_not_between_both() {
        let mut poses = Poses::new(1, 1, 4, 64);
        for tick in [0, 4, 30] {
            assert!(poses.is_due(0, tick));
            poses.push(0, tick);
        }
        assert!(!poses.is_due(0, 31) && poses.is_due(0, 32));
        let Around::One(entry) = poses.around(0, ViewTime::of_tick(6)) else { panic!() };
        assert_eq!(tick_of(&poses, entry), 4);
    }
}
