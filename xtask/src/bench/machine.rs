//! The machine that a bench of many runs is played on, in words: one that was stopped goes on there alone.
//!
//! By what `throng-history` tells machines apart by their names. Its crate is not asked: it stands on C, and `cargo xtask setup` is to
//! run where no compiler of that is.

use std::fs;

/// This one. Two that are alike have the same words.
pub(super) fn here() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    in_words(
        &read("/proc/cpuinfo"),
        cores,
        &read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        &read("/proc/sys/kernel/osrelease"),
    )
}

/// Of the kernel's release, the first two numbers: what comes behind mends faults.
fn in_words(cpuinfo: &str, cores: usize, clock: &str, kernel: &str) -> String {
    let named = cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == "model name");
    let kernel: Vec<&str> = kernel.trim().splitn(3, '.').take(2).collect();
    let cpu = named.map_or("unknown", |(_, name)| name.trim());
    format!("{cpu}, {cores} cores, clock {}, kernel {}", clock.trim(), kernel.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_are_alike_have_the_same_words() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: AMD EPYC\n";
        let ours = in_words(cpuinfo, 2, "kvm-clock\n", "6.18.3-cloud\n");
        assert_eq!(ours, "AMD EPYC, 2 cores, clock kvm-clock, kernel 6.18");
        assert_eq!(in_words(cpuinfo, 2, "kvm-clock\n", "6.18.9\n"), ours);
        assert_ne!(in_words(cpuinfo, 1, "kvm-clock\n", "6.18.3\n"), ours);
        assert_eq!(in_words("", 1, "", ""), "unknown, 1 cores, clock , kernel ");
    }
}
