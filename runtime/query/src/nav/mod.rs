//! The walkable surface of a level: where a character can stand, step and go.
//!
//! A [`NavMesh`] is baked once from the level's geometry ([`bake()`]) and then only read. It is the surface on which
//! the *middle* of a character may be: the bake keeps it a character's radius away from walls, so a character is a
//! point from then on, and "may it step there" is a walk over a few polygons ([`walk`]) instead of a sweep against
//! solids.
//!
//! ```text
//!      +-------+-----------+      polygons   convex, corners counter-clockwise seen from below (x right, z up)
//!      |   0   |     1     |      edges      one per corner, to the next corner: a neighbour or the border
//!      |       +-----+-----+      NavPoint   a place on one polygon; only the mesh makes them
//!      |       |/////|  2  |      islands    polygons that can be reached from each other
//!      +-------+     +-----+
//! ```
//!
//! - [`mesh`]: the polygons, their edges and islands.
//! - [`locate`]: from any point to the nearest point on the mesh; random points.
//! - [`walk`]: straight and sliding steps that end on the mesh; validates movement.
//! - [`path`]: the way from one point to another, in slices that fit a budget.
//! - [`mod@bake`]: geometry in, mesh out; at start or in a long task.
//! - [`sectors`]: a level of kilometres, baked square by square around players.

pub mod bake;
mod funnel;
pub mod locate;
pub mod mesh;
mod open_list;
pub mod path;
pub mod sectors;
pub mod walk;

pub use bake::{BakeError, BakeSettings, bake};
pub use locate::NavError;
pub use mesh::{NavMesh, NavMeshError, NavPoint, PolygonId};
pub use path::{Path, PathOutcome, PathSearch, SearchState};
pub use walk::{Walk, WalkOutcome};
