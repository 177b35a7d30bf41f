//! The promise: a world that panics again and again is not made for ever. Its players are told, others come and go, and
//! when its time is over, or an operator says so, it is made again.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bevy_ecs::prelude::*;
use throng::{
    Server,
    directory::OneWorld,
    lifecycle::{NewWorld, Pending, WorldError},
    parking::{Culprit, ParkedFor},
    prelude::*,
    server::ServerControl,
};
use throng_bots::habits::Repeats;
use throng_pack::Pack;
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
        let mut house = Self::after(Vec::new());
        assert_eq!(house.simulation.totals().playing, 2);
        assert_eq!(house.worlds(), [WorldId::new(0, 0)]);
        house
    }

    /// Two players want into the cellar of a server that comes after others, which died of these.
    fn after(culprits: Vec<Culprit>) -> Self {
        let is_damp = Arc::new(AtomicBool::new(false));
        let schema = Protocol::new().component::<Lamp>().input::<Step>().schema();
        let kind = Cellar { is_damp: is_damp.clone() };
        let (mut simulation, cellar) = Simulation::new(&SimulationSettings::new(schema, 5), |server: &mut Server| {
            server.park_culprits(culprits);
            let cellar = server.add_kind(kind)?;
            let world = server.create_world(cellar, SEED)?;
            server.set_directory(OneWorld::new(server.control(), NewWorld::new(cellar, SEED), world));
            Ok(cellar)
        })
        .unwrap();
        (0..2).for_each(|_| _ = simulation.join(Box::new(Repeats(Step))));
        simulation.run_for(3.0);
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

    fn worlds(&mut self) -> Vec<WorldId> {
        self.simulation.server_mut().worlds().map(|(id, ..)| id).collect()
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
        self.simulation.join(Box::new(Repeats(Step)));
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
        Err(WorldError::Parked { kind, left_s }) => {
            assert!(kind == "cellar" && left_s.is_some_and(|left_s| (20..60).contains(&left_s)), "{left_s:?}");
        }
        other => panic!("{other:?}"),
    }
    let parked = house.control.published().parked();
    assert!(parked.len() == 1 && parked[0].kind == "cellar" && parked[0].seed == Some(SEED), "{parked:?}");
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

#[test]
fn an_operator_takes_a_world_out_and_has_it_made_again_in_its_place() {
    let mut house = House::new();
    for nobody in ["7", "0.1"] {
        let pending = house.control.park_worlds(nobody);
        assert!(matches!(house.answer(&pending), Err(WorldError::NoSuchWorld(_))), "{nobody}");
    }
    let pending = house.control.park_worlds("0");
    assert_eq!(house.answer(&pending), Ok(1));
    house.simulation.run_for(3.0);
    assert_eq!((house.worlds(), house.simulation.totals().playing), (vec![], 0));
    assert!(house.simulation.players().iter().all(|player| player.end().is_some()), "they were told");
    assert!(!house.lets_in());
    house.simulation.run_for(4_000.0);
    assert!(!house.lets_in(), "until somebody says so");
    let parked = house.control.published().parked();
    assert!(parked.len() == 1 && parked[0].why == ParkedFor::Operator && parked[0].left_s.is_none(), "{parked:?}");
    assert_eq!(parked[0].world.as_deref(), Some("0"));

    let pending = house.control.unpark_worlds(Some("0"));
    assert_eq!(house.answer(&pending), Ok(1));
    assert!(house.lets_in() && house.lets_in());
    assert_eq!(house.worlds(), [WorldId::new(0, 0)], "the directory knows it by its id");
    assert!(house.control.published().parked().is_empty());
    assert_eq!(house.count("server.worlds_parked"), 0, "nothing panicked");
}

#[test]
fn an_operator_takes_all_worlds_of_a_kind_out_whatever_their_plans() {
    let mut house = House::new();
    let pending = house.control.create_world(NewWorld::new(house.cellar, SEED + 1));
    assert!(house.answer(&pending).is_ok());
    let pending = house.control.park_worlds("attic");
    assert_eq!(house.answer(&pending), Err(WorldError::NoKindNamed("attic".into())));
    let pending = house.control.park_worlds("cellar");
    assert_eq!(house.answer(&pending), Ok(2));
    house.simulation.run_for(1.0);
    assert_eq!(house.worlds(), []);
    let pending = house.control.create_world(NewWorld::new(house.cellar, SEED + 2));
    assert_eq!(house.answer(&pending), Err(WorldError::Parked { kind: "cellar".into(), left_s: None }));
    let pending = house.control.unpark_worlds(Some("cellar"));
    assert_eq!(house.answer(&pending), Ok(1));
    assert!(house.lets_in());
    assert_eq!(house.worlds(), [WorldId::new(0, 0)], "the other one was somebody's to ask for again");
}

fn culprit(house: &House, deaths: u32) -> Culprit {
    let plan = NewWorld::new(house.cellar, SEED).digest("cellar");
    Culprit { kind: "cellar".into(), seed: SEED, plan, place: None, deaths }
}

#[test]
fn a_world_that_a_server_died_of_is_parked_from_the_start_of_the_next() {
    let culprit = culprit(&House::new(), 2);
    let mut house = House::after(vec![culprit.clone()]);
    assert_eq!((house.worlds(), house.simulation.totals().playing), (vec![], 0));
    let parked = house.control.published().parked();
    assert!(parked.len() == 1 && parked[0].why == ParkedFor::Death && parked[0].times == 2, "{parked:?}");
    house.simulation.run_for(110.0);
    assert!(!house.lets_in(), "120 s after two deaths");
    house.simulation.run_for(10.0);
    assert!(house.lets_in(), "it is made again by itself");
    assert_eq!(house.worlds(), [WorldId::new(0, 0)]);

    let mut house = House::after(vec![Culprit { deaths: 1, ..culprit.clone() }]);
    let pending = house.control.unpark_worlds(None);
    assert_eq!(house.answer(&pending), Ok(1));
    assert!(house.lets_in(), "an operator says so");

    // By its place, where seeds are others each time; and not by the place of what somebody asked for.
    let other = Culprit { plan: 1, seed: 1, place: Some(WorldId::new(0, 0)), ..culprit.clone() };
    assert_eq!(House::after(vec![other.clone()]).worlds(), []);
    assert_eq!(House::after(vec![Culprit { place: None, ..other }]).worlds().len(), 1);
    assert_eq!(House::after(vec![Culprit { kind: "attic".into(), ..culprit }]).worlds().len(), 1);
}
