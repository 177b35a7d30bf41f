//! The promise: whatever players do with gear, and whatever the network does to what they ask, no piece is ever twice or
//! nowhere. At any frame, in all worlds together:
//!
//! ```text
//! in bags + in chests + on the ground + on the way = created - destroyed - taken off the server
//! ```
//!
//! Bots find, lose, keep and trade gear while they travel, over a network that loses and doubles packets. A look into all worlds
//! after every frame counts every piece, by its id.

mod simulated;

use std::collections::{BTreeMap, HashMap};

use bevy_ecs::prelude::*;
use precinct::{
    PrecinctBot, PrecinctSettings, PrecinctWorlds,
    arena::Arena,
    bot::Itinerary,
    gear::{BAG_MAX, Bag, GearId, GearKind},
    ground::Lies,
    passport::PlayerClient,
    stash::Stash,
};
use throng::prelude::{ClientKey, Outbox, WorldId};
use throng_net::transport::Impairment;
use throng_simulator::Simulation;

const BOTS: usize = 16;
const NPCS: usize = 240;

/// Where a piece was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Bag,
    Chest,
    Ground,
}

/// What all worlds have and say of gear.
#[derive(Debug, Default)]
struct Inspection {
    pieces: BTreeMap<GearId, (WorldId, Place)>,
    created: u64,
    destroyed: u64,
    arrived: u64,
    left: u64,
    /// Players in any world.
    players: Vec<ClientKey>,
}

impl Inspection {
    /// Looks into every world, and asserts that nothing is twice and each world has what its ledger says.
    fn of(simulation: &mut Simulation, worlds: &PrecinctWorlds) -> Self {
        let mut all = Self::default();
        for id in [worlds.hub, worlds.dark_zone].into_iter().chain(worlds.hideouts.alive()) {
            let ecs = simulation.server_mut().world_mut(id).expect("it is at home between frames").ecs_mut();
            let mut pieces: Vec<(GearId, Place)> = Vec::new();
            all.players.extend(ecs.query::<&PlayerClient>().iter(ecs).map(|client| client.0));
            let mut bags = ecs.query::<&Bag>();
            pieces.extend(bags.iter(ecs).flat_map(|bag| bag.gear.iter()).map(|gear| (gear.id, Place::Bag)));
            let mut chests = ecs.query::<&Stash>();
            pieces.extend(chests.iter(ecs).flat_map(|stash| stash.gear.iter()).map(|gear| (gear.id, Place::Chest)));
            let mut lying = ecs.query::<&Lies>();
            pieces.extend(lying.iter(ecs).map(|lies| (lies.gear.id, Place::Ground)));
            let ledger = &ecs.resource::<Arena>().ledger;
            assert_eq!(pieces.len() as i64, ledger.expected_here(), "world {id}: {ledger:?}, {pieces:?}");
            let balance: i64 = ledger.balances().map(|(_, balance)| balance).sum();
            assert_eq!(balance, ledger.created() as i64 - ledger.destroyed() as i64);
            let (arrived, left) = ledger.travelled();
            all.created += ledger.created();
            all.destroyed += ledger.destroyed();
            all.arrived += arrived;
            all.left += left;
            for (gear, place) in pieces {
                let before = all.pieces.insert(gear, (id, place));
                assert_eq!(before, None, "{gear:?} is twice: there, and as {place:?} in {id}");
            }
        }
        all
    }

    fn count(&self, wanted: Place) -> usize {
        self.pieces.values().filter(|(_, place)| *place == wanted).count()
    }
}

/// When each player was last seen in a world.
#[derive(Default)]
struct Stays(HashMap<ClientKey, u64>);

impl Stays {
    /// A traveller leaves after a tick and is taken in by the next one of the slowest world, 3 frames of 60 Hz; who is
    /// nowhere for longer has left the server.
    const FRAMES_ON_THE_WAY_MAX: u64 = 6;

    /// How many are on the way, and how many have gone.
    fn note(&mut self, frame: u64, players: &[ClientKey]) -> (usize, usize) {
        players.iter().for_each(|&player| _ = self.0.insert(player, frame));
        let missing = self.0.values().map(|seen| frame - seen).filter(|missing| *missing > 0);
        let (on_the_way, gone): (Vec<u64>, Vec<u64>) =
            missing.partition(|frames| *frames <= Self::FRAMES_ON_THE_WAY_MAX);
        (on_the_way.len(), gone.len())
    }
}

/// Pieces that everybody begins with, so that there is something to trade from the start.
const AT_FIRST: usize = 3;

fn equip(simulation: &mut Simulation, worlds: &PrecinctWorlds) {
    for (index, home) in worlds.hideouts.alive().into_iter().enumerate() {
        let ecs = simulation.server_mut().world_mut(home).expect("it is at home between frames").ecs_mut();
        for number in 0..AT_FIRST {
            let kind = GearKind::by_number((index + number) as u64);
            let gear = ecs.resource_scope(|ecs, mut outbox: Mut<Outbox>| {
                ecs.resource_mut::<Arena>().ledger.create(&mut outbox, |_| kind)
            });
            let mut bags = ecs.query::<&mut Bag>();
            bags.single_mut(ecs).expect("everybody is at home at first").gear.put(gear).expect("there is room");
        }
    }
}

fn lively() -> Itinerary {
    Itinerary { at_home_s: 15.0..40.0, away_s: 15.0..30.0, ..Itinerary::default() }
}

/// Plays so long; `leavers` of the bots go home for good on the way. Returns the server's counters.
fn play(seed: u64, seconds: u32, leavers: usize) -> BTreeMap<&'static str, u64> {
    let settings = PrecinctSettings {
        players: BOTS,
        npcs: NPCS,
        seed: seed * 31 + 7,
        // So that chests stay, whoever goes.
        hideouts_at_start: true,
        ..PrecinctSettings::default()
    };
    let simulated = simulated::settings(seed);
    let (mut simulation, worlds) =
        Simulation::new(&simulated, |server| precinct::build(server, &settings)).expect("the game can be set up");
    simulation.impair(Impairment { duplication: 0.02, ..Impairment::bad(0.05) });
    let bots: Vec<usize> = (0..BOTS)
        .map(|_| simulation.join(Box::new(PrecinctBot::with_itinerary(simulated::guide(), lively()))))
        .collect();
    simulation.run_for(2.0);
    equip(&mut simulation, &worlds);
    let mut places_seen = [false; 3];
    let (mut stays, mut quiet, mut taken_off) = (Stays::default(), 0, (0, 0));
    for second in 0..seconds {
        simulation.run_until(1.0, |simulation| {
            let seen = Inspection::of(simulation, &worlds);
            let away = seen.left - seen.arrived;
            let there = seen.pieces.len() as u64;
            assert_eq!(there + away, seen.created - seen.destroyed, "seed {seed}, {second} s: {seen:?}");
            let (on_the_way, gone) = stays.note(simulation.frames(), &seen.players);
            if on_the_way == 0 {
                // Only who has left the server has taken anything off it.
                let gone_since = (gone - taken_off.0) * BAG_MAX;
                assert!(
                    (taken_off.1..=taken_off.1 + gone_since as u64).contains(&away),
                    "{taken_off:?} {gone}: {seen:?}"
                );
                taken_off = (gone, away);
                quiet += 1;
            }
            let places = [Place::Bag, Place::Chest, Place::Ground];
            places.into_iter().zip(&mut places_seen).for_each(|(place, is_seen)| *is_seen |= seen.count(place) > 0);
            false
        });
        if second >= seconds / 2
            && let Some(&bot) = bots.get((second - seconds / 2) as usize).filter(|bot| **bot < leavers)
        {
            simulation.leave(bot);
        }
    }
    let totals = simulation.totals();
    assert_eq!((totals.state_errors, totals.counter("violations")), (0, 0), "{totals:#?}");
    let end = Inspection::of(&mut simulation, &worlds);
    println!("seed {seed}: {} created, {} destroyed, {} left; bots: {totals:?}", end.created, end.destroyed, end.left);
    assert!(quiet > 1_000, "in most frames nobody was on the way");
    assert_eq!(taken_off.0, leavers, "who has left is gone");
    assert_eq!(places_seen, [true; 3], "bags, chests and the ground were all in use");
    let counted = ["gear_gained", "gear_stashed", "gear_offers", "gear_trades", "travels", "deaths"];
    counted.map(|name| (name, totals.counter(name))).into()
}

#[test]
fn no_piece_is_twice_or_nowhere_while_bots_find_lose_keep_and_trade_them() {
    let counters = play(1, 180, 4);
    println!("{counters:?}");
    for (name, least) in
        [("gear_gained", 20), ("gear_stashed", 3), ("gear_offers", 5), ("gear_trades", 1), ("travels", 20)]
    {
        assert!(counters[name] >= least, "{name}: {counters:?}");
    }
}

/// The large form: many seeds.
#[test]
#[ignore = "takes minutes"]
fn r33_no_piece_is_twice_or_nowhere_in_many_seeds() {
    for seed in 100..140 {
        println!("{seed}: {:?}", play(seed, 300, 4));
    }
}
