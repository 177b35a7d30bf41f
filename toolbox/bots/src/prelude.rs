//! Prelude: what a game names to write its bots, so that `throng-bots` is all that they need.
//!
//! ```
//! use throng_bots::prelude::*;
//!
//! #[derive(Default)]
//! struct Listener {
//!     most_seen: u64,
//! }
//!
//! impl Behaviour for Listener {
//!     fn think(&mut self, _now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
//!         self.most_seen = self.most_seen.max(client.replicas().len() as u64);
//!     }
//!
//!     fn counters(&self) -> BehaviourCounters {
//!         BehaviourCounters::new().with("most_seen", self.most_seen)
//!     }
//! }
//! ```

/// For a bot's chance.
#[doc(no_inline)]
pub use rand::Rng;
#[doc(no_inline)]
pub use rand_xoshiro::Xoshiro256PlusPlus;
#[doc(no_inline)]
pub use throng_client::prelude::*;
#[doc(no_inline)]
pub use throng_platform::time::Nanos;

#[doc(no_inline)]
pub use crate::{Behaviour, BehaviourCounters, Joins, Scenario};
