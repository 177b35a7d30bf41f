//! R34: who travels with all that he has is in exactly one world, with all of it, in whichever frame of his journey the
//! process dies.
//!
//! A run of a seed is the same run every time. So it is done once to see when somebody arrives, and then again for each
//! frame around that: up to the frame, then the process is gone, the store is counted, and the next process gives everybody
//! what is in it.

use throng_persistence::disk::MemoryDisk;

use crate::belongings::{self, Belongings, Life, store_on};

/// Frames before an arrival is seen by its player's program, in which it leaves, is on the way, and arrives.
const FRAMES_BEFORE: u64 = 24;
const FRAMES_AFTER: u64 = 4;
/// Journeys that are looked at in a run.
const JOURNEYS: u64 = 2;

/// A server that runs from its start until a frame after which `is_over`; `None`: that never came.
fn run_until(disk: &MemoryDisk, seed: u64, mut is_over: impl FnMut(&mut Life) -> bool) -> Option<Life> {
    belongings::equip(disk);
    let mut life = Life::begin(disk, seed, |_| {});
    life.let_play(true);
    for _ in 0..60 * 60 {
        life.simulation.step();
        if is_over(&mut life) {
            return Some(life);
        }
    }
    None
}

/// When programs of players saw that they had arrived, in frames of a run.
fn arrivals(seed: u64) -> Vec<u64> {
    let (mut frames, mut seen) = (Vec::new(), 0);
    let life = run_until(&MemoryDisk::default(), seed, |life| {
        let travels = life.simulation.totals().counter("travels");
        if travels > seen {
            seen = travels;
            frames.push(life.simulation.frames());
        }
        travels >= JOURNEYS
    });
    assert!(life.is_some(), "seed {seed}: somebody travels within a minute");
    frames
}

/// Returns how many records said that their player was in another world than at home.
fn die_in(seed: u64, frame: u64) -> usize {
    let disk = MemoryDisk::default();
    let mut life = run_until(&disk, seed, |life| life.simulation.frames() >= frame).expect("it comes to that frame");
    let destroyed = Belongings::in_worlds(&mut life.simulation, &life.worlds).expect("nobody is twice").destroyed;
    drop(life);
    let context = |why| format!("seed {seed}, frame {frame}, {destroyed} destroyed: {why}");
    let saved = Belongings::in_store(&*store_on(&disk).reader()).unwrap_or_else(|why| panic!("{}", context(why)));
    Life::begin(&disk, seed + 1, |_| {}).check_given(&saved).unwrap_or_else(|why| panic!("{}", context(why)));
    saved.away
}

fn check(seeds: std::ops::Range<u64>) {
    let (mut frames, mut away) = (0, 0);
    for seed in seeds {
        for arrival in arrivals(seed) {
            for frame in arrival.saturating_sub(FRAMES_BEFORE).max(1)..arrival + FRAMES_AFTER {
                frames += 1;
                away += die_in(seed, frame);
            }
        }
    }
    println!("{frames} deaths, after which {away} players were in hub or dark zone");
    assert!(away > 0 && away < frames * belongings::PLAYERS, "before journeys and after them");
}

#[test]
fn r34_a_traveller_is_in_one_world_with_everything_whenever_the_process_dies() {
    check(0..1);
}

/// The full form in pieces: `cargo xtask reliability --minutes` goes on between them.
macro_rules! full_form {
    ($($name:ident: $seeds:expr,)*) => {$(
        #[test]
        #[ignore = "full form: every frame of 200 journeys"]
        fn $name() {
            check($seeds);
        }
    )*};
}

full_form! {
    r34_travellers_of_seeds_0_to_99: 0..100,
    r34_travellers_of_seeds_100_to_199: 100..200,
    r34_travellers_of_seeds_200_to_299: 200..300,
    r34_travellers_of_seeds_300_to_399: 300..400,
    r34_travellers_of_seeds_400_to_499: 400..500,
    r34_travellers_of_seeds_500_to_599: 500..600,
    r34_travellers_of_seeds_600_to_699: 600..700,
    r34_travellers_of_seeds_700_to_799: 700..800,
    r34_travellers_of_seeds_800_to_899: 800..900,
    r34_travellers_of_seeds_900_to_999: 900..1_000,
}
