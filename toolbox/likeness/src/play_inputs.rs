//! A bot that says again what a recorded player said, when that said it.
//!
//! Bytes as they were, by a client of this time: numbers, stays and what was shown are the client's own. The server's worlds go
//! another way than the recorded ones, so the player may walk into a wall that was a door then: what comes is the same load of
//! packets and messages, and not the same game. What is due between two worlds is lost, as an input would be.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::{Client, SendInputError, SendMessageError};
use throng_platform::time::Nanos;

use crate::inputs::RecordedInputs;

/// Nobody is in a world yet.
const NOT_BEGUN: u64 = u64::MAX;

/// Makes bots that say what was recorded, all by one clock.
#[derive(Clone)]
pub struct PlaysInputs {
    inputs: Arc<RecordedInputs>,
    /// When the first of them was in a world (ns). Written once, by whichever is first; nothing depends on the order, so relaxed
    /// order is enough.
    begun: Arc<AtomicU64>,
    player: usize,
    next: usize,
    counts: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    inputs: u64,
    requests: u64,
    lost: u64,
    unfit: u64,
    is_done: bool,
}

impl PlaysInputs {
    /// The first player's bot, from which [`bot`](Self::bot) makes those of all. Their clock starts when the first of them is in a world.
    pub fn new(inputs: Arc<RecordedInputs>) -> Self {
        let begun = Arc::new(AtomicU64::new(NOT_BEGUN));
        Self { inputs, begun, player: 0, next: 0, counts: Counts::default() }
    }

    /// The bot that says what the recorded player with this number said, modulo their count.
    pub fn bot(&self, player: usize) -> Self {
        Self { player: player % self.inputs.players().max(1), ..self.clone() }
    }

    fn begun(&self, now: Nanos) -> Nanos {
        let exchanged = self.begun.compare_exchange(NOT_BEGUN, now.0, Ordering::Relaxed, Ordering::Relaxed);
        Nanos(exchanged.map_or_else(|begun| begun, |_| now.0))
    }
}

impl Behaviour for PlaysInputs {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        if self.begun.load(Ordering::Relaxed) == NOT_BEGUN && client.world().is_none() {
            return;
        }
        let since_ms = now.saturating_sub(self.begun(now)).0 / 1_000_000;
        let (inputs, steps) = (&self.inputs, self.inputs.steps(self.player));
        while let Some(step) = steps.get(self.next).filter(|step| u64::from(step.at_ms) <= since_ms) {
            self.next += 1;
            let packed = inputs.bytes(step);
            let counts = &mut self.counts;
            let count = if step.is_request {
                match client.request_packed(step.kind, packed) {
                    Ok(()) => &mut counts.requests,
                    Err(SendMessageError::Value(_) | SendMessageError::NotInSchema(_)) => &mut counts.unfit,
                    Err(_) => &mut counts.lost,
                }
            } else {
                match client.send_packed_input(now, step.kind, packed) {
                    Ok(_) => &mut counts.inputs,
                    Err(SendInputError::NotInWorld) => &mut counts.lost,
                    Err(_) => &mut counts.unfit,
                }
            };
            *count += 1;
        }
        self.counts.is_done = self.next == steps.len();
    }

    fn counters(&self) -> BehaviourCounters {
        let Counts { inputs, requests, lost, unfit, is_done } = self.counts;
        BehaviourCounters::new()
            .with("inputs_played", inputs)
            .with("requests_played", requests)
            .with("lost_between_worlds", lost)
            .with("unfit", unfit)
            .with("players_played_out", is_done.into())
    }
}
