//! The promise: the same mail in the same order gives the same world, whatever the number of workers that share its
//! work.
//!
//! Bots play over a bad network, with one worker and again with others, which must change no state at any tick. What entered
//! the world is recorded as a live server does it, and must lead it through the same states in a replay on any number of
//! threads. That this would show a difference is shown by a replay that lacks one input.

mod simulated;

use throng::inspection::WorldHash;
use throng_net::transport::Impairment;
use throng_simulator::{SimulationRecording, SimulationSettings, first_difference};

struct Recorded {
    settings: SimulationSettings,
    bots: usize,
    npcs: usize,
    seconds: u32,
    recording: SimulationRecording,
    hashes: Vec<WorldHash>,
}

impl Recorded {
    /// Plays with one worker. The world is checked to have ticked for almost all of the time.
    fn play(seed: u64, bots: usize, npcs: usize, seconds: u32) -> Self {
        let settings =
            SimulationSettings { hash: true, impairment: Impairment::bad(0.02), ..simulated::settings(seed) };
        let recording = SimulationRecording::new(&settings);
        let mut simulation = simulated::game_with_bots(recording.settings(), bots, npcs);
        simulation.run_for(f64::from(seconds) + 1.0);
        simulation.end_recording();

        let totals = simulation.totals();
        assert_eq!(totals.playing, bots as u64, "{totals:?}");
        assert!(totals.counter("casts") > 0, "nobody fought: {totals:?}");
        let hashes = simulation.hashes().to_vec();
        assert!(hashes.len() >= 20 * seconds as usize, "the world has only {} hashes", hashes.len());
        Self { settings, bots, npcs, seconds, recording, hashes }
    }

    /// The same game with so many workers, and the recording on as many threads.
    fn check(&self, workers_count: usize) {
        let settings = SimulationSettings { workers_count, ..self.settings.clone() };
        let mut simulation = simulated::game_with_bots(&settings, self.bots, self.npcs);
        simulation.run_for(f64::from(self.seconds) + 1.0);
        if let Some(difference) = first_difference(&self.hashes, simulation.hashes()) {
            panic!("seed {}, {workers_count} workers: {difference}", settings.seed);
        }
        self.recording.check(workers_count, &self.hashes, simulated::game(self.npcs));
    }
}

#[test]
fn a_recorded_game_comes_again_with_any_number_of_workers() {
    let recorded = Recorded::play(3, 50, 900, 20);
    [2, 8].into_iter().for_each(|workers_count| recorded.check(workers_count));
}

#[test]
fn a_replay_that_lacks_one_input_is_told_apart() {
    let recorded = Recorded::play(4, 12, 300, 15);
    recorded.recording.check_lack_is_noticed(19, || simulated::game(recorded.npcs));
}

/// Larger than what is run with each change.
#[test]
#[ignore = "takes minutes"]
fn r29_large_recorded_games_come_again() {
    for seed in 100..120 {
        let recorded = Recorded::play(seed, 100, 2_000, 30);
        [2, 8].into_iter().for_each(|workers_count| recorded.check(workers_count));
    }
}

/// The promise in full, in parts that can be run one by one: a thousand seeds, each with 10,000 ticks of a small game, done twice.
mod of_many_seeds {
    use super::*;

    // 500 s at 20 Hz.
    fn check(seed: u64, workers_count: usize) {
        Recorded::play(seed, 3, 20, 500).check(workers_count);
    }

    throng_simulator::of_many_seeds!(check);
}
