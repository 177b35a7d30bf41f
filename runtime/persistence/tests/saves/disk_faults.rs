//! R32, a disk that fails: nothing is acknowledged that is not on it, the game goes on, and saving takes itself up again.
//!
//! For each call to the disk there is a run in which that call fails, alone or with all after it until the disk is well
//! again; as a full disk or as a broken one. Reads are such calls: those of a store that is opened, of a record that is written
//! over and of a player who is loaded, each in runs in which no page is kept in memory. A failing fsync loses a part of what it was to certify, and the kernel goes
//! on to show it. After each batch power is lost on a copy of the disk, which must then have exactly what was
//! acknowledged.

use std::{collections::BTreeMap, sync::Arc};

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_pack::envelope;
use throng_persistence::{Embedded, Key, Refusal, Store, StoreError, Ticket, Writer, WriterSettings};
use throng_platform::{clock::ManualClock, time::Nanos};

use crate::{
    accounts::{Account, Accounts},
    sim_disk::{Plan, SimDisk},
};

/// Rounds of two payments each.
const ROUNDS: u64 = 4;
/// After so many steps of the clock a disk that fails for ever is well again.
const STEPS_ILL: u32 = 5;
/// Within so many all must be answered.
const STEPS_MAX: u32 = 200;
/// Payments of so many kinds.
const SEEDS: u64 = 3;

/// A game that saves on a disk.
struct Game {
    disk: SimDisk,
    clock: ManualClock,
    writer: Writer,
    /// As the game plays on, whatever becomes of the saves.
    present: Accounts,
    /// What was acknowledged.
    saved: Accounts,
    waiting: BTreeMap<Ticket, BTreeMap<Key, Account>>,
    refusals: Vec<Refusal>,
}

impl Game {
    fn new(plan: Plan, seed: u64) -> Result<Game, String> {
        let disk = SimDisk::new(SimDisk::empty_store(), seed);
        let clock = ManualClock::new();
        disk.with(|state| state.plan = plan);
        // A failure at start-up is the operator's, who starts it again.
        let store = Embedded::on(Box::new(disk.clone())).or_else(|_| {
            disk.with(|state| state.plan.fails = None);
            Embedded::on(Box::new(disk.clone()))
        });
        let store = store.map_err(|error| format!("does not open on a disk that is well: {error}"))?;
        let writer = Writer::inline(Box::new(store), WriterSettings::default(), Arc::new(clock.clone()));
        let (present, saved, waiting) = Default::default();
        Ok(Game { disk, clock, writer, present, saved, waiting, refusals: Vec::new() })
    }

    fn play(&mut self, seed: u64) -> Result<(), String> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (present, first) = Accounts::found(8);
        self.present = present;
        let mut commits = vec![first];
        for round in 1..=ROUNDS {
            for commit in commits.drain(..) {
                self.give(commit);
            }
            self.await_answers()?;
            self.compare()?;
            self.load()?;
            commits.extend((0..2).map(|_| self.present.pay(round, &mut rng)));
        }
        // What the last of them was not taken for is in memory only.
        self.disk.with(|state| state.plan.fails = None);
        self.save_whole();
        self.await_answers()?;
        self.compare()?;
        if self.load()? < self.present.0.len() {
            return Err("the disk is well, and loading is not".into());
        }
        if self.saved == self.present { Ok(()) } else { Err("the disk is well, and saving is not".into()) }
    }

    fn give(&mut self, commit: throng_persistence::Commit) {
        // What is not taken now is in the next save of everything.
        if let Ok(ticket) = self.writer.submit(commit) {
            self.waiting.insert(ticket, self.present.0.clone());
        }
    }

    fn save_whole(&mut self) {
        let mut commit = self.present.whole();
        if self.saved.0.is_empty() {
            // The first commit was refused, and with it the coins that it made.
            let coins = self.present.0.values().map(|account| account.coins).sum();
            commit.items_created(crate::accounts::COINS, coins);
        }
        self.give(commit);
    }

    /// Plays on until all orders are answered, and hands in everything again after refusals.
    fn await_answers(&mut self) -> Result<(), String> {
        for step in 0..STEPS_MAX {
            let mut was_refused = false;
            while let Some(ack) = self.writer.take_ack() {
                let state = self.waiting.remove(&ack.ticket).ok_or("an answer that nobody waits for")?;
                match ack.outcome {
                    Ok(_) => self.saved = Accounts(state),
                    Err(refusal) => {
                        was_refused = true;
                        self.refusals.push(refusal);
                    }
                }
            }
            if was_refused && self.waiting.is_empty() {
                self.save_whole();
            }
            if self.waiting.is_empty() {
                return Ok(());
            }
            if step == STEPS_ILL {
                self.disk.with(|state| state.plan.fails = None);
            }
            self.clock.advance(Nanos::from_secs(1));
        }
        Err(format!("{} orders have no answer", self.waiting.len()))
    }

    /// Each player comes in, which may fail on a disk that has failed; so many did. Nobody is loaded as he never was.
    fn load(&self) -> Result<usize, String> {
        let reads = self.writer.reads();
        let mut loaded = 0;
        for (key, account) in &self.saved.0 {
            match reads.get(*key) {
                Ok(Some(found)) if envelope::read::<Account>(&found.value).as_ref() == Ok(account) => loaded += 1,
                Ok(found) => return Err(format!("{key:?} was loaded as {found:?}")),
                Err(error) if self.disk.with(|state| state.failed) == 0 || error.is_final() => {
                    return Err(format!("{key:?} does not load: {error}"));
                }
                Err(_) => {}
            }
        }
        Ok(loaded)
    }

    /// Power is lost on a copy.
    fn compare(&self) -> Result<(), String> {
        let copy = SimDisk::new(self.disk.power_loss(), 0);
        let store = Embedded::on(Box::new(copy)).map_err(|error| format!("does not open: {error}"))?;
        let (read, count) = Accounts::read(&*store.reader())?;
        if read != self.saved {
            let of = |accounts: &Accounts| accounts.0.values().map(|account| account.written_by).max();
            return Err(format!("round {:?} was acknowledged, and {:?} is there", of(&self.saved), of(&read)));
        }
        if count.holds() { Ok(()) } else { Err(format!("{count:?}")) }
    }
}

/// A run for every call; how many there were, or what went wrong in one.
fn try_all(plan: impl Fn(u64) -> Plan) -> Result<(u64, Vec<Refusal>), String> {
    let mut refusals = Vec::new();
    for call in 0.. {
        let plan = plan(call);
        // Without a cache there are many more calls.
        let seeds = if plan.is_uncached { call % SEEDS..call % SEEDS + 1 } else { 0..SEEDS };
        for seed in seeds {
            let ran = Game::new(plan, seed).and_then(|mut game| {
                game.play(seed)?;
                refusals.append(&mut game.refusals);
                Ok(game.disk.with(|state| state.failed))
            });
            match ran {
                Ok(0) => return Ok((call, refusals)),
                Ok(_) => {}
                Err(error) => return Err(format!("call {call}, seed {seed}: {error}")),
            }
        }
    }
    unreachable!("a run has an end");
}

fn check(plan: impl Fn(u64) -> Plan, expected: impl Fn(&StoreError) -> bool) {
    for is_uncached in [false, true] {
        let plan = |call| Plan { is_uncached, ..plan(call) };
        let (calls, refusals) = try_all(plan).unwrap_or_else(|error| panic!("uncached: {is_uncached}, {error}"));
        eprintln!("{calls} calls to the disk, each failed; {} refusals", refusals.len());
        assert!(calls > if is_uncached { 300 } else { 60 } && !refusals.is_empty(), "{calls} calls");
        for refusal in refusals {
            let is_expected = match &refusal {
                // A player was to be loaded, and the store is opened anew when somebody writes next.
                Refusal::Store(StoreError::Down) => true,
                Refusal::Store(error) => expected(error),
                other => matches!(other, Refusal::AfterRefused { .. }),
            };
            assert!(is_expected, "{refusal:?}");
        }
    }
}

#[test]
fn r32_one_failure_at_every_call_acknowledges_nothing_that_is_not_there() {
    let is_io = |error: &StoreError| matches!(error, StoreError::Io { .. });
    check(|call| Plan { fails: Some((call, call + 1)), ..Plan::default() }, is_io);
}

#[test]
fn r32_a_disk_that_is_full_from_any_call_on_is_told_of_and_saving_begins_again() {
    let is_full = |error: &StoreError| *error == StoreError::DiskFull;
    check(|call| Plan { fails: Some((call, u64::MAX)), is_full: true, ..Plan::default() }, is_full);
}

#[test]
fn r32_a_disk_that_is_broken_from_any_call_on_is_told_of_and_saving_begins_again() {
    let is_io = |error: &StoreError| matches!(error, StoreError::Io { .. });
    check(|call| Plan { fails: Some((call, u64::MAX)), ..Plan::default() }, is_io);
}

/// Batches in doubt included: what is read is what was acknowledged, or that and the batch that failed.
#[test]
fn r32_what_is_committed_can_be_read_from_a_disk_that_takes_no_writes() {
    let spares_reads = Plan { spares_reads: true, ..Plan::default() };
    for call in 30..70 {
        let mut game = Game::new(spares_reads, call).unwrap();
        let (present, first) = Accounts::found(8);
        game.present = present;
        game.give(first);
        game.await_answers().unwrap();
        let calls = game.disk.with(|state| state.calls);
        game.disk.with(|state| state.plan = Plan { fails: Some((calls + call - 30, u64::MAX)), ..spares_reads });
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(call);
        let mut number = 0;
        while !game.writer.is_down() {
            number += 1;
            let commit = game.present.pay(number, &mut rng);
            game.give(commit);
            if let Some(ack) = game.writer.take_ack() {
                game.saved = Accounts(game.waiting.remove(&ack.ticket).unwrap());
            }
        }
        let (read, count) = Accounts::read(&*game.writer.reads()).unwrap_or_else(|error| panic!("{call}: {error}"));
        assert!(read == game.saved || read == game.present, "{call}: neither");
        assert!(count.holds(), "{call}: {count:?}");
        game.await_answers().unwrap();
        game.compare().unwrap();
    }
}

/// The control: the same check finds a store that after a failed fsync believes what the kernel shows it.
#[test]
fn r32_a_store_that_believes_the_kernel_after_a_failed_fsync_is_found_out() {
    let plan = |call| Plan { fails: Some((call, call + 1)), trusts_cache: true, ..Plan::default() };
    let error = try_all(plan).expect_err("an acknowledgement was false");
    assert!(error.contains("acknowledged") || error.contains("does not open"), "{error}");
}
