//! Drop later: a value that takes long to drop is handed to a long task.
//!
//! To drop a level's sector with a hundred thousand boxes takes as long as a tick may take at all. The allocator puts off
//! large *blocks* by itself (`throng_platform::allocator`), but not the walk through what holds them. So whoever gives up
//! something large in a tick hands it over as a whole.
//!
//! Which pool it goes to is the worker's: set once on each worker's thread. Anywhere else the value is dropped at once:
//! in a world that is being made, in a headless test, on threads of the game's own.

use std::cell::OnceCell;

use throng_platform::time::Nanos;
use throng_scheduler::{LongKind, LongTasks};

use super::dropping;

/// Drops a value beside the ticks, within some seconds. In a system: a level's sector, a large list, whatever takes more
/// than some microseconds to drop. Elsewhere than in a tick it is dropped at once.
///
/// Allocates once or twice; takes half a microsecond. What waits counts for the starvation level.
pub fn drop_later<T: Send + 'static>(value: T) {
    let bytes = size_of::<T>() as u64;
    drop_later_sized(value, bytes);
}

/// As [`drop_later`], where it is known how much memory that gives back, in bytes: the console's `tasks` tells what waits.
pub fn drop_later_sized<T: Send + 'static>(value: T, bytes: u64) {
    LATER.with(|later| match later.get() {
        // What frees memory is never refused.
        Some(later) => _ = later.tasks.start(dropping(later.kind, later.deadline(), bytes, value)),
        None => drop(value),
    });
}

thread_local! {
    static LATER: OnceCell<Later> = const { OnceCell::new() };
}

/// Where values go that a worker's ticks give up.
#[derive(Clone)]
pub(crate) struct Later {
    tasks: LongTasks,
    kind: LongKind,
    within: Nanos,
}

impl Later {
    pub fn new(tasks: &LongTasks, within: Nanos) -> Self {
        Self { tasks: tasks.clone(), kind: tasks.kind("value.drop"), within }
    }

    /// From now on, of the calling thread. The first one stays: a worker has one server.
    pub fn set_for_this_thread(&self) {
        LATER.with(|later| _ = later.get_or_init(|| self.clone()));
    }

    fn deadline(&self) -> Nanos {
        self.tasks.now().saturating_add(self.within)
    }
}
