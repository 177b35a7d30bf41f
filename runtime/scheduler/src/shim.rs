//! The locks and threads of the pool, so that the model checker runs the pool that ships.
//!
//! `pool`, `worker`, `fork_join` and `long` take theirs from here: the recorder's locks, which say who waited for whom, and
//! real threads; or shuttle's when the model tests are built. These record no scopes: shuttle runs all threads on one, and
//! the recorder would take them for one thread's.

#[cfg(feature = "shuttle")]
pub(crate) use modelled::{
    Condvar, Mutex, MutexGuard, Thread, atomic, current_thread, in_scope, park, scope, start_long_thread, start_worker,
};
#[cfg(not(feature = "shuttle"))]
pub(crate) use {
    real::{in_scope, start_long_thread, start_worker},
    std::{
        sync::atomic,
        thread::{Thread, current as current_thread, park},
    },
    throng_profiler::{
        scope,
        sync::{Condvar, Mutex, MutexGuard},
    },
};

#[cfg(not(feature = "shuttle"))]
mod real {
    use std::io;

    use throng_platform::threads::{Priority, spawn_named};
    use throng_profiler::{
        Scope, Site,
        thread::{self, ThreadClass},
    };

    /// Starts the thread of a worker. Not joined: one that hangs could not be, and the others leave by themselves.
    pub(crate) fn start_worker(index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let work = move || {
            thread::register(ThreadClass::ShortTask);
            work();
        };
        spawn_named(&format!("worker-{index}"), Priority::Frame, work).map(drop)
    }

    /// Starts a thread for long tasks, which gets what workers leave over. Not joined either.
    pub(crate) fn start_long_thread(index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let work = move || {
            thread::register(ThreadClass::LongTask);
            work();
        };
        spawn_named(&format!("long-task-{index}"), Priority::Low, work).map(drop)
    }

    /// Does something within a scope.
    pub(crate) fn in_scope<T>(site: &'static Site, work: impl FnOnce() -> T) -> T {
        let _scope = Scope::begin(site);
        work()
    }
}

#[cfg(feature = "shuttle")]
mod modelled {
    use std::{
        io,
        sync::{PoisonError, TryLockError},
        time::Duration,
    };

    pub(crate) use shuttle::{
        sync::{MutexGuard, atomic},
        thread::{Thread, current as current_thread, park},
    };
    use throng_profiler::Site;

    pub(crate) fn start_long_thread(_index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        shuttle::thread::spawn(work);
        Ok(())
    }

    pub(crate) fn in_scope<T>(_site: &'static Site, work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(crate) fn start_worker(_index: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        shuttle::thread::spawn(work);
        Ok(())
    }

    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(_name: &'static str, value: T) -> Self {
            Self(shuttle::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }

    pub(crate) struct Condvar(shuttle::sync::Condvar);

    impl Condvar {
        pub fn new() -> Self {
            Self(shuttle::sync::Condvar::new())
        }

        pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
        }

        /// Never over before its time: shuttle has no time, and no model waits for it.
        pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, _: Duration) -> MutexGuard<'a, T> {
            self.wait(guard)
        }

        pub fn notify_one(&self) {
            self.0.notify_one();
        }
    }

    macro_rules! scope {
        ($name:literal) => {};
    }
    pub(crate) use scope;
}
