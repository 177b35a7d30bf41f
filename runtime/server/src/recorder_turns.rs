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

/// Turns of one comparison: A B B A.
const TURNS_PER_COMPARISON: u64 = 4;

/// Frames that a turn may begin late: in some frames no world is due, and these do not come here.
const LATE_FRAMES_MAX: u64 = 3;

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
    began_in_time: bool,
    cpu: Nanos,
    ticks: u64,
}

/// What recording adds to the processor time of a tick, as a share of what it takes without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RecorderShare {
    /// Of the usual comparison: the median.
    pub median: f64,
    /// Where the median of endless comparisons would be, in 95 of 100 runs such as this. None of too few to say.
    pub interval: Option<[f64; 2]>,
}

/// Of fewer than six, all fall on one side of the middle more often than once in 20 times.
const COMPARISONS_FOR_INTERVAL: usize = 6;

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
            let is_whole = turn.began_in_time && turn.number + 1 == number && is_in_time(frame) && ticks > turn.ticks;
            self.book(turn.number, is_whole.then(|| cpu.0 as f64 / (ticks - turn.ticks) as f64));
        }
        recorder.switch_on(is_on(number));
        self.running = Some(Turn { number, began_in_time: is_in_time(frame), cpu: process::cpu_time(), ticks });
    }

    /// Notes what a tick cost in a turn; none if that is not known.
    fn book(&mut self, number: u64, cost: Option<f64>) {
        if number.is_multiple_of(TURNS_PER_COMPARISON) {
            self.begin_comparison();
        }
        let Some(cost) = cost else { return };
        self.without_and_with[usize::from(is_on(number))] += cost;
        self.turns_done += 1;
        let [without, with] = self.without_and_with;
        let is_last = number % TURNS_PER_COMPARISON == TURNS_PER_COMPARISON - 1;
        if is_last && self.turns_done == TURNS_PER_COMPARISON && self.shares.len() < COMPARISONS_MAX {
            self.shares.push(with / without - 1.0);
        }
    }

    fn begin_comparison(&mut self) {
        (self.without_and_with, self.turns_done) = ([0.0; 2], 0);
    }

    /// Forgets what was before the steady window.
    pub fn begin(&mut self) {
        self.shares.clear();
        self.begin_comparison();
    }

    /// None before the first comparison is over.
    pub fn share(&self) -> Option<RecorderShare> {
        let mut sorted = self.shares.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (count, last) = (sorted.len(), sorted.len().checked_sub(1)?);
        // The sign test's interval: of n values, those 0.98 sqrt(n) places on each side of the middle one.
        let aside = (0.98 * (count as f64).sqrt()).ceil() as usize;
        let ends = [(last / 2).saturating_sub(aside), last.min(count / 2 + aside)];
        let interval = (count >= COMPARISONS_FOR_INTERVAL).then(|| ends.map(|place| sorted[place]));
        Some(RecorderShare { median: sorted[count / 2], interval })
    }
}

/// A B B A: what grows or falls steadily is the same for both.
fn is_on(turn: u64) -> bool {
    matches!(turn % TURNS_PER_COMPARISON, 0 | 3)
}

/// Whether a turn that begins with this frame begins when it is due, or hardly later.
fn is_in_time(frame: u64) -> bool {
    frame % TURN_FRAMES <= LATE_FRAMES_MAX
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
        let RecorderShare { median, interval } = turns(disturbed).share().unwrap();
        let [low, high] = interval.unwrap();
        assert!((median - 0.02).abs() < 1e-3, "{median}");
        assert!(low <= median && median <= high && high - low < 0.01, "{low} {high}");
    }

    #[test]
    fn few_comparisons_say_little() {
        assert_eq!(RecorderTurns::default().share(), None);
        assert_eq!(turns([0.02; 3].into_iter()).share(), None);
        assert_eq!(turns([0.02; 20].into_iter()).share().unwrap().interval, None);
        let wild = turns((0..24).map(|number| f64::from(number / 4) / 10.0)).share().unwrap();
        let [low, high] = wild.interval.unwrap();
        assert!(low < 0.01 && high > 0.49, "{wild:?}");
    }

    #[test]
    fn a_comparison_with_a_turn_that_is_not_known_is_none() {
        let mut turns = RecorderTurns::default();
        for number in 0..8 {
            turns.book(number, (number != 2).then_some(1.0));
        }
        assert_eq!(turns.shares.len(), 1);
    }

    #[test]
    fn a_turn_may_begin_with_the_next_frame_that_there_is() {
        assert!([0, 21, 22, 24, 42].into_iter().all(is_in_time));
        assert!(!is_in_time(25) && !is_in_time(41));
    }
}
