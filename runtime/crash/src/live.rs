//! Where a thread of this very process is, as functions, files and lines: for a thread that is stuck, while the others go
//! on.
//!
//! The thread copies its own stack ([`thread_stack`]); the rest is what reports of deaths are made with. Executable and
//! libraries are looked at when they are first needed, and stay open. For a thread that may wait for a disk.

use std::io;

use throng_platform::thread_stack;

use crate::maps::Maps;
use crate::names::Names;
use crate::report::Frame;
use crate::stack::{Contents, LoadedFile, Registers, StackCopy, Unwind, loaded_files};

/// Reads stacks of this process's threads. Made and used on one thread.
pub struct LiveStacks {
    unwind: Unwind<'static>,
    names: Names<'static>,
}

impl LiveStacks {
    /// Of the executable and the libraries that are loaded now. What it reads of them stays for as long as the process
    /// lives: make one.
    pub fn load() -> io::Result<Self> {
        let pid = std::process::id();
        let files: &'static [(LoadedFile, Contents)] = Box::leak(loaded_files(pid, &Maps::of(pid)?).into());
        Ok(Self { unwind: Unwind::new(files), names: Names::new(files.iter().map(|(file, _)| file)) })
    }

    /// The calls that led to where the thread is, innermost first; more than one for an address where calls were inlined.
    pub fn of_thread(&mut self, thread_id: u32) -> io::Result<Vec<Frame>> {
        let at = thread_stack::of_thread(thread_id)?;
        let registers = Registers {
            instruction_pointer: at.instruction,
            stack_pointer: at.stack,
            frame_pointer: at.frame,
            link: at.link,
        };
        let calls = self.unwind.calls(registers, &StackCopy { begin: at.stack, bytes: at.bytes });
        Ok(calls.addresses.into_iter().flat_map(|address| self.names.frames_at(address)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use throng_platform::threads::this_thread_id;

    use super::*;

    #[inline(never)]
    fn stuck_in_a_loop(is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            black_box(());
        }
        black_box(());
    }

    #[inline(never)]
    fn stuck_in_a_sleep(is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(100));
        }
        black_box(());
    }

    /// Promise: the functions that a thread is stuck in are named, whether it computes or sleeps.
    #[track_caller]
    fn check(stuck: fn(&AtomicBool), expect: &str) {
        let is_over = AtomicBool::new(false);
        let (tell, told) = channel();
        let stack = thread::scope(|scope| {
            scope.spawn(|| {
                tell.send(this_thread_id()).unwrap();
                stuck(&is_over);
            });
            let tid = told.recv().unwrap();
            thread::sleep(Duration::from_millis(20));
            let stack = LiveStacks::load().and_then(|mut stacks| stacks.of_thread(tid));
            is_over.store(true, Ordering::Relaxed);
            stack.unwrap()
        });
        let names: Vec<_> = stack.iter().filter_map(|frame| frame.function.as_deref()).collect();
        assert!(names.iter().any(|name| name.contains(expect)), "{names:#?}");
    }

    #[test]
    fn a_loop_is_named() {
        check(stuck_in_a_loop, "stuck_in_a_loop");
    }

    #[test]
    fn a_sleep_is_named() {
        check(stuck_in_a_sleep, "stuck_in_a_sleep");
    }
}
