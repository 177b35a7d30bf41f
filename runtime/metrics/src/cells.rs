//! What one thread counts between two frames.
//!
//! Plain memory that only its thread touches: the cost of counting is an addition. Whoever owns the cells
//! hands them to [`crate::Registry::merge`] once a frame, which empties them.
//!
//! Samples are kept as they are until then, 4 bytes each: a worker records some tens of them per frame,
//! and adding those to a histogram later is far cheaper than merging a histogram of 20 KiB per worker.

use throng_platform::time::Nanos;

use crate::registry::{CounterId, HistogramId, WindowMaxId};

/// Samples that one histogram's cell keeps until the next merge. Beyond it samples are dropped and counted
/// in `metrics.samples_dropped`: it takes a merge that did not happen for hundreds of frames.
pub const SAMPLES_MAX: usize = 65_536;

/// One thread's counts. Made by [`crate::Registry::cells`].
#[derive(Debug, Default)]
pub struct Cells {
    pub(crate) counters: Vec<u64>,
    /// In microseconds; longer than 71 minutes counts as that.
    pub(crate) samples_us: Vec<Vec<u32>>,
    pub(crate) maxima: Vec<u64>,
    pub(crate) samples_dropped: u64,
}

impl Cells {
    /// Adds `count` to a counter.
    pub fn add(&mut self, id: CounterId, count: u64) {
        *cell(&mut self.counters, id.0) += count;
    }

    /// Adds one sample, in microseconds, to a histogram.
    pub fn record(&mut self, id: HistogramId, us: u64) {
        let samples = cell(&mut self.samples_us, id.0);
        if samples.len() < SAMPLES_MAX {
            samples.push(u32::try_from(us).unwrap_or(u32::MAX));
        } else {
            self.samples_dropped += 1;
        }
    }

    /// Adds one sample to a histogram, rounded down to microseconds.
    pub fn record_time(&mut self, id: HistogramId, time: Nanos) {
        self.record(id, time.as_micros());
    }

    /// Raises a window's maximum to `value`, if it is lower.
    pub fn max(&mut self, id: WindowMaxId, value: u64) {
        let max = cell(&mut self.maxima, id.0);
        *max = value.max(*max);
    }
}

/// The cell of a metric; makes room for one that was registered after the cells were made.
fn cell<T: Default>(cells: &mut Vec<T>, index: u16) -> &mut T {
    let index = usize::from(index);
    if index >= cells.len() {
        grow(cells, index + 1);
    }
    &mut cells[index]
}

#[cold]
fn grow<T: Default>(cells: &mut Vec<T>, len: usize) {
    cells.resize_with(len, T::default);
}
