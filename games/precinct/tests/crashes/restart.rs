//! A server that is ended in order, and the next one.

use throng_persistence::disk::MemoryDisk;

use crate::belongings::{self, Belongings, Life, PLAYERS, store_on};

#[test]
fn everybody_has_everything_again_when_the_server_starts_again() {
    let disk = MemoryDisk::default();
    belongings::equip(&disk);
    let mut life = Life::begin(&disk, 1, |_| {});
    life.let_play(true);
    life.simulation.run_for(60.0);
    life.let_play(false);
    // Whoever is on the way arrives, and nobody holds a trigger any more.
    life.simulation.run_for(2.0);
    let totals = life.simulation.totals();
    assert_eq!((totals.playing, totals.counter("violations")), (PLAYERS as u64, 0), "{totals:#?}");
    assert!(totals.counter("travels") > 10 && totals.counter("gear_stashed") > 0, "{totals:#?}");
    let saved_now = life.simulation.server_mut().control().save_now();
    assert!(life.simulation.run_until(5.0, |_| saved_now.try_take().is_some_and(|saved| saved.is_ok())));
    let live = Belongings::in_worlds(&mut life.simulation, &life.worlds).unwrap();
    drop(life);

    let saved = Belongings::in_store(&*store_on(&disk).reader()).unwrap();
    let bags = |all: &Belongings| all.players.iter().map(|(client, has)| (*client, has.bag)).collect::<Vec<_>>();
    assert_eq!(bags(&saved), bags(&live));
    println!(
        "{:?} lie, {} chests",
        saved.lying.values().map(|lying| lying.len()).collect::<Vec<_>>(),
        saved.chests.len()
    );
    assert!(!saved.chests.is_empty(), "something is in chests");

    let mut life = Life::begin(&disk, 2, |_| {});
    life.check_given(&saved).unwrap_or_else(|why| panic!("{why}"));
    let mut count = |name| life.simulation.server_mut().count_of(name);
    assert_eq!([count("saves.players_loaded"), count("saves.records_unreadable")], [PLAYERS as u64, 0]);
}
