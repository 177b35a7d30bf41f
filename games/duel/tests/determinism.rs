//! The promise: the same mail in the same order gives the same lobby and the same matches, whatever the number of
//! workers.
//!
//! Bots play on one worker, over a bad network, while everything that the server receives is recorded. Servers with
//! other numbers of workers are then fed with the recording and nothing else, and every world must have the same state
//! at every tick. That this would show a difference is shown by a replay that lacks a datagram.

mod simulated;

use duel::DuelSettings;
use throng::inspection::WorldHash;
use throng_net::transport::{Impairment, Recording};
use throng_simulator::{Difference, Replay, SimulationSettings, first_difference};

struct Recorded {
    settings: SimulationSettings,
    matches: DuelSettings,
    recording: Recording,
    hashes: Vec<WorldHash>,
}

impl Recorded {
    /// Plays with one worker; everybody is in a match for most of the time.
    fn play(seed: u64, bots: usize, seconds: u32) -> Self {
        Self::play_in(seed, simulated::short(), bots, seconds)
    }

    fn play_in(seed: u64, matches: DuelSettings, bots: usize, seconds: u32) -> Self {
        let impairment = Impairment::bad(0.02);
        let settings = SimulationSettings { record: true, hash: true, impairment, ..simulated::settings(seed) };
        let mut simulation = simulated::game_with_bots(&settings, matches.clone(), bots);
        simulation.run_for(f64::from(seconds));
        let totals = simulation.totals();
        assert_eq!(totals.playing, bots as u64, "{totals:?}");
        assert!(totals.counter("shots") > 0, "nobody fought: {totals:?}");
        let hashes = simulation.hashes().to_vec();
        // Matches are full for most of the time, at 128 Hz.
        let hashes_min = bots / (2 * usize::from(matches.team_size)) * 100 * (seconds as usize - 10);
        assert!(hashes.len() >= hashes_min, "there are only {} hashes", hashes.len());
        Self { settings, matches, recording: simulation.recording(), hashes }
    }

    /// Where a server that is fed with this recording parts from the recorded one.
    fn replay(&self, workers_count: usize, recording: Recording) -> Option<Difference> {
        let settings = SimulationSettings { workers_count, ..self.settings.clone() };
        let replayed = Replay::run(&settings, recording, simulated::game(self.matches.clone()));
        first_difference(&self.hashes, replayed.expect("it was set up once already").hashes())
    }

    fn check(&self, workers: &[usize]) {
        for &workers_count in workers {
            if let Some(difference) = self.replay(workers_count, self.recording.clone()) {
                panic!("seed {}, {workers_count} workers: {difference}", self.settings.seed);
            }
        }
    }
}

#[test]
fn a_recorded_game_comes_again_with_one_and_with_two_workers() {
    Recorded::play(3, 20, 40).check(&[1, 2]);
}

#[test]
fn a_replay_that_lacks_a_datagram_is_told_apart() {
    let recorded = Recorded::play(4, 10, 20);
    // A datagram may be harmless: an input that says what the one before said. Of many, one apart from the other, one
    // is not.
    let datagrams_count = recorded.recording.datagrams().len();
    let is_noticed = (1..20).any(|part| {
        let mut recording = recorded.recording.clone();
        recording.remove(datagrams_count * part / 20);
        recorded.replay(2, recording).is_some()
    });
    assert!(is_noticed, "many datagrams were missing in turn and nobody noticed");
}

/// The promise in full, in parts that can be run one by one: a thousand seeds, each with 10,000 ticks of a small game, done twice.
mod of_many_seeds {
    use super::*;

    // 80 s at 128 Hz. Matches of two against two, which come and go.
    fn check(seed: u64, workers_count: usize) {
        let matches = DuelSettings { team_size: 2, ..simulated::short() };
        Recorded::play_in(seed, matches, 4, 80).check(&[workers_count]);
    }

    throng_simulator::of_many_seeds!(check);
}
