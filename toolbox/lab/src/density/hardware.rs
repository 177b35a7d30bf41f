//! What the processor counts while a window lasts, over all threads of all instances.

use throng_platform::hardware::{HardwareCounters, HardwareCounts, HardwareError};

/// Counters of every thread that there is at the begin, and of those that these start.
pub(crate) struct HardwareWatch {
    counters: Vec<HardwareCounters>,
}

impl HardwareWatch {
    pub fn begin(processes: &[u32]) -> Result<Self, HardwareError> {
        let mut counters = Vec::new();
        for thread in processes.iter().flat_map(|&process| threads_of(process)) {
            match HardwareCounters::open(thread) {
                Ok(opened) => counters.push(opened),
                // It has ended since it was seen.
                Err(HardwareError::NoThread { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { counters })
    }

    pub fn end(self) -> HardwareCounts {
        let read = self.counters.into_iter().filter_map(|mut counters| counters.read().ok());
        read.fold(HardwareCounts::default(), |all, one| HardwareCounts {
            instructions: all.instructions + one.instructions,
            cycles: all.cycles + one.cycles,
            cache_misses: all.cache_misses + one.cache_misses,
        })
    }
}

fn threads_of(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
