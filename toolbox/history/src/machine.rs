//! The machine that a run was on: a figure without it cannot be compared.
//!
//! Names do not tell machines apart: two virtual machines of one processor model may be a third apart in speed, by who
//! else has the socket. So beside the names there is a calibration, two loops of some ms ([`Calibration`]).

mod calibration;

use std::path::Path;

use serde::{Deserialize, Serialize};
use throng_platform::cores;

pub use calibration::Calibration;

/// As much apart as this, and they are other machines: noise of a shared host is less in the first. A wait for memory moves with
/// the neighbours and with whether the kernel has a large page left: 124 and 290 ns were read on one host within a minute.
const INTEGER_APART_MAX: f64 = 0.20;
const MEMORY_APART_MAX: f64 = 1.50;

/// Facts about a host; empty or 0 where unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// That the process may use.
    pub cores: usize,
    /// MiB, as the kernel tells it.
    pub memory_mb: u64,
    pub kernel: String,
    /// Of the kernel, such as `tsc` or `kvm-clock`: reading a slow one costs each scope.
    pub clock_source: String,
    /// `none` on bare metal; otherwise what the host calls itself.
    pub virtualisation: String,
    pub calibration: Calibration,
}

impl Machine {
    /// This one. Takes some 40 ms and 64 MB for a moment, on the calling thread.
    pub fn here() -> Self {
        Self { calibration: Calibration::measure(), ..Self::by_name() }
    }

    /// This one without its calibration: some file reads.
    pub fn by_name() -> Self {
        Self::read(&|path| std::fs::read_to_string(Path::new(path)).unwrap_or_default())
    }

    fn read(read: &dyn Fn(&str) -> String) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        Self {
            cpu: field(&cpuinfo, "model name"),
            cores: cores::usable().count,
            memory_mb: memory_mb(&read("/proc/meminfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim().to_owned(),
            virtualisation: virtualisation(&cpuinfo, read),
            calibration: Calibration::default(),
        }
    }

    /// What of the two is so different that their figures say nothing about each other, in words; empty where they can be
    /// compared. What one of them does not say is no difference.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut texts = |name: &str, one: &str, other: &str| {
            if one != other && !one.is_empty() && !other.is_empty() {
                found.push(format!("{name}: {one} and {other}"));
            }
        };
        texts("processor", &self.cpu, &other.cpu);
        texts("virtualisation", &self.virtualisation, &other.virtualisation);
        texts("clock source", &self.clock_source, &other.clock_source);
        texts("kernel", release(&self.kernel), release(&other.kernel));
        if self.cores != other.cores && self.cores != 0 && other.cores != 0 {
            found.push(format!("usable cores: {} and {}", self.cores, other.cores));
        }
        let mut speeds = |name: &str, one: f64, other: f64, apart_max: f64| {
            if one > 0.0 && other > 0.0 && one.max(other) / one.min(other) > 1.0 + apart_max {
                found.push(format!("calibration, {name}: {one:.2} and {other:.2} ns"));
            }
        };
        let (one, other) = (self.calibration, other.calibration);
        speeds("step of integers", one.integer_ns, other.integer_ns, INTEGER_APART_MAX);
        speeds("wait for memory", one.memory_ns, other.memory_ns, MEMORY_APART_MAX);
        found
    }

    /// Whether figures of the two can be compared.
    pub fn is_like(&self, other: &Self) -> bool {
        self.differences(other).is_empty()
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or_unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { text.to_owned() };
        write!(out, "{}, {} cores, {} MiB, ", or_unknown(&self.cpu), self.cores, self.memory_mb)?;
        write!(out, "virtualisation {}, ", or_unknown(&self.virtualisation))?;
        write!(out, "clock {}, kernel {}", or_unknown(&self.clock_source), or_unknown(&self.kernel))?;
        match self.calibration {
            Calibration { integer_ns, memory_ns } if integer_ns > 0.0 => {
                write!(out, "; {integer_ns:.2} ns a step of integers, {memory_ns:.0} ns a wait for memory")
            }
            _ => Ok(()),
        }
    }
}

/// `6.18.3-cloud` is `6.18`: what comes behind mends faults.
fn release(kernel: &str) -> &str {
    let end = kernel.match_indices('.').nth(1).map_or(kernel.len(), |(at, _)| at);
    &kernel[..end]
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

/// The processor says whether there is a hypervisor; who it is, the files of the firmware do.
fn virtualisation(cpuinfo: &str, read: &dyn Fn(&str) -> String) -> String {
    let flags = field(cpuinfo, "flags");
    if flags.is_empty() {
        return String::new();
    }
    if !flags.split(' ').any(|flag| flag == "hypervisor") {
        return "none".to_owned();
    }
    let named = ["/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"];
    let names: Vec<String> =
        named.iter().map(|path| read(path).trim().to_owned()).filter(|name| !name.is_empty()).collect();
    if names.is_empty() { "a hypervisor".to_owned() } else { names.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(path: &str) -> String {
        let text = match path {
            "/proc/cpuinfo" => {
                "processor\t: 0\nmodel name\t: AMD EPYC\nflags : fpu hypervisor\nprocessor : 1\nmodel name : other\n"
            }
            "/proc/meminfo" => "MemTotal:       24576000 kB\nMemFree: 1 kB\n",
            "/proc/sys/kernel/osrelease" => "6.18.3-cloud\n",
            "/sys/class/dmi/id/sys_vendor" => "QEMU\n",
            "/sys/class/dmi/id/product_name" => "Standard PC\n",
            "/sys/devices/system/clocksource/clocksource0/current_clocksource" => "tsc\n",
            _ => "",
        };
        text.to_owned()
    }

    #[test]
    fn files_of_the_system_are_read_by_name() {
        let machine = Machine::read(&files);
        assert_eq!(
            (machine.cpu.as_str(), machine.memory_mb, machine.kernel.as_str()),
            ("AMD EPYC", 24_000, "6.18.3-cloud")
        );
        assert_eq!((machine.clock_source.as_str(), machine.virtualisation.as_str()), ("tsc", "QEMU Standard PC"));
        let bare = Machine::read(&|path| files(path).replace(" hypervisor", ""));
        assert_eq!(bare.virtualisation, "none");
        let silent = Machine::read(&|_| String::new());
        assert_eq!((silent.virtualisation.as_str(), silent.memory_mb), ("", 0));
    }

    #[test]
    fn this_machine_has_cores_a_kernel_and_a_speed() {
        let machine = Machine::here();
        assert!(machine.cores >= 1 && !machine.kernel.is_empty() && machine.memory_mb > 0, "{machine:?}");
        let Calibration { integer_ns, memory_ns } = machine.calibration;
        assert!(integer_ns > 0.0 && memory_ns > integer_ns, "{machine:?}");
    }

    #[test]
    fn machines_are_told_apart_by_names_and_by_speed() {
        let one = Machine { calibration: Calibration { integer_ns: 1.0, memory_ns: 100.0 }, ..Machine::read(&files) };
        let check = |change: fn(&mut Machine), expect: &[&str]| {
            let mut other = one.clone();
            change(&mut other);
            let found = one.differences(&other);
            assert_eq!((found.len(), other.is_like(&one)), (expect.len(), expect.is_empty()), "{found:?}");
            found.iter().zip(expect).for_each(|(found, expect)| assert!(found.contains(expect), "{found} {expect}"));
        };
        check(|_| (), &[]);
        check(|other| other.cpu = "Xeon".into(), &["processor: AMD EPYC and Xeon"]);
        check(|other| other.cores += 1, &["usable cores"]);
        check(|other| other.clock_source = "kvm-clock".into(), &["clock source: tsc and kvm-clock"]);
        check(|other| other.virtualisation = "none".into(), &["virtualisation"]);
        check(|other| other.kernel = "6.18.9".into(), &[]);
        check(|other| other.kernel = "6.19.0".into(), &["kernel: 6.18 and 6.19"]);
        check(|other| other.calibration.integer_ns = 1.3, &["step of integers: 1.00 and 1.30"]);
        check(|other| other.calibration.memory_ns = 235.0, &[]);
        check(|other| other.calibration.memory_ns = 260.0, &["wait for memory"]);
        // Reports of earlier builds say less.
        let says_less = |other: &mut Machine| {
            (other.kernel, other.clock_source, other.virtualisation) = Default::default();
            other.calibration = Calibration::default();
        };
        check(says_less, &[]);
    }
}
