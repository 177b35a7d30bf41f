//! R30: the process that saves is killed at a random moment, and PostgreSQL is, while players deal. What was said to be on
//! disk is there, the coins are what they were, the store is open at once and the next server ticks soon, with every saved
//! world in the state that the store had.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use bazaar::{Wealth, stalls::look_at_stalls};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    cluster::Cluster,
    folder::Folder,
    life::{Heard, Life, PATIENCE, alone, wait_for},
    place::{Place, Terms, write_settings},
    players::Players,
};

const PLAYERS: usize = 16;
/// By the contract.
const RECOVERY_MAX: Duration = Duration::from_secs(1);
const START_MAX: Duration = Duration::from_secs(5);

/// What happened in all the lives.
#[derive(Debug, Default)]
struct Tally {
    receipts: u64,
    deeds: u64,
    /// Stalls that were made again with something, in all lives.
    stalls_with_a_past: usize,
    slowest_open: Duration,
    slowest_start: Duration,
}

fn a_moment(rng: &mut Xoshiro256PlusPlus) {
    thread::sleep(Duration::from_micros(rng.random_range(0..400_000)));
}

/// Kills the process that saves so often, beside so many further worlds.
fn kill_the_process(name: &str, place: &Place, kills: u32, stalls: u32) -> Tally {
    let folder = Folder::new(name);
    write_settings(folder.path(), place, &Terms { stalls, ..Terms::default() });
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(30);
    let (mut tally, mut all) = (Tally::default(), Heard::default());
    let mut saved = BTreeMap::new();
    for kill in 1..=kills {
        let life = Life::start(folder.path());
        let players = Players::play(life.address, 1, PLAYERS);
        let told = life.wait_for_stalls(0, stalls as usize).made_with;
        let is_as_saved = |(number, sold): (&u64, &u32)| *sold == saved.get(number).copied().unwrap_or(0);
        assert!(told.iter().all(is_as_saved), "kill {kill}: stalls are not as they were saved: {saved:?}\n{told:?}");
        life.wait_for_receipts(1);
        // Whoever was granted something has logged in, and worlds have ticked.
        tally.slowest_start = tally.slowest_start.max(life.since_start());
        a_moment(&mut rng);
        let heard = life.kill();
        drop(players);
        tally.receipts += heard.receipts;
        all.granted.extend(heard.granted);
        tally.stalls_with_a_past += told.values().filter(|sold| **sold > 0).count();

        let began = Instant::now();
        let store = place.open().unwrap_or_else(|error| panic!("kill {kill}: {error}"));
        tally.slowest_open = tally.slowest_open.max(began.elapsed());
        let wealth = bazaar::look_at(&*store.reader()).unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        all.check_granted(&wealth).unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        let stalls_now = look_at_stalls(&*store.reader()).unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        let fewer = saved.iter().find(|(number, sold)| stalls_now.get(number).is_none_or(|now| now < sold));
        assert_eq!(fewer, None, "kill {kill}: what a stall was saved with is gone: {stalls_now:?}");
        saved = stalls_now;
        tally.deeds = wealth.deeds.values().map(|deeds| u64::from(*deeds)).sum();
    }
    println!("{kills} kills of the process: {tally:?}");
    assert!(tally.receipts > u64::from(kills) && tally.deeds > 0, "{tally:?}");
    assert!(stalls == 0 || tally.stalls_with_a_past >= stalls as usize, "{tally:?}");
    tally
}

/// Kills PostgreSQL so often under one server, which plays on and saves again by itself.
fn kill_postgres(name: &str, kills: u32) {
    let Some(mut cluster) = Cluster::start(name) else { return };
    let (folder, place) = (Folder::new(&format!("{name}-server")), Place::of(&cluster));
    write_settings(folder.path(), &place, &Terms::default());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(31);
    let life = Life::start(folder.path());
    let players = Players::play(life.address, 1, PLAYERS);
    let mut slowest = Duration::ZERO;
    for kill in 1..=kills {
        life.wait_for_receipts(1);
        a_moment(&mut rng);
        cluster.kill_and_start();
        let (began, granted) = (Instant::now(), life.heard());
        let wealth = place.wealth().unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        granted.check_granted(&wealth).unwrap_or_else(|why| panic!("kill {kill}: {why}"));
        life.wait_for_receipts(1);
        slowest = slowest.max(began.elapsed());
    }
    let ended = life.end(|_| {});
    drop(players);
    assert!(ended.status.success(), "{}", ended.log);
    let wealth = place.wealth().unwrap_or_else(|why| panic!("at the end: {why}"));
    ended.heard.check_done(&wealth).unwrap_or_else(|why| panic!("at the end: {why}"));
    println!("{kills} kills of PostgreSQL: {} receipts, saved again after {slowest:?} at most", ended.heard.receipts);
}

#[track_caller]
fn check_times(tally: &Tally) {
    assert!(tally.slowest_open <= RECOVERY_MAX && tally.slowest_start <= START_MAX, "{tally:?}");
}

#[test]
fn what_was_said_to_be_on_disk_survives_kills_of_the_command() {
    let saves = Folder::new("kills-file");
    kill_the_process("kills", &Place::File(saves.path().to_owned()), 5, 100);
}

#[test]
fn and_with_postgresql_kills_of_either() {
    let Some(cluster) = Cluster::start("kills-pg") else { return };
    kill_the_process("kills-with-pg", &Place::of(&cluster), 3, 20);
    drop(cluster);
    kill_postgres("kills-of-pg", 2);
}

#[test]
#[ignore = "full form: a thousand kills beside a thousand worlds, two hours"]
fn r30_a_thousand_kills_of_the_command() {
    let _alone = alone();
    let saves = Folder::new("kills-file-full");
    check_times(&kill_the_process("kills-full", &Place::File(saves.path().to_owned()), 1_000, 1_000));
}

#[test]
#[ignore = "full form: a hundred kills of the command, and of PostgreSQL"]
fn r30_kills_of_the_command_and_of_its_postgres() {
    let _alone = alone();
    let Some(cluster) = Cluster::start("kills-pg-full") else { return };
    check_times(&kill_the_process("kills-with-pg-full", &Place::of(&cluster), 100, 20));
    drop(cluster);
    kill_postgres("kills-of-pg-full", 100);
}

/// The control: who says more than is on disk is found out, and so is who has nothing.
#[test]
fn a_receipt_for_what_is_not_there_is_found_out() {
    let wealth = Wealth { deeds: BTreeMap::from([(1, 7)]), ..Wealth::default() };
    let told = |player, deeds| Heard { granted: BTreeMap::from([(player, deeds)]), ..Heard::default() };
    assert_eq!(told(1, 7).check_granted(&wealth), Ok(()));
    assert!(told(1, 8).check_granted(&wealth).unwrap_err().contains("7 are there"));
    assert!(told(2, 1).check_granted(&wealth).unwrap_err().contains("0 are there"));
    // And that one waits at all.
    wait_for("nothing", PATIENCE, || Some(()));
}
