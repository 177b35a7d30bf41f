//! Promise (R26): a world with five times the load that it has time for is relieved step by step, in the declared order:
//! far updates thin, its time slows, newcomers wait in line. Nobody is disconnected for it, what players say is read within
//! two of its ticks, their clocks go on without a jump, and five seconds after the load has gone all is as it was.
//!
//! On the virtual clock, which the world moves by what its ticks are to cost: so it is the same on any machine. What a hot
//! world does to others on other cores is held in `runtime/server/tests/absent_worlds.rs`.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{overload::Level, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::{
    clock::{Clock, ManualClock},
    time::Nanos,
};
use throng_simulator::{Simulation, SimulationSettings};

const PLAYERS: usize = 12;

/// A third of a period of 20 Hz; five times that, which is more than there is; and more than there is at a tenth.
const USUAL: Nanos = Nanos::from_millis(17);
const FIVE_TIMES: Nanos = Nanos::from_millis(85);
const THIRTY_TIMES: Nanos = Nanos::from_millis(510);

/// What the world's ticks cost, and what they found.
#[derive(Resource, Clone, Default)]
struct Load {
    clock: Arc<OnceLock<ManualClock>>,
    cost_ns: Arc<AtomicU64>,
    /// The most inputs that one tick had to read, and the longest that one of them waited since that was last taken.
    inputs_max: Arc<AtomicU64>,
    waited_ns_max: Arc<AtomicU64>,
    jobs: Arc<AtomicU64>,
}

impl Load {
    fn set(&self, cost: Nanos) {
        self.cost_ns.store(cost.0, Ordering::SeqCst);
    }

    fn now(&self) -> Nanos {
        self.clock.get().map_or(Nanos::ZERO, |clock| clock.now())
    }
}

/// When it was said, by the clock.
#[derive(Pack)]
struct Step {
    said_ns: u64,
}

impl ClientInput for Step {}

/// A world with players, or one that ticks without.
struct Hall {
    load: Load,
    rate: Hertz,
    is_empty: bool,
}

/// Ten times a second of the world's time.
#[derive(Resource)]
struct Job(Every<()>);

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        self.rate
    }

    fn dormant_when_empty(&self) -> bool {
        !self.is_empty
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Step>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.load.clone()).insert_resource(Job(Every::new(10.per_second(), [()])));
        world.add_systems(Update, work);
    }
}

fn work(load: Res<Load>, tick: Res<TickInfo>, mut job: ResMut<Job>, steps: Inputs<Step>) {
    let mut count = 0;
    for (_, step) in steps.read() {
        count += 1;
        load.waited_ns_max.fetch_max(load.now().0.saturating_sub(step.said_ns), Ordering::SeqCst);
    }
    load.inputs_max.fetch_max(count, Ordering::SeqCst);
    load.jobs.fetch_add(job.0.due(tick.now()).len() as u64, Ordering::SeqCst);
    if let Some(clock) = load.clock.get() {
        clock.advance(Nanos(load.cost_ns.load(Ordering::SeqCst)));
    }
}

/// Says an input with every thought, and looks at what its player is shown.
#[derive(Default)]
struct Playing {
    inputs_due: u64,
    behind_parts_max: u64,
    thoughts: u64,
    /// Those in which it was shown the newest there is, with nothing to go on to.
    starved: u64,
}

impl Behaviour for Playing {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &Step { said_ns: now.0 });
        self.inputs_due += u64::from(client.due_inputs(now));
        if let Some(seen) = client.seen(now) {
            self.behind_parts_max = self.behind_parts_max.max(seen.behind_parts.into());
            self.thoughts += 1;
            self.starved += u64::from(seen.behind_parts == 0);
        }
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
            .with("inputs_due", self.inputs_due)
            .with("behind_parts_max", self.behind_parts_max)
            .with("thoughts", self.thoughts)
            .with("starved", self.starved)
    }
}

struct Scene {
    simulation: Simulation,
    load: Load,
    hall: WorldId,
}

impl Scene {
    /// A hall with its players, some seconds after the start.
    fn new(overload_is_on: bool) -> Self {
        let load = Load::default();
        let hall = || Hall { load: load.clone(), rate: Hertz(20), is_empty: false };
        let mut settings = SimulationSettings::new(hall().protocol().schema(), 1);
        settings.server.overload.on = overload_is_on;
        settings.hash = true;
        let (mut simulation, hall) = Simulation::new(&settings, |server| {
            let hall = server.add_kind(hall())?;
            server.create_world(hall, 1)
        })
        .unwrap();
        load.clock.set(simulation.clock()).unwrap();
        load.set(USUAL);
        for _ in 0..PLAYERS {
            simulation.join(Box::<Playing>::default());
        }
        simulation.run_for(3.0);
        assert_eq!(simulation.totals().playing, PLAYERS as u64);
        Self { simulation, load, hall }
    }

    fn level(&mut self) -> Level {
        self.simulation.server_mut().control().published().overload_level()
    }

    fn percent(&mut self) -> u8 {
        let hall = self.hall;
        self.simulation.server_mut().world_mut(hall).unwrap().time_factor().percent()
    }

    fn count_of(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }

    /// Runs for so long, and returns in which share of their thoughts players had nothing to be shown.
    fn starved_share(&mut self, seconds: f64) -> f64 {
        let count = |scene: &Self| {
            let totals = scene.simulation.totals();
            [totals.counter("starved"), totals.counter("thoughts")]
        };
        let before = count(self);
        self.simulation.run_for(seconds);
        let after = count(self);
        (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64
    }

    fn clock_jumps(&self) -> u64 {
        self.simulation.players().iter().map(|player| player.client().stats().clock_jumps).sum()
    }

    /// Runs until `is_done`, and asserts that no input waits for more than two ticks of the world as they are then.
    fn run_until(&mut self, seconds_max: f64, mut is_done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.simulation.now() + Nanos((seconds_max * 1e9) as u64);
        while self.simulation.now() < until {
            let before = self.percent();
            self.simulation.step();
            let percent = before.min(self.percent());
            let waited_ns = self.load.waited_ns_max.swap(0, Ordering::SeqCst);
            let two_ticks_ns = 2 * 50_000_000 * 100 / u64::from(percent);
            assert!(waited_ns <= two_ticks_ns, "an input waited for {} ms at {percent} %", waited_ns / 1_000_000);
            if is_done(self) {
                return true;
            }
        }
        false
    }

    fn run_for(&mut self, seconds: f64) {
        self.run_until(seconds, |_| false);
    }

    /// Loads the hall until newcomers wait, then for so long; and takes the load away, until all is as usual.
    fn overload(&mut self, cost: Nanos, seconds: f64, round: u32) {
        self.load.set(cost);
        let mut order = Vec::new();
        let closes = self.run_until(5.0, |scene| {
            let level = scene.level();
            if order.last() != Some(&level) {
                order.push(level);
            }
            level == Level::AdmissionClosed
        });
        assert!(closes && order.is_sorted(), "round {round}: {order:?}");
        // Ticks ten times as long as they should be are a standstill each, until time slows.
        self.run_for(3.0);
        let jumps = self.clock_jumps();
        self.run_for(seconds);
        self.load.set(USUAL);
        let is_at_full_speed = self.run_until(5.0, |scene| scene.percent() == 100);
        assert!(is_at_full_speed, "round {round}: {} %", self.percent());
        assert!(self.run_until(5.0, |scene| scene.level() == Level::Normal), "round {round}: {:?}", self.level());
        assert_eq!(self.clock_jumps(), jumps, "round {round}");
    }
}

#[test]
fn five_times_the_load_twenty_times_over_disconnects_nobody() {
    let mut scene = Scene::new(true);
    let mut players = PLAYERS as u64;
    for round in 0..20 {
        scene.run_for(12.0);
        assert_eq!((scene.level(), scene.percent()), (Level::Normal, 100), "round {round}");

        scene.load.set(FIVE_TIMES);
        let closes = scene.run_until(4.0, |scene| scene.level() == Level::AdmissionClosed);
        assert!(closes, "round {round}: {:?}", scene.level());
        scene.simulation.join(Box::<Playing>::default());
        scene.run_for(1.0);
        let (missed, percent) = (scene.count_of("server.ticks_missed"), scene.percent());
        assert!((40..=45).contains(&percent), "85 ms want a period of 113 ms: {percent} %");
        scene.run_for(4.0);
        assert_eq!(scene.count_of("server.ticks_missed"), missed, "round {round}: slow enough for all of its ticks");
        let totals = scene.simulation.totals();
        assert_eq!((totals.playing, totals.joining), (players, 1), "round {round}: who comes now waits");

        scene.load.set(USUAL);
        let began = scene.simulation.now();
        assert!(scene.run_until(5.0, |scene| scene.level() == Level::Normal), "round {round}: {:?}", scene.level());
        assert!(scene.simulation.now() <= began + Nanos::from_secs(5));
        scene.run_for(1.0);
        players += 1;
        let totals = scene.simulation.totals();
        assert_eq!((totals.playing, totals.joining), (players, 0), "round {round}");
    }
    let totals = scene.simulation.totals();
    assert_eq!((totals.disconnects, totals.protocol_errors, totals.state_errors), (0, 0, 0), "{totals:#?}");
    assert_eq!(scene.clock_jumps(), 0);
    // Two ticks, one that is late, and what differs.
    let behind = totals.counter("behind_parts_max");
    assert!(behind <= 4 * 256, "players were shown the world {behind} 256ths of a tick late");
    assert_eq!(scene.count_of("server.overload_steps"), 20 * 6, "three up and three down in each round");
    assert_eq!(scene.count_of("net.mailbox_full"), 0);
    let per_tick = scene.load.inputs_max.load(Ordering::SeqCst) as f64 / players as f64;
    assert!(per_tick <= 4.0, "{per_tick:.1} inputs of each player in one tick");
    assert!(scene.count_of("server.ticks_slowed") > 20 * 20 && scene.count_of("server.time_lost_us") > 20 * 1_000_000);
}

/// What the promise is held against.
#[test]
fn nothing_is_done_where_it_is_switched_off() {
    let mut scene = Scene::new(false);
    scene.load.set(FIVE_TIMES);
    scene.simulation.run_for(5.0);
    let missed = scene.count_of("server.ticks_missed");
    scene.simulation.join(Box::<Playing>::default());
    scene.simulation.run_for(5.0);
    assert_eq!((scene.level(), scene.percent()), (Level::Normal, 100));
    let totals = scene.simulation.totals();
    assert_eq!((totals.playing, totals.joining), (PLAYERS as u64 + 1, 0), "nobody waits");
    let missed = scene.count_of("server.ticks_missed") - missed;
    assert!(missed >= 40, "every other tick is missed: {missed} in five seconds");
    let starved = scene.starved_share(5.0);
    assert!(starved >= 0.8, "clocks run ahead of a world that does not say how slow it is: {starved:.2}");
}

/// Promise: at the floor, and below what even that holds, nobody is disconnected, and it comes back all the same.
#[test]
fn more_than_the_floor_holds_disconnects_nobody() {
    let mut scene = Scene::new(true);
    for round in 0..3 {
        scene.overload(THIRTY_TIMES, 30.0, round);
        scene.run_for(12.0);
    }
    let totals = scene.simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.protocol_errors), (PLAYERS as u64, 0, 0), "{totals:#?}");
}

/// Promise: a slowed world's time is its ticks': jobs at a rate and the inputs that are due go by it.
#[test]
fn what_goes_by_the_worlds_time_is_slowed_with_it() {
    let mut scene = Scene::new(true);
    scene.load.set(FIVE_TIMES);
    scene.run_for(10.0);
    let starved = scene.starved_share(10.0);
    assert!(starved <= 0.05, "who knows how slow the world is always has something to be shown: {starved:.2}");
    let seen = |scene: &mut Scene| {
        let ticks = scene.count_of("server.ticks") as f64;
        let due = scene.simulation.totals().counter("inputs_due") as f64 / PLAYERS as f64;
        (ticks, scene.load.jobs.load(Ordering::SeqCst) as f64, due)
    };
    let before = seen(&mut scene);
    scene.run_for(30.0);
    let after = seen(&mut scene);
    let percent = f64::from(scene.percent());
    let (ticks, jobs, due) = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
    assert!((ticks - 600.0 * percent / 100.0).abs() <= 2.0, "{ticks} ticks in 30 s at {percent} %");
    assert!((jobs - ticks / 2.0).abs() <= 1.0, "{jobs} jobs in {ticks} ticks");
    assert!((due - ticks).abs() <= 3.0, "{due} inputs due in {ticks} ticks");
}

/// Promise: the same ticks at the same times give the same steps, so a run can be run again.
#[test]
fn steps_are_the_same_in_two_runs() {
    let run = || {
        let mut scene = Scene::new(true);
        let mut steps = Vec::new();
        for cost in [FIVE_TIMES, USUAL, THIRTY_TIMES, USUAL] {
            scene.load.set(cost);
            scene.run_until(6.0, |scene| {
                let step = (scene.level(), scene.percent());
                if steps.last().is_none_or(|(_, last)| *last != step) {
                    steps.push((scene.simulation.frames(), step));
                }
                false
            });
        }
        (steps, scene.simulation.hashes().to_vec())
    };
    let (one, other) = (run(), run());
    assert!(one.0.len() > 8, "{:?}", one.0);
    assert!(one == other);
}

/// So many worlds without players, on one worker.
fn rooms(worlds: u64, rate: Hertz) -> (Simulation, Load, Vec<WorldId>) {
    let load = Load::default();
    let room = || Hall { load: load.clone(), rate, is_empty: true };
    let settings = SimulationSettings::new(room().protocol().schema(), 1);
    let (simulation, ids) = Simulation::new(&settings, |server| {
        let room = server.add_kind(room())?;
        (0..worlds).map(|seed| server.create_world(room, seed)).collect()
    })
    .unwrap();
    load.clock.set(simulation.clock()).unwrap();
    (simulation, load, ids)
}

/// Promise: what servers do all day moves no step, hitches included.
#[test]
fn ordinary_loads_move_nothing() {
    // Many small worlds on most of the cores; one that takes most of its period; a match whose ticks are short.
    for (worlds, rate, cost_us) in [(60, 20, 700), (30, 20, 1_400), (1, 20, 38_000), (1, 30, 25_000), (3, 128, 2_000)] {
        let (mut simulation, load, _) = rooms(worlds, Hertz(rate));
        load.set(Nanos::from_micros(cost_us));
        for _ in 0..10 {
            simulation.run_for(3.0);
            simulation.stand_still(0.2);
        }
        let steps = simulation.server_mut().count_of("server.overload_steps");
        assert_eq!(steps, 0, "{worlds} worlds of {rate} Hz and {cost_us} us");
    }
}

/// Promise: where all worlds together are too much, all slow to what the cores hold, and stay there, spread over their longer
/// period; and are back when it is over.
#[test]
fn a_server_with_too_many_worlds_slows_them_alike() {
    let (mut simulation, load, ids) = rooms(30, Hertz(20));
    // 30 x 20 x 1 ms are 0.6 s in a second.
    load.set(Nanos::from_millis(1));
    simulation.run_for(3.0);
    for round in 0..3 {
        load.set(Nanos::from_millis(5));
        simulation.run_for(6.0);
        let percents = |simulation: &mut Simulation| -> Vec<u8> {
            let factor = |id: &WorldId| simulation.server_mut().world_mut(*id).unwrap().time_factor().percent();
            ids.iter().map(factor).collect()
        };
        let (missed, steps) = {
            let server = simulation.server_mut();
            (server.count_of("server.ticks_missed"), server.count_of("server.overload_steps"))
        };
        simulation.run_for(30.0);
        let slowed = percents(&mut simulation);
        // Three times what there is: 28 %.
        assert!(slowed.iter().all(|percent| (20..=29).contains(percent)), "round {round}: {slowed:?}");
        let server = simulation.server_mut();
        assert_eq!(server.count_of("server.ticks_missed"), missed, "round {round}");
        assert_eq!(server.count_of("server.overload_steps"), steps, "round {round}: they stay");
        load.set(Nanos::from_millis(1));
        simulation.run_for(5.0);
        assert!(percents(&mut simulation).iter().all(|&percent| percent == 100), "round {round}");
        let level = simulation.server_mut().control().published().overload_level();
        assert!(level <= Level::FarUpdatesThin, "round {round}: {level:?}");
        simulation.run_for(5.0);
        let level = simulation.server_mut().control().published().overload_level();
        assert_eq!(level, Level::Normal, "round {round}");
    }
}
