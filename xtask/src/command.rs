//! The shipped command, for steps that run it: pages that are played, their schemas, a new game. Beside it stands that of
//! `games/meadow`, a game with a command of its own.

use std::path::PathBuf;

use crate::error::XtaskError;
use crate::step::{self, cargo};

fn path() -> PathBuf {
    step::target_folder().join("debug/throng")
}

/// As the sources are now. Without the tests' own dependencies some crates have other features, and are built once more.
pub(crate) fn built() -> Result<PathBuf, XtaskError> {
    let mut command = cargo();
    command.args(["build", "--locked", "--workspace", "--bin", "throng", "--bin", "meadow"]);
    step::run("the commands", &mut command, "put right what it names")?;
    Ok(path())
}

/// The one that the tests were built with, where it is there: they may be running it.
pub(crate) fn of_tests() -> Result<PathBuf, XtaskError> {
    let are_there = path().is_file() && path().with_file_name("meadow").is_file();
    if are_there { Ok(path()) } else { built() }
}
