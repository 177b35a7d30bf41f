//! Hangs: a tick that does not come back for so long, in each of the ways in which a thread can hang.
//!
//! Each way is a function of its own, so that a stack says which one it was.

use std::{
    hint::black_box,
    io::{Read, Write},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, PoisonError, mpsc::channel},
    thread,
    time::{Duration, Instant},
};

use crate::world::compute_until;

/// How a world hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hang {
    /// It is asleep.
    Sleep,
    /// It computes.
    Loop,
    /// It reads from somebody who says nothing.
    Read,
    /// It waits for a lock that somebody has.
    Lock,
}

impl Hang {
    /// Does not come back for so long. For two of the ways a thread is started that ends it.
    pub(crate) fn strike(self, length: Duration) {
        match self {
            Self::Sleep => hang_in_sleep(length),
            Self::Loop => hang_in_loop(length),
            Self::Read => hang_in_read(length),
            Self::Lock => hang_in_lock(length),
        }
        // A call that is the last thing a function does may leave no frame of the caller's.
        black_box(());
    }
}

#[inline(never)]
fn hang_in_sleep(length: Duration) {
    thread::sleep(length);
    black_box(());
}

#[inline(never)]
fn hang_in_loop(length: Duration) {
    compute_until(Instant::now() + length);
    black_box(());
}

#[inline(never)]
fn hang_in_read(length: Duration) {
    // Where no more files may be open there is nobody to read from, and nobody hangs.
    let Ok((mut reader, mut writer)) = UnixStream::pair() else { return };
    let teller = thread::spawn(move || {
        thread::sleep(length);
        writer.write_all(&[0])
    });
    let _ = reader.read_exact(&mut [0]);
    let _ = teller.join();
}

#[inline(never)]
fn hang_in_lock(length: Duration) {
    let lock = Arc::new(Mutex::new(()));
    let (of_holder, (holds, is_held)) = (lock.clone(), channel());
    let holder = thread::spawn(move || {
        let _held = of_holder.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = holds.send(());
        thread::sleep(length);
    });
    let _ = is_held.recv();
    drop(lock.lock().unwrap_or_else(PoisonError::into_inner));
    let _ = holder.join();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_takes_as_long_as_was_asked() {
        for how in [Hang::Sleep, Hang::Loop, Hang::Read, Hang::Lock] {
            let begin = Instant::now();
            how.strike(Duration::from_millis(5));
            assert!(begin.elapsed() >= Duration::from_millis(5), "{how:?}");
        }
    }
}
