//! The promise (R33, R34): whatever ends a server of Precinct, and whatever its players do with their gear meanwhile, no
//! piece is doubled or lost, and who travels is in exactly one world, with everything.

mod belongings;
mod chaos;
mod journeys;
mod restart;
#[path = "../simulated/mod.rs"]
mod simulated;
