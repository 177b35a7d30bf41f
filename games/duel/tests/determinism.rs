//! The promise: the same mail in the same order gives the same lobby and the same matches, whatever the number of
//! workers.
//!
//! Bots play on one worker, over a bad network, while everything that the server receives is recorded. Servers with
//! other numbers of workers are then fed with the recording and nothing else, and every world must have the same state
//! at every tick. That this would show a difference is shown by a replay that lacks a datagram.

mod simulated;

use throng::inspection::WorldHash;
use throng_net::transport::{Impairment, Recording};
use throng_simulator::{Difference, Replay, SimulationSettings, first_difference};

struct Recorded {
    settings: SimulationSettings,
    recording: Recording,
    hashes: Vec<WorldHash>,
}

impl Recorded {
    /// Plays with one worker; everybody is in a match for most of the time.
    fn play(seed: u64, bots: usize, seconds: u32) -> Self {
        let impairment = Impairment::bad(0.02);
        let settings = SimulationSettings { record: true, hash: true, impairment, ..simulated::settings(seed) };
        let mut simulation = simulated::game_with_bots(&settings, simulated::short(), bots);
        simulation.run_for(f64::from(seconds));
        let totals = simulation.totals();
        assert_eq!(totals.playing, bots as u64, "{totals:?}");
        assert!(totals.counter("shots") > 0, "nobody fought: {totals:?}");
        let hashes = simulation.hashes().to_vec();
        assert!(hashes.len() >= bots / 10 * 100 * (seconds as usize - 10), "there are only {} hashes", hashes.len());
        Self { settings, recording: simulation.recording(), hashes }
    }

    /// Where a server that is fed with this recording parts from the recorded one.
    fn replay(&self, workers_count: usize, recording: Recording) -> Option<Difference> {
        let settings = SimulationSettings { workers_count, ..self.settings.clone() };
        let replayed = Replay::run(&settings, recording, simulated::game(simulated::short()));
        first_difference(&self.hashes, replayed.expect("it was set up once already").hashes())
    }
}

#[test]
fn a_recorded_game_comes_again_with_one_and_with_two_workers() {
    let recorded = Recorded::play(3, 20, 40);
    for workers_count in [1, 2] {
        if let Some(difference) = recorded.replay(workers_count, recorded.recording.clone()) {
            panic!("{workers_count} workers: {difference}");
        }
    }
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
