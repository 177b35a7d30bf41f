//! New game: what `throng new` writes is built, tested and played, as its user would do it.
//!
//! In a folder that was empty, with the versions that this repository is tested with, and in the same target folder: what is
//! the same crate with the same features and profile is there already. So the project gets this workspace's `[profile.dev]`
//! and `[profile.release]` in place of its own, and the feature `postgres` that the shipped command has; nothing else is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use toml::{Table, Value};

use crate::command;
use crate::error::XtaskError;
use crate::step::{self, cargo};

const NAME: &str = "my-game";

/// A new game, with its tests.
pub(crate) struct NewGame {
    folder: PathBuf,
}

/// Makes one with the command as it is now, builds and plays it.
pub(crate) fn run() -> Result<(), XtaskError> {
    command::built()?;
    build()?.play()
}

/// Makes one and builds it, with the command that the tests were built with where that is there.
pub(crate) fn build() -> Result<NewGame, XtaskError> {
    let game = NewGame::make(&folder())?;
    for words in [&["test", "--no-run"][..], &["build"]] {
        step::run("the new game", &mut game.cargo(words), "put right what it names in games/meadow")?;
    }
    Ok(game)
}

/// The one that was built last.
pub(crate) fn made() -> NewGame {
    NewGame::in_folder(&folder())
}

fn folder() -> PathBuf {
    step::target_folder().join("new-game")
}

impl NewGame {
    /// The one that was made in this folder.
    pub(crate) fn in_folder(folder: &Path) -> NewGame {
        NewGame { folder: folder.join(NAME) }
    }

    /// Makes one in this folder, which is emptied, with the command that the tests were built with where that is there.
    pub(crate) fn make(folder: &Path) -> Result<NewGame, XtaskError> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|cause| unusable(folder, &cause))?;
        let throng = command::of_tests()?;
        let mut command = step::program(throng.as_os_str());
        command.args(["new", NAME]).current_dir(folder);
        step::run("a new game", &mut command, "put right what it names in toolbox/new")?;
        let game = NewGame::in_folder(folder);
        share_profiles(&game.folder.join("Cargo.toml"))?;
        Ok(game)
    }

    /// Runs its tests, and its demo for a moment.
    pub(crate) fn play(&self) -> Result<(), XtaskError> {
        step::run("its tests", &mut self.cargo(&["test"]), "put right what it names in games/meadow")?;
        let mut demo = self.cargo(&["run"]);
        play(demo.args(["--", "demo", "--players", "20", "--seconds", "2", "--json"]))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Of a release build.
    pub(crate) fn executable(&self) -> PathBuf {
        step::target_folder().join("release").join(NAME)
    }

    pub(crate) fn cargo(&self, words: &[&str]) -> Command {
        let mut command = cargo();
        command
            .args(words)
            .args(["--offline", "--features", "throng-cli/postgres"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", step::target_folder());
        command
    }
}

/// A machine that others use too may miss a tick, which is a bar of its own; everything else must be right.
fn play(demo: &mut Command) -> Result<(), XtaskError> {
    eprintln!("── its demo");
    let output = demo.stderr(Stdio::inherit()).output();
    let output = output.map_err(|cause| XtaskError::Usage(format!("its demo could not be started: {cause}")))?;
    let report = String::from_utf8_lossy(&output.stdout);
    let expect = ["\"players_connected\":20", "\"state_errors\":0", "\"disconnects\":0"];
    match expect.iter().find(|part| !report.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(XtaskError::Usage(format!("its demo ({}) did not report {part}: {report}", output.status))),
    }
}

fn share_profiles(manifest: &Path) -> Result<(), XtaskError> {
    let read = |path: &Path| -> Result<Table, XtaskError> {
        let text = fs::read_to_string(path).map_err(|cause| unusable(path, &cause))?;
        text.parse().map_err(|cause| unusable(path, &cause))
    };
    let own = read(&step::root().join("Cargo.toml"))?;
    let mut made = read(manifest)?;
    let shared = ["dev", "release"].into_iter().filter_map(|name| Some((name, own.get("profile")?.get(name)?.clone())));
    if let Some(Value::Table(profiles)) = made.get_mut("profile") {
        profiles.extend(shared.map(|(name, profile)| (name.to_owned(), profile)));
    }
    fs::write(manifest, made.to_string()).map_err(|cause| unusable(manifest, &cause))
}

fn unusable(path: &Path, cause: &dyn std::fmt::Display) -> XtaskError {
    XtaskError::Usage(format!("{}: {cause}", path.display()))
}
