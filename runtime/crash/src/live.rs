//! Where a thread of this very process is, as functions: for a thread that is stuck, while the others go on.
//!
//! The thread copies its own stack ([`thread_stack`]), and the unwinder is that of reports of deaths. Names are those of the
//! table of symbols ([`crate::symbols`]): the server lives, so it has neither the time nor the memory for more.
//!
//! For a thread that may wait for a disk. Cost: some 5 ms and a few MB at the start, then a millisecond for a stack.

use std::io;

use throng_platform::thread_stack;

use crate::maps::Maps;
use crate::report::Frame;
use crate::stack::{Contents, LoadedFile, Registers, StackCopy, Unwind, loaded_files};
use crate::symbols::Symbols;

/// Reads stacks of this process's threads. Made and used on one thread.
pub struct LiveStacks {
    unwind: Unwind<'static>,
    files: Vec<(&'static LoadedFile, Option<Symbols>)>,
}

impl LiveStacks {
    /// Of the executable and the libraries that are loaded now. What it reads of them stays for as long as the process
    /// lives: make one.
    pub fn load() -> io::Result<Self> {
        let pid = std::process::id();
        let files: &'static [(LoadedFile, Contents)] = Box::leak(loaded_files(pid, &Maps::of(pid)?).into());
        let symbols = files.iter().map(|(file, _)| (file, Symbols::of(file))).collect();
        Ok(Self { unwind: Unwind::without_code(files), files: symbols })
    }

    /// The calls that led to where the thread is, innermost first.
    pub fn of_thread(&mut self, thread_id: u32) -> io::Result<Vec<Frame>> {
        let at = thread_stack::of_thread(thread_id)?;
        let registers = Registers {
            instruction_pointer: at.instruction,
            stack_pointer: at.stack,
            frame_pointer: at.frame,
            link: at.link,
        };
        let calls = self.unwind.calls(registers, &StackCopy { begin: at.stack, bytes: at.bytes });
        Ok(calls.addresses.into_iter().map(|address| self.frame_at(address)).collect())
    }

    fn frame_at(&self, address: u64) -> Frame {
        let found = self.files.iter().find(|(file, _)| file.range.contains(&address));
        let Some((file, symbols)) = found else { return Frame { address, ..Frame::default() } };
        let in_file = address.wrapping_sub(file.bias);
        Frame {
            function: symbols.as_ref().and_then(|symbols| symbols.name_at(in_file)),
            module: file.path.file_name().map(|name| name.to_string_lossy().into_owned()),
            address: in_file,
            ..Frame::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::{Duration, Instant};

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

    #[inline(never)]
    fn stuck_in_a_read(is_over: &AtomicBool) {
        let (mut silent, _open) = UnixStream::pair().unwrap();
        silent.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            let _ = silent.read(&mut [0]);
        }
        black_box(());
    }

    #[inline(never)]
    fn stuck_in_a_lock(is_over: &AtomicBool) {
        let lock = Mutex::new(());
        let (tell, told) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _held = lock.lock();
                tell.send(()).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            });
            told.recv().unwrap();
            drop(black_box(lock.lock()));
        });
    }

    /// On a busy machine a thread that has no core is not there yet, or does not answer in time.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Promise: the functions that a thread is stuck in are named, whether it computes, sleeps or waits.
    #[track_caller]
    fn check(stuck: fn(&AtomicBool), expect: &str) {
        let is_over = AtomicBool::new(false);
        let (tell, told) = channel();
        let names = thread::scope(|scope| {
            scope.spawn(|| {
                tell.send(this_thread_id()).unwrap();
                stuck(&is_over);
            });
            let tid = told.recv().unwrap();
            let begin = Instant::now();
            let mut stacks = LiveStacks::load();
            let names = loop {
                thread::sleep(Duration::from_millis(20));
                let stack = stacks.as_mut().ok().and_then(|stacks| stacks.of_thread(tid).ok());
                let frames = stack.into_iter().flatten();
                let names: Vec<String> = frames.filter_map(|frame| frame.function).collect();
                if names.iter().any(|name| name.contains(expect)) || begin.elapsed() > PATIENCE {
                    break names;
                }
            };
            is_over.store(true, Ordering::Relaxed);
            names
        });
        assert!(names.iter().any(|name| name.contains(expect)), "{names:#?}");
    }

    #[test]
    fn a_loop_is_named() {
        check(stuck_in_a_loop, "stuck_in_a_loop");
    }

    #[test]
    fn a_read_is_named() {
        check(stuck_in_a_read, "stuck_in_a_read");
    }

    #[test]
    fn a_lock_is_named() {
        check(stuck_in_a_lock, "stuck_in_a_lock");
    }

    #[test]
    fn a_sleep_is_named() {
        check(stuck_in_a_sleep, "stuck_in_a_sleep");
    }
}
