//! A process stands still, or its store is away, for longer than its leases run, and another one takes a player or a world over
//! meanwhile: what was given away since the last save is not there twice.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use throng_persistence::{
    Done, Embedded, Key, LeaseRequest, Outcome, Reads, Store, StoreError, Ticket,
    commit::{Order, Request},
    disk::MemoryDisk,
    refused_keys::RefusedKeys,
};
use throng_simulator::{Simulation, SimulationSettings};

use crate::bazaar::{self, Customer, Form, Habits};

const PLAYERS: usize = 8;
const LEASE_S: u32 = 5;
/// Leases are over, and connections are not.
const STANDS_STILL_S: f64 = 7.0;

/// A store that several processes have open, and that one of them may not reach.
#[derive(Clone)]
struct Shared {
    store: Arc<Mutex<Box<dyn Store>>>,
    is_away: Arc<AtomicBool>,
}

impl Store for Shared {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        self.reach()?;
        self.store.lock().unwrap().apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.reach()?;
        self.store.lock().unwrap().settle()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn reader(&self) -> Arc<dyn Reads> {
        self.store.lock().unwrap().reader()
    }
}

impl Shared {
    fn new() -> Self {
        let store: Box<dyn Store> = Box::new(Embedded::on(Box::new(MemoryDisk::default())).unwrap());
        Self { store: Arc::new(Mutex::new(store)), is_away: Arc::default() }
    }

    fn reach(&self) -> Result<(), StoreError> {
        if self.is_away.load(Ordering::SeqCst) { Err(StoreError::Down) } else { Ok(()) }
    }

    /// Another process has this from now on, long after the lease of any other is over.
    fn taken_over(&self, key: Key) {
        let take = LeaseRequest::Take { key, owner: 2, now_ms: u64::MAX / 4, for_ms: 1_000_000 };
        let order = Order { ticket: Ticket(0), seen: Ticket(0), request: Request::Lease(take) };
        let outcome = self.store.lock().unwrap().apply(&[order], &mut RefusedKeys::default()).unwrap();
        assert!(matches!(outcome[..], [Ok(Done::Leased(_))]), "{outcome:?}");
    }

    fn wealth(&self) -> Result<bazaar::Wealth, String> {
        bazaar::look_at(&*self.reader())
    }

    fn record(&self, key: Key) -> Vec<u8> {
        self.reader().get(key).unwrap().expect("it was saved").value
    }
}

/// A bazaar in which nothing has been saved for ten seconds of deals.
fn unsaved(seed: u64, store: &Shared, goes: f64) -> Simulation {
    let mut settings = SimulationSettings::new(bazaar::protocol().schema(), seed);
    (settings.server.saves.period_s, settings.server.saves.lease_s) = (3_600, LEASE_S);
    let mut bazaar = bazaar::open(&settings, Some(Box::new(store.clone())), Form::Chest);
    let habits = Habits { wishes: 0.7, goes, panics: 0.0 };
    (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(habits))));
    bazaar.run_for(5.0);
    save(&mut bazaar);
    bazaar.run_for(10.0);
    assert_eq!(bazaar.totals().playing, PLAYERS as u64);
    bazaar
}

fn save(bazaar: &mut Simulation) {
    let saved = bazaar.server_mut().control().save_now();
    assert!(bazaar.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
}

#[test]
fn what_a_player_gave_away_who_was_taken_over_is_not_there_twice() {
    for seed in 0..6 {
        let store = Shared::new();
        let mut bazaar = unsaved(seed, &store, 0.0);
        let saved = store.wealth().unwrap();
        let (player, before) = saved.purses.first_key_value().map(|(player, coins)| (*player, *coins)).unwrap();
        bazaar.stand_still(STANDS_STILL_S);
        store.taken_over(Key::player(player));
        bazaar.run_for(5.0);
        let counts = ["saves.leases_lost", "saves.worlds_taken_back"].map(|name| bazaar.server_mut().count_of(name));
        assert_eq!(counts, [1, 1], "seed {seed}");
        save(&mut bazaar);
        assert_eq!(bazaar.totals().playing, PLAYERS as u64 - 1, "seed {seed}: the others play on");
        drop(bazaar);
        let after = store.wealth().unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(after.purses[&player], before, "what the other process has of them");
    }
}

#[test]
fn a_process_that_stood_still_and_has_all_its_players_goes_on() {
    let store = Shared::new();
    let mut bazaar = unsaved(9, &store, 0.0);
    let deeds = bazaar::live(&mut bazaar).0;
    bazaar.stand_still(STANDS_STILL_S);
    bazaar.run_for(2.0);
    let counts = ["saves.leases_lost", "saves.worlds_taken_back"].map(|name| bazaar.server_mut().count_of(name));
    assert_eq!((counts, bazaar.totals().playing), ([0, 0], PLAYERS as u64));
    assert!(bazaar::live(&mut bazaar).0.iter().all(|(player, now)| *now >= deeds[player]), "nothing is undone");
}

/// It plays on, as with any store that is away, and what it would save waits: deals of many players with each other, in two
/// markets between which they go.
#[test]
fn what_was_dealt_while_the_store_was_away_is_not_there_twice() {
    for (seed, goes) in (0..6).flat_map(|seed| [(seed, 0.0), (seed, 0.05)]) {
        let store = Shared::new();
        let mut bazaar = unsaved(seed, &store, goes);
        let saved = store.wealth().unwrap();
        let (player, before) = saved.purses.first_key_value().map(|(player, coins)| (*player, *coins)).unwrap();
        store.is_away.store(true, Ordering::SeqCst);
        let _waits = bazaar.server_mut().control().save_now();
        bazaar.run_for(STANDS_STILL_S);
        assert_eq!(bazaar.totals().playing, PLAYERS as u64, "seed {seed}, goes {goes}: play goes on");
        store.taken_over(Key::player(player));
        store.is_away.store(false, Ordering::SeqCst);
        bazaar.run_for(15.0);
        assert_eq!(bazaar.server_mut().count_of("saves.leases_lost"), 1, "seed {seed}, goes {goes}");
        assert!(bazaar.server_mut().count_of("saves.worlds_taken_back") > 0, "seed {seed}, goes {goes}");
        save(&mut bazaar);
        drop(bazaar);
        let after = store.wealth().unwrap_or_else(|why| panic!("seed {seed}, goes {goes}: {why}"));
        assert_eq!(after.purses[&player], before, "seed {seed}, goes {goes}: what the other process has of them");
    }
}

#[test]
fn a_world_that_another_process_has_taken_over_ends_here_and_is_not_written() {
    let market = Key::world(bazaar::MARKETS[0]);
    for stands_still in [true, false] {
        let store = Shared::new();
        let mut bazaar = unsaved(3, &store, 0.0);
        let before = store.record(market);
        if stands_still {
            bazaar.stand_still(STANDS_STILL_S);
        } else {
            store.is_away.store(true, Ordering::SeqCst);
            bazaar.run_for(STANDS_STILL_S);
            store.is_away.store(false, Ordering::SeqCst);
        }
        store.taken_over(market);
        bazaar.run_for(15.0);
        let counts = ["saves.worlds_lost", "saves.worlds_taken_back"].map(|name| bazaar.server_mut().count_of(name));
        assert_eq!(counts, [1, 1], "stands still: {stands_still}");
        save(&mut bazaar);
        drop(bazaar);
        store.wealth().unwrap_or_else(|why| panic!("stands still: {stands_still}: {why}"));
        assert_eq!(store.record(market), before, "it is the other process's");
    }
}

/// By an hour, a day and to 1970. Leases of who plays are prolonged as ever, and nobody who shares the store has them for it.
#[test]
fn r28_a_wall_clock_that_jumps_costs_no_lease_and_no_save() {
    const HOUR_S: u64 = 3_600;
    let store = Shared::new();
    let mut bazaar = unsaved(5, &store, 0.05);
    let began = bazaar.unix_seconds();
    for to in [began + HOUR_S, began - HOUR_S, began + 24 * HOUR_S, began - 24 * HOUR_S, 0, began] {
        bazaar.set_unix_seconds(to);
        bazaar.run_for(2.0 * f64::from(LEASE_S));
        save(&mut bazaar);
        store.wealth().unwrap_or_else(|why| panic!("at {to}: {why}"));
        let names = ["saves.leases_lost", "saves.worlds_lost", "saves.worlds_taken_back", "saves.refused"];
        assert_eq!(names.map(|name| bazaar.server_mut().count_of(name)), [0; 4], "at {to}");
        assert_eq!(bazaar.totals().playing, PLAYERS as u64, "at {to}");
    }
}

/// Its lease is given up with it, and taken again before it is loaded.
#[test]
fn a_world_that_was_parked_is_saved_again_when_it_is_back() {
    let market = Key::world(bazaar::MARKETS[0]);
    let store = Shared::new();
    let mut bazaar = unsaved(7, &store, 0.0);
    let control = bazaar.server_mut().control();
    let parked = control.park_worlds("north");
    assert!(bazaar.run_until(5.0, |_| parked.try_take() == Some(Ok(1))));
    bazaar.run_for(5.0);
    let before = store.record(market);
    let unparked = control.unpark_worlds(Some("north"));
    assert!(bazaar.run_until(5.0, |_| unparked.try_take() == Some(Ok(1))));
    (0..PLAYERS).for_each(|_| _ = bazaar.join(Box::new(Customer(Habits { wishes: 0.7, goes: 0.0, panics: 0.0 }))));
    bazaar.run_for(10.0);
    save(&mut bazaar);
    store.wealth().unwrap();
    assert_ne!(store.record(market), before, "it is played in, and saved");
}
