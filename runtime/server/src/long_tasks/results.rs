//! Results: what long tasks of worlds have brought, on its way to their worlds.
//!
//! Each task that a world has started brings exactly one message to it: the result, or that there is none. A guard inside
//! of the task sees to that, whatever becomes of it.

use std::sync::Arc;

use throng_platform::time::Nanos;
use throng_scheduler::{LongTask, LongTasks, Results};
use throng_world::{
    ids::WorldId,
    long_task::{LongTaskLoss, LongTaskLost, LongTaskNumber, WorldLongTask},
    transfer::WorldMessage,
};

/// Tasks of worlds that are on their way. Owned by the frame's thread.
#[derive(Default)]
pub(crate) struct OfWorlds {
    brought: Arc<Results<Brought>>,
    /// Tasks whose result has not been taken.
    owed: usize,
    /// For its memory.
    taken: Vec<Brought>,
}

/// What a task brought.
struct Brought {
    world: WorldId,
    message: WorldMessage,
}

impl OfWorlds {
    /// Starts a task of a world's. In any case something comes of it in a later frame.
    pub fn start(&mut self, world: WorldId, task: WorldLongTask, tasks: &LongTasks) {
        let WorldLongTask { number, terms, run } = task;
        self.owed += 1;
        let mut owed = Owed { world, number, loss: Some(LongTaskLoss::NotStarted), brought: self.brought.clone() };
        let run = move || {
            owed.lose(LongTaskLoss::Panicked);
            match run() {
                Ok(bytes) => owed.bring(WorldMessage::from_packed(world, bytes)),
                Err(_) => owed.lose(LongTaskLoss::BreaksLimits),
            }
        };
        let deadline = tasks.now().saturating_add(terms.within);
        let cost = (terms.cost > Nanos::ZERO).then_some(terms.cost);
        // Refused, it is dropped, and its guard says so.
        let kind = tasks.kind(terms.kind);
        let _ =
            tasks.start(LongTask { kind, deadline, cost, frees: None, about: Some(world.bits()), run: Box::new(run) });
    }

    /// Hands over what has come since this was last asked, in the order in which it came.
    pub fn deliver(&mut self, mut to: impl FnMut(WorldId, WorldMessage)) {
        if self.owed == 0 {
            return;
        }
        self.brought.take(&mut self.taken);
        self.owed -= self.taken.len();
        self.taken.drain(..).for_each(|Brought { world, message }| to(world, message));
    }

    /// Whether something is still to come.
    pub fn is_waiting(&self) -> bool {
        self.owed > 0
    }
}

/// The message that a task owes its world.
struct Owed {
    world: WorldId,
    number: LongTaskNumber,
    /// Why there is no result; none once there is.
    loss: Option<LongTaskLoss>,
    brought: Arc<Results<Brought>>,
}

impl Owed {
    /// Unless something better comes of it.
    fn lose(&mut self, loss: LongTaskLoss) {
        self.loss = Some(loss);
    }

    fn bring(&mut self, message: WorldMessage) {
        self.loss = None;
        self.brought.put(Brought { world: self.world, message });
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if let Some(loss) = self.loss
            && let Ok(message) = WorldMessage::of(self.world, &LongTaskLost { number: self.number.0, loss })
        {
            self.bring(message);
        }
    }
}
