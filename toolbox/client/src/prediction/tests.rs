//! A predictor against a server that takes inputs, loses some, and tells its state rounded and late.

use std::collections::VecDeque;

use throng_platform::allocator::thread_counts;
use throng_replication::{Reader, Writer};

use super::*;

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Runner {
    #[replicate(min = -1024.0, max = 1024.0, step = 0.0078125)]
    x: f32,
    #[replicate(min = -16.0, max = 16.0, step = 0.0078125)]
    speed: f32,
}

/// Friction and a push: what is a little off stays off for a while.
struct Rules;

impl Predict for Rules {
    type State = Runner;
    type Input = f32;

    fn step(&self, state: &Runner, push: &f32) -> Runner {
        let speed = state.speed * 0.9 + push * 0.1;
        Runner { x: state.x + speed * 0.05, speed }
    }

    fn place(&self, state: &Runner) -> [f32; 3] {
        [state.x, 0.0, 0.0]
    }

    fn shifted(&self, state: &Runner, by_m: [f32; 3]) -> Runner {
        Runner { x: state.x + by_m[0], ..state.clone() }
    }
}

/// What comes over the wire of a state.
fn told(state: &Runner) -> Runner {
    let mut bytes = [0; 64];
    let mut out = Writer::new(&mut bytes);
    state.encode(&mut out);
    Runner::decode(&mut Reader::new(&bytes)).expect("it was encoded")
}

/// One input in each tick of 50 ms; the server's answer is so many ticks old.
struct Line {
    predictor: Predictor<Rules>,
    server: Runner,
    answers: VecDeque<(u16, Runner)>,
    late_ticks: usize,
    number: u16,
    now: Nanos,
}

impl Line {
    fn new(late_ticks: usize) -> Self {
        Self::from(Runner { x: 0.0, speed: 0.0 }, late_ticks)
    }

    fn from(server: Runner, late_ticks: usize) -> Self {
        let mut predictor = Predictor::new(Rules, PredictionSettings::default());
        predictor.reconcile(Nanos::ZERO, 0, &told(&server));
        Self { predictor, server, answers: VecDeque::new(), late_ticks, number: 0, now: Nanos::ZERO }
    }

    /// One tick: the input is sent, the server takes it or not, and an older answer comes.
    fn tick(&mut self, push: f32, is_lost: bool) -> Correction {
        self.now += Nanos::from_millis(50);
        self.number = self.number.wrapping_add(1);
        self.predictor.apply(self.number, push);
        if !is_lost {
            self.server = Rules.step(&self.server, &push);
        }
        self.answers.push_back((self.number, told(&self.server)));
        if self.answers.len() <= self.late_ticks {
            return Correction::default();
        }
        let (number, state) = self.answers.pop_front().expect("more than none");
        self.predictor.reconcile(self.now, number, &state)
    }

    fn shown_x(&self, later_ms: u64) -> f32 {
        self.predictor.shown(self.now + Nanos::from_millis(later_ms)).expect("a state was told").x
    }
}

fn push(turn: u32) -> f32 {
    if (turn / 20).is_multiple_of(2) { 5.0 } else { -5.0 }
}

/// Promise: where nothing is lost nothing is corrected, though what comes is rounded to centimetres, and numbers wrap.
#[test]
fn a_clean_line_has_no_correction() {
    let mut line = Line::new(6);
    for turn in 0..70_000 {
        assert_eq!(line.tick(push(turn), false), Correction::default(), "turn {turn}");
    }
    let stats = line.predictor.stats();
    assert_eq!((stats.corrections, stats.corrected_m_max, stats.unconfirmed), (0, 0.0, 0));
    assert!(stats.checks > 69_000);
    assert_eq!(line.predictor.steps.len(), 6, "what the server has not answered yet");
}

/// Promise: that holds also where the first state is none that can come over the wire as it is.
#[test]
fn where_one_begins_between_two_steps_of_the_wire_nothing_is_corrected() {
    for begin_x in [3.1452, -700.003, 0.0039, 12.5] {
        let mut line = Line::from(Runner { x: begin_x, speed: 0.0 }, 6);
        for turn in 0..2_000 {
            assert_eq!(line.tick(push(turn), false), Correction::default(), "turn {turn} from {begin_x}");
        }
        let off_m = (line.predictor.predicted().expect("told").x - line.server.x).abs();
        assert!(off_m <= 0.0078125, "{off_m} m");
    }
}

/// Promise: only places agree by a step; what else is off, or a place that is off by more, is corrected.
#[test]
fn what_is_not_rounding_is_corrected() {
    let check = |off_m, off_speed, is_corrected: bool| {
        let mut line = Line::new(0);
        (0..40).for_each(|turn| _ = line.tick(push(turn), false));
        let Runner { x, speed } = line.server;
        let told = told(&Runner { x: x + off_m, speed: speed + off_speed });
        let moved_m = line.predictor.reconcile(line.now, line.number, &told).moved_m;
        assert_eq!(moved_m > 0.0, is_corrected, "{off_m} m, {off_speed} m/s: {moved_m} m");
    };
    check(0.0, 0.0, false);
    check(0.01, 0.0, false);
    check(0.04, 0.0, true);
    check(0.01, 0.04, true);
}

#[test]
fn what_is_predicted_is_ahead_of_what_is_told() {
    let mut line = Line::new(6);
    (0..20).for_each(|_| _ = line.tick(5.0, false));
    assert_eq!(line.predictor.predicted(), Some(&line.server), "to the last bit");
}

/// Promise: a lost input is corrected when the answer comes, by as much as it has moved the player since, told in metres,
/// and it is right afterwards.
#[test]
fn a_lost_input_is_corrected_once_and_then_all_is_right() {
    let mut line = Line::new(6);
    (0..40).for_each(|turn| _ = line.tick(push(turn), false));
    let mut corrections = Vec::new();
    for turn in 0..20 {
        corrections.push(line.tick(5.0, turn == 3));
    }
    let corrected: Vec<usize> = (0..20).filter(|turn| corrections[*turn].moved_m > 0.0).collect();
    assert_eq!(corrected.first(), Some(&9), "six ticks after it was lost");
    let Correction { moved_m, steps } = corrections[9];
    // One step less: the last one, of 50 ms at 1.9 m/s by then.
    assert!((0.08..0.11).contains(&moved_m), "{moved_m} m");
    assert_eq!(steps, 6);
    // What is told is rounded, so what was taken over from it is off by that much.
    let after_m: f32 = corrected.iter().skip(1).map(|turn| corrections[*turn].moved_m).fold(0.0, f32::max);
    assert!(after_m < 0.05, "{after_m} m");
    let off_m = (line.predictor.predicted().expect("told").x - line.server.x).abs();
    assert!(off_m < 0.05, "{off_m} m");
    assert_eq!(line.predictor.stats().corrections, 1, "what comes of rounding is none");
}

/// Promise: a correction is shown over its time and no longer, and nothing jumps meanwhile.
#[test]
fn what_is_shown_goes_to_the_right_place_within_the_smoothing() {
    let mut line = Line::new(0);
    (0..40).for_each(|_| _ = line.tick(0.0, false));
    let before = line.shown_x(0);
    let moved = Runner { x: before + 1.0, speed: 0.0 };
    let correction = line.predictor.reconcile(line.now, line.number, &moved);
    assert!((correction.moved_m - 1.0).abs() < 1e-3);
    let shown = [0, 25, 50, 75, 100, 200].map(|later_ms| line.shown_x(later_ms) - before);
    for (shown, expect) in shown.into_iter().zip([0.0, 0.25, 0.5, 0.75, 1.0, 1.0]) {
        assert!((shown - expect).abs() < 1e-3, "{shown} m, not {expect}");
    }
    // Another one before it is over begins where it is.
    line.now += Nanos::from_millis(50);
    let back = Runner { x: before, speed: 0.0 };
    line.predictor.reconcile(line.now, line.number, &back);
    assert!((line.shown_x(0) - before - 0.5).abs() < 1e-3);
    assert!((line.shown_x(100) - before).abs() < 1e-6, "nothing is left of it");
}

#[test]
fn who_was_put_far_away_is_shown_there_at_once() {
    let mut line = Line::new(0);
    line.tick(0.0, false);
    line.predictor.reconcile(line.now, line.number, &Runner { x: 50.0, speed: 0.0 });
    assert_eq!(line.shown_x(0), 50.0);
}

/// Promise: inputs that were sent before the first state came are predicted from it on, but for those that it has in it.
#[test]
fn inputs_before_the_first_state_are_taken_from_it_on() {
    let mut predictor = Predictor::new(Rules, PredictionSettings::default());
    let start = Runner { x: 1.0, speed: 0.0 };
    (1..=4).for_each(|number| predictor.apply(number, 5.0));
    assert_eq!((predictor.predicted(), predictor.shown(Nanos::ZERO)), (None, None));
    let correction = predictor.reconcile(Nanos::ZERO, 2, &start);
    assert_eq!(correction, Correction { moved_m: 0.0, steps: 2 });
    let two = Rules.step(&Rules.step(&start, &5.0), &5.0);
    assert_eq!(predictor.predicted(), Some(&two));
    assert_eq!(predictor.reconcile(Nanos::ZERO, 4, &told(&two)), Correction::default());
    assert_eq!(predictor.stats().corrections, 0);
}

/// Promise: inputs that are on their way when the player begins to steer something else move that; in another world they
/// move nothing.
#[test]
fn inputs_on_their_way_move_what_is_steered_next() {
    let mut line = Line::new(6);
    (0..40).for_each(|turn| _ = line.tick(push(turn), false));
    line.predictor.reset();
    assert_eq!(line.predictor.predicted(), None);
    let other = Runner { x: 9.0, speed: 0.0 };
    let correction = line.predictor.reconcile(line.now, line.number - 3, &other);
    assert_eq!(correction, Correction { moved_m: 0.0, steps: 3 });
    let pushes = (37..40).map(push);
    let expect = pushes.fold(other.clone(), |state, push| Rules.step(&state, &push));
    assert_eq!(line.predictor.predicted(), Some(&expect));

    line.predictor.left_world();
    line.predictor.reconcile(line.now, line.number - 3, &other);
    assert_eq!(line.predictor.predicted(), Some(&other));
}

#[test]
fn an_older_state_changes_nothing() {
    let mut line = Line::new(0);
    (0..10).for_each(|_| _ = line.tick(5.0, false));
    let predicted = line.predictor.predicted().cloned();
    let old = Runner { x: 0.0, speed: 0.0 };
    assert_eq!(line.predictor.reconcile(line.now, 4, &old), Correction::default());
    assert_eq!(line.predictor.predicted().cloned(), predicted);
}

/// Inputs of other kinds have numbers, too: a state that includes one of these includes all steps before it.
#[test]
fn numbers_between_steps_confirm_the_steps_before_them() {
    let start = Runner { x: 0.0, speed: 0.0 };
    let mut predictor = Predictor::new(Rules, PredictionSettings::default());
    predictor.reconcile(Nanos::ZERO, 0, &start);
    [1, 4, 7].into_iter().for_each(|number| predictor.apply(number, 5.0));
    let two = Rules.step(&Rules.step(&start, &5.0), &5.0);
    assert_eq!(predictor.reconcile(Nanos::ZERO, 6, &told(&two)), Correction::default());
    assert_eq!(predictor.steps.len(), 1);
}

/// Promise: a steady tick allocates nothing, whether it is corrected or not.
#[test]
fn steady_prediction_allocates_nothing() {
    let mut line = Line::new(6);
    (0..100).for_each(|turn| _ = line.tick(push(turn), turn % 9 == 0));
    let before = thread_counts().allocations;
    (0..1_000).for_each(|turn| _ = line.tick(push(turn), turn % 9 == 0));
    assert_eq!(thread_counts().allocations, before);
    assert!(line.predictor.stats().corrections > 50);
}

/// Promise: a server that confirms nothing costs no more than the ring; what it says when it speaks again counts, and with
/// its next states all is right.
#[test]
fn a_silent_server_is_waited_for_and_then_believed() {
    let mut line = Line::new(400);
    (0..400).for_each(|turn| _ = line.tick(push(turn), false));
    assert_eq!(line.predictor.steps.len(), UNCONFIRMED_MAX);
    assert_eq!(line.predictor.stats().unconfirmed, 400 - UNCONFIRMED_MAX as u64);
    let checks = line.predictor.stats().checks;
    line.late_ticks = 390;
    (400..410).for_each(|turn| _ = line.tick(push(turn), false));
    assert_eq!(line.predictor.stats().checks - checks, 10, "the old is not passed over");
    line.late_ticks = 0;
    while line.answers.len() > 1 {
        let (number, state) = line.answers.pop_front().expect("more than one");
        line.predictor.reconcile(line.now, number, &state);
    }
    (410..430).for_each(|turn| _ = line.tick(push(turn), false));
    let off_m = (line.predictor.predicted().expect("told").x - line.server.x).abs();
    assert!(off_m < 0.05, "{off_m} m");
}

#[test]
fn of_many_inputs_before_the_first_state_the_newest_are_kept() {
    let mut predictor = Predictor::new(Rules, PredictionSettings::default());
    (1..=300).for_each(|number| predictor.apply(number, 5.0));
    assert_eq!(predictor.stats().unconfirmed, 300 - UNCONFIRMED_MAX as u64);
    let correction = predictor.reconcile(Nanos::ZERO, 298, &Runner { x: 0.0, speed: 0.0 });
    assert_eq!(correction.steps, 2);
}
