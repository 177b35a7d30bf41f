//! R21: one world ends the whole process, under load and beside many saved worlds. The supervisor starts another server, in
//! which all worlds but that one tick again, each with what was saved, and nothing is lost that was granted.
//!
//! When it died is told by the world that does it: it tells of each of its ticks, of which there are twenty a second.

use std::time::{Duration, Instant};

use bazaar::stalls::look_at_stalls;

use crate::{
    folder::Folder,
    life::{Life, alone},
    little_memory::LittleMemory,
    place::{Place, Terms, write_settings},
    players::Players,
};

const PLAYERS: usize = 16;
/// By the contract: from the death until all tick.
const BACK_WITHIN: Duration = Duration::from_secs(5);

const DEATHS: [&str; 6] =
    ["dies-of-stack-overflow", "dies-of-double-panic", "dies-of-out-of-memory", "dies-of-segv", "dies-of-bus", HUNGRY];
/// It takes 1 GiB, over some seconds, in a control group that has less.
const HUNGRY: &str = "hungry-world";
const GROUP_BYTES: u64 = 900 << 20;

/// A server with so many saved worlds dies once; after how long all the others ticked again. `None` where that death cannot be
/// had, which is said.
fn die(name: &str, fault: &str, stalls: u32) -> Option<Duration> {
    let group = if fault == HUNGRY { Some(LittleMemory::new(GROUP_BYTES)?) } else { None };
    let (folder, saves) = (Folder::new(name), Folder::new(&format!("{name}-saves")));
    let place = Place::File(saves.path().to_owned());
    write_settings(folder.path(), &place, &Terms { stalls, ..Terms::default() });
    let in_store = || look_at_stalls(&*place.open().unwrap().reader()).unwrap_or_else(|why| panic!("{fault}: {why}"));

    // A life before, which leaves every world with a past.
    let life = Life::start(folder.path());
    life.wait_for_stalls(0, stalls as usize);
    let players = Players::play(life.address, 1, PLAYERS);
    life.wait_for_receipts(1);
    let before = life.end(|_| {});
    drop(players);
    assert!(before.status.success(), "{}", before.log);
    let saved = in_store();
    assert_eq!(saved.len(), stalls as usize, "all of them were saved");
    assert!(saved.values().all(|sold| *sold > 0), "{saved:?}");

    let life = Life::start_to_die(folder.path(), fault, group.as_ref());
    let players = Players::play(life.address, 1, PLAYERS);
    let first = life.wait_for_stalls(0, stalls as usize);
    assert_eq!(first.made_with, saved, "{fault}: worlds are not as they were saved");
    let second = life.wait_for_stalls(1, stalls as usize - 1);
    // A hungry world is hungry for a while before it is the end.
    let first = life.heard().lives[0].clone();
    let (died, back) = (if group.is_some() { first.ended_at } else { first.first_at }, second.newest_at);
    let back_after = back.unwrap_or_else(Instant::now).saturating_duration_since(died.expect("it told of its ticks"));
    drop(players);
    assert!(!second.made_with.contains_key(&0), "{fault}: who ended the server is not made again");
    let is_older = |(number, sold): &(&u64, &u32)| second.made_with.get(number).is_some_and(|now| now < sold);
    assert_eq!(saved.iter().find(is_older), None, "{fault}: {:?}", second.made_with);

    // And it is a server that players come into and that saves.
    let players = Players::play(life.address_again(), 1, PLAYERS);
    life.wait_for_receipts(1);
    let ended = life.end(|_| {});
    drop(players);
    assert!(ended.status.success(), "{fault}: {}", ended.log);
    let wealth = place.wealth().unwrap_or_else(|why| panic!("{fault}: {why}"));
    ended.heard.check_granted(&wealth).unwrap_or_else(|why| panic!("{fault}: {why}"));
    let now = in_store();
    assert!(saved.iter().all(|(number, sold)| now[number] >= *sold), "{fault}: {now:?}");
    println!("R21: {fault} beside {stalls} worlds: all tick again after {back_after:?}");
    Some(back_after)
}

#[test]
fn all_saved_worlds_but_the_culprit_tick_again_after_a_death() {
    die("death", "dies-of-segv", 100);
}

#[test]
fn all_saved_worlds_but_the_culprit_tick_again_after_one_took_all_memory() {
    die("death-hungry", HUNGRY, 100);
}

#[test]
#[ignore = "full form: thirty deaths beside a thousand worlds, 8 min"]
fn r21_a_thousand_worlds_tick_again_within_five_seconds_of_a_death() {
    let _alone = alone();
    let rounds = (0..5).flat_map(|_| DEATHS);
    let slowest = rounds.filter_map(|fault| die("death-full", fault, 1_000)).max();
    assert!(slowest.is_some_and(|slowest| slowest <= BACK_WITHIN), "{slowest:?}");
}
