//! Uploads: what a server's files did on their way to an object store, counted by whoever sends them.
//!
//! The server speaks to no store: a thread of the program does (`throng-upload`), and counts here, so that the figures are
//! where all others are.

mod of_server;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use throng_metrics::counters;

counters! {
    /// What became of files that were to go to the object store.
    pub struct UploadCounts {
        Sum files: "object_store.files", "files",
            "Files that went to the object store.",
            "Follows captures, reports of deaths and files of events, where [object_store] endpoint is set.";
        Sum bytes: "object_store.bytes", "bytes",
            "Bytes of these files.",
            "As `object_store.files`.";
        Sum same: "object_store.same_files", "files",
            "Files that the object store had already, by size and checksum: after a restart.",
            "Nothing: they were not sent again.";
        Sum errors: "object_store.errors", "errors",
            "Times that the object store could not be asked, or did not take a file. It is tried again after a pause, and the file \
             stays where it is.",
            "The log says why: a wrong key, a bucket that is not there, a store that is away.";
        Sum unreadable: "object_store.unreadable_files", "files",
            "Times that a file could not be read, or is too large for a store; the others go on.",
            "The log names it.";
    }
}

/// The same, of all threads: added to by the one that uploads, read by the frame's thread. Only sums matter, so relaxed
/// order is enough.
#[derive(Debug, Default)]
pub struct SharedUploadCounts {
    files: AtomicU64,
    bytes: AtomicU64,
    same: AtomicU64,
    errors: AtomicU64,
    unreadable: AtomicU64,
}

impl SharedUploadCounts {
    /// A file is in the store.
    pub fn uploaded(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It was there already.
    pub fn was_there(&self) {
        self.same.fetch_add(1, Ordering::Relaxed);
    }

    /// The store did not take something.
    pub fn failed(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// A file cannot be sent, whatever the store does.
    pub fn cannot_be_read(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// All sums since the start.
    pub fn sums(&self) -> UploadCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Self { files, bytes, same, errors, unreadable } = self;
        UploadCounts {
            files: of(files),
            bytes: of(bytes),
            same: of(same),
            errors: of(errors),
            unreadable: of(unreadable),
        }
    }
}

/// What the frame's thread has of it.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    shared: Arc<SharedUploadCounts>,
    told: UploadCounts,
}

impl Uploads {
    /// What was counted since this was last asked.
    pub fn take_counts(&mut self) -> UploadCounts {
        let sums = self.shared.sums();
        let before = std::mem::replace(&mut self.told, sums);
        UploadCounts {
            files: sums.files - before.files,
            bytes: sums.bytes - before.bytes,
            same: sums.same - before.same,
            errors: sums.errors - before.errors,
            unreadable: sums.unreadable - before.unreadable,
        }
    }
}
