//! Skeleton: the bones of one kind of body, parents before children, and how they rest.
//!
//! A bone is a place and a turn as seen from its parent; a root's parent is the body itself, whose y is up and whose z is
//! ahead. There is no scale: what a hitbox is as wide as is said with the hitbox.
//!
//! Made once and shared. Never changes.

use glam::{Quat, Vec3};

/// Most bones of a skeleton.
pub const BONES_MAX: usize = 256;

/// A bone at rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Bone {
    pub name: String,
    /// Its place among the bones, below this one's.
    pub parent: Option<u16>,
    /// As seen from its parent (m).
    pub place: Vec3,
    pub turn: Quat,
}

/// Bones in an order in which each comes after its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Skeleton {
    bones: Vec<Bone>,
}

/// What makes bones no skeleton. `bone` counts in the list that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SkeletonError {
    #[error("a skeleton has 1 to {BONES_MAX} bones, not {count}")]
    Count { count: usize },
    #[error("bone {bone} comes before its parent")]
    Order { bone: usize },
    #[error("bone {bone} has a place or a turn that is not usable: not finite, or a turn without a length")]
    NotUsable { bone: usize },
}

impl Skeleton {
    /// Takes bones of which each comes after its parent. Turns are made to have a length of 1.
    pub fn new(mut bones: Vec<Bone>) -> Result<Self, SkeletonError> {
        if bones.is_empty() || bones.len() > BONES_MAX {
            return Err(SkeletonError::Count { count: bones.len() });
        }
        for (index, bone) in bones.iter_mut().enumerate() {
            if bone.parent.is_some_and(|parent| usize::from(parent) >= index) {
                return Err(SkeletonError::Order { bone: index });
            }
            let turn = usable_turn(bone.turn).filter(|_| usable_place(bone.place));
            bone.turn = turn.ok_or(SkeletonError::NotUsable { bone: index })?;
        }
        Ok(Self { bones })
    }

    pub fn bones(&self) -> &[Bone] {
        &self.bones
    }

    pub fn len(&self) -> usize {
        self.bones.len()
    }

    /// It never is: for completeness beside `len`.
    pub fn is_empty(&self) -> bool {
        self.bones.is_empty()
    }

    /// The bone of this name; of several, the first.
    pub fn find(&self, name: &str) -> Option<u16> {
        self.bones.iter().position(|bone| bone.name == name).map(|index| index as u16)
    }
}

/// Far more than any body is long (m): sums along a chain of bones stay numbers.
const PLACE_M_MAX: f32 = 1e4;

pub(crate) fn usable_place(place: Vec3) -> bool {
    place.abs().max_element() <= PLACE_M_MAX && place.is_finite()
}

/// The turn with a length of 1, one that has it to the bit; `None` for one that is not finite or has no length.
pub(crate) fn usable_turn(turn: Quat) -> Option<Quat> {
    if turn.is_normalized() {
        return Some(turn);
    }
    let length2 = turn.length_squared();
    (length2.is_finite() && length2 > 1e-12).then(|| turn.normalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bone(parent: Option<u16>) -> Bone {
        Bone { name: "b".into(), parent, place: Vec3::Y, turn: Quat::IDENTITY }
    }

    #[test]
    fn bones_that_are_no_skeleton_are_refused_by_place() {
        assert_eq!(Skeleton::new(vec![]), Err(SkeletonError::Count { count: 0 }));
        assert_eq!(Skeleton::new(vec![bone(None); 257]), Err(SkeletonError::Count { count: 257 }));
        assert_eq!(Skeleton::new(vec![bone(None), bone(Some(1))]), Err(SkeletonError::Order { bone: 1 }));
        for bad in [
            Bone { place: Vec3::NAN, ..bone(None) },
            Bone { place: Vec3::splat(f32::INFINITY), ..bone(None) },
            Bone { turn: Quat::from_xyzw(0.0, 0.0, 0.0, 0.0), ..bone(None) },
            Bone { turn: Quat::from_xyzw(f32::NAN, 0.0, 0.0, 1.0), ..bone(None) },
        ] {
            assert_eq!(Skeleton::new(vec![bone(None), bad]), Err(SkeletonError::NotUsable { bone: 1 }));
        }
        let two = Skeleton::new(vec![bone(None), bone(Some(0))]).unwrap();
        assert_eq!((two.len(), two.find("b"), two.find("c")), (2, Some(0), None));
    }
}
