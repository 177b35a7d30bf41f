//! Building the fuzz targets: all at once, with the counters that libFuzzer finds its way by.
//!
//! The flags are those that `cargo fuzz build --sanitizer none` gives to rustc. None of them is unstable, so the small
//! run needs no other toolchain and no other tool: a C++ compiler for libFuzzer itself is all. The address sanitizer is
//! unstable and asked for with `--address`; `unsafe` lives in `runtime/platform` alone, so it finds little in parsers.
//!
//! The build lies in the workspace's own target folder: build scripts and macros, which take no flags, are compiled once
//! for tests and targets. What is instrumented lies in the folder of its target triple, apart from everything else.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::XtaskError;
use crate::step::{self, cargo, cargo_of};

const TOOLCHAIN: &str = "nightly";

/// Counters for each edge, tables of their places, and what comparisons are made with.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    "--cfg=fuzzing",
];

/// How the targets are built.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Build {
    pub release: bool,
    pub address: bool,
}

impl Build {
    /// Builds the targets and returns the folder that they are in.
    pub(super) fn run(self, targets: &[String]) -> Result<PathBuf, XtaskError> {
        if self.address && !step::succeeds(cargo_of(TOOLCHAIN).arg("--version")) {
            return Err(XtaskError::Usage(format!(
                "--address needs the {TOOLCHAIN} toolchain, which is not installed: `rustup toolchain install \
                 {TOOLCHAIN} --profile minimal`; without it, leave --address out"
            )));
        }
        let folder = step::target_folder();
        let next = "put right what it names; a lock file that is not up to date: `cargo update --workspace \
                    --manifest-path fuzz/Cargo.toml`";
        step::run("fuzz build", &mut self.command(targets, &folder), next)?;
        Ok(folder.join(triple()).join(if self.release { "release" } else { "debug" }))
    }

    fn command(self, targets: &[String], folder: &Path) -> Command {
        let mut command = if self.address { cargo_of(TOOLCHAIN) } else { cargo() };
        command.args(["build", "--locked", "--manifest-path"]).arg(step::root().join("fuzz/Cargo.toml"));
        // A build for a named triple keeps the flags away from build scripts and macros.
        command.args(["--target", &triple(), "--target-dir"]).arg(folder);
        command.args(targets.iter().flat_map(|target| ["--bin", target]));
        command.args(self.release.then_some("--release"));
        command.env("RUSTFLAGS", self.flags());
        command
    }

    fn flags(self) -> String {
        // `crash-handler` asks for the second one, and otherwise takes the place of the sanitizer's `pthread_create`.
        let address: &[&str] = if self.address { &["-Zsanitizer=address", "--cfg=sanitizer_compat"] } else { &[] };
        [&COVERAGE[..], address].concat().join(" ")
    }
}

/// This machine's, since what is built is run here.
fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_builds_all_targets_that_are_asked_for() {
        let targets = ["input".to_owned(), "pack".to_owned()];
        let command = Build::default().command(&targets, Path::new("target"));
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[0], "build");
        assert!(words.ends_with(&["--bin", "input", "--bin", "pack"].map(str::to_owned)), "{words:?}");
        let release = Build { release: true, ..Build::default() };
        assert!(release.command(&targets, Path::new("target")).get_args().any(|word| word == "--release"));
    }

    #[test]
    fn only_the_address_sanitizer_needs_flags_that_are_unstable() {
        let unstable = |build: Build| build.flags().contains("-Z");
        assert!(!unstable(Build::default()));
        assert!(unstable(Build { address: true, ..Build::default() }));
    }
}
