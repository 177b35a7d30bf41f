//! Captures made up around one fault each, and what their stories say.

use super::*;
use crate::model::*;

mod any_capture;
mod host;
mod memory;
mod while_it_ran;

const MS: u64 = 1_000_000;
/// Threads of [`usual`].
const FRAME: usize = 0;
const WORKER_0: usize = 1;
const WORKER_1: usize = 2;
const LONG: usize = 3;
const CHATTER: usize = 4;
/// Sites of [`usual`].
const TICK: u32 = 0;
const AI: u32 = 1;
const INFLICT: u32 = 2;
const LEDGER: u32 = 3;
const FLUSH: u32 = 4;
const WAIT: u32 = 5;
const CHAT: u32 = 6;
const INVENTORY: u32 = 7;
const CACHE: u32 = 8;
/// The frame in which things go wrong: it lasts from 100 ms to 150 ms.
const BAD: u64 = 812;
const BAD_BEGIN_NS: u64 = 100 * MS;

/// Five frames of 50 ms from 810 on, in each of which each worker ticks a world for 4 ms with 1 ms of AI in it.
fn usual() -> Capture {
    let site = |name: &str, subsystem: &str, category: &str| Site {
        name: name.into(),
        subsystem: subsystem.into(),
        category: category.into(),
        file: "worlds.rs".into(),
        line: 7,
        budget_ns: None,
    };
    let thread = |name: &str, tid, class| Thread { name: name.into(), tid, class, events: vec![] };
    let mut capture = Capture {
        about: About {
            build: "throng 0.1.0 (abc1234)".into(),
            game: "precinct".into(),
            cores: 2,
            saved_unix_s: 1_795_238_782,
            end_ns: 250 * MS,
            frame: BAD,
            switches: SwitchSource::PerfEvent,
            ..About::default()
        },
        sites: vec![
            site("server.tick", "server", "other"),
            site("ai.think", "ai", "gameplay"),
            site("game.inflict", "game", "gameplay"),
            site("hideout.ledger", "hideout", "gameplay"),
            site("save.flush", "save", "other"),
            site("server.wait", "server", "other"),
            site("net.chatter", "net", "network"),
            site("game.inventory", "game", "equipment"),
            site("game.cache", "game", "gameplay"),
        ],
        threads: vec![
            thread("frame", 100, ThreadClass::Frame),
            thread("worker-0", 101, ThreadClass::ShortTask),
            thread("worker-1", 102, ThreadClass::ShortTask),
            thread("save-0", 103, ThreadClass::LongTask),
            thread("chatter", 104, ThreadClass::Other),
        ],
        worlds: [(3, "hub"), (12, "hideout"), (17, "hideout")]
            .map(|(id, name)| World { id, name: name.into(), tick_hz: 20 })
            .to_vec(),
        locks: vec![Lock { name: "precinct.ledger".into() }],
        ..Capture::default()
    };
    for number in 810..815 {
        let begin_ns = (number - 810) * 50 * MS;
        capture.frames.push(Frame {
            number,
            begin_ns,
            end_ns: begin_ns + 50 * MS,
            budget_ns: 50 * MS,
            threads: vec![],
        });
        let frame = &mut capture.threads[FRAME].events;
        frame.extend(running(begin_ns, begin_ns + MS, 0));
        frame.push(switch(begin_ns + 49 * MS, Switch::Running { core: 0 }));
        frame.push(scope(WAIT, begin_ns, begin_ns + 49 * MS + MS / 2));
        if number == BAD {
            continue;
        }
        for (worker, id) in [(WORKER_0, 12), (WORKER_1, 3)] {
            let events = &mut capture.threads[worker].events;
            events.extend([switch(begin_ns, Switch::Running { core: 1 }), world(begin_ns, Some(id), number as u32)]);
            events.extend([scope(AI, begin_ns + MS, begin_ns + 2 * MS), scope(TICK, begin_ns, begin_ns + 4 * MS)]);
            events.extend([world(begin_ns + 4 * MS, None, 0), switch(begin_ns + 4 * MS, Switch::Blocked)]);
        }
    }
    capture
}

/// [`usual`] with a trigger and with `events` of the bad frame, whose times are in ms from its beginning.
fn faulty(kind: TriggerKind, name: &str, measured: u64, allowed: u64, events: Vec<(usize, Vec<Event>)>) -> Capture {
    let mut capture = usual();
    capture.about.trigger =
        Trigger { kind, name: name.into(), measured, allowed, at_ns: BAD_BEGIN_NS + 45 * MS, ..Trigger::default() };
    for (thread, mut events) in events {
        let list = &mut capture.threads[thread].events;
        // Where the bad frame's events belong: after all that ended before it.
        let place = list.iter().position(|event| end_of(event) > BAD_BEGIN_NS).unwrap_or(list.len());
        list.splice(place..place, events.drain(..));
    }
    capture
}

fn end_of(event: &Event) -> u64 {
    match *event {
        Event::Scope { end_ns, .. } | Event::LockWait { end_ns, .. } => end_ns,
        Event::World { at_ns, .. } | Event::Switch { at_ns, .. } => at_ns,
        _ => 0,
    }
}

fn at(ms: f64) -> u64 {
    BAD_BEGIN_NS + (ms * MS as f64) as u64
}

fn scope(site: u32, begin_ns: u64, end_ns: u64) -> Event {
    Event::Scope { site, begin_ns, end_ns }
}

fn world(at_ns: u64, world: Option<u32>, tick: u32) -> Event {
    Event::World { at_ns, world, tick }
}

fn switch(at_ns: u64, change: Switch) -> Event {
    Event::Switch { at_ns, change }
}

fn running(begin_ns: u64, end_ns: u64, core: u32) -> [Event; 2] {
    [switch(begin_ns, Switch::Running { core }), switch(end_ns, Switch::Blocked)]
}

fn story_of(capture: &Capture) -> String {
    let mut text = Vec::new();
    tell(capture, &Options::default())
        .expect("it has a frame")
        .write_text(false, &mut text)
        .expect("memory takes every byte");
    let text = String::from_utf8(text).expect("text");
    for line in text.lines() {
        assert!(line.chars().count() <= text::COLUMNS_MAX, "too wide: {line}");
    }
    text
}

/// The verdict, and lines that the story must have, with runs of spaces as one.
#[track_caller]
fn check(capture: &Capture, verdict: &str, lines: &[&str]) {
    let text = story_of(capture);
    let story = tell(capture, &Options::default()).expect("the frame is there");
    assert_eq!(story.verdict, verdict);
    let told: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in lines {
        assert!(told.iter().any(|it| it == line), "{line:?} is not in\n{text}");
    }
}

fn slow_world() -> Capture {
    let events = vec![
        switch(at(0.0), Switch::Running { core: 1 }),
        world(at(0.0), Some(17), 812),
        scope(INFLICT, at(1.0), at(42.3)),
        scope(TICK, at(0.5), at(43.0)),
        world(at(43.0), None, 0),
        switch(at(43.0), Switch::Blocked),
    ];
    faulty(TriggerKind::Scope, "game.inflict", 41_300_000, 10 * MS, vec![(WORKER_0, events)])
}

#[test]
fn one_slow_world_is_named_with_its_scope() {
    check(
        &slow_world(),
        "world 17 (hideout) took 41.3 ms in game.inflict, budget 10 ms: 41.3 ms of it in game.inflict itself, running",
        &[
            "17 (hideout), tick 812 43.00 43.00 0.00 0.00 0.00 game.inflict",
            "game.inflict 41.30 41.30 0.00 0.00 0.00 1 x",
        ],
    );
    let mut capture = slow_world();
    capture.about.trigger.kind = TriggerKind::Frame;
    capture.about.trigger.measured = 58 * MS;
    capture.about.trigger.allowed = 50 * MS;
    check(&capture, "frame 812 took 58 ms, budget 50 ms: world 17 (hideout) took 43 ms in game.inflict", &[]);
}

#[test]
fn a_lock_held_by_a_long_task_is_a_priority_inversion_with_both_scopes() {
    let holder = Holder { thread: LONG as u32, site: Some(FLUSH), world: None };
    let events = vec![
        switch(at(0.0), Switch::Running { core: 1 }),
        world(at(0.0), Some(12), 812),
        switch(at(1.0), Switch::Blocked),
        switch(at(43.1), Switch::Running { core: 1 }),
        Event::LockWait { lock: 0, begin_ns: at(1.0), end_ns: at(43.1), holder: Some(holder) },
        scope(LEDGER, at(0.5), at(43.5)),
        scope(TICK, at(0.0), at(44.0)),
        world(at(44.0), None, 0),
        switch(at(44.0), Switch::Blocked),
    ];
    let mut long = running(at(0.0), at(44.0), 0).to_vec();
    long.push(scope(FLUSH, at(0.0), at(44.0)));
    let events = vec![(WORKER_0, events), (LONG, long)];
    let mut capture = faulty(TriggerKind::LockWait, "precinct.ledger", 42_100_000, 10 * MS, events);
    let sentence = "worker-0 waited 42.1 ms for lock \"precinct.ledger\" in scope hideout.ledger of world 12 (hideout); \
                    long-task thread save-0 held it in scope save.flush: priority inversion";
    let row = "42.10 ms: worker-0 for \"precinct.ledger\" in hideout.ledger of world 12, held by save-0 (long-task) in";
    check(&capture, sentence, &[row, "save.flush PRIORITY INVERSION", "hideout.ledger 43.00 0.90 0.00 42.10 0.00 1 x"]);
    capture.about.trigger = Trigger {
        kind: TriggerKind::Scope,
        name: "hideout.ledger".into(),
        measured: 43 * MS,
        allowed: MS,
        ..capture.about.trigger
    };
    check(&capture, &format!("world 12 (hideout) took 43 ms in hideout.ledger, budget 1.00 ms: {sentence}"), &[]);
}

fn without_a_core(trigger: &str, waited_ms: f64, long: Vec<Event>) -> Capture {
    let events = vec![
        switch(at(0.0), Switch::Running { core: 1 }),
        world(at(0.0), Some(3), 812),
        switch(at(2.0), Switch::Preempted),
        switch(at(2.0 + waited_ms), Switch::Running { core: 1 }),
        scope(TICK, at(0.0), at(4.0 + waited_ms)),
        world(at(4.0 + waited_ms), None, 0),
        switch(at(4.0 + waited_ms), Switch::Blocked),
    ];
    let measured = (waited_ms * MS as f64) as u64;
    let mut capture = faulty(TriggerKind::RunQueue, trigger, measured, 5 * MS, vec![(WORKER_1, events), (LONG, long)]);
    capture.about.trigger.at_ns = at(2.0 + waited_ms);
    capture.processes = vec![
        ProcessShare { pid: 312, name: "sh".into(), cores: 0.98 },
        ProcessShare { pid: 313, name: "cc1".into(), cores: 0.4 },
    ];
    capture
}

#[test]
fn a_late_tick_is_told_by_what_it_took_or_by_what_it_waited_for() {
    let late = |capture: &mut Capture, world: u32, measured: u64| {
        capture.about.trigger = Trigger {
            kind: TriggerKind::Tick,
            name: "server.tick".into(),
            measured,
            allowed: 5 * MS,
            world: Some(world),
            at_ns: at(45.0),
            note: String::new(),
        };
    };
    let mut capture = slow_world();
    late(&mut capture, 17, 18 * MS);
    check(
        &capture,
        "a tick of world 17 (hideout) ended 18 ms after its period: it took 42.5 ms; 41.3 ms of it in game.inflict, \
         running",
        &[],
    );

    let mut capture = without_a_core("worker-1", 35.0, vec![]);
    let events = &mut capture.threads[WORKER_1].events;
    let place = events.iter().position(|event| end_of(event) > at(39.0)).unwrap_or(events.len());
    let next = [world(at(39.0), Some(12), 812), scope(TICK, at(39.0), at(40.0)), world(at(40.0), None, 0)];
    events.splice(place..place, next);
    late(&mut capture, 12, 35 * MS);
    let verdict = tell(&capture, &Options::default()).expect("the frame is there").verdict;
    let began = "a tick of world 12 (hideout) ended 35 ms after its period: it began late: the cores were taken by other \
                 processes: worker-1 was ready and had no core for 35 ms";
    assert!(verdict.starts_with(began), "{verdict}");

    // A short run of a world that was due long before, behind a long one of another's.
    let mut capture = slow_world();
    let events = &mut capture.threads[WORKER_0].events;
    let place = events.iter().position(|event| end_of(event) > at(44.0)).unwrap_or(events.len());
    let next = [world(at(43.0), Some(12), 812), scope(TICK, at(43.0), at(44.0)), world(at(44.0), None, 0)];
    events.splice(place..place, next);
    late(&mut capture, 12, 6 * MS);
    check(
        &capture,
        "a tick of world 12 (hideout) ended 6.00 ms after its period: it began late: worker-0 had other worlds for \
         42.5 ms before it",
        &[],
    );
    // Nothing that the capture shows.
    late(&mut capture, 12, 300 * MS);
    check(&capture, "a tick of world 12 (hideout) ended 300 ms after its period: it began late", &[]);
    // A capture may say anything.
    late(&mut capture, 12, u64::MAX);
    story_of(&capture);
    let strange = capture.threads[WORKER_0].events.iter_mut().filter_map(|event| match event {
        Event::Scope { begin_ns, end_ns, .. } => Some((begin_ns, end_ns)),
        _ => None,
    });
    strange.for_each(|(begin_ns, end_ns)| std::mem::swap(begin_ns, end_ns));
    story_of(&capture);
}

#[test]
fn cores_taken_by_other_processes_are_told_from_those_taken_by_our_own() {
    let capture = without_a_core("worker-1", 35.0, vec![]);
    check(
        &capture,
        "the cores were taken by other processes: worker-1 was ready and had no core for 35 ms; busiest: sh (pid 312) \
         0.98 cores",
        &[
            "35.00 ms: worker-1, 2.00 ms into the frame; meanwhile ran none of our threads",
            "sh (pid 312) 0.98, cc1 (pid 313) 0.40",
        ],
    );
}

/// A tick of world 3 that runs, waits for a core, and ends after `waited_ms` more than it ran.
fn runs_and_waits(ran_ms: f64, waited_ms: f64) -> Capture {
    let mut capture = without_a_core("worker-1", waited_ms, vec![]);
    let events = &mut capture.threads[WORKER_1].events;
    let end = at(4.0 + waited_ms);
    let place = events.iter().position(|event| end_of(event) == end).expect("its end");
    let later = at(2.0 + ran_ms + waited_ms);
    events.insert(place, scope(INFLICT, at(2.0 + waited_ms), later));
    for event in &mut events[place..] {
        match event {
            Event::Scope { end_ns, .. } if *end_ns == end => *end_ns = later,
            Event::World { at_ns, .. } | Event::Switch { at_ns, .. } if *at_ns == end => *at_ns = later,
            _ => {}
        }
    }
    capture.about.trigger = Trigger {
        kind: TriggerKind::Scope,
        name: "server.tick".into(),
        measured: later - at(0.0),
        allowed: 10 * MS,
        at_ns: later,
        ..Trigger::default()
    };
    capture
}

#[test]
fn what_is_too_long_by_itself_is_told_before_what_it_waited_for() {
    check(
        &runs_and_waits(23.0, 15.0),
        "world 3 (hub) took 40 ms in server.tick, budget 10 ms: it ran for 25 ms of that, which alone is too long, most in \
         game.inflict (23 ms); besides, the cores were taken by other processes: worker-1 was ready and had no core for 15 ms \
         of 40 ms; busiest: sh (pid 312) 0.98 cores",
        &[],
    );
    // A little too long, and made long by the wait.
    let verdict = tell(&runs_and_waits(9.0, 29.0), &Options::default()).expect("the frame is there").verdict;
    assert!(verdict.contains("budget 10 ms: the cores were taken by other processes"), "{verdict}");

    let of_frame = |mut capture: Capture, budget_ns: u64| {
        capture.frames.iter_mut().for_each(|frame| frame.budget_ns = budget_ns);
        let (measured, allowed) = (50 * MS, budget_ns);
        capture.about.trigger = Trigger { kind: TriggerKind::Frame, measured, allowed, ..Trigger::default() };
        tell(&capture, &Options::default()).expect("the frame is there").verdict
    };
    let verdict = of_frame(runs_and_waits(44.5, 2.0), 46 * MS);
    let world = "world 3 (hub) took 48.5 ms in game.inflict, and ran for 46.5 ms of that";
    assert_eq!(verdict, format!("frame 812 took 50 ms, budget 46 ms: {world}"));
    // A frame that was not closed on time waited for something, whatever its worlds did.
    let verdict = of_frame(runs_and_waits(23.0, 15.0), 16 * MS);
    assert!(verdict.contains("budget 16 ms: the cores were taken by other processes"), "{verdict}");
}

#[test]
fn our_own_long_task_on_the_core_of_a_waiting_worker_is_named() {
    let mut capture = without_a_core("worker-1", 23.0, running(at(2.0), at(24.5), 1).to_vec());
    capture.threads[LONG].name = "export-0".into();
    check(
        &capture,
        "our own long task export-0 ran on core 1 while worker-1 waited 23 ms for it",
        &["23.00 ms: worker-1, 2.00 ms into the frame; meanwhile ran export-0 (long-task) 22.50 ms on core 1"],
    );
}

/// The wait of the frame's thread between two frames, from 145 to 156.3 ms, after a wake-up, with 16 exports on both
/// cores.
fn exports_between_frames() -> Capture {
    let mut capture = faulty(TriggerKind::RunQueue, "frame", 11_300_000, 5 * MS, vec![]);
    capture.about.trigger.at_ns = at(56.3);
    let frame = &mut capture.threads[FRAME].events;
    frame.retain(|event| !(at(40.0)..at(60.0)).contains(&end_of(event)));
    let place = frame.iter().position(|event| end_of(event) > at(40.0)).expect("frames go on");
    frame.insert(place, switch(at(56.3), Switch::Running { core: 0 }));
    for number in 0..16u32 {
        let begin = 45.0 + f64::from(number / 2) * 1.3;
        // The ninth ran a little longer than the others.
        let length = if number == 8 { 1.3 } else { 1.0 };
        let mut events = running(at(begin), at(begin + length), number % 2).to_vec();
        events.insert(1, scope(FLUSH, at(begin + 0.1), at(begin + length)));
        capture.threads.push(Thread {
            name: format!("export-{number}"),
            tid: 200 + number,
            class: ThreadClass::LongTask,
            events,
        });
    }
    capture
}

#[test]
fn many_long_tasks_share_the_blame_for_a_wait_between_frames() {
    let capture = exports_between_frames();
    check(
        &capture,
        "our own long tasks ran while frame waited 11.3 ms for a core: export-8 and 15 more, most in save.flush",
        &[],
    );
}

#[test]
fn a_long_task_that_ran_little_is_not_blamed() {
    let mut capture = exports_between_frames();
    capture.threads.truncate(6);
    for worker in [WORKER_0, WORKER_1] {
        capture.threads[worker].events.clear();
    }
    capture.processes = vec![ProcessShare { pid: 9, name: "top".into(), cores: 0.01 }];
    let unknown = "frame was ready and had no core for 11.3 ms; who had the cores is not known";
    check(
        &capture,
        &format!(
            "{unknown}; of our own, long-task thread export-0 ran for 1.00 ms of it; other processes, busiest: top (pid 9) \
             0.01 cores"
        ),
        &["top (pid 9) 0.01"],
    );
    capture.processes.clear();
    capture.threads.truncate(5);
    check(&capture, unknown, &[]);
}

#[test]
fn processes_of_one_name_are_summed() {
    let mut capture = without_a_core("worker-1", 35.0, vec![]);
    let share = |pid, name: &str, cores| ProcessShare { pid, name: name.into(), cores };
    capture.processes = (0..16).map(|number| share(312 + number, "sh", 0.125)).collect();
    capture.processes.insert(0, share(7, "cc1", 0.4));
    check(
        &capture,
        "the cores were taken by other processes: worker-1 was ready and had no core for 35 ms; busiest: 16 x sh 2.00 cores \
         (pid 312, ...)",
        &["16 x sh 2.00 (pid 312, ...), cc1 (pid 7) 0.40"],
    );
}

/// A tick of world 12 from 20 ms of the bad frame to 10 ms into the next one, of which 28 ms are in a scope inside it.
fn tick_over_two_frames(inner: [Event; 2]) -> Capture {
    let mut events = vec![switch(at(20.0), Switch::Running { core: 1 }), world(at(20.0), Some(12), 812)];
    events.extend(inner);
    events.extend([
        scope(INFLICT, at(21.0), at(59.0)),
        scope(TICK, at(20.0), at(60.0)),
        world(at(60.0), None, 0),
        switch(at(60.0), Switch::Blocked),
    ]);
    let mut capture = faulty(TriggerKind::Scope, "server.tick", 40 * MS, 25 * MS, vec![(WORKER_0, events)]);
    capture.about.trigger.at_ns = at(60.0);
    capture.about.frame = BAD + 1;
    // What the worker usually does in the next frame it cannot do now.
    let mut kept = 0;
    capture.threads[WORKER_0].events.retain(|event| {
        kept += 1;
        kept <= 6 + 2 * 6 + 2 || end_of(event) > at(100.0)
    });
    capture
}

#[test]
fn a_scope_is_explained_by_the_dearest_scope_inside_it_in_the_frame_that_has_most_of_it() {
    let busy = [Event::PageFault { at_ns: at(22.0) }, Event::PageFault { at_ns: at(23.0) }];
    let capture = tick_over_two_frames(busy);
    check(
        &capture,
        "world 12 (hideout) took 40 ms in server.tick, budget 25 ms: 38 ms of it in game.inflict, running",
        &[
            "12 (hideout), tick 812 30.00 30.00 0.00 0.00 4.00 game.inflict",
            "frame 812: 50 ms, budget 50 ms, usually 50 ms (3 other frames)",
        ],
    );
    let asleep = [switch(at(22.0), Switch::Blocked), switch(at(58.0), Switch::Running { core: 1 })];
    check(
        &tick_over_two_frames(asleep),
        "world 12 (hideout) took 40 ms in server.tick, budget 25 ms: 38 ms of it in game.inflict, asleep",
        &[],
    );
}

#[test]
fn waits_after_wakeups_are_in_the_scopes_as_in_the_row_of_the_thread() {
    let asleep = [switch(at(22.0), Switch::Blocked), switch(at(42.0), Switch::Running { core: 1 })];
    let mut capture = tick_over_two_frames(asleep);
    capture.frames[2].threads =
        vec![FrameThread { thread: WORKER_0 as u32, running_ns: 10 * MS, waiting_ns: 8 * MS, blocked_ns: 32 * MS }];
    let story = tell(&capture, &Options::default()).expect("a story");
    let waiting_ms: f64 = story.scopes.iter().map(|scope| scope.waiting_ms).sum();
    let worker = story.threads.iter().find(|thread| thread.name == "worker-0").expect("it is there");
    // It slept for 20 ms in the scope, and before it for 20 ms in none.
    assert_eq!((waiting_ms, worker.waiting_ms), (4.0, 8.0), "{:?}", story.scopes);
}

#[test]
fn the_verdict_is_a_text_of_its_own_in_json() {
    let story = tell(&slow_world(), &Options::default()).expect("a story");
    let json = serde_json::to_value(&story).expect("JSON");
    assert_eq!(json["verdict"].as_str(), Some(story.verdict.as_str()));
}

#[test]
fn a_frame_without_its_cores_says_so_too() {
    let mut capture = without_a_core("", 35.0, vec![]);
    capture.about.trigger =
        Trigger { kind: TriggerKind::Frame, measured: 62 * MS, allowed: 50 * MS, ..Trigger::default() };
    check(
        &capture,
        "frame 812 took 62 ms, budget 50 ms: the cores were taken by other processes: worker-1 was ready and had no core for \
         35 ms of 50 ms; busiest: sh (pid 312) 0.98 cores",
        &[],
    );
}

#[test]
fn a_subsystem_over_its_budget_is_named_with_its_dearest_worlds() {
    let tick = |id, ms: f64, begin: f64| {
        vec![
            switch(at(begin), Switch::Running { core: 1 }),
            world(at(begin), Some(id), 812),
            scope(AI, at(begin + 0.1), at(begin + 0.1 + ms)),
            scope(TICK, at(begin), at(begin + 1.0)),
            world(at(begin + 1.0), None, 0),
            switch(at(begin + 1.0), Switch::Blocked),
        ]
    };
    let events = vec![(WORKER_0, tick(17, 0.82, 0.0)), (WORKER_1, tick(3, 0.4, 0.0))];
    let capture = faulty(TriggerKind::Subsystem, "ai", 1_220_000, MS, events);
    check(
        &capture,
        "subsystem ai took 1.22 ms in frame 812, 22 % over its budget of 1.00 ms; dearest worlds 17 (hideout) 0.82 ms, 3 (hub) \
         0.40 ms",
        &["ai 1.22 1.22 0.00 0.00 2.00 budget 1.00"],
    );

    // The budget of one kind of world: the others have no part in it.
    let events = vec![(WORKER_0, tick(17, 0.82, 0.0)), (WORKER_1, tick(3, 0.4, 0.0))];
    let capture = faulty(TriggerKind::Subsystem, "ai@hideout", 820_000, MS / 2, events);
    check(
        &capture,
        "subsystem ai took 0.82 ms in worlds of kind hideout in frame 812, 64 % over its budget of 0.50 ms; dearest worlds 17 \
         (hideout) 0.82 ms",
        &["ai 1.22 1.22 0.00 0.00 2.00"],
    );

    // Its budget for one tick, which may be less than a microsecond.
    let events = vec![(WORKER_0, tick(17, 0.82, 0.0)), (WORKER_1, tick(3, 0.4, 0.0))];
    let capture = faulty(TriggerKind::Subsystem, "ai per tick@hideout", 700, 500, events);
    check(
        &capture,
        "subsystem ai took 0.7 us in worlds of kind hideout per tick, on average, 40 % over its budget of 0.5 us; dearest \
         worlds 17 (hideout) 0.82 ms",
        &["ai 1.22 1.22 0.00 0.00 2.00"],
    );
}

#[test]
fn busy_workers_are_told_by_what_they_did_in_each_kind_of_world() {
    let events = vec![
        switch(at(0.0), Switch::Running { core: 1 }),
        world(at(0.0), Some(17), 812),
        scope(AI, at(1.0), at(31.0)),
        scope(TICK, at(0.0), at(40.0)),
        world(at(40.0), None, 0),
        switch(at(40.0), Switch::Blocked),
    ];
    // Two usual frames before it are in the capture.
    let mut capture = faulty(TriggerKind::WorkersBusy, "", 97, 95, vec![(WORKER_0, events)]);
    check(
        &capture,
        "the workers were busy for 97 % of 12 frames in a row, allowed 95 %: they had worlds of kind hideout for 48 ms (ai \
         32 ms, server 16 ms); worlds of kind hub for 8.00 ms (server 6.00 ms, ai 2.00 ms)",
        &["trigger: workers-busy, 97 % measured, 95 % allowed, frame 812"],
    );
    // Worlds that the recorder knew nothing of.
    capture.worlds.clear();
    check(&capture, "the workers were busy for 97 % of 12 frames in a row, allowed 95 %", &[]);
}

#[test]
fn the_whole_story_of_a_slow_world_fits_one_screen() {
    let mut capture = slow_world();
    capture.about.trigger.world = Some(17);
    capture.logs = vec![LogLine {
        at_ns: at(44.0),
        thread: WORKER_0 as u32,
        level: "warn".into(),
        target: "server.tick".into(),
        text: "world 17 is late\n\x1b[31mby 12 ticks".into(),
    }];
    let expect = r#"world 17 (hideout) took 41.3 ms in game.inflict, budget 10 ms: 41.3 ms of it in game.inflict itself, running

  throng 0.1.0 (abc1234), game precinct, 2 cores; saved 2026-11-21 05:26:22 UTC
  trigger: scope game.inflict, 41.3 ms measured, 10 ms allowed, world 17 (hideout), frame 812
  covers 0.2 s, 5 frames, 5 threads, 3 worlds; 0 records lost
  context switches: all of our threads (perf_event)

frame 812: 50 ms, budget 50 ms, usually 50 ms (4 other frames)
  thread (ms)          class        running   no core   blocked                         usually    no scope
  frame                frame           2.00      0.00     48.00        2.00      0.00     48.00        0.50
  worker-0             short-task     43.00      0.00      7.00        4.00      0.00     46.00        7.50
  worker-1             short-task      0.00      0.00     50.00        4.00      0.00     46.00       50.00
  in no scope: 1.0 % of the frame thread's time, 2.2 % of the time that frame and short-task threads were busy

worlds, 1 in all (ms)                  wall   running   no core   blocked   usually  dearest scope
  17 (hideout), tick 812              43.00     43.00      0.00      0.00      0.00  game.inflict

subsystems, exclusive (ms)             wall   running   no core   blocked   usually
  server                              50.70      2.70      0.00     48.00     55.50
  game                                41.30     41.30      0.00      0.00      0.00

categories, exclusive (ms)             wall   running   no core   blocked   usually
  gameplay                            41.30     41.30      0.00      0.00      2.00
  other                               50.70      2.70      0.00     48.00     55.50

scopes, exclusive (ms)                 wall   running   no core   blocked   usually
  server.wait                         49.50      1.50      0.00     48.00     49.50  1 x
  game.inflict                        41.30     41.30      0.00      0.00      0.00  1 x
  server.tick                          1.20      1.20      0.00      0.00      6.00  1 x

log lines in the frame, 1 in all
  44.00 ms warn  worker-0 server.tick: world 17 is late\n\u{1b}[31mby 12 ticks
"#;
    assert_eq!(story_of(&capture), expect);
}

#[test]
fn by_hand_the_longest_frame_is_told_and_any_other_can_be_asked_for() {
    let mut capture = faulty(TriggerKind::Manual, "", 0, 0, vec![]);
    capture.about.trigger.note = "players\tcomplain".into();
    capture.frames[3].end_ns += 10 * MS;
    capture.frames[4].begin_ns += 10 * MS;
    check(
        &capture,
        "saved by hand (\"players\\tcomplain\"); frame 813 took 60 ms, budget 50 ms: subsystem server took 14.5 ms, usually 1.50 ms",
        &[],
    );
    let options = Options { frame: Some(811), ..Options::default() };
    let story = tell(&capture, &options).expect("it is there");
    assert_eq!(story.verdict, "frame 811 took 50 ms, budget 50 ms");
    let error = tell(&capture, &Options { frame: Some(9), ..options }).expect_err("there is no frame 9");
    assert_eq!(error.to_string(), "the capture has no frame 9; it has 810 to 814");
}

#[test]
fn without_perf_event_it_says_what_is_lost() {
    let mut capture = without_a_core("worker-1", 35.0, vec![]);
    capture.threads.iter_mut().for_each(|thread| thread.events.retain(|it| !matches!(it, Event::Switch { .. })));
    capture.about.switches = SwitchSource::Schedstat;
    capture.frames[2].threads =
        vec![FrameThread { thread: 2, running_ns: 4 * MS, waiting_ns: 35 * MS, blocked_ns: 11 * MS }];
    check(
        &capture,
        "the cores were taken by other processes: worker-1 was ready and had no core for 35 ms; busiest: sh (pid 312) \
         0.98 cores",
        &[
            "context switches: schedstat only; sums per thread and frame, spread evenly over scopes; when a thread",
            "worker-1 short-task 4.00 35.00 11.00 4.00 0.00 46.00 11.00",
        ],
    );
}

#[test]
fn an_empty_capture_has_a_story() {
    check(&Capture::default(), "saved by hand; the capture has no frames", &["no frames in the capture"]);
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let mut capture = slow_world();
    let evil = "\x1b]0;x\x07\n";
    capture.sites.iter_mut().for_each(|site| {
        site.subsystem = evil.into();
        site.file = evil.into();
    });
    capture.threads.iter_mut().for_each(|thread| thread.name = evil.into());
    capture.worlds.iter_mut().for_each(|world| world.name = evil.into());
    capture.about.build = evil.into();
    capture.about.game = evil.into();
    capture.about.trigger.note = evil.into();
    assert!(story_of(&capture).chars().all(|char| char == '\n' || !char.is_control()));
    let json = serde_json::to_string(&tell(&capture, &Options::default()).expect("a story")).expect("JSON");
    assert!(!json.contains("\\u001b"), "names in JSON are safe too");
}

/// Two that ran for 292 years each, together one more than a number can hold.
#[test]
fn times_of_several_threads_add_up_to_no_more_than_the_largest_number() {
    let centuries = 1u64 << 63;
    let thread = |name: &str, class, events| Thread { name: name.into(), tid: 1, class, events };
    let long = |core| running(10, 10 + centuries, core).to_vec();
    let waiting = vec![switch(0, Switch::Running { core: 0 }), switch(10, Switch::Preempted)];
    let capture = Capture {
        about: About { switches: SwitchSource::PerfEvent, ..About::default() },
        threads: vec![
            thread("frame", ThreadClass::Frame, waiting),
            thread("save-0", ThreadClass::LongTask, long(0)),
            thread("save-1", ThreadClass::LongTask, long(1)),
        ],
        frames: vec![Frame { number: 1, end_ns: u64::MAX, budget_ns: 1, ..Frame::default() }],
        ..Capture::default()
    };
    let verdict = tell(&capture, &Options::default()).expect("a story").verdict;
    assert!(verdict.contains("our own long tasks ran while frame waited"), "{verdict}");
    assert!(verdict.ends_with("for a core: save-0 and 1 more"), "{verdict}");
}
