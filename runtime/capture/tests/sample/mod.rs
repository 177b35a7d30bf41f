//! Captures to test with: a small one in which everything occurs, and a large one as a busy server would make it.
//!
//! The crate's unit tests use it too (`lib.rs` takes it in by path).

#![allow(dead_code)]

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_capture::model::*;

/// Sites of [`small`].
pub const FRAME: u32 = 0;
pub const TICK: u32 = 1;
pub const INTEREST: u32 = 2;
pub const PATH: u32 = 3;

fn site(name: &str, category: &str, file: &str, line: u32, budget_ns: Option<u64>) -> Site {
    let subsystem = name.rsplit_once('.').map_or(name, |(subsystem, _)| subsystem);
    Site {
        name: name.to_owned(),
        subsystem: subsystem.to_owned(),
        category: category.to_owned(),
        file: file.to_owned(),
        line,
        budget_ns,
    }
}

/// 1 ms of two threads, from 1,000,000 ns on. The frame thread ticks a world and waits for a lock that the worker has;
/// the worker looks for a path, loses its core for 100 µs, and is still at it in the end.
pub fn small() -> Capture {
    let scope = |site, begin_ns, end_ns| Event::Scope { site, begin_ns, end_ns };
    let switch = |at_ns, change| Event::Switch { at_ns, change };
    let main = vec![
        switch(1_000_000, Switch::Running { core: 0 }),
        Event::World { at_ns: 1_050_000, world: Some(7), tick: 42 },
        scope(INTEREST, 1_100_000, 1_200_000),
        Event::Allocations { count: 3, frees: 1, bytes: 4_096 },
        scope(INTEREST, 1_200_000, 1_250_000),
        switch(1_300_000, Switch::Blocked),
        switch(1_500_000, Switch::Running { core: 1 }),
        Event::LockWait {
            lock: 0,
            begin_ns: 1_290_000,
            end_ns: 1_510_000,
            holder: Some(Holder { thread: 1, site: Some(PATH), world: None }),
        },
        scope(TICK, 1_060_000, 1_600_000),
        Event::World { at_ns: 1_610_000, world: None, tick: 0 },
        Event::Count { at_ns: 1_620_000, counter: 0, value: 12.5 },
        scope(FRAME, 1_000_000, 1_900_000),
        Event::Allocations { count: 1, frees: 0, bytes: 64 },
    ];
    let worker = vec![
        Event::PageFault { at_ns: 1_150_000 },
        Event::LargeAllocation { at_ns: 1_160_000, bytes: 9_000_000 },
        switch(1_400_000, Switch::Preempted),
        switch(1_500_000, Switch::Running { core: 0 }),
        Event::OpenScope { site: PATH, begin_ns: 1_100_000 },
    ];
    Capture {
        about: About {
            build: "throng 0.1.0 (abc1234)".to_owned(),
            game: "precinct".to_owned(),
            cores: 2,
            saved_unix_s: 1_800_000_000,
            trigger: Trigger {
                kind: TriggerKind::LockWait,
                name: "levels".to_owned(),
                measured: 220_000,
                allowed: 100_000,
                world: Some(7),
                at_ns: 1_510_000,
                note: "waited too long".to_owned(),
            },
            begin_ns: 1_000_000,
            end_ns: 2_000_000,
            frame: 99,
            switches: SwitchSource::CpuWide,
            switches_why_not: String::new(),
            records_lost: 2,
            has_free_text: true,
        },
        sites: vec![
            site("frame", "other", "runtime/server/src/frame.rs", 10, Some(16_000_000)),
            site("world.tick", "gameplay", "runtime/server/src/game_world.rs", 20, None),
            site("replication.interest", "replication", "runtime/replication/src/interest.rs", 30, Some(90_000)),
            site("query.path", "ai", "runtime/query/src/path.rs", 40, None),
        ],
        threads: vec![
            Thread { name: "frame".to_owned(), tid: 100, class: ThreadClass::Frame, events: main },
            Thread { name: "long 0".to_owned(), tid: 101, class: ThreadClass::LongTask, events: worker },
        ],
        worlds: vec![World { id: 7, name: "hideout".to_owned(), tick_hz: 20 }],
        locks: vec![Lock { name: "levels".to_owned() }],
        frames: vec![Frame {
            number: 99,
            begin_ns: 1_000_000,
            end_ns: 1_900_000,
            budget_ns: 500_000,
            threads: vec![FrameThread { thread: 0, running_ns: 700_000, waiting_ns: 0, blocked_ns: 200_000 }],
        }],
        counters: vec![Counter { name: "clients".to_owned() }],
        logs: vec![LogLine {
            at_ns: 1_550_000,
            thread: 0,
            level: "warn".to_owned(),
            target: "throng::front_door".to_owned(),
            text: "\"Mallory\" at 203.0.113.9:4000 sent junk".to_owned(),
        }],
        memory: Memory {
            at_ns: vec![1_000_000, 1_500_000],
            by_site: vec![
                LiveBytes { site: Some(PATH), bytes: vec![1_000, 9_001_000] },
                LiveBytes { site: None, bytes: vec![5_000, 4_000] },
            ],
        },
        processes: vec![ProcessShare { pid: 4_711, name: "backup".to_owned(), cores: 0.75 }],
        host_threads: vec![
            HostThread {
                pid: 100,
                tid: 100,
                owner: Owner::Own,
                name: "frame".to_owned(),
                process: "throng".to_owned(),
            },
            HostThread {
                pid: 4_711,
                tid: 4_712,
                owner: Owner::Foreign,
                name: "zip".to_owned(),
                process: "backup".to_owned(),
            },
            HostThread { owner: Owner::Idle, name: "idle".to_owned(), ..HostThread::default() },
        ],
        cores: vec![
            Core {
                number: 0,
                runs: [(1_000_000, Some(0)), (1_400_000, Some(1)), (1_500_000, None), (1_600_000, Some(2))]
                    .map(|(at_ns, thread)| CoreRun { at_ns, thread })
                    .to_vec(),
            },
            Core { number: 3, runs: Vec::new() },
        ],
        host_stalls: vec![HostStall { core: 3, begin_ns: 1_100_000, end_ns: 1_350_000 }],
    }
}

/// [`small`] with every name and text such that a format could trip over it, and with times that no clock would give.
pub fn hostile() -> Capture {
    let mut capture = small();
    let nasty = "a\";b\n\\c\u{1b}[31m\u{202e}\u{0}(1) \u{fffd}é 😀 fn=x;";
    for site in &mut capture.sites {
        site.name += nasty;
        site.file += nasty;
        site.category += nasty;
    }
    let names = capture.threads.iter_mut().map(|thread| &mut thread.name);
    let names = names.chain(capture.locks.iter_mut().map(|lock| &mut lock.name));
    let names = names.chain(capture.counters.iter_mut().map(|counter| &mut counter.name));
    let names = names.chain(capture.worlds.iter_mut().map(|world| &mut world.name));
    names.for_each(|name| name.push_str(nasty));
    let log = &mut capture.logs[0];
    log.text = nasty.repeat(3_000);
    log.level += nasty;
    log.target += nasty;
    capture.about.game += nasty;
    capture.about.build += nasty;
    capture.about.trigger.note += nasty;
    capture.about.trigger.name += nasty;
    let worker = &mut capture.threads[1];
    // Backwards, overlapping, empty, beyond the capture, and never ending; and the same thread id again.
    worker.tid = 100;
    for (begin_ns, end_ns) in [
        (1_900_000, 1_100_000),
        (1_200_000, 1_300_000),
        (1_250_000, 1_350_000),
        (1_250_000, 1_250_000),
        (0, u64::MAX),
        (u64::MAX, u64::MAX),
        (5, 7),
    ] {
        worker.events.push(Event::Scope { site: TICK, begin_ns, end_ns });
    }
    worker.events.push(Event::Switch { at_ns: 3, change: Switch::Blocked });
    worker.events.push(Event::OpenScope { site: FRAME, begin_ns: u64::MAX });
    worker.events.push(Event::Count { at_ns: 9, counter: 0, value: f32::INFINITY });
    capture
}

/// Four threads of 40 sites, each with about `scopes` scopes: ticks that hold systems that hold calls, with durations
/// spread evenly over their orders of magnitude, short ones mostly; now and then a scope begins where the one before it
/// ended.
pub fn busy(scopes: usize, seed: u64) -> Capture {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let sites: Vec<Site> = (0..40)
        .map(|index| {
            site(
                &format!("part{}.step{index}", index % 8),
                "gameplay",
                &format!("src/part{}.rs", index % 8),
                index,
                None,
            )
        })
        .collect();
    let threads = (0..4_u32).map(|index| {
        let mut walk = Walk { random: &mut random, events: Vec::new(), now_ns: 0 };
        while walk.events.len() < scopes {
            walk.scope(0);
            walk.now_ns += walk.spread(2_000.0, 200_000.0);
        }
        Thread { name: format!("worker {index}"), tid: 200 + index, class: ThreadClass::ShortTask, events: walk.events }
    });
    let threads: Vec<Thread> = threads.collect();
    let ends = threads.iter().filter_map(|thread| match thread.events.last() {
        Some(Event::Scope { end_ns, .. }) => Some(*end_ns),
        _ => None,
    });
    let about = About { end_ns: ends.max().unwrap_or(0), ..small().about };
    Capture { about: About { begin_ns: 0, ..about }, sites, threads, ..Capture::default() }
}

struct Walk<'a> {
    random: &'a mut Xoshiro256PlusPlus,
    events: Vec<Event>,
    now_ns: u64,
}

impl Walk<'_> {
    /// Even over the orders of magnitude between the two.
    fn spread(&mut self, least: f64, most: f64) -> u64 {
        (least * (most / least).powf(self.random.random::<f64>())) as u64
    }

    fn scope(&mut self, depth: u32) {
        let begin_ns = self.now_ns;
        let children = match depth {
            0 => self.random.random_range(2..12),
            1 | 2 if self.random.random_bool(0.4) => self.random.random_range(1..8),
            _ => 0,
        };
        if children == 0 {
            self.now_ns += self.spread(200.0, 200_000.0);
        }
        for _ in 0..children {
            if self.random.random_bool(0.8) {
                self.now_ns += self.spread(20.0, 2_000.0);
            }
            self.scope(depth + 1);
        }
        if children > 0 {
            self.now_ns += self.spread(20.0, 2_000.0);
        }
        let site = depth * 10 + self.random.random_range(0..10);
        self.events.push(Event::Scope { site, begin_ns, end_ns: self.now_ns });
    }
}
