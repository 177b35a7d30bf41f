//! A capture that somebody asks for: the request to the recorder's thread, and its answer, [`Saved`] or [`SaveError`].

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::triggers::Fired;
use crate::world_kind::KindNumber;

/// Writing a capture takes a second at most; a minute means that the disk hangs.
pub(crate) const SAVE_WITHIN: Duration = Duration::from_secs(60);

/// A capture that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub path: PathBuf,
    pub size_bytes: u64,
}

/// Why there is no capture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SaveError {
    #[error("this server has no folder for captures: set [recorder] captures, or start it with --captures DIR")]
    NoFolder,
    #[error("the recorder has stopped")]
    Stopped,
    #[error("{path}: cannot be written: {cause}; make room, or set [recorder] captures to another folder")]
    Write { path: String, cause: String },
    #[error("too many captures wait to be written; look at the disk, and ask again later")]
    TooMany,
    #[error("the disk did not take the capture within {} s", SAVE_WITHIN.as_secs())]
    TooSlow,
}

/// A world that is in one tick for too long, as it is found while it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StuckTick {
    pub world: u32,
    pub world_kind: KindNumber,
    /// Since the tick's begin.
    pub running_ns: u64,
    /// What it was told for.
    pub allowed_ns: u64,
}

/// A capture that no rule of the frame's thread asks for.
pub(crate) struct AskedSave {
    pub note: String,
    pub at_ticks: u64,
    pub asked: Asked,
}

/// Who asks for it.
pub(crate) enum Asked {
    ByHand(Sender<Result<Saved, SaveError>>),
    Watchdog(Fired),
}
