//! The machine that a long bench runs on, in words. Runs of two machines are not to be mixed, so a stopped bench goes on
//! only where it began.
//!
//! The same five facts as `throng_history::Machine::differences`, read here again: that crate needs a C compiler to
//! build, and `cargo xtask setup` has to run without one. A change there has to be made here. One difference is left:
//! cores are those that the standard library counts, there those of `throng_platform::cores`.

use std::fs;

/// This machine. Two that are alike have the same words.
pub(super) fn machine_in_words() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    in_words(cores, &|path| fs::read_to_string(path).unwrap_or_default())
}

/// Of the kernel's release, the first two numbers: what comes behind mends faults.
fn in_words(cores: usize, read: &dyn Fn(&str) -> String) -> String {
    let cpuinfo = read("/proc/cpuinfo");
    let cpu = field(&cpuinfo, "model name").unwrap_or("unknown");
    let virtualisation = virtualisation(&cpuinfo, read);
    let clock = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let kernel = read("/proc/sys/kernel/osrelease");
    let release: Vec<&str> = kernel.trim().splitn(3, '.').take(2).collect();
    let (clock, release) = (clock.trim(), release.join("."));
    format!("{cpu}, {cores} cores, virtualisation {virtualisation}, clock {clock}, kernel {release}")
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// The processor says whether there is a hypervisor; who it is, the files of the firmware do.
fn virtualisation(cpuinfo: &str, read: &dyn Fn(&str) -> String) -> String {
    match field(cpuinfo, "flags") {
        None => "unknown".to_owned(),
        Some(flags) if !flags.split(' ').any(|flag| flag == "hypervisor") => "none".to_owned(),
        Some(_) => {
            let files = ["/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"];
            let names = files.map(|path| read(path).trim().to_owned());
            let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
            if names.is_empty() { "a hypervisor".to_owned() } else { names.join(" ") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_are_alike_have_the_same_words() {
        let cpuinfo = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t: fpu hypervisor\nmodel name\t: AMD EPYC\n";
        let words = |cpuinfo: &str, cores, kernel: &str| {
            let read = |path: &str| {
                let text = match path {
                    "/proc/cpuinfo" => cpuinfo,
                    "/proc/sys/kernel/osrelease" => kernel,
                    "/sys/devices/system/clocksource/clocksource0/current_clocksource" => "kvm-clock\n",
                    "/sys/class/dmi/id/sys_vendor" => "QEMU\n",
                    _ => "",
                };
                text.to_owned()
            };
            in_words(cores, &read)
        };
        let ours = words(cpuinfo, 2, "6.18.3-cloud\n");
        assert_eq!(ours, "AMD EPYC, 2 cores, virtualisation QEMU, clock kvm-clock, kernel 6.18");
        assert_eq!(words(cpuinfo, 2, "6.18.9\n"), ours);
        assert_ne!(words(cpuinfo, 1, "6.18.3\n"), ours);
        assert_ne!(words(&cpuinfo.replace(" hypervisor", ""), 2, "6.18.3\n"), ours);
        let silent = in_words(1, &|_| String::new());
        assert_eq!(silent, "unknown, 1 cores, virtualisation unknown, clock , kernel ");
    }
}
