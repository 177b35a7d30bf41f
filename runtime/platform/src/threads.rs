//! Threads with a name, and with a low priority where the work can wait.
//!
//! The name is what `top -H`, a debugger and a capture show. A low thread gets what the frame's threads
//! leave over, so that writing a save does not make a tick late.

use std::fs;
use std::io;
use std::thread::{Builder, JoinHandle};

/// How urgent a thread's work is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Priority {
    /// The frame's own threads.
    Normal,
    /// Work that takes many frames: saves, logs, exports.
    Low,
}

/// Nice value of [`Priority::Low`]: about a tenth of a normal thread's share when both want the core
/// (each step of nice is a factor of 1.25, and 1.25^10 = 9.3).
const LOW_NICE: libc::c_int = 10;

/// Starts a thread. The kernel keeps the first 15 bytes of its name.
///
/// Fails when the host has no room for another thread (`ulimit -u`, cgroup pids.max).
pub fn spawn_named<T: Send + 'static>(
    name: &str,
    priority: Priority,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(move || {
        if priority == Priority::Low {
            lower(this_thread_id());
        }
        work()
    })
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
}
