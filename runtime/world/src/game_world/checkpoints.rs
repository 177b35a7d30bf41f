//! Checkpoints: this world's state as bytes, and from bytes (`checkpoint`).

use super::{GameWorld, own};
use crate::{
    checkpoint::{self, CheckpointError, LoadError, Loaded, Parts, PlayerEntities},
    events::Events,
    tick_resources::{Departures, Outbox, TickInfo},
};

impl GameWorld {
    /// Whether its kind has registered what a checkpoint holds.
    pub fn keeps_checkpoints(&self) -> bool {
        self.checkpoints.is_in_use()
    }

    /// Appends all that the next tick reads to `out`, which keeps its memory and is as it was after an error. Between two
    /// ticks, in a reactive world after one and before its next step; the world goes on as if nobody had asked.
    ///
    /// # Errors
    /// If the kind registers nothing, or a value breaks its type's limits.
    pub fn checkpoint(&mut self, players: PlayerEntities, out: &mut Vec<u8>) -> Result<(), CheckpointError> {
        self.checkpoint_after(self.tick, players, out).map(drop)
    }

    /// The same of the world as it is after so many ticks: at the end of a tick that one is not counted yet. Returns a checksum of
    /// what the game can tell of it.
    pub(super) fn checkpoint_after(
        &mut self,
        ticks: u32,
        players: PlayerEntities,
        out: &mut Vec<u8>,
    ) -> Result<u32, CheckpointError> {
        let registry = self.checkpoints.clone();
        checkpoint::save(&mut Parts { tick: ticks, ..self.parts(&registry) }, players, out)
    }

    /// Becomes the world of a checkpoint: one that was built from the same kind, seed and parameters, and has not ticked.
    /// Rules and tunables are not in it: their owner gives them to it after this. Clients come afterwards, too: those whose
    /// players stayed with [`Self::put_back`].
    ///
    /// # Errors
    /// If the bytes are no checkpoint of such a world. Then the world is not to be ticked.
    pub fn load_checkpoint(&mut self, bytes: &[u8], players: PlayerEntities) -> Result<(), LoadError> {
        let registry = self.checkpoints.clone();
        let Loaded { tick, save_requests, has_departures, left_out } =
            checkpoint::load(&mut self.parts(&registry), bytes, players)?;
        self.tick = tick;
        if let Some(reactive) = &mut self.reactive {
            reactive.begin_at(tick);
        }
        self.is_as_built = false;
        self.ecs.resource_mut::<TickInfo>().tick = tick;
        if let Some(time) = &self.time {
            time.restore(&mut self.ecs, tick);
        }
        if tick > 0 {
            // What the build had to say was said by the world that was saved.
            self.ecs.resource_mut::<Outbox>().forget(tick, save_requests);
            self.ecs.resource_mut::<Events>().told.clear();
        }
        let departures = std::mem::replace(&mut self.ecs.resource_mut::<Departures>().0, left_out);
        registry.after_load.iter().try_for_each(|rebuild| rebuild(&mut self.ecs))?;
        self.ecs.resource_mut::<Departures>().0 = departures;
        self.filled.departures = has_departures;
        self.ecs.clear_trackers();
        Ok(())
    }

    /// What its kind keeps.
    pub(crate) fn checkpoints(&self) -> &checkpoint::Registry {
        &self.checkpoints
    }

    fn parts<'a>(&'a mut self, registry: &'a checkpoint::Registry) -> Parts<'a> {
        Parts {
            name: &self.name,
            rate: self.rate,
            tick: self.tick,
            ecs: &mut self.ecs,
            registry,
            collector: &mut self.collector,
            replication: own(&mut self.replication),
        }
    }
}
