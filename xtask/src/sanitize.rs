//! Sanitizers: the tests of a crate with every access to memory watched, on the nightly toolchain.
//!
//! `thread` finds data races as they happen, `address` finds memory that is used after it was freed or beyond its end.
//! What happens in no test is not found, and the orders that did not come up are not either: those are for the models.
//!
//! The thread sanitizer must see the standard library's own locks, or it takes what they guard for a race; so the
//! library is built along, from its source. Instrumented code lies beside the rest, in `target/sanitize-NAME`, some 2
//! GB each. Tests that count what the kernel does for a thread may fail because of the sanitizer's own memory: `--
//! --skip NAME`.

use clap::{Args, ValueEnum};

use crate::error::XtaskError;
use crate::step::{self, cargo_of};

const TOOLCHAIN: &str = "nightly";

/// Builds for a named target keep the flags away from build scripts and macros, which cannot be instrumented.
const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(Args)]
pub(crate) struct SanitizeArguments {
    /// Which one; both, one after the other, if none is given.
    sanitizer: Option<Sanitizer>,
    /// Crates to test: those with code that threads share without locks, unless others are named.
    #[arg(long = "package", value_name = "CRATE", default_values = ["throng-profiler"])]
    packages: Vec<String>,
    /// Under the thread sanitizer, these of the crate's test programs (`tests/NAME.rs`) beside its own tests; address
    /// runs all of them.
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,
    /// Only tests whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Passed on to the tests as they are, such as `--skip NAME`.
    #[arg(last = true)]
    more: Vec<String>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Sanitizer {
    Thread,
    Address,
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Sanitizer::Thread => "thread",
            Sanitizer::Address => "address",
        }
    }

    /// `sanitizer_compat` is asked by `crash-handler`, which otherwise takes the place of the sanitizer's
    /// `pthread_create`.
    fn flags(self) -> String {
        format!("-Zsanitizer={} --cfg sanitizer_compat", self.name())
    }

    fn cargo_flags(self) -> &'static [&'static str] {
        match self {
            Sanitizer::Thread => &["-Zbuild-std"],
            Sanitizer::Address => &[],
        }
    }
}

pub(crate) fn run(arguments: &SanitizeArguments) -> Result<(), XtaskError> {
    install()?;
    let chosen = arguments.sanitizer.map_or(vec![Sanitizer::Thread, Sanitizer::Address], |one| vec![one]);
    chosen.into_iter().try_for_each(|sanitizer| sanitize(sanitizer, arguments))
}

fn sanitize(sanitizer: Sanitizer, arguments: &SanitizeArguments) -> Result<(), XtaskError> {
    let mut command = cargo_of(TOOLCHAIN);
    command.arg("test").args(sanitizer.cargo_flags());
    command.args(["--locked", "--lib", "--target", TARGET]);
    match sanitizer {
        Sanitizer::Address => command.arg("--tests"),
        // Not all: memory that goes from thread to thread through mimalloc, which is not instrumented, looks like a
        // race.
        Sanitizer::Thread => command.args(arguments.tests.iter().flat_map(|test| ["--test", test])),
    };
    command.args(["--target-dir", &format!("target/sanitize-{}", sanitizer.name())]);
    command.args(arguments.packages.iter().flat_map(|package| ["--package", package]));
    command.args(&arguments.filter);
    command.arg("--").args(&arguments.more);
    command.env("RUSTFLAGS", sanitizer.flags());
    // What lives as long as the process is leaked on purpose here: blocks, sites, what threads keep.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let next = "the report above says which two accesses, or which memory; make it a test or a model, then repair it";
    step::run(&format!("sanitize {}", sanitizer.name()), &mut command, next)
}

fn install() -> Result<(), XtaskError> {
    if !step::succeeds(cargo_of(TOOLCHAIN).arg("--version")) {
        let mut command = step::program("rustup".as_ref());
        command.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
        step::run("install nightly", &mut command, "install rustup: https://rustup.rs")?;
    }
    let mut command = step::program("rustup".as_ref());
    command.args(["component", "add", "rust-src", "--toolchain", TOOLCHAIN]);
    step::run(
        "install the library's source",
        &mut command,
        "by hand: `rustup component add rust-src --toolchain nightly`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_sanitizer_needs_its_own_standard_library() {
        assert_eq!(Sanitizer::Thread.cargo_flags(), ["-Zbuild-std"]);
        assert!(Sanitizer::Address.cargo_flags().is_empty());
        assert_eq!(Sanitizer::Address.flags(), "-Zsanitizer=address --cfg sanitizer_compat");
    }
}
