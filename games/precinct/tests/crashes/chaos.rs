//! Play with everything that can go wrong: the network loses packets, players vanish and come back, worlds panic, and the
//! process dies between two frames, several times in a run. After each death the store is counted, and the next process
//! gives everybody what is in it.

use std::collections::BTreeMap;

use precinct::{FaultyHideout, PrecinctSettings};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{prelude::TickInfo, saves::SaveFault};
use throng_faults::{Once, Panic, WorldFault};
use throng_persistence::disk::MemoryDisk;

use crate::belongings::{self, Belongings, Butterfingers, Life, PLAYERS, store_on};

/// Lives of the process in a run.
const LIVES: u64 = 3;
/// Frames of a life.
const FRAMES: std::ops::Range<u32> = 240..1_000;

/// What runs came to, so that one in which nothing happens does not pass for one in which all went well.
#[derive(Debug, Default)]
struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_default() += count;
    }
}

/// Counters of the server and of its bots that say that something happened.
const OF_SERVER: [&str; 4] =
    ["saves.players_loaded", "saves.worlds_loaded", "server.worlds_reloaded", "server.worlds_parked"];
const OF_BOTS: [&str; 6] = ["travels", "deaths", "gear_gained", "gear_stashed", "gear_offers", "gear_trades"];
/// What is too seldom for a few seeds.
const MAY_BE_MISSING: [&str; 2] = ["gear_offers", "gear_trades"];

fn panics(rng: &mut Xoshiro256PlusPlus, precinct: &mut PrecinctSettings) {
    for _ in 0..rng.random_range(0..3) {
        let how = Panic::ALL[rng.random_range(0..Panic::ALL.len())];
        let at_tick = rng.random_range(5..300);
        let fault = WorldFault::Panics { at_tick, how, once: Once::default() };
        precinct.faults.push(FaultyHideout { hideout: rng.random_range(0..PLAYERS), fault });
    }
}

/// One life of the process, from its start to its death.
fn live(
    (disk, seed, number): (&MemoryDisk, u64, u64),
    saved: &Belongings,
    fault: Option<SaveFault>,
    tally: &mut Tally,
) -> Result<Belongings, String> {
    let seed = seed * LIVES + number;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut life = Life::begin(disk, seed, |precinct| panics(&mut rng, precinct));
    if let Some(fault) = fault {
        life.simulation.server_mut().break_saves(fault);
    }
    life.check_given(saved)?;
    life.let_play(true);
    for _ in 0..rng.random_range(FRAMES) {
        life.simulation.step();
        match rng.random_range(0..600) {
            0 => life.simulation.leave(rng.random_range(0..PLAYERS)),
            1..=3 => {
                let bot = Butterfingers::new(&life.may_play);
                life.simulation.join_again(rng.random_range(0..PLAYERS), bot);
            }
            4 => {
                let world = [life.worlds.hub, life.worlds.dark_zone][rng.random_range(0..2)];
                // Its next tick panics at its very beginning. Nothing of this is in the log of what entered it.
                if let Some(world) = life.simulation.server_mut().world_mut(world) {
                    world.ecs_mut().remove_resource::<TickInfo>();
                }
            }
            _ => {}
        }
    }
    for name in OF_SERVER {
        tally.add(name, life.simulation.server_mut().count_of(name));
    }
    let totals = life.simulation.totals();
    OF_BOTS.into_iter().for_each(|name| tally.add(name, totals.counter(name)));
    if totals.counter("violations") > 0 {
        return Err(format!("players were told what cannot be: {totals:?}"));
    }
    drop(life);
    Belongings::in_store(&*store_on(disk).reader())
}

fn run(seed: u64, fault: Option<SaveFault>, tally: &mut Tally) -> Result<(), String> {
    let disk = MemoryDisk::default();
    belongings::equip(&disk);
    let mut saved = Belongings::in_store(&*store_on(&disk).reader())?;
    for number in 0..LIVES {
        saved = live((&disk, seed, number), &saved, fault, tally)
            .map_err(|why| format!("seed {seed}, life {number}: {why}"))?;
    }
    Life::begin(&disk, seed * LIVES + LIVES, |_| {})
        .check_given(&saved)
        .map_err(|why| format!("seed {seed}, after the last death: {why}"))
}

#[track_caller]
fn check(seeds: std::ops::Range<u64>) {
    let mut tally = Tally::default();
    for seed in seeds {
        run(seed, None, &mut tally).unwrap_or_else(|why| panic!("{why}"));
    }
    println!("{tally:?}");
    for name in OF_SERVER.into_iter().chain(OF_BOTS).filter(|name| !MAY_BE_MISSING.contains(name)) {
        assert!(tally.0[name] > 0, "{name}: {tally:?}");
    }
}

#[test]
fn r33_no_piece_is_doubled_or_lost_by_crashes() {
    check(0..6);
}

/// The full form in pieces: `cargo xtask reliability --minutes` goes on between them.
macro_rules! full_form {
    ($($name:ident: $seeds:expr,)*) => {$(
        #[test]
        #[ignore = "full form: a thousand seeds"]
        fn $name() {
            check($seeds);
        }
    )*};
}

full_form! {
    r33_crashes_of_seeds_0_to_999: 0..1_000,
    r33_crashes_of_seeds_1000_to_1999: 1_000..2_000,
    r33_crashes_of_seeds_2000_to_2999: 2_000..3_000,
    r33_crashes_of_seeds_3000_to_3999: 3_000..4_000,
    r33_crashes_of_seeds_4000_to_4999: 4_000..5_000,
    r33_crashes_of_seeds_5000_to_5999: 5_000..6_000,
    r33_crashes_of_seeds_6000_to_6999: 6_000..7_000,
    r33_crashes_of_seeds_7000_to_7999: 7_000..8_000,
    r33_crashes_of_seeds_8000_to_8999: 8_000..9_000,
    r33_crashes_of_seeds_9000_to_9999: 9_000..10_000,
}

#[test]
fn a_broken_build_does_not_pass() {
    for fault in [SaveFault::MovesLeftOut, SaveFault::LeaversLeftOut] {
        let found = (0..20).find_map(|seed| run(seed, Some(fault), &mut Tally::default()).err());
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} went unseen");
    }
}
