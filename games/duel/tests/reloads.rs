//! The promise (R20): a match that panics goes on with its ten players and everything that it had, and so does the lobby with
//! its line; no other match notices.

mod simulated;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use duel::{
    BotGuide, DuelBot,
    components::Phase,
    protocol::MATCH,
    rounds::Rounds,
    seats::Seats,
    server::build_with,
    teams::SEATS,
    worlds::{Match, Step},
};
use throng::prelude::*;
use throng_faults::{FaultSwitch, Panic};
use throng_simulator::{Simulation, SimulationSettings};

/// The match that panics: of two, the first to be made.
const CURSED: u32 = 1;

/// A match in which a system fails when somebody says so.
struct Faulty {
    inner: Match,
    /// The tick of the cursed match that panics, once; 0: none.
    curse: Curse,
}

#[derive(Clone, Default, Resource)]
struct Curse(Arc<AtomicU32>);

impl WorldKind for Faulty {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn tick_rate(&self) -> Hertz {
        self.inner.tick_rate()
    }

    fn protocol(&self) -> Protocol {
        self.inner.protocol()
    }

    fn dormant_when_empty(&self) -> bool {
        self.inner.dormant_when_empty()
    }

    fn build(&self, world: &mut WorldBuilder) {
        self.inner.build(world);
        world.insert_resource(self.curse.clone()).add_systems(Update, strike.in_set(Step::Shoot));
    }
}

fn strike(tick: Res<TickInfo>, curse: Res<Curse>) {
    let is_cursed = tick.world.index() as u32 == CURSED;
    let strikes = is_cursed && curse.0.compare_exchange(tick.tick, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    assert!(!(strikes && tick.tick > 0), "a bug in the game, in tick {}", tick.tick);
}

struct House {
    simulation: Simulation,
    curse: Curse,
}

impl House {
    /// Two matches of bots, in the middle of their rounds.
    fn new() -> Self {
        let curse = Curse::default();
        let settings = SimulationSettings { hash: true, ..simulated::settings(6) };
        let (mut simulation, _) = Simulation::new(&settings, |server| {
            build_with(server, &simulated::short(), |inner| Faulty { inner, curse: curse.clone() })
        })
        .expect("the game can be set up");
        let guide = BotGuide::load();
        (0..2 * SEATS).for_each(|_| _ = simulation.join(Box::new(DuelBot::new(guide.clone()))));
        Self { simulation, curse }
    }

    fn matches(&mut self) -> Vec<WorldId> {
        let server = self.simulation.server_mut();
        let ids: Vec<WorldId> = server.worlds().map(|(id, ..)| id).collect();
        ids.into_iter().filter(|id| server.world_mut(*id).is_some_and(|world| **world.name() == *MATCH)).collect()
    }

    fn rounds(&mut self, world: WorldId) -> (u32, Rounds, usize) {
        let world = self.simulation.server_mut().world_mut(world).expect("it is at home between frames");
        let ticks = world.ticks();
        let ecs = world.ecs_mut();
        (ticks, *ecs.resource::<Rounds>(), ecs.resource::<Seats>().iter().count())
    }

    fn hashes(&self) -> BTreeMap<(usize, u32), u64> {
        self.simulation.hashes().iter().map(|it| ((it.world.index(), it.tick), it.hash)).collect()
    }

    fn count(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }
}

#[test]
fn r20_a_match_that_panics_goes_on_with_its_ten_players_and_no_other_notices() {
    let (mut healthy, mut faulty) = (House::new(), House::new());
    for house in [&mut healthy, &mut faulty] {
        house.simulation.run_for(14.0);
    }
    let cursed = faulty.matches().into_iter().find(|id| id.index() as u32 == CURSED).expect("it is there");
    let (tick, before, players) = faulty.rounds(cursed);
    assert!(before.phase() != Phase::WarmUp && players == SEATS, "{before:?}");
    faulty.curse.0.store(tick + 5, Ordering::Relaxed);
    for house in [&mut healthy, &mut faulty] {
        house.simulation.run_for(6.0);
        let totals = house.simulation.totals();
        let all = 2 * SEATS as u64;
        assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (all, 0, 0), "{totals:#?}");
        assert_eq!((totals.protocol_errors, house.count("server.clients_placed_again")), (0, 0));
    }
    assert_eq!((healthy.count("server.worlds_reloaded"), faulty.count("server.worlds_reloaded")), (0, 1));
    let (later, after, players) = faulty.rounds(cursed);
    assert!(later > tick + 500 && players == SEATS, "{later} ticks, {players} players");
    assert!(after.clock.round >= before.clock.round, "{before:?}, then {after:?}");
    let (healthy, faulty) = (healthy.hashes(), faulty.hashes());
    let others = faulty.iter().filter(|((world, _), _)| *world as u32 != CURSED);
    let parted: Vec<_> = others.filter(|(at, hash)| healthy.get(at).is_some_and(|other| other != *hash)).collect();
    assert!(parted.is_empty(), "(world, tick) went another way: {:?}", &parted[..parted.len().min(5)]);
    // And until it panicked, the cursed one went the same way.
    let same = |at: &(usize, u32)| healthy.get(at) == faulty.get(at);
    assert!((1..tick).all(|tick| same(&(CURSED as usize, tick))));
}

/// Promise: what `--inject` puts into a match strikes that match alone, once, at the time by the clock that it has in the other
/// games: this is the shared fault in the match that ships.
#[test]
fn an_injected_panic_strikes_one_match_and_it_goes_on() {
    let mut settings = simulated::short();
    settings.inject(FaultSwitch::Panics(Panic::OutOfRange), 2 * SEATS);
    let mut simulation = simulated::game_with_bots(&simulated::settings(7), settings, 2 * SEATS);
    // It is tick 300 at 20 Hz.
    simulation.run_for(14.0);
    assert_eq!(simulation.server_mut().count_of("server.worlds_reloaded"), 0, "its tick has not come");
    simulation.run_for(6.0);
    assert_eq!(simulation.server_mut().count_of("server.worlds_reloaded"), 1, "one of two matches, once");
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (2 * SEATS as u64, 0, 0), "{totals:#?}");
}

/// Whoever waits in a lobby that panics waits on, and is sent to a match when there are enough.
#[test]
fn a_lobby_that_panics_keeps_its_line() {
    let settings = duel::DuelSettings { fill_s: 30.0, ..simulated::short() };
    let mut simulation = simulated::game_with_bots(&simulated::settings(8), settings, SEATS - 1);
    simulation.run_for(12.0);
    let lobby = simulation.server_mut().worlds().map(|(id, ..)| id).next().expect("it is there from the start");
    let world = simulation.server_mut().world_mut(lobby).expect("it is at home between frames");
    // Its next tick panics at the very beginning; it rests until somebody comes.
    assert!(world.ecs_mut().remove_resource::<TickInfo>().is_some());
    simulation.join(Box::new(DuelBot::new(BotGuide::load())));
    simulation.run_for(6.0);
    assert_eq!(simulation.server_mut().count_of("server.worlds_reloaded"), 1);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects), (SEATS as u64, 0), "{totals:#?}");
    let is_playing =
        |player: &throng_simulator::Player| player.client().world().is_some_and(|world| world.name == MATCH);
    assert_eq!(simulation.players().iter().filter(|player| is_playing(player)).count(), SEATS);
}
