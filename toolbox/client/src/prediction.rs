//! Prediction: what a player steers is shown at once, as the server will have it.
//!
//! A client sends an input and takes the same step itself, by the same function as the server. Later the server says how
//! things stood when it had taken that input. If that is what was predicted, nothing happens. If not (an input was lost,
//! somebody stood in the way), the server's state counts, all inputs since are taken once more, and what is shown moves
//! from the old place to the new one within a bounded time:
//!
//! ```text
//!   inputs sent         71   72   73   74   75   76
//!   predicted after     p71  p72  p73  p74  p75  p76 -> shown
//!   the server says           s73            it is p73 as it comes over the wire: correction 0
//!                             s73            it is not: s73 -74-> q74 -75-> q75 -76-> q76 -> shown, from p76 on
//! ```
//!
//! The server's state comes rounded, as its component declares, and what is predicted begins with such a state: half a step
//! beside the server's own. The next one is rounded, too, and may be half a step off to the other side. So places that are
//! [`rounding_m`](PredictionSettings::rounding_m) apart agree, and rounding of a place makes no corrections. All else must be
//! what the prediction is rounded to: a speed that came rounded may be put right a few times, until it has come to agree.
//!
//! ```
//! use throng_client::{platform::time::Nanos, prediction::{Predict, Predictor}, prelude::*};
//!
//! #[derive(Clone, Debug, Replicate)]
//! struct Runner {
//!     #[replicate(min = -100.0, max = 100.0, step = 0.01)]
//!     x: f32,
//! }
//!
//! #[derive(Clone, Pack)]
//! struct Run(i8);
//! impl ClientInput for Run {
//!     const REPEATS: u8 = 3;
//! }
//!
//! /// What client and server both know: here, how far a step takes.
//! struct Rules {
//!     step_m: f32,
//! }
//!
//! impl Predict for Rules {
//!     type State = Runner;
//!     type Input = Run;
//!     fn step(&self, state: &Runner, input: &Run) -> Runner {
//!         Runner { x: state.x + f32::from(input.0) * self.step_m }
//!     }
//!     fn place(&self, state: &Runner) -> [f32; 3] {
//!         [state.x, 0.0, 0.0]
//!     }
//!     fn shifted(&self, state: &Runner, by_m: [f32; 3]) -> Runner {
//!         Runner { x: state.x + by_m[0] }
//!     }
//! }
//!
//! fn play(client: &mut Client, predictor: &mut Predictor<Rules>, now: Nanos) -> Option<Runner> {
//!     if let Some(told) = client.own_state::<Runner>() {
//!         let correction = predictor.reconcile(now, told.input, told.state);
//!         if correction.moved_m > 0.0 {
//!             println!("{:.1} cm off", correction.moved_m * 100.0);
//!         }
//!     }
//!     for _ in 0..client.due_inputs(now) {
//!         if let Ok(number) = client.send_input(now, &Run(1)) {
//!             predictor.apply(number, Run(1));
//!         }
//!     }
//!     predictor.shown(now)
//! }
//! ```
//!
//! It predicts well what follows from inputs alone: one input is one step of fixed length, whenever the server takes it.
//! So the server reads all of them (`Inputs::read`), and their kind is repeated (`ClientInput::REPEATS`). What others do to
//! a player comes as a correction.
//!
//! Sans-IO, on its client's thread: times are arguments. Cost: a step for each input, and one for each input that is not
//! confirmed where something has to be corrected; keeps at most 256 of them, and allocates nothing once there was room for
//! as many as there ever are (beside what the game's state allocates).

use std::collections::VecDeque;

use throng_platform::time::Nanos;
use throng_replication::Replicate;

use crate::input_number::is_at_or_after;

/// Inputs that are not confirmed, at most: 2 s at 128 Hz. Of more no step is taken until the server confirms some.
const UNCONFIRMED_MAX: usize = 256;

/// How a game moves what a player steers: the same on both ends.
pub trait Predict {
    /// What the server tells of it: a replicated component.
    type State: Replicate;
    /// What makes one step.
    type Input: Clone;

    /// The state after one input. It must follow from these two and what never changes, so that server and client agree to
    /// the last bit: no clock, no chance.
    fn step(&self, state: &Self::State, input: &Self::Input) -> Self::State;

    /// Where it is. (m, or whatever the game's places are in)
    fn place(&self, state: &Self::State) -> [f32; 3];

    /// The same state, shown so far from its place. (m)
    fn shifted(&self, state: &Self::State, by_m: [f32; 3]) -> Self::State;

    /// Whether what came over the wire is what this predicted state is rounded to.
    fn agrees(&self, told: &Self::State, predicted: &Self::State) -> bool {
        told.agrees_with(predicted)
    }
}

/// How corrections are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PredictionSettings {
    /// How long what is shown takes from the wrong place to the right one (default 100 ms). Too short: it jerks. Too long:
    /// a player aims from where he is not.
    pub smoothing: Nanos,
    /// What is off by more is shown in its right place at once (m, default 3). Too little: every lost packet is seen. Too
    /// much: who was put elsewhere slides there through walls.
    pub smoothed_m_max: f32,
    /// Places that are no farther apart agree, and a state that moves what is predicted by no more is not counted as a
    /// correction (m, default 0.02): it comes of rounding. To be at least a whole step of the place as it is declared, on
    /// all axes together: 1.8 steps in space. Too little: rounding is corrected again and again. Too much: a player stays
    /// where the server does not have him.
    pub rounding_m: f32,
}

impl Default for PredictionSettings {
    fn default() -> Self {
        Self { smoothing: Nanos::from_millis(100), smoothed_m_max: 3.0, rounding_m: 0.02 }
    }
}

/// What the server's state changed. The first one moves nothing, for nothing was predicted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Correction {
    /// How far what is predicted for now has moved (m). 0: it was right.
    pub moved_m: f32,
    /// Inputs that were taken once more, or for the first time.
    pub steps: u32,
}

/// What a predictor counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PredictionStats {
    /// States of the server that were held against what was predicted.
    pub checks: u64,
    /// Of these, how many moved what was predicted by more than rounding does.
    pub corrections: u64,
    /// How far they moved it, together and at most (m).
    pub corrected_m: f64,
    pub corrected_m_max: f32,
    /// Inputs whose step was left out, as 256 others waited for the server: its next states correct what that makes.
    pub unconfirmed: u64,
}

/// What a client predicts of one entity.
pub struct Predictor<P: Predict> {
    model: P,
    settings: PredictionSettings,
    /// As of the last confirmed input. `None` before the server has said anything.
    confirmed: Option<P::State>,
    confirmed_input: u16,
    /// Inputs since, oldest first.
    steps: VecDeque<Step<P>>,
    shift: Shift,
    stats: PredictionStats,
}

struct Step<P: Predict> {
    number: u16,
    input: P::Input,
    /// The state after it. `None` as long as the server has told none to step from.
    after: Option<P::State>,
}

impl<P: Predict> Predictor<P> {
    pub fn new(model: P, settings: PredictionSettings) -> Self {
        Self {
            model,
            settings,
            confirmed: None,
            confirmed_input: 0,
            steps: VecDeque::new(),
            shift: Shift::default(),
            stats: PredictionStats::default(),
        }
    }

    /// The player steers something else now, in the same stay in a world: inputs that are on their way will move that.
    pub fn reset(&mut self) {
        self.confirmed = None;
        self.steps.iter_mut().for_each(|step| step.after = None);
        self.shift = Shift::default();
    }

    /// The player is in another world: no input of the one before is taken there.
    pub fn left_world(&mut self) {
        self.reset();
        self.steps.clear();
    }

    /// The input of this number was sent: its step is taken. Before the server has told a state there is nothing to step
    /// from, and the step is taken when it has. Where 256 steps are not confirmed none is taken, and that is counted.
    pub fn apply(&mut self, number: u16, input: P::Input) {
        if self.steps.len() == UNCONFIRMED_MAX {
            self.stats.unconfirmed += 1;
            // The first state will have the oldest in it, and is to be followed by the newest.
            if self.confirmed.is_some() || self.steps.pop_front().is_none() {
                return;
            }
        }
        let after = self.predicted().map(|before| self.model.step(before, &input));
        self.steps.push_back(Step { number, input, after });
    }

    /// The server's state, which has input `number` in it and none after that; see
    /// [`Client::own_state`](crate::Client::own_state). One that is older than another is passed over.
    pub fn reconcile(&mut self, now: Nanos, number: u16, told: &P::State) -> Correction {
        if self.confirmed.is_some() && !is_at_or_after(number, self.confirmed_input) {
            return Correction::default();
        }
        while let Some(step) = self.steps.front()
            && is_at_or_after(number, step.number)
            && let Some(step) = self.steps.pop_front()
        {
            self.confirm(step);
        }
        self.confirmed_input = number;
        let Some(predicted) = &self.confirmed else {
            self.step_from(told);
            return Correction { moved_m: 0.0, steps: self.steps.len() as u32 };
        };
        self.stats.checks += 1;
        if self.agrees(told, predicted) { Correction::default() } else { self.correct(now, told) }
    }

    /// The state that is predicted for now: after the last input that was sent. `None` before the server has told one.
    pub fn predicted(&self) -> Option<&P::State> {
        self.steps.back().and_then(|step| step.after.as_ref()).or(self.confirmed.as_ref())
    }

    /// The same, as it is to be shown: on its way from where it was shown before a correction.
    pub fn shown(&self, now: Nanos) -> Option<P::State> {
        let predicted = self.predicted()?;
        let by_m = self.shift.at(now, self.settings.smoothing);
        Some(if by_m == [0.0; 3] { predicted.clone() } else { self.model.shifted(predicted, by_m) })
    }

    pub fn stats(&self) -> PredictionStats {
        self.stats
    }

    /// What the game has told of how it moves things.
    pub fn model(&self) -> &P {
        &self.model
    }

    /// Whether rounding is all that keeps these apart.
    fn agrees(&self, told: &P::State, predicted: &P::State) -> bool {
        if self.model.agrees(told, predicted) {
            return true;
        }
        let off_m = minus(self.model.place(told), self.model.place(predicted));
        length(off_m) <= self.settings.rounding_m && self.model.agrees(told, &self.model.shifted(predicted, off_m))
    }

    /// The oldest step is believed.
    fn confirm(&mut self, step: Step<P>) {
        self.confirmed = step.after;
        self.confirmed_input = step.number;
    }

    /// The server's state counts, and all inputs since are taken again.
    #[cold]
    fn correct(&mut self, now: Nanos, told: &P::State) -> Correction {
        let before_m = self.predicted().map(|state| self.model.place(state)).unwrap_or_default();
        self.step_from(told);
        let after_m = self.predicted().map(|state| self.model.place(state)).unwrap_or_default();
        let off_m = minus(before_m, after_m);
        let moved_m = length(off_m);
        self.shift.begin(now, off_m, &self.settings);
        if moved_m > self.settings.rounding_m {
            self.stats.corrections += 1;
            self.stats.corrected_m += f64::from(moved_m);
            self.stats.corrected_m_max = self.stats.corrected_m_max.max(moved_m);
        }
        Correction { moved_m, steps: self.steps.len() as u32 }
    }

    /// Takes all inputs that are not confirmed from the server's state on.
    fn step_from(&mut self, told: &P::State) {
        let mut state = told;
        for step in &mut self.steps {
            state = step.after.insert(self.model.step(state, &step.input));
        }
        self.confirmed = Some(told.clone());
    }
}

/// How far what is shown is from what is predicted: less with time, and nothing after a while.
#[derive(Debug, Clone, Copy, Default)]
struct Shift {
    by_m: [f32; 3],
    since: Nanos,
}

impl Shift {
    /// It is to be shown where it was, and so far from where it is.
    fn begin(&mut self, now: Nanos, off_m: [f32; 3], settings: &PredictionSettings) {
        let left_m = self.at(now, settings.smoothing);
        let by_m = [0, 1, 2].map(|axis| left_m[axis] + off_m[axis]);
        let is_shown = length(by_m) <= settings.smoothed_m_max;
        *self = Self { by_m: if is_shown { by_m } else { [0.0; 3] }, since: now };
    }

    fn at(&self, now: Nanos, smoothing: Nanos) -> [f32; 3] {
        let left = smoothing.saturating_sub(now.saturating_sub(self.since));
        let share = if smoothing == Nanos::ZERO { 0.0 } else { left.0 as f32 / smoothing.0 as f32 };
        self.by_m.map(|by_m| by_m * share)
    }
}

fn minus(one: [f32; 3], other: [f32; 3]) -> [f32; 3] {
    [0, 1, 2].map(|axis| one[axis] - other[axis])
}

fn length([x, y, z]: [f32; 3]) -> f32 {
    (x * x + y * y + z * z).sqrt()
}

#[cfg(test)]
mod tests;
