//! The watchdog's look at long tasks: one that blocks or hangs keeps its thread, and the others wait for it.
//!
//! Time alone says little of a thread of low priority: where worlds take the cores it waits for one. So the kernel is asked
//! how long the thread ran and whether it sleeps. A task is stuck that
//!
//! - has slept in one wait for [`BLOCKED_AFTER`]: it waits for a lock, a file, another process; or
//! - has had a core for [`LONG_AFTER`] at least, and [`COST_FACTOR`] times as long as it was taken to cost.
//!
//! It is named once, with its stack, and counted as long as it is so.
//!
//! One that is stuck and has had its thread for longer than its deadline gave it from its start on is overdue: a task that may take
//! a minute says so by its deadline. A thread with an overdue task is lost to the others until that goes on. When all are,
//! and are so for as long as the settings allow, the process is ended ([`failover`](crate::failover)). On the watchdog's thread; some 5 us for each task that
//! runs at a look.

use std::sync::Arc;

use throng_platform::{
    sched::{ThreadSums, thread_state},
    time::Nanos,
};
use throng_profiler::{log_category, log_warn};
use throng_scheduler::{LongTasks, RunningLong};
use throng_world::ids::WorldId;

use crate::{
    failover::{Failover, StuckThread},
    metrics::PublishedMetrics,
    stacks::{StackSource, open_scopes, stack_of},
};

log_category!(LONG_TASKS = "server.long_tasks");

/// Sleep without an end from which on a task blocks. As for worlds: named within 100 ms.
const BLOCKED_AFTER: Nanos = Nanos::from_millis(75);

/// Processor time below which no task is taken to hang: what is asked of long tasks may well take a second.
const LONG_AFTER: Nanos = Nanos::from_secs(1);

/// And so many times what it was taken to cost.
const COST_FACTOR: u64 = 10;

/// What the kernel says of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadNow {
    ran: Nanos,
    is_asleep: bool,
}

type Ask = Box<dyn Fn(u32) -> Option<ThreadNow> + Send>;

/// What was seen of one thread's task.
#[derive(Clone, Copy, Debug)]
struct Seen {
    since: Nanos,
    /// How long its thread had run at the first look.
    ran_before: Nanos,
    /// How long it had run at the last one, and since when it has slept without having run.
    ran: Nanos,
    asleep_since: Option<Nanos>,
    is_named: bool,
}

pub(super) struct LongWatch {
    tasks: LongTasks,
    published: Arc<PublishedMetrics>,
    /// By thread.
    seen: Vec<(u32, Seen)>,
    ask: Ask,
    failover: Failover,
    /// All threads have been stuck for too long.
    pub is_over: bool,
}

impl LongWatch {
    /// `stuck_max`: how long all threads may be stuck; `None`: for ever.
    pub fn new(tasks: &LongTasks, published: Arc<PublishedMetrics>, stuck_max: Option<Nanos>) -> Self {
        Self {
            tasks: tasks.clone(),
            published,
            seen: Vec::new(),
            ask: Box::new(ask_kernel),
            failover: Failover::after(stuck_max),
            is_over: false,
        }
    }

    /// Looks at all that runs.
    pub fn look(&mut self, mut source: Option<&mut (dyn StackSource + 'static)>) {
        let (now, tasks) = (self.tasks.now(), self.tasks.clone());
        let (mut stuck, mut overdue) = (0, 0);
        for running in tasks.running() {
            let Some(thread) = (self.ask)(running.thread_id) else { continue };
            let seen = self.seen_of(running, thread);
            let why = seen.update(running, thread, now);
            stuck += u64::from(why.is_some());
            overdue += usize::from(why.is_some() && is_overdue(running, now));
            if let Some(why) = why.filter(|_| !std::mem::replace(&mut seen.is_named, true)) {
                let seen = *seen;
                self.published.set_long_tasks_stuck(stuck);
                name(&tasks, running, seen, now, why, source.as_deref_mut());
            }
        }
        self.published.set_long_tasks_stuck(stuck);
        let all_stuck = overdue > 0 && overdue == tasks.threads();
        self.is_over |= self.failover.is_due(all_stuck, now);
    }

    pub fn end_process(&self, source: Option<&mut (dyn StackSource + 'static)>) -> ! {
        let named = |running: RunningLong| {
            let thread_id = running.thread_id;
            let mut name = format!("long task {}{}", self.tasks.name(running.kind), of_world(running));
            // There are scopes while something is recorded. The innermost one says most.
            if let Some(scope) = open_scopes(thread_id).last() {
                name.push_str(" in ");
                name.push_str(scope);
            }
            StuckThread { thread_id, since: running.since, name }
        };
        let stuck = self.tasks.running().map(named).collect();
        self.failover.end_process("all threads for long tasks were stuck", stuck, source, self.tasks.now())
    }

    fn seen_of(&mut self, running: RunningLong, thread: ThreadNow) -> &mut Seen {
        let first =
            Seen { since: running.since, ran_before: thread.ran, ran: thread.ran, asleep_since: None, is_named: false };
        let place = self.seen.iter().position(|(id, _)| *id == running.thread_id).unwrap_or_else(|| {
            self.seen.push((running.thread_id, first));
            self.seen.len() - 1
        });
        let seen = &mut self.seen[place].1;
        if seen.since != running.since {
            *seen = first;
        }
        seen
    }
}

impl Seen {
    /// Why it is stuck, if it is.
    fn update(&mut self, running: RunningLong, thread: ThreadNow, now: Nanos) -> Option<&'static str> {
        let has_run = std::mem::replace(&mut self.ran, thread.ran) != thread.ran;
        if has_run || !thread.is_asleep {
            self.asleep_since = None;
        }
        if thread.is_asleep {
            let since = *self.asleep_since.get_or_insert(now);
            if now.saturating_sub(since) >= BLOCKED_AFTER {
                return Some("it sleeps");
            }
        }
        let had = thread.ran.saturating_sub(self.ran_before);
        let usual = Nanos(running.cost.0.saturating_mul(COST_FACTOR));
        (had >= LONG_AFTER.max(usual)).then_some("it takes far longer than others of its kind")
    }
}

/// Whether it has its thread for longer than its deadline would have it: that is its starter's word of how long such a task may
/// take.
fn is_overdue(running: RunningLong, now: Nanos) -> bool {
    now > running.since.saturating_add(running.within)
}

/// ` of world 7.2`, where it is about one.
fn of_world(running: RunningLong) -> String {
    let world = |bits: u64| WorldId::new(bits as u32, (bits >> 32) as u32);
    running.about.map_or_else(String::new, |bits| format!(" of world {}", world(bits)))
}

fn name(
    tasks: &LongTasks,
    running: RunningLong,
    seen: Seen,
    now: Nanos,
    why: &'static str,
    source: Option<&mut (dyn StackSource + 'static)>,
) {
    let RunningLong { thread_id, kind, about: _, cost, within, since } = running;
    let scopes = open_scopes(thread_id).join(" > ");
    let stack = stack_of(source, thread_id);
    log_warn!(
        LONG_TASKS,
        kind = tasks.name(kind),
        about = of_world(running).trim_start(),
        why,
        running_ms = now.saturating_sub(since).as_millis_f64(),
        on_core_ms = seen.ran.saturating_sub(seen.ran_before).as_millis_f64(),
        usual_ms = cost.as_millis_f64(),
        within_ms = within.as_millis_f64(),
        thread = thread_id,
        scopes,
        stack,
        "a long task is stuck"
    );
}

/// `None` where its thread has ended, or the kernel does not say.
fn ask_kernel(thread_id: u32) -> Option<ThreadNow> {
    let ran = Nanos(ThreadSums::open(thread_id).ok()?.read().ok()?.running_ns);
    Some(ThreadNow { ran, is_asleep: thread_state(thread_id).ok()?.is_asleep })
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            mpsc::{Sender, channel},
        },
        time::Duration,
    };

    use throng_platform::clock::{Clock, ManualClock};
    use throng_scheduler::{LongTask, LongTaskPool};

    use super::*;

    /// A task on a thread, a clock that is moved by hand, and what the kernel says of the thread.
    struct Scene {
        clock: ManualClock,
        thread: Arc<Mutex<ThreadNow>>,
        watch: LongWatch,
        release: Sender<()>,
        _pool: LongTaskPool,
    }

    impl Scene {
        fn new(cost: Nanos) -> Scene {
            Scene::with_threads(1, cost, Nanos::MAX)
        }

        /// One task, which is to be done within so long, and so many threads.
        fn with_threads(threads: usize, cost: Nanos, within: Nanos) -> Scene {
            let clock = ManualClock::new();
            clock.advance(Nanos::from_secs(1));
            let shared: Arc<dyn Clock> = Arc::new(clock.clone());
            let pool = LongTaskPool::with_threads(threads, 10, shared.clone()).unwrap();
            let ((release, released), (begun, has_begun)) = (channel(), channel());
            let run = Box::new(move || {
                begun.send(()).unwrap();
                let _ = released.recv();
            });
            let kind = pool.tasks().kind("test.block");
            let deadline = shared.now().saturating_add(within);
            pool.tasks()
                .start(LongTask { kind, deadline, cost: Some(cost), frees: None, about: Some(7), run })
                .unwrap();
            has_begun.recv_timeout(Duration::from_secs(60)).unwrap();
            let thread = Arc::new(Mutex::new(ThreadNow { ran: Nanos::from_secs(7), is_asleep: false }));
            let asked = thread.clone();
            let mut watch =
                LongWatch::new(pool.tasks(), Arc::new(PublishedMetrics::new(shared)), Some(Nanos::from_secs(30)));
            watch.ask = Box::new(move |_| Some(*asked.lock().unwrap()));
            Scene { clock, thread, watch, release, _pool: pool }
        }

        /// Looks every 10 ms, in each of which the thread runs for so long; the time after which it is stuck (ms).
        fn stuck_after_ms(&mut self, is_asleep: bool, runs: Nanos, within_ms: u64) -> Option<u64> {
            self.after_ms(is_asleep, runs, within_ms, |watch| watch.published.long_tasks_stuck() == 1)
        }

        /// The same until the process is to end (s).
        fn over_after_s(&mut self, is_asleep: bool, runs: Nanos, within_s: u64) -> Option<u64> {
            self.after_ms(is_asleep, runs, within_s * 1_000, |watch| watch.is_over).map(|ms| ms / 1_000)
        }

        fn after_ms(
            &mut self,
            is_asleep: bool,
            runs: Nanos,
            within_ms: u64,
            is_so: impl Fn(&LongWatch) -> bool,
        ) -> Option<u64> {
            (1..=within_ms / 10).map(|step| step * 10).find(|_| {
                self.clock.advance(Nanos::from_millis(10));
                let mut thread = self.thread.lock().unwrap();
                thread.is_asleep = is_asleep;
                thread.ran += runs;
                drop(thread);
                self.watch.look(None);
                is_so(&self.watch)
            })
        }
    }

    #[test]
    fn a_task_that_sleeps_is_named_within_100_ms_and_no_longer_stuck_when_it_goes_on() {
        let mut scene = Scene::new(Nanos::from_secs(5));
        assert_eq!(scene.stuck_after_ms(true, Nanos::ZERO, 200), Some(90));
        assert!(scene.watch.seen[0].1.is_named);
        assert_eq!(scene.stuck_after_ms(false, Nanos::from_millis(9), 50), None);
        drop(scene.release);
    }

    /// Where worlds take the cores, a thread of low priority stands still and is none the worse.
    #[test]
    fn a_task_that_waits_for_a_core_or_reads_many_files_is_not_stuck() {
        let mut scene = Scene::new(Nanos::from_millis(1));
        assert_eq!(scene.stuck_after_ms(false, Nanos::ZERO, 20_000), None);
        assert_eq!(scene.stuck_after_ms(true, Nanos::from_micros(50), 5_000), None);
    }

    #[test]
    fn a_task_that_computes_without_end_is_named_when_it_took_ten_times_what_it_should() {
        let mut scene = Scene::new(Nanos::from_millis(200));
        assert_eq!(scene.stuck_after_ms(false, Nanos::from_millis(10), 3_000), Some(2_010));
        let mut scene = Scene::new(Nanos::from_micros(100));
        assert_eq!(scene.stuck_after_ms(false, Nanos::from_millis(10), 3_000), Some(1_010));
    }

    #[test]
    fn threads_that_are_all_stuck_for_too_long_are_the_servers_end() {
        let (cost, within) = (Nanos::from_millis(1), Nanos::from_secs(5));
        let mut blocks = Scene::with_threads(1, cost, within);
        assert_eq!(blocks.over_after_s(true, Nanos::ZERO, 100), Some(35), "its time, and 30 s");
        let mut loops = Scene::with_threads(1, cost, within);
        assert_eq!(loops.over_after_s(false, Nanos::from_millis(10), 100), Some(35));
        let mut one_of_two = Scene::with_threads(2, cost, within);
        assert_eq!(one_of_two.over_after_s(true, Nanos::ZERO, 300), None, "the other one is free");
    }

    #[test]
    fn a_task_that_may_take_long_or_waits_for_a_core_is_nobodys_end() {
        let (cost, within) = (Nanos::from_millis(1), Nanos::from_secs(5));
        let mut slow = Scene::with_threads(1, cost, Nanos::from_secs(600));
        assert_eq!(slow.over_after_s(false, Nanos::from_millis(10), 629), None, "it was given ten minutes");
        assert_eq!(slow.over_after_s(false, Nanos::from_millis(10), 30), Some(1), "and not more");
        let mut starved = Scene::with_threads(1, cost, within);
        assert_eq!(starved.over_after_s(false, Nanos::ZERO, 300), None);
        let mut dear = Scene::with_threads(1, Nanos::from_secs(60), within);
        assert_eq!(dear.over_after_s(false, Nanos::from_millis(10), 600), None, "as it said, it takes a minute");
        let mut goes_on = Scene::with_threads(1, cost, within);
        assert_eq!(goes_on.over_after_s(true, Nanos::ZERO, 34), None);
        assert_eq!(goes_on.over_after_s(false, Nanos::from_micros(10), 1), None);
        assert_eq!(goes_on.over_after_s(true, Nanos::ZERO, 100), Some(30), "it begins anew");
    }

    #[test]
    fn a_task_is_told_with_the_world_that_it_is_about() {
        let scene = Scene::new(Nanos::from_secs(5));
        let running = scene.watch.tasks.running().next().unwrap();
        assert_eq!(
            (of_world(running), of_world(RunningLong { about: None, ..running })),
            (" of world 7".into(), String::new())
        );
        let again = WorldId::new(7, 2).bits();
        assert_eq!(of_world(RunningLong { about: Some(again), ..running }), " of world 7.2");
    }

    /// Of a real thread that waits on a channel.
    #[test]
    fn the_kernel_says_that_a_thread_sleeps() {
        let mut scene = Scene::new(Nanos::from_secs(5));
        let running = scene.watch.tasks.running().next().unwrap();
        let given_up_at = std::time::Instant::now() + Duration::from_secs(60);
        while !ask_kernel(running.thread_id).expect("it lives").is_asleep {
            assert!(std::time::Instant::now() < given_up_at, "it never sleeps");
            std::thread::yield_now();
        }
        scene.watch.ask = Box::new(ask_kernel);
        for _ in 0..20 {
            scene.clock.advance(Nanos::from_millis(10));
            scene.watch.look(None);
        }
        assert_eq!(scene.watch.published.long_tasks_stuck(), 1);
    }
}
