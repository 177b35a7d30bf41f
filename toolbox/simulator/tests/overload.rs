//! Promise (R26): a world with five times the load that it has time for is relieved step by step, nobody is disconnected
//! for it, newcomers wait in line, and five seconds after the load has gone all is as it was.
//!
//! On the virtual clock, which the world moves by what its ticks are to cost: so it is the same on any machine.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{overload::Level, prelude::*};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::{clock::ManualClock, time::Nanos};
use throng_simulator::{Simulation, SimulationSettings};

const PLAYERS: usize = 12;

/// A quarter of a period of 20 Hz, and five times that: more than there is.
const USUAL: Nanos = Nanos::from_millis(12);
const FIVE_TIMES: Nanos = Nanos::from_millis(60);

/// What the world's ticks cost, and the most inputs that one of them had to read.
#[derive(Resource, Clone, Default)]
struct Load {
    clock: Arc<OnceLock<ManualClock>>,
    cost_ns: Arc<AtomicU64>,
    inputs_max: Arc<Mutex<usize>>,
}

impl Load {
    fn set(&self, cost: Nanos) {
        self.cost_ns.store(cost.0, Ordering::SeqCst);
    }

    fn inputs_max(&self) -> usize {
        *self.inputs_max.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Pack)]
struct Step;

impl ClientInput for Step {}

struct Hall(Load);

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Step>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.0.clone()).add_systems(Update, work);
    }
}

fn work(load: Res<Load>, steps: Inputs<Step>) {
    let mut most = load.inputs_max.lock().unwrap_or_else(PoisonError::into_inner);
    *most = steps.read().count().max(*most);
    if let Some(clock) = load.clock.get() {
        clock.advance(Nanos(load.cost_ns.load(Ordering::SeqCst)));
    }
}

/// Sends an input with every thought.
struct Playing;

impl Behaviour for Playing {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &Step);
    }
}

/// A hall with its players, some seconds after the start.
fn hall(overload_is_on: bool) -> (Simulation, Load) {
    let load = Load::default();
    let mut settings = SimulationSettings::new(Hall(load.clone()).protocol().schema(), 1);
    settings.server.overload.on = overload_is_on;
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        let hall = server.add_kind(Hall(load.clone()))?;
        server.create_world(hall, 1)
    })
    .unwrap();
    load.clock.set(simulation.clock()).unwrap();
    load.set(USUAL);
    for _ in 0..PLAYERS {
        simulation.join(Box::new(Playing));
    }
    simulation.run_for(3.0);
    assert_eq!(simulation.totals().playing, PLAYERS as u64);
    (simulation, load)
}

fn level(simulation: &mut Simulation) -> Level {
    simulation.server_mut().control().published().overload_level()
}

#[test]
fn five_times_the_load_twenty_times_over_disconnects_nobody() {
    let (mut simulation, load) = hall(true);
    let mut players = PLAYERS as u64;
    for round in 0..20 {
        simulation.run_for(2.0);
        assert_eq!(level(&mut simulation), Level::Normal, "round {round}");

        load.set(FIVE_TIMES);
        let at_top = |simulation: &mut Simulation| level(simulation) == Level::AdmissionClosed;
        assert!(simulation.run_until(4.0, at_top), "round {round}: {:?}", level(&mut simulation));
        simulation.join(Box::new(Playing));
        simulation.run_for(4.0);
        let totals = simulation.totals();
        assert_eq!((totals.playing, totals.joining), (players, 1), "round {round}: who comes now waits");

        load.set(USUAL);
        let is_normal = |simulation: &mut Simulation| level(simulation) == Level::Normal;
        assert!(simulation.run_until(5.0, is_normal), "round {round}: {:?}", level(&mut simulation));
        simulation.run_for(1.0);
        players += 1;
        assert_eq!((simulation.totals().playing, simulation.totals().joining), (players, 0), "round {round}");
    }
    let totals = simulation.totals();
    assert_eq!((totals.disconnects, totals.protocol_errors, totals.state_errors), (0, 0, 0), "{totals:#?}");
    let server = simulation.server_mut();
    assert_eq!(server.count_of("server.overload_steps"), 20 * 6, "three up and three down in each round");
    assert_eq!(server.count_of("net.mailbox_full"), 0);
    // What comes in during a period that is missed is read with the next tick, and nothing waits longer.
    let per_tick = load.inputs_max() as f64 / players as f64;
    assert!(per_tick <= 4.0, "{per_tick:.1} inputs of each player in one tick");
}

#[test]
fn nothing_is_done_where_it_is_switched_off() {
    let (mut simulation, load) = hall(false);
    load.set(FIVE_TIMES);
    simulation.run_for(5.0);
    simulation.join(Box::new(Playing));
    simulation.run_for(3.0);
    assert_eq!(level(&mut simulation), Level::Normal);
    assert_eq!((simulation.totals().playing, simulation.totals().joining), (PLAYERS as u64 + 1, 0));
    assert!(simulation.server_mut().report().ticks_missed > 0);
}
