//! Watchdog: names a world that is stuck in its tick, with the stack that it is stuck in, while it is stuck.
//!
//! Each worker has a post on which it writes which world it ticks, and since when. A thread of its own walks by all posts
//! every [`LOOK_PERIOD`]. What has been in one tick for [`STUCK_AFTER`] it names in the log, within 100 ms of the tick's
//! begin on a host that gives the thread its core: world, kind, the scopes that are open and the stack of the thread. It has
//! a capture saved, and says in the metrics how many worlds are stuck.
//!
//! ```text
//! tick begins                      75 ms            < 100 ms
//!   |--- look --- look --- ... ------|-- look: stuck --|-- stack, names, log line
//! ```
//!
//! So is a long task that blocks, or takes far longer than others of its kind (`long`).
//!
//! When all workers have been stuck for long, or all threads for long tasks, it ends the process
//! ([`failover`](crate::failover)).
//!
//! How a stack is read and named is the business of whoever starts it ([`StackSource`]): crash reports have the same.
//!
//! A process that was stopped, or whose host took its cores, looks as if all of its worlds were stuck. So the watchdog must
//! itself have looked [`LOOKS_MIN`] times in the meantime.
//!
//! The frame's thread has no part in it but to wake the watchdog when the server has slept. Cost: a worker's tick writes
//! four words; 100 looks of some 100 ns and as many wake-ups a second, and none while the server sleeps.

mod long;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, park_timeout},
    time::Duration,
};

use throng_platform::{
    clock::Clock,
    threads::{Priority, spawn_named},
    time::Nanos,
};
use throng_profiler::{StuckTick, log_category, log_warn, world_kind};
use throng_world::ids::WorldId;

use long::LongWatch;

pub use crate::stacks::{MakeStackSource, StackSource};

use crate::{
    failover::{Failover, StuckThread},
    metrics::PublishedMetrics,
    server::Server,
    settings::ServerSettings,
    stacks::{open_scopes, stack_of},
    worker_post::{Running, WorkerPost},
    world_slot::HANG_REPORT_AFTER,
};

log_category!(WORLD = "server.world");

/// Time in one tick from which on a world is stuck. Too low → slow ticks are told as stuck worlds; too high → it is named
/// later than [`HANG_REPORT_AFTER`].
const STUCK_AFTER: Nanos = Nanos::from_millis(75);

/// Time between two looks. Too low → wake-ups for nothing; too high → a late word.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

const _: () = assert!(STUCK_AFTER.0 + LOOK_PERIOD.as_nanos() as u64 + 10_000_000 < HANG_REPORT_AFTER.0);

/// Looks at the same tick before it is called stuck: half of those that fit.
const LOOKS_MIN: u32 = 4;

/// While the server sleeps, it is woken by the frame's thread, and looks so often all the same.
const SLEEP_PERIOD: Duration = Duration::from_secs(1);

/// A world that is stuck in tick after tick is named in the log so often: its line has a stack.
const LINE_PERIOD: Nanos = Nanos::from_secs(10);

/// A capture that was refused is asked for again after so many looks: a second.
const LOOKS_TO_REPORT: u32 = 100;

/// Worlds whose lines are remembered. Beyond them the one that was named longest ago may be named again sooner.
const NAMED_MAX: usize = 256;

/// Watches until it is dropped.
pub(crate) struct Watchdog {
    /// Written once, at the end; the thread is woken after it.
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// The server is awake again. A system call.
    pub fn wake(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.wake();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Server {
    /// Has worlds that are stuck in their ticks named with their stacks, from now on; without a source, without stacks.
    /// Ends this process when all workers, or all threads for long tasks, have been stuck for longer than the settings allow.
    /// Before the first frame, on a real host: it keeps to real time.
    pub fn start_watchdog(&mut self, settings: &ServerSettings, source: Option<MakeStackSource>) -> io::Result<()> {
        let stuck_max = settings.all_workers_stuck_max();
        let is_stopping = Arc::new(AtomicBool::new(false));
        let (posts, clock, published) = (self.posts.clone(), self.clock.clone(), self.control.published());
        let mut long = LongWatch::new(self.long_tasks.tasks(), published.clone(), stuck_max);
        let until = is_stopping.clone();
        let thread = spawn_named("watchdog", Priority::Normal, move || {
            let mut watch = Watch { failover: Failover::after(stuck_max), ..Watch::new(posts, clock, published) };
            watch.source = source.map(|make| make());
            watch.source.iter_mut().for_each(|source| source.prepare());
            while !until.load(Ordering::Relaxed) {
                watch.look();
                if watch.is_over {
                    watch.end_process();
                }
                long.look(watch.source.as_deref_mut());
                if long.is_over {
                    long.end_process(watch.source.as_deref_mut());
                }
                park_timeout(if watch.published.is_sleeping() { SLEEP_PERIOD } else { LOOK_PERIOD });
            }
        })?;
        self.watchdog = Some(Watchdog { is_stopping, thread: Some(thread) });
        Ok(())
    }
}

/// What was seen at one post.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    since: Nanos,
    looks: u32,
    /// Looks at which it was stuck.
    stuck_looks: u32,
    is_named: bool,
    is_reported: bool,
}

struct Watch {
    posts: Arc<[Arc<WorkerPost>]>,
    clock: Arc<dyn Clock>,
    published: Arc<PublishedMetrics>,
    source: Option<Box<dyn StackSource>>,
    /// By post.
    seen: Vec<Seen>,
    /// Worlds with the time of their last line.
    named: Vec<(WorldId, Nanos)>,
    failover: Failover,
    /// All workers have been stuck for too long.
    is_over: bool,
}

impl Watch {
    fn new(posts: Arc<[Arc<WorkerPost>]>, clock: Arc<dyn Clock>, published: Arc<PublishedMetrics>) -> Self {
        let seen = vec![Seen::default(); posts.len()];
        let failover = Failover::after(None);
        Self { posts, clock, published, source: None, seen, named: Vec::new(), failover, is_over: false }
    }

    /// Walks by all posts once.
    fn look(&mut self) {
        let now = self.clock.now();
        let mut stuck = 0;
        for place in 0..self.posts.len() {
            let Some(running) = self.posts[place].running() else { continue };
            let seen = &mut self.seen[place];
            if seen.since != running.since {
                *seen = Seen { since: running.since, ..Seen::default() };
            }
            seen.looks += 1;
            let running_for = now.saturating_sub(running.since);
            if running_for < STUCK_AFTER || seen.looks < LOOKS_MIN {
                continue;
            }
            stuck += 1;
            self.published.set_worlds_stuck(stuck);
            self.tell(place, running, now);
        }
        self.published.set_worlds_stuck(stuck);
        // By the frame's thread, which knows of workers that help a stuck one, too.
        self.is_over |= self.failover.is_due(self.published.workers_stuck_for() > Nanos::ZERO, now);
    }

    fn end_process(&mut self) -> ! {
        let named = |Running { thread_id, world, kind, since }| StuckThread {
            thread_id,
            since,
            name: format!("world {world} ({})", self.published.kind_name(kind)),
        };
        let stuck = self.posts.iter().filter_map(|post| post.running()).map(named).collect();
        let why = "all workers were stuck in their ticks";
        self.failover.end_process(why, stuck, self.source.as_deref_mut(), self.clock.now())
    }

    /// Has the log and a capture tell of it, each once in its tick: a world that was told of just before is told of again when
    /// it is stuck for longer than that holds.
    fn tell(&mut self, place: usize, running: Running, now: Nanos) {
        if !self.seen[place].is_named && self.is_news(running.world, now) {
            self.seen[place].is_named = true;
            self.name(running);
        }
        let seen = self.seen[place];
        if !seen.is_reported && seen.stuck_looks.is_multiple_of(LOOKS_TO_REPORT) {
            self.seen[place].is_reported = self.report(running);
        }
        self.seen[place].stuck_looks += 1;
    }

    fn name(&mut self, running: Running) {
        let Running { thread_id, world, kind, since } = running;
        let kind = self.published.kind_name(kind);
        let scopes = open_scopes(thread_id).join(" > ");
        let stack = stack_of(self.source.as_deref_mut(), thread_id);
        let running_ms = self.clock.now().saturating_sub(since).as_millis_f64();
        log_warn!(WORLD, %world, kind, running_ms, thread = thread_id, scopes, stack, "a world is stuck in its tick");
    }

    /// Whether the recorder has it, or wants none.
    fn report(&self, running: Running) -> bool {
        let Some(recorder) = self.published.recorder() else { return true };
        let Running { thread_id, world, kind, since } = running;
        let stuck = StuckTick {
            world: world.number(),
            world_kind: world_kind::number_of(&self.published.kind_name(kind)),
            running_ns: self.clock.now().saturating_sub(since).0,
            allowed_ns: STUCK_AFTER.0,
        };
        let scopes = open_scopes(thread_id);
        let note = if scopes.is_empty() { String::new() } else { format!("in {}", scopes.join(" > ")) };
        recorder.report_stuck(stuck, &note)
    }

    /// Whether the log has had no line about this world for a while.
    fn is_news(&mut self, world: WorldId, now: Nanos) -> bool {
        match self.named.iter_mut().find(|(named, _)| *named == world) {
            Some((_, at)) if now < *at + LINE_PERIOD => return false,
            Some((_, at)) => *at = now,
            None => {
                if self.named.len() == NAMED_MAX {
                    let oldest = (0..NAMED_MAX).min_by_key(|&place| self.named[place].1).unwrap_or(0);
                    self.named.swap_remove(oldest);
                }
                self.named.push((world, now));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use throng_platform::{clock::ManualClock, threads::this_thread_id};
    use throng_world::ids::WorldKindId;

    use super::*;
    use crate::worker_post::AtWork;

    /// Two workers, a clock that is moved by hand, and stacks that say who was asked for.
    struct Scene {
        clock: ManualClock,
        watch: Watch,
    }

    struct Named;

    impl StackSource for Named {
        fn stack_of(&mut self, thread_id: u32) -> Result<Vec<String>, String> {
            Err(format!("thread {thread_id} was asked for"))
        }
    }

    impl Scene {
        fn new() -> Self {
            let clock = ManualClock::new();
            clock.advance(Nanos::from_secs(1));
            let shared: Arc<dyn Clock> = Arc::new(clock.clone());
            let posts = (0..2).map(|_| Arc::default()).collect();
            let mut watch = Watch::new(posts, shared.clone(), Arc::new(PublishedMetrics::new(shared)));
            watch.source = Some(Box::new(Named));
            Self { clock, watch }
        }

        fn begin(&self, worker: usize, world: u32) -> AtWork {
            self.watch.posts[worker].begin(WorldId::new(world, 3), WorldKindId(0), self.clock.now())
        }

        /// Looks every 10 ms for so long; the time after which so many worlds were stuck (ms).
        fn stuck_after_ms(&mut self, count: u64, within_ms: u64) -> Option<u64> {
            (1..=within_ms / 10).map(|step| step * 10).find(|_| {
                self.clock.advance(Nanos::from_millis(10));
                self.watch.look();
                self.watch.published.worlds_stuck() == count
            })
        }
    }

    #[test]
    fn a_world_that_is_stuck_is_known_within_100_ms_and_until_it_is_back() {
        let mut scene = Scene::new();
        let stuck = scene.begin(1, 12);
        assert_eq!(scene.stuck_after_ms(1, 200), Some(80));
        assert!(scene.watch.seen[1].is_named && !scene.watch.seen[0].is_named);
        let _other = scene.begin(0, 13);
        assert_eq!(scene.stuck_after_ms(2, 200), Some(80));
        drop(stuck);
        assert_eq!(scene.stuck_after_ms(1, 10), Some(10));
    }

    /// Promise: a world that hangs for good is named, also when it was just back from a short hang.
    #[test]
    fn a_world_that_was_named_just_now_is_named_again_if_it_stays_stuck() {
        let mut scene = Scene::new();
        let short = scene.begin(1, 12);
        assert_eq!(scene.stuck_after_ms(1, 200), Some(80));
        assert!(scene.watch.seen[1].is_named);
        drop(short);
        scene.stuck_after_ms(u64::MAX, 5_000);
        let _for_good = scene.begin(1, 12);
        scene.stuck_after_ms(u64::MAX, 4_000);
        assert!(!scene.watch.seen[1].is_named, "9 s after its line");
        scene.stuck_after_ms(u64::MAX, 2_000);
        assert!(scene.watch.seen[1].is_named, "11 s after it");
    }

    #[test]
    fn a_world_that_is_stuck_in_each_tick_has_a_line_in_a_while() {
        let mut scene = Scene::new();
        let mut lines = 0;
        for second in 0..25 {
            let now = Nanos::from_secs(second);
            lines += u32::from(scene.watch.is_news(WorldId::new(12, 3), now));
            assert!(scene.watch.is_news(WorldId::new(13 + second as u32, 0), now), "another world");
        }
        assert_eq!(lines, 3, "after 0, 10 and 20 s");
        for other in 0..2 * NAMED_MAX as u32 {
            scene.watch.is_news(WorldId::new(100 + other, 0), Nanos::from_secs(30));
        }
        assert_eq!(scene.watch.named.len(), NAMED_MAX);
    }

    #[test]
    fn worlds_that_come_back_in_time_are_not_stuck() {
        let mut scene = Scene::new();
        for _ in 0..20 {
            let _in_time = scene.begin(0, 12);
            assert_eq!(scene.stuck_after_ms(1, 70), None);
        }
    }

    /// As after SIGSTOP, or where the host took all cores.
    #[test]
    fn time_in_which_the_watchdog_did_not_look_is_nobodys_fault() {
        let mut scene = Scene::new();
        let _at_work = scene.begin(0, 12);
        scene.watch.look();
        scene.clock.advance(Nanos::from_secs(5));
        scene.watch.look();
        assert_eq!(scene.watch.published.worlds_stuck(), 0);
        assert_eq!(scene.stuck_after_ms(1, 200), Some(20), "it still runs after two more looks");
    }

    #[test]
    fn workers_that_are_all_stuck_for_too_long_are_the_servers_end() {
        let mut scene = Scene::new();
        scene.watch.failover = Failover::after(Some(Nanos::from_secs(30)));
        let _at_work = [scene.begin(0, 12), scene.begin(1, 13)];
        let mut look_for_s = |seconds: u64, all_stuck: bool| {
            scene.watch.published.set_workers_stuck_for(Nanos(u64::from(all_stuck)));
            scene.stuck_after_ms(u64::MAX, seconds * 1_000);
            scene.watch.is_over
        };
        assert!(!look_for_s(60, false), "one of them is free");
        assert!(!look_for_s(29, true));
        assert!(look_for_s(1, true));
    }

    #[test]
    fn a_post_tells_whom_it_is_about() {
        let scene = Scene::new();
        assert_eq!(scene.watch.posts[0].running(), None);
        let _at_work = scene.begin(0, 12);
        let running = scene.watch.posts[0].running().unwrap();
        let expect = Running {
            thread_id: this_thread_id(),
            world: WorldId::new(12, 3),
            kind: WorldKindId(0),
            since: Nanos::from_secs(1),
        };
        assert_eq!(running, expect);
    }
}
