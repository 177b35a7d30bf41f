//! A player who runs about, predicts where that leads, and holds it against what the server says.

use std::{
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::{
    Client,
    prediction::{PredictionSettings, PredictionStats, Predictor},
};
use throng_platform::time::Nanos;

use crate::field::{Predicted, Runner, Step};

/// What a test wants to know of a runner.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    pub stats: PredictionStats,
    /// The farthest correction, those that come of rounding included (m).
    pub moved_m_max: f32,
    pub inputs_sent: u64,
    pub predicted: Option<Runner>,
    pub told: Option<Runner>,
    /// When each step was predicted.
    pub stepped_at: Vec<Nanos>,
}

/// Notes that a test reads while the simulation has the runner.
#[derive(Clone, Default)]
pub struct Notebook(Arc<Mutex<Notes>>);

impl Notebook {
    pub fn read(&self) -> Notes {
        self.open().clone()
    }

    fn open(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wishes to go here and there, or on and on.
pub struct RunsAbout<S: Step> {
    predictor: Predictor<Predicted<S>>,
    goes_on: bool,
    notebook: Notebook,
}

impl<S: Step> RunsAbout<S> {
    /// To and fro on both axes, at up to 5 m/s.
    pub fn to_and_fro(notebook: &Notebook) -> Box<Self> {
        Self::new(false, notebook)
    }

    /// East at up to 5 m/s, for ever.
    pub fn on_and_on(notebook: &Notebook) -> Box<Self> {
        Self::new(true, notebook)
    }

    fn new(goes_on: bool, notebook: &Notebook) -> Box<Self> {
        let predictor = Predictor::new(Predicted(PhantomData), PredictionSettings::default());
        Box::new(Self { predictor, goes_on, notebook: notebook.clone() })
    }

    fn wish(&self, turn: u64) -> S {
        let to_or_fro = |turns: u64| if (turn / turns).is_multiple_of(2) { 5 } else { -5 };
        S::new(if self.goes_on { [5, 0] } else { [to_or_fro(20), to_or_fro(14)] })
    }
}

impl<S: Step> Behaviour for RunsAbout<S> {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let notebook = self.notebook.clone();
        let mut notes = notebook.open();
        if let Some(told) = client.own_state::<Runner>() {
            let correction = self.predictor.reconcile(now, told.input, told.state);
            notes.moved_m_max = notes.moved_m_max.max(correction.moved_m);
            notes.told = Some(told.state.clone());
        }
        for _ in 0..client.due_inputs(now) {
            let step = self.wish(notes.inputs_sent);
            if let Ok(number) = client.send_input(now, &step) {
                self.predictor.apply(number, step);
                notes.inputs_sent += 1;
                notes.stepped_at.push(now);
            }
        }
        notes.stats = self.predictor.stats();
        notes.predicted = self.predictor.predicted().cloned();
    }
}
