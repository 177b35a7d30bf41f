//! The promise: what a game does to no effect is counted and has a line in the log with names, and its clients stay in
//! their world: a player which nobody can be told of, a journey to a world that is not there, a value that cannot be sent
//! as it is.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng::profiler::log::{CategoryFilter, Lines, lines_between};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::{ticks, time::Nanos};
use throng_replication::ecs::Replicated;
use throng_simulator::{Simulation, SimulationSettings};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

/// What is wrong here.
#[derive(Resource, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    NotReplicated,
    Despawned,
}

struct Hall(Fault);

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.0).add_systems(Update, welcome);
    }
}

fn welcome(arrivals: Res<Arrivals>, fault: Res<Fault>, mut commands: Commands, mut outbox: ResMut<Outbox>) {
    for arrival in &arrivals.0 {
        let mut player = commands.spawn_empty();
        if *fault != Fault::NotReplicated {
            player.insert(Replicated::default());
        }
        outbox.set_player(arrival.client, player.id());
        if *fault == Fault::Despawned {
            player.despawn();
        }
    }
}

/// Everybody is sent to a world that never was.
struct Pier;

const NOWHERE: WorldId = WorldId::new(77, 0);

#[derive(Pack)]
#[pack(name = "test.bag")]
struct Bag;

impl WorldKind for Pier {
    fn name(&self) -> &str {
        "pier"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, set_sail);
    }
}

fn set_sail(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>) {
    for arrival in arrivals.0.iter().filter(|arrival| arrival.refused.is_none()) {
        outbox.travel(arrival.client, NOWHERE, &Bag).expect("it has no limits");
    }
}

#[derive(Component, Clone, Replicate)]
struct Heat {
    #[replicate(min = 0.0, max = 100.0, step = 0.1)]
    degrees: f32,
}

/// There is something so hot in it.
struct Kiln(f32);

impl WorldKind for Kiln {
    fn name(&self) -> &str {
        "kiln"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Heat>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.world_mut().spawn((Replicated::default(), Heat { degrees: self.0 }));
    }
}

struct Listener;

impl Behaviour for Listener {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

const PLAYERS: u64 = 3;

fn play(kind: impl WorldKind) -> Simulation {
    let settings = SimulationSettings::new(kind.protocol().schema(), 6);
    let build = |server: &mut throng::Server| {
        let kind = server.add_kind(kind)?;
        server.create_world(kind, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, build).unwrap();
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Listener)));
    simulation.run_for(3.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.protocol_errors), (PLAYERS, 0), "{totals:#?}");
    simulation
}

/// What is logged from now on. One test at a time: a line that is written while another test reads would be missed.
struct Log {
    begin: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Log {
    fn keep() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        static KEPT: Once = Once::new();
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // Of the whole process: some of it is said by workers.
        KEPT.call_once(|| tracing_subscriber::registry().with(CategoryFilter).with(Lines::new()).init());
        Self { begin: ticks::now(), _turn: turn }
    }

    /// How many lines say this; each has all of the names.
    #[track_caller]
    fn check(&self, message: &str, names: &[&str]) -> u64 {
        let lines = lines_between(self.begin, ticks::now());
        let told: Vec<&str> = lines.iter().map(|line| line.text()).filter(|line| line.contains(message)).collect();
        let has_names = |line: &&str| names.iter().all(|name| line.contains(name));
        assert!(told.iter().all(has_names), "{names:?} in {told:?}");
        told.len() as u64
    }
}

#[test]
fn a_player_that_nobody_can_be_told_of_is_counted_and_logged() {
    let log = Log::keep();
    let mut told_before = 0;
    for (fault, expect) in [(Fault::None, 0), (Fault::NotReplicated, PLAYERS), (Fault::Despawned, PLAYERS)] {
        let mut simulation = play(Hall(fault));
        let with_player = simulation.players().iter().filter(|player| player.client().own_entity().is_some()).count();
        assert_eq!(with_player as u64, PLAYERS - expect);
        assert_eq!(simulation.server_mut().count_of("world.players_unreplicated"), expect, "once for each");
        let told = log.check("has no Replicated, or is gone", &["kind=\"hall\"", "world=0", "client="]);
        assert_eq!(told - told_before, expect, "once for each");
        told_before = told;
    }
}

#[test]
fn a_client_that_is_sent_nowhere_is_told_and_logged() {
    let log = Log::keep();
    let mut simulation = play(Pier);
    for player in simulation.players() {
        assert_eq!(player.client().stats().travels_refused, 1);
        assert!(player.client().world().is_some_and(|world| world.has_returned), "it knows that it is back");
    }
    assert_eq!(simulation.server_mut().count_of("server.travels_refused"), PLAYERS);
    let names = ["kind=\"pier\"", "world=0", "client=", "to=77", "why=\"that world is no more\""];
    let told = log.check("sent to another world, and is back where it was", &names);
    assert_eq!(told, PLAYERS);
}

#[test]
fn a_value_that_cannot_be_sent_as_it_is_is_counted_and_logged() {
    const OUTSIDE: &str = "a value is outside its declared range";
    const POISON: &str = "a value is NaN or infinite";
    let names = ["kind=\"kiln\"", "world=0", "component=\"Heat\"", "entity=Some("];
    for (degrees, said, counter) in [
        (100.0, None, None),
        (5_000.0, Some(OUTSIDE), Some("replication.clamped")),
        (f32::NAN, Some(POISON), Some("replication.poisoned")),
    ] {
        let log = Log::keep();
        let mut simulation = play(Kiln(degrees));
        for message in [OUTSIDE, POISON] {
            assert_eq!(log.check(message, &names) > 0, said == Some(message), "{degrees}: {message}");
        }
        for name in ["replication.clamped", "replication.poisoned"] {
            assert_eq!(simulation.server_mut().count_of(name) > 0, counter == Some(name), "{degrees}: {name}");
        }
    }
}
