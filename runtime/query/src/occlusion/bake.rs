//! Bake: finds for each pair of a level's cells whether one may be seen from the other.
//!
//! Begins with all cells against all, and cuts: where one solid hides a whole block of cells from another block, all of
//! their pairs are done. Single cells that are left are asked more closely ([`CellSettings::proof_steps`]), with casts
//! between the middles of their parts, each of which either sees, and ends the question, or names the solid to try.
//!
//! It is made for a level's loading, or for a thread of low priority: so it goes by steps, and can be stopped after any of
//! them. Cost: two casts for each pair of blocks, and up to `proof_steps` times that for a pair of single cells that is
//! blocked and not proven; it grows with the square of the cells. The result is the same whatever the steps.

use crate::{
    geometry::LevelGeometry,
    occlusion::{
        cells::{CellError, CellGrid, CellRange, CellSettings, CellVisibility},
        proof::{Middle, is_hidden, is_hidden_by_one},
    },
};

/// A bake under way.
#[derive(Debug)]
pub struct CellBake {
    cells: CellVisibility,
    proof_steps: u32,
    /// Pairs of blocks that were not looked at.
    todo: Vec<(CellRange, CellRange)>,
}

impl CellBake {
    pub fn new(settings: &CellSettings) -> Result<Self, CellError> {
        let grid = CellGrid::new(settings)?;
        let todo = vec![(grid.all(), grid.all())];
        Ok(Self { cells: CellVisibility::all_hidden(grid), proof_steps: settings.proof_steps.max(1), todo })
    }

    /// Looks at so many pairs of blocks, and says whether all is done. All steps are to be given the same level.
    pub fn step(&mut self, level: &LevelGeometry, pairs_max: usize) -> bool {
        for _ in 0..pairs_max {
            let Some((one, other)) = self.todo.pop() else { break };
            self.look_at(level, one, other);
        }
        self.todo.is_empty()
    }

    fn look_at(&mut self, level: &LevelGeometry, one: CellRange, other: CellRange) {
        if one == other {
            if one.is_one_cell() {
                return self.cells.set_visible(one, one);
            }
            let [lower, upper] = one.halves();
            return self.todo.extend([(lower, lower), (lower, upper), (upper, upper)]);
        }
        let (from, to) = (self.cells.grid().bounds_of(&one), self.cells.grid().bounds_of(&other));
        if one.is_one_cell() && other.is_one_cell() {
            if !is_hidden(level, &from, &to, self.proof_steps) {
                self.cells.set_visible(one, other);
            }
        } else if is_hidden_by_one(level, &from, &to) != Middle::Hidden {
            if one.cells() >= other.cells() {
                self.todo.extend(one.halves().map(|half| (half, other)));
            } else {
                self.todo.extend(other.halves().map(|half| (one, half)));
            }
        }
    }

    /// What is known. Pairs that were not looked at count as visible.
    pub fn finish(mut self) -> CellVisibility {
        for (one, other) in self.todo.drain(..) {
            self.cells.set_visible(one, other);
        }
        self.cells
    }
}

impl CellVisibility {
    /// All of it at once.
    pub fn bake(level: &LevelGeometry, settings: &CellSettings) -> Result<Self, CellError> {
        let mut bake = CellBake::new(settings)?;
        while !bake.step(level, usize::MAX) {}
        Ok(bake.finish())
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec3;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::{casts::lines_of_sight, geometry::Aabb};

    const SIDE_M: f32 = 24.0;

    /// Walls across a square, some high, some to look over, and a few slabs that stand askew as triangles.
    fn level(rng: &mut impl Rng, walls: usize) -> LevelGeometry {
        let boxes: Vec<Aabb> = (0..walls)
            .map(|_| {
                let min = Vec3::new(rng.random_range(0.0..SIDE_M), -0.5, rng.random_range(0.0..SIDE_M));
                let (long, thick) = (rng.random_range(1.0..12.0), rng.random_range(0.003..1.0));
                let (x, z) = if rng.random() { (long, thick) } else { (thick, long) };
                Aabb::new(min, min + Vec3::new(x, rng.random_range(1.0..4.0), z))
            })
            .collect();
        let triangles: Vec<[Vec3; 3]> = (0..walls / 3).map(|_| [(); 3].map(|()| corner(rng))).collect();
        LevelGeometry::new(&boxes, &triangles).unwrap()
    }

    fn corner(rng: &mut impl Rng) -> Vec3 {
        Vec3::new(rng.random_range(0.0..SIDE_M), rng.random_range(-3.0..6.0), rng.random_range(0.0..SIDE_M))
    }

    fn settings() -> CellSettings {
        let bounds = Aabb::new(Vec3::new(0.0, 0.1, 0.0), Vec3::new(SIDE_M, 2.1, SIDE_M));
        CellSettings { proof_steps: 40, ..CellSettings::within(bounds) }
    }

    fn point(rng: &mut impl Rng) -> Vec3 {
        Vec3::new(rng.random_range(0.0..SIDE_M), rng.random_range(0.1..2.1), rng.random_range(0.0..SIDE_M))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// Promise: nothing is hidden that a cast sees, wherever in its cell it begins and ends.
        #[test]
        fn what_a_cast_sees_is_never_hidden(seed in any::<u64>(), walls in 3_usize..40) {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let level = level(&mut rng, walls);
            let cells = CellVisibility::bake(&level, &settings()).unwrap();
            let pairs: Vec<(Vec3, Vec3)> = (0..4_000).map(|_| (point(&mut rng), point(&mut rng))).collect();
            let mut seen = Vec::new();
            lines_of_sight(&level, &pairs, &mut seen);
            for ((from, to), seen) in pairs.iter().zip(&seen) {
                let may_see = cells.may_see(&Aabb::new(*from, *from), &Aabb::new(*to, *to));
                prop_assert!(may_see || !seen, "from {from} one sees {to}");
            }
        }
    }

    /// Two rooms with a wall between them, which one door leads through.
    fn rooms() -> LevelGeometry {
        let wall = |min_z: f32, max_z: f32| Aabb::new(Vec3::new(11.8, 0.0, min_z), Vec3::new(12.2, 3.0, max_z));
        LevelGeometry::from_boxes(&[wall(-1.0, 4.0), wall(6.0, 25.0)]).unwrap()
    }

    #[test]
    fn rooms_see_each_other_through_their_door_alone() {
        let cells = CellVisibility::bake(&rooms(), &settings()).unwrap();
        assert_eq!(cells.cells(), 36);
        let may_see = |from: [f32; 2], to: [f32; 2]| {
            let [from, to] = [from, to].map(|[x, z]| Vec3::new(x, 1.0, z)).map(|point| Aabb::new(point, point));
            cells.may_see(&from, &to)
        };
        assert!(may_see([2.0, 5.0], [22.0, 5.0]) && may_see([2.0, 2.0], [2.0, 22.0]));
        assert!(may_see([9.0, 2.0], [22.0, 22.0]) && !may_see([2.0, 22.0], [22.0, 22.0]));
        assert!(cells.visible_share() < 0.95, "{}", cells.visible_share());
    }

    /// Promise: a bake can stop after any step, and what it has not looked at counts as visible.
    #[test]
    fn a_bake_in_steps_is_the_same_and_one_that_stops_hides_less() {
        let (level, settings) = (rooms(), settings());
        let whole = CellVisibility::bake(&level, &settings).unwrap();
        let mut bake = CellBake::new(&settings).unwrap();
        let mut steps = 0;
        while !bake.step(&level, 7) {
            steps += 1;
        }
        assert!(steps > 10);
        assert_eq!(bake.finish(), whole);

        let mut bake = CellBake::new(&settings).unwrap();
        assert!(!bake.step(&level, 100));
        let part = bake.finish();
        let is_visible_in_part =
            |cell: u32| part.row(cell).iter().zip(whole.row(cell)).all(|(part, whole)| part & whole == *whole);
        assert!((0..whole.cells()).all(is_visible_in_part) && part.visible_share() > whole.visible_share());
    }
}
