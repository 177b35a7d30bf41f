//! The promise (R28): where time jumps, because a host pauses its guest, because the process is stopped or because somebody
//! sets the date, nobody is let go for it, no tick is run twice or in a row to make up for it, and what clients hold is what
//! the world says.

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, prelude::*};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

const TICKS_PER_S: u32 = 20;
const PLAYERS: usize = 8;
/// What the server bears of silence. Pauses are up to four times as long.
const TIMEOUT_S: u32 = 2;
const LOST_S: f64 = 0.1;
const JUMPS: usize = 200;
/// Monday, 23 November 2026.
const TODAY_UNIX_S: u64 = 1_795_392_000;

#[derive(Component, Replicate, Clone, Copy)]
struct Counter(u32);

struct Hall;

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(TICKS_PER_S as u16)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Counter>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Startup, |mut commands: Commands| _ = commands.spawn((Replicated::default(), Counter(0))));
        world.add_systems(Update, |mut counters: Query<&mut Counter>| {
            counters.iter_mut().for_each(|mut counter| counter.0 += 1);
        });
    }
}

struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}
}

fn hall() -> Simulation {
    let mut settings = SimulationSettings::new(Hall.protocol().schema(), 28);
    settings.server.server.timeout_s = TIMEOUT_S;
    settings.token_timeout_s = 60;
    let worlds = |server: &mut Server| {
        let hall = server.add_kind(Hall)?;
        server.create_world(hall, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, worlds).expect("a hall");
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Idle)));
    simulation.run_for(1.0);
    assert_eq!(simulation.totals().playing, PLAYERS as u64);
    simulation
}

/// All stands still, and what was on its way is lost. What players say next is on its way for longer than a tick.
fn pause(simulation: &mut Simulation, seconds: f64) {
    simulation.impair(Impairment { loss: 1.0, ..Impairment::NONE });
    simulation.run_for(LOST_S);
    simulation.stand_still(seconds);
    simulation.impair(Impairment { delay: Nanos::from_millis(60), ..Impairment::NONE });
}

#[test]
fn r28_time_that_jumps_costs_nobody_his_place() {
    let mut simulation = hall();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(28);
    let (mut ran_s, mut stood_s) = (1.0, 0.0);
    for jump in 0..JUMPS {
        let (pause_s, run_s) = (rng.random_range(0.05..8.0), rng.random_range(0.2..2.0));
        if jump % 4 == 0 {
            let dates = [0, TODAY_UNIX_S, TODAY_UNIX_S - 3_600, TODAY_UNIX_S + 3_600, TODAY_UNIX_S - 86_400];
            simulation.set_unix_seconds(dates[rng.random_range(0..dates.len())]);
        }
        pause(&mut simulation, pause_s);
        simulation.run_for(run_s);
        (ran_s, stood_s) = (ran_s + LOST_S + run_s, stood_s + pause_s);
        assert_eq!(simulation.totals().playing, PLAYERS as u64, "after a pause of {pause_s} s");
    }
    simulation.run_for(2.0);
    let (totals, report) = (simulation.totals(), simulation.server_mut().report());
    let (ran, stood) = (((ran_s + 2.0) * 20.0) as u64, (stood_s * 20.0) as u64);
    println!("{ran} ticks to run and {stood} in pauses: {} run, {} missed", report.ticks, report.ticks_missed);
    assert_eq!((totals.disconnects, totals.state_errors), (0, 0), "{totals:?}");
    assert!(totals.state_checks > 0);
    let jumps = JUMPS as u64;
    assert!(report.ticks <= ran + 5 * jumps, "they are made up for: {} of {ran}", report.ticks);
    assert!(
        report.ticks_missed + 2 * jumps >= stood,
        "what is left out is counted: {} of {stood}",
        report.ticks_missed
    );
}

#[test]
fn who_is_silent_while_the_server_listens_is_let_go_all_the_same() {
    let mut simulation = hall();
    pause(&mut simulation, 8.0);
    simulation.run_for(1.0);
    simulation.impair(Impairment { loss: 1.0, ..Impairment::default() });
    simulation.run_for(f64::from(TIMEOUT_S) + 0.5);
    assert_eq!(simulation.server_mut().report().players, 0);
}
