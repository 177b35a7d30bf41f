//! The promise: what is late because a client's line is narrow is no state error, and what is wrong there is one.
//!
//! A crowd that moves all the time takes more than the line carries, so that what changes seldom waits for its turn for
//! longer than the grace of an audit sample. The control breaks replication on the same line.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, prelude::*};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_replication::Fault;
use throng_simulator::{Simulation, SimulationSettings};

const PLAYERS: usize = 4;
/// In sight of everybody. Each takes some 10 B a tick.
const WALKERS: u32 = 1_200;
/// A gate opens or shuts so seldom. (ticks)
const GATE_TICKS: u32 = 100;
/// What the settings allow, and what the line takes. (bytes/s)
const LINES_BYTES_PER_S: [(u32, Option<u64>); 3] = [(200 * 20, None), (2400 * 20, Some(4_000)), (2400 * 20, None)];

#[derive(Component, Replicate, Clone, Copy, PartialEq)]
struct Steps(u32);

#[derive(Component, Replicate, Clone, Copy, PartialEq)]
struct Gate {
    is_open: bool,
}

struct Street;

impl WorldKind for Street {
    fn name(&self) -> &str {
        "street"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Steps>().component::<Gate>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Startup, |mut commands: Commands| {
            (0..WALKERS).for_each(|walker| {
                _ = commands.spawn((Replicated::default(), Steps(walker), Gate { is_open: false }));
            });
        });
        world.add_systems(Update, |tick: Res<TickInfo>, mut walkers: Query<(&mut Steps, &mut Gate)>| {
            for (walker, (mut steps, mut gate)) in (0..).zip(&mut walkers) {
                steps.0 += 1;
                if (tick.tick + walker).is_multiple_of(GATE_TICKS) {
                    gate.is_open = !gate.is_open;
                }
            }
        });
    }
}

struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}
}

fn street((budget_bytes_per_s, line_bytes_per_s): (u32, Option<u64>)) -> Simulation {
    let mut settings = SimulationSettings::new(Street.protocol().schema(), 26);
    settings.server.replication.budget_bytes_per_tick = budget_bytes_per_s / 20;
    settings.impairment = Impairment { bytes_per_s: line_bytes_per_s, ..Impairment::NONE };
    let worlds = |server: &mut Server| {
        let street = server.add_kind(Street)?;
        server.create_world(street, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, worlds).expect("a street");
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Idle)));
    simulation
}

#[test]
fn what_a_narrow_line_makes_late_is_no_error() {
    for line in LINES_BYTES_PER_S {
        let mut simulation = street(line);
        simulation.run_for(60.0);
        let totals = simulation.totals();
        println!("{line:?}: {} checks, {} superseded", totals.state_checks, totals.state_checks_superseded);
        assert_eq!((totals.playing, totals.state_errors), (PLAYERS as u64, 0), "{line:?}: {totals:#?}");
        assert!(totals.state_checks > 60 * PLAYERS as u64 / 2, "{line:?}: {totals:#?}");
    }
}

#[test]
fn what_is_wrong_on_a_narrow_line_is_noticed() {
    for line in LINES_BYTES_PER_S {
        street(line).check_fault_is_noticed(Fault::CorruptEncoding);
    }
}

#[test]
fn what_is_never_told_is_noticed_where_the_line_is_wide() {
    let wide = (65_536 * 20, None);
    street(wide).check_fault_is_noticed(Fault::SkipUpdates);
}
