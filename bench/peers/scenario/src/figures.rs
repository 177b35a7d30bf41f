//! Figures: processor time, memory and order statistics.

use std::time::Duration;

use nix::time::ClockId;

/// Processor time of this process, all threads. (ns)
pub fn cpu_ns() -> u64 {
    let now = ClockId::CLOCK_PROCESS_CPUTIME_ID.now().map(Duration::from).unwrap_or_default();
    now.as_nanos() as u64
}

/// Most memory that this process ever had. (MB)
pub(crate) fn memory_peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0.0);
    kib * 1024.0 / 1e6
}

/// The value below which a share of all lies; the upper of two neighbours.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}
