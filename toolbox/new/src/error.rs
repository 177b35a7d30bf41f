//! Errors: why there is no project, and what would do.

use std::{io, path::PathBuf};

/// Why a project was not written.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    #[error("`{name}` cannot be the name of a package: {reason}; {}", .instead.as_ref().map_or_else(
        || "take another one, such as `my-game`".to_owned(), |instead| format!("`{instead}` would do")))]
    Name { name: String, reason: &'static str, instead: Option<String> },
    #[error("{}: is there already and not empty; take another name, or move it away", .path.display())]
    NotEmpty { path: PathBuf },
    #[error("{}: is no checkout of Throng (it lacks runtime/server); say where one is: --throng PATH", .path.display())]
    NoThrong { path: PathBuf },
    #[error("{}: this path cannot stand in a Cargo.toml; say another one of the checkout: --throng PATH", .path.display())]
    OddPath { path: PathBuf },
    #[error("{}: cannot be written: {cause}", .path.display())]
    NotWritten { path: PathBuf, cause: io::Error },
}
