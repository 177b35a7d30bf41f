//! Records of saves, by whoever can write where they are kept, checksums included.
//!
//! Promise: one is refused with a reason, or is whose its heading says; a value in it is refused, or within its limits and the
//! same when it is packed again, also one of an older version.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::{
    pack::{Pack, envelope},
    saves::offline::{Contents, Key, Place},
};
use throng_persistence::versions::Versions;

/// As it was.
#[derive(Pack)]
#[pack(name = "fuzz.hero", version = 1)]
struct OldHero {
    #[pack(max = 1_000_000)]
    coins: u32,
}

#[derive(Debug, PartialEq, Pack)]
#[pack(name = "fuzz.hero", version = 3)]
struct Hero {
    #[pack(max = 10_000)]
    gold: u32,
    #[pack(max = 99)]
    silver: u8,
    #[pack(since = 3, default = 1.0, min = 0.0, max = 1.0)]
    health: f32,
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, record)) = bytes.split_first() else { return };
    let key = [Key::player(7), Key::world(7), Key::cell(7, 1), Key::left_out(7)][usize::from(first % 4)];
    let Ok(contents) = Contents::of(key, record) else { return };
    match &contents.place {
        Place::InWorld(_) => assert_eq!(record.len(), 10 + contents.value.len()),
        // What is no UTF-8 becomes longer where it is told.
        Place::OfKind(_) => assert_eq!(record.len(), 2 + usize::from(record[1]) + contents.value.len()),
        Place::Cell | Place::LeftOut => assert_eq!(record, contents.value),
    }
    let heroes = Versions::<Hero>::new().migrate(|old: OldHero| Hero {
        gold: old.coins / 100,
        silver: (old.coins % 100) as u8,
        health: 1.0,
    });
    let Ok(hero) = heroes.read(contents.value) else { return };
    assert!(hero.gold <= 10_000 && hero.silver <= 99 && (0.0..=1.0).contains(&hero.health), "{hero:?}");
    let mut again = Vec::new();
    envelope::write(&hero, &mut again).expect("what was read can be saved");
    assert_eq!(heroes.read(&again), Ok(hero));
});
