//! The machine that a run was on, in the words of a load run's report: a figure without it cannot be compared.

use serde_json::{Value, json};

/// Facts about this host; empty where unknown.
pub fn here() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse::<u64>();
    json!({
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().map_or(0, |count| count.get()),
        "memory_mb": memory_kib.unwrap_or(0) / 1024,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> String {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let value = pairs.find(|(key, _)| key.trim() == name);
    value.map_or(String::new(), |(_, value)| value.trim().to_owned())
}
