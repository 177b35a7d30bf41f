//! Occlusion: who may be seen from where, for the fog of war of many viewers at once.
//!
//! Three means, each for what the one before it leaves open:
//!
//! 1. [`CellVisibility`]: baked for a level, a bit for each pair of cells: whether anything of the one can be seen from
//!    anywhere in the other. A look costs some nanoseconds and settles most pairs of a level with rooms.
//! 2. One wall between two regions: if each line from a corner of the one to a corner of the other meets the same solid,
//!    so does every line between them, because what such a solid hides from a point is convex. That holds for as long as
//!    both stay in their regions, so it is asked once in a few ticks.
//! 3. Casts, from the eye and from where it may be within the grace, to the body and to where that may be.
//!
//! The first two never say hidden of what a cast sees. So what [`FogOfWar`] tells is late for nobody: whom a cast sees now is
//! told in the same tick, and whom one will see within the grace is told before.
//!
//! ```
//! use glam::Vec3;
//! use throng_query::geometry::{Aabb, LevelGeometry};
//! use throng_query::occlusion::{Body, CellSettings, CellVisibility, FogOfWar, FogSettings};
//!
//! let wall = Aabb::new(Vec3::new(-9.0, 0.0, 4.5), Vec3::new(9.0, 3.0, 5.5));
//! let level = LevelGeometry::from_boxes(&[wall])?;
//! let bounds = Aabb::new(Vec3::new(-10.0, 0.05, 0.0), Vec3::new(10.0, 2.0, 10.0));
//! let cells = CellVisibility::bake(&level, &CellSettings::within(bounds))?;
//!
//! let settings = FogSettings { ticks_per_s: 128.0, ..FogSettings::default() };
//! let mut fog = FogOfWar::new(settings, 1, 3)?;
//! let body = |life, x, z| Body { life, feet: Vec3::new(x, 0.0, z), ..Body::default() };
//! fog.begin_tick(0, &[body(1, 0.0, 1.0), body(2, 0.0, 9.0), body(3, 5.0, 1.0)]);
//! let mut seen = [0];
//! fog.look(&level, Some(&cells), 0, &[1, 2], &mut seen);
//! assert_eq!(seen, [0b10], "the one behind the wall is not");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bake;
mod cells;
mod fog;
mod lines;
mod proof;

pub use bake::CellBake;
pub use cells::{CELLS_MAX, CellError, CellSettings, CellVisibility};
pub use fog::{FogCounts, FogError, FogOfWar, FogSettings};
pub use lines::Body;
