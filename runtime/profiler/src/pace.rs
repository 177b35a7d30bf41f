//! Pace: long work of a low thread in short pieces.
//!
//! A low thread that works for 10 ms in one go keeps a core that a worker could have had: the kernel looks for a free
//! core when a worker wakes, takes the low thread's for busy, and puts the worker behind another one. So the thread
//! rests every millisecond or so: its core is idle then, and takes a worker that waits elsewhere.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

/// Works at most so long without a rest. Too high: a worker may wait so long for a core that only a low thread has. Too
/// low: what is done in pieces takes much longer.
const WORK_MAX: Duration = Duration::from_millis(1);

/// Long enough for the kernel to look for a waiting thread.
const REST: Duration = Duration::from_micros(500);

/// When the calling thread is to rest.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the last rest was over; `None`: never rests.
    rested_at: Option<Instant>,
}

impl Pace {
    /// In pieces from now on.
    pub fn begin() -> Pace {
        Pace { rested_at: Some(Instant::now()) }
    }

    /// In one go, for what must be done at once.
    pub fn unbroken() -> Pace {
        Pace { rested_at: None }
    }

    /// Between two parts of the work, as often as these can be told apart: a part that takes longer than [`WORK_MAX`]
    /// is done in one go.
    pub fn rest_if_due(&mut self) {
        if let Some(rested_at) = &mut self.rested_at
            && rested_at.elapsed() >= WORK_MAX
        {
            thread::sleep(REST);
            *rested_at = Instant::now();
        }
    }
}

/// Bytes, at a pace.
pub(crate) struct PacedWriter<'a> {
    pub bytes: &'a mut Vec<u8>,
    pub pace: &'a mut Pace,
}

impl Write for PacedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pace.rest_if_due();
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
