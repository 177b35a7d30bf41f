//! Threads with a name, with a low priority where the work can wait, and with a short slice where it cannot.
//!
//! The name is what `top -H`, a debugger and a capture show. A low thread gets what the frame's threads
//! leave over, so that writing a save does not make a tick late.

use std::io;
use std::thread::{Builder, JoinHandle};

/// How urgent a thread's work is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The frame's own threads. They get a short slice, see [`shorten_slice`].
    Frame,
    /// Work that is neither a frame's nor can wait.
    Normal,
    /// Load that shares the host with what it is for: it gives way, and still keeps up.
    Load,
    /// Work that takes many frames, such as saves, logs and exports.
    Low,
}

/// Nice value of [`Priority::Low`]: about a tenth of a normal thread's share when both want the core
/// (each step of nice is a factor of 1.25, and 1.25^10 = 9.3).
const LOW_NICE: libc::c_int = 10;

/// Nice value of [`Priority::Load`]: a third of a normal thread's share. A thousand bots need half a core of two; with a
/// tenth of a share they fall behind where server and bots fill both, and late answers look like losses to the server.
const LOAD_NICE: libc::c_int = 5;

/// The slice of a thread of [`Priority::Frame`]: how long it may run before others get their turn (ns). The kernel's own
/// is 1 to 3 ms, rounded up to the step of its clock, 1 to 10 ms. Too high: a worker that wakes waits behind whoever has
/// the core. Too low: more switches, where the cores are full.
const FRAME_SLICE_NS: u64 = 300_000;

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
            Priority::Frame => shorten_slice(),
            // Whoever starts it hands its own slice down.
            Priority::Normal => set_slice(USUAL_SLICE),
            Priority::Load => {
                set_slice(USUAL_SLICE);
                lower(this_thread_id(), LOAD_NICE);
            }
            Priority::Low => {
                set_slice(USUAL_SLICE);
                lower(this_thread_id(), LOW_NICE);
            }
        }
        work()
    })
}

/// Asks the kernel for a short slice for the calling thread, and those that it starts without [`spawn_named`]: its share
/// of a core stays the same, but when it wakes it need not wait until another thread's slice is over. Linux has this
/// since 6.12; where it has not, or forbids it, or the thread is a real-time one, nothing changes.
pub fn shorten_slice() {
    set_slice(FRAME_SLICE_NS);
}

/// The kernel's word for its own choice.
const USUAL_SLICE: u64 = 0;

fn set_slice(slice_ns: u64) {
    let thread = this_thread_id();
    // SAFETY: plain numbers in, a number out. Set along with the slice, it must stay what it is.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, thread) };
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the structure is of the size that it says, and the kernel only reads it. Refused, nothing has changed.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
}

/// The kernel's number of the calling thread, as `top -H` and `/proc/self/task` show it.
pub fn this_thread_id() -> u32 {
    // SAFETY: no arguments, a number out; it cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Lowering one's own priority is always allowed, and the work is done either way: a thread may have ended meanwhile.
fn lower(thread: u32, nice: libc::c_int) {
    // SAFETY: plain numbers in, a number out. On Linux a thread id as "process" means that thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) };
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
        assert_eq!(seen(Priority::Load), (Some("worker-7".into()), before.max(LOAD_NICE)));
        assert_eq!(seen(Priority::Low), (Some("worker-7".into()), before.max(LOW_NICE)));
        assert_eq!(nice_of_this_thread(), before, "the others keep theirs");
    }

    /// `None` where the kernel does not tell it.
    fn slice_ns_of_this_thread() -> Option<u64> {
        // SAFETY: all fields are numbers.
        let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the kernel writes as many bytes as it is told that there is room for.
        let outcome = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        (outcome == 0).then_some(attributes.sched_runtime)
    }

    #[test]
    fn a_frames_thread_has_a_short_slice_keeps_its_nice_value_and_does_not_hand_it_down() {
        let seen = || (slice_ns_of_this_thread(), nice_of_this_thread());
        let of_frame = move || {
            let own = seen();
            (own, spawn_named("worker-10", Priority::Normal, seen).unwrap().join().unwrap())
        };
        let nice = nice_of_this_thread().max(3);
        let work = move || {
            // SAFETY: plain numbers in, a number out.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, this_thread_id(), nice) };
            let before = seen();
            (before, spawn_named("worker-9", Priority::Frame, of_frame).unwrap().join().unwrap())
        };
        let (before, (frame, started)) = std::thread::spawn(work).join().unwrap();
        // Where the kernel forbids it or does not know it, all have what they had.
        assert!([Some(FRAME_SLICE_NS), before.0].contains(&frame.0), "{before:?} {frame:?}");
        assert_eq!((frame.1, started), (nice, before));
    }
}
