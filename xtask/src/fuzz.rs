//! Fuzzing: every parser of bytes that strangers can send has a target under `fuzz/fuzz_targets`.
//!
//! The targets are a workspace of their own, since they need the nightly toolchain's sanitizers. Seeds that are kept
//! lie in `fuzz/seeds/TARGET`; what a run finds beside them goes to `fuzz/corpus`, which is not kept.

use std::fs;

use clap::Args;

use crate::error::XtaskError;
use crate::step::{self, cargo, cargo_of};

const TOOLCHAIN: &str = "nightly";

#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// Which target; all of them, one after the other, if none is given.
    target: Option<String>,
    /// Length of each target's run (s).
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// List the targets and run none.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &FuzzArguments) -> Result<(), XtaskError> {
    let all = targets()?;
    if arguments.list {
        all.iter().for_each(|target| println!("{target}"));
        return Ok(());
    }
    let chosen: Vec<&String> = match &arguments.target {
        Some(name) => all.iter().filter(|target| *target == name).collect(),
        None => all.iter().collect(),
    };
    if chosen.is_empty() {
        return Err(XtaskError::Usage(format!("there is no such fuzz target; there are: {}", all.join(", "))));
    }
    install()?;
    for target in chosen {
        fuzz(target, arguments.seconds)?;
    }
    Ok(())
}

fn fuzz(target: &str, seconds: u32) -> Result<(), XtaskError> {
    let corpus = format!("fuzz/corpus/{target}");
    let seeds = format!("fuzz/seeds/{target}");
    // libFuzzer writes what it finds to the first folder, and stops if one of them does not exist.
    fs::create_dir_all(step::root().join(&corpus))
        .map_err(|cause| XtaskError::Usage(format!("{corpus} cannot be made: {cause}")))?;
    let mut command = cargo_of(TOOLCHAIN);
    command.args(["fuzz", "run", target, &corpus]);
    command.args(step::root().join(&seeds).is_dir().then_some(&seeds));
    command.arg("--").arg(format!("-max_total_time={seconds}"));
    let next = format!("the input is in fuzz/artifacts/{target}; make it a test, then repair the parser");
    step::run(&format!("fuzz {target}"), &mut command, &next)
}

fn targets() -> Result<Vec<String>, XtaskError> {
    let none = || XtaskError::Usage("there are no fuzz targets: fuzz/fuzz_targets has no .rs files".to_owned());
    let entries = fs::read_dir(step::root().join("fuzz/fuzz_targets")).map_err(|_| none())?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<String> = sources.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    if names.is_empty() { Err(none()) } else { Ok(names) }
}

fn install() -> Result<(), XtaskError> {
    if !step::succeeds(cargo_of(TOOLCHAIN).arg("--version")) {
        let mut command = step::program("rustup".as_ref());
        command.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
        step::run("install nightly", &mut command, "install rustup: https://rustup.rs")?;
    }
    if !step::succeeds(cargo_of(TOOLCHAIN).args(["fuzz", "--version"])) {
        let mut command = cargo();
        command.args(["install", "--locked", "cargo-fuzz"]);
        step::run("install cargo-fuzz", &mut command, "install it by hand: `cargo install --locked cargo-fuzz`")?;
    }
    Ok(())
}
