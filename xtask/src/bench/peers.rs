//! The bench against other libraries: builds each peer in `bench/peers`, then runs all of them in turns.
//!
//! A peer that does not build is left out, and the table says so: what others publish is not ours to mend, and must not
//! keep anybody from measuring the rest. The small size builds Throng and the floor only.
//!
//! The bench of one world that fills up is Throng's peer alone, in more sizes: the same program runs it. With `--keep` the
//! figures of either go to `docs/figures`, where the README's pictures are drawn from. Either is kept in the history, as every other bench
//! is in its full size.

use std::path::PathBuf;

use crate::bench::{self, BenchArguments};
use crate::error::XtaskError;
use crate::step::{self, cargo};

pub(super) const NAME: &str = "peers";
/// One world with more and more clients.
pub(super) const CROWD: &str = "crowd";

/// Programs without which there is no table.
const OURS: [&str; 3] = ["peers-table", "peer-throng", "peer-floor"];
const OF_CROWD: [&str; 2] = ["peers-table", "peer-throng"];
/// Programs of other libraries.
const OTHERS: [&str; 3] = ["peer-replicon", "peer-lightyear", "peer-naia"];

pub(super) fn run(name: &str, arguments: &BenchArguments) -> Result<(), XtaskError> {
    let is_crowd = name == CROWD;
    let ours: &[&str] = if is_crowd { &OF_CROWD } else { &OURS };
    build(ours)?;
    if !arguments.small && !is_crowd {
        for peer in OTHERS {
            if let Err(error) = build(&[peer]) {
                eprintln!("── {peer} is left out: {error}");
            }
        }
    }
    let mut table = step::program(target_folder()?.join("release/peers-table").as_os_str());
    table.args(is_crowd.then_some("--crowd"));
    table.args(arguments.small.then_some("--small")).args(arguments.json.then_some("--json"));
    for (name, number) in [("--clients", arguments.clients), ("--entities", arguments.entities)] {
        if let Some(number) = number {
            table.arg(name).arg(number.to_string());
        }
    }
    if arguments.keep {
        table.arg("--keep").arg(step::root().join("docs/figures"));
    }
    if !arguments.small {
        table.arg("--history").arg(bench::history());
    }
    table.arg("--command").arg(bench::own_command()).arg("--commit").arg(commit());
    table.arg("--out").arg(step::root().join("reports")).args(&arguments.more);
    step::run(&format!("bench {name}"), &mut table, "its own words are above")
}

/// Of what is measured, as reports name it: with `-modified` behind it if something is not as committed.
pub(super) fn commit() -> String {
    let git = |arguments: &[&str]| {
        // Without its locks it leaves the index alone: others may use it at the same time.
        let mut command = step::program("git".as_ref());
        command.arg("--no-optional-locks").args(arguments);
        step::output_of("commit", &mut command, "figures are kept with the commit that they are of").ok()
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| changes.is_empty());
    let commit = commit.map(|commit| commit.trim().to_owned() + if is_clean { "" } else { "-modified" });
    commit.unwrap_or_else(|| "unknown".to_owned())
}

fn build(packages: &[&str]) -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest());
    // Some peers declare a compiler that is newer than the one they need.
    command.arg("--ignore-rust-version");
    packages.iter().for_each(|package| {
        command.args(["--package", package]);
    });
    step::run(&format!("build {}", packages.join(", ")), &mut command, "its own words are above")
}

fn manifest() -> PathBuf {
    step::root().join("bench/peers/Cargo.toml")
}

/// Where cargo puts that workspace's programs.
fn target_folder() -> Result<PathBuf, XtaskError> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(manifest());
    let text = step::output_of("target folder of bench/peers", &mut command, "see what cargo says above")?;
    let key = "\"target_directory\":\"";
    let begin = text.find(key).map(|at| at + key.len());
    let folder = begin.and_then(|begin| text[begin..].split('"').next());
    folder.map(PathBuf::from).ok_or_else(|| XtaskError::Usage("cargo metadata names no target folder".to_owned()))
}
