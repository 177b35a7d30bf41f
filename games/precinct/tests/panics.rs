//! The promise: a world of Precinct that panics goes on as it was before the tick that failed. Its players stay connected,
//! in it, with all that they had, and no other world notices.
//!
//! Six hideouts panic, each in another way, while their owners play at home; others travel between worlds that are
//! compared, tick by tick, with those of a run in which nothing panics.

mod simulated;

use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::prelude::*;
use precinct::{
    FaultyHideout, PrecinctBot, PrecinctSettings, PrecinctWorlds,
    arena::Arena,
    bot::Itinerary,
    gear::{Bag, GearId, GearKind},
    passport::{Passport, PlayerClient},
    protocol::Input,
    stash::Stash,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::{ClientKey, Outbox, WorldId};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_faults::{Once, Panic, WorldFault};
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

/// Owners of hideouts that panic, who stay there.
const AT_HOME: usize = Panic::ALL.len();
const TRAVELLERS: usize = 10;
const NPCS: usize = 320;
/// In ticks of a hideout: after the first checkpoint, which is taken within 10 s.
const PANICS_FROM_TICK: u32 = 320;
const GEAR: usize = 3;

/// What somebody has at home, and nobody takes from him there: who he is, and all gear in his bag and his chest.
type Belongings = (ClientKey, Passport, BTreeSet<GearId>);

/// Stands at home, turns about and fires. (A bot may walk through a portal that is in its way.)
struct Guard(f32);

impl Behaviour for Guard {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        self.0 = (self.0 + 0.1) % std::f32::consts::TAU;
        // Refused before the first world.
        let _ = client.send_input(now, &Input::new([0.0; 2], self.0, 0.0, true, false));
    }
}

struct House {
    simulation: Simulation,
    worlds: PrecinctWorlds,
    /// Of those who stay at home.
    homes: Vec<WorldId>,
}

impl House {
    fn new(panics: bool) -> Self {
        let fault = |(hideout, how)| {
            let at_tick = PANICS_FROM_TICK + 37 * hideout as u32;
            FaultyHideout { hideout, fault: WorldFault::Panics { at_tick, how, once: Once::default() } }
        };
        // In both runs, so that the worlds have the same systems.
        let never = |faulty: FaultyHideout| match faulty.fault {
            WorldFault::Panics { how, once, .. } if !panics => {
                FaultyHideout { fault: WorldFault::Panics { at_tick: u32::MAX, how, once }, ..faulty }
            }
            _ => faulty,
        };
        let settings = PrecinctSettings {
            players: AT_HOME + TRAVELLERS,
            npcs: NPCS,
            seed: 20,
            faults: Panic::ALL.into_iter().enumerate().map(fault).map(never).collect(),
            ..PrecinctSettings::default()
        };
        let simulated = SimulationSettings { hash: true, ..simulated::settings(20) };
        let (mut simulation, worlds) =
            Simulation::new(&simulated, |server| precinct::build(server, &settings)).expect("the game can be set up");
        let travels = Itinerary { at_home_s: 3.0..9.0, away_s: 3.0..9.0, ..Itinerary::default() };
        (0..AT_HOME).for_each(|_| _ = simulation.join(Box::new(Guard(0.0))));
        // Hideouts are given out in order.
        simulation.run_for(2.0);
        let homes = worlds.hideouts.alive();
        assert_eq!(homes.len(), AT_HOME, "all are in");
        let bot = || Box::new(PrecinctBot::with_itinerary(simulated::guide(), travels.clone()));
        (0..TRAVELLERS).for_each(|_| _ = simulation.join(bot()));
        let mut house = Self { simulation, worlds, homes };
        house.equip();
        house
    }

    /// Something to lose. Nothing of it is in a log, so it is given long before the first checkpoint.
    fn equip(&mut self) {
        for home in self.homes.clone() {
            let ecs = self.simulation.server_mut().world_mut(home).expect("it is at home between frames").ecs_mut();
            for number in 0..GEAR {
                let gear = ecs.resource_scope(|ecs, mut outbox: Mut<Outbox>| {
                    let kind = GearKind::by_number(number as u64);
                    ecs.resource_mut::<Arena>().ledger.create(&mut outbox, |_| kind)
                });
                let mut bags = ecs.query::<&mut Bag>();
                bags.single_mut(ecs).expect("its owner is at home").gear.put(gear).expect("there is room");
            }
        }
    }

    /// Of the owner of a hideout; none while its world is being made again.
    fn belongings(&mut self, home: WorldId) -> Option<Belongings> {
        let ecs = self.simulation.server_mut().world_mut(home)?.ecs_mut();
        let ledger = ecs.resource::<Arena>().ledger.expected_here();
        assert_eq!(simulated::pieces_in(ecs).len() as i64, ledger, "what is there and what there must be");
        let chest = *ecs.query::<&Stash>().single(ecs).expect("a hideout has a chest");
        let mut players = ecs.query::<(&PlayerClient, &Passport, &Bag)>();
        let (client, passport, bag) = players.single(ecs).expect("its owner is at home");
        let gear = bag.gear.iter().chain(chest.gear.iter()).map(|gear| gear.id).collect();
        Some((client.0, *passport, gear))
    }

    fn count(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }

    /// By world and tick, without the worlds that panic.
    fn hashes(&self) -> BTreeMap<(WorldId, u32), u64> {
        let others = self.simulation.hashes().iter().filter(|hash| !self.homes.contains(&hash.world));
        let count = others.clone().count();
        let by_tick: BTreeMap<_, _> = others.map(|hash| ((hash.world, hash.tick), hash.hash)).collect();
        assert_eq!(by_tick.len(), count, "no tick is done twice");
        by_tick
    }
}

#[test]
fn worlds_that_panic_go_on_with_their_players_and_no_other_notices() {
    const SECONDS: usize = 40;
    let (mut healthy, mut faulty) = (House::new(false), House::new(true));
    healthy.simulation.run_for(SECONDS as f64);
    let mut before: BTreeMap<WorldId, Belongings> = BTreeMap::new();
    let mut frames_away = 0;
    for _ in 0..SECONDS * 60 {
        faulty.simulation.step();
        for home in faulty.homes.clone() {
            let Some(now) = faulty.belongings(home) else {
                frames_away += 1;
                continue;
            };
            // Whatever its owner had before a panic he has after it: he may have found more.
            if let Some((client, passport, gear)) = before.get(&home) {
                let (client_now, passport_now, gear_now) = &now;
                assert_eq!((client_now, passport_now.home), (client, passport.home), "the same player");
                assert!(passport_now.kills >= passport.kills && passport_now.deaths >= passport.deaths);
                assert!(gear_now.is_superset(gear), "{gear:?}, and then {gear_now:?}");
            }
            before.insert(home, now);
        }
    }
    assert!(before.values().all(|(_, _, gear)| gear.len() >= GEAR), "{before:?}");
    for (house, reloads) in [(&mut healthy, 0), (&mut faulty, AT_HOME as u64)] {
        assert_eq!((house.count("server.worlds_reloaded"), house.count("server.worlds_parked")), (reloads, reloads));
        assert_eq!(house.count("server.clients_placed_again"), 0);
        let totals = house.simulation.totals();
        assert_eq!((totals.playing, totals.disconnects), ((AT_HOME + TRAVELLERS) as u64, 0), "{totals:#?}");
        assert_eq!((totals.state_errors, totals.counter("violations")), (0, 0), "{totals:#?}");
        assert!(totals.counter("travels") > 20, "{totals:#?}");
        assert_eq!(house.worlds.hideouts.alive().len(), AT_HOME + TRAVELLERS, "the same worlds in their places");
        assert!(house.homes.iter().all(|home| house.worlds.hideouts.alive().contains(home)));
    }
    println!("{frames_away} frames without a world");
    let (healthy, faulty) = (healthy.hashes(), faulty.hashes());
    assert!(healthy.len() > 20 * SECONDS * TRAVELLERS, "{}", healthy.len());
    let parted: Vec<_> = healthy.iter().filter(|(at, hash)| faulty.get(at) != Some(hash)).take(5).collect();
    assert!(parted.is_empty() && healthy.len() == faulty.len(), "(world, tick) went another way: {parted:?}");
}
