//! What can be wrong with a store, in few words: what is done about it differs.

use std::io;

use thiserror::Error;

use crate::key::Key;

/// What a store could not do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    #[error("the disk is full")]
    DiskFull,
    #[error("the disk failed ({kind:?}): {text}")]
    Io { kind: io::ErrorKind, text: String },
    #[error("the store is damaged: {0}")]
    Damaged(String),
    #[error("the record of {key:?} is damaged, and so is the one before it")]
    DamagedRecord { key: Key },
    #[error("the store has format {found}, this program knows {known}; use a newer program")]
    Newer { found: u64, known: u64 },
    #[error("another process has the store open")]
    InUse,
    #[error("the store is being opened anew after a failure")]
    Down,
    #[error("the store's own code panicked")]
    Panicked,
}

impl StoreError {
    /// It would be the same again: somebody has to look at what is stored. Of all else a later try may go well, with a disk
    /// that is back, or over another connection.
    pub fn is_final(&self) -> bool {
        match self {
            StoreError::Damaged(_) | StoreError::DamagedRecord { .. } | StoreError::Newer { .. } => true,
            StoreError::DiskFull
            | StoreError::Io { .. }
            | StoreError::InUse
            | StoreError::Down
            | StoreError::Panicked => false,
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(cause: io::Error) -> StoreError {
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
            kind => StoreError::Io { kind, text: cause.to_string() },
        }
    }
}
