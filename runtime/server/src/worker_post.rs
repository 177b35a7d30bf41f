//! Worker post: what a worker is at, for whoever watches it from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use throng_platform::{threads::this_thread_id, time::Nanos};
use throng_world::ids::{WorldId, WorldKindId};

/// What a worker is at. Written by the worker, read by the watchdog.
///
/// A tick is there while `since` is not 0. It is written last and cleared first (release), and read before and after the
/// others (acquire): who reads the same twice has read the others of that tick.
#[derive(Debug, Default)]
pub(crate) struct WorkerPost {
    thread_id: AtomicU32,
    /// Index and generation.
    world: AtomicU64,
    kind: AtomicU32,
    since: AtomicU64,
}

/// A worker that is in a tick.
#[must_use]
pub(crate) struct AtWork(Arc<WorkerPost>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.since.store(0, Ordering::Release);
    }
}

/// A tick that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    pub thread_id: u32,
    pub world: WorldId,
    pub kind: WorldKindId,
    pub since: Nanos,
}

impl WorkerPost {
    /// A tick begins, which ends when what is returned is dropped: also by a panic. On the worker's thread. A system call at
    /// the first time, none later.
    pub fn begin(self: &Arc<Self>, world: WorldId, kind: WorldKindId, now: Nanos) -> AtWork {
        if self.thread_id.load(Ordering::Relaxed) == 0 {
            self.thread_id.store(this_thread_id(), Ordering::Relaxed);
        }
        self.world.store((world.index() as u64) << 32 | u64::from(world.generation()), Ordering::Relaxed);
        self.kind.store(kind.0.into(), Ordering::Relaxed);
        self.since.store(now.0, Ordering::Release);
        AtWork(self.clone())
    }

    /// The tick that it is in, if it is in one.
    pub fn running(&self) -> Option<Running> {
        let since = Nanos(self.since.load(Ordering::Acquire));
        let world = self.world.load(Ordering::Acquire);
        let running = Running {
            thread_id: self.thread_id.load(Ordering::Acquire),
            world: WorldId::new((world >> 32) as u32, world as u32),
            kind: WorldKindId(self.kind.load(Ordering::Acquire) as u16),
            since,
        };
        (since > Nanos::ZERO && self.since.load(Ordering::Acquire) == since.0).then_some(running)
    }
}
