//! Records that the disk has lost something of: each falls back to the one before it, alone, and the operator is told.

use std::collections::BTreeMap;

use redb::{Builder, ReadableTable, TableDefinition};
use throng::profiler::log::{CategoryFilter, Lines, lines_between};
use throng_persistence::{Embedded, Key, Kind, Store, disk::MemoryDisk};
use throng_platform::ticks;
use throng_simulator::{Simulation, SimulationSettings};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

use crate::bazaar::{self, Customer, Form, Habits, MARKETS};

const PLAYERS: usize = 8;

/// As `docs/spec/saves.md` has them.
const RECORDS: TableDefinition<'_, &[u8; 17], &[u8]> = TableDefinition::new("records");
const PREVIOUS: TableDefinition<'_, &[u8; 17], &[u8]> = TableDefinition::new("previous");

fn store_on(disk: &MemoryDisk) -> Box<dyn Store> {
    Box::new(Embedded::on(Box::new(disk.clone())).unwrap())
}

fn records(disk: &MemoryDisk) -> BTreeMap<Key, Vec<u8>> {
    let mut all = BTreeMap::new();
    store_on(disk).reader().visit(&mut |key, saved| _ = all.insert(key, saved.unwrap().value)).unwrap();
    all
}

/// Turns a bit of the newest record of these, if there is another one before it.
fn damage_one_of(disk: &MemoryDisk, keys: impl IntoIterator<Item = Key>) -> Key {
    let database = Builder::new().create_with_backend(disk.clone()).unwrap();
    let write = database.begin_write().unwrap();
    let damaged = {
        let (mut newest, previous) = (write.open_table(RECORDS).unwrap(), write.open_table(PREVIOUS).unwrap());
        let has_other = |key: &Key| {
            let [now, before] =
                [newest.get(&key.to_bytes()), previous.get(&key.to_bytes())].map(|found| found.unwrap().unwrap());
            now.value() != before.value()
        };
        let key = keys.into_iter().find(has_other).expect("one that was saved twice");
        let mut bytes = newest.get(&key.to_bytes()).unwrap().unwrap().value().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        newest.insert(&key.to_bytes(), &*bytes).unwrap();
        key
    };
    write.commit().unwrap();
    damaged
}

fn save_all(bazaar: &mut Simulation) {
    let saved = bazaar.server_mut().control().save_now();
    assert!(bazaar.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
}

#[test]
fn r35_a_damaged_record_of_a_world_or_a_player_falls_back_alone_and_is_told() {
    let disk = MemoryDisk::default();
    let mut settings = SimulationSettings::new(bazaar::protocol().schema(), 5);
    settings.server.saves.period_s = 1;
    let mut bazaar = bazaar::open(&settings, Some(store_on(&disk)), Form::Chest);
    let busy = Habits { wishes: 0.5, goes: 0.0, panics: 0.0 };
    (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(busy))));
    bazaar.run_for(15.0);
    save_all(&mut bazaar);
    drop(bazaar);

    let newest = records(&disk);
    let players = newest.keys().copied().filter(|key| key.kind == Kind::Player);
    let damaged = [damage_one_of(&disk, [Key::world(MARKETS[0])]), damage_one_of(&disk, players)];
    let fallen_back = records(&disk);
    assert!(damaged.iter().all(|key| fallen_back[key] != newest[key]));

    let begun = ticks::now();
    let subscriber = tracing_subscriber::registry().with(CategoryFilter).with(Lines::new());
    let _kept_for_the_test = subscriber.set_default();
    let mut bazaar = bazaar::open(&settings, Some(store_on(&disk)), Form::Chest);
    let idle = Habits { wishes: 0.0, goes: 0.0, panics: 0.0 };
    (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(idle))));
    bazaar.run_for(5.0);
    assert_eq!(bazaar.totals().playing, PLAYERS as u64);
    save_all(&mut bazaar);
    let counts = ["saves.records_damaged", "saves.records_unreadable", "saves.worlds_loaded", "saves.players_loaded"]
        .map(|name| bazaar.server_mut().count_of(name));
    assert_eq!(counts, [2, 0, 2, PLAYERS as u64], "each of the two once");
    let lines = lines_between(begun, ticks::now());
    let told: Vec<_> = lines.iter().map(|line| line.text()).filter(|line| line.contains("is damaged")).collect();
    let [of_world, of_player] = told[..] else { panic!("{told:?}") };
    assert!(of_world.contains(&format!("save={}", MARKETS[0])), "{of_world}");
    assert!(of_player.contains(&format!("client={}", damaged[1].id)), "{of_player}");
    drop(bazaar);
    assert_eq!(records(&disk), fallen_back, "all others are as they were");
}
