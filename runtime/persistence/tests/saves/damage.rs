//! R35, bit rot: whatever byte of a file is turned over, and whatever block of it is lost, whoever inspects it is told, or
//! finds every record as it was written. No damage makes a value of another, and none ends the process.
//!
//! The checksum of a record finds damage in it; that of a page finds the rest, such as a key that leads elsewhere.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use redb::ReadableDatabase;
use throng_persistence::{
    Commit, Embedded, Key, Store, Ticket,
    commit::{Order, Request},
    inspection::inspect,
    refused_keys::RefusedKeys,
};

use crate::{accounts::Accounts, sim_disk::SimDisk};

/// What a disk that loses a block gives back instead.
const BLOCK_BYTES: usize = 512;

/// A store after some batches, closed, and what is in it.
fn image(seed: u64) -> (Vec<u8>, Vec<(Key, Vec<u8>)>) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let disk = SimDisk::new(SimDisk::empty_store(), seed);
    let mut store = Embedded::on(Box::new(disk.clone())).unwrap();
    let (mut accounts, first) = Accounts::found(12);
    let mut write = |commit: Commit| {
        let order = Order { ticket: Ticket(0), seen: Ticket(0), request: Request::Commit(commit) };
        assert!(store.apply(&[order], &mut RefusedKeys::default()).unwrap()[0].is_ok());
    };
    write(first);
    (1..20).for_each(|number| write(accounts.pay(number, &mut rng)));
    let (mut whole, reads) = (Vec::new(), store.reader());
    reads.visit(&mut |key, saved| whole.push((key, saved.unwrap().value))).unwrap();
    drop((store, reads));
    (disk.power_loss(), whole)
}

/// Whether an inspection notices; an error: it neither notices nor finds what was written.
fn is_noticed(image: Vec<u8>, whole: &[(Key, Vec<u8>)]) -> Result<bool, String> {
    let Ok(opened) = Embedded::open_to_read_on(&mut SimDisk::new(image, 0)) else { return Ok(true) };
    let mut found = Vec::new();
    let inspection = inspect(&*opened.reads, |key, value, _| {
        found.push((key, value.to_vec()));
        Ok(())
    });
    let Ok(inspection) = inspection else { return Ok(true) };
    if opened.pages.is_err() || !inspection.is_whole() {
        return Ok(true);
    }
    if found == whole {
        Ok(false)
    } else {
        Err(format!("{} records of {}, and nobody notices", found.len(), whole.len()))
    }
}

fn check(seeds: u64, bytes: u32, blocks: u32) {
    let (mut noticed, mut harmless) = (0_u64, 0_u64);
    for seed in 0..seeds {
        let (image, whole) = image(seed);
        assert_eq!(is_noticed(image.clone(), &whole), Ok(false), "as it was written");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for damage in 0..bytes + blocks {
            let mut damaged = image.clone();
            let at = rng.random_range(0..damaged.len());
            if damage < bytes {
                damaged[at] ^= rng.random_range(1..=255_u8);
            } else {
                let block = at / BLOCK_BYTES * BLOCK_BYTES..(at / BLOCK_BYTES + 1) * BLOCK_BYTES;
                match rng.random_range(0..3) {
                    0 => damaged[block].fill(0),
                    1 => damaged[block].fill(0xff),
                    // A write that went to another place.
                    _ => {
                        let from = rng.random_range(0..damaged.len() / BLOCK_BYTES) * BLOCK_BYTES;
                        damaged.copy_within(from..from + BLOCK_BYTES, block.start);
                    }
                }
            }
            let is_noticed = is_noticed(damaged, &whole);
            let is_noticed =
                is_noticed.unwrap_or_else(|why| panic!("seed {seed}, damage {damage} at byte {at}: {why}"));
            *(if is_noticed { &mut noticed } else { &mut harmless }) += 1;
        }
        // And cut short, anywhere.
        for _ in 0..20 {
            let length = rng.random_range(0..image.len());
            let cut = is_noticed(image[..length].to_vec(), &whole);
            cut.unwrap_or_else(|why| panic!("seed {seed}, cut to {length} bytes: {why}"));
        }
    }
    println!("{seeds} saves: {noticed} damages told, {harmless} where nothing is");
    assert!(noticed > 0 && harmless > 0);
}

#[test]
fn r35_whatever_is_damaged_is_told_or_harmless() {
    check(2, 400, 60);
}

#[test]
#[ignore = "full form: half an hour"]
fn r35_whatever_is_damaged_is_told_or_harmless_full() {
    check(100, 10_000, 1_000);
}

/// The control: whoever reads past the checksums is deceived by the same damages, and found out.
#[test]
fn r35_a_reader_that_looks_at_no_checksum_is_found_out() {
    let (image, whole) = image(7);
    let (_, value) = &whole[0];
    let places: Vec<usize> = (0..image.len() - value.len()).filter(|at| image[*at..].starts_with(value)).collect();
    assert!(!places.is_empty(), "a record is somewhere");
    let deceived = places.into_iter().any(|at| {
        let mut damaged = image.clone();
        damaged[at + value.len() / 2] ^= 0x10;
        assert!(is_noticed(damaged.clone(), &whole).is_ok(), "whoever looks is not");
        let database = redb::Builder::new().create_with_backend(SimDisk::new(damaged, 0)).unwrap();
        let records: redb::TableDefinition<&[u8; 17], &[u8]> = redb::TableDefinition::new("records");
        let table = database.begin_read().unwrap().open_table(records).unwrap();
        let found = table.get(&whole[0].0.to_bytes()).unwrap().expect("it is there").value()[5..].to_vec();
        found != *value
    });
    assert!(deceived, "no damage reached it");
}
