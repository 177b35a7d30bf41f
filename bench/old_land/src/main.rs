//! Bench: what an old land costs against a new one.
//!
//! Two stores in files: a new one, and one with ten million changed cells, all but those that its players come near. On each
//! in turns, round by round: a server starts on it, bots play and build, and it is saved.
//!
//! - `start_ms`: from opening the store to the end of the first frame of a server with its world;
//! - `tick_us`: a frame of the server while bots play;
//! - `save_ms`: a commit of 256 cells, until it is on disk: the median of a round's commits.
//!
//! Each is the median of the rounds. A `_ratio` is the median over rounds of the old land's figure by the new one's of the
//! same round: goal O5 is at most 1.1. `file_mb`: of the old store. Nothing is hashed: when a sector that was asked for comes
//! depends on the disk.

mod stores;

use std::{path::Path, time::Instant};

use frontier::{FrontierBot, FrontierSettings, bot::BotGuide};
use harness::{BenchArguments, quantile};
use stores::{Folder, commit_of_cells};
use throng_persistence::Embedded;
use throng_platform::allocator::CountingAllocator;
use throng_simulator::{Simulation, SimulationSettings};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Size {
    cells: u32,
    rounds: usize,
    players: usize,
    /// Of play before frames are measured, and of measured play. (s)
    settle_s: f64,
    measured_s: f64,
    commits: usize,
}

const SMALL: Size = Size { cells: 100_000, rounds: 2, players: 8, settle_s: 4.0, measured_s: 4.0, commits: 5 };
const REAL: Size = Size { cells: 10_000_000, rounds: 11, players: 100, settle_s: 20.0, measured_s: 20.0, commits: 40 };

/// A figure of a round.
type Part = fn(&Round) -> f64;

const PARTS: [(&str, Part); 3] =
    [("start_ms", |round| round.start_ms), ("tick_us", |round| round.tick_us), ("save_ms", |round| round.save_ms)];

/// What one round found of one store.
#[derive(Debug, Clone, Copy)]
struct Round {
    start_ms: f64,
    tick_us: f64,
    save_ms: f64,
}

fn main() {
    let arguments = BenchArguments::read();
    let size = if arguments.small { SMALL } else { REAL };
    let folder = Folder::new();
    let (new, old) = (folder.store("new"), folder.store("old"));
    stores::fill(&new, 0);
    let changed = stores::fill(&old, size.cells);
    let [mut of_new, mut of_old] = [(); 2].map(|()| Vec::with_capacity(size.rounds));
    for round in 0..size.rounds {
        let mut measure_new = || of_new.push(measure(&new, round, &size));
        if round % 2 == 0 {
            measure_new();
            of_old.push(measure(&old, round, &size));
        } else {
            of_old.push(measure(&old, round, &size));
            measure_new();
        }
    }
    let mut figures = serde_json::json!({
        "cells_changed": changed,
        "rounds": size.rounds,
        "players": size.players,
        "file_mb": std::fs::metadata(&old).map_or(0.0, |about| about.len() as f64 / f64::from(1 << 20)),
    });
    for (name, part) in PARTS {
        let median = |rounds: &[Round]| quantile(&mut rounds.iter().map(part).collect::<Vec<_>>(), 0.5);
        let mut ratios: Vec<f64> = of_old.iter().zip(&of_new).map(|(old, new)| part(old) / part(new)).collect();
        figures[format!("new_{name}")] = median(&of_new).into();
        figures[format!("old_{name}")] = median(&of_old).into();
        figures[format!("{name}_ratio")] = quantile(&mut ratios, 0.5).into();
    }
    arguments.print("old_land", figures);
}

/// One start, some play and some saves. The same seed plays the same on both stores.
fn measure(store: &Path, round: usize, size: &Size) -> Round {
    let guide = BotGuide::load(true);
    let mut settings = SimulationSettings::new(frontier::schema(), round as u64);
    settings.server.saves.period_s = 2;
    let begun = Instant::now();
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        server.save_in(Box::new(Embedded::open(store).expect("the store can be opened")))?;
        frontier::build(server, &FrontierSettings { npcs: 60, seed: 7, one_hearth: true, ..Default::default() })
    })
    .expect("the game can be set up");
    simulation.step();
    let start_ms = begun.elapsed().as_secs_f64() * 1e3;
    (0..size.players).for_each(|_| _ = simulation.join(Box::new(FrontierBot::new(guide.clone()))));
    simulation.run_for(size.settle_s);
    let mut frames_us = Vec::new();
    let until = simulation.now().0 + (size.measured_s * 1e9) as u64;
    while simulation.now().0 < until {
        simulation.step_players();
        let begun = Instant::now();
        simulation.step_server();
        frames_us.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    assert_eq!(simulation.totals().playing, size.players as u64, "all play");
    drop(simulation);
    // Frames without a tick of the world cost next to nothing: the mean counts all.
    let tick_us = frames_us.iter().sum::<f64>() / frames_us.len() as f64;
    Round { start_ms, tick_us, save_ms: save_ms(store, size.commits) }
}

fn save_ms(store: &Path, commits: usize) -> f64 {
    let mut store = Embedded::open(store).expect("the store can be opened again");
    let mut times: Vec<f64> = (0..commits)
        .map(|number| {
            let commit = commit_of_cells(number);
            let begun = Instant::now();
            stores::apply(&mut store, commit);
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    quantile(&mut times, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_land_is_measured() {
        let folder = Folder::new();
        let store = folder.store("test");
        let changed = stores::fill(&store, 20_000);
        assert!(changed > 18_000, "{changed}");
        let found = measure(&store, 1, &Size { settle_s: 1.0, measured_s: 1.0, ..SMALL });
        assert!(found.start_ms > 0.0 && found.tick_us > 0.0 && found.save_ms > 0.0, "{found:?}");
    }
}
