//! Level geometry: the solid, unmoving part of a level, built once and shared by all worlds.
//!
//! Two kinds of solids live in one tree of bounding boxes (parry's `Bvh`): axis-aligned boxes, which most walls and
//! floors of a blocked-out level are, and loose triangles for everything else. A box stays one leaf instead of
//! becoming twelve triangles: the tree is a twelfth as large and a leaf's own bounds already answer the question.
//!
//! Boxes are solid and half open: a ray that starts inside one hits it at distance 0, one that starts on a face and
//! leaves does not. Triangles have two sides and no inside.
//!
//! Read-only after [`LevelGeometry::new`], so any thread may ask at any time. Cost: about 100 bytes a solid; a cast
//! visits about 2 log2(solids) nodes of 32 bytes. [`casts`](crate::casts) has the questions.

use glam::Vec3;
use parry3d::bounding_volume::Aabb as TreeAabb;
use parry3d::partitioning::{Bvh, BvhBuildStrategy, BvhNode, TraversalAction};

/// A box along the axes `(m)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aabb {
    pub min: Vec3,
    pub max: Vec3,
}

impl Aabb {
    pub fn new(min: Vec3, max: Vec3) -> Self {
        Self { min, max }
    }

    pub fn contains(&self, point: Vec3) -> bool {
        point.cmpge(self.min).all() && point.cmple(self.max).all()
    }

    pub fn size_m(&self) -> Vec3 {
        self.max - self.min
    }

    pub fn center(&self) -> Vec3 {
        (self.min + self.max) * 0.5
    }
}

/// What makes a level's solids unusable. `index` counts in the slice that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    #[error("the level has neither boxes nor triangles")]
    Empty,
    #[error("box {index} has a coordinate that is not finite")]
    BoxNotFinite { index: usize },
    #[error("box {index} has no volume: every `min` must be below its `max`")]
    BoxWithoutVolume { index: usize },
    #[error("triangle {index} has a coordinate that is not finite")]
    TriangleNotFinite { index: usize },
    #[error("{count} solids, at most {SOLIDS_MAX} fit")]
    TooMany { count: usize },
}

/// Solids of one level: at about 100 bytes each this is 1.7 GB, more than any level should ask for.
pub const SOLIDS_MAX: usize = 1 << 24;

/// The solids of a level and the tree over them.
#[derive(Clone)]
pub struct LevelGeometry {
    /// Leaves `0..boxes.len()`.
    boxes: Vec<Aabb>,
    /// Leaves `boxes.len()..`.
    triangles: Vec<[Vec3; 3]>,
    tree: Bvh,
    bounds: Aabb,
}

impl LevelGeometry {
    /// Builds the tree over both kinds of solids. Triangles without area are left out: nothing can hit them.
    pub fn new(boxes: &[Aabb], triangles: &[[Vec3; 3]]) -> Result<Self, GeometryError> {
        for (index, solid) in boxes.iter().enumerate() {
            if !(solid.min.is_finite() && solid.max.is_finite()) {
                return Err(GeometryError::BoxNotFinite { index });
            }
            if !solid.min.cmplt(solid.max).all() {
                return Err(GeometryError::BoxWithoutVolume { index });
            }
        }
        if let Some(index) = triangles.iter().position(|corners| !corners.iter().all(|c| c.is_finite())) {
            return Err(GeometryError::TriangleNotFinite { index });
        }
        let triangles: Vec<[Vec3; 3]> = triangles.iter().copied().filter(has_area).collect();
        let count = boxes.len() + triangles.len();
        if count == 0 {
            return Err(GeometryError::Empty);
        }
        if count > SOLIDS_MAX {
            return Err(GeometryError::TooMany { count });
        }

        let leaves: Vec<TreeAabb> = boxes
            .iter()
            .map(|solid| TreeAabb::new(solid.min, solid.max))
            .chain(triangles.iter().map(|[a, b, c]| TreeAabb::new(a.min(*b).min(*c), a.max(*b).max(*c))))
            .collect();
        let bounds = leaves.iter().skip(1).fold(Aabb::new(leaves[0].mins, leaves[0].maxs), |bounds, leaf| {
            Aabb::new(bounds.min.min(leaf.mins), bounds.max.max(leaf.maxs))
        });
        // Ploc builds slower than the default and answers faster; a level is built once and asked millions of times.
        let tree = Bvh::from_leaves(BvhBuildStrategy::Ploc, &leaves);
        Ok(Self { boxes: boxes.to_vec(), triangles, tree, bounds })
    }

    pub fn from_boxes(boxes: &[Aabb]) -> Result<Self, GeometryError> {
        Self::new(boxes, &[])
    }

    pub fn from_triangles(triangles: &[[Vec3; 3]]) -> Result<Self, GeometryError> {
        Self::new(&[], triangles)
    }

    /// The smallest box around all solids.
    pub fn bounds(&self) -> Aabb {
        self.bounds
    }

    pub fn boxes(&self) -> &[Aabb] {
        &self.boxes
    }

    /// The loose triangles, without those that had no area.
    pub fn triangles(&self) -> &[[Vec3; 3]] {
        &self.triangles
    }

    /// Heap memory held, tree included.
    pub fn heap_bytes(&self) -> usize {
        self.tree.heap_memory_size()
            + self.boxes.capacity() * size_of::<Aabb>()
            + self.triangles.capacity() * size_of::<[Vec3; 3]>()
    }

    /// The first solid along `line`, as its number and the fraction of the line at which it is met.
    pub(crate) fn first_hit(&self, line: &Line) -> Option<(u32, f32)> {
        self.tree.find_best(
            1.0,
            |node: &BvhNode, _best| line.enters(node.mins(), node.maxs()).unwrap_or(f32::MAX),
            |solid, best| self.hit(solid, line).filter(|at| *at < best),
        )
    }

    /// Whether any solid lies along `line` before its end. Stops at the first one found, whichever that is.
    pub(crate) fn any_hit(&self, line: &Line) -> bool {
        let mut blocked = false;
        self.tree.traverse(|node| {
            if line.enters(node.mins(), node.maxs()).is_none() {
                return TraversalAction::Prune;
            }
            let Some(solid) = node.leaf_data() else {
                return TraversalAction::Continue;
            };
            blocked = self.hit(solid, line).is_some();
            if blocked { TraversalAction::EarlyExit } else { TraversalAction::Prune }
        });
        blocked
    }

    /// Calls `each` with the number of each solid whose bounds have a place in common with a box, in no certain order:
    /// boxes as in [`boxes`](Self::boxes), then triangles.
    pub fn each_overlapping(&self, part: &Aabb, mut each: impl FnMut(u32)) {
        self.tree.traverse(|node| {
            if node.mins().cmpgt(part.max).any() || node.maxs().cmplt(part.min).any() {
                return TraversalAction::Prune;
            }
            if let Some(solid) = node.leaf_data() {
                each(solid);
            }
            TraversalAction::Continue
        });
    }

    /// Outward direction of the face of `solid` that `line` meets first; a triangle's faces the line.
    pub(crate) fn normal(&self, solid: u32, line: &Line) -> Vec3 {
        let solid = solid as usize;
        if let Some(bounds) = self.boxes.get(solid) {
            return line.face_of_box(bounds);
        }
        let [a, b, c] = self.triangles[solid - self.boxes.len()];
        let normal = (b - a).cross(c - a).normalize_or(Vec3::Y);
        if normal.dot(line.delta) > 0.0 { -normal } else { normal }
    }

    /// A solid without its outermost `margin_m`; `None` if it is too thin for that.
    pub(crate) fn shrunk(&self, solid: u32, margin_m: f32) -> Option<Solid> {
        let solid = solid as usize;
        if let Some(bounds) = self.boxes.get(solid) {
            let inner = Aabb::new(bounds.min + margin_m, bounds.max - margin_m);
            return inner.min.cmplt(inner.max).all().then_some(Solid::Box(inner));
        }
        let [a, b, c] = *self.triangles.get(solid - self.boxes.len())?;
        let across = (b - a).cross(c - a);
        // Twice the area over the way around is how far the middle is from the sides.
        let inner_m = across.length() / (a.distance(b) + b.distance(c) + c.distance(a));
        let (share, centre) = (1.0 - margin_m / inner_m, (a + b + c) / 3.0);
        let corners = [a, b, c].map(|corner| centre + (corner - centre) * share);
        (share > 0.0).then(|| Solid::Triangle { corners, normal: across.normalize_or(Vec3::Y), margin_m })
    }

    fn hit(&self, solid: u32, line: &Line) -> Option<f32> {
        let solid = solid as usize;
        match self.boxes.get(solid) {
            Some(bounds) => line.hits_box(bounds),
            None => line.hits_triangle(&self.triangles[solid - self.boxes.len()]),
        }
    }
}

/// A solid by itself, for questions about that one.
pub(crate) enum Solid {
    Box(Aabb),
    Triangle { corners: [Vec3; 3], normal: Vec3, margin_m: f32 },
}

impl Solid {
    /// Whether a line meets it; a triangle only if it ends well before and behind it.
    pub(crate) fn meets(&self, line: &Line) -> bool {
        match self {
            Solid::Box(bounds) => line.hits_box(bounds).is_some(),
            Solid::Triangle { corners, normal, margin_m } => {
                let begin_m = normal.dot(line.origin - corners[0]);
                let end_m = normal.dot(line.origin + line.delta - corners[0]);
                let is_across = begin_m.abs() > *margin_m && end_m.abs() > *margin_m && begin_m * end_m < 0.0;
                is_across && line.hits_triangle(corners).is_some()
            }
        }
    }
}

fn has_area([a, b, c]: &[Vec3; 3]) -> bool {
    (*b - *a).cross(*c - *a).length_squared() > 0.0
}

/// A straight line from `origin` to `origin + delta`; places on it are fractions of `delta`.
pub(crate) struct Line {
    pub origin: Vec3,
    pub delta: Vec3,
    inverse: Vec3,
}

impl Line {
    /// `None` if a number is not finite or too large for distances along the line to be.
    pub fn new(origin: Vec3, delta: Vec3) -> Option<Self> {
        if !origin.is_finite() || !delta.length_squared().is_finite() {
            return None;
        }
        // A component of exactly 0 would make 0 x infinity = NaN for a line that runs in the plane of a face.
        let divisor = |d: f32| {
            if d.abs() < 1e-18 { 1e-18_f32.copysign(d) } else { d }
        };
        let inverse = Vec3::new(divisor(delta.x), divisor(delta.y), divisor(delta.z)).recip();
        Some(Self { origin, delta, inverse })
    }

    /// Fractions at which the line is first and last between all three pairs of faces.
    fn span(&self, min: Vec3, max: Vec3) -> (f32, f32) {
        let one = (min - self.origin) * self.inverse;
        let other = (max - self.origin) * self.inverse;
        (one.min(other).max_element(), one.max(other).min_element())
    }

    /// Where the line enters a tree node, if it touches it at all.
    fn enters(&self, min: Vec3, max: Vec3) -> Option<f32> {
        let (enter, leave) = self.span(min, max);
        (enter <= leave && leave >= 0.0 && enter < 1.0).then_some(enter)
    }

    fn hits_box(&self, solid: &Aabb) -> Option<f32> {
        let (enter, leave) = self.span(solid.min, solid.max);
        (enter <= leave && leave > 0.0 && enter < 1.0).then_some(enter.max(0.0))
    }

    fn face_of_box(&self, solid: &Aabb) -> Vec3 {
        let one = (solid.min - self.origin) * self.inverse;
        let other = (solid.max - self.origin) * self.inverse;
        let enter = one.min(other);
        if enter.max_element() < 0.0 {
            // The line starts inside: no face was crossed, so the answer is "back where you came from".
            return -self.delta.normalize_or(Vec3::Y);
        }
        let axis = if enter.x >= enter.y && enter.x >= enter.z {
            Vec3::X
        } else if enter.y >= enter.z {
            Vec3::Y
        } else {
            Vec3::Z
        };
        if axis.dot(self.delta) > 0.0 { -axis } else { axis }
    }

    /// Möller and Trumbore's test, from either side.
    fn hits_triangle(&self, [a, b, c]: &[Vec3; 3]) -> Option<f32> {
        let (ab, ac) = (*b - *a, *c - *a);
        let across = self.delta.cross(ac);
        let determinant = ab.dot(across);
        if determinant == 0.0 {
            return None; // the line runs in the triangle's plane
        }
        let inverse = determinant.recip();
        let from_a = self.origin - *a;
        let u = from_a.dot(across) * inverse;
        if !(0.0..=1.0).contains(&u) {
            return None;
        }
        let around = from_a.cross(ab);
        let v = self.delta.dot(around) * inverse;
        if v < 0.0 || u + v > 1.0 {
            return None;
        }
        let at = ac.dot(around) * inverse;
        (0.0..1.0).contains(&at).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(boxes: &[Aabb], triangles: &[[Vec3; 3]], expect: GeometryError) {
        assert_eq!(LevelGeometry::new(boxes, triangles).err(), Some(expect));
    }

    #[test]
    fn unusable_solids_are_named() {
        let good = Aabb::new(Vec3::ZERO, Vec3::ONE);
        check(&[], &[], GeometryError::Empty);
        check(&[], &[[Vec3::X; 3]], GeometryError::Empty);
        check(&[good, Aabb::new(Vec3::NAN, Vec3::ONE)], &[], GeometryError::BoxNotFinite { index: 1 });
        check(&[Aabb::new(Vec3::ONE, Vec3::ZERO)], &[], GeometryError::BoxWithoutVolume { index: 0 });
        check(&[good], &[[Vec3::X, Vec3::Y, Vec3::INFINITY]], GeometryError::TriangleNotFinite { index: 0 });
    }

    #[test]
    fn bounds_hold_both_kinds() {
        let triangle = [Vec3::new(5.0, 0.0, 0.0), Vec3::new(5.0, 9.0, 0.0), Vec3::new(5.0, 0.0, -3.0)];
        let level = LevelGeometry::new(&[Aabb::new(Vec3::NEG_ONE, Vec3::ONE)], &[triangle]).unwrap();
        assert_eq!(level.bounds(), Aabb::new(Vec3::new(-1.0, -1.0, -3.0), Vec3::new(5.0, 9.0, 1.0)));
        assert!(level.heap_bytes() > 0);
    }

    #[test]
    fn a_line_along_a_face_gives_a_number() {
        let solid = Aabb::new(Vec3::ZERO, Vec3::ONE);
        let along = Line::new(Vec3::new(-1.0, 1.0, 0.5), Vec3::new(4.0, 0.0, 0.0)).unwrap();
        assert_eq!(along.hits_box(&solid), None, "boxes are half open: the upper face is outside");
        let above = Line::new(Vec3::new(0.5, 1.0, 0.5), Vec3::new(0.0, 4.0, 0.0)).unwrap();
        assert_eq!(above.hits_box(&solid), None, "standing on a box and looking up");
        let below = Line::new(Vec3::new(0.5, 1.0, 0.5), Vec3::new(0.0, -4.0, 0.0)).unwrap();
        assert_eq!(below.hits_box(&solid), Some(0.0));
    }
}
