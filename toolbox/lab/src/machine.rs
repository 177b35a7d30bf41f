//! The machine that a run was on: a figure without it cannot be compared.

use std::path::Path;

use serde::{Deserialize, Serialize};
use throng_platform::cores;

/// Facts about this host; empty where unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    pub cpu: String,
    /// That this process may use.
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name"),
            cores: cores::usable().count,
            memory_mb: memory_mb(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> String {
    let values = text.lines().filter_map(|line| line.split_once(':'));
    let mut values = values.filter(|(key, _)| key.trim() == name);
    values.next().map_or(String::new(), |(_, value)| value.trim().to_owned())
}

fn memory_mb(meminfo: &str) -> u64 {
    let kib = field(meminfo, "MemTotal").trim_end_matches(" kB").parse::<u64>();
    kib.unwrap_or(0) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read_by_name() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nflags : fpu\nprocessor : 1\nmodel name : other\n";
        assert_eq!(field(cpuinfo, "model name"), "AMD EPYC");
        assert_eq!(field(cpuinfo, "stepping"), "");
        assert_eq!(memory_mb("MemTotal:       24576000 kB\nMemFree: 1 kB\n"), 24_000);
        assert_eq!(memory_mb(""), 0);
    }

    #[test]
    fn this_machine_has_cores_and_a_kernel() {
        let machine = Machine::here();
        assert!(machine.cores >= 1 && !machine.kernel.is_empty() && machine.memory_mb > 0, "{machine:?}");
    }
}
