//! Daily: a day of load runs, which are every scenario of every game, one after the other, in one folder.
//!
//! ```text
//! reports/daily/
//!   index.html                    all days, newest first
//!   2026-11-26/                   the date in UTC; a second day of that date is 2026-11-26-2
//!     report.json  report.html    what came of each run, and what it leads to
//!     precinct-usual/             a load run's own folder: report, captures, crashes, recordings
//!     precinct-dark-zone/
//! ```
//!
//! The runs are `load`'s; here a finished one becomes a row ([`DayRun`]): its bars, its own history, and links from the worst
//! frame to a capture, from a death to its report, capture and recording, from what the host did to its cause. The page of
//! the day and the index over all days are made of such rows.
//!
//! A row's paths are relative to the day's folder, so that a day can be moved, or be read in an object store. What days are there is
//! read from their `report.json`; folders that are none are named and passed by.
//!
//! On the caller's thread, between runs: reads captures and reports, and allocates.

mod day;
mod folder;
mod host_findings;
mod index;
mod linked_captures;
mod page;
mod row;
#[cfg(test)]
mod tests;

pub use day::DayReport;
pub use folder::{DayFolder, FORMAT, INDEX};
pub use host_findings::HostFinding;
pub use index::{IndexError, write as write_index};
pub use linked_captures::LinkedCapture;
pub use row::{DayDeath, DayRun, DayVerdict, WorstFrame};

pub use crate::left_behind::{CRASHES, RECORDINGS};
