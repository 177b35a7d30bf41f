//! The promise: whatever fails, no coin is doubled or lost, and what was said to be on disk is there (R33, R34).
//!
//! Players deal, travel, leave and come back, on a network that loses packets; markets panic in six places, the disk fails in
//! the middle of what it writes, and the process dies between two frames and starts again, several times in a run. After each
//! death the store is counted; nobody may have done fewer deeds than when the last wish to save everything was granted. Where
//! markets keep checkpoints, nobody has done fewer after a panic either.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    lifecycle::Pending,
    net::transport::Impairment,
    saves::{SaveFault, SavedNow},
};
use throng_simulator::{Simulation, SimulationSettings};

use crate::{
    bazaar::{self, Customer, Form, Habits},
    disk::FlakyDisk,
};

const PLAYERS: usize = 8;
/// Lives of the process in a run.
const LIVES: u64 = 4;

/// What a run came to, so that one in which nothing happens does not pass for one in which all went well.
#[derive(Debug, Default)]
struct Tally {
    deeds: u64,
    loaded: u64,
    refused: u64,
    /// Panics, and worlds that went on after one as they were.
    parked: u64,
    reloaded: u64,
    granted: u64,
}

struct Run {
    seed: u64,
    form: Form,
    rng: Xoshiro256PlusPlus,
    disk: FlakyDisk,
    fault: Option<SaveFault>,
    /// Deeds that are on disk, since somebody was told so.
    granted: BTreeMap<u64, u32>,
    tally: Tally,
}

impl Run {
    fn customer(&mut self) -> Box<Customer> {
        let panics = if self.rng.random_bool(0.2) { 0.004 } else { 0.0 };
        Box::new(Customer(Habits { wishes: 0.7, goes: 0.15, panics }))
    }

    fn settings(&self, life: u64) -> SimulationSettings {
        let mut settings = SimulationSettings::new(bazaar::protocol().schema(), self.seed.wrapping_mul(LIVES) + life);
        settings.impairment = Impairment { loss: 0.03, ..Impairment::default() };
        settings.server.saves.period_s = 2;
        settings
    }

    /// From a start to a death.
    fn live(&mut self, life: u64) -> Result<(), String> {
        let mut bazaar = bazaar::open(&self.settings(life), Some(self.disk.store()), self.form);
        if let Some(fault) = self.fault {
            bazaar.server_mut().break_saves(fault);
        }
        for _ in 0..PLAYERS {
            let customer = self.customer();
            bazaar.join(customer);
        }
        // What they have done who are seen, and how many markets were made anew, out of a cut.
        let (mut done, mut made): (BTreeMap<u64, u32>, u64) = (BTreeMap::new(), 0);
        let mut asked: Option<(Pending<SavedNow>, BTreeMap<u64, u32>)> = None;
        for _ in 0..self.rng.random_range(200..700) {
            bazaar.step();
            let made_now = bazaar.server_mut().count_of("server.worlds_created");
            if std::mem::replace(&mut made, made_now) != made_now {
                done.clear();
            }
            for (player, deeds) in bazaar::live(&mut bazaar).0 {
                let before = done.insert(player, deeds).unwrap_or_default();
                if deeds < before && self.form.keeps_checkpoints() {
                    return Err(format!("player {player} had done {before} deeds and has done {deeds}"));
                }
            }
            match self.rng.random_range(0..200) {
                0 if self.rng.random_bool(0.5) => self.disk.break_after(self.rng.random_range(0..30)),
                0 => self.disk.fail_after(self.rng.random_range(0..30)),
                1..=3 => self.disk.heal(),
                4 if asked.is_none() => {
                    let (deeds, _) = bazaar::live(&mut bazaar);
                    asked = Some((bazaar.server_mut().control().save_now(), deeds));
                }
                5 => bazaar.leave(self.rng.random_range(0..PLAYERS)),
                6 | 7 => {
                    let customer = self.customer();
                    bazaar.join_again(self.rng.random_range(0..PLAYERS), customer);
                }
                _ => {}
            }
            if let Some((pending, deeds)) = &asked
                && let Some(answer) = pending.try_take()
            {
                let saved = answer.map_err(|error| error.to_string())?;
                // A market that panicked before it was cut has lost what it had, and is named.
                if saved.worlds_missing.is_empty() {
                    self.tally.granted += 1;
                    self.granted.extend(deeds.iter().map(|(player, deeds)| (*player, *deeds)));
                }
                asked = None;
            }
        }
        if life + 1 == LIVES {
            self.come_to_rest(&mut bazaar)?;
        }
        let count = |name| bazaar.server_mut().count_of(name);
        let names = ["saves.players_loaded", "saves.refused", "server.worlds_parked", "server.worlds_reloaded"];
        let [loaded, refused, parked, reloaded] = names.map(count);
        self.tally.loaded += loaded;
        self.tally.refused += refused;
        self.tally.parked += parked;
        self.tally.reloaded += reloaded;
        drop(bazaar);
        self.disk.heal();
        let store = self.disk.store();
        let wealth = bazaar::look_at(&*store.reader())?;
        for (player, deeds) in &self.granted {
            let saved = wealth.deeds.get(player).copied();
            if saved.is_none_or(|saved| saved < *deeds) {
                return Err(format!(
                    "player {player} had done {deeds} deeds when it was said that all is saved, and has {saved:?}"
                ));
            }
        }
        self.tally.deeds = wealth.deeds.values().map(|deeds| u64::from(*deeds)).sum();
        Ok(())
    }

    /// The disk is well, and nobody does anything: what is in memory and what is on disk are the same.
    fn come_to_rest(&mut self, bazaar: &mut Simulation) -> Result<(), String> {
        self.disk.heal();
        (0..PLAYERS).for_each(|player| bazaar.leave(player));
        bazaar.run_for(12.0);
        let saved = bazaar.server_mut().control().save_now();
        if !bazaar.run_until(20.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())) {
            return Err(format!("it is not saved in time: {:?}", bazaar.server_mut().saves_status()));
        }
        // A client whose market is parked waits for half a minute until it is refused.
        let no_leases =
            |bazaar: &mut Simulation| bazaar.server_mut().saves_status().is_some_and(|status| status.leases == 0);
        bazaar.run_until(60.0, no_leases);
        let status = bazaar.server_mut().saves_status().ok_or("it saves")?;
        if status.leases > 0 || status.waiting_bytes > 0 {
            return Err(format!("all are gone, and {status:?}"));
        }
        Ok(())
    }
}

fn run(seed: u64, fault: Option<SaveFault>, form: Form) -> Result<Tally, String> {
    let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut run =
        Run { seed, form, rng, disk: FlakyDisk::default(), fault, granted: BTreeMap::new(), tally: Tally::default() };
    for life in 0..LIVES {
        run.live(life).map_err(|why| format!("{form:?}, seed {seed}, life {life}: {why}"))?;
    }
    Ok(run.tally)
}

#[track_caller]
fn run_all(seeds: std::ops::Range<u64>, form: Form) -> Tally {
    let mut all = Tally::default();
    for seed in seeds {
        let tally = run(seed, None, form).unwrap_or_else(|why| panic!("{why}"));
        all.deeds += tally.deeds;
        all.loaded += tally.loaded;
        all.refused += tally.refused;
        all.parked += tally.parked;
        all.reloaded += tally.reloaded;
        all.granted += tally.granted;
    }
    println!("{form:?}: {all:?}");
    all
}

#[track_caller]
fn check(seeds: std::ops::Range<u64>, form: Form) {
    let all = run_all(seeds, form);
    let Tally { deeds, loaded, refused, parked, reloaded, granted } = all;
    assert!(deeds > 0 && loaded > 0 && refused > 0 && parked > 0 && granted > 0, "{all:?}");
    // The others panicked too often, or where they would again.
    let most = if form.keeps_checkpoints() { parked / 2..=parked } else { 0..=0 };
    assert!(most.contains(&reloaded), "{all:?}");
}

#[test]
fn no_coin_is_doubled_or_lost() {
    check(0..20, Form::Chest);
}

#[test]
fn no_coin_is_doubled_or_lost_where_worlds_go_on_after_a_panic() {
    check(0..20, Form::ChestAndCheckpoints);
}

#[test]
fn no_coin_is_doubled_or_lost_where_worlds_are_saved_as_their_checkpoints() {
    check(0..20, Form::Checkpoint);
}

/// The full form in pieces: `cargo xtask reliability --minutes` goes on between them.
macro_rules! full_form {
    ($($name:ident: $seeds:expr,)*) => {$(
        #[test]
        #[ignore = "full form: a thousand seeds of each form of saving"]
        fn $name() {
            Form::ALL.into_iter().for_each(|form| check($seeds, form));
        }
    )*};
}

full_form! {
    r33_r34_seeds_0_to_999: 0..1_000,
    r33_r34_seeds_1000_to_1999: 1_000..2_000,
    r33_r34_seeds_2000_to_2999: 2_000..3_000,
    r33_r34_seeds_3000_to_3999: 3_000..4_000,
    r33_r34_seeds_4000_to_4999: 4_000..5_000,
    r33_r34_seeds_5000_to_5999: 5_000..6_000,
    r33_r34_seeds_6000_to_6999: 6_000..7_000,
    r33_r34_seeds_7000_to_7999: 7_000..8_000,
    r33_r34_seeds_8000_to_8999: 8_000..9_000,
    r33_r34_seeds_9000_to_9999: 9_000..10_000,
}

#[test]
#[ignore = "runs the seeds that THRONG_SEEDS names, such as 17..18"]
fn named_seeds() {
    let wanted = std::env::var("THRONG_SEEDS").unwrap_or_default();
    let (first, end) = wanted.split_once("..").expect("THRONG_SEEDS=FIRST..END");
    for form in Form::ALL {
        run_all(first.parse().unwrap()..end.parse().unwrap(), form);
    }
}

#[test]
fn a_broken_build_does_not_pass() {
    for fault in [SaveFault::MovesLeftOut, SaveFault::LeaversLeftOut, SaveFault::RefusalsForgotten] {
        let found = (0..20).find_map(|seed| run(seed, Some(fault), Form::Chest).err());
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} went unseen");
    }
}
