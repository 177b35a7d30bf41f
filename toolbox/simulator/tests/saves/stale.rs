//! A process stands still for longer than its leases run, and another one takes a player over meanwhile: what that player
//! gave away since the last save is not there twice.

use std::sync::{Arc, Mutex};

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

/// A store that several processes have open.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn Store>>>);

impl Store for Shared {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        self.0.lock().unwrap().apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.0.lock().unwrap().settle()
    }

    fn reader(&self) -> Arc<dyn Reads> {
        self.0.lock().unwrap().reader()
    }
}

impl Shared {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Box::new(Embedded::on(Box::new(MemoryDisk::default())).unwrap()))))
    }

    /// Another process has this player from now on, long after the lease of any other is over.
    fn taken_over(&mut self, player: u64) {
        let take = LeaseRequest::Take { key: Key::player(player), owner: 2, now_ms: u64::MAX / 4, for_ms: 1_000_000 };
        let order = Order { ticket: Ticket(0), seen: Ticket(0), request: Request::Lease(take) };
        let outcome = self.apply(&[order], &mut RefusedKeys::default()).unwrap();
        assert!(matches!(outcome[..], [Ok(Done::Leased(_))]), "{outcome:?}");
    }
}

/// A bazaar in which nothing has been saved for ten seconds of deals.
fn unsaved(seed: u64, store: &Shared) -> Simulation {
    let mut settings = SimulationSettings::new(bazaar::protocol().schema(), seed);
    (settings.server.saves.period_s, settings.server.saves.lease_s) = (3_600, LEASE_S);
    let mut bazaar = bazaar::open(&settings, Some(Box::new(store.clone())), Form::Chest);
    let habits = Habits { wishes: 0.7, goes: 0.0, panics: 0.0 };
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
        let mut store = Shared::new();
        let mut bazaar = unsaved(seed, &store);
        let saved = bazaar::look_at(&*store.reader()).unwrap();
        let (player, before) = saved.purses.first_key_value().map(|(player, coins)| (*player, *coins)).unwrap();
        bazaar.stand_still(STANDS_STILL_S);
        store.taken_over(player);
        bazaar.run_for(5.0);
        let counts = ["saves.leases_lost", "saves.worlds_taken_back"].map(|name| bazaar.server_mut().count_of(name));
        assert_eq!(counts, [1, 1], "seed {seed}");
        save(&mut bazaar);
        assert_eq!(bazaar.totals().playing, PLAYERS as u64 - 1, "seed {seed}: the others play on");
        drop(bazaar);
        let after = bazaar::look_at(&*store.reader()).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(after.purses[&player], before, "what the other process has of them");
    }
}

#[test]
fn a_process_that_stood_still_and_has_all_its_players_goes_on() {
    let store = Shared::new();
    let mut bazaar = unsaved(9, &store);
    let deeds = bazaar::live(&mut bazaar).0;
    bazaar.stand_still(STANDS_STILL_S);
    bazaar.run_for(2.0);
    let counts = ["saves.leases_lost", "saves.worlds_taken_back"].map(|name| bazaar.server_mut().count_of(name));
    assert_eq!((counts, bazaar.totals().playing), ([0, 0], PLAYERS as u64));
    assert!(bazaar::live(&mut bazaar).0.iter().all(|(player, now)| *now >= deeds[player]), "nothing is undone");
}
