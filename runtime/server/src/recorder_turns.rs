//! Recorder turns: what recording costs, measured while the server plays.
//!
//! Two runs of a server differ by more than the recorder takes, so one run records in every other turn. Turns are
//! short, in the order A B B A, and each counts what the whole process took: scopes, the kernel's records of switches,
//! and the recorder's own thread.

use throng_platform::{process, time::Nanos};
use throng_profiler::Recorder;

/// Frames of a turn: a third of a second at 60 Hz, in which every world of 20 Hz ticks seven times. Four turns are no
/// whole number of seconds, or what the server does once a second would always fall to the same side.
const TURN_FRAMES: u64 = 21;

/// Processor time with and without recording.
#[derive(Debug, Default)]
pub(crate) struct RecorderTurns {
    /// Frame in which the running turn began, with what the process had used and the ticks it had done.
    turn: Option<(u64, Nanos, u64)>,
    is_on: bool,
    /// Processor time per tick (ns), of each turn with recording and each without.
    on: Vec<f64>,
    off: Vec<f64>,
}

/// Turns that are kept; a run of an hour has fewer.
const TURNS_MAX: usize = 1 << 14;

impl RecorderTurns {
    /// A frame begins; if it begins a turn, the one before is booked.
    pub fn frame(&mut self, frame: u64, recorder: &mut Recorder, ticks: u64) {
        if self.turn.is_some_and(|(began, _, _)| frame < began + TURN_FRAMES) {
            return;
        }
        let cpu = process::cpu_time();
        if let Some((_, cpu_before, ticks_before)) = self.turn.filter(|(_, _, before)| ticks > *before) {
            let cost = (cpu.saturating_sub(cpu_before)).0 as f64 / (ticks - ticks_before) as f64;
            let turns = if self.is_on { &mut self.on } else { &mut self.off };
            if turns.len() < TURNS_MAX {
                turns.push(cost);
            }
        }
        // A B B A: what grows or falls steadily is the same for both.
        self.is_on = matches!(frame / TURN_FRAMES % 4, 0 | 3);
        recorder.switch_on(self.is_on);
        self.turn = Some((frame, process::cpu_time(), ticks));
    }

    /// Forgets what was before the steady window.
    pub fn begin(&mut self) {
        self.on.clear();
        self.off.clear();
    }

    /// What recording adds to the processor time of a tick, as a share of what it takes without: medians over all
    /// turns.
    pub fn share(&self) -> Option<f64> {
        let (on, off) = (median(&self.on)?, median(&self.off)?);
        Some(on / off - 1.0)
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_usual_turn() {
        let turns =
            RecorderTurns { on: vec![102.0, 101.0, 900.0], off: vec![100.0, 100.0, 50.0], ..Default::default() };
        assert!((turns.share().unwrap() - 0.02).abs() < 1e-9);
        assert_eq!(RecorderTurns::default().share(), None);
    }
}
