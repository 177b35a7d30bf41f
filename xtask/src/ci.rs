//! CI: what every change must pass.
//!
//! ```text
//! setup, format, tidy, tests built │ tests, which mostly wait            │ pages in a browser; games played there; what was
//!                                  │ checks, in the idle class           │ built is tried
//! ```
//!
//! A step that fails ends it; tests and checks both run to their end.

use crate::beside::Beside;
use crate::outside::{self, Advisories};
use crate::step::{self, cargo};
use crate::{error::XtaskError, fuzz, image, new_game, package, setup, tidy, web};

/// Everything. A change that passes here passes CI, because CI runs this.
pub(crate) fn run() -> Result<(), XtaskError> {
    setup::packages()?;
    format()?;
    tidy::run()?;
    let built = "put right what it names";
    step::run("tests built", cargo().args(["test", "--workspace", "--locked", "--no-run"]), built)?;
    let checks = Beside::start("checks", &["checks"])?;
    let tested = test(None);
    let checked = checks.wait();
    if let (Err(_), Err(also)) = (&tested, &checked) {
        eprintln!("── {also}");
    }
    tested.and(checked)?;
    web::check()?;
    web::play_with_that_of_tests()?;
    image::ci()?;
    new_game::made().play()?;
    fuzz::ci()?;
    step::run("toolchain of all that", std::process::Command::new("rustc").arg("--version"), "install Rust")?;
    eprintln!("ci: all fine; what was checked of advisories is said above");
    Ok(())
}

/// What takes compilers and no server that keeps time; the new game and the fuzz targets are built and not run.
/// Licences come first, which leave the target folder alone: the tests that begin at the same moment take its lock for a
/// second, to find that all is built.
pub(crate) fn checks() -> Result<(), XtaskError> {
    outside::install()?;
    let advisories = outside::check()?;
    step::run(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
        "put right what it names",
    )?;
    peers()?;
    package::run()?;
    docs(false)?;
    models()?;
    new_game::build()?;
    fuzz::build_all()?;
    match advisories {
        Advisories::Checked => eprintln!("checks: all fine"),
        Advisories::NotChecked => eprintln!("checks: all fine; advisories were not checked, see above"),
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

/// The tests of all crates, doc tests included; all of them, also when one fails, so that one run tells all that is broken.
pub(crate) fn test(filter: Option<&str>) -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(filter);
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
