//! Rules that are followed: in force again when their file changes, and when somebody asks for it.
//!
//! A thread of low priority looks at the file once a second; the console's `rules.reload` reads it at once, and says
//! what is wrong with it. Whatever is wrong, the rules before stay in force.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{log_category, log_info};

use super::{RulesFile, ServerRules};
use crate::settings::SettingsError;

log_category!(RULES = "server.rules");

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A rules file that is followed for as long as the process lives. [`Server::start_recorder`] makes one.
///
/// [`Server::start_recorder`]: crate::Server::start_recorder
pub struct FollowedRules {
    /// Held while the file is read and its rules come into force, so that two readings cannot overtake each other.
    file: Mutex<RulesFile>,
    put_into_force: Box<dyn Fn(ServerRules) + Send + Sync>,
}

impl FollowedRules {
    /// Begins to follow; the rules that are in `file` now are the caller's to put into force. Fails when the host has no
    /// room for another thread.
    pub(crate) fn follow(
        file: RulesFile,
        put_into_force: impl Fn(ServerRules) + Send + Sync + 'static,
    ) -> std::io::Result<Arc<Self>> {
        let rules = Arc::new(Self { file: Mutex::new(file), put_into_force: Box::new(put_into_force) });
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
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Ok(rules)) = file.changed() {
            (self.put_into_force)(rules);
            log_info!(RULES, "new rules are in force");
        }
    }

    /// Reads the file and puts its rules into force, changed or not. Returns where it is. What is wrong with it is told
    /// to the caller alone, and the rules before stay in force. May wait for the disk.
    pub fn reload(&self) -> Result<PathBuf, SettingsError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        (self.put_into_force)(file.reload()?);
        log_info!(RULES, "the rules were read again and are in force");
        Ok(file.path().to_owned())
    }
}
