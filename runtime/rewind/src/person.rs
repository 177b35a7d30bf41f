//! Person: a made-up human body of 24 bones that stands, walks, runs and crouches, with 18 limbs.
//!
//! For games that have no artist yet, for tests and for benches: what sampling costs and how far interpolated poses are
//! off depends on how a body moves, and these move as people do. Strides are those of a grown man: at 1.5 m/s two steps
//! in 1.1 s, at 6 m/s two in 0.7 s, with legs that bend and arms that swing against them.
//!
//! [`model`] makes it as an artist's program would: keys of 60 a second, which [`Model::write`] puts into a file.

use std::{f32::consts::TAU, sync::Arc};

use glam::{Quat, Vec3};

use crate::{
    clip::{Clip, ClipError, KeyedClip, Keys, Track},
    gltf::Model,
    rig::{Limb, Rig, RigError},
    skeleton::{Bone, Skeleton},
};

/// Keys of a clip in a second.
const KEYS_PER_S: f32 = 60.0;

/// Name, parent's name, and place as seen from it at rest (m): upright, arms down, looking along z.
const BONES: [(&str, &str, [f32; 3]); 24] = [
    ("hips", "", [0.0, 0.95, 0.0]),
    ("spine", "hips", [0.0, 0.12, 0.0]),
    ("chest", "spine", [0.0, 0.14, 0.0]),
    ("upper_chest", "chest", [0.0, 0.14, 0.0]),
    ("neck", "upper_chest", [0.0, 0.14, 0.0]),
    ("head", "neck", [0.0, 0.10, 0.01]),
    ("shoulder_l", "upper_chest", [0.06, 0.10, 0.0]),
    ("upper_arm_l", "shoulder_l", [0.13, 0.0, 0.0]),
    ("lower_arm_l", "upper_arm_l", [0.0, -0.28, 0.0]),
    ("hand_l", "lower_arm_l", [0.0, -0.26, 0.0]),
    ("fingers_l", "hand_l", [0.0, -0.09, 0.0]),
    ("shoulder_r", "upper_chest", [-0.06, 0.10, 0.0]),
    ("upper_arm_r", "shoulder_r", [-0.13, 0.0, 0.0]),
    ("lower_arm_r", "upper_arm_r", [0.0, -0.28, 0.0]),
    ("hand_r", "lower_arm_r", [0.0, -0.26, 0.0]),
    ("fingers_r", "hand_r", [0.0, -0.09, 0.0]),
    ("upper_leg_l", "hips", [0.10, -0.04, 0.0]),
    ("lower_leg_l", "upper_leg_l", [0.0, -0.43, 0.0]),
    ("foot_l", "lower_leg_l", [0.0, -0.42, 0.0]),
    ("toes_l", "foot_l", [0.0, -0.04, 0.13]),
    ("upper_leg_r", "hips", [-0.10, -0.04, 0.0]),
    ("lower_leg_r", "upper_leg_r", [0.0, -0.43, 0.0]),
    ("foot_r", "lower_leg_r", [0.0, -0.42, 0.0]),
    ("toes_r", "foot_r", [0.0, -0.04, 0.13]),
];

/// Bone, both ends as seen from it, radius (m). The head comes first: who asks for a head shot asks for limb 0.
const LIMBS: [(&str, [f32; 3], [f32; 3], f32); 18] = [
    ("head", [0.0, 0.05, 0.02], [0.0, 0.11, 0.02], 0.11),
    ("neck", [0.0, 0.0, 0.0], [0.0, 0.08, 0.01], 0.06),
    ("upper_chest", [-0.08, 0.05, 0.0], [0.08, 0.05, 0.0], 0.13),
    ("chest", [-0.07, 0.05, 0.0], [0.07, 0.05, 0.0], 0.13),
    ("spine", [-0.06, 0.05, 0.0], [0.06, 0.05, 0.0], 0.12),
    ("hips", [-0.07, 0.0, 0.0], [0.07, 0.0, 0.0], 0.13),
    ("upper_arm_l", [0.0, 0.0, 0.0], [0.0, -0.28, 0.0], 0.06),
    ("lower_arm_l", [0.0, 0.0, 0.0], [0.0, -0.26, 0.0], 0.05),
    ("hand_l", [0.0, 0.0, 0.0], [0.0, -0.12, 0.0], 0.045),
    ("upper_arm_r", [0.0, 0.0, 0.0], [0.0, -0.28, 0.0], 0.06),
    ("lower_arm_r", [0.0, 0.0, 0.0], [0.0, -0.26, 0.0], 0.05),
    ("hand_r", [0.0, 0.0, 0.0], [0.0, -0.12, 0.0], 0.045),
    ("upper_leg_l", [0.0, 0.0, 0.0], [0.0, -0.43, 0.0], 0.09),
    ("lower_leg_l", [0.0, 0.0, 0.0], [0.0, -0.42, 0.0], 0.07),
    ("foot_l", [0.0, -0.02, -0.04], [0.0, -0.02, 0.16], 0.05),
    ("upper_leg_r", [0.0, 0.0, 0.0], [0.0, -0.43, 0.0], 0.09),
    ("lower_leg_r", [0.0, 0.0, 0.0], [0.0, -0.42, 0.0], 0.07),
    ("foot_r", [0.0, -0.02, -0.04], [0.0, -0.02, 0.16], 0.05),
];

/// The limb that is the head.
pub const HEAD: u16 = 0;

/// How a body moves in one loop: angles in radians.
struct Gait {
    name: &'static str,
    /// Two steps (s).
    period_s: f32,
    /// How far legs and arms swing to each side.
    legs: f32,
    arms: f32,
    /// How far knees bend at most while a leg swings, and always.
    knees: f32,
    crouch: f32,
    /// How elbows are bent.
    elbows: f32,
    /// How the trunk leans ahead, and turns with each step.
    lean: f32,
    twist: f32,
    /// How the hips go up and down with each step (m).
    bob_m: f32,
}

const GAITS: [Gait; 4] = [
    Gait {
        name: "idle",
        period_s: 3.0,
        legs: 0.0,
        arms: 0.03,
        knees: 0.0,
        crouch: 0.05,
        elbows: 0.5,
        lean: 0.03,
        twist: 0.02,
        bob_m: 0.006,
    },
    Gait {
        name: "walk",
        period_s: 1.1,
        legs: 0.42,
        arms: 0.35,
        knees: 0.75,
        crouch: 0.08,
        elbows: 0.4,
        lean: 0.05,
        twist: 0.10,
        bob_m: 0.025,
    },
    Gait {
        name: "run",
        period_s: 0.7,
        legs: 0.75,
        arms: 0.70,
        knees: 1.5,
        crouch: 0.15,
        elbows: 1.4,
        lean: 0.18,
        twist: 0.18,
        bob_m: 0.05,
    },
    Gait {
        name: "crouch",
        period_s: 1.3,
        legs: 0.30,
        arms: 0.10,
        knees: 0.45,
        crouch: 0.95,
        elbows: 1.2,
        lean: 0.45,
        twist: 0.06,
        bob_m: 0.015,
    },
];

impl Gait {
    /// How a bone is turned at a phase of 0 to 1.
    fn turn(&self, bone: &str, phase: f32) -> Quat {
        // The left side is half a period ahead.
        let side = if bone.ends_with("_l") { 0.5 } else { 0.0 };
        let swing = (TAU * (phase + side)).sin();
        // A knee bends while its leg comes forward, which is when the swing grows.
        let lifted = (0.5 + 0.5 * (TAU * (phase + side)).cos()).powi(2);
        let x = Quat::from_rotation_x;
        let part = bone.strip_suffix("_l").or(bone.strip_suffix("_r")).unwrap_or(bone);
        match part {
            // About x, what hangs down goes back when it is turned by more than 0.
            "upper_leg" => x(-self.legs * swing - self.crouch),
            "lower_leg" => x(self.knees * lifted + 2.0 * self.crouch),
            "foot" => x(-self.crouch + 0.2 * self.legs * swing),
            "toes" => x(-0.3 * self.knees * lifted),
            "upper_arm" => x(self.arms * swing - 0.3 * self.elbows),
            "lower_arm" => x(-self.elbows - 0.3 * self.arms * swing.max(0.0)),
            "shoulder" => Quat::from_rotation_y(0.2 * self.twist * swing),
            "spine" | "chest" | "upper_chest" => {
                Quat::from_rotation_y(self.twist * (TAU * phase).sin() / 3.0) * x(self.lean / 3.0)
            }
            // The eyes stay on what is ahead.
            "neck" | "head" => x(-self.lean / 2.0) * Quat::from_rotation_y(-self.twist * (TAU * phase).sin() / 2.0),
            _ => Quat::IDENTITY,
        }
    }

    /// Where the hips are: lower with bent knees, and up and down twice in a period.
    fn hips(&self, phase: f32) -> Vec3 {
        let bent_m = 0.85 * (1.0 - self.crouch.cos());
        Vec3::new(0.0, 0.95 - bent_m + self.bob_m * (2.0 * TAU * phase).cos(), 0.0)
    }

    fn keyed(&self, skeleton: &Skeleton) -> KeyedClip {
        let steps = (self.period_s * KEYS_PER_S).round() as usize;
        let phases = || (0..=steps).map(|step| step as f32 / steps as f32);
        let times_s: Vec<f32> = phases().map(|phase| phase * self.period_s).collect();
        let hips = Track {
            bone: 0,
            times_s: times_s.clone(),
            keys: Keys::Places(phases().map(|phase| self.hips(phase)).collect()),
        };
        let turns = skeleton.bones().iter().enumerate().map(|(index, bone)| Track {
            bone: index as u16,
            times_s: times_s.clone(),
            keys: Keys::Turns(phases().map(|phase| self.turn(&bone.name, phase)).collect()),
        });
        let tracks = std::iter::once(hips).chain(turns).collect();
        KeyedClip { name: self.name.to_owned(), is_loop: true, tracks }
    }
}

/// The body and its clips: `idle`, `walk`, `run` and `crouch`, all of them loops.
///
/// # Panics
/// Never: what it is made of is written above, and a test makes it.
pub fn model() -> Model {
    let parent = |name: &str| BONES.iter().position(|(bone, ..)| *bone == name).map(|index| index as u16);
    let bone = |(name, of, place): &(&str, &str, [f32; 3])| Bone {
        name: (*name).to_owned(),
        parent: parent(of),
        place: Vec3::from_array(*place),
        turn: Quat::IDENTITY,
    };
    let skeleton = Skeleton::new(BONES.iter().map(bone).collect()).expect("bones in order");
    let clips = GAITS.iter().map(|gait| gait.keyed(&skeleton)).collect();
    Model { skeleton: Arc::new(skeleton), clips }
}

/// Why a person cannot be made of another model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersonError {
    #[error(transparent)]
    Clip(#[from] ClipError),
    #[error(transparent)]
    Rig(#[from] RigError),
}

/// The rig of a model that has these bones, with a person's limbs on them; clips are in the model's order.
pub fn rig_of(model: &Model) -> Result<Rig, PersonError> {
    let clips = model.clips.iter().map(|keyed| Clip::new(&model.skeleton, keyed).map(Arc::new));
    let clips = clips.collect::<Result<Vec<_>, ClipError>>()?;
    let limb = |(bone, from, to, radius_m): &(&'static str, [f32; 3], [f32; 3], f32)| {
        (*bone, Limb::new(Vec3::from_array(*from), Vec3::from_array(*to), *radius_m))
    };
    let limbs: Vec<(&str, Limb)> = LIMBS.iter().map(limb).collect();
    Ok(Rig::with_bones(model.skeleton.clone(), clips, &limbs)?)
}

/// The rig of [`model`].
///
/// # Panics
/// Never, as [`model`].
pub fn rig() -> Rig {
    rig_of(&model()).expect("a person")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pose_sampler::PoseSampler,
        rig::{Ends, Playing},
    };

    fn limbs(rig: &Rig, playing: Playing) -> Vec<Ends> {
        let mut limbs = vec![Ends::default(); rig.limbs()];
        PoseSampler::default().sample(rig, &playing, &mut limbs);
        limbs
    }

    fn limb(name: &str) -> usize {
        LIMBS.iter().position(|(bone, ..)| *bone == name).unwrap()
    }

    #[test]
    fn a_person_stands_on_the_ground_and_is_as_tall_as_one() {
        let rig = rig();
        let at_rest = limbs(&rig, Playing::default());
        let crown_m = at_rest[usize::from(HEAD)].to.y + 0.11;
        assert!((1.6..1.95).contains(&crown_m), "{crown_m} m");
        let sole_m = at_rest[limb("foot_l")].from.y - 0.05;
        assert!((-0.05..0.05).contains(&sole_m), "{sole_m} m");
    }

    /// Everything stays within what the broad phase looks at, feet near the ground and the head above them; and each clip
    /// but the first moves its hands and feet.
    #[test]
    fn clips_move_as_people_do() {
        let rig = rig();
        for (number, gait) in GAITS.iter().enumerate() {
            assert_eq!(rig.find_clip(gait.name), Some(number as u16));
            let (mut least, mut most) = (Vec3::MAX, Vec3::MIN);
            for step in 0..100 {
                let pose = limbs(&rig, Playing::one(number as u16, gait.period_s * step as f32 / 100.0));
                for (ends, radius_m) in pose.iter().zip(LIMBS.map(|(.., radius_m)| radius_m)) {
                    assert!(ends.from.length().max(ends.to.length()) + radius_m <= rig.reach_m());
                }
                let feet_m = pose[limb("foot_l")].from.y.min(pose[limb("foot_r")].from.y);
                assert!((-0.2..0.35).contains(&feet_m), "{}: the lower foot is at {feet_m} m", gait.name);
                assert!(pose[usize::from(HEAD)].from.y > 0.9, "{}", gait.name);
                let foot = pose[limb("foot_l")].from;
                (least, most) = (least.min(foot), most.max(foot));
            }
            let stride_m = (most - least).z;
            assert!(number == 0 || stride_m > 0.2, "{}: a foot moves by {stride_m} m", gait.name);
        }
        let run = rig.find_clip("run").unwrap();
        let [begin, end] = [0.0, GAITS[usize::from(run)].period_s].map(|at_s| limbs(&rig, Playing::one(run, at_s)));
        assert!(begin.iter().zip(&end).all(|(one, other)| one.to.distance(other.to) < 0.01), "it is a loop");
    }
}
