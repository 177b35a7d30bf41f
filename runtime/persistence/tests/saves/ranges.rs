//! The promise: a range gives the records between its ends, in the order of keys, and looks at no others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use redb::{Builder, Database, StorageBackend, backends::InMemoryBackend};
use throng_persistence::{
    Commit, Embedded, Key, Reads, Store, StoreError, Ticket,
    commit::{Order, Request},
    disk::Disk,
    refused_keys::RefusedKeys,
};

/// A disk in memory that counts what is read of it.
#[derive(Debug, Clone, Default)]
struct Counting {
    bytes: Arc<InMemoryBackend>,
    read: Arc<AtomicU64>,
}

impl StorageBackend for Counting {
    fn len(&self) -> std::io::Result<u64> {
        self.bytes.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.bytes.read(offset, out)
    }

    fn set_len(&self, length: u64) -> std::io::Result<()> {
        self.bytes.set_len(length)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.bytes.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.bytes.write(offset, data)
    }
}

impl Disk for Counting {
    fn open(&mut self, _: &Builder, _: bool) -> Result<Database, StoreError> {
        // Nothing is cached, so that each look at a page is one at the disk.
        Ok(Builder::new().set_cache_size(0).create_with_backend(self.clone())?)
    }

    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError> {
        self.open(builder, true)
    }
}

fn apply(store: &mut Embedded, commit: Commit) {
    let order = Order { ticket: Ticket(1), seen: Ticket(0), request: Request::Commit(commit) };
    store.apply(&[order], &mut RefusedKeys::default()).unwrap().remove(0).unwrap();
}

fn between(reads: &dyn Reads, first: Key, last: Key) -> BTreeMap<Key, Vec<u8>> {
    let (mut found, mut newest) = (BTreeMap::new(), None);
    let each = &mut |key, saved: Result<throng_persistence::Saved, StoreError>| {
        assert!(newest.replace(key).is_none_or(|before| before < key), "in the order of keys");
        found.insert(key, saved.unwrap().value);
    };
    reads.range(first..=last, each).unwrap();
    found
}

#[test]
fn a_range_gives_what_is_between_its_ends() {
    let mut store = Embedded::on(Box::new(Counting::default())).unwrap();
    let mut commit = Commit::new();
    for key in [Key::player(7), Key::world(1), Key::cell(1, 5), Key::cell(1, 9), Key::cell(1, 10), Key::cell(2, 6)] {
        commit.put_bytes(key, key.to_bytes().to_vec());
    }
    apply(&mut store, commit);
    let reads = store.reader();
    let check = |first, last, expect: &[Key]| {
        let expect = expect.iter().map(|key| (*key, key.to_bytes().to_vec())).collect();
        assert_eq!(between(&*reads, first, last), expect);
    };
    check(Key::cell(1, 5), Key::cell(1, 9), &[Key::cell(1, 5), Key::cell(1, 9)]);
    check(Key::cell(1, 6), Key::cell(1, u64::MAX), &[Key::cell(1, 9), Key::cell(1, 10)]);
    check(Key::cell(3, 0), Key::cell(3, u64::MAX), &[]);
    check(Key::player(0), Key::world(u64::MAX), &[Key::player(7), Key::world(1)]);
}

/// Promise: what is read for a range of a few records hardly grows with a thousand times as many beside it.
#[test]
fn a_range_costs_what_is_in_it_and_not_what_is_beside_it() {
    let read_with = |others: u64| {
        let disk = Counting::default();
        let mut store = Embedded::on(Box::new(disk.clone())).unwrap();
        for part in 0..others.div_ceil(10_000) {
            let mut commit = Commit::new();
            for number in (part * 10_000..others.min((part + 1) * 10_000)).chain(u64::MAX - 20..u64::MAX) {
                commit.put_bytes(Key::cell(1, number), vec![7; 30]);
            }
            apply(&mut store, commit);
        }
        let reads = store.reader();
        let before = disk.read.load(Ordering::Relaxed);
        assert_eq!(between(&*reads, Key::cell(1, u64::MAX - 20), Key::cell(1, u64::MAX)).len(), 20);
        disk.read.load(Ordering::Relaxed) - before
    };
    let (few, many) = (read_with(100), read_with(100_000));
    println!("{few} bytes read beside 100 records, {many} beside 100,000");
    // A page for each level of the tree, of which there are two more.
    assert!(many <= few + 4 * 4_096, "{few} and {many} bytes");
}
