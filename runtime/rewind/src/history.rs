//! History: everybody of a world who can be hit, at each of the last ticks.
//!
//! A tick is written in three steps: [`History::begin_tick`], [`History::place`] for each body that can be hit now, and
//! [`History::end_tick`], which samples the poses whose turn it is. Who is not placed in a tick cannot be hit in it. In a
//! phase in which nobody can be hit, a world writes no ticks at all: nothing is sampled, a shot at a moment of that phase
//! hits nobody, and the first tick after it samples everybody at once, so that no pose of before is mixed with one of
//! after.
//!
//! Bodies have slots, small numbers of the game's own that are used again. A slot that is given to another body has no
//! past.
//!
//! Belongs to one world; runs on its thread. Memory is fixed until its owner asks for more ([`History::make_room`]), and a
//! tick allocates nothing. Sketch of the cost (`bench/rewind` measures it), each tick: some 5 ns for each body, and some
//! 0.3 µs for each pose that is sampled, which is one body in four.

use std::sync::Arc;

use glam::{Quat, Vec3};
use throng_platform::time::Nanos;
use throng_profiler::scoped;

use crate::{
    pose_sampler::PoseSampler,
    poses::{Around, Poses},
    rig::{Ends, Playing, Rig, in_world},
    skeleton::usable_turn,
    transforms::{Moment, PLACE_M_MAX, Transforms},
    view_time::ViewTime,
};

/// Most slots of a history: 5 KB each at 128 ticks a second and with 18 limbs.
pub const SLOTS_MAX: u32 = 1 << 16;

/// Longest history (s).
pub const BACK_S_MAX: u64 = 2;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySettings {
    /// Rate of the world (Hz, above 0).
    pub ticks_per_s: u16,
    /// How far back a shot may be judged: the clamp of [`ViewLimits`](crate::view_limits::ViewLimits), at most
    /// [`BACK_S_MAX`].
    pub back: Nanos,
    /// Bodies that can be hit, at most [`SLOTS_MAX`].
    pub slots: u32,
    /// Ticks from one pose of a body to its next (at least 1); between them it is interpolated.
    ///
    /// Too low → sampling takes as many times longer. Too high → limbs are hit where they were not shown.
    pub pose_every: u32,
}

impl HistorySettings {
    /// 200 ms, and a pose every fourth tick at 128 ticks a second: as often at other rates, about 32 times a second.
    pub fn new(ticks_per_s: u16, slots: u32) -> Self {
        let pose_every = u32::from(ticks_per_s / 32).max(1);
        Self { ticks_per_s, back: Nanos::from_millis(200), slots, pose_every }
    }
}

/// What makes no history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("a world has a rate above 0")]
    Rate,
    #[error("a history goes back by {BACK_S_MAX} s at most")]
    Back,
    #[error("a history has 1 to {SLOTS_MAX} slots, not {slots}")]
    Slots { slots: u32 },
    #[error("a history has 1 to 65,535 rigs, not {rigs}")]
    Rigs { rigs: usize },
}

/// A body in a tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Body {
    /// Its place (m), from which its rig is measured.
    pub at: Vec3,
    pub rotation: Quat,
    /// It did not move here from where it was a tick before, and is not to be hit on the way.
    pub jumped: bool,
    pub playing: Playing,
}

impl Body {
    /// One that moved here on its own feet, turned about the upright: yaw 0 looks along +z, a quarter turn along +x.
    pub fn standing(at: Vec3, yaw: f32, playing: Playing) -> Self {
        Self { at, rotation: Quat::from_rotation_y(yaw), jumped: false, playing }
    }
}

/// What was written, since the history was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// Bodies placed in a tick.
    pub placed: u64,
    /// Bodies that were not: a number that is not finite or a place beyond [`PLACE_M_MAX`], no such slot, no rig.
    pub refused: u64,
    /// Poses sampled.
    pub poses: u64,
}

/// No body has this slot.
pub(crate) const NO_RIG: u16 = u16::MAX;

/// The history of one world.
pub struct History {
    rigs: Vec<Arc<Rig>>,
    /// No body reaches farther from its place than this (m).
    reach_m: f32,
    has_bones: bool,
    pub(crate) transforms: Transforms,
    pub(crate) poses: Poses,
    /// By slot.
    pub(crate) rig_of: Vec<u16>,
    /// What each slot plays in the newest tick.
    pub(crate) playing: Vec<Playing>,
    sampler: PoseSampler,
    counts: HistoryCounts,
}

impl History {
    /// A history of bodies of these rigs, which are named by their places.
    pub fn new(settings: &HistorySettings, rigs: Vec<Arc<Rig>>) -> Result<Self, HistoryError> {
        let HistorySettings { ticks_per_s, back, slots, pose_every } = *settings;
        if ticks_per_s == 0 {
            return Err(HistoryError::Rate);
        }
        if back > Nanos::from_secs(BACK_S_MAX) {
            return Err(HistoryError::Back);
        }
        if slots == 0 || slots > SLOTS_MAX {
            return Err(HistoryError::Slots { slots });
        }
        if rigs.is_empty() || rigs.len() > usize::from(NO_RIG) {
            return Err(HistoryError::Rigs { rigs: rigs.len() });
        }
        let back_parts = ViewTime::parts_in(back, ticks_per_s);
        let ticks_back = back_parts.div_ceil(u64::from(ViewTime::PARTS_PER_TICK)) as u32;
        let slots = slots as usize;
        let limbs = rigs.iter().filter(|rig| rig.has_bones()).map(|rig| rig.limbs()).max().unwrap_or(0);
        Ok(Self {
            reach_m: rigs.iter().map(|rig| rig.reach_m()).fold(0.0, f32::max),
            has_bones: limbs > 0,
            rigs,
            // One row for the present, and one before the oldest moment.
            transforms: Transforms::new(slots, ticks_back as usize + 2),
            poses: Poses::new(slots, limbs, pose_every, ticks_back + 1),
            rig_of: vec![NO_RIG; slots],
            playing: vec![Playing::default(); slots],
            sampler: PoseSampler::default(),
            counts: HistoryCounts::default(),
        })
    }

    /// Bodies that there is room for.
    pub fn slots(&self) -> u32 {
        self.rig_of.len() as u32
    }

    /// Makes room for so many bodies, if there is less; nobody loses its past. False, and nothing is done, if these are
    /// more than [`SLOTS_MAX`].
    ///
    /// Allocates, and copies all that is recorded: who makes room for one more body at a time does so too often.
    pub fn make_room(&mut self, slots: u32) -> bool {
        if slots > SLOTS_MAX {
            return false;
        }
        let slots = slots as usize;
        if slots > self.rig_of.len() {
            self.transforms.make_room(slots);
            self.poses.make_room(slots);
            self.rig_of.resize(slots, NO_RIG);
            self.playing.resize(slots, Playing::default());
        }
        true
    }

    /// Gives a slot to a body of this rig, without a past. False: there is no such slot, or no such rig.
    pub fn insert(&mut self, slot: u32, rig: u16) -> bool {
        let slot = slot as usize;
        if slot >= self.rig_of.len() || usize::from(rig) >= self.rigs.len() {
            return false;
        }
        self.transforms.forget(slot);
        self.poses.forget(slot);
        (self.rig_of[slot], self.playing[slot]) = (rig, Playing::default());
        true
    }

    /// Takes a body out, with its past. One that died and stays in its slot is not placed any more instead, and can still
    /// be hit where it was.
    pub fn remove(&mut self, slot: u32) {
        if let Some(rig) = self.rig_of.get_mut(slot as usize) {
            *rig = NO_RIG;
            self.transforms.forget(slot as usize);
            self.poses.forget(slot as usize);
        }
    }

    /// Begins a tick, in which nobody is yet. If it does not follow the newest, nothing of before can be hit any more.
    pub fn begin_tick(&mut self, tick: u32) {
        if !self.transforms.begin_tick(tick) {
            self.poses.forget_all();
        }
    }

    /// Says where a body is in the tick that was begun, and that it can be hit. False if it was refused: then it cannot.
    pub fn place(&mut self, slot: u32, body: &Body) -> bool {
        let slot = slot as usize;
        let has_bones = self.rig(slot).map(Rig::has_bones);
        let in_range = body.at.is_finite() && body.at.abs().max_element() <= PLACE_M_MAX;
        let (Some(has_bones), true, Some(rotation)) = (has_bones, in_range, usable_turn(body.rotation)) else {
            self.counts.refused += 1;
            return false;
        };
        self.transforms.place(slot, body.at, rotation, body.jumped);
        // Without bones nobody asks what it plays: for a small world between a thousand others that is half the memory
        // that a tick would touch.
        if has_bones {
            self.playing[slot] = body.playing;
        }
        self.counts.placed += 1;
        true
    }

    /// Samples the poses of those whose turn it is, and of those who have just come.
    #[scoped("rewind.poses")]
    pub fn end_tick(&mut self) {
        let Some(run) = self.transforms.run().filter(|_| self.has_bones) else { return };
        let Self { rigs, transforms, poses, rig_of, playing, sampler, counts, .. } = self;
        let tick = run.newest;
        for (slot, rig) in rig_of.iter().enumerate() {
            let Some(rig) = rigs.get(usize::from(*rig)).filter(|rig| rig.has_bones()) else { continue };
            if transforms.was_there(slot, tick) && poses.is_due(slot, tick) {
                sampler.sample(rig, &playing[slot], poses.push(slot, tick));
                counts.poses += 1;
            }
        }
    }

    /// The ticks that are recorded, oldest and newest.
    pub fn ticks(&self) -> Option<(u32, u32)> {
        self.transforms.run().map(|run| (run.oldest, run.newest))
    }

    /// Where a body was, to the bit at a tick and interpolated between two; `None` if it could not be hit then.
    pub fn transform_at(&self, slot: u32, at: ViewTime) -> Option<(Vec3, Quat)> {
        let moment = self.moment(at)?;
        let slot = slot as usize;
        if slot < self.rig_of.len() { self.transforms.transform(&moment, slot) } else { None }
    }

    /// Where the limbs of a body were, in the world; none if it could not be hit then. `limbs` is cleared.
    pub fn limbs_at(&self, slot: u32, at: ViewTime, sampler: &mut PoseSampler, limbs: &mut Vec<Ends>) {
        limbs.clear();
        let Some((place, rotation)) = self.transform_at(slot, at) else { return };
        self.write_limbs(slot as usize, at, sampler, limbs);
        limbs.iter_mut().for_each(|ends| *ends = in_world(*ends, place, rotation));
    }

    pub fn counts(&self) -> HistoryCounts {
        self.counts
    }

    /// Memory held beside the rigs (bytes).
    pub fn bytes(&self) -> usize {
        let by_slot = self.rig_of.len() * (size_of::<u16>() + size_of::<Playing>());
        self.transforms.bytes() + self.poses.bytes() + by_slot
    }

    pub(crate) fn moment(&self, at: ViewTime) -> Option<Moment> {
        self.transforms.moment(at)
    }

    pub(crate) fn transforms(&self) -> &Transforms {
        &self.transforms
    }

    pub(crate) fn reach_m(&self) -> f32 {
        self.reach_m
    }

    /// Limbs of the body that has most of them.
    pub(crate) fn limbs_max(&self) -> usize {
        self.rigs.iter().map(|rig| rig.limbs()).max().unwrap_or(0)
    }

    pub(crate) fn rig(&self, slot: usize) -> Option<&Rig> {
        self.rigs.get(usize::from(*self.rig_of.get(slot)?)).map(|rig| &**rig)
    }

    /// The limbs of a body as seen from it; `limbs` is empty, and stays so if nobody has the slot.
    pub(crate) fn write_limbs(&self, slot: usize, at: ViewTime, sampler: &mut PoseSampler, limbs: &mut Vec<Ends>) {
        let Some(rig) = self.rig(slot) else { return };
        if !rig.has_bones() {
            limbs.extend_from_slice(rig.still_ends());
            return;
        }
        let count = rig.limbs();
        let pose = |entry: usize| self.poses.limbs(entry).iter().take(count);
        match self.poses.around(slot, at) {
            Around::Nothing => {}
            Around::One(entry) => limbs.extend(pose(entry)),
            Around::Two { earlier, later, fraction } => {
                limbs.extend(pose(earlier).zip(pose(later)).map(|(one, other)| one.towards(*other, fraction)));
            }
            Around::After { earlier, tick } => self.write_after(slot, rig, (earlier, tick), at, sampler, limbs),
        }
    }

    /// After a body's newest pose, the next of which is not due yet: how it stands now is sampled for the shot.
    fn write_after(
        &self,
        slot: usize,
        rig: &Rig,
        (earlier, tick): (usize, u32),
        at: ViewTime,
        sampler: &mut PoseSampler,
        limbs: &mut Vec<Ends>,
    ) {
        let pose = self.poses.limbs(earlier).iter().take(rig.limbs());
        let newest = self.transforms.run().map_or(tick, |run| run.newest);
        let stands = newest > tick && newest - tick <= self.poses.every() && self.transforms.was_there(slot, newest);
        if !stands {
            limbs.extend(pose);
            return;
        }
        limbs.resize(rig.limbs(), Ends::default());
        sampler.sample(rig, &self.playing[slot], limbs);
        let fraction = self.poses.fraction(tick, newest, at);
        limbs.iter_mut().zip(pose).for_each(|(limb, before)| *limb = before.towards(*limb, fraction));
    }
}
