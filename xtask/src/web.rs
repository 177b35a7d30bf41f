//! Web: the pages in `web/`, built, checked and tried.
//!
//! What is built is committed, so that nobody needs Node to build a server; [`check`] builds it again, elsewhere, and
//! compares byte for byte. `web/README.md` says how the sources are laid out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::error::XtaskError;
use crate::step;

/// Where the crate that carries the pages has them.
pub(crate) const BUILT: &str = "toolbox/pages/built";

/// Builds the pages into the crate that carries them.
pub(crate) fn build() -> Result<(), XtaskError> {
    install()?;
    step::run("web", npm().args(["run", "--silent", "build"]), "put right what it names in web/")
}

/// Games with pages of their own in `web/play`.
pub(crate) const PLAYED: [&str; 3] = ["precinct", "frontier", "duel"];

/// Schemas, types, the built pages, and the tests, in a browser too.
pub(crate) fn check() -> Result<(), XtaskError> {
    install()?;
    schemas()?;
    step::run("web types", npm().args(["run", "--silent", "check"]), "put right what it names in web/")?;
    let fresh = step::target_folder().join("web");
    let mut command = npm();
    command.args(["run", "--silent", "build", "--"]).arg(&fresh);
    step::run("web build", &mut command, "put right what it names in web/")?;
    let stale = differing(&step::root().join(BUILT), &fresh);
    if !stale.is_empty() {
        let stale = stale.join(", ");
        return Err(XtaskError::Usage(format!(
            "{BUILT}: {stale} is not what web/ builds; run `cargo xtask web` and commit what it writes"
        )));
    }
    let next = "run it alone in web/: `npm test`, `npm run test:browser`";
    step::run("web tests", npm().args(["run", "--silent", "test"]), next)?;
    // A server with these pages inside; the tests say how to build one where there is none, or an older one.
    let server = step::target_folder().join("debug/throng");
    step::run("web tests in chromium", npm().env("THRONG", server).args(["run", "--silent", "test:browser"]), next)
}

/// Has the client play against the command as the sources are now.
pub(crate) fn play() -> Result<(), XtaskError> {
    install()?;
    played(&command::built()?)
}

/// The same against the command that the tests were built with. To be run while nothing else does: persons and bots fight
/// here, and what is late for that is late for everybody.
pub(crate) fn play_with_that_of_tests() -> Result<(), XtaskError> {
    install()?;
    played(&command::of_tests()?)
}

/// In chromium and in Node, in every game, hostile peers included.
fn played(executable: &Path) -> Result<(), XtaskError> {
    let mut command = npm();
    command.args(["run", "--silent", "test:live"]).env("THRONG", executable);
    let next = "run it alone in web/: `npm run test:live`, with the command in THRONG";
    step::run("played in browsers", &mut command, next)
}

/// What pages believe that a game says is what it says: a page of another schema is refused by its server.
fn schemas() -> Result<(), XtaskError> {
    let throng = command::of_tests()?;
    for game in PLAYED {
        let schema = format!("web/play/{game}/schema.ts");
        let mut command = step::program(throng.as_os_str());
        command.args(["schema", "--game", game, "--client", "../../client/index.ts", "--out", &schema, "--check"]);
        let next = "write it anew by the same command without --check, then `cargo xtask web`";
        step::run("schema", &mut command, next)?;
    }
    Ok(())
}

/// The packages of `web/package-lock.json`, unless they are there already; none of them may run a program of its own.
fn install() -> Result<(), XtaskError> {
    let folder = folder();
    let modified = |path: PathBuf| fs::metadata(path).and_then(|about| about.modified()).ok();
    let wanted = modified(folder.join("package-lock.json"));
    // npm writes it when it is done.
    if modified(folder.join("node_modules/.package-lock.json")) >= wanted && wanted.is_some() {
        return Ok(());
    }
    let mut command = npm();
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
    step::run("web packages", &mut command, "`cargo xtask setup` installs npm; it needs its registry once")
}

fn npm() -> Command {
    let mut command = step::program("npm".as_ref());
    command.current_dir(folder());
    command
}

fn folder() -> PathBuf {
    step::root().join("web")
}

/// Names of files that are not the same in both folders.
fn differing(a: &Path, b: &Path) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut all = [names(a), names(b)].concat();
    all.sort();
    all.dedup();
    all.retain(|name| fs::read(a.join(name)).ok() != fs::read(b.join(name)).ok());
    all
}
