//! The plan of a preflight: what is compared, and for how long.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One of the two builds. What there is of both in a list is in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Base,
    Change,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Base, Self::Change];

    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Change => "change",
        }
    }

    /// By which the command line names it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Base => "--base",
            Self::Change => "--change",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to compare.
#[derive(Debug, Clone)]
pub struct PreflightPlan {
    pub base: PathBuf,
    pub change: PathBuf,
    /// What is replayed, if bots do not play: file or folder.
    pub recording: Option<PathBuf>,
    /// What both read of what may change while runs are repeated: settings and the rules that these name, or the recording.
    pub files_read: Vec<PathBuf>,
    /// For both, and for each alone (a test switch).
    pub arguments: Vec<String>,
    pub base_arguments: Vec<String>,
    pub change_arguments: Vec<String>,
    /// All pairs together (s); the last one is begun only if there is time for it.
    pub seconds: u32,
    /// What one pair is measured for (s), its start left out. Too short → its start takes longer than it; too long → few pairs, which
    /// differ by the luck of their processes.
    pub pair_s: f64,
    /// Frames of a step; of a recording, so many ticks for each world that ticks at one time. Too few → the cost of switching between
    /// the processes is measured; too many → the host changes between the two.
    pub frames_per_step: u32,
    /// Whether valgrind is to count instructions, where the processor does not.
    pub valgrind: bool,
}

impl PreflightPlan {
    pub(super) fn per(&self) -> Per {
        if self.recording.is_some() { Per::Tick } else { Per::Frame }
    }

    pub(super) fn program(&self, side: Side) -> &Path {
        match side {
            Side::Base => &self.base,
            Side::Change => &self.change,
        }
    }

    /// Those of both, and its own.
    pub(super) fn arguments_of(&self, side: Side) -> Vec<String> {
        let own = match side {
            Side::Base => &self.base_arguments,
            Side::Change => &self.change_arguments,
        };
        self.arguments.iter().chain(own).cloned().collect()
    }

    /// Of builds that are in no folder.
    #[cfg(test)]
    pub(super) fn example() -> Self {
        Self {
            base: "old/throng".into(),
            change: "new/throng".into(),
            recording: None,
            files_read: Vec::new(),
            arguments: Vec::new(),
            base_arguments: Vec::new(),
            change_arguments: Vec::new(),
            seconds: 30,
            pair_s: 1.0,
            frames_per_step: 10,
            valgrind: false,
        }
    }
}

/// What times and counts are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    Frame,
    /// Of one world of a recording.
    Tick,
}

impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "frame",
            Self::Tick => "tick",
        })
    }
}

/// Of a pair, so that its extremes can be trimmed.
pub(super) const STEPS_MIN: u32 = 20;
