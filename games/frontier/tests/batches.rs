//! The promise: into how many batches a world's clients are split, and which workers serve them, changes nothing for
//! anybody.
//!
//! A world with 128 clients and more opens what they send and writes what they are told in batches, on all workers that
//! are idle. The same bots play over the same poor network on 1, 2 and 4 workers, the whole simulation each time and
//! not a replay: so what clients answered to what they were told is part of it. Every tick's state, every client's
//! counts and every client's copies must be the same.

mod simulated;

use std::hash::{DefaultHasher, Hash, Hasher};

use frontier::components::{Animation, Effects, Pose, Vitals};
use throng::inspection::WorldHash;
use throng_client::{Client, ClientStats};
use throng_net::transport::Impairment;
use throng_replication::{NetId, Replicate};
use throng_simulator::{SimulationSettings, Totals, first_difference};

/// Five batches of 64, of which one worker makes two, two make four, and four make all: every run is cut in another
/// way.
const BOTS: usize = 330;
const NPCS: usize = 150;
const SECONDS: f64 = 6.0;

/// What one client has at the end.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stats: ClientStats,
    replicas_count: usize,
    newest_tick: u32,
    own: Option<NetId>,
    /// Over the names of all replicas and what they hold.
    values: u64,
}

impl Seen {
    fn of(client: &Client) -> Self {
        let replicas = client.replicas();
        let mut values = DefaultHasher::new();
        for id in replicas.ids() {
            (id.slot, id.generation).hash(&mut values);
        }
        hash_all::<Pose>(client, &mut values);
        hash_all::<Vitals>(client, &mut values);
        hash_all::<Animation>(client, &mut values);
        hash_all::<Effects>(client, &mut values);
        Self {
            stats: client.stats(),
            replicas_count: replicas.len(),
            newest_tick: replicas.newest_tick(),
            own: client.own_entity(),
            values: values.finish(),
        }
    }
}

/// Values in words: floats print so that they can be read back, so two that differ print differently.
fn hash_all<T: Replicate + std::fmt::Debug>(client: &Client, hasher: &mut DefaultHasher) {
    for (id, value) in client.replicas().iter::<T>() {
        (id.slot, id.generation, format!("{value:?}")).hash(hasher);
    }
}

struct Played {
    hashes: Vec<WorldHash>,
    totals: Totals,
    seen: Vec<Seen>,
}

impl Played {
    fn with(workers_count: usize, seed: u64) -> Self {
        let impairment = Impairment::bad(0.05);
        let settings = SimulationSettings { workers_count, hash: true, impairment, ..simulated::settings(seed) };
        let mut simulation = simulated::game_with_bots(&settings, BOTS, NPCS);
        simulation.run_for(SECONDS);
        let seen = simulation.players().iter().map(|player| Seen::of(player.client())).collect();
        Self { hashes: simulation.hashes().to_vec(), totals: simulation.totals(), seen }
    }
}

#[test]
fn the_split_of_clients_over_workers_changes_nothing() {
    const SEED: u64 = 17;
    let alone = Played::with(1, SEED);
    assert_eq!(alone.totals.playing, BOTS as u64, "{:?}", alone.totals);
    assert!(alone.hashes.len() as f64 >= 20.0 * (SECONDS - 1.0), "{} ticks", alone.hashes.len());
    assert!(alone.totals.counter("casts") > 0, "nobody fought: {:?}", alone.totals);
    // Equal and empty would say nothing.
    assert!(alone.seen.iter().all(|seen| seen.replicas_count > 1 && seen.stats.state_checks > 0 && seen.own.is_some()));
    for workers_count in [2, 4] {
        let shared = Played::with(workers_count, SEED);
        if let Some(difference) = first_difference(&alone.hashes, &shared.hashes) {
            panic!("seed {SEED}, {workers_count} workers: {difference}");
        }
        for (player, (alone, shared)) in alone.seen.iter().zip(&shared.seen).enumerate() {
            assert_eq!(alone, shared, "seed {SEED}, {workers_count} workers, player {player}");
        }
        assert_eq!(alone.totals, shared.totals, "seed {SEED}, {workers_count} workers");
    }
}
