//! The bench against other libraries: builds each peer in `bench/peers`, then runs all of them in turns.
//!
//! A peer that does not build is left out, and the table says so: what others publish is not ours to mend, and must not
//! keep anybody from measuring the rest. The small size builds Throng and the floor only.

use std::path::PathBuf;

use crate::bench::BenchArguments;
use crate::error::XtaskError;
use crate::step::{self, cargo};

pub(super) const NAME: &str = "peers";

/// Programs without which there is no table.
const OURS: [&str; 3] = ["peers-table", "peer-throng", "peer-floor"];
/// Programs of other libraries.
const OTHERS: [&str; 3] = ["peer-replicon", "peer-lightyear", "peer-naia"];

pub(super) fn run(arguments: &BenchArguments) -> Result<(), XtaskError> {
    build(&OURS)?;
    if !arguments.small {
        for peer in OTHERS {
            if let Err(error) = build(&[peer]) {
                eprintln!("── {peer} is left out: {error}");
            }
        }
    }
    let mut table = step::program(target_folder()?.join("release/peers-table").as_os_str());
    table.args(arguments.small.then_some("--small")).args(arguments.json.then_some("--json"));
    for (name, number) in [("--clients", arguments.clients), ("--entities", arguments.entities)] {
        if let Some(number) = number {
            table.arg(name).arg(number.to_string());
        }
    }
    table.arg("--out").arg(step::root().join("reports")).args(&arguments.more);
    step::run("bench peers", &mut table, "its own words are above")
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
