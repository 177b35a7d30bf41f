//! Tick trace: when each tick started and finished, and where, for tests and tools that look at the order of things.
//!
//! Off unless asked for. While on, one record per tick is kept, up to a maximum; beyond it new ones are dropped and
//! counted.

use throng_platform::time::Nanos;

use throng_world::ids::WorldId;

/// Ten minutes of 1,000 worlds at 20 Hz would be 12 million; a trace is for seconds. 40 bytes each.
const RECORDS_MAX: usize = 1 << 20;

/// One tick of one world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickRecord {
    /// The frame in which the tick came home.
    pub frame: u64,
    pub world: WorldId,
    pub worker: usize,
    pub started: Nanos,
    pub finished: Nanos,
    /// What the tick was expected to cost when it was put into the list.
    pub estimate: Nanos,
}

#[derive(Default)]
pub(crate) struct TickTrace {
    is_on: bool,
    records: Vec<TickRecord>,
    dropped: u64,
}

impl TickTrace {
    pub fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    pub fn record(&mut self, record: TickRecord) {
        if !self.is_on {
            return;
        }
        if self.records.len() == RECORDS_MAX {
            self.dropped += 1;
            return;
        }
        self.records.push(record);
    }

    pub fn take(&mut self) -> (Vec<TickRecord>, u64) {
        (std::mem::take(&mut self.records), std::mem::take(&mut self.dropped))
    }
}
