//! New game: what `throng new` writes is built, tested and played, as its user would do it.
//!
//! In a folder that was empty, with the versions that this repository is tested with, and in the same target folder: what is
//! the same crate with the same features and profile is there already. So the project gets this workspace's `[profile.dev]`
//! in place of its own, and nothing else is changed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use toml::{Table, Value};

use crate::error::XtaskError;
use crate::step::{self, cargo};

const NAME: &str = "my-game";

pub(crate) fn run() -> Result<(), XtaskError> {
    let folder = step::target_folder().join("new-game");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|cause| unusable(&folder, &cause))?;
    step::run(
        "the command for a new game",
        cargo().args(["build", "--locked", "--workspace", "--bin", "throng"]),
        "put right what it names",
    )?;
    let mut command = step::program(step::target_folder().join("debug/throng").as_os_str());
    command.args(["new", NAME]).current_dir(&folder);
    step::run("a new game", &mut command, "put right what it names in toolbox/new")?;

    let game = folder.join(NAME);
    share_profile(&game.join("Cargo.toml"))?;
    let in_game = |words: &[&str]| {
        let mut command = cargo();
        command.args(words).current_dir(&game).env("CARGO_TARGET_DIR", step::target_folder());
        command
    };
    step::run("its tests", &mut in_game(&["test", "--offline"]), "put right what it names in games/meadow")?;
    play(&mut in_game(&["run", "--offline", "--", "demo", "--players", "20", "--seconds", "2", "--json"]))
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

fn share_profile(manifest: &Path) -> Result<(), XtaskError> {
    let read = |path: &Path| -> Result<Table, XtaskError> {
        let text = fs::read_to_string(path).map_err(|cause| unusable(path, &cause))?;
        text.parse().map_err(|cause| unusable(path, &cause))
    };
    let own = read(&step::root().join("Cargo.toml"))?;
    let dev = own.get("profile").and_then(|profiles| profiles.get("dev")).cloned();
    let mut made = read(manifest)?;
    if let (Some(Value::Table(profiles)), Some(dev)) = (made.get_mut("profile"), dev) {
        profiles.insert("dev".to_owned(), dev);
    }
    fs::write(manifest, made.to_string()).map_err(|cause| unusable(manifest, &cause))
}

fn unusable(path: &Path, cause: &dyn std::fmt::Display) -> XtaskError {
    XtaskError::Usage(format!("{}: {cause}", path.display()))
}
