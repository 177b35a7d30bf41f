//! Why nothing can be exported, in words that name the setting to change.

use std::{io, path::PathBuf};

/// Why nothing can be exported.
#[derive(Debug)]
pub enum StartError {
    /// The folder, and what the system says.
    Folder(PathBuf, io::Error),
    Thread(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Folder(folder, cause) => write!(
                out,
                "{}: cannot be used for analytics events: {cause}; let this user write it, or name another folder in \
                 [analytics]",
                folder.display()
            ),
            StartError::Thread(cause) => write!(
                out,
                "a thread for analytics events cannot start: {cause}; raise `ulimit -u` or the container's pids limit"
            ),
        }
    }
}

impl std::error::Error for StartError {}
