//! Sanitizers: the tests of a crate, or games that are played, with every access to memory watched, on the nightly toolchain.
//!
//! `thread` finds data races as they happen, `address` finds memory that is used after it was freed or beyond its end.
//! What happens in no test is not found, and the orders that did not come up are not either: those are for the models.
//!
//! The thread sanitizer must see the standard library's own locks, or it takes what they guard for a race; so the
//! library is built along, from its source. Instrumented code lies beside the rest, in `target/sanitize-NAME`, some 2
//! GB each; the address sanitizer goes without that, and sees nothing of what the library does with memory by itself. With
//! `--play` servers and bots run instead of tests (`play`). Tests that count what the kernel does for a thread may fail because of the sanitizer's own memory: `--
//! --skip NAME`.

mod play;

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
    /// Under the address sanitizer: run the shipped server and bots on it for so long instead of tests, each game for its share
    /// (s). 900 is the contract's.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["filter", "tests", "more"])]
    play: Option<u32>,
    /// Bots of each game that is played.
    #[arg(long, default_value_t = 40, requires = "play")]
    players: u32,
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

    /// Where its builds lie, below the root.
    fn folder(self) -> String {
        format!("target/sanitize-{}", self.name())
    }

    fn cargo_flags(self) -> &'static [&'static str] {
        match self {
            Sanitizer::Thread => &["-Zbuild-std"],
            Sanitizer::Address => &[],
        }
    }
}

pub(crate) fn run(arguments: &SanitizeArguments) -> Result<(), XtaskError> {
    if let Some(seconds) = arguments.play {
        if arguments.sanitizer == Some(Sanitizer::Thread) {
            return Err(XtaskError::Usage("--play is for the address sanitizer: `sanitize address --play 900`".into()));
        }
        install_toolchain()?;
        return play::run(seconds, arguments.players);
    }
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
    command.args(["--target-dir", &sanitizer.folder()]);
    command.args(arguments.packages.iter().flat_map(|package| ["--package", package]));
    command.args(&arguments.filter);
    command.arg("--").args(&arguments.more);
    command.env("RUSTFLAGS", sanitizer.flags());
    // What lives as long as the process is leaked on purpose here: blocks, sites, what threads keep.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let next = "the report above says which two accesses, or which memory; make it a test or a model, then repair it";
    step::run(&format!("sanitize {}", sanitizer.name()), &mut command, next)
}

fn install_toolchain() -> Result<(), XtaskError> {
    if !step::succeeds(cargo_of(TOOLCHAIN).arg("--version")) {
        let mut command = step::program("rustup".as_ref());
        command.args(["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
        step::run("install nightly", &mut command, "install rustup: https://rustup.rs")?;
    }
    Ok(())
}

fn install() -> Result<(), XtaskError> {
    install_toolchain()?;
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
