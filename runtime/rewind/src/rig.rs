//! Rig: what of one kind of body can be hit: limbs, which are capsules, on bones or on none.
//!
//! A rig without bones stands as it was made: a crate, a drone, an NPC that nobody aims at the head of. With bones, its
//! limbs follow the clips that its body plays ([`Playing`]). Both are hit through the same columns.
//!
//! Made once for each kind of body and shared by all worlds. Never changes.

use std::sync::Arc;

use glam::{Quat, Vec3};

use crate::{
    clip::Clip,
    skeleton::{Skeleton, usable_place},
};

/// Most limbs of a body.
pub const LIMBS_MAX: usize = 64;

/// Clips that a body plays at once: one movement, one that fades, one for what the arms do.
pub const LAYERS_MAX: usize = 3;

/// Both ends of a limb, as seen from the body or from a bone (m).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ends {
    pub from: Vec3,
    pub to: Vec3,
}

impl Ends {
    /// Between two poses of the same limb; `fraction` is 0 to 1. At 0 it is this one, to the bit.
    #[must_use]
    pub fn towards(self, other: Self, fraction: f32) -> Self {
        let between = |from: Vec3, to: Vec3| from + (to - from) * fraction;
        Self { from: between(self.from, other.from), to: between(self.to, other.to) }
    }
}

/// A limb of a body without bones, or as it is fixed to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limb {
    pub ends: Ends,
    /// In metres, above 0.
    pub radius_m: f32,
}

impl Limb {
    pub const fn new(from: Vec3, to: Vec3, radius_m: f32) -> Self {
        Self { ends: Ends { from, to }, radius_m }
    }
}

/// What a body plays: layers that are mixed by their weights. Weights need not sum to 1; a layer without a weight above
/// 0, or with a clip that the rig does not have, counts for nothing. Without any the body rests.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Playing {
    pub layers: [Layer; LAYERS_MAX],
}

impl Playing {
    /// One clip alone.
    pub fn one(clip: u16, at_s: f32) -> Self {
        Self { layers: [Layer { clip, at_s, weight: 1.0 }, Layer::default(), Layer::default()] }
    }

    /// One clip on its way to another: 0 is the first, 1 the second.
    pub fn fade(from: (u16, f32), to: (u16, f32), fraction: f32) -> Self {
        let layer = |(clip, at_s), weight| Layer { clip, at_s, weight };
        Self { layers: [layer(from, 1.0 - fraction), layer(to, fraction), Layer::default()] }
    }
}

/// A clip that a body is in.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Layer {
    /// Its place in the rig.
    pub clip: u16,
    /// Since its beginning (s).
    pub at_s: f32,
    /// How much of the pose it is, against the other layers.
    pub weight: f32,
}

/// Bones, what they do, and which limbs are on them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bones {
    pub skeleton: Arc<Skeleton>,
    pub clips: Vec<Arc<Clip>>,
    /// The bone of each limb.
    pub of_limbs: Vec<u16>,
    /// Each limb as seen from its bone.
    pub ends: Vec<Ends>,
}

/// What can be hit of a kind of body.
#[derive(Debug, Clone, PartialEq)]
pub struct Rig {
    radius_m: Vec<f32>,
    /// The limbs of a body without bones; none with bones.
    still: Vec<Ends>,
    bones: Option<Bones>,
    /// No point of any limb is ever farther from the body's place (m).
    reach_m: f32,
}

/// What makes no rig. `limb` and `clip` count in the lists that were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RigError {
    #[error("a body has 1 to {LIMBS_MAX} limbs, not {count}")]
    Count { count: usize },
    #[error("limb {limb} is not usable: an end that is not finite, or a radius that is not above 0")]
    NotUsable { limb: usize },
    #[error("limb {limb} is on `{bone}`, which the skeleton does not have")]
    NoSuchBone { limb: usize, bone: String },
    #[error("clip {clip} is of another skeleton")]
    OtherSkeleton { clip: usize },
}

impl Rig {
    /// A body without bones.
    pub fn still(limbs: &[Limb]) -> Result<Self, RigError> {
        check_limbs(limbs.iter())?;
        let reach_m = limbs.iter().map(farthest_m).fold(0.0, f32::max);
        let radius_m = limbs.iter().map(|limb| limb.radius_m).collect();
        Ok(Self { radius_m, still: limbs.iter().map(|limb| limb.ends).collect(), bones: None, reach_m })
    }

    /// An upright capsule that stands on its place, as the columns of `throng_query::casts` have them.
    pub fn upright(radius_m: f32, height_m: f32) -> Result<Self, RigError> {
        let top_m = (height_m - radius_m).max(radius_m);
        Self::still(&[Limb::new(Vec3::Y * radius_m, Vec3::Y * top_m, radius_m)])
    }

    /// A body with bones, with limbs on them by name; [`Layer::clip`] is a place among `clips`.
    pub fn with_bones(
        skeleton: Arc<Skeleton>,
        clips: Vec<Arc<Clip>>,
        limbs: &[(&str, Limb)],
    ) -> Result<Self, RigError> {
        check_limbs(limbs.iter().map(|(_, limb)| limb))?;
        if let Some(clip) = clips.iter().position(|clip| clip.bones() != skeleton.len()) {
            return Err(RigError::OtherSkeleton { clip });
        }
        let place = |(limb, (bone, _)): (usize, &(&str, Limb))| {
            skeleton.find(bone).ok_or_else(|| RigError::NoSuchBone { limb, bone: (*bone).to_owned() })
        };
        let of_limbs = limbs.iter().enumerate().map(place).collect::<Result<Vec<u16>, RigError>>()?;
        let reaches_m = reaches_m(&skeleton, &clips);
        let far = |(bone, (_, limb)): (&u16, &(&str, Limb))| reaches_m[usize::from(*bone)] + farthest_m(limb);
        let reach_m = of_limbs.iter().zip(limbs).map(far).fold(0.0, f32::max);
        let radius_m = limbs.iter().map(|(_, limb)| limb.radius_m).collect();
        let ends = limbs.iter().map(|(_, limb)| limb.ends).collect();
        Ok(Self { radius_m, still: Vec::new(), bones: Some(Bones { skeleton, clips, of_limbs, ends }), reach_m })
    }

    pub fn limbs(&self) -> usize {
        self.radius_m.len()
    }

    pub fn has_bones(&self) -> bool {
        self.bones.is_some()
    }

    /// The place of the clip with this name, for [`Layer::clip`].
    pub fn find_clip(&self, name: &str) -> Option<u16> {
        let clips = &self.bones.as_ref()?.clips;
        clips.iter().position(|clip| clip.name() == name).map(|index| index as u16)
    }

    /// No point of any limb is ever farther from the body's place than this (m), whatever it plays.
    pub fn reach_m(&self) -> f32 {
        self.reach_m
    }

    /// How thick each limb is (m).
    pub fn radii_m(&self) -> &[f32] {
        &self.radius_m
    }

    pub(crate) fn still_ends(&self) -> &[Ends] {
        &self.still
    }

    pub(crate) fn bones(&self) -> Option<&Bones> {
        self.bones.as_ref()
    }
}

fn check_limbs<'a>(limbs: impl ExactSizeIterator<Item = &'a Limb>) -> Result<(), RigError> {
    let count = limbs.len();
    if count == 0 || count > LIMBS_MAX {
        return Err(RigError::Count { count });
    }
    let usable = |limb: &Limb| {
        let Ends { from, to } = limb.ends;
        let thick = limb.radius_m > 0.0 && usable_place(Vec3::splat(limb.radius_m));
        usable_place(from) && usable_place(to) && thick
    };
    for (limb, one) in limbs.enumerate() {
        if !usable(one) {
            return Err(RigError::NotUsable { limb });
        }
    }
    Ok(())
}

fn farthest_m(limb: &Limb) -> f32 {
    limb.ends.from.length().max(limb.ends.to.length()) + limb.radius_m
}

/// How far from the body's place each bone can come: its whole chain stretched out. However clips are mixed, a chain is
/// no longer than with the longest of each bone.
fn reaches_m(skeleton: &Skeleton, clips: &[Arc<Clip>]) -> Vec<f32> {
    let mut reaches_m: Vec<f32> = Vec::with_capacity(skeleton.len());
    for (index, bone) in skeleton.bones().iter().enumerate() {
        let own_m = clips.iter().map(|clip| clip.farthest_m(index)).fold(bone.place.length(), f32::max);
        let parent_m = bone.parent.map_or(0.0, |parent| reaches_m[usize::from(parent)]);
        reaches_m.push(parent_m + own_m);
    }
    reaches_m
}

/// A limb where its body is.
#[inline]
pub(crate) fn in_world(ends: Ends, at: Vec3, rotation: Quat) -> Ends {
    Ends { from: at + rotation * ends.from, to: at + rotation * ends.to }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_body_is_refused_by_limb() {
        let good = Limb::new(Vec3::ZERO, Vec3::Y, 0.1);
        assert_eq!(Rig::still(&[]), Err(RigError::Count { count: 0 }));
        assert_eq!(Rig::still(&[good; 65]), Err(RigError::Count { count: 65 }));
        let thin = Limb { radius_m: 0.0, ..good };
        let endless = Limb { radius_m: f32::INFINITY, ..good };
        let nowhere = Limb::new(Vec3::NAN, Vec3::Y, 0.1);
        for bad in [thin, endless, nowhere] {
            assert_eq!(Rig::still(&[good, bad]), Err(RigError::NotUsable { limb: 1 }));
        }
        assert!(Rig::upright(f32::NAN, 1.8).is_err());
    }

    #[test]
    fn an_upright_body_reaches_to_its_crown() {
        let rig = Rig::upright(0.4, 1.8).unwrap();
        assert!((rig.reach_m() - 1.8).abs() < 1e-6);
        assert_eq!((rig.limbs(), rig.has_bones(), rig.find_clip("run")), (1, false, None));
    }
}
