//! Long tasks in the shipped server, where it is said by hand how much time they get.

use std::sync::Arc;

use throng_platform::{
    clock::{Clock, ManualClock},
    time::Nanos,
};
use throng_replication::SchemaBuilder;
use throng_scheduler::LongTaskPool;
use throng_world::ids::WorldKindId;

use super::*;
use crate::{
    lifecycle::{NewWorld, Pending, WorldError},
    prelude::*,
    server::{Environment, Server},
    settings::Settings,
    testing::{self, TestKind},
};

/// A frame of the grid for 20 Hz.
const FRAMES_PER_S: u64 = 60;

/// What a world costs to make and to drop: twenty times a small one, so that there are not so many.
const MAKE_COST: Nanos = Nanos::from_micros(4_000);
const DROP_COST: Nanos = Nanos::from_micros(2_400);

/// The shipped server with a worker on each of one or two cores, whose worlds and long tasks take their time on a virtual clock.
struct Host {
    server: Server,
    clock: ManualClock,
    kind: WorldKindId,
    cores: u64,
    frame: u64,
    /// Processor time that worlds take of each frame, together.
    worlds: Nanos,
    /// Worlds that were asked for, and those that live.
    asked: Vec<Pending<WorldId>>,
    living: Vec<WorldId>,
    /// Frames in which the workers that were used had more to do than there is time.
    late: u64,
    /// The most that waited to be dropped.
    freeing_max: Nanos,
}

impl Host {
    fn new(settings: &str, cores: u64, worlds: Nanos) -> Host {
        let settings = Settings::parse("throng.toml", settings).unwrap();
        let clock = ManualClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let environment = Environment { workers_count: cores as usize, ..testing::environment(shared.clone()) };
        let pool = LongTaskPool::by_hand(settings.long_tasks.waiting_max as usize, shared);
        let mut server = Server::assemble(&settings, SchemaBuilder::new().build(), environment, None, pool);
        let kind = server.add_kind(testing::empty()).unwrap();
        server.create_world(kind, 0).unwrap();
        server.prepare(Nanos::ZERO).unwrap();
        let mut host = Host {
            server,
            clock,
            kind,
            cores,
            frame: 0,
            worlds,
            asked: Vec::new(),
            living: Vec::new(),
            late: 0,
            freeing_max: Nanos::ZERO,
        };
        host.learn();
        host
    }

    /// One world comes and goes with plenty of time, so that it is known what that costs.
    fn learn(&mut self) {
        let rows = |host: &Host| host.server.long_tasks.tasks().rows();
        let of_kinds = [(MAKE_WORLD, MAKE_COST), (DROP_WORLD, DROP_COST)];
        for (name, cost) in of_kinds {
            let tasks = self.server.long_tasks.tasks();
            let (kind, run) = (tasks.kind(name), Box::new(|| ()));
            tasks
                .start(LongTask { kind, deadline: Nanos::MAX, cost: Some(cost), frees: None, about: None, run })
                .unwrap();
        }
        self.server.long_tasks.pool.work_for(Nanos::from_secs(1));
        assert!(
            of_kinds
                .iter()
                .all(|(name, cost)| rows(self).iter().any(|row| row.name == *name && row.usual_cost == *cost))
        );
    }

    /// So many worlds are asked for in a frame, and as many of those that live end: players come and go.
    fn frame(&mut self, come_and_go: usize) {
        let period = Nanos(1_000_000_000 / FRAMES_PER_S);
        for _ in 0..come_and_go {
            let seed = self.frame;
            self.asked.push(self.server.control().create_world(NewWorld::new(self.kind, seed)));
        }
        let ends = self.living.len().min(come_and_go);
        for world in self.living.drain(..ends) {
            let _ = self.server.control().retire_world(world);
        }
        self.clock.set(self.server.start_of_frame(self.frame));
        self.server.frame(self.frame);
        self.frame += 1;
        let living = &mut self.living;
        self.asked.retain(|pending| match pending.try_take() {
            Some(Ok(world)) => {
                living.push(world);
                false
            }
            Some(Err(_)) => false,
            None => true,
        });
        // Workers are at work side by side, and the thread of low priority has what is left of one core, or all of one
        // that no worker uses.
        let used = self.server.long_tasks.workers_used as u64;
        let busy = Nanos(self.worlds.0 / used);
        self.late += u64::from(busy > period);
        let left = if used < self.cores { period } else { period.saturating_sub(busy) };
        // Nothing is done before the frame is over.
        self.clock.set(self.server.start_of_frame(self.frame));
        self.server.long_tasks.pool.work_for(left);
        self.freeing_max = self.freeing_max.max(self.server.long_tasks.tasks().freeing());
    }

    fn frames(&mut self, count: u64, come_and_go: usize) {
        (0..count).for_each(|_| self.frame(come_and_go));
    }

    fn missed(&self) -> u64 {
        self.server.long_tasks.tasks().totals().missed
    }
}

/// Worlds take 14 of the 16.7 ms that one core has in a frame, on two workers: 7 ms of each. So 9.7 ms are left for long
/// tasks. That two worlds come and go in a frame takes 12.8 ms: more than that, less than a core.
const BUSY: Nanos = Nanos::from_millis(14);
const RUSH: usize = 2;

/// Promise (D6): without control, what waits to be dropped grows for as long as players come and go. With it, it stays; the
/// worlds are late in no frame, and no long task misses its deadline.
#[test]
fn dropped_worlds_pile_up_without_control_and_do_not_with_it() {
    let mut off = Host::new("[long_tasks]\ncontrol = false\nwaiting_max = 1_000_000\n", 2, BUSY);
    off.frames(30 * FRAMES_PER_S, RUSH);
    let after_30_s = off.server.long_tasks.tasks().freeing();
    off.frames(30 * FRAMES_PER_S, RUSH);
    let after_60_s = off.server.long_tasks.tasks().freeing();
    assert!(after_30_s > Nanos::from_millis(1_000), "{after_30_s:?}");
    assert!(after_60_s > after_30_s + Nanos::from_millis(1_000), "{after_30_s:?} {after_60_s:?}");
    assert_eq!(off.server.long_tasks.level(), 0);
    assert!(off.missed() > 0, "what piles up is late");

    let mut on = Host::new("", 2, BUSY);
    on.frames(60 * FRAMES_PER_S, RUSH);
    let high = LongTaskSettings::default().marks().high;
    assert!(on.freeing_max < Nanos(high.0 * 2), "{:?}", on.freeing_max);
    assert_eq!((on.late, on.missed()), (0, 0));
    assert!(on.server.count_of("server.starvation_steps") > 10, "the level goes up and down");
    assert_eq!(on.server.count_of("server.worlds_parked"), 0);
    assert!(on.server.count_of("server.worlds_retired") > 59 * FRAMES_PER_S * RUSH as u64, "all come and go");
}

/// Promise: deadlines hold at the shipped settings while all cores are full, and where the settings are too tight it is
/// counted.
#[test]
fn no_deadline_is_missed_at_the_shipped_settings_and_those_that_are_too_tight_are_counted() {
    let check = |settings: &str, expect_missed: bool| {
        let mut host = Host::new(settings, 2, BUSY);
        host.frames(20 * FRAMES_PER_S, RUSH);
        let missed = host.missed();
        assert_eq!(missed > 0, expect_missed, "{missed} with {settings:?}");
        host.frame(0);
        assert_eq!(host.server.count_of("server.long_tasks_missed"), missed, "a frame counts what was before it");
    };
    check("", false);
    check("[long_tasks]\nmake_within_ms = 10\n", true);
    check("[long_tasks]\ndrop_within_ms = 10\n", true);
}

/// Promise: where leaving a core is not enough, those who come wait, and what ends is dropped; then they come.
#[test]
fn newcomers_wait_before_dropped_worlds_pile_up() {
    // There is one core, of which worlds need half: no worker can leave it.
    let mut host = Host::new("", 1, Nanos::from_millis(8));
    let mark = LongTaskSettings::default().admission_mark();
    let mut waited = false;
    for _ in 0..60 * FRAMES_PER_S {
        host.frame(RUSH);
        waited |= host.server.long_tasks.admission_waits();
    }
    let bound = mark + Nanos(DROP_COST.0 * 80);
    assert!(waited && host.freeing_max > mark && host.freeing_max <= bound, "{:?}", host.freeing_max);
    let waiting = host.asked.len();
    assert!(waiting > 100, "they wait: {waiting}");
    // Nobody else comes: all are served.
    host.frames(waiting as u64 + 20 * FRAMES_PER_S, 0);
    assert_eq!((host.asked.len(), host.server.long_tasks.admission_waits()), (0, false));
}

#[test]
fn a_world_too_many_is_refused_at_once() {
    let mut host = Host::new("[long_tasks]\nwaiting_max = 3\n", 2, BUSY);
    let control = host.server.control();
    let asked: Vec<_> = (0..5).map(|seed| control.create_world(NewWorld::new(host.kind, seed))).collect();
    host.frame(0);
    let answers: Vec<_> = asked.iter().map(|pending| pending.try_take()).collect();
    assert_eq!(answers[3..], [Some(Err(WorldError::TooManyWait(3))), Some(Err(WorldError::TooManyWait(3)))]);
    host.frames(3, 0);
    assert!(asked[..3].iter().all(|pending| matches!(pending.try_take(), Some(Ok(_)))));
}

/// While worlds are overloaded long tasks yield, but not without end.
#[test]
fn long_tasks_yield_to_overloaded_worlds() {
    let pool = LongTaskPool::by_hand(100, Arc::new(ManualClock::new()));
    let mut control = LongTaskControl::new(pool, LongTaskSettings::default(), 2);
    let kind = control.tasks().kind("test");
    let start = |control: &LongTaskControl, ms: u64| {
        let cost = Some(Nanos::from_millis(ms));
        let task = LongTask { kind, deadline: Nanos::MAX, cost, frees: None, about: None, run: Box::new(|| ()) };
        control.tasks().start(task).unwrap();
    };
    start(&control, 300);
    assert_eq!(control.step(Nanos::ZERO, true).workers_used, 2);
    assert_eq!(control.step(Nanos::ZERO, false).workers_used, 1);
    assert_eq!(control.step(Nanos::ZERO, true).workers_used, 1, "75 ms are between the marks");
    start(&control, 600);
    assert_eq!(control.step(Nanos::ZERO, true).workers_used, 1);
    let mut other =
        LongTaskControl::new(LongTaskPool::by_hand(100, Arc::new(ManualClock::new())), LongTaskSettings::default(), 2);
    assert_eq!(other.step(Nanos::from_millis(900), true).workers_used, 1, "900 ms are too much for anybody");
}

/// Asks for long tasks, and notes what comes.
#[derive(Resource, Default, Debug)]
struct Noted(Vec<String>);

#[derive(Debug, PartialEq, Pack)]
#[pack(name = "test.sector")]
struct Sector(u32);

fn ask_and_note(
    tick: Res<TickInfo>,
    messages: Res<WorldMessages>,
    mut outbox: ResMut<Outbox>,
    mut noted: ResMut<Noted>,
) {
    const TERMS: LongTaskTerms = LongTaskTerms::new("test.sector").within_ms(500).cost_us(20_000);
    if tick.tick == 0 {
        outbox.start_long_task(TERMS, || Sector(77));
        let _: LongTaskNumber = outbox.start_long_task(TERMS, || -> Sector { panic!("on purpose") });
    }
    for message in &messages.0 {
        noted.0.push(match message.read::<Sector>() {
            Ok(sector) => format!("{sector:?}"),
            Err(_) => format!("{:?}", message.read::<LongTaskLost>().unwrap()),
        });
    }
}

/// Promise: what a long task of a world brings comes in a later tick; if its world has ended by then it is dropped,
/// counted.
#[test]
fn a_worlds_long_task_brings_a_message_unless_its_world_has_ended() {
    let check = |retired: bool, inline: bool| {
        let clock = ManualClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let pool =
            if inline { LongTaskPool::inline(shared.clone()) } else { LongTaskPool::by_hand(10, shared.clone()) };
        let environment = testing::environment(shared);
        let mut server = Server::assemble(&Settings::default(), SchemaBuilder::new().build(), environment, None, pool);
        let build = |world: &mut WorldBuilder| {
            world.init_resource::<Noted>().add_systems(Update, ask_and_note);
        };
        let kind = server.add_kind(TestKind::new("asking", Hertz(20), build)).unwrap();
        let other = server.add_kind(testing::empty()).unwrap();
        let world = server.create_world(kind, 0).unwrap();
        server.create_world(other, 0).unwrap();
        server.prepare(Nanos::ZERO).unwrap();
        for frame in 0..60 {
            clock.set(server.start_of_frame(frame));
            server.frame(frame);
            if frame == 6 && retired {
                let _ = server.control().retire_world(world);
            }
            if frame == 45 {
                server.long_tasks.pool.work_for(Nanos::from_millis(50));
            }
        }
        let rows = server.long_tasks.tasks().rows();
        let row = rows.iter().find(|row| row.name == "test.sector").unwrap();
        assert_eq!((row.finished, row.panicked, row.missed), (2, 1, if inline { 0 } else { 2 }), "{row:?}");
        assert!(!server.long_tasks.of_worlds.is_waiting());
        let undeliverable = server.count_of("server.long_task_results_undeliverable");
        let noted = server.world_mut(world).map(|world| world.ecs().resource::<Noted>().0.clone());
        (noted, undeliverable)
    };
    let expect = vec!["Sector(77)".to_owned(), "LongTaskLost { number: 1, loss: Panicked }".to_owned()];
    assert_eq!(check(false, false), (Some(expect.clone()), 0));
    assert_eq!(check(false, true), (Some(expect), 0));
    assert_eq!(check(true, false), (None, 2));
}

/// Dropped where somebody notices it, and by whom.
struct Large(std::sync::mpsc::Sender<(u32, String)>, u32);

impl Drop for Large {
    fn drop(&mut self) {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = self.0.send((self.1, name));
    }
}

/// Promise (D13): a value that a tick gives up as a whole is dropped by a long task; elsewhere at once.
#[test]
fn a_value_that_a_tick_hands_over_is_dropped_beside_it() {
    let (dropped, seen) = std::sync::mpsc::channel();
    let clock = ManualClock::new();
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let pool = LongTaskPool::by_hand(0, shared.clone());
    let environment = testing::environment(shared);
    let mut server = Server::assemble(&Settings::default(), SchemaBuilder::new().build(), environment, None, pool);
    drop_later(Large(dropped.clone(), 0));
    assert_eq!(seen.try_recv().unwrap().0, 0, "outside of a tick");
    let build = move |world: &mut WorldBuilder| {
        let dropped = std::sync::Mutex::new(dropped.clone());
        world.add_systems(Update, move |tick: Res<TickInfo>| {
            if tick.tick == 1 {
                drop_later_sized(Large(dropped.lock().unwrap().clone(), 1), 5_000_000);
            }
        });
    };
    let kind = server.add_kind(TestKind::new("giving", Hertz(20), build)).unwrap();
    server.create_world(kind, 0).unwrap();
    server.prepare(Nanos::ZERO).unwrap();
    for frame in 0..12 {
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
    }
    let tasks = server.long_tasks.tasks();
    assert_eq!((tasks.waiting(), tasks.freeing_bytes()), (1, 5_000_000), "never refused, however few may wait");
    assert!(seen.try_recv().is_err());
    server.long_tasks.pool.work_for(Nanos::from_secs(1));
    let this_thread = std::thread::current().name().unwrap_or_default().to_owned();
    assert_eq!(seen.try_recv().unwrap(), (1, this_thread), "by whoever has time for it");
}
