//! The promise: what a player steers is where its client predicts it to be. Nothing is corrected on a clean line, nor where
//! up to three packets in a row are lost; on a bad line corrections are few and small.
//!
//! The shipped server, and clients that run about in their base in the warm-up, to and fro and against its walls and edges.

mod simulated;

use std::sync::{Arc, Mutex};

use duel::{
    DuelSettings,
    components::{Phase, Player, Pose},
    map::Map,
    prediction::{Corrections, Steering},
    protocol::{Input, MATCH},
    teams::{Side, TeamId},
};
use glam::Vec3;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

/// What a runner has seen.
#[derive(Debug, Clone, Copy, Default)]
struct Notes {
    inputs: u64,
    corrections: Corrections,
    /// Where it is predicted to be, and where the match said last that it is.
    predicted: Vec3,
    told: Vec3,
}

/// Runs to and fro, and in the end stands.
struct Runner {
    steering: Steering,
    has_come: bool,
    notes: Arc<Mutex<[Notes; 2]>>,
    place: usize,
}

/// After so many inputs runners stand still.
const STANDS_AFTER: u64 = 128 * 40;

fn wish(number: u64) -> Input {
    if number > STANDS_AFTER {
        return Input::default();
    }
    let angle = (number / 90) as f32 * 2.2;
    let input = Input::new([angle.sin(), angle.cos()], angle, 0.0);
    if (number / 300).is_multiple_of(3) { input.and_walk() } else { input }
}

impl Behaviour for Runner {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let due = client.due_inputs(now);
        if client.world().is_none_or(|world| world.name != MATCH) {
            return;
        }
        let own = client.own_state::<Player>().map(|own| own.state.team);
        let (Some(team), Some(pose)) = (own, client.own_state::<Pose>()) else { return };
        let told = pose.state.feet();
        if !std::mem::replace(&mut self.has_come, true) {
            self.steering.left_world();
        }
        self.steering.hear(now, client);
        let mut notes = self.notes.lock().unwrap();
        let notes = &mut notes[self.place];
        for _ in 0..due {
            let input = wish(notes.inputs);
            if let Ok(number) = client.send_input(now, &input) {
                self.steering.apply(number, &input, Phase::WarmUp, Side::of(team, TeamId::One));
                notes.inputs += 1;
            }
        }
        let predicted = self.steering.motion().map_or(told, |motion| motion.at);
        *notes = Notes { corrections: self.steering.corrections(), predicted, told, ..*notes };
    }
}

/// Two who run about, on this line from the fifth second on.
struct Runs {
    simulation: Simulation,
    notes: Arc<Mutex<[Notes; 2]>>,
    begun: [Notes; 2],
}

impl Runs {
    fn begin(impairment: Impairment) -> Self {
        let matches = DuelSettings { team_size: 1, warm_up_s: 600.0, ..simulated::short() };
        let settings: SimulationSettings = simulated::settings(5);
        let (mut simulation, _) = Simulation::new(&settings, simulated::game(matches)).expect("a lobby");
        let notes = Arc::<Mutex<[Notes; 2]>>::default();
        for place in 0..2 {
            let (steering, notes) = (Steering::new(Map::load()), notes.clone());
            simulation.join(Box::new(Runner { steering, has_come: false, notes, place }));
        }
        simulation.run_for(3.0);
        simulation.impair(impairment);
        // Until the clocks go by the new line.
        simulation.run_for(4.0);
        let begun = *notes.lock().unwrap();
        assert!(begun.iter().all(|one| one.inputs > 128 && one.corrections.checks > 128), "{begun:?}");
        Self { simulation, notes, begun }
    }

    /// After so many seconds: inputs, corrections and the largest of them, of both together (m).
    fn after(&mut self, seconds: f64) -> (u64, u64, f32) {
        self.simulation.run_for(seconds);
        let now = *self.notes.lock().unwrap();
        let pairs = || now.iter().zip(&self.begun);
        let inputs = pairs().map(|(now, begun)| now.inputs - begun.inputs).sum();
        let corrections = pairs().map(|(now, begun)| now.corrections.count - begun.corrections.count).sum();
        let largest_m = now.iter().map(|now| now.corrections.largest_m).fold(0.0, f32::max);
        println!("{corrections} corrections of {inputs} inputs, {:.1} cm at most: {now:?}", largest_m * 100.0);
        (inputs, corrections, largest_m)
    }

    /// Lets everybody stop, on a clean line: what is predicted is what is told.
    #[track_caller]
    fn check_end(&mut self) {
        self.simulation.impair(Impairment::NONE);
        self.simulation.run_for(STANDS_AFTER as f64 / 128.0);
        for Notes { predicted, told, .. } in *self.notes.lock().unwrap() {
            assert!(predicted.distance(told) < 0.03, "{predicted} and {told}");
        }
        assert_eq!(self.simulation.totals().state_errors, 0);
    }
}

fn delayed(ms: u64, loss: f64) -> Impairment {
    Impairment { loss, delay: Nanos::from_millis(ms), ..Impairment::NONE }
}

/// Promise: on a clean line, near or far, nothing is corrected at all.
#[test]
fn a_clean_line_has_no_correction() {
    for one_way_ms in [0, 35] {
        let mut runs = Runs::begin(delayed(one_way_ms, 0.0));
        let (inputs, corrections, _) = runs.after(20.0);
        assert!(inputs > 2 * 128 * 19, "{inputs}");
        assert_eq!(corrections, 0);
        runs.check_end();
    }
}

/// Corrections of who loses so many packets in a row, and as many of the server's, twenty times.
fn corrections_of_lost(packets: usize) -> u64 {
    let mut runs = Runs::begin(delayed(20, 0.0));
    for _ in 0..20 {
        runs.simulation.impair(delayed(20, 1.0));
        (0..packets).for_each(|_| runs.simulation.step());
        runs.simulation.impair(delayed(20, 0.0));
        runs.simulation.run_for(0.8);
    }
    let (_, corrections, _) = runs.after(1.0);
    runs.check_end();
    corrections
}

/// Promise: three packets lost in a row cost nothing. The control: more do.
#[test]
fn three_lost_in_a_row_cost_nothing() {
    assert_eq!(corrections_of_lost(3), 0);
    assert!(corrections_of_lost(6) >= 10);
}

/// Promise: at 80 to 120 ms there and back, with losses, doubles and another order, corrections are few, and none is more
/// than some steps.
#[test]
fn a_bad_line_has_few_and_small_corrections() {
    let mut runs = Runs::begin(Impairment::bad(0.05));
    let (inputs, corrections, largest_m) = runs.after(30.0);
    assert!(corrections * 100 < inputs, "{corrections} of {inputs}");
    assert!(largest_m < 0.5, "{largest_m} m");
    runs.check_end();
}
