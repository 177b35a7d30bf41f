//! Likeness: how like players bots are, in what they cost a server.
//!
//! A recording holds what people did, or bots. Replayed by the game's own code it says what that cost: casts, paths and whatever
//! else the game counts, the time of each subsystem; beside it stand what players said, how they moved and where they were. All of
//! it for one player and one second of play is a load profile ([`Profile`]), and two are held against each other measure by measure
//! ([`Comparison`]): what differs by more than a tenth is named.
//!
//! ```text
//!  recording of people --+--> outline --> replay, watched --> profile --+
//!  (--players-a)         |    length, ids   gather, times               +--> comparison: rows, places, what is named
//!  recording of bots ----+--> outline --> replay, watched --> profile --+
//! ```
//!
//! Two recordings are replayed in turns of two seconds of play, on one core's worth of threads, so that an hour in which the machine
//! is slower is the same hour for both ([`profile_in_turns`]). What is compared is of this call and this machine alone.
//!
//! The other way round, [`RecordedInputs`] gives what recorded players said to bots that say it again over the real network.
//!
//! What is not in here: what the server sent, since nobody listens in a replay; it follows from who is near whom, what changed
//! and how much was said, which are. Runs on threads of the caller; allocates; nobody waits for it. Cost: that of a replay, and some
//! 20 % of it.

mod clock;
mod comparison;
mod estimate;
mod fit;
mod gather;
mod inputs;
mod lacking;
mod measures;
mod outline;
mod permutation;
mod places;
mod play_inputs;
mod profile;
mod profiling;
mod stretches;
mod times;
mod turns;
mod verdict;
mod who;
mod worlds;

pub use comparison::{Comparison, LIMIT, Row, Side};
pub use fit::Fit;
pub use inputs::{InputsError, RecordedInputs};
pub use lacking::Lacking;
pub use places::{PlaceShare, PlacesRow};
pub use play_inputs::PlaysInputs;
pub use profile::{BINS, Cell, Measure, PlayerProfile, Profile, SPELLS, Sort};
pub use profiling::{Profiled, profile_in_turns, profile_sides};
pub use verdict::Verdict;
pub use who::{UnknownWho, Who};
pub use worlds::Worlds;
