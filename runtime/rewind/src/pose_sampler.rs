//! Pose sampler: how a body stands while it plays its clips, limb by limb.
//!
//! Column-wise: the numbers of all bones go through one loop for each layer (`Clip` has them side by side), are mixed,
//! and turns get their length back in one loop over their four columns. Only then are bones gone through one by one,
//! parents first, for each stands on another.
//!
//! Belongs to one world and is reused: allocates when it meets a larger skeleton than before. Sketch of the cost
//! (`bench/rewind` measures it) for 24 bones and one clip: some 0.3 µs.

use glam::{Quat, Vec3};

use crate::{
    clip::{Clip, NUMBERS_PER_BONE},
    rig::{Bones, Ends, Layer, Playing, Rig},
    skeleton::Skeleton,
};

/// Scratch of sampling.
#[derive(Debug, Default)]
pub struct PoseSampler {
    /// Of all bones, as seen from their parents: columns x, y, z and four of turns.
    mixed: Vec<f32>,
    /// One layer's share.
    layer: Vec<f32>,
    /// Of each bone, as seen from the body.
    places: Vec<Vec3>,
    turns: Vec<Quat>,
}

impl PoseSampler {
    /// Writes the limbs of a body that plays this, as seen from the body; as many as the rig has, or as there is room for.
    pub fn sample(&mut self, rig: &Rig, playing: &Playing, limbs: &mut [Ends]) {
        let Some(bones) = rig.bones() else {
            limbs.iter_mut().zip(rig.still_ends()).for_each(|(limb, still)| *limb = *still);
            return;
        };
        self.mix(bones, playing);
        self.stand(&bones.skeleton);
        for ((limb, bone), ends) in limbs.iter_mut().zip(&bones.of_limbs).zip(&bones.ends) {
            let bone = usize::from(*bone);
            let (place, turn) = (self.places[bone], self.turns[bone]);
            *limb = Ends { from: place + turn * ends.from, to: place + turn * ends.to };
        }
    }

    /// Mixes the layers, as seen from each bone's parent.
    fn mix(&mut self, bones: &Bones, playing: &Playing) {
        let count = bones.skeleton.len();
        self.mixed.resize(count * NUMBERS_PER_BONE, 0.0);
        self.layer.resize(count * NUMBERS_PER_BONE, 0.0);
        let of_layer = |layer: &Layer| {
            let clip = bones.clips.get(usize::from(layer.clip))?;
            (layer.weight > 0.0 && layer.weight.is_finite()).then_some((&**clip, layer.at_s, layer.weight))
        };
        let heaviest = playing.layers.iter().filter_map(of_layer).map(|(.., weight)| weight).fold(0.0, f32::max);
        if heaviest == 0.0 {
            self.rest(&bones.skeleton);
            return;
        }
        // Against the heaviest first: sums of any weights stay numbers.
        let total: f32 = playing.layers.iter().filter_map(of_layer).map(|(.., weight)| weight / heaviest).sum();
        let mut is_first = true;
        for (clip, at_s, weight) in playing.layers.iter().filter_map(of_layer) {
            let weight = weight / heaviest / total;
            if is_first {
                interpolate(clip, at_s, weight, &mut self.mixed);
                is_first = false;
            } else {
                interpolate(clip, at_s, weight, &mut self.layer);
                add(&self.layer, &mut self.mixed, count);
            }
        }
        normalise(&mut self.mixed, count);
    }

    fn rest(&mut self, skeleton: &Skeleton) {
        let count = skeleton.len();
        for (bone, rest) in skeleton.bones().iter().enumerate() {
            let numbers = rest.place.to_array().into_iter().chain(rest.turn.to_array());
            numbers.enumerate().for_each(|(column, number)| self.mixed[column * count + bone] = number);
        }
    }

    /// From parents to children: where each bone is, as seen from the body.
    fn stand(&mut self, skeleton: &Skeleton) {
        self.places.clear();
        self.turns.clear();
        let count = skeleton.len();
        for (bone, rest) in skeleton.bones().iter().enumerate() {
            let number = |column: usize| self.mixed[column * count + bone];
            let place = Vec3::new(number(0), number(1), number(2));
            let turn = Quat::from_xyzw(number(3), number(4), number(5), number(6));
            let (place, turn) = match rest.parent.map(usize::from) {
                Some(parent) => (self.places[parent] + self.turns[parent] * place, self.turns[parent] * turn),
                None => (place, turn),
            };
            self.places.push(place);
            self.turns.push(turn);
        }
    }
}

/// All numbers of a moment of a clip, times the layer's weight.
fn interpolate(clip: &Clip, at_s: f32, weight: f32, out: &mut [f32]) {
    let (one, other, fraction) = clip.around(at_s);
    for ((out, one), other) in out.iter_mut().zip(one).zip(other) {
        *out = (one + (other - one) * fraction) * weight;
    }
}

/// Adds a layer; turns on the side on which the others are.
fn add(layer: &[f32], mixed: &mut [f32], count: usize) {
    let (places, turns) = mixed.split_at_mut(3 * count);
    let (layer_places, layer_turns) = layer.split_at(3 * count);
    places.iter_mut().zip(layer_places).for_each(|(sum, number)| *sum += number);
    for bone in 0..count {
        let dot: f32 = (0..4).map(|axis| turns[axis * count + bone] * layer_turns[axis * count + bone]).sum();
        let side = if dot < 0.0 { -1.0 } else { 1.0 };
        for axis in 0..4 {
            turns[axis * count + bone] += side * layer_turns[axis * count + bone];
        }
    }
}

/// Gives turns a length of 1. Turns that cancelled each other out are none.
fn normalise(mixed: &mut [f32], count: usize) {
    let (x, rest) = mixed[3 * count..].split_at_mut(count);
    let (y, rest) = rest.split_at_mut(count);
    let (z, w) = rest.split_at_mut(count);
    for (((x, y), z), w) in x.iter_mut().zip(y).zip(z).zip(w) {
        let length2 = *x * *x + *y * *y + *z * *z + *w * *w;
        let is_turn = length2 > 1e-12;
        let scale = if is_turn { 1.0 / length2.sqrt() } else { 0.0 };
        (*x, *y, *z) = (*x * scale, *y * scale, *z * scale);
        *w = if is_turn { *w * scale } else { 1.0 };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        clip::{KeyedClip, Keys, Track},
        rig::Limb,
        skeleton::Bone,
    };

    /// An arm of two bones, 1 m each, along x; clip 0 lifts the first by a quarter turn in a second, clip 1 the second.
    fn arm() -> Rig {
        let bone = |name: &str, parent, place| Bone { name: name.into(), parent, place, turn: Quat::IDENTITY };
        let bones = vec![bone("upper", None, Vec3::Y), bone("lower", Some(0), Vec3::X)];
        let skeleton = Arc::new(Skeleton::new(bones).unwrap());
        let lift = |bone| {
            let turns = vec![Quat::IDENTITY, Quat::from_rotation_z(std::f32::consts::FRAC_PI_2)];
            let track = Track { bone, times_s: vec![0.0, 1.0], keys: Keys::Turns(turns) };
            let keyed = KeyedClip { name: format!("lift {bone}"), is_loop: false, tracks: vec![track] };
            Arc::new(Clip::new(&skeleton, &keyed).unwrap())
        };
        let clips = vec![lift(0), lift(1)];
        let limb = Limb::new(Vec3::ZERO, Vec3::X, 0.1);
        Rig::with_bones(skeleton, clips, &[("lower", limb), ("upper", limb)]).unwrap()
    }

    #[track_caller]
    fn check(playing: Playing, lower_to: Vec3, upper_to: Vec3) {
        let mut limbs = [Ends::default(); 2];
        PoseSampler::default().sample(&arm(), &playing, &mut limbs);
        assert!(limbs[0].to.abs_diff_eq(lower_to, 1e-3), "{:?}, not {lower_to}", limbs[0]);
        assert!(limbs[1].to.abs_diff_eq(upper_to, 1e-3), "{:?}, not {upper_to}", limbs[1]);
    }

    #[test]
    fn limbs_follow_their_bones_and_these_their_parents() {
        let (x, y) = (Vec3::X, Vec3::Y);
        check(Playing::default(), y + x * 2.0, y + x);
        check(Playing::one(0, 1.0), y * 3.0, y * 2.0);
        check(Playing::one(1, 1.0), y * 2.0 + x, y + x);
        let half = Vec3::new(0.5_f32.sqrt(), 0.5_f32.sqrt(), 0.0);
        check(Playing::one(0, 0.5), y + half * 2.0, y + half);
        check(Playing::fade((0, 0.0), (0, 1.0), 0.5), y + half * 2.0, y + half);
        assert!((arm().reach_m() - 3.1).abs() < 1e-6);
    }

    #[test]
    fn layers_that_are_none_count_for_nothing() {
        let lifted = Playing::one(0, 1.0);
        for other in [
            Layer { clip: 9, at_s: 0.0, weight: 1.0 },
            Layer { clip: 1, at_s: 1.0, weight: 0.0 },
            Layer { clip: 1, at_s: 1.0, weight: f32::NAN },
            Layer { clip: 1, at_s: 1.0, weight: f32::INFINITY },
        ] {
            let layers = [other, lifted.layers[0], other];
            check(Playing { layers }, Vec3::Y * 3.0, Vec3::Y * 2.0);
            check(Playing { layers: [other; 3] }, Vec3::Y + Vec3::X * 2.0, Vec3::Y + Vec3::X);
        }
        let heavy = Layer { clip: 0, at_s: 1.0, weight: f32::MAX };
        check(Playing { layers: [heavy; 3] }, Vec3::Y * 3.0, Vec3::Y * 2.0);
    }
}
