//! The promise (R20): a world of a kind that keeps checkpoints and panics is made again in its place, as it was before the
//! tick that failed. Its players stay in it with all that they had, and nobody else notices.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bevy_ecs::prelude::*;
use throng::{Server, lifecycle::NewWorld, prelude::*};
use throng_bots::habits::Repeats;
use throng_pack::Pack;
use throng_simulator::{Simulation, SimulationSettings};

const HZ: u16 = 64;

#[derive(Component, Replicate, Pack, Clone, Copy)]
struct Number(u32);

/// How often its client has said something; told to nobody.
#[derive(Component, Pack)]
struct Steps(u32);

#[derive(Component, Pack)]
struct Owner(ClientKey);

#[derive(Pack)]
#[pack(name = "test.step")]
struct Step;

impl ClientInput for Step {}

/// In which ticks which world panics, by its seed: each as often as it is passed more often than it may.
#[derive(Clone, Default, Resource)]
struct Curses(Arc<Mutex<BTreeMap<(u64, u32), Curse>>>);

#[derive(Clone, Copy)]
struct Curse {
    passes: u32,
    panics: u32,
}

impl Curses {
    fn add(&self, seed: u64, tick: u32, passes: u32, panics: u32) {
        self.0.lock().unwrap().insert((seed, tick), Curse { passes, panics });
    }

    fn strike(&self, seed: u64, tick: u32) {
        let strikes = self.0.lock().unwrap().get_mut(&(seed, tick)).is_some_and(|curse| {
            if curse.passes > 0 {
                curse.passes -= 1;
                return false;
            }
            let strikes = curse.panics > 0;
            curse.panics -= u32::from(strikes);
            strikes
        });
        assert!(!strikes, "a bug in a game, in tick {tick}");
    }
}

#[derive(Resource)]
struct Seed(u64);

/// Where a world is cursed for whoever comes first.
const ARRIVAL: u32 = u32::MAX;

struct Theatre {
    curses: Curses,
}

impl WorldKind for Theatre {
    fn name(&self) -> &str {
        "theatre"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(HZ)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Number>().input::<Step>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Number>().checkpoint::<Steps>().checkpoint::<Owner>();
        let seed = world.seed();
        world.insert_resource(self.curses.clone()).insert_resource(Seed(seed));
        world.add_systems(Startup, |mut commands: Commands| {
            (0..8).for_each(|number| _ = commands.spawn((Replicated::default(), Number(number))));
        });
        world.add_systems(Update, (come, step, count, strike).chain());
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn come(
    (arrivals, departures): (Res<Arrivals>, Res<Departures>),
    owners: Query<(Entity, &Owner)>,
    (curses, seed): (Res<Curses>, Res<Seed>),
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        curses.strike(seed.0, ARRIVAL);
        let player = (Replicated::default(), Number(0), Steps(0), Owner(arrival.client));
        let player = commands.spawn(player).id();
        outbox.set_player(arrival.client, player);
    }
    for (entity, owner) in &owners {
        if departures.0.contains(&owner.0) {
            commands.entity(entity).despawn();
        }
    }
}

fn step(said: Inputs<Step>, mut players: Query<&mut Steps>) {
    for (sender, Step) in said.read() {
        if let Some(Ok(mut steps)) = sender.entity.map(|own| players.get_mut(own)) {
            steps.0 += 1;
        }
    }
}

/// State that follows from all ticks before.
fn count(tick: Res<TickInfo>, mut numbers: Query<&mut Number>) {
    numbers.iter_mut().for_each(|mut number| number.0 = number.0.rotate_left(7).wrapping_mul(0x9e37_79b9) ^ tick.tick);
}

fn strike(tick: Res<TickInfo>, curses: Res<Curses>, seed: Res<Seed>) {
    curses.strike(seed.0, tick.tick);
}

struct House {
    simulation: Simulation,
    /// By seed.
    worlds: Vec<WorldId>,
}

impl House {
    /// So many theatres, and players in the first of them.
    fn new(theatres: usize, players: usize, curses: &Curses) -> Self {
        let kind = Theatre { curses: curses.clone() };
        let mut settings = SimulationSettings { hash: true, ..SimulationSettings::new(kind.protocol().schema(), 20) };
        settings.workers_count = 2;
        let (mut simulation, worlds) = Simulation::new(&settings, |server: &mut Server| {
            let kind = server.add_kind(kind)?;
            (0..theatres as u64).map(|seed| server.create_world_as(NewWorld::new(kind, seed))).collect()
        })
        .expect("theatres");
        (0..players).for_each(|_| _ = simulation.join(Box::new(Repeats(Step))));
        Self { simulation, worlds }
    }

    fn count(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }

    fn hashes(&self) -> BTreeMap<(usize, u32), u64> {
        let hashes = self.simulation.hashes().iter();
        let by_tick: BTreeMap<_, _> = hashes.clone().map(|it| ((it.world.index(), it.tick), it.hash)).collect();
        assert_eq!(by_tick.len(), hashes.count(), "no tick is done twice");
        by_tick
    }

    /// What all players in a world have done.
    fn steps(&mut self, world: WorldId) -> u32 {
        let ecs = self.simulation.server_mut().world_mut(world).expect("it is there").ecs_mut();
        ecs.query::<&Steps>().iter(ecs).map(|steps| steps.0).sum()
    }

    /// All play on, and nobody was moved.
    fn check_players(&mut self, players: u64) {
        let totals = self.simulation.totals();
        assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (players, 0, 0), "{totals:#?}");
        assert_eq!((totals.protocol_errors, self.count("server.clients_placed_again")), (0, 0));
    }
}

const PLAYERS: usize = 6;

/// Worlds with odd seeds panic, and so does the one with the players; some before their first checkpoint, some after it.
fn reloads_reach_nobody_else(theatres: usize, seconds: f64) {
    let curses = Curses::default();
    let last_tick = (seconds * f64::from(HZ)) as u32 - 2 * u32::from(HZ);
    let cursed: Vec<u64> = (0..theatres as u64).filter(|seed| *seed == 0 || seed % 2 == 1).collect();
    for (place, seed) in cursed.iter().enumerate() {
        // When all players are there.
        let first_tick = 5 * u32::from(HZ);
        curses.add(*seed, first_tick + place as u32 * 97 % (last_tick - first_tick), 0, 1);
    }
    let mut healthy = House::new(theatres, PLAYERS, &Curses::default());
    let mut faulty = House::new(theatres, PLAYERS, &curses);
    for house in [&mut healthy, &mut faulty] {
        house.simulation.run_for(seconds);
        house.check_players(PLAYERS as u64);
    }
    let panics = cursed.len() as u64;
    assert_eq!((healthy.count("server.worlds_reloaded"), faulty.count("server.worlds_reloaded")), (0, panics));
    let missed = faulty.simulation.server_mut().ticks_missed_by_world();
    assert!(faulty.worlds.iter().all(|world| missed[world.index()] == 0), "nobody waits");
    let (healthy, faulty) = (healthy.hashes(), faulty.hashes());
    assert!(healthy.len() >= theatres * last_tick as usize);
    let ticks_lost = healthy.len() - faulty.len().min(healthy.len());
    assert!(ticks_lost <= 4 * cursed.len(), "{ticks_lost} ticks were away with {panics} worlds");
    let parted: Vec<_> =
        faulty.iter().filter(|(at, hash)| healthy.get(at).is_some_and(|other| other != *hash)).collect();
    assert!(parted.is_empty(), "(world, tick) went another way: {:?}", &parted[..parted.len().min(5)]);
}

#[test]
fn r20_worlds_that_panic_go_on_as_they_were_and_no_other_notices() {
    reloads_reach_nobody_else(24, 25.0);
}

#[test]
#[ignore = "full form: minutes in a release build"]
fn r20_a_thousand_worlds_go_on_after_a_panic_and_no_other_of_a_thousand_notices() {
    reloads_reach_nobody_else(2_000, 40.0);
}

#[test]
fn players_keep_what_they_had_and_lose_what_they_said_in_one_tick() {
    let curses = Curses::default();
    let mut house = House::new(1, PLAYERS, &curses);
    let world = house.worlds[0];
    house.simulation.run_for(15.0);
    let before = house.steps(world);
    assert!(before > 1_000, "{before}");
    let tick = house.hashes().keys().map(|(_, tick)| *tick).max().unwrap();
    curses.add(0, tick + 3, 0, 1);
    let at_once = house.steps(world);
    house.simulation.run_for(0.5);
    assert_eq!(house.count("server.worlds_reloaded"), 1);
    let after = house.steps(world);
    assert!(after >= at_once && after > before, "{before}, {at_once}, then {after}");
    house.simulation.run_for(5.0);
    let later = house.steps(world);
    // 20 a second of each, but for those of the tick that failed and of the frames in which the world was away.
    let expect = PLAYERS as u32 * 20 * 5;
    assert!((expect - 3 * PLAYERS as u32..=expect + 3 * PLAYERS as u32).contains(&(later - after)), "{after}, {later}");
    house.check_players(PLAYERS as u64);
}

#[test]
fn who_comes_in_the_tick_that_fails_comes_again() {
    let curses = Curses::default();
    let mut house = House::new(1, 2, &curses);
    house.simulation.run_for(3.0);
    curses.add(0, ARRIVAL, 0, 1);
    house.simulation.join(Box::new(Repeats(Step)));
    house.simulation.run_for(3.0);
    assert_eq!(house.count("server.worlds_reloaded"), 1);
    house.check_players(3);
    let (world, before) = (house.worlds[0], house.steps(house.worlds[0]));
    house.simulation.run_for(1.0);
    assert!(house.steps(world) - before >= 3 * 18, "all three walk");
}

/// Ticks are lost then, and no more.
#[test]
fn a_world_whose_log_panics_too_begins_at_its_checkpoint() {
    let curses = Curses::default();
    // Passed once, and struck when it is done again.
    curses.add(0, 20 * u32::from(HZ), 1, 1);
    curses.add(0, 21 * u32::from(HZ), 0, 1);
    let mut house = House::new(1, PLAYERS, &curses);
    house.simulation.run_for(25.0);
    assert_eq!((house.count("server.worlds_reloaded"), house.count("server.worlds_parked")), (1, 1));
    let totals = house.simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (PLAYERS as u64, 0, 0), "{totals:#?}");
    let world = house.worlds[0];
    assert!(house.steps(world) > 1_000, "what they had at the checkpoint");
}

#[test]
fn a_world_that_panics_again_and_again_is_parked() {
    let curses = Curses::default();
    curses.add(0, 5 * u32::from(HZ), 0, 9);
    let mut house = House::new(2, PLAYERS, &curses);
    house.simulation.run_for(10.0);
    assert_eq!((house.count("server.worlds_reloaded"), house.count("server.worlds_parked")), (2, 3));
    assert_eq!((house.count("server.parkings"), house.simulation.server_mut().worlds_count()), (1, 1));
}
