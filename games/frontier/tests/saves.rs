//! The promise: whoever comes back is who it was, houses stand where they stood, and whatever fails a plot and the character
//! that has claimed it agree, and no goods are doubled or lost.
//!
//! Bots settle on a disk in memory; the server dies between two frames, or ends, and another one begins on the same disk.

mod simulated;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use frontier::{
    FrontierBot, FrontierSettings,
    actors::Actors,
    characters::{Character, GOODS},
    events::Say,
    land::{Cell, Ground, Map, store::packed},
    roster::Roster,
    server::SAVE_ID,
    talk,
};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    Server,
    pack::envelope,
    persistence::{
        Commit, Embedded, Key, Outcome, Reads, Store, StoreError, Ticket,
        commit::{Order, Request},
        conservation,
        disk::MemoryDisk,
        key::Kind,
        refused_keys::RefusedKeys,
    },
    prelude::CellToSave,
};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

const PLAYERS: usize = 16;
/// Bytes in front of a player's value in its record.
const PLAYER_HEADER_BYTES: usize = 10;

/// A client that sends nothing.
struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}
}

/// What a disk has.
#[derive(Debug, Default, PartialEq)]
struct Saved {
    characters: BTreeMap<u64, Character>,
    cells: BTreeMap<Cell, Ground>,
}

impl Saved {
    /// The error is that it does not hold together, in words.
    fn on(disk: &MemoryDisk) -> Result<Self, String> {
        let store = store_on(disk);
        let mut saved = Self::default();
        let count = conservation::check(&*store.reader(), |key, bytes, items| match key.kind {
            Kind::Player => {
                let character: Character = envelope::read(&bytes[PLAYER_HEADER_BYTES..]).unwrap();
                items(GOODS, i64::from(character.carried) + i64::from(character.banked));
                saved.characters.insert(key.id as u64, character);
            }
            Kind::Cell => {
                assert_eq!((key.id >> 64) as u64, SAVE_ID);
                let ground: Ground = envelope::read(bytes).unwrap();
                items(GOODS, ground.piece.is_some().into());
                saved.cells.insert(Cell::by_number(key.id as u64).unwrap(), ground);
            }
            Kind::World | Kind::LeftOut => {}
        });
        let count = count.map_err(|error| error.to_string())?;
        if !count.holds() {
            return Err(format!("{:?} {:?}", count.differences(), count.unreadable));
        }
        for (account, character) in &saved.characters {
            let owner = character.plot.map(|plot| saved.cells.get(&plot.corner()).and_then(|ground| ground.owner));
            if owner.is_some_and(|owner| owner != Some(*account)) {
                return Err(format!("{account} has {:?}, whose corner says {owner:?}", character.plot));
            }
        }
        for (cell, ground) in &saved.cells {
            let has = |owner| saved.characters.get(&owner).and_then(|character: &Character| character.plot);
            if ground.owner.is_some_and(|owner| has(owner).is_none_or(|plot| plot.corner() != *cell)) {
                return Err(format!("{cell:?} is {:?}'s, who does not know", ground.owner));
            }
        }
        Ok(saved)
    }
}

fn store_on(disk: &MemoryDisk) -> Box<dyn Store> {
    Box::new(Embedded::on(Box::new(disk.clone())).unwrap())
}

fn open(seed: u64, disk: &MemoryDisk) -> Simulation {
    let mut settings = SimulationSettings { hash: true, ..simulated::settings(seed) };
    settings.server.saves.period_s = 2;
    let build = |server: &mut Server| {
        server.save_in(store_on(disk))?;
        frontier::build(server, &FrontierSettings { npcs: 60, seed: 7, one_hearth: true, ..Default::default() })
    };
    Simulation::new(&settings, build).expect("the game can be set up").0
}

fn bot() -> Box<FrontierBot> {
    Box::new(FrontierBot::new(simulated::guide()))
}

fn save(simulation: &mut Simulation) {
    let saved = simulation.server_mut().control().save_now();
    assert!(simulation.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
}

#[test]
fn characters_and_houses_are_there_again_after_a_restart() {
    let disk = MemoryDisk::default();
    let mut simulation = open(1, &disk);
    (0..PLAYERS).for_each(|_| _ = simulation.join(bot()));
    simulation.run_for(90.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.state_errors), (PLAYERS as u64, 0), "{totals:#?}");
    save(&mut simulation);
    drop(simulation);
    let before = Saved::on(&disk).unwrap_or_else(|why| panic!("{why}"));
    let plots = before.characters.values().filter(|character| character.plot.is_some()).count();
    let pieces = before.cells.values().filter(|ground| ground.piece.is_some()).count();
    println!("{plots} plots, {pieces} pieces, {} cells", before.cells.len());
    assert!(before.characters.len() == PLAYERS && plots > 3 && pieces > 0, "{before:?}");

    let mut simulation = open(2, &disk);
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Idle)));
    simulation.run_for(2.0);
    assert_eq!(simulation.server_mut().count_of("saves.worlds_loaded"), 1);
    assert_eq!(simulation.server_mut().count_of("saves.players_loaded"), PLAYERS as u64);
    let world = simulation.server_mut().worlds().map(|(id, ..)| id).next().expect("one for everybody");
    let ecs = simulation.server_mut().world_mut(world).expect("it is at home").ecs_mut();
    let (actors, map) = (ecs.resource::<Actors>(), ecs.resource::<Map>());
    for player in ecs.resource::<Roster>().iter() {
        let (was, place) = (&before.characters[&player.account], actors[player.actor].place);
        assert!(player.plot == was.plot && (was.health == 0 || place == was.place), "{was:?} is at {place:?}");
    }
    // As far as somebody is near, the land is there; and nobody is near all of it.
    let known = before.cells.iter().filter_map(|(cell, ground)| Some((map.ground(*cell)?, *ground)));
    let known: Vec<(Ground, Ground)> = known.collect();
    assert!(known.iter().all(|(now, was)| now == was), "{known:?}");
    assert!(known.iter().any(|(now, _)| now.piece.is_some()), "somebody stands beside a house");
    map.check();
    save(&mut simulation);
    drop(simulation);
    let after = Saved::on(&disk).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(after.cells, before.cells);
}

/// A store that takes nothing while its disk is full.
struct FullAtTimes {
    store: Box<dyn Store>,
    is_full: Arc<AtomicBool>,
}

impl FullAtTimes {
    fn check_room(&self) -> Result<(), StoreError> {
        if self.is_full.load(Ordering::SeqCst) { Err(StoreError::DiskFull) } else { Ok(()) }
    }
}

impl Store for FullAtTimes {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        self.check_room()?;
        self.store.apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        // Nothing of the last batch has come to the store.
        self.check_room().map(|()| None)
    }

    fn reader(&self) -> Arc<dyn Reads> {
        self.store.reader()
    }
}

/// A bot that keeps what the server says.
struct Listens {
    bot: Box<FrontierBot>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Behaviour for Listens {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let of_server = client.events_of::<Say>().filter(|said| said.speaker.is_none() && &*said.name == talk::SERVER);
        self.heard.lock().unwrap().extend(of_server.map(|said| said.words.to_string()));
        self.bot.think(now, client, rng);
    }
}

/// The promise (R32): with a full disk nobody is disconnected, play goes on, and players are told, once when saves are held
/// up and once when they are on disk again.
#[test]
fn players_are_told_that_the_disk_is_full_and_that_it_is_not() {
    let is_full = Arc::<AtomicBool>::default();
    let mut settings = simulated::settings(5);
    settings.server.saves.period_s = 2;
    let build = |server: &mut Server| {
        let store = store_on(&MemoryDisk::default());
        server.save_in(Box::new(FullAtTimes { store, is_full: is_full.clone() }))?;
        frontier::build(server, &FrontierSettings { npcs: 60, seed: 7, one_hearth: true, ..Default::default() })
    };
    let mut simulation = Simulation::new(&settings, build).expect("the game can be set up").0;
    let heard: Vec<Arc<Mutex<Vec<String>>>> = (0..4).map(|_| Arc::default()).collect();
    for heard in &heard {
        simulation.join(Box::new(Listens { bot: bot(), heard: heard.clone() }));
    }
    simulation.run_for(8.0);
    let all_heard = |expect: &[&str]| heard.iter().all(|heard| heard.lock().unwrap()[..] == *expect);
    assert!(all_heard(&[]), "{heard:?}");
    is_full.store(true, Ordering::SeqCst);
    assert!(simulation.run_until(20.0, |_| all_heard(&[talk::SAVES_AWAY])), "{heard:?}");
    simulation.run_for(5.0);
    assert!(all_heard(&[talk::SAVES_AWAY]), "once: {heard:?}");
    is_full.store(false, Ordering::SeqCst);
    assert!(simulation.run_until(20.0, |_| all_heard(&[talk::SAVES_AWAY, talk::SAVES_BACK])), "{heard:?}");
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.state_errors), (4, 0), "{totals:#?}");
}

/// What a land costs that somebody plays on.
#[derive(Debug, PartialEq)]
struct Cost {
    hashes: Vec<u64>,
    bytes_saved: u64,
    sectors_read: u64,
    sectors_held: usize,
}

/// Bots play on a land on which so many cells were changed, all of them far away, and it is saved meanwhile.
fn play_on(changed_elsewhere: u32) -> Cost {
    let disk = MemoryDisk::default();
    let mut store = Embedded::on(Box::new(disk.clone())).unwrap();
    let dug = |number: u32| Ground { depth: 1, ..Cell::by_number(number.into()).unwrap().untouched(7) };
    // The first rows of the land are kilometres from where anybody is.
    let cells: Vec<(Cell, Option<Ground>)> =
        (0..changed_elsewhere).map(|number| (Cell::by_number(number.into()).unwrap(), Some(dug(number)))).collect();
    let mut commit = Commit::new();
    for CellToSave { cell, value } in packed(&cells).unwrap() {
        commit.put_bytes(Key::cell(SAVE_ID, cell), value.unwrap());
    }
    let order = Order { ticket: Ticket(1), seen: Ticket(0), request: Request::Commit(commit) };
    store.apply(&[order], &mut RefusedKeys::default()).unwrap().remove(0).unwrap();
    drop(store);

    let mut simulation = open(3, &disk);
    (0..PLAYERS).for_each(|_| _ = simulation.join(bot()));
    simulation.run_for(25.0);
    let world = simulation.server_mut().worlds().map(|(id, ..)| id).next().expect("one for everybody");
    let ecs = simulation.server_mut().world_mut(world).expect("it is at home").ecs_mut();
    let sectors_held = ecs.resource::<Map>().sectors_count();
    let report = simulation.server_mut().report();
    let of_game = |name: &str| report.game_per_s.get(name).copied().unwrap_or_default() * report.seconds;
    let (sectors_read, works) = (of_game("sectors_loaded").round() as u64, of_game("works").round());
    assert!(sectors_read > 0 && works > 0.0, "{report:#?}");
    Cost {
        hashes: simulation.hashes().iter().map(|it| it.hash).collect(),
        bytes_saved: simulation.server_mut().count_of("saves.bytes"),
        sectors_read,
        sectors_held,
    }
}

/// The promise (O5), all the way from what players do to the disk: what is ticked, saved, read and held is the same to the byte
/// on a land of any age. What the store itself adds is counted in `old_land`.
#[test]
fn an_old_land_is_played_and_saved_as_a_new_one() {
    let (new, old) = (play_on(0), play_on(100_000));
    assert_eq!(
        (old.bytes_saved, old.sectors_read, old.sectors_held),
        (new.bytes_saved, new.sectors_read, new.sectors_held)
    );
    assert!(old.hashes == new.hashes && new.hashes.len() > 400 && new.bytes_saved > 0, "{} ticks", new.hashes.len());
}

/// Lives of the process in a run.
const LIVES: u64 = 4;

/// Returns how many plots there are in the end.
fn live_and_die(seed: u64) -> Result<usize, String> {
    let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let disk = MemoryDisk::default();
    for life in 0..LIVES {
        let mut simulation = open(seed * LIVES + life, &disk);
        (0..PLAYERS).for_each(|_| _ = simulation.join(bot()));
        let steps = rng.random_range(400..1_600);
        for _ in 0..steps {
            simulation.step();
            match rng.random_range(0..120) {
                0 => simulation.leave(rng.random_range(0..PLAYERS)),
                1 | 2 => simulation.join_again(rng.random_range(0..PLAYERS), bot()),
                _ => {}
            }
        }
        // It dies here: what was not on disk is gone.
        drop(simulation);
        Saved::on(&disk).map_err(|why| format!("seed {seed}, life {life}, {steps} steps: {why}"))?;
    }
    let saved = Saved::on(&disk)?;
    Ok(saved.cells.values().filter(|ground| ground.owner.is_some()).count())
}

fn check(seeds: std::ops::Range<u64>) {
    let plots: usize = seeds.map(|seed| live_and_die(seed).unwrap_or_else(|why| panic!("{why}"))).sum();
    println!("{plots} plots");
    assert!(plots > 0);
}

#[test]
fn a_plot_and_who_has_claimed_it_agree_whenever_the_server_dies() {
    check(0..4);
}

/// The large form: many seeds.
#[test]
#[ignore = "takes an hour"]
fn r33_frontier_dies_a_thousand_times() {
    check(0..250);
}
