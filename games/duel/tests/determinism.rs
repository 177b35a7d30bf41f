//! The promise: the same mail in the same order gives the same lobby and the same matches, whatever the number of
//! workers.
//!
//! Bots play over a bad network, with one worker and again with others, which must change no state at any tick. What entered
//! the worlds is recorded as a live server does it, and must lead them through the same states in a replay on any number of
//! threads. That this would show a difference is shown by a replay that lacks one input.

mod simulated;

use duel::DuelSettings;
use throng::inspection::WorldHash;
use throng_net::transport::Impairment;
use throng_simulator::{SimulationRecording, SimulationSettings, first_difference};

struct Recorded {
    settings: SimulationSettings,
    matches: DuelSettings,
    bots: usize,
    seconds: u32,
    recording: SimulationRecording,
    hashes: Vec<WorldHash>,
}

impl Recorded {
    /// Plays with one worker; everybody is in a match for most of the time.
    fn play(seed: u64, bots: usize, seconds: u32) -> Self {
        Self::play_in(seed, simulated::short(), bots, seconds)
    }

    fn play_in(seed: u64, matches: DuelSettings, bots: usize, seconds: u32) -> Self {
        let settings =
            SimulationSettings { hash: true, impairment: Impairment::bad(0.02), ..simulated::settings(seed) };
        let recording = SimulationRecording::new(&settings);
        let mut simulation = simulated::game_with_bots(recording.settings(), matches.clone(), bots);
        simulation.run_for(f64::from(seconds));
        simulation.end_recording();

        let totals = simulation.totals();
        assert_eq!(totals.playing, bots as u64, "{totals:?}");
        assert!(totals.counter("shots") > 0, "nobody fought: {totals:?}");
        let hashes = simulation.hashes().to_vec();
        // Matches are full for most of the time, at 128 Hz.
        let hashes_min = bots / (2 * usize::from(matches.team_size)) * 100 * (seconds as usize - 10);
        assert!(hashes.len() >= hashes_min, "there are only {} hashes", hashes.len());
        Self { settings, matches, bots, seconds, recording, hashes }
    }

    /// The same game with so many workers, and the recording on as many threads.
    fn check(&self, workers_count: usize) {
        let settings = SimulationSettings { workers_count, ..self.settings.clone() };
        let mut simulation = simulated::game_with_bots(&settings, self.matches.clone(), self.bots);
        simulation.run_for(f64::from(self.seconds));
        if let Some(difference) = first_difference(&self.hashes, simulation.hashes()) {
            panic!("seed {}, {workers_count} workers: {difference}", settings.seed);
        }
        self.recording.check(workers_count, &self.hashes, simulated::game(self.matches.clone()));
    }
}

#[test]
fn a_recorded_game_comes_again_with_one_and_with_two_workers() {
    Recorded::play(3, 20, 40).check(2);
}

#[test]
fn a_replay_that_lacks_one_input_is_told_apart() {
    let recorded = Recorded::play(4, 10, 20);
    recorded.recording.check_lack_is_noticed(19, || simulated::game(recorded.matches.clone()));
}

/// The promise in full, in parts that can be run one by one: a thousand seeds, each with 10,000 ticks of a small game, done twice.
mod of_many_seeds {
    use super::*;

    // 80 s at 128 Hz. Matches of two against two, which come and go.
    fn check(seed: u64, workers_count: usize) {
        let matches = DuelSettings { team_size: 2, ..simulated::short() };
        Recorded::play_in(seed, matches, 4, 80).check(workers_count);
    }

    throng_simulator::of_many_seeds!(check);
}
