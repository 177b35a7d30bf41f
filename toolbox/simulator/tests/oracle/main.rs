//! R16, the promise: no byte about an entity leaves for a client to whom it is not relevant, but within the declared
//! grace.
//!
//! The whole server and its clients, with a tap where packets leave: each one is opened and read as the document draws
//! it, and each of its records is held against a chronicle that the world writes itself, be it an update, a spawn, a
//! despawn, an audit sample or an event. What the network does to packets comes after that, so that losses hide nothing
//! and what is sent again is judged again.
//!
//! `THRONG_SEEDS` (`20` for the first ones, `17..18` for one of them), `THRONG_CLIENTS` and `THRONG_TICKS` change the
//! full form.

mod forged;
mod judge;
mod reader;
mod wood;

use std::ops::Range;
use std::time::Instant;

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::ClientInput;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::Fault;
use throng_replication::rules::{EventRule, KindRule, ReplicationRules, Tier};
use throng_simulator::{Simulation, SimulationSettings};

use judge::{Findings, Judge, WAYS, Way};
use wood::{CRY_RANGE_M, Chronicle, LEAVE_M, Wood};

/// Clients and wanderers to a kind of wood.
const AREAS_M2: [f32; 3] = [144.0, 64.0, 25.0];
const SIDE_MIN_M: f32 = 110.0;
/// Kin are told wherever they are: a pack has about so many.
const PACK_COUNT: u16 = 40;
const TICKS_PER_S: u32 = 20;

const POOR: Impairment = Impairment {
    loss: 0.1,
    duplication: 0.05,
    reordering: 0.1,
    reorder_delay: Nanos::from_millis(80),
    corruption: 0.0,
    delay: Nanos::from_millis(40),
    jitter: Nanos::from_millis(40),
    ..Impairment::NONE
};

/// One run, and what is broken in it.
struct Terms {
    seed: u64,
    clients: usize,
    ticks: u32,
    is_poor: bool,
    is_careless: bool,
    is_batched: bool,
    leave_m: f32,
    fault: Fault,
}

impl Terms {
    /// Every second seed has a bad network; in two of three the visibility filter is asked in batches.
    fn new(seed: u64, clients: usize, ticks: u32) -> Self {
        let (is_poor, is_batched) = (seed.is_multiple_of(2), !seed.is_multiple_of(3));
        Self { seed, clients, ticks, is_poor, is_careless: false, is_batched, leave_m: LEAVE_M, fault: Fault::None }
    }

    /// Woods differ in how crowded they are, in what a client's line takes, and in whether who is far is told less
    /// often.
    fn wood(&self, chronicle: Chronicle) -> Wood {
        let wanderers = 60 + (self.clients * 6 / 10) as u16;
        let count = wanderers + self.clients as u16;
        let area_m2 = f32::from(count) * AREAS_M2[self.seed as usize % AREAS_M2.len()];
        Wood {
            wanderers,
            side_m: area_m2.sqrt().clamp(SIDE_MIN_M, wood::SIDE_MAX_M),
            packs: (count / PACK_COUNT).max(7),
            leave_m: self.leave_m,
            budget_bytes_per_tick: if self.seed % 5 == 4 { 500 } else { 2400 },
            chronicle,
            is_careless: self.is_careless,
            is_batched: self.is_batched,
        }
    }

    fn rules(&self) -> ReplicationRules {
        let cry = EventRule { range_m: Some(CRY_RANGE_M), ..EventRule::default() };
        let everything_at_once = ReplicationRules { events: vec![cry], ..ReplicationRules::default() };
        if self.seed % 4 < 2 {
            return everything_at_once;
        }
        let tiers = vec![Tier { to_m: 12.0, updates_per_s: 20.0 }, Tier { to_m: 36.0, updates_per_s: 4.0 }];
        let wound = KindRule { range_m: Some(15.0), ..KindRule::default() };
        let components = vec![KindRule::default(), wound];
        ReplicationRules { tiers, keepalive_s: 2.0, components, ..everything_at_once }
    }
}

/// What nobody reads.
#[derive(Pack)]
pub struct Stroll([u8; 2]);

impl ClientInput for Stroll {}

/// Sends inputs and looks at nothing.
struct Walker;

impl Behaviour for Walker {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &Stroll(rng.random()));
    }
}

/// Runs a wood and judges all that leaves it, after making sure that there was something to judge.
fn judge(terms: &Terms) -> Findings {
    let chronicle = Chronicle::default();
    let settings = SimulationSettings {
        impairment: if terms.is_poor { POOR } else { Impairment::default() },
        workers_count: 1 + terms.seed as usize / 2 % 2,
        tap: true,
        ..SimulationSettings::new(wood::schema(), terms.seed)
    };
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        server.set_replication_rules(terms.rules());
        let kind = server.add_kind(terms.wood(chronicle.clone()))?;
        server.create_world(kind, terms.seed)
    })
    .unwrap();
    simulation.server_mut().break_replication(terms.fault);
    for _ in 0..terms.clients {
        simulation.join(Box::new(Walker));
    }
    let mut judge = Judge::new(chronicle.clone(), terms.clients, terms.is_poor);
    while chronicle.pages().last_tick().is_none_or(|tick| tick + 1 < terms.ticks) {
        simulation.step();
        simulation.take_sent(|client, payload| judge.hear(client, payload));
    }
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.protocol_errors), (terms.clients as u64, 0), "{totals:#?}");
    // On a bad line, or one that takes little, copies may come late. Whether what is told is right the judge sees.
    println!("seed {}: {} of {} checks of copies failed", terms.seed, totals.state_errors, totals.state_checks);
    let findings = judge.findings;
    let client_ticks = terms.clients as u64 * u64::from(terms.ticks);
    assert!(findings.packets > client_ticks * 8 / 10, "{findings:?}");
    let enough = |way| findings.told(way) * 2_000 >= client_ticks;
    assert!(WAYS.into_iter().all(enough), "{findings:?}");
    findings
}

#[test]
fn r16_nobody_is_told_of_what_is_not_its_business() {
    let few = (0..5).map(|seed| Terms::new(seed, 24, 8 * TICKS_PER_S));
    // So many that two workers share them.
    for terms in few.chain([Terms::new(3, 140, 100)]) {
        let findings = judge(&terms);
        println!("seed {}: {findings:?}", terms.seed);
        assert_eq!(findings.leaks_in_all(), 0, "seed {}: {findings:?}", terms.seed);
    }
}

#[test]
fn r16_a_careless_filter_is_found_out() {
    for is_batched in [false, true] {
        let findings = judge(&Terms { is_careless: true, is_batched, ..Terms::new(1, 12, 100) });
        println!("{findings:?}");
        for way in [Way::Update, Way::Spawn, Way::Presence, Way::Absence, Way::Cry] {
            assert!(findings.leaks(way) > 0, "{way:?}: {findings:?}");
        }
    }
}

#[test]
fn r16_a_server_that_sees_too_far_is_found_out() {
    let findings = judge(&Terms { leave_m: LEAVE_M + 2.0, ..Terms::new(3, 24, 100) });
    println!("{findings:?}");
    assert!(findings.leaks(Way::Update) > 0, "{findings:?}");
}

#[test]
fn r16_a_despawn_that_is_told_once_too_often_is_found_out() {
    let findings = judge(&Terms { fault: Fault::RepeatDespawns, ..Terms::new(1, 24, 100) });
    println!("{findings:?}");
    assert!(findings.leaks(Way::Despawn) > 0);
    assert_eq!(findings.leaks(Way::Despawn), findings.leaks_in_all(), "{findings:?}");
}

/// A number of the environment.
fn number_of(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn seeds(usual: u64) -> Range<u64> {
    let wanted = std::env::var("THRONG_SEEDS").unwrap_or_default();
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    first.parse().unwrap_or(0)..end.parse().unwrap_or(usual)
}

#[test]
#[ignore = "full form: more than a minute a seed, two hours in all"]
fn r16_a_thousand_clients_full() {
    let (clients, ticks) = (number_of("THRONG_CLIENTS", 1_000) as usize, number_of("THRONG_TICKS", 1_000) as u32);
    let mut sum = Findings::default();
    for seed in seeds(100) {
        let begin = Instant::now();
        let findings = judge(&Terms::new(seed, clients, ticks));
        println!("seed {seed}: {:.0} s, {findings:?}", begin.elapsed().as_secs_f64());
        sum.add(&findings);
    }
    println!("{} records in {} packets: {sum:?}", sum.told_in_all(), sum.packets);
    assert_eq!(sum.leaks_in_all(), 0, "see the seeds above");
}
