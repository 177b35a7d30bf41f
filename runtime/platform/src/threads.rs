//! Threads with a name, with a low priority where the work can wait, and with short turns where it cannot.
//!
//! The name is what `top -H`, a debugger and a capture show. A low thread gets what the frame's threads
//! leave over, so that writing a save does not make a tick late.

use std::fs;
use std::io;
use std::thread::{Builder, JoinHandle};

/// How urgent a thread's work is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The frame's own threads: as [`shorten_turns`].
    Frame,
    /// Work that is neither a frame's nor can wait.
    Normal,
    /// Work that takes many frames: saves, logs, exports.
    Low,
}

/// Nice value of [`Priority::Low`]: about a tenth of a normal thread's share when both want the core
/// (each step of nice is a factor of 1.25, and 1.25^10 = 9.3).
const LOW_NICE: libc::c_int = 10;

/// A turn of a thread of [`Priority::Frame`] (ns). The kernel's own are some 3 ms, rounded up to its clock's step of 1 to
/// 10 ms. Too high: a worker that wakes waits behind whoever has the core. Too low: more switches, where the cores are
/// full.
const FRAME_TURN_NS: u64 = 300_000;

/// Starts a thread. The kernel keeps the first 15 bytes of its name.
///
/// Fails when the host has no room for another thread (`ulimit -u`, cgroup pids.max).
pub fn spawn_named<T: Send + 'static>(
    name: &str,
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        match priority {
            Priority::Frame => shorten_turns(),
            Priority::Normal => {}
            Priority::Low => lower(this_thread_id()),
        }
        work()
    })
}

/// Asks the kernel for short turns of the calling thread: its share of a core stays the same, but when it wakes it need
/// not wait until another thread's turn is over. Linux has this since 6.12 (a slice of its own for each thread, under
/// `sched_setattr`); where it has not, or forbids it, nothing changes.
pub fn shorten_turns() {
    let thread = this_thread_id();
    // SAFETY: plain numbers in, a number out. Set along with the rest, it must stay what it is.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) };
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: FRAME_TURN_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is of the size that it says, and the kernel only reads it.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
}

/// The kernel's number of the calling thread, as `top -H` and `/proc/self/task` show it.
pub fn this_thread_id() -> u32 {
    // SAFETY: no arguments, a number out; it cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Makes the threads of this process whose names begin with `prefix` low ones, for good: raising needs a privilege. For
/// faults that are put in on purpose.
///
/// Fails when the process cannot list its threads.
pub fn lower_threads(prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        // A thread may have ended meanwhile.
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let number = entry.file_name().to_str().and_then(|number| number.parse().ok());
        number.filter(|_| name.starts_with(prefix)).into_iter().for_each(lower);
    }
    Ok(())
}

/// Lowering one's own priority is always allowed, and the work is done either way: a thread may have ended meanwhile.
fn lower(thread: u32) {
    // SAFETY: plain numbers in, a number out. On Linux a thread id as "process" means that thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, LOW_NICE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice_of_this_thread() -> i32 {
        // SAFETY: plain numbers in, a number out.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, this_thread_id()) }
    }

    #[test]
    fn a_thread_has_its_name_and_only_a_low_one_is_nice() {
        let before = nice_of_this_thread();
        let seen = |priority| {
            let work = || (std::thread::current().name().map(str::to_owned), nice_of_this_thread());
            spawn_named("worker-7", priority, work).unwrap().join().unwrap()
        };
        assert_eq!(seen(Priority::Normal), (Some("worker-7".into()), before));
        assert_eq!(seen(Priority::Low), (Some("worker-7".into()), before.max(LOW_NICE)));
        assert_eq!(nice_of_this_thread(), before, "the others keep theirs");
    }

    fn turn_ns_of_this_thread() -> u64 {
        // SAFETY: all fields are numbers.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the kernel writes as many bytes as it is told that there is room for.
        let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        assert_eq!(outcome, 0);
        attributes.sched_runtime
    }

    #[test]
    fn a_frames_thread_has_short_turns_and_keeps_its_nice_value() {
        let seen = |priority, nice| {
            let work = move || {
                // SAFETY: plain numbers in, a number out.
                unsafe { libc::setpriority(libc::PRIO_PROCESS, this_thread_id(), nice) };
                let started = spawn_named("worker-9", priority, || (turn_ns_of_this_thread(), nice_of_this_thread()));
                started.unwrap().join().unwrap()
            };
            std::thread::spawn(work).join().unwrap()
        };
        let nice = nice_of_this_thread().max(3);
        let (usual_ns, _) = seen(Priority::Normal, nice);
        // Before 6.12 the kernel takes the request and tells 0 for everybody.
        let expect_ns = if usual_ns == 0 { 0 } else { FRAME_TURN_NS };
        assert_eq!(seen(Priority::Frame, nice), (expect_ns, nice));
        assert_ne!(usual_ns, FRAME_TURN_NS);
    }
}
