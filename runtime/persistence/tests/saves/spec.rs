//! Promise: keys, records, leases and counters are the bytes that `docs/spec/saves.md` shows, in the tables that it names.

use std::sync::Arc;

use redb::{ReadableDatabase, ReadableTable, TableDefinition, Value};
use throng_persistence::{Commit, Embedded, Key, LeaseRequest, Writer, WriterSettings};
use throng_platform::clock::ManualClock;

use crate::folder::Folder;

const SPEC: &str = include_str!("../../../../docs/spec/saves.md");

/// The bytes of the block that begins with "```hex name".
fn golden(name: &str) -> Vec<u8> {
    let (_, block) = SPEC.split_once(&format!("```hex {name}\n")).expect("the block is there");
    let (block, _) = block.split_once("```").expect("the block ends");
    block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

#[track_caller]
fn check(name: &str, bytes: &[u8]) {
    let drawn: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(golden(name), bytes, "the spec should draw {name} as\n{}", drawn.join(" "));
}

#[test]
fn the_bytes_in_the_spec_are_those_in_the_file() {
    let (folder, ada) = (Folder::new("spec"), Key::player(7));
    let store = Box::new(Embedded::open(&folder.store()).unwrap());
    let mut writer = Writer::inline(store, WriterSettings::default(), Arc::new(ManualClock::new()));
    let mut commit = Commit::new();
    commit.put_bytes(ada, golden("player")).items_created(1, 900);
    writer.submit(commit).unwrap();
    // Owners one after the other; the third has number 2.
    for owner in [1, 5, 2] {
        let for_ms = if owner == 2 { 1_000 } else { 0 };
        writer.lease(LeaseRequest::Take { key: ada, owner, now_ms: 0, for_ms }).unwrap();
    }
    while let Some(ack) = writer.take_ack() {
        ack.outcome.unwrap();
    }
    drop(writer);

    let database = redb::Database::open(folder.store()).unwrap();
    let read = database.begin_read().unwrap();
    let records: TableDefinition<&[u8; 17], &[u8]> = TableDefinition::new("records");
    let leases: TableDefinition<&[u8; 17], (u64, u64, u64)> = TableDefinition::new("leases");
    let items: TableDefinition<u32, i64> = TableDefinition::new("items");
    let meta: TableDefinition<&str, u64> = TableDefinition::new("meta");
    check("key", &ada.to_bytes());
    let record = read.open_table(records).unwrap().get(&ada.to_bytes()).unwrap().expect("it is there");
    check("record", record.value());
    let lease = read.open_table(leases).unwrap().get(&ada.to_bytes()).unwrap().expect("it was taken").value();
    check("lease", &<(u64, u64, u64)>::as_bytes(&lease));
    let items = read.open_table(items).unwrap();
    let (kind, count) = items.iter().unwrap().next().expect("one kind").unwrap();
    check("item", &[kind.value().to_le_bytes().to_vec(), count.value().to_le_bytes().to_vec()].concat());
    let meta = read.open_table(meta).unwrap();
    assert_eq!(meta.get("format").unwrap().map(|number| number.value()), Some(1));
    assert!(meta.get("batch").unwrap().is_some_and(|number| number.value() >= 1));
    let names: Vec<String> =
        read.list_tables().unwrap().map(|table| redb::TableHandle::name(&table).to_owned()).collect();
    assert_eq!(names, ["items", "leases", "meta", "previous", "records"], "the tables of the spec, and no others");
}
