//! Times: what each subsystem has taken on the calling thread since it was last asked.
//!
//! The recorder's cells of this thread, so only what scopes took: what a replay does between two ticks is in none. Nothing where
//! recording is off.

use throng_platform::ticks::Calibration;
use throng_profiler::{
    site::SUBSYSTEMS_MAX,
    thread::{self, ThreadCells},
};

pub(crate) struct OwnTimes {
    cells: Option<&'static ThreadCells>,
    seen: [u64; SUBSYSTEMS_MAX],
    ns_per_tick: f64,
}

impl OwnTimes {
    pub fn new() -> Self {
        const TICKS: u64 = 1_000_000_000;
        let ns_per_tick = Calibration::get().ns(TICKS) as f64 / TICKS as f64;
        Self { cells: None, seen: [0; SUBSYSTEMS_MAX], ns_per_tick }
    }

    /// Gives number and time (µs) of each subsystem that has taken any since the last call. Time outside of scopes is no
    /// subsystem's.
    pub fn take(&mut self, mut each: impl FnMut(usize, f64)) {
        let Some(cells) = self.cells.or_else(own_cells) else { return };
        self.cells = Some(cells);
        for (number, (seen, now)) in self.seen.iter_mut().zip(cells.subsystem_ticks()).enumerate().skip(1) {
            let taken = now.saturating_sub(std::mem::replace(seen, now));
            if taken > 0 {
                each(number, taken as f64 * self.ns_per_tick / 1e3);
            }
        }
    }
}

/// None before the thread's first scope.
fn own_cells() -> Option<&'static ThreadCells> {
    let own = thread::current_index()?;
    thread::all().into_iter().find(|cells| cells.index() == own)
}
