//! Sectors: a nav mesh of a level of kilometres, of which each world holds what is around its players.
//!
//! The level is cut into squares ([`SectorLevel`]). Each is baked by itself, from the solids in it and in a margin around
//! it, so that what is found at its sides does not depend on which side looks. Sectors are shared by all worlds of the
//! level ([`SectorStore`]) until a world damages one: from then on that world has a copy of its own, baked again without
//! what was blown away and with what fell ([`Damage`]).
//!
//! ```text
//!   +---------+---------+---------+     a side's edges lie on the line exactly: who walks over it is looked up on the
//!   |         |    *    |         |     other side by place and height. Nothing is stored about the join, so either
//!   |    S    |    S    |    S    |     side may be replaced at any time.
//!   |         |  player |         |
//!   +---------+---------+---------+     S  shared, behind an `Arc`
//!   |         |         |         |     D  this world's own: damaged
//!   |    S    |    D    |    -    |     -  on its way: baked by a long task; walks end at its side until then
//!   +---------+---------+---------+
//! ```
//!
//! A world asks for sectors and is told when they are there, by messages ([`WorldSectors`]): it bakes nothing in a tick,
//! waits for nothing, and stays a function of what it was told. The caller has the work done, in order of
//! [`WorldSectors::next_work`], on a thread of low priority, and gives the [`SectorDone`] that it brings back in a later
//! tick. Only a world that was made again after a panic bakes in its ticks: what was on its way to the one before, up to
//! `pending_max` sectors. What a world needs no more it hands out as [`Released`], whose drop takes long and belongs on such a thread, too.
//!
//! - [`level`]: solids, and which square is where.
//! - [`sector`]: one baked square.
//! - [`store`]: the sectors that worlds share, up to a maximum of memory.
//! - [`streaming`]: which sectors a world holds, asks for and gives up.
//! - [`work`]: a sector that is got ready, and one that is given up.
//! - [`saved`]: a world's sectors in a checkpoint.
//! - [`damage`]: what a world has changed of the level.
//! - [`surface`]: from any point to a point; steps over sides.
//! - [`path`]: ways over sides.
//!
//! No clock and no thread in here. Cost: a sector of 64 m in cells of 0.32 m takes some 20 ms to bake and, in a city, 18 KB; a
//! world with one player holds a pointer for each of some 25 of them. A step costs what it costs on a whole mesh, and
//! some 50 ns for each side that it crosses.

pub mod damage;
pub mod level;
pub mod path;
pub mod saved;
pub mod sector;
mod slivers;
pub mod store;
pub mod streaming;
pub mod surface;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod work;

pub use damage::{DAMAGE_MAX, Damage};
pub use level::{SectorId, SectorLevel, SectorLevelError, SectorSettings};
pub use path::SectorSearch;
pub use saved::SavedSectors;
pub use sector::Sector;
pub use store::{SectorStore, StoreCounts, StoreLimits};
pub use streaming::{StreamCounts, StreamSettings, WorldSectors};
pub use surface::{SectorPoint, SectorWalk};
pub use work::{DoneOutcome, Released, SectorDone, SectorWork, WorkKind};
