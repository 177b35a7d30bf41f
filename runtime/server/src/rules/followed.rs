//! Rules that are followed: in force again when their file changes, and when somebody asks for it.
//!
//! A thread of low priority looks at the file once a second; the console's `rules.reload` reads it at once, and says
//! what is wrong with it; `rules.set` says one of them otherwise until then, and `rules.list` tells all. Whatever is wrong, the rules before stay in force.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{RecorderControl, log_category, log_info, rules::Rules};
use throng_replication::rules::ReplicationRules;

use super::{
    RuleInForce, RulesFile, ServerRules,
    in_force::{Complete, list},
    said::{Place, SaidRules, change_recorders, keys},
};
use crate::settings::SettingsError;

log_category!(RULES = "server.rules");

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A rules file that is followed for as long as the process lives. [`Server::start_recorder`] makes one.
///
/// [`Server::start_recorder`]: crate::Server::start_recorder
pub struct FollowedRules {
    /// Held while the file is read and its rules come into force, so that two readings cannot overtake each other.
    held: Mutex<Held>,
    force: Force,
}

struct Held {
    file: RulesFile,
    /// As the file had them when it was last read.
    in_file: ServerRules,
    /// Since then.
    said: SaidRules,
}

/// Takes the rules of a file, and what was said since.
type PutBoth = dyn Fn(&ServerRules, &ServerRules) + Send + Sync;

/// What puts rules into force.
pub(crate) struct Force {
    /// Log levels and replication.
    pub levels_and_replication: Box<PutBoth>,
    /// Completes a file's rules for the recorder.
    pub complete: Box<dyn Fn(Rules) -> Rules + Send + Sync>,
    /// None where it is off.
    pub recorder: Option<RecorderControl>,
    /// What holds of replication where the file says nothing.
    pub game: ReplicationRules,
}

impl Force {
    fn put(&self, in_file: &ServerRules) {
        (self.levels_and_replication)(in_file, &ServerRules::default());
        if let Some(recorder) = &self.recorder {
            recorder.set_rules((self.complete)(in_file.recorder.clone()));
        }
    }
}

impl FollowedRules {
    /// Begins to follow; `in_file`, the rules that are in `file` now, are the caller's to put into force. Fails when the host
    /// has no room for another thread.
    pub(crate) fn follow(file: RulesFile, in_file: ServerRules, force: Force) -> std::io::Result<Arc<Self>> {
        let held = Held { file, in_file, said: SaidRules::default() };
        let rules = Arc::new(Self { held: Mutex::new(held), force });
        let followed = rules.clone();
        spawn_named("rules", Priority::Low, move || {
            loop {
                std::thread::sleep(LOOK_EVERY);
                followed.look();
            }
        })?;
        Ok(rules)
    }

    /// What is wrong with a changed file is logged where it is read.
    fn look(&self) {
        let mut held = self.held();
        if let Some(Ok(rules)) = held.file.changed() {
            self.put(&mut held, rules);
            log_info!(RULES, "new rules are in force");
        }
    }

    /// Reads the file and puts its rules into force, changed or not. Returns where it is. What is wrong with it is told
    /// to the caller alone, and the rules before stay in force. May wait for the disk.
    pub fn reload(&self) -> Result<PathBuf, SettingsError> {
        let mut held = self.held();
        let rules = held.file.reload()?;
        self.put(&mut held, rules);
        log_info!(RULES, "the rules were read again and are in force");
        Ok(held.file.path().to_owned())
    }

    fn put(&self, held: &mut Held, in_file: ServerRules) {
        self.force.put(&in_file);
        (held.in_file, held.said) = (in_file, SaidRules::default());
    }

    /// Puts one rule into force, until the file changes or is read again, whatever the file says of it. `key` as in the file,
    /// with its section before it: `triggers.frame.cooldown_s`; `who` is for the log. The error says what is wrong with it, and
    /// then all is as before. Radii, tiers and budgets are not changed this way.
    pub fn set(&self, key: &str, value: &str, who: &str) -> Result<(), String> {
        let place = Place::of(key)?;
        let mut held = self.held();
        let names = held.file.names();
        let now = self.force.recorder.as_ref().map(RecorderControl::rules).unwrap_or_default();
        match change_recorders(&now, &place, value, names) {
            Some(changed) => {
                let changed = changed?;
                let recorder = self.force.recorder.as_ref().ok_or("the recorder is off: see [recorder] on")?;
                recorder.set_rules(changed);
            }
            None => {
                let said = held.said.with(&place, value);
                (self.force.levels_and_replication)(&held.in_file, &said.read(names)?);
                held.said = said;
            }
        }
        log_info!(RULES, key, value, who, "a rule was set, until the rules are read again");
        Ok(())
    }

    /// All rules as they are now, in the order of their sections. The recorder's are left out where it is off.
    pub fn list(&self) -> Vec<RuleInForce> {
        let held = self.held();
        let Held { file, in_file, said } = &*held;
        // It was read when it was said.
        let said = said.read(file.names()).unwrap_or_default();
        let recorder = self.force.recorder.as_ref();
        let of_file = Complete {
            recorder: recorder.map(|_| (self.force.complete)(in_file.recorder.clone())),
            replication: in_file.replication.complete(self.force.game.clone()),
            log_levels: in_file.log_levels.clone(),
        };
        let now = Complete {
            recorder: recorder.map(RecorderControl::rules),
            replication: said.replication.complete(of_file.replication.clone()),
            log_levels: said.log_levels_over(in_file),
        };
        list(&now, &of_file, [&in_file.written, &said.written], file.names())
    }

    /// What can be set, but for the categories of the log.
    pub fn keys(&self) -> Vec<String> {
        keys(self.held().file.names())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
