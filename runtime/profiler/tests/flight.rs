//! The promise: what was bad is saved by itself, with its cause in it, and the threads that record go on.
//!
//! There is one recorder per process, so this is one flight with several bad moments, looked at one after the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use throng_capture::format;
use throng_capture::model::{Capture, Event, Thread, TriggerKind, World};
use throng_profiler::rules::{KindBudgets, Rules};
use throng_profiler::sync::Mutex;
use throng_profiler::thread::{ThreadClass, enter_world, register};
use throng_profiler::{KindNumber, LateTick, Recorder, RecorderSettings, SaveError, scope, site, world_kind};

#[global_allocator]
static ALLOCATOR: throng_platform::allocator::CountingAllocator = throng_platform::allocator::CountingAllocator;

const FRAME_BUDGET_NS: u64 = 20_000_000;

/// A world in a place that 20 others had before, and the 24 bits of it that captures keep.
const WORLD: u32 = 17 | 20 << 20;
const RECORDED: u32 = 17 | 4 << 20;

static LEDGER: Mutex<u32> = Mutex::new("test.ledger", 0);

struct Flight {
    recorder: Recorder,
    folder: PathBuf,
    frame: u64,
}

impl Flight {
    fn start() -> Flight {
        let folder = std::env::temp_dir().join(format!("throng-flight-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let mut rules = Rules::default();
        rules.subsystem_budgets_ns = vec![("test.weather".into(), 2_000_000), ("test.tide".into(), 2_000_000)];
        // More for the tide than in other worlds, and less for the scope.
        rules.kind_budgets = vec![KindBudgets {
            kind: "hideout".into(),
            subsystems_ns: vec![("test.tide".into(), 6_000_000)],
            scopes_ns: vec![("test.flood".into(), 1_000_000)],
            ..KindBudgets::default()
        }];
        let per_tick_ns = vec![("test.shots".into(), 500)];
        rules.kind_budgets.push(KindBudgets { kind: "duel".into(), per_tick_ns, ..KindBudgets::default() });
        for kind in TriggerKind::ALL {
            rules.trigger_mut(kind).post_roll_s = 0.0;
        }
        // A shared machine takes cores away as it likes.
        rules.trigger_mut(TriggerKind::RunQueue).is_on = false;
        rules.trigger_mut(TriggerKind::Frame).threshold = 10_000_000_000;
        let settings = RecorderSettings {
            captures: Some(folder.clone()),
            rules,
            build: "test".into(),
            game: "test".into(),
            ..RecorderSettings::default()
        };
        let recorder = Recorder::start(settings).unwrap();
        recorder.control().set_worlds(vec![World { id: WORLD, name: "hideout".into(), tick_hz: 20 }]);
        register(ThreadClass::Frame);
        Flight { recorder, folder, frame: 0 }
    }

    fn frame(&mut self, work: impl FnOnce()) {
        self.recorder.frame_begin(self.frame, FRAME_BUDGET_NS);
        work();
        self.recorder.frame_end();
        self.frame += 1;
    }

    /// Goes on with empty frames until there is a capture of this kind.
    fn capture(&mut self, kind: TriggerKind) -> Capture {
        self.capture_in(&self.folder.join(kind.name()))
    }

    /// The same, in one of its folders.
    fn capture_in(&mut self, folder: &Path) -> Capture {
        let give_up_at = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(path) = captures(folder).pop() {
                return format::read(&fs::read(path).unwrap()).unwrap();
            }
            assert!(Instant::now() < give_up_at, "no capture in {}", folder.display());
            self.frame(|| std::thread::sleep(Duration::from_millis(5)));
        }
    }
}

/// In the folder or in those in it.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = entries(folder).filter(|path| path.is_dir());
    let files = entries(folder).chain(folders.flat_map(|inside| entries(&inside).collect::<Vec<_>>()));
    let mut paths: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "capture")).collect();
    paths.sort();
    paths
}

fn hideout() -> KindNumber {
    world_kind::number_of("hideout")
}

fn compute(length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        std::hint::black_box(0);
    }
}

fn this_thread(capture: &Capture) -> &Thread {
    let is_frame = |thread: &&Thread| thread.class == ThreadClass::Frame;
    capture.threads.iter().find(is_frame).expect("the frame's thread is in the capture")
}

fn has_scope(capture: &Capture, thread: &Thread, name: &str) -> bool {
    thread
        .events
        .iter()
        .any(|event| matches!(event, Event::Scope { site, .. } if capture.sites[*site as usize].name == name))
}

#[test]
fn what_was_bad_is_saved_with_its_cause() {
    let mut flight = Flight::start();
    let is_whole = |capture: &Capture| {
        assert_eq!((capture.about.game.as_str(), capture.about.records_lost), ("test", 0));
        assert!(!capture.frames.is_empty());
    };

    // A scope over its own budget, in a world.
    flight.frame(|| {
        let _in_world = enter_world(hideout(), WORLD, 3);
        scope!("test.tick", budget_us = 5_000);
        compute(Duration::from_millis(8));
    });
    let capture = flight.capture(TriggerKind::Scope);
    is_whole(&capture);
    let trigger = &capture.about.trigger;
    assert_eq!((trigger.name.as_str(), trigger.world), ("test.tick", Some(RECORDED)));
    assert!(trigger.measured >= 8_000_000 && trigger.allowed.abs_diff(5_000_000) < 1_000, "{trigger:?}");
    assert!(has_scope(&capture, this_thread(&capture), "test.tick"));
    assert_eq!(captures(&flight.folder.join("scope/test.tick@hideout")).len(), 1);
    assert_eq!(capture.worlds, [World { id: RECORDED, name: "hideout".into(), tick_hz: 20 }]);

    // A tick that was missed by little, and one that was a little late before it.
    let late = |late_ns, is_missed| LateTick { world: WORLD, kind: hideout(), late_ns, is_missed };
    flight.recorder.note_late_tick(late(1_000_000, false));
    flight.frame(|| {});
    flight.recorder.note_late_tick(late(100_000, true));
    flight.recorder.note_late_tick(late(50_000, false));
    flight.frame(|| {});
    let capture = flight.capture(TriggerKind::Tick);
    is_whole(&capture);
    let trigger = &capture.about.trigger;
    assert_eq!((trigger.name.as_str(), trigger.world, trigger.measured), ("world.tick", Some(RECORDED), 100_000));

    // A subsystem over its budget, in many small scopes.
    flight.frame(|| {
        for _ in 0..30 {
            scope!("test.weather.rain");
            compute(Duration::from_micros(100));
        }
    });
    let capture = flight.capture(TriggerKind::Subsystem);
    is_whole(&capture);
    assert_eq!(capture.about.trigger.name, "test.weather");
    assert_eq!(captures(&flight.folder.join("subsystem/test.weather")).len(), 1);

    // One that has a budget of its own in the kind of world: within it at first, though over the one of all others.
    let tide = |flight: &mut Flight, length| {
        flight.frame(|| {
            let _in_world = enter_world(hideout(), WORLD, 3);
            scope!("test.tide.rise");
            compute(length);
        });
    };
    tide(&mut flight, Duration::from_millis(3));
    tide(&mut flight, Duration::from_millis(8));
    let wanted = flight.folder.join("subsystem/test.tide@hideout");
    let capture = flight.capture_in(&wanted);
    is_whole(&capture);
    let trigger = &capture.about.trigger;
    assert_eq!((trigger.name.as_str(), trigger.allowed), ("test.tide@hideout", 6_000_000));
    assert!(trigger.measured > trigger.allowed, "{trigger:?}");
    assert!(captures(&flight.folder.join("subsystem/test.tide")).is_empty());

    // A scope that may take less in this kind of world, and anything outside of it.
    let flood = |flight: &mut Flight, kind| {
        flight.frame(|| {
            let _in_world = enter_world(kind, WORLD, 3);
            scope!("test.flood");
            compute(Duration::from_millis(2));
        });
    };
    flood(&mut flight, KindNumber::NONE);
    flood(&mut flight, hideout());
    let wanted = flight.folder.join("scope/test.flood@hideout");
    let capture = flight.capture_in(&wanted);
    assert!(capture.about.trigger.allowed.abs_diff(1_000_000) < 1_000, "{:?}", capture.about.trigger);
    assert!(captures(&flight.folder.join("scope/test.flood")).is_empty());

    // A lock that a long task has.
    let (took, taken) = std::sync::mpsc::channel();
    let holder = std::thread::Builder::new().name("save-0".into()).spawn(move || {
        register(ThreadClass::LongTask);
        scope!("save.flush");
        let mut ledger = LEDGER.lock();
        took.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        *ledger += 1;
    });
    taken.recv().unwrap();
    flight.frame(|| {
        scope!("test.read_ledger");
        assert_eq!(*LEDGER.lock(), 1);
    });
    holder.unwrap().join().unwrap();
    let capture = flight.capture(TriggerKind::LockWait);
    is_whole(&capture);
    assert_eq!(capture.about.trigger.name, "test.ledger");
    let wait = this_thread(&capture).events.iter().find_map(|event| match *event {
        Event::LockWait { begin_ns, end_ns, holder, .. } => Some((end_ns - begin_ns, holder?)),
        _ => None,
    });
    let (waited_ns, holder) = wait.expect("the wait is in the capture, with its holder");
    assert!(waited_ns > 5_000_000, "{waited_ns}");
    let holder_thread = &capture.threads[holder.thread as usize];
    assert_eq!((holder_thread.name.as_str(), holder_thread.class), ("save-0", ThreadClass::LongTask));
    assert_eq!(capture.sites[holder.site.unwrap() as usize].name, "save.flush");

    // A large allocation in a world's tick.
    flight.frame(|| {
        let _in_world = enter_world(hideout(), WORLD, 4);
        scope!("test.satchel");
        std::hint::black_box(Vec::<u8>::with_capacity(300 << 10));
    });
    let capture = flight.capture(TriggerKind::LargeAllocation);
    is_whole(&capture);
    let trigger = &capture.about.trigger;
    assert_eq!((trigger.name.as_str(), trigger.world, trigger.measured), ("test.satchel", Some(RECORDED), 300 << 10));
    let of_satchel = this_thread(&capture).events.windows(2).any(|pair| match pair {
        [Event::Scope { site, .. }, Event::Allocations { bytes, .. }] => {
            capture.sites[*site as usize].name == "test.satchel" && *bytes >= 300 << 10
        }
        _ => false,
    });
    assert!(of_satchel, "the allocation is charged to its scope");

    // A worker that has nothing to do once, and no end of it afterwards.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        register(ThreadClass::ShortTask);
        {
            scope!("idle.worker");
            std::thread::sleep(Duration::from_millis(20));
        }
        let _in_world = enter_world(hideout(), WORLD, 4);
        scope!("test.labour");
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            compute(Duration::from_millis(1));
        }
    });
    let capture = flight.capture(TriggerKind::WorkersBusy);
    is_whole(&capture);
    let trigger = &capture.about.trigger;
    assert!((96..=100).contains(&trigger.measured) && trigger.allowed == 95, "{trigger:?}");
    drop(stop);
    worker.join().unwrap();

    // At 128 Hz a scope that may take half a microsecond, and a subsystem that may take as much in each tick.
    let duel = world_kind::number_of("duel");
    world_kind::set_period(duel, 7_812_500);
    for tick in 0..150 {
        flight.frame(|| {
            let _in_world = enter_world(duel, WORLD, tick);
            scope!("test.shots.judge", budget_ns = 500);
            compute(Duration::from_micros(20));
        });
        flight.recorder.note_tick(duel);
    }
    let capture = flight.capture_in(&flight.folder.join("scope/test.shots.judge@duel"));
    let trigger = &capture.about.trigger;
    assert!(trigger.allowed.abs_diff(500) <= 2 && trigger.measured >= 20_000, "{trigger:?}");
    let capture = flight.capture_in(&flight.folder.join("subsystem/test.shots_per_tick@duel"));
    let trigger = &capture.about.trigger;
    assert_eq!((trigger.name.as_str(), trigger.allowed), ("test.shots per tick@duel", 500));
    assert!(trigger.measured >= 20_000, "{trigger:?}");

    // By hand, with the frame's thread elsewhere.
    let saved = flight.recorder.control().save_now("somebody said it was slow").unwrap();
    let capture = format::read(&fs::read(&saved.path).unwrap()).unwrap();
    assert_eq!(capture.about.trigger.kind, TriggerKind::Manual);
    assert_eq!(capture.about.trigger.note, "somebody said it was slow");

    // The same cause again, within its cooldown: counted, not saved.
    let before = flight.recorder.control().figures();
    flight.frame(|| {
        let _in_world = enter_world(hideout(), WORLD, 5);
        Some(site!("test.tick")).map(throng_profiler::Scope::begin);
        scope!("test.weather.rain");
        compute(Duration::from_millis(8));
    });
    flight.frame(|| {});
    let after = flight.recorder.control().figures();
    assert_eq!(after.captures_saved, before.captures_saved);
    assert!(after.in_cooldown > before.in_cooldown);
    assert_eq!((after.records_lost, after.captures_failed), (0, 0));

    // A folder that cannot be written to any more: told, counted, and the flight goes on.
    fs::remove_dir_all(&flight.folder).unwrap();
    fs::write(&flight.folder, "a file in its place").unwrap();
    let error = flight.recorder.control().save_now("").unwrap_err();
    assert!(matches!(&error, SaveError::Write { .. }), "{error}");
    flight.frame(|| {});
    assert_eq!(flight.recorder.control().figures().captures_failed, 1);
    fs::remove_file(&flight.folder).unwrap();

    // Whoever asks after its end hears of it at once.
    let control = flight.recorder.control();
    drop(flight.recorder);
    assert_eq!(control.save_now(""), Err(SaveError::Stopped));
}
