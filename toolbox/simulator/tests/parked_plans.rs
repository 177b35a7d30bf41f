//! The promise: a world that panics again and again is not made for ever. Its players are told, others come and go, and
//! when its time is over, or an operator says so, it is made again.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    Server,
    directory::OneWorld,
    lifecycle::{NewWorld, Pending, WorldError},
    prelude::*,
    server::ServerControl,
};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::{Replicate, ecs::Replicated};
use throng_simulator::{Simulation, SimulationSettings};

#[derive(Component, Replicate, Clone, Copy)]
struct Lamp(u8);

#[derive(Pack)]
#[pack(name = "test.step")]
struct Step;

impl ClientInput for Step {}

/// Panics in its first tick with somebody in it, while it is damp.
struct Cellar {
    is_damp: Arc<AtomicBool>,
}

#[derive(Resource)]
struct Damp(Arc<AtomicBool>);

impl WorldKind for Cellar {
    fn name(&self) -> &str {
        "cellar"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Lamp>().input::<Step>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(Damp(self.is_damp.clone()));
        world.add_systems(Update, enter);
    }
}

fn enter(arrivals: Res<Arrivals>, damp: Res<Damp>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    assert!(!damp.0.load(Ordering::Relaxed), "a bug in a game");
    for arrival in &arrivals.0 {
        let player = commands.spawn((Replicated::default(), Lamp(1))).id();
        outbox.set_player(arrival.client, player);
    }
}

struct Quiet;

impl Behaviour for Quiet {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &Step);
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

struct House {
    simulation: Simulation,
    control: ServerControl,
    cellar: WorldKindId,
    is_damp: Arc<AtomicBool>,
}

const SEED: u64 = 7;

impl House {
    /// Two players are in the cellar, and all is well.
    fn new() -> Self {
        let is_damp = Arc::new(AtomicBool::new(false));
        let schema = Protocol::new().component::<Lamp>().input::<Step>().schema();
        let kind = Cellar { is_damp: is_damp.clone() };
        let (mut simulation, cellar) = Simulation::new(&SimulationSettings::new(schema, 5), |server: &mut Server| {
            let cellar = server.add_kind(kind)?;
            let world = server.create_world(cellar, SEED)?;
            server.set_directory(OneWorld::new(server.control(), NewWorld::new(cellar, SEED), world));
            Ok(cellar)
        })
        .unwrap();
        (0..2).for_each(|_| _ = simulation.join(Box::new(Quiet)));
        simulation.run_for(3.0);
        assert_eq!(simulation.totals().playing, 2);
        let control = simulation.server_mut().control();
        Self { simulation, control, cellar, is_damp }
    }

    /// It is damp, until the cellar is parked.
    fn park(&mut self) {
        self.is_damp.store(true, Ordering::Relaxed);
        self.simulation.run_for(5.0);
        assert_eq!((self.count("server.worlds_parked"), self.count("server.parkings")), (3, 1), "and no more");
        assert_eq!(self.simulation.server_mut().worlds_count(), 0);
    }

    fn count(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }

    fn answer<T>(&mut self, pending: &Pending<T>) -> Result<T, WorldError> {
        for _ in 0..1_000 {
            self.simulation.step();
            if let Some(answer) = pending.try_take() {
                return answer;
            }
        }
        panic!("nobody answered");
    }

    /// One more player wants in: whether it is there after a while.
    fn lets_in(&mut self) -> bool {
        let before = self.simulation.totals().playing;
        self.simulation.join(Box::new(Quiet));
        self.simulation.run_for(2.0);
        self.simulation.totals().playing > before
    }
}

#[test]
fn a_world_that_panics_again_and_again_is_not_made_and_everybody_is_told() {
    let mut house = House::new();
    house.park();
    let ends: Vec<_> = house.simulation.players().iter().map(|player| player.end()).collect();
    assert!(ends.iter().all(Option::is_some), "nobody waits for it: {ends:?}");

    for _ in 0..10 {
        assert!(!house.lets_in());
    }
    assert_eq!((house.count("server.worlds_parked"), house.count("server.parkings")), (3, 1));
    assert!(house.count("server.parked_refusals") >= 10);
    let pending = house.control.create_world(NewWorld::new(house.cellar, SEED));
    match house.answer(&pending) {
        Err(WorldError::Parked { kind, left_s }) => assert!(kind == "cellar" && (20..60).contains(&left_s), "{left_s}"),
        other => panic!("{other:?}"),
    }
    let parked = house.control.published().parked();
    assert!(parked.len() == 1 && parked[0].kind == "cellar" && parked[0].seed == SEED, "{parked:?}");
}

#[test]
fn when_its_time_is_over_it_is_made_again_and_for_longer_not_if_it_panics() {
    let mut house = House::new();
    house.park();
    house.simulation.run_for(60.0);
    assert!(!house.lets_in());
    assert_eq!((house.count("server.worlds_parked"), house.count("server.parkings")), (4, 2), "one try");
    house.simulation.run_for(60.0);
    house.is_damp.store(false, Ordering::Relaxed);
    assert!(!house.lets_in(), "twice as long");
    house.simulation.run_for(60.0);
    assert!(house.lets_in() && house.lets_in());
    assert_eq!((house.count("server.worlds_parked"), house.simulation.server_mut().worlds_count()), (4, 1));
    assert!(house.control.published().parked().is_empty());
}

#[test]
fn an_operator_has_it_made_again_and_other_plans_were_never_parked() {
    let mut house = House::new();
    house.park();
    house.is_damp.store(false, Ordering::Relaxed);
    let pending = house.control.create_world(NewWorld::new(house.cellar, SEED + 1));
    assert!(house.answer(&pending).is_ok(), "the same kind by another plan");
    let pending = house.control.unpark_worlds(Some("attic"));
    assert_eq!(house.answer(&pending), Ok(0));
    assert!(!house.lets_in());
    let pending = house.control.unpark_worlds(Some("cellar"));
    assert_eq!(house.answer(&pending), Ok(1));
    assert!(house.lets_in());
}
