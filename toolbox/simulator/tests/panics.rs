//! The promise (R20): a world that panics, however it does, is the only one that notices. All others go on as in a run in
//! which nothing panics, to the last bit of their state, and miss no tick.

use std::{cell::RefCell, panic::panic_any};

use bevy_ecs::prelude::*;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    Server,
    inspection::WorldHash,
    lifecycle::{NewWorld, Pending, WorldError},
    prelude::*,
};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

/// How a world goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Pack)]
enum Fault {
    None,
    Said,
    NotThere,
    OutOfRange,
    LentTwice,
    /// A panic whose payload is no text.
    WithoutText,
    InDrop,
    InCommand,
    InMaking,
}

const FAULTS: [Fault; 8] = [
    Fault::Said,
    Fault::NotThere,
    Fault::OutOfRange,
    Fault::LentTwice,
    Fault::WithoutText,
    Fault::InDrop,
    Fault::InCommand,
    Fault::InMaking,
];

/// What a world is made with.
#[derive(Debug, Clone, Copy, Pack, Resource)]
#[pack(name = "test.illness")]
struct Illness {
    fault: Fault,
    tick: u32,
}

#[derive(Component, Replicate, Clone, Copy)]
struct Number(u32);

/// Worlds that are compared, and worlds that go wrong beside them.
struct Hall {
    name: &'static str,
}

impl WorldKind for Hall {
    fn name(&self) -> &str {
        self.name
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(64)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Number>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let illness = world.parameters::<Illness>().map(|illness| illness.expect("it was packed by this test"));
        world.insert_resource(illness.unwrap_or(Illness { fault: Fault::None, tick: 0 }));
        assert!(illness.is_none_or(|illness| illness.fault != Fault::InMaking), "a world that cannot be made");
        world.add_systems(Startup, |mut commands: Commands| {
            (0..8).for_each(|number| _ = commands.spawn((Replicated::default(), Number(number))));
        });
        world.add_systems(Update, (count, go_wrong).chain());
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// State that follows from all ticks before.
fn count(tick: Res<TickInfo>, mut numbers: Query<&mut Number>) {
    numbers.iter_mut().for_each(|mut number| number.0 = number.0.rotate_left(7).wrapping_mul(0x9e37_79b9) ^ tick.tick);
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("a value that cannot be dropped");
    }
}

fn go_wrong(tick: Res<TickInfo>, illness: Res<Illness>, mut commands: Commands) {
    if tick.tick < illness.tick {
        return;
    }
    let nothing: Vec<u32> = Vec::with_capacity(illness.tick as usize);
    match illness.fault {
        Fault::None | Fault::InMaking => {}
        Fault::Said => panic!("a bug in a game"),
        Fault::NotThere => _ = nothing.first().expect("there is one"),
        Fault::OutOfRange => _ = nothing[illness.tick as usize],
        Fault::LentTwice => {
            let cell = RefCell::new(1);
            let _lent = cell.borrow_mut();
            *cell.borrow_mut() = 2;
        }
        Fault::WithoutText => panic_any(tick.tick),
        Fault::InDrop => drop(PanicsInDrop),
        Fault::InCommand => commands.queue(|_: &mut World| panic!("a command that cannot be carried out")),
    }
}

struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}
}

const PLAYERS: usize = 6;
/// So many are made in a frame.
const MADE_AT_ONCE: usize = 4;

/// What became of a run: hashes of the calm worlds, in order, and how many panicked.
struct Outcome {
    hashes: Vec<WorldHash>,
    panicked: u64,
}

/// `calm` worlds beside `sick` ones, which are made a few in each frame and go wrong in their first ticks, if `is_sick`.
fn run(calm: usize, sick: usize, is_sick: bool) -> Outcome {
    let mut settings =
        SimulationSettings { hash: true, ..SimulationSettings::new(Hall { name: "" }.protocol().schema(), 20) };
    settings.workers_count = 2;
    let (mut simulation, (kind, calm)) = Simulation::new(&settings, |server: &mut Server| {
        let hall = server.add_kind(Hall { name: "calm" })?;
        let calm: Result<Vec<_>, _> = (0..calm as u64).map(|seed| server.create_world(hall, seed)).collect();
        Ok((server.add_kind(Hall { name: "sick" })?, calm?))
    })
    .expect("calm worlds");
    // Players are placed in the first world, and are to notice nothing either.
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Idle)));
    let control = simulation.server_mut().control();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(20);
    let mut asked: Vec<Pending<_>> = Vec::new();
    for number in 0..sick {
        let fault = FAULTS[number % FAULTS.len()];
        let tick = rng.random_range(1..20);
        let illness = Illness { fault: if is_sick { fault } else { Fault::None }, tick };
        asked.push(control.create_world(NewWorld::new(kind, number as u64).with(&illness).expect("it is small")));
        if number % MADE_AT_ONCE == 0 {
            simulation.step();
        }
    }
    simulation.run_for(2.0);
    // One that cannot be made is an answer, too.
    let refused = asked.iter().filter(|asked| matches!(asked.try_take(), Some(Err(WorldError::Panicked(_))))).count();
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (PLAYERS as u64, 0, 0), "{totals:?}");
    let missed = simulation.server_mut().ticks_missed_by_world();
    assert!(calm.iter().all(|world| missed[world.index()] == 0));
    let panicked = simulation.server_mut().count_of("server.worlds_parked") + refused as u64;
    let hashes = simulation.hashes().iter().filter(|hash| calm.contains(&hash.world)).copied().collect();
    Outcome { hashes, panicked }
}

fn panics_reach_nobody_else(calm: usize, sick: usize) {
    let (healthy, faulty) = (run(calm, sick, false), run(calm, sick, true));
    assert_eq!((healthy.panicked, faulty.panicked), (0, sick as u64));
    assert!(healthy.hashes.len() >= calm * 100, "{} hashes", healthy.hashes.len());
    let by_world = |outcome: &Outcome| {
        let mut hashes: Vec<_> = outcome.hashes.iter().map(|hash| (hash.world.index(), hash.tick, hash.hash)).collect();
        hashes.sort_unstable();
        hashes
    };
    assert!(by_world(&healthy) == by_world(&faulty), "worlds that are sound went another way beside worlds that panic");
}

#[test]
fn r20_fifty_worlds_panic_and_no_other_notices() {
    panics_reach_nobody_else(40, 56);
}

#[test]
#[ignore = "full form: a minute in a release build"]
fn r20_a_thousand_worlds_panic_and_no_other_of_a_thousand_notices() {
    panics_reach_nobody_else(1_000, 1_000);
}
