//! Prediction: where a player's own body is once the match has taken all inputs that its client has sent.
//!
//! A client takes the match's own steps ([`crate::movement`]) as it sends the inputs that make them. Later the match says
//! where the body was after one of them, and if that is elsewhere all since are taken again from there
//! ([`throng_client::prediction`]).
//!
//! Of a body only the place is told, in [`Pose`], since everybody who sees it gets the same bytes: so velocity, and whether
//! it stands on the ground, are those of the client's own steps. Where a correction begins they are taken over from what
//! was predicted for the same input. Most often they are right, for what goes wrong is that some inputs were never taken;
//! and what is wrong with them friction takes away in some tenths of a second, in which the place is corrected again.
//!
//! Whom the match puts elsewhere, as at the beginning of a round, that is no mistake of a prediction, however near it is.
//! [`Pose::life`] says it, and the prediction begins anew from there, with a body at rest.
//!
//! For any client, on its own thread: bots have one each. Sketch of the cost: a step for each input, 0.15 µs, and some
//! more where something is corrected; 6 KB. Allocates nothing once inputs have been on their way for as long as they ever
//! are.

use std::sync::Arc;

use glam::Vec3;
use throng::prelude::*;
use throng_client::{
    Client, OwnState,
    prediction::{Predict, PredictionSettings, Predictor},
};
use throng_platform::time::Nanos;

use crate::{
    components::{Phase, Pose},
    map::Map,
    movement::{Motion, Wish, step},
    protocol::{Input, TICK_HZ},
    teams::Side,
};

/// Inputs of which it is known how the body moved after them: half a second.
const MOTIONS_MAX: usize = 64;
/// Places are in steps of 1 cm, and this is the diagonal of two of them (m).
const ROUNDING_M: f32 = 0.02;
/// Nearer than this is the same place (m).
const SAME_M: f32 = 1e-3;

/// A body as its own client has it. It never goes over the wire like this.
#[derive(Debug, Clone, Copy, PartialEq, Replicate)]
struct Steered {
    #[replicate(exact)]
    at: Vec3,
    #[replicate(exact)]
    velocity: Vec3,
    is_on_ground: bool,
}

impl From<Motion> for Steered {
    fn from(Motion { at, velocity, is_on_ground }: Motion) -> Self {
        Self { at, velocity, is_on_ground }
    }
}

impl From<Steered> for Motion {
    fn from(Steered { at, velocity, is_on_ground }: Steered) -> Self {
        Self { at, velocity, is_on_ground }
    }
}

/// What makes a step.
#[derive(Debug, Clone, Copy)]
struct Stride {
    wish: Wish,
    phase: Phase,
    side: Side,
}

/// How a match moves bodies.
struct Steps(Arc<Map>);

impl Predict for Steps {
    type State = Steered;
    type Input = Stride;

    fn step(&self, state: &Steered, Stride { wish, phase, side }: &Stride) -> Steered {
        let (mut motion, zone) = (Motion::from(*state), self.0.zone(*phase, *side));
        step(&mut motion, wish, zone, &self.0, 1.0 / f32::from(TICK_HZ));
        motion.into()
    }

    fn place(&self, state: &Steered) -> [f32; 3] {
        state.at.to_array()
    }

    fn shifted(&self, state: &Steered, by_m: [f32; 3]) -> Steered {
        Steered { at: state.at + Vec3::from_array(by_m), ..*state }
    }

    fn agrees(&self, told: &Steered, predicted: &Steered) -> bool {
        // All else was not told.
        told.at.distance(predicted.at) < SAME_M
    }
}

/// What was corrected.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Corrections {
    /// How often what was predicted was held against what the match said.
    pub checks: u64,
    pub count: u64,
    pub largest_m: f32,
}

/// What a client predicts of its player.
pub struct Steering {
    predictor: Predictor<Steps>,
    /// How the body moves after which input; each at its number, modulo their count.
    motions: [(u16, Motion); MOTIONS_MAX],
    /// Of the place that was told last, as [`Pose::life`] counts.
    life: Option<u8>,
    corrections: Corrections,
}

impl Steering {
    pub fn new(map: Arc<Map>) -> Self {
        let settings = PredictionSettings { rounding_m: ROUNDING_M, ..PredictionSettings::default() };
        Self {
            predictor: Predictor::new(Steps(map), settings),
            motions: [(0, Motion::standing(Vec3::ZERO)); MOTIONS_MAX],
            life: None,
            corrections: Corrections::default(),
        }
    }

    /// It is in another match, which takes none of the inputs that were sent before.
    pub fn left_world(&mut self) {
        self.predictor.left_world();
        self.forget_motions();
        self.life = None;
    }

    /// It lies where it died: inputs that are on their way will move the one who stands up.
    pub fn die(&mut self) {
        self.predictor.reset();
        self.forget_motions();
    }

    fn forget_motions(&mut self) {
        self.motions.fill((0, Motion::standing(Vec3::ZERO)));
    }

    /// Takes what the match says of the body, which lives: how far what is predicted was off, if that was a correction (m).
    pub fn hear(&mut self, now: Nanos, client: &Client) -> Option<f32> {
        self.hear_of(now, client.own_state::<Pose>()?)
    }

    fn hear_of(&mut self, now: Nanos, told: OwnState<Pose>) -> Option<f32> {
        if self.life.replace(told.state.life) != Some(told.state.life) {
            self.predictor.reset();
            self.forget_motions();
        }
        let motion = Motion { at: told.state.feet(), ..self.motion_after(told.input) };
        let moved_m = self.predictor.reconcile(now, told.input, &motion.into()).moved_m;
        if moved_m <= ROUNDING_M {
            return None;
        }
        self.corrections.count += 1;
        self.corrections.largest_m = self.corrections.largest_m.max(moved_m);
        Some(moved_m)
    }

    /// This input was sent, under this number; in this phase, as far as is known, and to a player of this side.
    pub fn apply(&mut self, number: u16, input: &Input, phase: Phase, side: Side) {
        self.predictor.apply(number, Stride { wish: Wish::from(input), phase, side });
        if let Some(motion) = self.motion() {
            self.motions[usize::from(number) % MOTIONS_MAX] = (number, motion);
        }
    }

    /// The body after the last input that was sent; `None` before the match has said where it is.
    pub fn motion(&self) -> Option<Motion> {
        self.predictor.predicted().copied().map(Motion::from)
    }

    pub fn corrections(&self) -> Corrections {
        Corrections { checks: self.predictor.stats().checks, ..self.corrections }
    }

    /// As it was predicted; somebody at rest, if that is not known any more.
    fn motion_after(&self, number: u16) -> Motion {
        let (of_number, motion) = self.motions[usize::from(number) % MOTIONS_MAX];
        if of_number == number { motion } else { Motion::standing(Vec3::ZERO) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::layout::middle_of;

    /// Promise: who is put elsewhere was not predicted wrongly, however near that is. The control: in the same life it was.
    #[test]
    fn who_stands_up_near_by_is_not_corrected() {
        let begin = middle_of(8, 4);
        let moved_in_life = |life| {
            let mut steering = Steering::new(Map::load());
            let mut hear = |feet, life, input| {
                let pose = Pose::new(feet, 0.0, life);
                steering.hear_of(Nanos::ZERO, OwnState { state: &pose, tick: input, input: input as u16 })
            };
            assert_eq!(hear(begin, 8, 1), None);
            let moved_m = hear(begin + Vec3::X, life, 2);
            assert_eq!(steering.motion().map(|motion| motion.at), Some(begin + Vec3::X));
            assert_eq!(steering.corrections().count, moved_m.iter().count() as u64);
            moved_m
        };
        assert_eq!(moved_in_life(9), None);
        assert!(moved_in_life(8).is_some_and(|moved_m| (0.99..1.01).contains(&moved_m)));
    }

    /// A client's steps and those of its match are the same function with the same arguments, so they are the same place.
    #[test]
    fn a_step_that_is_predicted_is_the_step_of_the_match() {
        let (map, steps) = (Map::load(), Steps(Map::load()));
        let mut motion = Motion::standing(map.spawn(Side::Attackers, 0));
        let mut state = Steered::from(motion);
        for number in 0..700_u16 {
            let phase = if number < 600 { Phase::Buy } else { Phase::Live };
            let wish = Wish { direction: [1.0, 0.0], is_jumping: number.is_multiple_of(40), ..Wish::default() };
            step(&mut motion, &wish, map.zone(phase, Side::Attackers), &map, 1.0 / f32::from(TICK_HZ));
            state = steps.step(&state, &Stride { wish, phase, side: Side::Attackers });
            assert_eq!(Motion::from(state), motion, "step {number}");
        }
        assert!(map.zone(Phase::Buy, Side::Attackers).is_some_and(|base| motion.at.x > base.max.x), "it left the base");
    }

    #[test]
    fn only_places_are_held_against_each_other() {
        let steps = Steps(Map::load());
        let told = Steered::from(Motion::standing(middle_of(8, 4)));
        let runs = Steered { velocity: Vec3::X, is_on_ground: false, ..told };
        assert!(steps.agrees(&told, &runs));
        assert!(!steps.agrees(&told, &steps.shifted(&runs, [0.01, 0.0, 0.0])));
        assert_eq!(steps.place(&steps.shifted(&told, [0.0, 1.0, 0.0])), (told.at + Vec3::Y).to_array());
    }
}
