//! A step: one program run in the repository's root, its output passed through, its failure given a next step.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::error::XtaskError;

/// The repository's root: the folder above this package's.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Where builds lie: in `CARGO_TARGET_DIR`, or in `target` in the root.
pub(crate) fn target_folder() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that runs us, so that a toolchain chosen with `cargo +NAME` holds for the steps too.
pub(crate) fn cargo() -> Command {
    program(std::env::var_os("CARGO").as_deref().unwrap_or("cargo".as_ref()))
}

/// The cargo of another toolchain.
pub(crate) fn cargo_of(toolchain: &str) -> Command {
    let mut command = program("rustup".as_ref());
    command.args(["run", toolchain, "cargo"]);
    command
}

pub(crate) fn program(name: &std::ffi::OsStr) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Runs the step and says how long it took. `next` is what to do when it fails.
pub(crate) fn run(name: &str, command: &mut Command, next: &str) -> Result<(), XtaskError> {
    eprintln!("── {name}: {}", shown(command));
    let began = Instant::now();
    let status = command.status().map_err(|cause| not_started(command, cause, next))?;
    check(name, status, next)?;
    eprintln!("── {name}: fine after {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a step for what it prints.
pub(crate) fn output_of(name: &str, command: &mut Command, next: &str) -> Result<String, XtaskError> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|cause| not_started(command, cause, next))?;
    check(name, output.status, next)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Does the command run and succeed? Its output is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The error of a step that did not succeed.
pub(crate) fn check(name: &str, status: ExitStatus, next: &str) -> Result<(), XtaskError> {
    if status.success() {
        return Ok(());
    }
    Err(XtaskError::Step { name: name.to_owned(), status: status.to_string(), next: next.to_owned() })
}

fn not_started(command: &Command, cause: std::io::Error, next: &str) -> XtaskError {
    let program = command.get_program().to_string_lossy().into_owned();
    XtaskError::Start { program, cause, next: next.to_owned() }
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
