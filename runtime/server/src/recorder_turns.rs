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

/// Turns of one comparison.
const ABBA: u64 = 4;

/// Processor time with and without recording.
#[derive(Debug, Default)]
pub(crate) struct RecorderTurns {
    running: Option<Turn>,
    /// Processor time per tick (ns), without and with recording, of the turns of a comparison that are over.
    without_and_with: [f64; 2],
    turns_done: u64,
    /// Of each comparison: what recording added, as a share of what it took without.
    shares: Vec<f64>,
}

/// How things were when a turn began.
#[derive(Debug, Clone, Copy)]
struct Turn {
    number: u64,
    cpu: Nanos,
    ticks: u64,
}

/// What recording adds to the processor time of a tick, as a share of what it takes without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RecorderShare {
    /// Of the usual comparison: the median.
    pub median: f64,
    /// Where the median of endless comparisons would be, in 95 of 100 runs such as this.
    pub interval: [f64; 2],
}

/// Comparisons that are kept: six hours.
const COMPARISONS_MAX: usize = 1 << 14;

impl RecorderTurns {
    /// A frame begins; if it begins a turn, the one before is booked.
    pub fn frame(&mut self, frame: u64, recorder: &mut Recorder, ticks: u64) {
        let number = frame / TURN_FRAMES;
        if self.running.is_some_and(|turn| turn.number == number) {
            return;
        }
        if let Some(turn) = self.running {
            let cpu = process::cpu_time().saturating_sub(turn.cpu);
            let is_whole = frame.is_multiple_of(TURN_FRAMES) && turn.number + 1 == number && ticks > turn.ticks;
            self.book(turn.number, is_whole.then(|| cpu.0 as f64 / (ticks - turn.ticks) as f64));
        }
        recorder.switch_on(is_on(number));
        self.running = Some(Turn { number, cpu: process::cpu_time(), ticks });
    }

    /// Notes what a tick cost in a turn; none if that is not known.
    fn book(&mut self, number: u64, cost: Option<f64>) {
        if number.is_multiple_of(ABBA) {
            (self.without_and_with, self.turns_done) = ([0.0; 2], 0);
        }
        let Some(cost) = cost else { return };
        self.without_and_with[usize::from(is_on(number))] += cost;
        self.turns_done += 1;
        let [without, with] = self.without_and_with;
        if number % ABBA == ABBA - 1 && self.turns_done == ABBA && self.shares.len() < COMPARISONS_MAX {
            self.shares.push(with / without - 1.0);
        }
    }

    /// Forgets what was before the steady window.
    pub fn begin(&mut self) {
        self.shares.clear();
    }

    /// None before the first comparison is over.
    pub fn share(&self) -> Option<RecorderShare> {
        let mut sorted = self.shares.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        // The sign test's interval: of n values, those 0.98 sqrt(n) places on each side of the middle one.
        let aside = (0.98 * (sorted.len() as f64).sqrt()).ceil() as usize;
        let interval = [sorted[(sorted.len() / 2).saturating_sub(aside)], sorted[last.min(last / 2 + aside)]];
        Some(RecorderShare { median: sorted[sorted.len() / 2], interval })
    }
}

/// A B B A: what grows or falls steadily is the same for both.
fn is_on(turn: u64) -> bool {
    matches!(turn % ABBA, 0 | 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of a server that grows by 1 % a turn, with so much more for recording.
    fn turns(costs: impl Iterator<Item = f64>) -> RecorderTurns {
        let mut turns = RecorderTurns::default();
        for (number, share) in (0..).zip(costs) {
            let cost = 1_000.0 + 10.0 * number as f64;
            turns.book(number, Some(if is_on(number) { cost * (1.0 + share) } else { cost }));
        }
        turns
    }

    #[test]
    fn the_share_is_of_the_usual_comparison() {
        let disturbed = (0..400).map(|number| if number % 40 == 3 { 9.0 } else { 0.02 });
        let RecorderShare { median, interval: [low, high] } = turns(disturbed).share().unwrap();
        assert!((median - 0.02).abs() < 1e-3, "{median}");
        assert!(low <= median && median <= high && high - low < 0.01, "{low} {high}");
    }

    #[test]
    fn few_comparisons_say_little() {
        assert_eq!(RecorderTurns::default().share(), None);
        assert_eq!(turns([0.02; 3].into_iter()).share(), None);
        let wild = turns((0..20).map(|number| f64::from(number / 4) / 10.0)).share().unwrap();
        assert!(wild.interval[0] < 0.01 && wild.interval[1] > 0.39, "{wild:?}");
    }

    #[test]
    fn a_comparison_with_a_turn_that_is_not_known_is_none() {
        let mut turns = RecorderTurns::default();
        for number in 0..8 {
            turns.book(number, (number != 2).then_some(1.0));
        }
        assert_eq!(turns.shares.len(), 1);
    }
}
