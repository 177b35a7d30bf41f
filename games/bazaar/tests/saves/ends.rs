//! R36: an order to end saves everything that was ever done, granted or not, of a thousand worlds, too, and is obeyed in time.
//! On a disk that stays full it is obeyed all the same, and so on a disk and beside a PostgreSQL that stand still, and the server
//! says that not everything is saved; what it granted is there.

use std::{
    thread,
    time::{Duration, Instant},
};

use bazaar::stalls::look_at_stalls;

use crate::{
    cluster::Cluster,
    folder::Folder,
    life::{Ended, Heard, Life, PATIENCE, alone, wait_for},
    mounted::Mounted,
    place::{Place, Terms, write_settings},
    players::Players,
};

const PLAYERS: usize = 16;
/// By the contract.
const END_MAX: Duration = Duration::from_secs(15);
/// For a thousand worlds that are dirty.
const FLUSHED_WITHIN: Duration = Duration::from_secs(10);

#[track_caller]
fn check_in_time(ended: &Ended) {
    assert!(ended.after <= END_MAX, "it took {:?}: {}", ended.after, ended.log);
}

/// Ends it under load, and counts. Beside the markets there are so many stalls, each of which has sold since it was saved.
fn end_under_load(name: &str, place: &Place, times: u32, stalls: u32) {
    let folder = Folder::new(name);
    // Nothing is saved by the clock: what is there was asked for, or is saved at the end.
    write_settings(folder.path(), place, &Terms { period_s: 3_600, stalls, ..Terms::default() });
    let (mut slowest, mut ungranted) = (Duration::ZERO, 0);
    for time in 1..=times {
        let life = Life::start(folder.path());
        let players = Players::play(life.address, 1, PLAYERS);
        life.wait_for_receipts(PLAYERS as u64);
        life.wait_for_stalls(0, stalls as usize);
        let ended = life.end(|_| {});
        drop(players);
        assert!(ended.status.success(), "{time}: {}", ended.log);
        assert!(ended.after <= FLUSHED_WITHIN, "{time}: it took {:?}: {}", ended.after, ended.log);
        slowest = slowest.max(ended.after);
        assert_eq!(ended.report.as_ref().map(|report| report["saves_missing"].as_bool()), Some(Some(false)), "{time}");
        let wealth = place.wealth().unwrap_or_else(|why| panic!("{time}: {why}"));
        ended.heard.check_done(&wealth).unwrap_or_else(|why| panic!("{time}: {why}"));
        check_stalls(&ended.heard, place, stalls).unwrap_or_else(|why| panic!("{time}: {why}"));
        let granted = |player: &u64| ended.heard.granted.get(player).copied().unwrap_or_default();
        ungranted += ended.heard.done.iter().map(|(player, deeds)| deeds - granted(player)).sum::<u64>();
    }
    println!(
        "{times} orders to end beside {stalls} stalls: {slowest:?} at most; {ungranted} deeds that nobody had been granted are there"
    );
    assert!(ungranted > 0, "nothing shows that more is saved than was granted");
}

/// All of them are there with more than they began with. The ticks that a world does while its last save goes to the disk are in
/// none.
fn check_stalls(heard: &Heard, place: &Place, stalls: u32) -> Result<(), String> {
    let store = place.open().map_err(|error| error.to_string())?;
    let saved = look_at_stalls(&*store.reader())?;
    if saved.len() != stalls as usize {
        return Err(format!("{} of {stalls} stalls are there", saved.len()));
    }
    let told = heard.lives.last().cloned().unwrap_or_default();
    match saved.iter().find(|(number, sold)| told.made_with[number] >= **sold) {
        Some((number, sold)) => Err(format!("stall {number} has sold {sold}, as when it was made")),
        None => Ok(()),
    }
}

/// Ends it on a full disk, to which room comes back or not.
fn end_on_a_full_disk(name: &str, times: u32) {
    let Some(disk) = Mounted::tmpfs(&format!("{name}-disk")) else { return };
    let folder = Folder::new(name);
    for time in 1..=times {
        // A file of its own each time: one that has grown has room in itself.
        let place = Place::File(disk.fresh_folder(time));
        write_settings(folder.path(), &place, &Terms { hoard_bytes_max: 2_000_000, ..Terms::default() });
        let comes_back = time.is_multiple_of(2);
        let life = Life::start(folder.path());
        let players = Players::play(life.address, 1, PLAYERS);
        life.wait_for_receipts(PLAYERS as u64);
        disk.fill();
        wait_for("a store that is away", PATIENCE, || (life.status()["saves_are_away"] == true).then_some(()));
        let ended = life.end(|_| {
            if comes_back {
                thread::sleep(Duration::from_secs(1));
                disk.clear();
            }
        });
        drop(players);
        if !comes_back {
            disk.clear();
        }
        check_in_time(&ended);
        if !comes_back {
            check_what_is_missing(&ended, &place, time);
            continue;
        }
        let missing = ended.report.as_ref().and_then(|report| report["saves_missing"].as_bool());
        assert!(ended.status.success() && missing == Some(false), "{time}: {}", ended.log);
        let wealth = place.wealth().unwrap_or_else(|why| panic!("{time}: {why}"));
        ended.heard.check_granted(&wealth).unwrap_or_else(|why| panic!("{time}: {why}"));
        ended.heard.check_done(&wealth).unwrap_or_else(|why| panic!("{time}: {why}"));
    }
}

/// Ends it while its store stands still, from `stop` until what that returns is dropped. The kernel does not take a process
/// away that waits for a frozen disk, so what counts is when the server has said its last word; what it ends with is looked at
/// afterwards.
fn end_while_it_stands_still<S>(name: &str, place: &Place, stop: impl Fn() -> S, times: u32) {
    let folder = Folder::new(name);
    write_settings(folder.path(), place, &Terms::default());
    for time in 1..=times {
        let life = Life::start(folder.path());
        let players = Players::play(life.address, 1, PLAYERS);
        life.wait_for_receipts(PLAYERS as u64);
        let stopped = stop();
        wait_for("a store that is away", PATIENCE, || (life.status()["saves_are_away"] == true).then_some(()));
        let mut told_after = Duration::ZERO;
        let ended = life.end(|life| {
            let began = Instant::now();
            wait_for("its last word", PATIENCE, || life.has_reported().then_some(()));
            told_after = began.elapsed();
            drop(stopped);
        });
        drop(players);
        println!("{name}: its last word after {told_after:?}");
        assert!(told_after <= END_MAX, "{time}: it took {told_after:?}: {}", ended.log);
        check_what_is_missing(&ended, place, time);
    }
}

/// It said that not everything is saved, and what it granted is there.
fn check_what_is_missing(ended: &Ended, place: &Place, time: u32) {
    let missing = ended.report.as_ref().and_then(|report| report["saves_missing"].as_bool());
    assert_eq!((ended.status.code(), missing), (Some(2), Some(true)), "{time}: {}", ended.log);
    assert!(ended.log.contains("not everything could be saved"), "{time}: {}", ended.log);
    let wealth = place.wealth().unwrap_or_else(|why| panic!("{time}: {why}"));
    ended.heard.check_granted(&wealth).unwrap_or_else(|why| panic!("{time}: {why}"));
}

fn end_on_a_frozen_disk(name: &str, times: u32) {
    let Some(disk) = Mounted::ext4(&format!("{name}-disk")) else { return };
    end_while_it_stands_still(name, &Place::File(disk.path().to_owned()), || disk.freeze(), times);
}

fn end_beside_a_stopped_postgresql(name: &str, times: u32) {
    let Some(cluster) = Cluster::start(&format!("{name}-pg")) else { return };
    end_while_it_stands_still(name, &Place::of(&cluster), || cluster.stop(), times);
}

#[test]
fn an_order_to_end_is_obeyed_while_the_disk_stands_still() {
    end_on_a_frozen_disk("ends-frozen", 1);
}

#[test]
fn an_order_to_end_is_obeyed_while_postgresql_stands_still() {
    end_beside_a_stopped_postgresql("ends-stopped", 1);
}

#[test]
#[ignore = "full form: 20 orders on a frozen disk and beside a stopped PostgreSQL, ten minutes"]
fn r36_twenty_orders_to_end_while_stores_stand_still() {
    let _alone = alone();
    end_on_a_frozen_disk("ends-frozen-full", 10);
    end_beside_a_stopped_postgresql("ends-stopped-full", 10);
}

#[test]
fn an_order_to_end_saves_all_that_was_done() {
    let saves = Folder::new("ends-file");
    end_under_load("ends", &Place::File(saves.path().to_owned()), 2, 100);
    let Some(cluster) = Cluster::start("ends-pg") else { return };
    end_under_load("ends-with-pg", &Place::of(&cluster), 1, 100);
}

#[test]
fn an_order_to_end_is_obeyed_on_a_full_disk_and_tells_the_truth() {
    end_on_a_full_disk("ends-full-disk", 2);
}

#[test]
#[ignore = "full form: 200 orders under load, ten minutes"]
fn r36_two_hundred_orders_to_end_save_all() {
    let _alone = alone();
    let saves = Folder::new("ends-file-full");
    end_under_load("ends-full", &Place::File(saves.path().to_owned()), 200, 0);
}

#[test]
#[ignore = "full form: twenty orders beside a thousand worlds, five minutes"]
fn r36_twenty_orders_to_end_save_a_thousand_worlds() {
    let _alone = alone();
    let saves = Folder::new("ends-stalls-full");
    end_under_load("ends-stalls", &Place::File(saves.path().to_owned()), 20, 1_000);
}

#[test]
#[ignore = "full form: 50 orders on a full disk, ten minutes"]
fn r36_fifty_orders_to_end_on_a_full_disk() {
    let _alone = alone();
    end_on_a_full_disk("ends-full-disk-full", 50);
}
