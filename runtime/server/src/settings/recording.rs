//! `[recording]`: whether what enters the worlds is kept for a replay, where, and how much of it.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Checks, Section};

/// `[recording]`: see docs/recordings.md.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordingSettings {
    /// The folder of recordings, made if there is none; beside the settings, unless its path is absolute. Default none:
    /// nothing is recorded. A recording holds what players wrote: it is to be kept and given away as such.
    /// On a disk that stalls → parts are lost and counted; frames never wait for it.
    pub folder: Option<PathBuf>,
    /// Record from the start on. Default true; false → when the console's `recording.start` says so.
    pub at_start: bool,
    /// All recordings in the folder together [MiB, 64 to 16,777,216]. Default 1,024. The oldest segments go.
    /// Too low → little of the past can be replayed; too high → the disk fills.
    pub max_mb: u32,
    /// A segment is so long [s, 1 to 3,600]. Default 60. Each has a checkpoint of every world, after which it can be replayed
    /// alone. Too low → checkpoints are most of what is written; too high → dropping one drops much.
    pub segment_s: u32,
    /// Between two hashes of a world's state, by which a replay is held [s, 0 to 3,600]. Default 5; 0 = in every tick, to find
    /// the tick in which a replay diverges. Too low → ticks take longer, 60 ns for each component that counts; too
    /// high → a replay that diverges tells so late.
    pub hash_period_s: u32,
    /// What may wait for the recording's thread [MiB, 1 to 16,384]. Default 64.
    /// Too low → parts are lost when the disk stalls; too high → memory, while it does.
    pub queue_mb: u32,
}

impl Default for RecordingSettings {
    fn default() -> Self {
        Self { folder: None, at_start: true, max_mb: 1_024, segment_s: 60, hash_period_s: 5, queue_mb: 64 }
    }
}

impl Section for RecordingSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("max_mb", self.max_mb, 64..=16_777_216, "MiB");
        checks.range("segment_s", self.segment_s, 1..=3_600, "s");
        checks.range("hash_period_s", self.hash_period_s, 0..=3_600, "s");
        checks.range("queue_mb", self.queue_mb, 1..=16_384, "MiB");
        if self.folder.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            checks.mistake("folder", "names nothing; write a path, or remove the key");
        }
    }
}
