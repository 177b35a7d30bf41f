//! Prelude: what the server's side of a game names, so that `throng` is its one dependency.
//!
//! ```
//! use throng::prelude::*;
//!
//! #[derive(Component, Clone, Replicate)]
//! struct Purse {
//!     #[replicate(min = -1000, max = 9000)]
//!     coins: i16,
//!     friends: ArrayVec<EntityLink, 4>,
//! }
//!
//! #[derive(Resource, Default)]
//! struct Lost(u32);
//!
//! fn lose_a_coin(mut purses: Query<&mut Purse>, mut lost: ResMut<Lost>, mut rng: ResMut<WorldRng>) {
//!     for mut purse in &mut purses {
//!         if rng.0.random_bool(0.01) {
//!             purse.coins -= 1;
//!             lost.0 += 1;
//!             count!("coins.lost");
//!         }
//!     }
//! }
//! ```
//!
//! Bevy's own prelude is in it, and so is `bevy_ecs` itself, by name: Bevy's derives write `bevy_ecs::..`, which is found
//! where this prelude is imported. So a module with `#[derive(Component)]` needs `use throng::prelude::*`, or
//! `use throng::bevy_ecs`. A game that has `bevy_ecs` in its Cargo.toml as well may import both preludes: they have no
//! name for two things. Throng's own derives find their way by the Cargo.toml.

pub use crate::long_tasks::{drop_later, drop_later_sized};
#[doc(no_inline)]
pub use bevy_ecs::{self, prelude::*};
/// For [`WorldRng`].
#[doc(no_inline)]
pub use rand::Rng;
#[doc(no_inline)]
pub use throng_analytics::analytics;
pub use throng_metrics::{count, gauge, sample};
#[doc(no_inline)]
pub use throng_pack::{HasSchema, Pack};
#[doc(no_inline)]
pub use throng_profiler::scoped;
#[doc(no_inline)]
pub use throng_replication::{
    ArrayVec, EntityLink, List, NetId, Replicate, ReplicatedEvent, Schema, SchemaBuilder, StateHash, StateHasher, Team,
    Text, VisibilityFiltered, Weight,
    ecs::{Placed, Replicated},
};
#[doc(no_inline)]
pub use throng_scheduler::{Every, Rate, Rated};
#[doc(no_inline)]
pub use throng_world::prelude::*;
