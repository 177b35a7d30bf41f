//! What older programs saved, what newer ones did, and what a disk made of it.

use std::{fs, path::Path, sync::Arc};

use redb::TableDefinition;
use throng_pack::{Fault, Pack, envelope};
use throng_persistence::{Commit, Embedded, Key, Saved, Store, StoreError, Writer, WriterSettings, versions::Versions};
use throng_platform::clock::ManualClock;

use crate::folder::Folder;

#[derive(Debug, PartialEq, Pack)]
#[pack(name = "test.hero", version = 1)]
struct HeroV1 {
    coins: u32,
}

/// One field became two.
#[derive(Debug, PartialEq, Pack)]
#[pack(name = "test.hero", version = 2)]
struct HeroV2 {
    gold: u32,
    silver: u8,
}

/// One was added.
#[derive(Debug, PartialEq, Pack)]
#[pack(name = "test.hero", version = 3)]
struct HeroV3 {
    gold: u32,
    silver: u8,
    #[pack(since = 3, default = 5)]
    luck: u8,
}

/// Somebody changed a field and forgot the version.
#[derive(Debug, PartialEq, Pack)]
#[pack(name = "test.hero", version = 2)]
struct Careless {
    gold: u32,
    bronze: u16,
}

fn heroes() -> Versions<HeroV3> {
    let change = |old: HeroV1| HeroV3 { gold: old.coins / 100, silver: (old.coins % 100) as u8, luck: 5 };
    Versions::new().migrate(change)
}

fn bytes<T: throng_pack::HasSchema>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    envelope::write(value, &mut bytes).unwrap();
    bytes
}

fn write(path: &Path, commit: Commit) {
    let store = Box::new(Embedded::open(path).unwrap());
    let mut writer = Writer::inline(store, WriterSettings::default(), Arc::new(ManualClock::new()));
    writer.submit(commit).unwrap();
    assert!(writer.take_ack().unwrap().outcome.is_ok());
}

fn read(path: &Path, key: Key) -> Result<Option<Saved>, StoreError> {
    Embedded::open(path).unwrap().reader().get(key)
}

#[test]
fn older_versions_are_read_by_function_or_by_default() {
    let folder = Folder::new("older");
    let mut commit = Commit::new();
    commit.put(Key::player(1), &HeroV1 { coins: 230 }).unwrap();
    commit.put(Key::player(2), &HeroV2 { gold: 7, silver: 8 }).unwrap();
    commit.put(Key::player(3), &HeroV3 { gold: 7, silver: 8, luck: 9 }).unwrap();
    write(&folder.store(), commit);
    let expected = [(1, 2, 30, 5), (2, 7, 8, 5), (3, 7, 8, 9)];
    for (id, gold, silver, luck) in expected {
        let saved = read(&folder.store(), Key::player(id)).unwrap().unwrap();
        assert_eq!(heroes().read(&saved.value), Ok(HeroV3 { gold, silver, luck }), "player {id}");
    }
}

#[test]
fn newer_and_careless_versions_are_refused_by_name() {
    let fault = |bytes: &[u8]| Versions::<HeroV2>::new().read(bytes).unwrap_err();
    let newer = fault(&bytes(&HeroV3 { gold: 1, silver: 2, luck: 3 }));
    assert_eq!((newer.type_name, newer.fault), ("test.hero", Fault::NewerVersion { got: 3, known: 2 }));
    let careless = fault(&bytes(&Careless { gold: 1, bronze: 2 }));
    assert_eq!(careless.fault, Fault::LayoutChanged { version: 2 });
    // Without the function the layout of version 1 is not what the type says of it.
    let unknown = Versions::<HeroV3>::new().read(&bytes(&HeroV1 { coins: 1 })).unwrap_err();
    assert_eq!(unknown.fault, Fault::LayoutChanged { version: 1 });
}

#[test]
#[should_panic(expected = "test.hero: version 1 is registered twice")]
fn a_version_has_one_function() {
    _ = heroes().migrate(|old: HeroV1| HeroV3 { gold: old.coins, silver: 0, luck: 0 });
}

#[test]
fn a_store_of_a_newer_program_is_refused_and_keeps_what_it_has() {
    let folder = Folder::new("newer");
    let mut commit = Commit::new();
    commit.put_bytes(Key::player(1), vec![1]);
    write(&folder.store(), commit);
    let set_format = |format: u64| {
        let database = redb::Database::open(folder.store()).unwrap();
        let transaction = database.begin_write().unwrap();
        let meta: TableDefinition<&str, u64> = TableDefinition::new("meta");
        transaction.open_table(meta).unwrap().insert("format", format).unwrap();
        transaction.commit().unwrap();
    };
    set_format(2);
    for _ in 0..2 {
        assert_eq!(Embedded::open(&folder.store()).err(), Some(StoreError::Newer { found: 2, known: 1 }));
    }
    set_format(1);
    assert_eq!(read(&folder.store(), Key::player(1)).unwrap().unwrap().value, [1]);
}

/// What is left of a first start during which the power went.
#[test]
fn a_store_that_was_half_made_is_made_anew() {
    let folder = Folder::new("half-made");
    let unfinished = folder.store().with_extension("redb.new");
    fs::write(&unfinished, [0; 5_000]).unwrap();
    assert_eq!(read_or_make(&folder.store()), Ok(None));
    assert!(!unfinished.exists());
    // Something that is there and no store is nobody's to write over.
    fs::write(folder.store(), [0; 5_000]).unwrap();
    assert!(matches!(read_or_make(&folder.store()), Err(StoreError::Io { .. })));
}

fn read_or_make(path: &Path) -> Result<Option<Saved>, StoreError> {
    Embedded::open(path)?.reader().get(Key::player(1))
}

/// Turns over a byte of each place where these bytes are in the file.
fn damage(path: &Path, bytes: &[u8]) {
    let mut file = fs::read(path).unwrap();
    let places: Vec<usize> = (0..file.len() - bytes.len()).filter(|at| file[*at..].starts_with(bytes)).collect();
    assert!(!places.is_empty());
    for at in places {
        file[at + bytes.len() / 2] ^= 0x10;
    }
    fs::write(path, file).unwrap();
}

#[test]
fn a_damaged_record_is_told_of_and_falls_back_alone() {
    let folder = Folder::new("damaged");
    let (ada, bob) = (Key::player(1), Key::player(2));
    let value = |byte: u8| vec![byte; 500];
    let save = |byte: u8| {
        let mut commit = Commit::new();
        commit.put_bytes(ada, value(byte)).put_bytes(bob, value(byte + 100));
        write(&folder.store(), commit);
    };
    let fine = |byte| Ok(Some(Saved { value: value(byte), is_previous: false }));
    let fallen_back = |byte| Ok(Some(Saved { value: value(byte), is_previous: true }));
    save(1);
    save(2);
    damage(&folder.store(), &value(2));
    assert_eq!(read(&folder.store(), ada), fallen_back(1));
    assert_eq!(read(&folder.store(), bob), fine(102));

    // What is written over it does not push out the good one.
    save(3);
    assert_eq!(read(&folder.store(), ada), fine(3));
    damage(&folder.store(), &value(3));
    assert_eq!(read(&folder.store(), ada), fallen_back(1));

    damage(&folder.store(), &value(1));
    let reads = Embedded::open(&folder.store()).unwrap().reader();
    assert_eq!(reads.get(ada), Err(StoreError::DamagedRecord { key: ada }));
    assert_eq!(reads.get(bob), fine(103));
    let mut met = Vec::new();
    reads.visit(&mut |key, saved| met.push((key, saved.is_ok()))).unwrap();
    assert_eq!(met, [(ada, false), (bob, true)]);
    assert_eq!(reads.damaged(), 2);
}
