//! Instructions of the server's threads, where the processor counts.
//!
//! The calling thread runs the server's frames and the clients: it is to be read before and after a frame. Cost: a system call for each
//! counter and thread.

use throng_platform::hardware::HardwareCounters;
use throng_platform::threads::this_thread_id;
use throng_profiler::thread::{self, ThreadClass};

/// Counters of the calling thread and of those on which worlds tick.
pub(super) struct Instructions {
    counters: Vec<HardwareCounters>,
}

impl Instructions {
    /// Or why there are none.
    pub fn open() -> Result<Self, String> {
        let own = this_thread_id();
        let workers = thread::all()
            .into_iter()
            .filter(|cells| cells.is_alive() && cells.class() == ThreadClass::ShortTask && cells.tid() != own);
        let threads = std::iter::once(own).chain(workers.map(|cells| cells.tid()));
        let counters: Result<Vec<_>, _> = threads.map(HardwareCounters::open).collect();
        Ok(Self { counters: counters.map_err(|error| error.to_string())? })
    }

    /// All of them since they were opened.
    pub fn count(&mut self) -> u64 {
        let counts = self.counters.iter_mut().filter_map(|counters| counters.read().ok());
        counts.map(|counts| counts.instructions).sum()
    }
}
