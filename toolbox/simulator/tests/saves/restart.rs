//! A bazaar that is closed and opened again.

use throng_persistence::{Embedded, Store, disk::MemoryDisk};
use throng_simulator::SimulationSettings;

use crate::bazaar::{self, Customer, Form, Habits, Wealth};

const HABITS: Habits = Habits { wishes: 0.5, goes: 0.1, panics: 0.0 };
const PLAYERS: usize = 12;

fn settings(seed: u64) -> SimulationSettings {
    SimulationSettings::new(bazaar::protocol().schema(), seed)
}

fn store_on(disk: &MemoryDisk) -> Box<dyn Store> {
    Box::new(Embedded::on(Box::new(disk.clone())).unwrap())
}

/// What is on the disk now.
fn look_at(disk: &MemoryDisk, context: &str) -> Wealth {
    bazaar::look_at(&*store_on(disk).reader()).unwrap_or_else(|why| panic!("{context}: {why}"))
}

#[test]
fn everything_is_there_again_when_the_server_starts_again() {
    Form::ALL.into_iter().for_each(is_there_again);
}

fn is_there_again(form: Form) {
    let disk = MemoryDisk::default();
    let mut bazaar = bazaar::open(&settings(1), Some(store_on(&disk)), form);
    (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(HABITS))));
    bazaar.run_for(20.0);
    assert_eq!(bazaar.totals().playing, PLAYERS as u64);
    let saved = bazaar.server_mut().control().save_now();
    assert!(bazaar.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
    drop(bazaar);

    let before = look_at(&disk, "after the first run");
    assert_eq!((before.purses.len(), before.chests.len()), (PLAYERS, 2), "{before:?}");
    assert!(before.purses.values().any(|coins| *coins != bazaar::COINS_AT_FIRST), "{before:?}");

    // Nobody does anything now, so everything is as it was.
    let mut bazaar = bazaar::open(&settings(2), Some(store_on(&disk)), form);
    let idle = Habits { wishes: 0.0, goes: 0.0, panics: 0.0 };
    (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(idle))));
    bazaar.run_for(5.0);
    assert_eq!(bazaar.totals().playing, PLAYERS as u64);
    assert_eq!(bazaar.server_mut().count_of("saves.worlds_loaded"), 2);
    assert_eq!(bazaar.server_mut().count_of("saves.players_loaded"), PLAYERS as u64);
    let saved = bazaar.server_mut().control().save_now();
    assert!(bazaar.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
    drop(bazaar);
    assert_eq!(look_at(&disk, "after the second run"), before);
}
