//! R16 for the fog of war, the promise: no byte about somebody leaves for a client that could not see it within the grace, be
//! it a snapshot, an audit sample or an event; and whoever is seen has been told of, a tick late at most.
//!
//! The whole server and its clients, with a tap where packets leave, in a level of rooms with doors: each packet is opened and
//! held against brute force, which knows nothing of cells, proofs and what the fog remembers.

mod arena;
mod judge;

use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;
use throng_replication::rules::ReplicationRules;
use throng_simulator::{Simulation, SimulationSettings};

use arena::{Arena, Chronicle, Level};
use judge::{Findings, Judge};

const CLIENTS: usize = 6;

/// The arena walks for it.
struct Spectator;

impl Behaviour for Spectator {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}
}

fn judge(seed: u64, ticks: u32, is_careless: bool) -> Findings {
    let (level, chronicle) = (Level::new(seed), Chronicle::default());
    let settings = SimulationSettings { tap: true, ..SimulationSettings::new(arena::protocol().schema(), seed) };
    let arena = Arena { level: level.clone(), chronicle: chronicle.clone(), is_careless };
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        server.set_replication_rules(ReplicationRules::default());
        let kind = server.add_kind(arena)?;
        server.create_world(kind, seed)
    })
    .unwrap();
    (0..CLIENTS).for_each(|_| _ = simulation.join(Box::new(Spectator)));
    let mut judge = Judge::new(level, chronicle.clone(), CLIENTS);
    let last_tick = || chronicle.pages().back().map(|page| page.tick);
    while last_tick().is_none_or(|tick| tick + 1 < ticks) {
        let before = last_tick();
        simulation.step();
        simulation.take_sent(|client, payload| judge.hear(client, payload));
        if last_tick() != before {
            judge.end_tick();
        }
    }
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.protocol_errors), (CLIENTS as u64, 0), "{totals:#?}");
    println!("seed {seed}: {:?}", judge.findings);
    judge.findings
}

#[test]
fn r16_nobody_is_told_of_who_is_behind_a_wall_and_nobody_comes_into_view_late() {
    for seed in [1, 2] {
        let findings = judge(seed, 500, false);
        assert_eq!(findings.leaks, 0, "seed {seed}: {findings:?}");
        assert!(findings.late_ticks_max <= 1, "seed {seed}: {findings:?}");
        assert!(findings.seen > 1_000 && findings.told > 1_000 && findings.heard > 50, "seed {seed}: {findings:?}");
        assert!(findings.told * 2 < findings.pairs, "seed {seed}: most are hidden: {findings:?}");
    }
}

#[test]
fn r16_a_fog_that_hides_nobody_is_found_out() {
    let findings = judge(1, 90, true);
    assert!(findings.leaks > 500, "{findings:?}");
}
