//! Kept captures: the latest that were written, for whoever leads others to them: metrics, and the admin port.
//!
//! The disk has all of them; these are in memory, so that a scrape reads no disk. Written by the recorder's thread once a
//! capture, read by any.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use throng_capture::model::TriggerKind;

/// More than a minute's worth, which is the longest that scrapers leave between two looks; an older one goes for each
/// that comes.
const KEPT_MAX: usize = 32;

/// A capture that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCapture {
    /// The file's name without its end, which no other capture of this process has: `1764000000-812-0`.
    pub id: String,
    pub path: PathBuf,
    pub trigger: TriggerKind,
    /// What tripped it: a subsystem, a scope, a lock; empty for a frame, and by hand.
    pub cause: String,
    /// The kind of world that it happened in; empty for none.
    pub world_kind: String,
    /// When it happened, since 1970 (ms): not when it was written.
    pub at_unix_ms: u64,
    pub frame: u64,
    /// How long that frame was (us); none if it was not over.
    pub frame_us: Option<u64>,
    pub size_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct KeptCaptures {
    latest: Mutex<VecDeque<KeptCapture>>,
}

impl KeptCaptures {
    pub fn add(&self, kept: KeptCapture) {
        let mut latest = self.lock();
        if latest.len() == KEPT_MAX {
            latest.pop_front();
        }
        latest.push_back(kept);
    }

    /// Oldest first. Allocates.
    pub fn all(&self) -> Vec<KeptCapture> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KeptCapture>> {
        // What is in it is whole whatever happened.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept() {
        let kept = KeptCaptures::default();
        for number in 0..KEPT_MAX + 3 {
            kept.add(KeptCapture {
                id: number.to_string(),
                path: PathBuf::new(),
                trigger: TriggerKind::Manual,
                cause: String::new(),
                world_kind: String::new(),
                at_unix_ms: 0,
                frame: 0,
                frame_us: None,
                size_bytes: 0,
            });
        }
        let ids: Vec<String> = kept.all().into_iter().map(|capture| capture.id).collect();
        assert_eq!((ids.len(), ids[0].as_str(), ids[KEPT_MAX - 1].as_str()), (KEPT_MAX, "3", "34"));
    }
}
