//! What a signal means, in plain words.
//!
//! `SIGSEGV` may be a stack that ran full, a null pointer or a stray one, and `SIGABRT` may be out of memory or a panic
//! too many. Where the fault happened and which functions were running tell them apart.

use std::fs;
use std::path::PathBuf;

use crate::maps::{GUARD_BYTES_MAX, Maps};
use crate::report::{CrashReport, Frame, SignalName};

pub(crate) fn signal_name(number: i32) -> SignalName {
    let name = nix::sys::signal::Signal::try_from(number).map_or("an unknown signal", |signal| signal.as_str());
    SignalName { number, name: name.to_owned() }
}

/// What a signal means when nothing more is known.
pub(crate) fn plain_meaning(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => "the program ended itself: abort",
        libc::SIGSEGV => "use of memory that is not there or not allowed",
        libc::SIGBUS => "use of a mapped file beyond its end, or of memory that is broken",
        libc::SIGILL => "an instruction that the processor does not know: as a rule an abort",
        libc::SIGFPE => "a division that cannot be done",
        libc::SIGTRAP => "a breakpoint",
        libc::SIGKILL => "killed from outside",
        _ => "ended by a signal",
    }
}

/// Where and how a hardware fault happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub signal: i32,
    /// `None` when somebody sent the signal.
    pub address: Option<u64>,
    pub stack_pointer: u64,
}

/// The meaning of a fault, from where it lies.
pub(crate) fn fault_meaning(fault: Fault, maps: &Maps) -> String {
    let plain = plain_meaning(fault.signal);
    let Some(address) = fault.address.filter(|_| fault.signal == libc::SIGSEGV) else { return plain.to_owned() };
    if is_stack_overflow(address, fault.stack_pointer, maps) {
        return "stack overflow".to_owned();
    }
    match maps.at(address) {
        Some(mapping) if mapping.is_readable => {
            format!("write to memory that is read-only, or data run as code (address {address:#x})")
        }
        Some(_) => format!("use of memory that is not allowed (address {address:#x})"),
        None if address < NULL_END => format!("use of a null pointer (address {address:#x})"),
        None => format!("use of memory that is not there (address {address:#x})"),
    }
}

/// Fields of a structure at address 0 lie below this.
const NULL_END: u64 = 64 * 1024;

/// A frame that does not fit is noticed at its first touch, which may be this far from the stack pointer.
const FRAME_BYTES_MAX: u64 = 64 * 1024;

/// The touched address lies where the stack would grow to, and nothing is there.
fn is_stack_overflow(address: u64, stack_pointer: u64, maps: &Maps) -> bool {
    let is_guard = maps.at(address).is_none_or(|mapping| !mapping.is_readable);
    let Some(stack) = maps.stack_at(stack_pointer) else { return false };
    is_guard
        && address.abs_diff(stack_pointer) <= FRAME_BYTES_MAX
        && address < stack.begin
        && stack.begin - address <= GUARD_BYTES_MAX
}

/// The meaning of an abort, from the functions that were running; `None` if they say nothing.
pub(crate) fn abort_meaning(frames: &[Frame]) -> Option<&'static str> {
    const TOLD_BY: [(&str, &str); 6] = [
        ("handle_alloc_error", "out of memory: an allocation failed"),
        ("rust_oom", "out of memory: an allocation failed"),
        ("panic_in_cleanup", "a panic while another panic was being cleaned up (double panic)"),
        ("panic_cannot_unwind", "a panic in a function that no panic may leave"),
        ("panic_nounwind", "a check that ends the program failed"),
        ("__stack_chk_fail", "a stack was overwritten"),
    ];
    let functions = || frames.iter().filter_map(|frame| frame.function.as_deref());
    TOLD_BY.iter().find(|(name, _)| functions().any(|function| function.contains(name))).map(|(_, meaning)| *meaning)
}

/// An abort means what the process said before; else, with a panic just before it and no other meaning, it is the end of
/// that panic.
pub(crate) fn tell_of_own_end(report: &mut CrashReport) {
    if let Some(words) = report.last_words.as_ref().filter(|_| report.is_abort()) {
        report.meaning = words.why.clone();
    } else if report.panic.is_some() && report.is_abort() && report.meaning == plain_meaning(libc::SIGABRT) {
        report.meaning = "a panic that nobody caught".into();
    }
}

/// How often the kernel has killed for want of memory in the control group of this process; `None` where it does not
/// tell.
pub(crate) fn oom_kills() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    oom_files(&groups).iter().find_map(|file| oom_kills_in(&fs::read_to_string(file).ok()?))
}

/// Lines are `0::/a/b` (version 2) and `9:memory:/a/b` (version 1).
fn oom_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.split(',').any(|name| name == "memory") {
            files.insert(0, PathBuf::from(format!("/sys/fs/cgroup/memory{path}/memory.oom_control")));
        } else if controllers.is_empty() {
            files.push(PathBuf::from(format!("/sys/fs/cgroup{path}/memory.events")));
        }
    }
    files
}

fn oom_kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::EXAMPLE;

    #[test]
    fn a_fault_is_told_by_its_place() {
        let check = |address, stack_pointer, expected: &str| {
            let fault = Fault { signal: libc::SIGSEGV, address: Some(address), stack_pointer };
            let meaning = fault_meaning(fault, &Maps::parse(EXAMPLE));
            assert!(meaning.starts_with(expected), "{address:#x}, {stack_pointer:#x}: {meaning}");
        };
        check(0x10ff8, 0x11000, "stack overflow");
        check(0x10ff8, 0x10ff8, "stack overflow");
        check(0x10800, 0x12000, "stack overflow");
        // The main thread: nothing at all is mapped below its stack.
        check(0x7eff0, 0x7f010, "stack overflow");
        check(0x10ff8, 0x30000, "use of memory that is not allowed");
        check(0x8, 0x12000, "use of a null pointer");
        check(0x2000, 0x12000, "write to memory that is read-only");
        check(0x6000_0000, 0x12000, "use of memory that is not there");
        let sent = Fault { signal: libc::SIGSEGV, address: None, stack_pointer: 0x12000 };
        assert_eq!(fault_meaning(sent, &Maps::parse(EXAMPLE)), plain_meaning(libc::SIGSEGV));
    }

    #[test]
    fn an_abort_is_told_by_its_functions() {
        let frames = |names: &[&str]| -> Vec<Frame> {
            names.iter().map(|&name| Frame { function: Some(name.into()), ..Default::default() }).collect()
        };
        let meaning =
            abort_meaning(&frames(&["abort", "std::alloc::rust_oom", "alloc::alloc::handle_alloc_error", "main"]));
        assert!(meaning.unwrap().starts_with("out of memory"));
        let meaning =
            abort_meaning(&frames(&["abort", "core::panicking::panic_nounwind", "core::panicking::panic_in_cleanup"]));
        assert!(meaning.unwrap().contains("double panic"));
        assert_eq!(abort_meaning(&frames(&["abort", "main"])), None);
    }

    #[test]
    fn kills_for_want_of_memory_are_counted_by_either_kind_of_control_group() {
        let paths = |groups| oom_files(groups).iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(paths("0::/a/b\n"), ["/sys/fs/cgroup/a/b/memory.events"]);
        assert_eq!(
            paths("9:cpu,memory:/x\n1:name=systemd:/y\n0::/z\nrubbish"),
            ["/sys/fs/cgroup/memory/x/memory.oom_control", "/sys/fs/cgroup/z/memory.events"]
        );
        assert_eq!(oom_kills_in("oom 3\noom_kill 12\n"), Some(12));
        assert_eq!(oom_kills_in("oom_kill_disable 0\nunder_oom 0\n"), None);
    }
}
