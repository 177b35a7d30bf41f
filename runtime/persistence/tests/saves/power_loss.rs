//! R31, power loss: whatever part of the uncertified writes a disk kept, every acknowledged commit is there, whole, and
//! no other is half there.
//!
//! A workload is recorded: every write, every length, every fsync. At each of these moments the disk is made again
//! out of what was certified by then and any part of the rest, opened, and compared with what players, cells and leases were
//! after the batch that it says it is at: to the byte, and at least as new as what was acknowledged at that moment. While it
//! is opened and written to, that disk is recorded too, and loses power again.
//!
//! The file itself is made in a folder that loses power as well.

use std::{io, path::Path};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_persistence::{
    Embedded, Outcome, Store, StoreError, Ticket,
    commit::{Order, Request},
    disk::{Folder, open_or_make},
    refused_keys::RefusedKeys,
};

use crate::{
    settlement::Settlement,
    sim_disk::{SimDisk, apply_some, each_moment},
};

/// A recorded workload.
struct Workload {
    disk: SimDisk,
    /// What there was after each batch, and how long the tape was when it was acknowledged.
    batches: Vec<(Settlement, usize)>,
    orders: usize,
}

fn apply(store: &mut Embedded, requests: impl IntoIterator<Item = Request>) -> Result<Vec<Outcome>, String> {
    let order = |request| Order { ticket: Ticket(0), seen: Ticket(0), request };
    let orders: Vec<Order> = requests.into_iter().map(order).collect();
    store.apply(&orders, &mut RefusedKeys::default()).map_err(|error| format!("this disk does not fail: {error}"))
}

/// Writes a batch, and says how long the tape is then.
fn write(store: &mut Embedded, disk: &SimDisk, requests: Vec<Request>) -> usize {
    let outcomes = apply(store, requests).unwrap_or_else(|error| panic!("{error}"));
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
        let mut done = vec![(Settlement::default(), opened)];
        let (mut settlement, mut requests) = Settlement::found();
        let mut orders = 0;
        for number in 1..=batches as u64 {
            orders += requests.len();
            let acked = write(&mut store, &disk, std::mem::take(&mut requests));
            done.push((settlement.clone(), acked));
            requests = settlement.turn(number, &mut rng);
        }
        // What closing writes is not the matter; a server that loses power closes nothing.
        drop(store);
        Workload { disk, batches: done, orders }
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
        let at = self.judge(&mut store, acked)?;
        // A tenth of the images, since it reads key by key.
        if rng.random_bool(0.1) {
            self.batches[at].0.check_gone(&*store.reader()).map_err(|error| format!("batch {at}: {error}"))?;
        }
        if depth == 0 || !rng.random_bool(0.03) {
            return Ok(0);
        }
        // Power goes again, while it is put right or soon after.
        let opened = disk.with(|state| state.tape.as_ref().map_or(0, Vec::len));
        let read = self.batches[at].0.clone();
        let (after, requests) = if read.accounts.0.is_empty() {
            Settlement::found()
        } else {
            let mut after = read.clone();
            let requests = after.turn(u64::MAX, rng);
            (after, requests)
        };
        let acked = write(&mut store, &disk, requests);
        let tape = disk.with(|state| state.tape.take()).expect("it was recorded");
        drop(store);
        let again = Workload { disk, batches: vec![(read, opened), (after, acked)], orders: 0 };
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

    /// The batch that a store is at, of which at least `acked` entries are to be there; or what is wrong with it.
    fn judge(&self, store: &mut Embedded, acked: usize) -> Result<usize, String> {
        let reads = store.reader();
        let (accounts, cells, count) = Settlement::read(&*reads)?;
        // Batches of leases alone leave the same records: then the leases say which of them it is.
        let alike = self.batches.iter().enumerate().filter(|(_, (settlement, _))| settlement.is_of(&accounts, &cells));
        let alike: Vec<usize> = alike.map(|(at, _)| at).collect();
        let Some(newest) = alike.last() else {
            return Err(format!("is at no batch: {count:?}"));
        };
        if newest + 1 < acked {
            return Err(format!("is at batch {newest}, and {} are acknowledged", acked - 1));
        }
        if !count.holds() {
            return Err(format!("batch {newest}: {count:?}"));
        }
        let mut wrong = String::new();
        let alike: Vec<usize> = alike.into_iter().rev().filter(|at| at + 1 >= acked).collect();
        for &at in &alike {
            match ask_for_leases(store, &self.batches[at].0, alike.len() > 1)? {
                None => return Ok(at),
                Some(answer) => wrong = format!("is not at batch {at} with its leases: {answer}"),
            }
        }
        Err(wrong)
    }
}

/// `None`: its leases are those of this moment. Else an answer that says otherwise.
///
/// Where it may be another moment the second half is asked only after the first: it takes what is nobody's.
fn ask_for_leases(
    store: &mut Embedded,
    settlement: &Settlement,
    may_be_another: bool,
) -> Result<Option<String>, String> {
    let (mut first, mut second) = (settlement.who_may_write(), settlement.who_has());
    if !may_be_another {
        first.append(&mut second);
    }
    for questions in [first, second] {
        if questions.is_empty() {
            continue;
        }
        let (requests, expected): (Vec<Request>, Vec<Outcome>) = questions.into_iter().unzip();
        let answers = apply(store, requests.clone())?;
        let mut answered = requests.into_iter().zip(answers.into_iter().zip(expected));
        if let Some((request, (answer, expect))) = answered.find(|(_, (answer, expect))| answer != expect) {
            return Ok(Some(format!("{request:?} has {answer:?} and not {expect:?}")));
        }
    }
    Ok(None)
}

fn check(batches: usize, images_at_each: usize, images_min: usize, seed: u64) -> usize {
    let workload = Workload::record(batches, seed, false);
    let images = workload.try_all(images_at_each, seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    eprintln!("seed {seed}: {} orders in {batches} batches, {images} images", workload.orders);
    assert!(images >= images_min, "{images} images");
    workload.orders
}

#[test]
fn r31_whatever_a_power_loss_leaves_has_every_acknowledged_commit_and_none_by_halves() {
    check(24, 2, 2_000, 1);
}

#[test]
#[ignore = "full form: minutes"]
fn r31_whatever_a_power_loss_leaves_full() {
    let orders: usize = (1..=5).map(|seed| check(220, 8, 20_000, seed)).sum();
    assert!(orders >= 5_000, "{orders} orders");
}

/// The control: the same check finds a store whose fsyncs are left out.
#[test]
fn r31_a_store_without_fsync_is_found_out() {
    let error = Workload::record(10, 1, true).try_all(2, 1).expect_err("nothing was certain");
    assert!(error.contains("does not open") || error.contains("batch"), "{error}");
}

/// The control of the judge: a store that has one lease, one cell or one player other than there should be is found out.
#[test]
fn r31_a_store_that_forgot_a_lease_or_kept_what_was_deleted_is_found_out() {
    let workload = Workload::record(40, 3, false);
    let whole = workload.disk.with(|state| state.cached());
    let found_out = |spoil: &dyn Fn(&mut Settlement)| {
        let mut spoilt = Workload { disk: workload.disk.clone(), batches: workload.batches.clone(), orders: 0 };
        spoil(&mut spoilt.batches.last_mut().expect("there are forty").0);
        let mut store = Embedded::on(Box::new(SimDisk::new(whole.clone(), 0))).expect("it is whole");
        spoilt.judge(&mut store, workload.batches.len()).err()
    };
    assert_eq!(found_out(&|_| ()), None, "as it is, nothing is wrong");
    let taken = found_out(&|then| {
        let held = then.leases.values_mut().find(|held| held.owner != 0).expect("somebody has one");
        held.fence += 1;
    });
    assert!(taken.as_ref().is_some_and(|error| error.contains("with its leases")), "a lease was taken: {taken:?}");
    let ended = found_out(&|then| {
        let held = then.leases.values_mut().find(|held| held.owner != 0).expect("somebody has one");
        (held.owner, held.until_ms) = (0, 0);
    });
    assert!(ended.as_ref().is_some_and(|error| error.contains("with its leases")), "a lease was given up: {ended:?}");
    let deleted = found_out(&|then| _ = then.accounts.0.pop_first());
    assert!(deleted.as_ref().is_some_and(|error| error.contains("is at")), "a player was deleted: {deleted:?}");
    let mapped = found_out(&|then| _ = then.cells.pop_first());
    assert!(mapped.as_ref().is_some_and(|error| error.contains("is at")), "a cell was as new: {mapped:?}");
}

/// A folder with one file. What is under its name after a power loss is what was certified when it got that, and any part of
/// the rest; and whether it has the name at all is certain only when the folder was synced.
struct SimFolder {
    file: SimDisk,
    is_named: bool,
    is_name_certain: bool,
    /// What may be under the name.
    images: Vec<Vec<u8>>,
    /// The process ends before the folder is synced.
    ends: bool,
}

impl SimFolder {
    fn new(omits_sync: bool) -> SimFolder {
        let file = SimDisk::new(Vec::new(), 0);
        file.with(|state| state.plan.omits_sync = omits_sync);
        SimFolder { file, is_named: false, is_name_certain: false, images: Vec::new(), ends: false }
    }
}

impl Folder for SimFolder {
    type Made = SimDisk;
    type Opened = SimDisk;

    fn make(&mut self, _: &Path) -> Result<SimDisk, StoreError> {
        Ok(self.file.clone())
    }

    fn open(&mut self, _: &Path) -> io::Result<SimDisk> {
        if self.is_named { Ok(self.file.clone()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn rename_to_new(&mut self, _: &Path, _: &Path) -> io::Result<()> {
        self.images = (0..40).map(|_| self.file.power_loss()).collect();
        self.is_named = true;
        Ok(())
    }

    fn sync(&mut self, _: &Path) -> io::Result<()> {
        if self.ends {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.is_name_certain = self.is_named;
        Ok(())
    }
}

/// Makes a store; what is wrong with what a power loss leaves of it.
fn make(omits_sync: bool, ends_before: bool) -> Result<(), String> {
    let (mut folder, path) = (SimFolder::new(omits_sync), Path::new("saves.redb"));
    if ends_before {
        folder.ends = true;
        assert!(open_or_make(&mut folder, path).is_err());
        assert!(folder.is_named && !folder.is_name_certain);
        folder.ends = false;
    }
    open_or_make(&mut folder, path).map_err(|error| error.to_string())?;
    for image in folder.images {
        let store = Embedded::on(Box::new(SimDisk::new(image, 0)));
        store.map_err(|error| format!("what has the name does not open: {error}"))?;
    }
    if folder.is_name_certain { Ok(()) } else { Err("it may have no name, and is saved to".into()) }
}

#[test]
fn r31_a_new_store_has_its_name_when_it_is_whole_and_keeps_it_before_it_is_saved_to() {
    assert_eq!(make(false, false), Ok(()));
    assert_eq!(make(false, true), Ok(()), "the process that made it ended before it was certain");
}

/// The control: a new file whose fsyncs are left out.
#[test]
fn r31_a_new_store_that_is_named_before_it_is_synced_is_found_out() {
    assert!(make(true, false).is_err_and(|error| error.contains("does not open")));
}
