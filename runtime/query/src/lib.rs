//! Batched questions to a world: casts, lines of sight, nav paths, who is near whom.
//!
//! A level is made once and shared: [`geometry::LevelGeometry`] and [`nav::NavMesh`] never change after loading, so
//! every world of a kind asks the same two objects behind an `Arc`, from any worker thread, without a lock. What a
//! question needs besides them (results, scratch) belongs to the caller and is reused, so a warm caller never
//! allocates.
//!
//! - [`geometry`]: walls, floors and triangles, in one tree of boxes.
//! - [`casts`]: rays, lines of sight and shots at characters, a slice at a time.
//! - [`limbs`]: a ray at one body's capsules of any direction: hitboxes on bones.
//! - [`nav`]: the walkable surface: baking, point location, steps that cannot leave it, paths.
//! - [`occlusion`]: what may be seen from where: baked for cells of a level, and for many viewers every tick.
//! - [`neighbour_lists`]: who is near whom, kept while entities move; for worlds of hundreds and more.
//! - [`near`]: all points within a radius of each of some points, found anew each time; for worlds of dozens.
//!
//! [`testing`] has a level of rooms, bodies that walk in it, and brute force, to hold such answers against.
//!
//! The same inputs give the same outputs, in the same order, on every thread. Numbers that are not finite never
//! enter: each question says by name that it refused them ([`casts::CastCounts::rejected`], [`nav::NavError`],
//! [`nav::WalkOutcome::NotFinite`], [`near::NearCounts::rejected`], [`neighbour_lists::NeighbourCounts::refused`],
//! [`occlusion::FogCounts::rejected`]).
//!
//! ```
//! use glam::Vec3;
//! use throng_query::casts::lines_of_sight;
//! use throng_query::geometry::{Aabb, LevelGeometry};
//!
//! let wall = Aabb::new(Vec3::new(-1.0, 0.0, 4.0), Vec3::new(1.0, 3.0, 5.0));
//! let level = LevelGeometry::from_boxes(&[wall])?;
//! let eye = Vec3::new(0.0, 1.7, 0.0);
//! let mut seen = Vec::new();
//! lines_of_sight(&level, &[(eye, Vec3::new(0.0, 1.7, 9.0)), (eye, Vec3::new(5.0, 1.7, 9.0))], &mut seen);
//! assert_eq!(seen, [false, true]);
//! # Ok::<(), throng_query::geometry::GeometryError>(())
//! ```

pub mod casts;
pub mod geometry;
pub mod limbs;
pub mod nav;
pub mod near;
pub mod neighbour_lists;
pub mod occlusion;
pub mod testing;
