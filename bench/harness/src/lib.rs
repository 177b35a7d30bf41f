//! Harness: what benches share, so that each of them is what it measures and little else.
//!
//! ```text
//! --small --json          arguments       what every bench is told, and how it prints its figures
//! tick by tick, in parts  fastest_ticks   a run that is repeated, of which the fastest repetition counts
//! the run is kept          kept            where `cargo xtask bench` says so, in the history
//! many figures, one row   quantile        medians and percentiles
//! the same work?          work_hash       one number for all answers
//! ```
//!
//! Knows nothing of what is measured.

mod arguments;
mod fastest_ticks;
mod kept;
mod quantile;
mod work_hash;

pub use arguments::BenchArguments;
pub use fastest_ticks::{FastestTicks, cpu_ns_since};
pub use quantile::quantile;
pub use work_hash::mix;
