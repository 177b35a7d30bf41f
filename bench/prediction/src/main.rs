//! Bench: how often what a client of Duel predicts of its player is corrected, and by how many centimetres, line by line.
//!
//! The shipped server, with the simulator's clock and network, and runners ([`runner`]) on clients of 128 inputs a second
//! that predict as bots do, in matches whose warm-up does not end. A row for each line ([`lines`]), the same both ways.
//!
//! - `predicted_ticks`: inputs of all runners, each of which is a step that was predicted.
//! - `corrections`: how often the match put what was predicted elsewhere, by more than rounding does (2 cm).
//! - `per_1000_ticks`: the same of a thousand predicted ticks.
//! - `correction_cm`: how far, on average, 99 of 100 times, and at most. A body that runs comes 4.2 cm in a tick.
//!
//! On a line that loses nothing, or three packets in a row, nothing is corrected, near or far: inputs are repeated. Ten in a
//! row are the control. What a line costs that becomes longer in the middle of a run is not in it: its runners' clocks
//! take 2 % less than time for that, and until then, and two seconds more, bodies are as far behind as they may be.
//!
//! Reads no clock, so figures and hash are the same on any machine.

mod lines;
mod runner;

use std::error::Error;

use duel::{DuelSettings, map::Map, protocol::TICK_HZ};
use harness::BenchArguments;
use throng_simulator::{Simulation, SimulationSettings};

use self::{
    lines::Line,
    runner::{Notebook, Notes, Runner},
};

/// How many run for how long.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Two to a match.
    runners: u64,
    seconds: u32,
}

/// Until everybody is in a match (s).
const COMING_S: f64 = 3.0;
/// Until all go by the new line (s): clocks take 3.9 s for 78 ms, and matches then forfeit what they have saved in 2 s.
const SETTLING_S: f64 = 8.0;
/// Longer than any run (s).
const WARM_UP_S: f32 = 600.0;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = BenchArguments::read();
    let size = if arguments.small { Size { runners: 2, seconds: 8 } } else { Size { runners: 10, seconds: 120 } };
    let rows: Result<Vec<_>, _> = Line::ALL.iter().map(|line| run(line, size).map(|notes| row(line, &notes))).collect();
    arguments.print_rows("prediction", rows?);
    Ok(())
}

/// What each runner has noted on this line.
fn run(line: &Line, size: Size) -> Result<Vec<Notes>, Box<dyn Error>> {
    let settings = SimulationSettings { think_hz: TICK_HZ.into(), ..SimulationSettings::new(duel::schema(), 5) };
    let matches = DuelSettings { team_size: 1, warm_up_s: WARM_UP_S, ..DuelSettings::default() };
    let (mut simulation, _) = Simulation::new(&settings, |server| duel::build(server, &matches))?;
    let map = Map::load();
    let notebooks: Vec<Notebook> = (0..size.runners).map(|_| Notebook::default()).collect();
    for (notebook, place) in notebooks.iter().zip(0..) {
        simulation.join(Box::new(Runner::new(map.clone(), notebook.clone(), place)));
    }
    simulation.run_for(COMING_S);
    simulation.impair(line.impairment());
    simulation.run_for(SETTLING_S);
    notebooks.iter().for_each(|notebook| drop(notebook.take()));
    run_on(&mut simulation, line, size.seconds);
    let notes: Vec<Notes> = notebooks.iter().map(Notebook::take).collect();
    let least = u64::from(size.seconds) * u64::from(TICK_HZ) * 98 / 100;
    if notes.iter().any(|notes| notes.predicted_ticks < least) {
        return Err(format!("on the line `{}` not everybody ran: {notes:?}", line.name).into());
    }
    Ok(notes)
}

fn run_on(simulation: &mut Simulation, line: &Line, seconds: u32) {
    let ticks = seconds * u32::from(TICK_HZ);
    if line.lost_in_a_row == 0 {
        (0..ticks).for_each(|_| simulation.step());
        return;
    }
    for _ in 0..ticks.div_ceil(line.lost_in_a_row + Line::GAP_TICKS) {
        simulation.impair(line.silence());
        (0..line.lost_in_a_row).for_each(|_| simulation.step());
        simulation.impair(line.impairment());
        (0..Line::GAP_TICKS).for_each(|_| simulation.step());
    }
}

fn row(line: &Line, notes: &[Notes]) -> serde_json::Value {
    let ticks: u64 = notes.iter().map(|notes| notes.predicted_ticks).sum();
    let mut corrections_cm: Vec<f64> =
        notes.iter().flat_map(|notes| &notes.corrections_m).map(|by_m| f64::from(*by_m) * 100.0).collect();
    let count = corrections_cm.len();
    serde_json::json!({
        "line": line.name,
        "parameters": {
            "round_trip_ms": line.round_trip_ms,
            "loss": line.loss,
            "lost_in_a_row": line.lost_in_a_row,
        },
        "runners": notes.len(),
        "predicted_ticks": ticks,
        "inputs_refused": notes.iter().map(|notes| notes.refused).sum::<u64>(),
        "corrections": count,
        "per_1000_ticks": count as f64 * 1e3 / ticks.max(1) as f64,
        "correction_cm": {
            "mean": corrections_cm.iter().fold(0.0, |sum, by_cm| sum + by_cm) / count.max(1) as f64,
            "p99": harness::quantile(&mut corrections_cm, 0.99),
            "max": harness::quantile(&mut corrections_cm, 1.0),
        },
        "hash": format!("{:016x}", hash(notes)),
    })
}

/// Of all corrections, and of where everybody is in the end.
fn hash(notes: &[Notes]) -> u64 {
    let words = notes.iter().flat_map(|Notes { predicted_ticks, corrections_m, at, .. }| {
        let numbers = corrections_m.iter().copied().chain(at.to_array()).map(|number| u64::from(number.to_bits()));
        std::iter::once(*predicted_ticks).chain(numbers)
    });
    words.fold(0, harness::mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { runners: 2, seconds: 8 };

    fn corrections(line: &Line) -> (usize, f32) {
        let notes = run(line, SIZE).unwrap();
        let all = || notes.iter().flat_map(|notes| notes.corrections_m.iter().copied());
        println!("{}", row(line, &notes));
        (all().count(), all().fold(0.0, f32::max))
    }

    /// Promise: distance costs no correction, nor do lost inputs up to three in a row, near or far. The control: ten do.
    #[test]
    fn nothing_is_corrected_but_where_more_is_lost_than_is_repeated() {
        let [clean, far, lossy, far_and_lossy, three, far_three, ten] = Line::ALL.each_ref().map(corrections);
        assert_eq!([clean.0, far.0, three.0, far_three.0], [0; 4]);
        let rows = (8 * 128_usize).div_ceil(10 + Line::GAP_TICKS as usize);
        // Each until velocity agrees again, which is a dozen ticks.
        assert!((rows..2 * rows * 12).contains(&ten.0), "{ten:?} of {rows} rows for each of two");
        for (count, largest_m) in [lossy, far_and_lossy] {
            assert!(count * 100 < 2 * 8 * 128 * 5, "{count} corrections");
            assert!(largest_m < 1.0, "{largest_m} m");
        }
        assert!(ten.1 < 1.0, "{ten:?}");
    }

    #[test]
    fn the_same_run_has_the_same_hash() {
        let line = Line { loss: 0.2, ..Line::ALL[1] };
        let [one, other] = [5, 5].map(|seconds| hash(&run(&line, Size { seconds, ..SIZE }).unwrap()));
        assert_eq!(one, other);
    }
}
