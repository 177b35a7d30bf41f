//! A runner: it runs, walks and jumps about in its base, predicts where that leads, and notes what the match corrects.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use duel::{
    components::{Phase, Player},
    map::Map,
    prediction::Steering,
    protocol::{Input, MATCH},
    teams::{Side, TeamId},
};
use glam::Vec3;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;

/// What one runner has seen since the notes were last cleared.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// Inputs that were sent, each of them a tick that was predicted.
    pub predicted_ticks: u64,
    /// Inputs that could not be sent.
    pub refused: u64,
    /// How far what was predicted for now was moved, each time (m).
    pub corrections_m: Vec<f32>,
    /// Where it is predicted to be.
    pub at: Vec3,
}

/// Notes that the bench reads while the simulation has the runner.
#[derive(Debug, Clone, Default)]
pub struct Notebook(Arc<Mutex<Notes>>);

impl Notebook {
    pub fn take(&self) -> Notes {
        std::mem::take(&mut *self.open())
    }

    fn open(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Runner {
    steering: Steering,
    notebook: Notebook,
    /// So that no two do the same at the same time.
    place: u64,
    has_come: bool,
    inputs: u64,
}

impl Runner {
    pub fn new(map: Arc<Map>, notebook: Notebook, place: u64) -> Self {
        Self { steering: Steering::new(map), notebook, place, has_come: false, inputs: 0 }
    }

    /// Another direction every 0.7 seconds, mostly at a run, and a jump now and then: against walls and edges, too.
    fn wish(&self) -> Input {
        let number = self.inputs + 37 * self.place;
        let angle = (number / 90) as f32 * 2.2;
        let input = Input::new([angle.sin(), angle.cos()], angle, 0.0);
        let input = if (number / 300).is_multiple_of(3) { input.and_walk() } else { input };
        if number.is_multiple_of(230) { input.and_jump() } else { input }
    }
}

impl Behaviour for Runner {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        let due = client.due_inputs(now);
        if client.world().is_none_or(|world| world.name != MATCH) {
            return;
        }
        let Some(team) = client.own_state::<Player>().map(|own| own.state.team) else { return };
        if !std::mem::replace(&mut self.has_come, true) {
            self.steering.left_world();
        }
        let notebook = self.notebook.clone();
        let mut notes = notebook.open();
        notes.corrections_m.extend(self.steering.hear(now, client));
        for _ in 0..due {
            let input = self.wish();
            let Ok(number) = client.send_input(now, &input) else {
                notes.refused += 1;
                continue;
            };
            self.steering.apply(number, &input, Phase::WarmUp, Side::of(team, TeamId::One));
            self.inputs += 1;
            notes.predicted_ticks += 1;
        }
        notes.at = self.steering.motion().map_or(Vec3::ZERO, |motion| motion.at);
    }
}
