//! R31, power loss: whatever part of the uncertified writes a disk kept, every acknowledged commit is there, whole, and
//! no other is half there.
//!
//! A workload is recorded: every write, every length, every fsync. At each of these moments the disk is made again
//! out of what was certified by then and any part of the rest, opened, and compared with what the accounts were after
//! the batch that it says it is at: to the byte, and at least as new as what was acknowledged at that moment. While it
//! is opened and written to, that disk is recorded too, and loses power again.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_persistence::{
    Embedded, Store, Ticket,
    commit::{Order, Request},
    refused_keys::RefusedKeys,
};

use crate::{
    accounts::Accounts,
    sim_disk::{SimDisk, apply_some, each_moment},
};

/// A recorded workload.
struct Workload {
    disk: SimDisk,
    /// What the accounts were after each batch, and how long the tape was when it was acknowledged.
    batches: Vec<(Accounts, usize)>,
}

/// Writes a batch, and says how long the tape is then.
fn write(store: &mut Embedded, disk: &SimDisk, commits: Vec<throng_persistence::Commit>) -> usize {
    let order = |commit| Order { ticket: Ticket(0), seen: Ticket(0), request: Request::Commit(commit) };
    let orders: Vec<Order> = commits.into_iter().map(order).collect();
    let outcomes = store.apply(&orders, &mut RefusedKeys::default()).expect("this disk does not fail");
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    disk.with(|state| state.tape.as_ref().map_or(0, Vec::len))
}

impl Workload {
    fn record(batches: usize, seed: u64, omits_sync: bool) -> Workload {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let disk = SimDisk::recorded(SimDisk::empty_store());
        disk.with(|state| state.plan.omits_sync = omits_sync);
        let mut store = Embedded::on(Box::new(disk.clone())).expect("this disk does not fail");
        let opened = disk.with(|state| state.tape.as_ref().map_or(0, Vec::len));
        let (mut accounts, first) = Accounts::found(12);
        let mut done = vec![(Accounts::default(), opened)];
        let acked = write(&mut store, &disk, vec![first]);
        done.push((accounts.clone(), acked));
        for number in 1..batches as u64 {
            let commits = (0..rng.random_range(1..5)).map(|_| accounts.pay(number, &mut rng)).collect();
            let acked = write(&mut store, &disk, commits);
            done.push((accounts.clone(), acked));
        }
        // What closing writes is not the matter; a server that loses power closes nothing.
        drop(store);
        Workload { disk, batches: done }
    }

    /// Tries images at every moment; how many, or what was wrong with one.
    fn try_all(&self, images_at_each: usize, seed: u64) -> Result<usize, String> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut count, mut outcome) = (0, Ok(()));
        let tape = self.disk.with(|state| state.tape.clone()).expect("it was recorded");
        each_moment(&SimDisk::empty_store(), &tape, |moment, certified, pending| {
            for _ in 0..images_at_each {
                if outcome.is_err() {
                    return;
                }
                let mut image = certified.to_vec();
                apply_some(&mut image, pending, &mut rng);
                count += 1;
                outcome = self
                    .try_image(image, moment, &mut rng, 2)
                    .map(|more| count += more)
                    .map_err(|error| format!("moment {moment} of {}, image {count}: {error}", tape.len()));
            }
        });
        outcome.map(|()| count)
    }

    /// Opens an image, and makes others of what opening and writing does to it; how many these were.
    fn try_image(
        &self,
        image: Vec<u8>,
        moment: usize,
        rng: &mut Xoshiro256PlusPlus,
        depth: u32,
    ) -> Result<usize, String> {
        // Batches that were acknowledged by then; the first entry is the empty store.
        let acked = self.batches.partition_point(|(_, acked)| *acked <= moment);
        let disk = SimDisk::recorded(image.clone());
        let mut store = Embedded::on(Box::new(disk.clone())).map_err(|error| format!("does not open: {error}"))?;
        let (read, count) = Accounts::read(&*store.reader())?;
        let Some(at) = self.batches.iter().position(|(accounts, _)| *accounts == read) else {
            return Err(format!("is at no batch: {count:?}"));
        };
        if at + 1 < acked {
            return Err(format!("is at batch {at}, and {} are acknowledged", acked - 1));
        }
        if !count.holds() {
            return Err(format!("batch {at}: {count:?}"));
        }
        if depth == 0 || !rng.random_bool(0.03) {
            return Ok(0);
        }
        // Power goes again, while it is put right or soon after.
        let opened = disk.with(|state| state.tape.as_ref().map_or(0, Vec::len));
        let mut after = read.clone();
        let commit = if read.0.is_empty() {
            let (founded, first) = Accounts::found(12);
            after = founded;
            first
        } else {
            after.pay(u64::MAX, rng)
        };
        let acked = write(&mut store, &disk, vec![commit]);
        let tape = disk.with(|state| state.tape.take()).expect("it was recorded");
        drop(store);
        let again = Workload { disk, batches: vec![(read, opened), (after, acked)] };
        let (mut count, mut outcome) = (0, Ok(()));
        each_moment(&image, &tape, |moment, certified, pending| {
            if outcome.is_ok() {
                let mut image = certified.to_vec();
                apply_some(&mut image, pending, rng);
                count += 1;
                let tried = again.try_image(image, moment, rng, depth - 1).map(|more| count += more);
                outcome = tried.map_err(|error| format!("and again at {moment}: {error}"));
            }
        });
        outcome.map(|()| count)
    }
}

fn check(batches: usize, images_at_each: usize, images_min: usize, seed: u64) {
    let workload = Workload::record(batches, seed, false);
    let images = workload.try_all(images_at_each, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    eprintln!("seed {seed}: {batches} batches, {images} images");
    assert!(images >= images_min, "{images} images");
}

#[test]
fn r31_whatever_a_power_loss_leaves_has_every_acknowledged_commit_and_none_by_halves() {
    check(40, 2, 2_000, 1);
}

#[test]
#[ignore = "full form: minutes"]
fn r31_whatever_a_power_loss_leaves_full() {
    for seed in 1..=5 {
        check(200, 8, 20_000, seed);
    }
}

/// The control: the same check finds a store whose fsyncs are left out.
#[test]
fn r31_a_store_without_fsync_is_found_out() {
    let error = Workload::record(10, 1, true).try_all(2, 1).expect_err("nothing was certain");
    assert!(error.contains("does not open") || error.contains("batch"), "{error}");
}
