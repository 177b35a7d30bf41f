//! Remake: builds a world that panicked once more, on the maker's thread, and leads it to where it was ([`crate::reload`]).
//!
//! Its plan, its newest checkpoint and its log are all that it needs. If the log cannot be done without a panic, the world is
//! as it was at its checkpoint; if not even that can be loaded, there is none. A world that is saved is not taken back to its
//! checkpoint: players who have left it since have with them what they got in it. There the log is done as it was, which its newest
//! cut tells, or there is none, and everybody goes back to the last cut.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
};

use throng_net::protocol::ClientId;
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error};
use throng_replication::{InterestSettings, ReplicationRules, Schema};
use throng_world::{
    Client, GameWorld,
    checkpoint::PlayerEntities,
    ids::{ClientKey, WorldId},
    input_log::{Entry, InputLogReader},
    saving::{Cut, SavesLeft},
    tick_resources::Arrival,
    transfer::WorldMessage,
    world_builder::Kind,
};

use crate::{lifecycle::NewWorld, world_record::LastRecord};

log_category!(pub(crate) RELOADS = "server.reloads");

/// Worlds that are being made again, and the way back from the maker's thread.
pub(crate) struct Reloads {
    pub waiting: Vec<Waiting>,
    pub done: (Sender<Done>, Receiver<Done>),
}

impl Default for Reloads {
    fn default() -> Self {
        Self { waiting: Vec::new(), done: channel() }
    }
}

/// A world that was to be made again; none if it could not be.
type Done = (WorldId, Option<Box<Remade>>);

/// What waits for a world.
pub(crate) struct Waiting {
    pub id: WorldId,
    pub since: Nanos,
    #[expect(clippy::vec_box, reason = "a client moves as a pointer, from world to world")]
    pub clients: Vec<Box<Client>>,
}

/// What a world is made again from.
pub(crate) struct Order {
    pub id: WorldId,
    pub kind: Arc<Mutex<Kind>>,
    pub plan: NewWorld,
    pub schema: Arc<Schema>,
    pub interest: InterestSettings,
    pub rules: ReplicationRules,
    pub record: LastRecord,
    /// Of a world that is saved.
    pub saves: Option<SavesOrder>,
}

/// What a world that is saved is to take up.
pub(crate) struct SavesOrder {
    pub left: SavesLeft,
    /// Its clients.
    pub players: Vec<(ClientKey, ClientId)>,
    /// The world itself is saved, too.
    pub of_world: bool,
}

/// A world as it was before the tick that failed.
pub(crate) struct Remade {
    pub world: GameWorld,
    pub checkpoint: Vec<u8>,
    /// How many ticks were done again; none: not even the log could be, and these are lost.
    pub replayed: Option<u32>,
    /// Who came since the checkpoint, for those whom the world does not know.
    pub arrivals: Vec<Arrival>,
    /// What other worlds said in the tick that failed.
    pub messages: Vec<WorldMessage>,
    /// Of a world that is saved: it is to be saved as it is now.
    pub cut: Option<Box<Cut>>,
}

impl Order {
    /// Makes the world. `None` if it cannot be: the log says why.
    pub fn carry_out(mut self) -> Option<Box<Remade>> {
        // What a world that is saved did since its checkpoint others have with them: it cannot forget that alone.
        let tries: &[bool] = if self.saves.is_some() { &[true] } else { &[true, false] };
        for &with_log in tries {
            let saves = self.saves.take();
            match catch_unwind(AssertUnwindSafe(|| self.make(with_log, saves))) {
                Ok(Ok(remade)) => return Some(Box::new(remade)),
                Ok(Err(error)) => self.tell(with_log, &error),
                Err(_) => self.tell(with_log, "it panicked"),
            }
        }
        None
    }

    fn make(&self, with_log: bool, saves: Option<SavesOrder>) -> Result<Remade, String> {
        let Self { id, kind, plan, schema, interest, rules, record, saves: _ } = self;
        let built = {
            // Others wait for it who want a world of the kind.
            let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
            kind.build_world(*id, plan.seed, plan.parameters.as_deref(), schema, interest)
        };
        let mut world = built.map_err(|error| error.to_string())?;
        world.set_rules(rules);
        if !record.checkpoint.is_empty() {
            let loaded = world.load_checkpoint(&record.checkpoint, PlayerEntities::Stay);
            loaded.map_err(|error| error.to_string())?;
        }
        let log = record.log.whole_ticks();
        if let Some(saves) = &saves {
            world.keep_saves(true, saves.of_world);
        }
        let replayed = match (with_log, &saves) {
            (true, Some(saves)) => Some(world.replay_saved(log, &saves.left).map_err(|error| error.to_string())?),
            (true, None) => Some(world.replay(log).map_err(|error| error.to_string())?),
            (false, _) => None,
        };
        let cut = match saves {
            Some(SavesOrder { left, players, .. }) => Some(world.take_up_saves(left, &players)?),
            None => None,
        };
        let mut checkpoint = Vec::new();
        world.checkpoint(PlayerEntities::Stay, &mut checkpoint).map_err(|error| error.to_string())?;
        let (mut arrivals, mut messages) = (Vec::new(), Vec::new());
        let ticks = InputLogReader::new(log).into_iter().flatten().filter_map(Result::ok);
        let since = ticks.flat_map(|tick| tick.entries().filter_map(Result::ok));
        for entry in since.chain(record.log.unfinished_tick().filter_map(Result::ok)) {
            if let Entry::Arrival(arrival) = entry {
                arrivals.push(arrival.to_arrival());
            }
        }
        for entry in record.log.unfinished_tick().filter_map(Result::ok) {
            match entry {
                Entry::WorldMessage { from, bytes } => messages.push(WorldMessage::from_packed(from, bytes.to_vec())),
                // The game hears of it in the tick that is done again.
                Entry::SaveAnswers(answers) => world.note_save_answers(&answers.iter().collect::<Vec<_>>()),
                _ => {}
            }
        }
        Ok(Remade { world, checkpoint, replayed, arrivals, messages, cut })
    }

    fn tell(&self, with_log: bool, error: &str) {
        let log_bytes = self.record.log.whole_ticks().len();
        log_error!(RELOADS, world = %self.id, with_log, log_bytes, error, "a world that panicked could not be made again");
    }
}
