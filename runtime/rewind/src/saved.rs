//! Saved: a history as a value that is packed, for worlds that are made again after a panic or a restart.
//!
//! A history that is made with the same settings and rigs and takes this in judges every shot as the one that it was taken
//! from. What it does not take: what it has counted.
//!
//! Belongs to one world. Allocates a few lists. 15 bytes for a tick of a body without a turn, 31 of one with it; 24 for each
//! limb of a pose.

use glam::{Quat, Vec3};
use throng_pack::{List, Pack};

use crate::{
    history::{History, NO_RIG, SLOTS_MAX},
    rig::{Ends, LAYERS_MAX, Layer, Playing},
    skeleton::usable_turn,
    transforms::{PLACE_M_MAX, Run},
};

/// Places in all: of 65,536 bodies in 32 ticks. Poses, and their limbs, in all. A history that has more is saved without a
/// past: a checkpoint could not hold it anyway.
pub const PLACES_MAX: usize = 1 << 21;
pub const POSES_MAX: usize = 1 << 20;
pub const ENDS_MAX: usize = 1 << 22;

/// All that a [`History`] has recorded.
#[derive(Debug, Clone, PartialEq, Pack)]
#[pack(name = "throng.history")]
pub struct SavedHistory {
    run: Option<Run>,
    /// By slot.
    bodies: List<SavedBody, { SLOTS_MAX as usize }>,
    /// Of each body in turn one for each tick, from the oldest on.
    places: List<Option<SavedPlace>, PLACES_MAX>,
    /// Of each body in turn those that it has, from the oldest on.
    poses: List<SavedPose, POSES_MAX>,
    /// Of each pose in turn, as many for each.
    ends: List<SavedEnds, ENDS_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "throng.history_body")]
struct SavedBody {
    rig: Option<u16>,
    /// Of a rig with bones.
    playing: Option<SavedPlaying>,
}

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "throng.history_place")]
struct SavedPlace {
    #[pack(via = [f32; 3], min = -PLACE_M_MAX, max = PLACE_M_MAX)]
    at: Vec3,
    /// `None`: it is not turned.
    rotation: Option<[f32; 4]>,
    holds: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "throng.history_pose")]
struct SavedPose {
    slot: u32,
    tick: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "throng.history_limb")]
struct SavedEnds {
    #[pack(via = [f32; 3])]
    from: Vec3,
    #[pack(via = [f32; 3])]
    to: Vec3,
}

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "throng.history_playing")]
struct SavedPlaying {
    layers: [SavedLayer; LAYERS_MAX],
}

#[derive(Debug, Clone, Copy, PartialEq, Pack)]
#[pack(name = "throng.history_layer")]
struct SavedLayer {
    clip: u16,
    at_s: f32,
    weight: f32,
}

/// All of it; `None` if there is no room for that.
fn list<T, const N: usize>(values: impl Iterator<Item = T>) -> Option<List<T, N>> {
    let mut list = List::new();
    for value in values {
        list.push(value).ok()?;
    }
    Some(list)
}

impl History {
    /// All that is recorded.
    pub fn save(&self) -> SavedHistory {
        let slots = || 0..self.rig_of.len();
        let bodies = list(slots().map(|slot| self.body(slot))).unwrap_or_default();
        let run = self.transforms.run();
        let ticks = || run.into_iter().flat_map(|run| run.oldest..=run.newest);
        let places = list(slots().flat_map(|slot| ticks().map(move |tick| self.place_in(slot, tick))));
        let poses = || slots().flat_map(|slot| self.poses.of_slot(slot).map(move |pose| (slot, pose)));
        let pose = |(slot, (tick, _)): (usize, (u32, &[Ends]))| SavedPose { slot: slot as u32, tick };
        let ends = |ends: &Ends| SavedEnds { from: ends.from, to: ends.to };
        let all_ends = list(poses().flat_map(|(_, (_, limbs))| limbs).map(ends));
        match (places, list(poses().map(pose)), all_ends) {
            (Some(places), Some(poses), Some(ends)) => SavedHistory { run, bodies, places, poses, ends },
            _ => {
                let (places, poses, ends) = Default::default();
                SavedHistory { run: None, bodies, places, poses, ends }
            }
        }
    }

    fn body(&self, slot: usize) -> SavedBody {
        let layer = |layer: Layer| SavedLayer { clip: layer.clip, at_s: layer.at_s, weight: layer.weight };
        let is_boned = self.rig(slot).is_some_and(|rig| rig.has_bones());
        SavedBody {
            rig: Some(self.rig_of[slot]).filter(|rig| *rig != NO_RIG),
            playing: is_boned.then(|| SavedPlaying { layers: self.playing[slot].layers.map(layer) }),
        }
    }

    fn place_in(&self, slot: usize, tick: u32) -> Option<SavedPlace> {
        let (at, rotation, holds) = self.transforms.entry(slot, tick)?;
        let rotation = (rotation != Quat::IDENTITY).then(|| rotation.to_array());
        Some(SavedPlace { at, rotation, holds })
    }

    /// Becomes the history that was saved; there is room for its bodies then. False: that was made with other settings or
    /// rigs, or is none at all, and this one has no past now.
    pub fn restore(&mut self, saved: &SavedHistory) -> bool {
        let is_restored = self.try_restore(saved).is_some();
        if !is_restored {
            self.transforms.forget_all();
            self.poses.forget_all();
        }
        is_restored
    }

    fn try_restore(&mut self, saved: &SavedHistory) -> Option<()> {
        let SavedHistory { run, bodies, places, poses, ends } = saved;
        self.make_room(bodies.len() as u32).then_some(())?;
        self.transforms.forget_all();
        (0..self.slots()).for_each(|slot| self.remove(slot));
        for (slot, body) in bodies.iter().enumerate() {
            if let Some(rig) = body.rig {
                self.insert(slot as u32, rig).then_some(())?;
            }
            if let Some(playing) = body.playing {
                let layer = |layer: SavedLayer| Layer { clip: layer.clip, at_s: layer.at_s, weight: layer.weight };
                self.playing[slot] = Playing { layers: playing.layers.map(layer) };
            }
        }
        let limbs = self.poses.limbs_count();
        (ends.len() == poses.len() * limbs && (limbs > 0 || poses.is_empty())).then_some(())?;
        for (pose, ends) in poses.iter().zip(ends.chunks(limbs.max(1))) {
            let slot = Some(pose.slot as usize).filter(|slot| *slot < bodies.len())?;
            let ends = ends.iter().map(|ends| Ends { from: ends.from, to: ends.to });
            self.poses.push(slot, pose.tick).iter_mut().zip(ends).for_each(|(to, ends)| *to = ends);
        }
        let Some(run) = run else { return Some(()) };
        let ticks = run.newest.checked_sub(run.oldest)? as usize + 1;
        (ticks <= self.transforms.rows() && places.len() == bodies.len() * ticks).then_some(())?;
        for (index, tick) in (run.oldest..=run.newest).enumerate() {
            self.transforms.begin_tick(tick);
            for slot in 0..bodies.len() {
                let Some(SavedPlace { at, rotation, holds }) = places[slot * ticks + index] else { continue };
                let rotation = rotation.map_or(Some(Quat::IDENTITY), |turn| usable_turn(Quat::from_array(turn)))?;
                self.transforms.place(slot, at, rotation, holds);
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use throng_pack::{pack_body, unpack_body};

    use super::*;
    use crate::{
        history::{Body, HistorySettings},
        person,
        pose_sampler::PoseSampler,
        rig::Rig,
        view_time::ViewTime,
    };

    fn history(slots: u32) -> History {
        let rigs = vec![Arc::new(Rig::upright(0.4, 1.8).unwrap()), Arc::new(person::rig())];
        History::new(&HistorySettings::new(128, slots), rigs).unwrap()
    }

    /// Bodies that come, go, jump, turn and play.
    fn tick(history: &mut History, tick: u32) {
        if tick == 40 {
            history.insert(2, 0);
        }
        history.begin_tick(tick);
        for slot in (0..4).filter(|slot| !(tick + slot).is_multiple_of(7)) {
            let at = Vec3::new(tick as f32 * 0.1, 0.0, slot as f32 * 10.0);
            let playing = Playing::one(0, tick as f32 / 128.0);
            let body = Body { jumped: tick.is_multiple_of(11), ..Body::standing(at, tick as f32 * 0.3, playing) };
            history.place(slot, &body);
        }
        history.end_tick();
    }

    /// Where a body was and how it was turned, and the ends of its limbs.
    type Stood = (Option<(Vec3, Quat)>, Vec<Ends>);

    /// Where everybody was and how they stood at any moment, to the bit.
    fn all(history: &History) -> Vec<Stood> {
        let Some((oldest, newest)) = history.ticks() else { return Vec::new() };
        let moments = (oldest..=newest).flat_map(|tick| [0, 100, 255].map(|part| ViewTime::new(tick, part)));
        let (mut sampler, mut limbs) = (PoseSampler::default(), Vec::new());
        let mut of = |at, slot| {
            history.limbs_at(slot, at, &mut sampler, &mut limbs);
            (history.transform_at(slot, at), limbs.clone())
        };
        moments.flat_map(|at| (0..5).map(move |slot| (at, slot))).map(|(at, slot)| of(at, slot)).collect()
    }

    #[test]
    fn a_history_that_was_saved_goes_on_to_the_bit() {
        for ticks in [0, 1, 13, 100] {
            let (mut saved, mut loaded) = (history(5), history(1));
            for (slot, rig) in [(0, 1), (1, 0), (3, 1)] {
                assert!(saved.insert(slot, rig));
            }
            (0..ticks).for_each(|number| tick(&mut saved, number));
            let mut bytes = Vec::new();
            pack_body(&saved.save(), &mut bytes).unwrap();
            assert!(loaded.restore(&unpack_body(&bytes).unwrap()));
            assert_eq!((loaded.save(), all(&loaded)), (saved.save(), all(&saved)));
            for number in ticks..ticks + 60 {
                tick(&mut saved, number);
                tick(&mut loaded, number);
                assert_eq!(all(&loaded), all(&saved), "{ticks} ticks, and on to {number}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_leaves_no_past() {
        let mut saved = history(5);
        saved.insert(0, 1);
        (0..50).for_each(|number| tick(&mut saved, number));
        let one_rig = vec![Arc::new(Rig::upright(0.4, 1.8).unwrap())];
        let mut other = History::new(&HistorySettings::new(128, 5), one_rig).unwrap();
        other.insert(1, 0);
        tick(&mut other, 3);
        assert!(!other.restore(&saved.save()));
        assert_eq!(other.ticks(), None);
        let mut shorter = History::new(
            &HistorySettings { back: throng_platform::time::Nanos::ZERO, ..HistorySettings::new(128, 5) },
            vec![Arc::new(Rig::upright(0.4, 1.8).unwrap()), Arc::new(person::rig())],
        )
        .unwrap();
        assert!(!shorter.restore(&saved.save()));
    }
}
