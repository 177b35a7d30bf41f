//! What is told of saves: how they stand, and that everything is saved.

/// How saving stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SavesStatus {
    /// The store has failed and is being opened anew, is too slow, or stands still.
    pub is_down: bool,
    /// Worlds that have changed since they were saved.
    pub worlds_unsaved: usize,
    /// Bytes that the writer has not taken yet.
    pub waiting_bytes: u64,
    /// Bytes that it has, and that are not on disk.
    pub queued_bytes: u64,
    /// Players that this process may write.
    pub leases: usize,
    /// Commits on disk since the start.
    pub commits: u64,
    /// What the newest transaction took, and the longest (ms).
    pub newest_batch_ms: u64,
    pub longest_batch_ms: u64,
}

/// Everything that had changed is on disk, but for some worlds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SavedNow {
    /// Commits on disk since the start.
    pub commits: u64,
    /// Worlds that hang, have not come home in time, cannot be saved as they are, or have gone meanwhile with what they had,
    /// as after a panic; by number: they are as at the save before. At most [`WORLDS_MISSING_MAX`], the first ones.
    pub worlds_missing: Vec<u32>,
}

/// So many worlds that were not saved are named at most.
pub const WORLDS_MISSING_MAX: usize = 100;
