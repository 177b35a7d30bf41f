//! Fuzzing: every parser of bytes that strangers can send has a target under `fuzz/fuzz_targets`.
//!
//! All targets are built by one call of cargo (`build`) and run beside each other, one per core (`engine`). CI runs each
//! for [`CI_SECONDS`]: enough for the seeds and some ten thousand mutations of them, so that a parser that panics on
//! what is nearly right does not get in. Long runs find the rest: `--seconds 3600 --release TARGET`.
//!
//! Seeds that are kept lie in `fuzz/seeds/TARGET`; what a run finds beside them goes to `fuzz/corpus`, and an input that
//! breaks a promise to `fuzz/artifacts`. Neither of these is kept.

mod build;
mod engine;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use clap::Args;

use crate::error::XtaskError;
use crate::step;
use build::Build;
use engine::Outcome;

/// Length of each target's run in CI. With 15 targets on 2 cores that is a minute.
pub(crate) const CI_SECONDS: u32 = 8;

#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// Which targets; all of them if none is given.
    targets: Vec<String>,
    /// Length of each target's run (s).
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Optimised: takes longer to build, and tries several times as many inputs. For runs of minutes and more.
    #[arg(long)]
    release: bool,
    /// With the address sanitizer of the nightly toolchain: finds wrong accesses of `unsafe` code, at half the speed.
    #[arg(long)]
    address: bool,
    /// Run one target with this input only, as it was found, and show all that it says.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// List the targets and run none.
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &FuzzArguments) -> Result<(), XtaskError> {
    let all = targets(&step::root().join("fuzz/fuzz_targets"))?;
    if arguments.list {
        all.iter().for_each(|target| println!("{target}"));
        return Ok(());
    }
    let chosen = choose(all, &arguments.targets)?;
    let build = Build { release: arguments.release, address: arguments.address };
    match &arguments.replay {
        Some(input) => replay(&chosen, input, build),
        None => build.run(&chosen).and_then(|folder| run_all(&folder, &chosen, arguments.seconds)),
    }
}

/// The small run of all targets that every change must pass.
pub(crate) fn ci() -> Result<(), XtaskError> {
    let (folder, all) = build_all()?;
    run_all(&folder, &all, CI_SECONDS)
}

/// Builds all targets for that. Returns the folder that they are in, and their names.
pub(crate) fn build_all() -> Result<(PathBuf, Vec<String>), XtaskError> {
    let all = targets(&step::root().join("fuzz/fuzz_targets"))?;
    Ok((Build::default().run(&all)?, all))
}

/// Runs each for so long, as many at a time as there are cores. All are run, also when one fails.
fn run_all(folder: &Path, targets: &[String], seconds: u32) -> Result<(), XtaskError> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    eprintln!("── fuzz: {} targets, {seconds} s each, {cores} at a time", targets.len());
    // With one target its progress is shown; several would talk over each other.
    let is_shown = targets.len() == 1;
    let waiting = Mutex::new(targets.iter());
    let next = || waiting.lock().ok()?.next();
    let work = || -> Vec<Outcome> {
        std::iter::from_fn(next).map(|target| engine::run(folder, target, seconds, is_shown)).collect()
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it does not panic")).collect()
    });
    judge(outcomes)
}

/// Says what every run came to, those that failed last.
fn judge(mut outcomes: Vec<Outcome>) -> Result<(), XtaskError> {
    outcomes.sort_by_key(|outcome| (outcome.failure.is_some(), outcome.target.clone()));
    for outcome in &outcomes {
        match (&outcome.failure, outcome.inputs) {
            (None, inputs) => eprintln!("   {}: fine, {} inputs", outcome.target, inputs.unwrap_or_default()),
            (Some(failure), _) => eprintln!("\n── fuzz {}: failed\n{failure}", outcome.target),
        }
    }
    let failed: Vec<&str> =
        outcomes.iter().filter(|outcome| outcome.failure.is_some()).map(|outcome| &*outcome.target).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(XtaskError::Step {
        name: format!("fuzz {}", failed.join(", ")),
        status: "a promise was broken".to_owned(),
        next: "replay it as the lines above say, make the input a test of its crate, then repair the parser".to_owned(),
    })
}

fn replay(chosen: &[String], input: &Path, build: Build) -> Result<(), XtaskError> {
    let [target] = chosen else {
        return Err(XtaskError::Usage(
            "one input is for one target: `cargo xtask fuzz TARGET --replay FILE`".to_owned(),
        ));
    };
    // From where the person is, as cargo is run there; the target runs in the root.
    let input = std::path::absolute(input).unwrap_or_else(|_| input.to_owned());
    if !input.is_file() {
        return Err(XtaskError::Usage(format!("{} is no file; --replay wants an input", input.display())));
    }
    let folder = build.run(chosen)?;
    let mut command = engine::command(&folder, target);
    step::run(&format!("replay {target}"), command.arg(&input), "what it says above is why")
}

/// Those named, in the order in which they are named, or all.
fn choose(all: Vec<String>, named: &[String]) -> Result<Vec<String>, XtaskError> {
    if let Some(unknown) = named.iter().find(|name| !all.contains(name)) {
        let known = all.join(", ");
        return Err(XtaskError::Usage(format!("there is no fuzz target `{unknown}`; there are: {known}")));
    }
    Ok(if named.is_empty() { all } else { named.to_vec() })
}

/// The names of the files in the folder, in their order.
fn targets(folder: &Path) -> Result<Vec<String>, XtaskError> {
    let entries = std::fs::read_dir(folder)
        .map_err(|cause| XtaskError::Usage(format!("{} cannot be read: {cause}", folder.display())))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<String> = sources.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn all_targets_are_chosen_unless_some_are_named() {
        let all = || owned(&["admin", "input", "pack"]);
        assert_eq!(choose(all(), &[]).unwrap(), all());
        assert_eq!(choose(all(), &owned(&["pack", "admin"])).unwrap(), owned(&["pack", "admin"]));
        let told = choose(all(), &owned(&["pack", "packs"])).unwrap_err().to_string();
        assert_eq!(told, "there is no fuzz target `packs`; there are: admin, input, pack");
    }

    /// Promise: a target's file, its entry in the manifest and its seeds come together, or CI would leave one out
    /// without a word.
    #[test]
    fn every_target_is_built_and_has_seeds() {
        let fuzz = step::root().join("fuzz");
        let names = targets(&fuzz.join("fuzz_targets")).unwrap();
        let manifest: toml::Table = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap().parse().unwrap();
        let bins = manifest["bin"].as_array().unwrap();
        let mut built: Vec<String> = bins.iter().map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
        built.sort();
        assert_eq!(built, names);
        for name in names {
            let seeds = std::fs::read_dir(fuzz.join("seeds").join(&name)).map_or(0, Iterator::count);
            assert!(seeds > 0, "fuzz/seeds/{name} is empty; write some in fuzz/examples/seeds.rs");
        }
    }

    #[test]
    fn one_broken_promise_fails_the_run_and_is_named() {
        let outcome = |target: &str, failure: Option<&str>| Outcome {
            target: target.to_owned(),
            inputs: Some(1),
            failure: failure.map(str::to_owned),
        };
        assert!(judge(vec![outcome("input", None), outcome("pack", None)]).is_ok());
        let told = judge(vec![outcome("pack", Some("it panicked")), outcome("input", None)]).unwrap_err().to_string();
        assert!(told.starts_with("fuzz pack failed (a promise was broken); replay it"), "{told}");
    }
}
