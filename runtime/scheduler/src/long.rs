//! Long tasks: work that may take many frames, on threads of low priority, the most urgent first.
//!
//! To make a world, to drop one, to load a sector of a level: none of it may wait in a frame, and all of it must be done
//! in time all the same. Each task has a deadline, and those whose deadline is earliest begin first; one that ends after
//! it is counted as missed, by kind. What all of them will probably cost is one figure, by which a server decides how
//! many cores to leave to them ([`crate::StarvationLevel`]).
//!
//! ```text
//! any thread -- start --> [incoming, without a lock] --> long-task-0 .. N --> [by deadline] --> the earliest is run
//!                                                                   its estimated cost counts until it has ended
//! ```
//!
//! - Whoever starts a task never waits: it is put into a queue without a lock, and one sleeper is woken (a system call).
//!   The lock around what waits is taken by the threads for long tasks alone.
//! - So many may wait; one more is refused, and counted. One that gives memory back is never refused: whoever cannot have
//!   its world dropped has it for ever.
//! - What a task brings goes where its closure puts it: [`Results`] is a place that a frame's thread looks into without
//!   waiting. Without threads ([`LongTaskPool::inline`]) a task is run where it is started, so that the same calls give
//!   the same order: for simulations. Or it waits until somebody gives it time ([`LongTaskPool::by_hand`]): for tests of
//!   what happens where there is too little.
//! - Costs are processor time: a task that had to wait for a core has not become dearer by that. Without threads they are
//!   the clock's.
//!
//! A task that panics ends, counted, and its thread goes on. One that blocks or hangs keeps its thread; who watches
//! ([`LongTasks::running`]) can name it. Each runs in a scope of its kind, `long.NAME`, on a thread of the class
//! [`ThreadClass::LongTask`](throng_profiler::thread::ThreadClass).

mod kinds;
mod post;
mod results;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
mod waiting;

use std::io;
use std::sync::Arc;

use crossbeam_queue::SegQueue;
use throng_platform::clock::Clock;
use throng_platform::process::thread_cpu_time;
use throng_platform::threads::this_thread_id;
use throng_platform::time::Nanos;

pub use kinds::{KINDS_MAX, LongKind, LongKindRow};
pub use post::RunningLong;
pub use results::Results;

use crate::contained;
use crate::shim::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use crate::shim::{Mutex, MutexGuard, current_thread, in_scope, park, scope, start_long_thread};
use kinds::Kinds;
use post::Post;
use waiting::{Entry, Waiting};

/// What is to be done.
pub struct LongTask {
    pub kind: LongKind,
    /// When it should be finished, in the clock of its pool. The earliest begins first.
    pub deadline: Nanos,
    /// What it will take of a core, where more is known of it than of its kind; otherwise what such tasks took lately.
    pub cost: Option<Nanos>,
    /// It gives memory back, so much as far as that is known: then it is never refused.
    pub frees: Option<u64>,
    /// A number of the starter's own for whom it is done, such as a world's: for who watches ([`RunningLong::about`]).
    /// Any but `u64::MAX`.
    pub about: Option<u64>,
    pub run: Box<dyn FnOnce() + Send>,
}

/// The threads. They end when this is dropped, each with the task that it has; what has not begun by then is dropped
/// with the last [`LongTasks`].
pub struct LongTaskPool {
    tasks: LongTasks,
}

impl LongTaskPool {
    /// Starts so many threads [>= 1], named `long-task-0` and so on. Deadlines are in `clock`'s time. More tasks than
    /// `waiting_max` do not wait.
    ///
    /// # Errors
    /// When the host has no room for another thread (`ulimit -u`, `pids.max`).
    pub fn with_threads(threads: usize, waiting_max: usize, clock: Arc<dyn Clock>) -> io::Result<LongTaskPool> {
        let shared = Arc::new(Shared::new(threads.max(1), waiting_max, clock));
        // Ends those that have been started, if another cannot be.
        let pool = LongTaskPool { tasks: LongTasks(Arc::clone(&shared)) };
        for index in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            start_long_thread(index, move || work(&shared, index))?;
        }
        Ok(pool)
    }

    /// Without threads: a task is run by whoever starts it.
    pub fn inline(clock: Arc<dyn Clock>) -> LongTaskPool {
        LongTaskPool { tasks: LongTasks(Arc::new(Shared::new(0, usize::MAX, clock))) }
    }

    /// Without threads, and with nobody who runs tasks but [`LongTaskPool::work_for`].
    pub fn by_hand(waiting_max: usize, clock: Arc<dyn Clock>) -> LongTaskPool {
        let credit = Some(Mutex::new("scheduler.long_credit", Nanos::ZERO));
        LongTaskPool { tasks: LongTasks(Arc::new(Shared { credit, ..Shared::new(0, waiting_max, clock) })) }
    }

    /// In a pool that is worked by hand: a core is theirs for so long. Tasks whose costs are used up by that are run, the
    /// most urgent first; what is left is kept for the next one, unless there is none.
    pub fn work_for(&self, time: Nanos) {
        let shared = &self.tasks.0;
        let Some(credit) = &shared.credit else { return };
        let mut left = *credit.lock() + time;
        loop {
            let next = shared.sort_in().next_cost();
            match next {
                None => left = Nanos::ZERO,
                Some(cost) if cost > left => {}
                Some(cost) => {
                    left -= cost;
                    shared.take().into_iter().for_each(|entry| shared.run(entry, None));
                    continue;
                }
            }
            break *credit.lock() = left;
        }
    }

    /// What tasks are started with.
    pub fn tasks(&self) -> &LongTasks {
        &self.tasks
    }
}

impl Drop for LongTaskPool {
    fn drop(&mut self) {
        let shared = &self.tasks.0;
        shared.is_stopping.store(true, Ordering::SeqCst);
        shared.posts.iter().for_each(|post| _ = shared.wake(post));
    }
}

/// What tasks are started with, from any thread. Clones are the same.
#[derive(Clone)]
pub struct LongTasks(Arc<Shared>);

/// Why a task was not started: too many wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TooManyWait;

/// What was counted of all kinds together, since the start.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LongTotals {
    pub started: u64,
    pub finished: u64,
    pub missed: u64,
    pub panicked: u64,
    pub refused: u64,
}

impl LongTasks {
    /// The kind of this name: always the same for the same name. Names are dotted, as scopes are: `world.drop`.
    /// Allocates for a new one. Up to [`KINDS_MAX`]; more share one.
    pub fn kind(&self, name: &'static str) -> LongKind {
        self.0.kinds.number(name)
    }

    /// What such a task is taken to cost.
    pub fn usual_cost(&self, kind: LongKind) -> Nanos {
        self.0.kinds.get(kind).cost()
    }

    pub fn name(&self, kind: LongKind) -> &'static str {
        self.0.kinds.get(kind).name
    }

    /// Time in the pool's clock, for deadlines.
    pub fn now(&self) -> Nanos {
        self.0.clock.now()
    }

    /// Threads that there are; 0: tasks are run by whoever starts them.
    pub fn threads(&self) -> usize {
        self.0.posts.len()
    }

    /// Has a task done. Never waits; allocates now and then.
    ///
    /// # Errors
    /// If too many wait already. Never of a task that gives memory back.
    pub fn start(&self, task: LongTask) -> Result<(), TooManyWait> {
        let shared = &*self.0;
        let kind = shared.kinds.get(task.kind);
        if task.frees.is_none() && self.waiting() >= shared.waiting_max {
            kind.refused.fetch_add(1, RELAXED);
            shared.totals.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TooManyWait);
        }
        kind.started.fetch_add(1, RELAXED);
        shared.totals.started.fetch_add(1, Ordering::Relaxed);
        let cost = task.cost.unwrap_or_else(|| kind.cost());
        shared.gauge_up(&task, cost);
        let sequence = shared.sequence.fetch_add(1, Ordering::Relaxed);
        let entry = Entry { cost, started_at: shared.clock.now(), sequence, task };
        if shared.posts.is_empty() && shared.credit.is_none() {
            shared.run(entry, None);
            return Ok(());
        }
        shared.incoming.push(entry);
        shared.waiting_count.fetch_add(1, Ordering::SeqCst);
        shared.wake_one();
        Ok(())
    }

    /// Tasks that have not begun.
    pub fn waiting(&self) -> usize {
        // One that is taken before it is counted makes it less than none for a moment.
        usize::try_from(self.0.waiting_count.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The estimated cost of all that has not ended.
    pub fn outstanding(&self) -> Nanos {
        Nanos(self.0.outstanding_ns.load(Ordering::Relaxed))
    }

    /// Of that, the cost of what gives memory back.
    pub fn freeing(&self) -> Nanos {
        Nanos(self.0.freeing_ns.load(Ordering::Relaxed))
    }

    /// How much memory waits to be given back, as far as that is known. (bytes)
    pub fn freeing_bytes(&self) -> u64 {
        self.0.freeing_bytes.load(Ordering::Relaxed)
    }

    /// What each thread is at now.
    pub fn running(&self) -> impl Iterator<Item = RunningLong> {
        self.0.posts.iter().filter_map(Post::running)
    }

    /// All kinds that there are. Allocates.
    pub fn rows(&self) -> Vec<LongKindRow> {
        self.0.kinds.rows()
    }

    pub fn totals(&self) -> LongTotals {
        let Counts { started, finished, missed, panicked, refused } = &self.0.totals;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LongTotals {
            started: read(started),
            finished: read(finished),
            missed: read(missed),
            panicked: read(panicked),
            refused: read(refused),
        }
    }

    /// The longest that a task has waited since this was last asked.
    pub fn take_wait_max(&self) -> Nanos {
        Nanos(self.0.wait_max.swap(0, Ordering::Relaxed))
    }
}

/// Of the kinds' rows, which no model needs.
const RELAXED: std::sync::atomic::Ordering = std::sync::atomic::Ordering::Relaxed;

/// Added to by threads that start and end tasks, read by anybody: plain sums, for which relaxed order is enough.
#[derive(Default)]
struct Counts {
    started: AtomicU64,
    finished: AtomicU64,
    missed: AtomicU64,
    panicked: AtomicU64,
    refused: AtomicU64,
}

struct Shared {
    /// Tasks that no thread has looked at yet.
    incoming: SegQueue<Entry>,
    /// The others that wait. Locked by threads for long tasks alone.
    waiting: Mutex<Waiting>,
    /// Both together. Counted after a task is put in and before it is taken out, see `wake_one`.
    waiting_count: AtomicI64,
    waiting_max: usize,
    sequence: AtomicU64,
    /// Gauges: raised by whoever starts a task, lowered by whoever ended it. Sums, for which relaxed order is enough.
    outstanding_ns: AtomicU64,
    freeing_ns: AtomicU64,
    freeing_bytes: AtomicU64,
    wait_max: AtomicU64,
    totals: Counts,
    kinds: Kinds,
    posts: Box<[Post]>,
    /// Time that was given by hand and not used, in a pool that is worked so.
    credit: Option<Mutex<Nanos>>,
    is_stopping: AtomicBool,
    clock: Arc<dyn Clock>,
}

impl Shared {
    fn new(threads: usize, waiting_max: usize, clock: Arc<dyn Clock>) -> Shared {
        Shared {
            incoming: SegQueue::new(),
            waiting: Mutex::new("scheduler.long", Waiting::default()),
            waiting_count: AtomicI64::new(0),
            waiting_max,
            sequence: AtomicU64::new(0),
            outstanding_ns: AtomicU64::new(0),
            freeing_ns: AtomicU64::new(0),
            freeing_bytes: AtomicU64::new(0),
            wait_max: AtomicU64::new(0),
            totals: Counts::default(),
            kinds: Kinds::new(),
            posts: (0..threads).map(|_| Post::new()).collect(),
            credit: None,
            is_stopping: AtomicBool::new(false),
            clock,
        }
    }

    fn gauge_up(&self, task: &LongTask, cost: Nanos) {
        self.outstanding_ns.fetch_add(cost.0, Ordering::Relaxed);
        if let Some(bytes) = task.frees {
            self.freeing_ns.fetch_add(cost.0, Ordering::Relaxed);
            self.freeing_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn gauge_down(&self, frees: Option<u64>, cost: Nanos) {
        self.outstanding_ns.fetch_sub(cost.0, Ordering::Relaxed);
        if let Some(bytes) = frees {
            self.freeing_ns.fetch_sub(cost.0, Ordering::Relaxed);
            self.freeing_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Wakes a sleeper, if there is one.
    ///
    /// No task is left lying while a thread sleeps: a thread says that it sleeps and then looks at the count once more,
    /// whoever starts a task counts it and then looks who sleeps, and all four are in one order (SeqCst). So either the
    /// thread sees the task, or the starter sees the sleeper; and a wake-up that comes before the sleep is kept by `park`.
    fn wake_one(&self) {
        let _ = self.posts.iter().any(|post| self.wake(post));
    }

    fn wake(&self, post: &Post) -> bool {
        let was_asleep = post.is_asleep.swap(false, Ordering::SeqCst);
        if was_asleep && let Some(thread) = post.thread.get() {
            thread.unpark();
        }
        was_asleep
    }

    /// The most urgent task. On a thread for long tasks.
    fn take(&self) -> Option<Entry> {
        let entry = self.sort_in().pop()?;
        self.waiting_count.fetch_sub(1, Ordering::SeqCst);
        Some(entry)
    }

    fn sort_in(&self) -> MutexGuard<'_, Waiting> {
        let mut waiting = self.waiting.lock();
        while let Some(entry) = self.incoming.pop() {
            waiting.push(entry);
        }
        waiting
    }

    /// Runs a task; on one of the pool's threads that one's post says so.
    fn run(&self, entry: Entry, post: Option<&Post>) {
        let Entry { task, cost, started_at, sequence: _ } = entry;
        let LongTask { kind: number, deadline, cost: _, frees, about, run } = task;
        let kind = self.kinds.get(number);
        let begun_at = self.clock.now();
        let wait = begun_at.saturating_sub(started_at);
        kind.waited(wait);
        self.wait_max.fetch_max(wait.0, Ordering::Relaxed);
        // By hand it takes what it was said to.
        let by_hand = self.credit.is_some().then_some(cost);
        let used = || if post.is_some() { thread_cpu_time() } else { self.clock.now() };
        let used_before = used();
        if let Some(post) = post {
            let within = deadline.saturating_sub(started_at);
            post.begin(RunningLong { thread_id: this_thread_id(), kind: number, about, cost, within, since: begun_at });
        }
        // What it leaves half done is its own: it is gone.
        let panicked = in_scope(kind.site, || contained::panics(run));
        if let Some(post) = post {
            post.end();
        }
        kind.measured(by_hand.unwrap_or_else(|| used().saturating_sub(used_before)));
        kind.finished.fetch_add(1, RELAXED);
        self.totals.finished.fetch_add(1, Ordering::Relaxed);
        if panicked {
            kind.panicked.fetch_add(1, RELAXED);
            self.totals.panicked.fetch_add(1, Ordering::Relaxed);
        }
        if self.clock.now() > deadline {
            kind.missed.fetch_add(1, RELAXED);
            self.totals.missed.fetch_add(1, Ordering::Relaxed);
        }
        self.gauge_down(frees, cost);
    }
}

/// A thread's life.
fn work(shared: &Shared, index: usize) {
    let post = &shared.posts[index];
    let _ = post.thread.set(current_thread());
    while !shared.is_stopping.load(Ordering::SeqCst) {
        if let Some(entry) = shared.take() {
            shared.run(entry, Some(post));
            continue;
        }
        post.is_asleep.store(true, Ordering::SeqCst);
        let may_sleep = shared.waiting_count.load(Ordering::SeqCst) <= 0 && !shared.is_stopping.load(Ordering::SeqCst);
        if may_sleep {
            scope!("idle.long_task");
            park();
        }
        post.is_asleep.store(false, Ordering::SeqCst);
    }
}
