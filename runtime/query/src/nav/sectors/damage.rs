//! Damage: what a world has changed of its level.
//!
//! A short list of its own, in the order in which it happened, and no copy of the level. A sector's version is how many
//! entries of the list concern it: so two runs agree on it, and a sector without any is the shared one.

use glam::Vec3;
use throng_pack::Pack;

use super::level::{SectorId, SectorLevel};
use crate::geometry::{Aabb, LevelGeometry};

/// Changes that one world may make. What goes beyond is refused; see [`WorldSectors`](super::WorldSectors).
pub const DAMAGE_MAX: usize = 4_096;

/// One change of a level.
#[derive(Clone, Copy, Debug, PartialEq, Pack)]
#[pack(name = "throng.nav_damage")]
pub enum Damage {
    /// A box of the level is no more: its number in [`LevelGeometry::boxes`].
    Removed { solid: u32 },
    /// A box has come to lie there (m).
    Added {
        #[pack(via = [f32; 3])]
        min: Vec3,
        #[pack(via = [f32; 3])]
        max: Vec3,
    },
}

impl Damage {
    /// The part of the level that it changes; none if there is no such box.
    pub(super) fn bounds(&self, level: &SectorLevel) -> Option<Aabb> {
        match *self {
            Damage::Removed { solid } => level.geometry().boxes().get(solid as usize).copied(),
            Damage::Added { min, max } => Some(Aabb::new(min, max)),
        }
    }

    pub(super) fn concerns(&self, level: &SectorLevel, id: SectorId) -> bool {
        self.bounds(level).is_some_and(|changed| overlap(&changed, &level.baked_box(id)))
    }
}

/// Whether two boxes have a place in common, seen from above.
pub(super) fn overlap(one: &Aabb, other: &Aabb) -> bool {
    one.min.x < other.max.x && other.min.x < one.max.x && one.min.z < other.max.z && other.min.z < one.max.z
}

/// The solids in a sector's box after damage, cut off at its sides; none if nothing is there.
pub(super) fn solids_of(level: &SectorLevel, id: SectorId, damage: &[Damage]) -> Option<LevelGeometry> {
    let around = level.baked_box(id);
    let (mut boxes, mut triangles) = (Vec::new(), Vec::new());
    let geometry = level.geometry();
    let mut solids = Vec::new();
    geometry.each_overlapping(&around, |solid| solids.push(solid));
    solids.sort_unstable(); // the tree's order is nobody's affair
    for solid in solids {
        match geometry.boxes().get(solid as usize) {
            Some(_) if damage.contains(&Damage::Removed { solid }) => {}
            Some(whole) => boxes.extend(cut(whole, &around)),
            None => triangles.push(geometry.triangles()[solid as usize - geometry.boxes().len()]),
        }
    }
    for change in damage {
        if let Damage::Added { min, max } = *change {
            boxes.extend(cut(&Aabb::new(min, max), &around));
        }
    }
    LevelGeometry::new(&boxes, &triangles).ok()
}

/// The part of a box over a sector. Floors of kilometres would lose cells to rounding.
fn cut(whole: &Aabb, around: &Aabb) -> Option<Aabb> {
    let (mut min, mut max) = (whole.min.max(around.min), whole.max.min(around.max));
    (min.y, max.y) = (whole.min.y, whole.max.y);
    min.cmplt(max).all().then(|| Aabb::new(min, max))
}
