//! Locks that say who waited for whom.
//!
//! As the standard library's, with a name. Taking a free lock notes who took it, which is one store. A thread that
//! finds it taken records how long it waited, which thread had the lock, in which scope and for which world: so a
//! capture can name a short task that waits for a long one. Poison is ignored: a panic under one of our locks is caught
//! by the owner of the task, who decides what to keep.
//!
//! Any thread. Allocates once per lock, when it is first waited for.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use throng_platform::ticks;

use crate::overruns::{self, LongWait};
use crate::record::{NO_WORLD, recorded_world};
use crate::site::SiteId;
use crate::thread;

/// A mutual exclusion lock with a name.
pub struct Mutex<T> {
    watch: Watch,
    inner: std::sync::Mutex<T>,
}

/// A [`Mutex`] that is locked, until it is dropped.
pub struct MutexGuard<'a, T> {
    watch: &'a Watch,
    inner: std::sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// `name` is dotted as a scope's: `scheduler.list`. Locks of the same name are told together.
    pub const fn new(name: &'static str, value: T) -> Mutex<T> {
        Mutex { watch: Watch::new(name), inner: std::sync::Mutex::new(value) }
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.watch.wait(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner))
            }
        };
        self.watch.taken();
        MutexGuard { watch: &self.watch, inner }
    }

    /// `None` if another thread has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.watch.taken();
        Some(MutexGuard { watch: &self.watch, inner })
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// A lock that many may read under, or one write.
pub struct RwLock<T> {
    watch: Watch,
    inner: std::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// As [`Mutex::new`].
    pub const fn new(name: &'static str, value: T) -> RwLock<T> {
        RwLock { watch: Watch::new(name), inner: std::sync::RwLock::new(value) }
    }

    /// For reading. A thread that waits for readers notes the last one that came as the holder.
    pub fn read(&self) -> std::sync::RwLockReadGuard<'_, T> {
        let inner = match self.inner.try_read() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.watch.wait(|| self.inner.read().unwrap_or_else(PoisonError::into_inner))
            }
        };
        self.watch.taken();
        inner
    }

    /// For writing.
    pub fn write(&self) -> std::sync::RwLockWriteGuard<'_, T> {
        let inner = match self.inner.try_write() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.watch.wait(|| self.inner.write().unwrap_or_else(PoisonError::into_inner))
            }
        };
        self.watch.taken();
        inner
    }
}

/// A condition to wait for under a [`Mutex`]. Waiting for it is idleness, not contention, and is not recorded as a wait
/// for the lock.
#[derive(Default)]
pub struct Condvar {
    inner: std::sync::Condvar,
}

impl Condvar {
    pub const fn new() -> Condvar {
        Condvar { inner: std::sync::Condvar::new() }
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let MutexGuard { watch, inner } = guard;
        let inner = self.inner.wait(inner).unwrap_or_else(PoisonError::into_inner);
        watch.taken();
        MutexGuard { watch, inner }
    }

    /// Waits up to `timeout`; may wake earlier without a reason, as all of them.
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        let MutexGuard { watch, inner } = guard;
        let (inner, _) = self.inner.wait_timeout(inner, timeout).unwrap_or_else(PoisonError::into_inner);
        watch.taken();
        MutexGuard { watch, inner }
    }

    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

/// Name and last holder of a lock.
struct Watch {
    name: &'static str,
    /// Number in the list of locks, plus one; 0 until somebody has waited.
    id: AtomicU32,
    /// Who took it last, see `Holder`. Written by whoever holds the lock, read by those that wait for it; a waiter may
    /// read the holder of a moment ago, which is who it waited for just then.
    holder: AtomicU64,
}

impl Watch {
    const fn new(name: &'static str) -> Watch {
        Watch { name, id: AtomicU32::new(0), holder: AtomicU64::new(0) }
    }

    #[inline]
    fn taken(&self) {
        if crate::is_recording() {
            self.holder.store(pack_holder(), Ordering::Relaxed);
        }
    }

    #[cold]
    fn wait<G>(&self, lock: impl FnOnce() -> G) -> G {
        if !crate::is_recording() {
            return lock();
        }
        let holder = self.holder.load(Ordering::Relaxed);
        let begin = ticks::now();
        let guard = lock();
        let end = ticks::now();
        let id = self.id();
        thread::record_lock_wait(id, begin, end, unpack_holder(holder));
        overruns::note_wait(LongWait {
            lock: id,
            ticks: end.saturating_sub(begin),
            at: end,
            world: thread::current_world(),
            kind: thread::current_kind_of_world(),
        });
        guard
    }

    fn id(&self) -> u32 {
        match self.id.load(Ordering::Relaxed).checked_sub(1) {
            Some(id) => id,
            None => {
                let id = lock_id(self.name);
                self.id.store(id + 1, Ordering::Relaxed);
                id
            }
        }
    }
}

/// Thread index plus one (16 bits), site (24 bits, 0 = none), world (24 bits). 0: nobody yet.
fn pack_holder() -> u64 {
    let Some(index) = thread::current_index() else { return 0 };
    let site = thread::current_site().map_or(0, |SiteId(site)| site);
    let world = thread::current_world().map_or(NO_WORLD, recorded_world);
    (u64::from(index) + 1) << 48 | u64::from(site) << 24 | u64::from(world)
}

fn unpack_holder(word: u64) -> Option<(u32, Option<u32>, Option<u32>)> {
    let thread = (word >> 48).checked_sub(1)? as u32;
    let (site, world) = ((word >> 24) as u32 & 0xff_ffff, word as u32 & 0xff_ffff);
    Some((thread, (site != 0).then_some(site), (world != NO_WORLD).then_some(world)))
}

static NAMES: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(Vec::new());

fn lock_id(name: &'static str) -> u32 {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = names.iter().position(|&other| other == name);
    known.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    }) as u32
}

/// Names of the locks that somebody has waited for, by number. Allocates.
pub(crate) fn lock_names() -> Vec<&'static str> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_as_it_was() {
        assert_eq!(unpack_holder(0), None);
        let word = 8 << 48 | 5 << 24 | u64::from(NO_WORLD);
        assert_eq!(unpack_holder(word), Some((7, Some(5), None)));
        let word = 1 << 48 | 2_001;
        assert_eq!(unpack_holder(word), Some((0, None, Some(2_001))));
    }

    #[test]
    fn locks_exclude_and_conditions_wake() {
        static COUNT: Mutex<u32> = Mutex::new("test.count", 0);
        static CHANGED: Condvar = Condvar::new();
        let adder = std::thread::spawn(|| {
            *COUNT.lock() += 1;
            CHANGED.notify_one();
        });
        let mut count = COUNT.lock();
        while *count == 0 {
            count = CHANGED.wait(count);
        }
        adder.join().unwrap();
        assert!(COUNT.try_lock().is_none());
        drop(count);
        assert_eq!(COUNT.try_lock().map(|count| *count), Some(1));
    }
}
