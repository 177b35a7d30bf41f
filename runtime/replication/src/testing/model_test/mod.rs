//! Model test: a world, its clients and a bad network in one process, driven by a seed. For tests only.
//!
//! `script` is what the game and its players do: entities come and go, move, gain and lose components, become
//! owner-only or visibility-filtered, and change teams; clients move, travel, change teams; rules are replaced.
//! `network` carries packets and acknowledgements, which are lost, doubled and late. `oracle` knows what each client
//! should hold and may know of: after every tick the views' invariants are checked, and every byte that goes out is
//! decoded and held against who may know what.

mod network;
mod oracle;
mod script;

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    source::fault::Fault,
    testing::{TestWorld, schema},
    view::interest::InterestSettings,
    wire::ids::NetId,
};

use network::Client;
use script::{Original, some_rules};

pub use oracle::masks;

/// How bad the network is, and how rich the world.
#[derive(Clone, Debug)]
pub struct Terms {
    pub seed: u64,
    pub clients: usize,
    pub entities_max: usize,
    pub loss: f64,
    pub doubling: f64,
    /// Longest way of a packet, or of an acknowledgement. (ticks)
    pub delay_max: u32,
    pub packet_bytes_max: usize,
    pub budget_bytes_per_tick: u32,
    pub packets_in_flight_max: u8,
    pub fault: Fault,
    /// Tiers, ranges and throttles, which change now and then.
    pub ruled: bool,
    /// Entities are visibility-filtered, and clients see them at times.
    pub secretive: bool,
}

impl Terms {
    /// Terms that differ a lot from seed to seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            seed,
            clients: rng.random_range(1..4),
            entities_max: [5, 25, 150][rng.random_range(0..3)],
            loss: [0.0, 0.05, 0.2][rng.random_range(0..3)],
            doubling: [0.0, 0.05][rng.random_range(0..2)],
            delay_max: rng.random_range(0..6),
            packet_bytes_max: [60, 200, 1200][rng.random_range(0..3)],
            budget_bytes_per_tick: [200, 2400, 65_536][rng.random_range(0..3)],
            packets_in_flight_max: [64, 6][rng.random_range(0..2)],
            fault: Fault::None,
            ruled: rng.random_bool(0.5),
            secretive: rng.random_bool(0.5),
        }
    }
}

pub struct ModelTest {
    terms: Terms,
    rng: Xoshiro256PlusPlus,
    pub world: TestWorld,
    originals: BTreeMap<NetId, Original>,
    clients: Vec<Client>,
    tick: u32,
    /// Stands still while nothing happens, and with it who may see whom.
    wild_ticks: u32,
    pub leaks_looked_for: u64,
}

impl ModelTest {
    pub fn new(terms: Terms) -> Self {
        let settings = InterestSettings {
            enter_radius_m: 40.0,
            leave_radius_m: 50.0,
            budget_bytes_per_tick: terms.budget_bytes_per_tick,
            entities_max: terms.entities_max as u32,
            packets_in_flight_max: terms.packets_in_flight_max,
            ..InterestSettings::default()
        };
        let mut world = TestWorld::new(schema(), settings);
        world.set_fault(terms.fault);
        let rng = Xoshiro256PlusPlus::seed_from_u64(terms.seed);
        let mut test = Self {
            rng,
            world,
            originals: BTreeMap::new(),
            clients: Vec::new(),
            tick: 0,
            wild_ticks: 0,
            leaks_looked_for: 0,
            terms,
        };
        for _ in 0..test.terms.clients {
            let view = test.world.add_client(0);
            test.world.set_view(view, [0.0; 2]);
            test.clients.push(Client::new(view));
        }
        test
    }

    /// Ticks in which the game does what it likes.
    pub fn run_wild(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.begin_tick();
            self.wild_ticks += 1;
            if self.terms.ruled && self.rng.random_bool(0.02) {
                let rules = some_rules(&mut self.rng);
                self.world.set_rules(&rules, 20.0);
            }
            if self.terms.ruled && self.rng.random_bool(0.05) {
                self.world.set_thinned(self.rng.random_bool(0.5));
            }
            self.play();
            self.move_clients();
            self.exchange();
        }
    }

    /// Ticks in which nothing happens and nothing is lost.
    pub fn run_calm(&mut self, ticks: u32) {
        (self.terms.loss, self.terms.doubling) = (0.0, 0.0);
        for _ in 0..ticks {
            self.begin_tick();
            self.exchange();
        }
    }

    /// Ticks in which the network is as bad as it is, and the entities that are there move now and then.
    pub fn run_moving(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.begin_tick();
            self.move_some();
            self.exchange();
        }
    }

    fn begin_tick(&mut self) {
        self.tick += 1;
        self.world.begin_tick(self.tick);
    }
}

/// Seeds to try: so many, or those that `THRONG_SEEDS` names: `5000` for the first 5,000, `17..18` for one of them.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("THRONG_SEEDS").unwrap_or_default();
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    first.parse().unwrap_or(0)..end.parse().unwrap_or(usual)
}

/// Whatever happened before, once packets get through a client holds exactly what it should; and whatever went out
/// before was for it to know.
#[test]
fn clients_come_to_hold_exactly_what_is_relevant() {
    clients_come_to_hold_what_is_relevant(seeds(200));
}

#[test]
#[ignore = "10,000 seeds: minutes"]
fn r16_clients_come_to_hold_exactly_what_is_relevant_full() {
    clients_come_to_hold_what_is_relevant(seeds(10_000));
}

fn clients_come_to_hold_what_is_relevant(seeds: std::ops::Range<u64>) {
    let (mut looked_for, tried) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let mut test = ModelTest::new(Terms::from_seed(seed));
        for _ in 0..3 {
            test.run_wild(60);
            // Two seconds for the keepalive, and then two in which the last thing lost gets through.
            test.run_calm(100 + 400 * u32::from(test.terms.budget_bytes_per_tick < 1000));
            test.check_clients();
            test.check_interest();
            test.terms.loss = Terms::from_seed(seed).loss;
        }
        looked_for += test.leaks_looked_for;
    }
    assert!(looked_for > 500 * tried, "{looked_for} records in {tried} runs");
}

/// Audit samples never blame a copy that is right.
#[test]
fn no_state_error_without_a_fault() {
    for seed in seeds(6) {
        let loss = [0.0, 0.05, 0.2][seed as usize % 3];
        let mut test = ModelTest::new(Terms {
            loss,
            doubling: 0.05,
            budget_bytes_per_tick: 65_536,
            entities_max: [20, 100][seed as usize % 2],
            ..Terms::from_seed(seed)
        });
        for _ in 0..100 {
            test.run_wild(100);
            test.check_no_state_errors();
        }
        assert!(test.state_checks() > 1000);
    }
}

/// A broken encoder does not go unseen, and the same run without the fault has nothing to complain about.
#[test]
fn every_fault_makes_state_errors() {
    for seed in seeds(10) {
        let errors = |fault: Fault| {
            let terms = Terms::from_seed(seed);
            let budget_bytes_per_tick = 65_536;
            let terms = Terms { fault, clients: 2, entities_max: 25, loss: 0.0, budget_bytes_per_tick, ..terms };
            let mut test = ModelTest::new(terms);
            for client in &mut test.clients {
                client.replicas.set_grace_ticks(40);
            }
            for _ in 0..5 {
                test.run_wild(60);
                test.run_moving(200);
            }
            test.run_calm(60);
            test.state_errors()
        };
        assert_eq!(errors(Fault::None), 0, "seed {seed}");
        for fault in [Fault::CorruptEncoding, Fault::LoseDespawns, Fault::SkipUpdates] {
            assert!(errors(fault) > 0, "{fault:?} goes unseen with seed {seed}");
        }
    }
}
