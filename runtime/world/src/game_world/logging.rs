//! Logging: all that enters a tick is written down before the systems see it, if the host wants that (`input_log`).
//!
//! On the world's own thread. Allocates until the log has the size that its owner lets it grow to. Cost: a copy of what
//! clients said, and 16 bytes for the tick.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::GameWorld;
use crate::{
    inbox::Inbox,
    input_log::{InputLog, LogStart, SharedInputLog},
    saving::{SaveAnswers, SaveStore},
    tick_resources::{Arrivals, Departures, ScanRange, WorldMessages},
    tunable::TunedInWorld,
};

impl GameWorld {
    /// From the next tick on all that enters is written to this log, which begins anew with the world as it is now. Takes
    /// the place of an earlier one.
    pub fn log_into(&mut self, log: InputLog, seed: u64) -> SharedInputLog {
        let log = Arc::new(Mutex::new(log));
        self.log = Some(log.clone());
        self.restart_log(seed);
        log
    }

    /// Its log, with all ticks since it was begun and what had entered the one that was not finished.
    pub fn take_log(&mut self) -> Option<InputLog> {
        let log = self.log.take()?;
        Some(mem::replace(&mut *lock(&log), InputLog::empty()))
    }

    /// Its log, for another thread to read.
    pub fn shared_log(&self) -> Option<SharedInputLog> {
        self.log.clone()
    }

    /// Its log. On the world's own thread; not to be kept while the world does anything.
    pub fn log(&self) -> Option<MutexGuard<'_, InputLog>> {
        self.log.as_ref().map(lock)
    }

    /// The log begins anew, with the world as it is now. What rules and tunables are in force, and
    /// whether the store of the saves is away, is in no checkpoint, so it stands in front of the first tick.
    pub fn restart_log(&mut self, seed: u64) {
        let start = self.log_start(seed);
        let Some(mut log) = self.log() else { return };
        log.restart(start);
        if let Some(tuned) = self.ecs.get_resource::<TunedInWorld>() {
            log.tunables(&tuned.0);
        }
        if self.saving.store.is_away {
            log.save_store(SaveStore { has_turned: false, ..self.saving.store });
        }
        drop(log);
        if let Some(scan) = self.ecs.get_resource::<ScanRange>() {
            self.set_scan_range(scan.ruled_m);
        }
    }

    fn log_start(&self, seed: u64) -> LogStart {
        let schema = self.replication.schema().hash();
        LogStart { rate: self.rate, tick: self.tick.wrapping_sub(1), seed, schema }
    }

    /// After mail was taken in, and before the systems run.
    pub(super) fn log_what_entered(&mut self) {
        let Some(mut log) = self.log() else { return };
        log.go_on_to(self.tick);
        let (ecs, filled) = (&self.ecs, self.filled);
        if filled.arrivals {
            ecs.resource::<Arrivals>().0.iter().for_each(|arrival| log.arrival(arrival));
        }
        if filled.departures {
            ecs.resource::<Departures>().0.iter().for_each(|client| log.departure(*client));
        }
        if filled.messages {
            ecs.resource::<WorldMessages>().0.iter().for_each(|message| log.world_message(message));
        }
        if self.saving.answers_are_there {
            log.save_answers(&ecs.resource::<SaveAnswers>().0);
        }
        if filled.inbox {
            ecs.resource::<Inbox>().iter().for_each(|message| log.message(&message));
        }
        log.all_has_entered();
    }
}

/// Of one whose thread died in it, what was written before is as good as it was.
fn lock(log: &SharedInputLog) -> MutexGuard<'_, InputLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
