//! Rules: budgets, triggers, log levels and who is told what how often, read from a file of their own and read again
//! while the server runs.
//!
//! They are what an operator wants to change in the middle of a bad evening: at which frame length to save a capture,
//! what a subsystem may take, which log category to turn up, how far a say is heard. So they do not stand in
//! `throng.toml`, which is read once, but in the file that `[recorder] rules` names. Mistakes are told as those of the
//! settings are, all at once, each with its line and what to write instead:
//!
//! ```text
//! rules.toml:7: [triggers.frame] over_ms: 0 is too low; it may be 0.001 to 60000 ms
//! ```
//!
//! Everything has a default, so an empty file is a valid one. A file that cannot be read or is wrong changes nothing:
//! the rules before it stay in force ([`RulesFile`]).
//!
//! Components, events and kinds of worlds are checked against the names of the running game ([`RuleNames`]); what a file
//! says of components and events goes on top of the game's own rules.
//!
//! Reading allocates and touches the disk: at start, and then on a low-priority thread. Cost: one look at the file's
//! metadata a second.

mod budgets;
mod caps;
mod captures;
mod file;
mod followed;
mod in_force;
mod levels;
mod replication;
mod said;
mod triggers;

use std::path::Path;

use throng_profiler::log::Level;
use throng_profiler::rules::Rules;

use crate::settings::document::Document;
use crate::settings::{Mistake, SettingsError};

pub use caps::RangeCaps;
pub use file::RulesFile;
pub use followed::FollowedRules;
pub(crate) use followed::Force;
pub use in_force::{RuleFrom, RuleInForce};
pub use replication::{ReplicationFileRules, RuleNames};

use captures::Captures;
use levels::Levels;

/// The sections that a rules file may have. A new one is a name here and a line in [`ServerRules::parse`].
const SECTIONS: [&str; 23] = [
    "budgets.scopes_us",
    "budgets.subsystems_us",
    "budgets.KIND.scopes_us",
    "budgets.KIND.subsystems_us",
    "budgets.KIND.per_tick_us",
    "triggers.manual",
    "triggers.frame",
    "triggers.tick",
    "triggers.workers-busy",
    "triggers.stuck-tick",
    "triggers.subsystem",
    "triggers.scope",
    "triggers.lock-wait",
    "triggers.run-queue",
    "triggers.memory-rate",
    "triggers.large-allocation",
    "triggers.leak",
    "triggers.crash",
    "captures",
    "log",
    "replication",
    "components",
    "events",
];

/// Everything that a rules file says, checked; defaults where it says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerRules {
    /// Budgets and triggers, for the flight recorder.
    pub recorder: Rules,
    /// Levels by category, for [`throng_profiler::log::set_levels`].
    pub log_levels: Vec<(String, Level)>,
    /// Ranges, tiers and throttles, to be put on top of the game's.
    pub replication: ReplicationFileRules,
    /// What is without effect. It is told, and the rest is in force.
    pub warnings: Vec<Mistake>,
    /// The keys that are written, each with its section before it.
    pub(crate) written: Vec<String>,
    /// As it was written, without comments.
    pub(crate) text: String,
}

impl ServerRules {
    /// Reads and checks a file. All of its mistakes are in the error, in the order of their lines.
    pub fn load(path: &Path, names: &RuleNames) -> Result<Self, SettingsError> {
        let text = crate::settings::read_file(path, "in [recorder] rules")?;
        Self::parse(&path.display().to_string(), &text, names)
    }

    /// As [`load`](Self::load), from text already in memory; `file` is the name that mistakes show.
    pub fn parse(file: &str, text: &str, names: &RuleNames) -> Result<Self, SettingsError> {
        Self::parse_over(Rules::default(), file, text, names)
    }

    /// Levels by category: these, and those of `before` of which these say nothing.
    pub(crate) fn log_levels_over(&self, before: &ServerRules) -> Vec<(String, Level)> {
        let is_said = |name: &str| self.log_levels.iter().any(|(other, _)| other == name);
        let kept = before.log_levels.iter().filter(|(name, _)| !is_said(name));
        kept.chain(&self.log_levels).cloned().collect()
    }

    /// As [`parse`](Self::parse), where triggers and captures are as in `recorder` if the text says nothing of them.
    fn parse_over(mut recorder: Rules, file: &str, text: &str, names: &RuleNames) -> Result<Self, SettingsError> {
        let document = Document::parse(file, text)?;
        let mut mistakes = Vec::new();
        document.check_sections(&SECTIONS, &mut mistakes);
        let mut warnings = Vec::new();
        budgets::read(&document, names, &mut recorder, &mut mistakes, &mut warnings);
        triggers::read(&document, &mut recorder, &mut mistakes);
        document.section::<Captures>("captures", &mut mistakes).apply(&mut recorder);
        let levels: Levels = document.section("log", &mut mistakes);
        let replication = replication::read(&document, names, &mut mistakes);
        SettingsError::unless_empty(mistakes)?;
        let written = document.written_keys();
        let text = crate::settings::without_comments(text);
        Ok(Self { recorder, log_levels: levels.into_list(), replication, warnings, written, text })
    }
}

#[cfg(test)]
mod tests;
