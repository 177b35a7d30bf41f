//! CI: the steps that every change must pass, cheapest first, stopping at the first that fails.

use crate::outside::{self, Advisories};
use crate::step::{self, cargo};
use crate::{error::XtaskError, fuzz, image, new_game, package, setup, tidy};

/// Everything. A change that passes here passes CI, because CI runs this.
pub(crate) fn run() -> Result<(), XtaskError> {
    setup::run()?;
    format()?;
    tidy::run()?;
    let advisories = outside::check()?;
    step::run(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
        "put right what it names",
    )?;
    peers()?;
    package::run()?;
    test(None)?;
    new_game::run()?;
    image::ci()?;
    models()?;
    docs(false)?;
    fuzz::ci()?;
    step::run("toolchain of all that", std::process::Command::new("rustc").arg("--version"), "install Rust")?;
    match advisories {
        Advisories::Checked => eprintln!("ci: all fine"),
        Advisories::NotChecked => eprintln!("ci: all fine; advisories were not checked, see above"),
    }
    Ok(())
}

/// All workspaces.
fn format() -> Result<(), XtaskError> {
    for manifest in ["Cargo.toml", "bench/peers/Cargo.toml", "fuzz/Cargo.toml"] {
        let mut command = cargo();
        command.args(["fmt", "--all", "--check", "--manifest-path"]).arg(step::root().join(manifest));
        step::run(&format!("format {manifest}"), &mut command, "run `cargo fmt --all` there")?;
    }
    Ok(())
}

/// What of the bench against other libraries is about us, so that it goes on to build; the others change without us.
/// It shares the target folder, and with it what is the same crate in the same version with the same features.
fn peers() -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["clippy", "--locked", "--manifest-path"]).arg(step::root().join("bench/peers/Cargo.toml"));
    command.arg("--target-dir").arg(step::target_folder());
    command.args(["-p", "peers-scenario", "-p", "peers-table", "-p", "peer-throng", "-p", "peer-floor"]);
    step::run("bench/peers", command.args(["--", "-D", "warnings"]), "put right what it names")
}

/// The tests of all crates, doc tests included.
pub(crate) fn test(filter: Option<&str>) -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked"]).args(filter);
    step::run("test", &mut command, "run the failed one alone: `cargo test -p CRATE NAME`")
}

/// The recorder's lock-free parts and the pool on a checker's atomics and locks: a few thousand random orders of what
/// their threads do.
fn models() -> Result<(), XtaskError> {
    for package in ["throng-profiler", "throng-scheduler"] {
        let mut command = cargo();
        command.args(["test", "--package", package, "--features", "shuttle", "--lib", "--locked", "r25_"]);
        step::run(
            "models",
            &mut command,
            "the failed order is printed; the recorder's has `--features loom` for all orders",
        )?;
    }
    Ok(())
}

/// The documentation of all crates; a link that leads nowhere fails.
pub(crate) fn docs(open: bool) -> Result<(), XtaskError> {
    let mut command = cargo();
    command
        .args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
        .args(open.then_some("--open"));
    // Private items are documented too, since these crates are read by those who work on them: links to them lead
    // somewhere.
    command.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
    step::run("docs", &mut command, "put right the links that it names")
}
