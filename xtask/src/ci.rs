//! CI: the steps that every change must pass, cheapest first, stopping at the first that fails.

use crate::step::{self, cargo};
use crate::{XtaskError, setup, tidy};

/// Everything. A change that passes here passes CI, because CI runs this.
pub(crate) fn run() -> Result<(), XtaskError> {
    setup::run()?;
    step::run("format", cargo().args(["fmt", "--all", "--check"]), "run `cargo fmt --all`")?;
    tidy::run()?;
    licences()?;
    step::run(
        "clippy",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
        "put right what it names",
    )?;
    test(None)?;
    models()?;
    docs(false)?;
    eprintln!("ci: all fine");
    Ok(())
}

/// The tests of all crates, doc tests included.
pub(crate) fn test(filter: Option<&str>) -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked"]).args(filter);
    step::run("test", &mut command, "run the failed one alone: `cargo test -p CRATE NAME`")
}

/// The recorder's lock-free parts on a checker's atomics: a few thousand random orders of what its threads do.
fn models() -> Result<(), XtaskError> {
    let mut command = cargo();
    command.args(["test", "--package", "throng-profiler", "--features", "shuttle", "--lib", "--locked", "r25_"]);
    step::run("models", &mut command, "the failed order is printed; `--features loom` tries all orders")
}

/// The documentation of all crates; a link that leads nowhere fails.
pub(crate) fn docs(open: bool) -> Result<(), XtaskError> {
    let mut command = cargo();
    command
        .args(["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
        .args(open.then_some("--open"));
    // Private items are documented too, since these crates are read by those who work on them: links to them lead somewhere.
    command.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links");
    step::run("docs", &mut command, "put right the links that it names")
}

/// Licences, sources and doubled crates, by `deny.toml`. Without the network: what changes without us (advisories) is
/// for a nightly run, or every change would depend on the day.
fn licences() -> Result<(), XtaskError> {
    if !step::succeeds(cargo().args(["deny", "--version"])) {
        eprintln!("── licences: skipped, cargo-deny is not installed (`cargo install --locked cargo-deny`)");
        return Ok(());
    }
    step::run(
        "licences",
        cargo().args(["deny", "--offline", "check", "bans", "licenses", "sources"]),
        "choose another crate, or say in deny.toml why this one may be used",
    )
}
