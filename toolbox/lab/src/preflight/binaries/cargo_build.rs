//! Builds by cargo: that which runs us, if one does, so that both sides are built by one toolchain.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use throng_platform::process_groups;
use throng_platform::signals::StopFlag;

/// Lines of a failed build that are shown: the error is in them.
const LINES_SHOWN: usize = 30;
/// How often the stop flag is read.
const POLL: Duration = Duration::from_millis(20);

/// Why nothing was built.
#[derive(Debug)]
pub(super) enum BuildError {
    /// Cargo cannot be run.
    Run(io::Error),
    /// It did not build: its last lines.
    Failed(String),
    Stopped,
}

/// A release build of a folder's default package.
pub(super) struct Build<'a> {
    pub folder: &'a Path,
    /// Instead of the folder's own; absolute.
    pub target: Option<&'a Path>,
}

impl Build<'_> {
    /// The programs that come of it. When `stop` is requested cargo and all that it has started end.
    pub fn run(&self, stop: &StopFlag) -> Result<Vec<PathBuf>, BuildError> {
        let mut command = cargo();
        command.args(["build", "--release", "--message-format", "json-render-diagnostics"]).current_dir(self.folder);
        if let Some(target) = self.target {
            command.env("CARGO_TARGET_DIR", target);
        }
        let output = output(&mut command, stop).map_err(BuildError::Run)?;
        if stop.requested() {
            // The compiler was stopped, and that is no mistake in what it compiled.
            return Err(BuildError::Stopped);
        }
        if output.status.success() {
            return Ok(programs_in(&String::from_utf8_lossy(&output.stdout)));
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = words.lines().collect();
        Err(BuildError::Failed(lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")))
    }
}

/// What else than its sources decides what comes of a commit: the versions of cargo and the compiler with date and host, and variables
/// of the environment that change what they make. Not cargo's configuration outside of the repository.
///
/// # Errors
/// If one of the two cannot be asked: which, and why.
pub(super) fn makers(folder: &Path) -> Result<String, (&'static str, io::Error)> {
    let version_of = |name: &'static str, program: Command| version(program, folder).map_err(|cause| (name, cause));
    let versions = [version_of("cargo", cargo())?, version_of("rustc", compiler())?];
    let mut variables: Vec<String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| shapes_programs(name))
        .map(|(name, value)| format!("{name}={}", value.display()))
        .collect();
    variables.sort();
    Ok(format!("{}\n{}", versions.join("\n"), variables.join("\n")))
}

fn version(mut program: Command, folder: &Path) -> io::Result<String> {
    let said = program.args(["--version", "--verbose"]).current_dir(folder).output()?;
    if said.status.success() {
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    } else {
        Err(io::Error::other(format!("it does not say its version ({})", said.status)))
    }
}

fn shapes_programs(variable: &str) -> bool {
    const NAMES: [&str; 6] = [
        "RUSTC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
    ];
    const BEGINNINGS: [&str; 3] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_"];
    // Where it builds, and how fast.
    const OTHERS: [&str; 4] = ["CARGO_TARGET_DIR", "CARGO_TARGET_TMPDIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_JOBS"];
    let is_named = NAMES.contains(&variable) || BEGINNINGS.iter().any(|begin| variable.starts_with(begin));
    is_named && !OTHERS.contains(&variable)
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn compiler() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// What a command says, in a group of its own, which ends when `stop` is requested.
fn output(command: &mut Command, stop: &StopFlag) -> io::Result<Output> {
    let command = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let stdout = scope.spawn(|| read_all(out));
        let stderr = scope.spawn(|| read_all(err));
        let mut is_asked = false;
        while !process_groups::has_ended(child.id()) {
            if stop.requested() && !is_asked {
                process_groups::ask_to_end(child.id());
                is_asked = true;
            }
            std::thread::sleep(POLL);
        }
        // Before its number is given to others: nobody whom it started is left to hold what is read.
        process_groups::kill(child.id());
        let status = child.wait()?;
        Ok(Output { status, stdout: stdout.join().unwrap_or_default(), stderr: stderr.join().unwrap_or_default() })
    })
}

/// What could not be read is missing: the status says how it ended.
fn read_all(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
    bytes
}

/// What cargo says that it has made.
fn programs_in(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn programs_are_those_that_cargo_names() {
        let messages =
            "{\"executable\":null}\n{\"executable\":\"/x/release/throng\"}\nnoise\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(programs_in(messages), [PathBuf::from("/x/release/throng")]);
    }

    #[test]
    fn variables_that_change_what_is_built_are_known() {
        for name in [
            "RUSTFLAGS",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
        ] {
            assert!(shapes_programs(name), "{name}");
        }
        for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_PKG_NAME", "PATH", "CARGO"] {
            assert!(!shapes_programs(name), "{name}");
        }
    }

    /// Promise: a stop reaches the compilers that cargo has started, however the stop came.
    #[test]
    fn a_stop_ends_a_build_with_all_that_it_has_started() {
        let stop = StopFlag::new().unwrap();
        let begun = std::env::temp_dir().join(format!("throng-preflight-begun-{}", std::process::id()));
        let mut command = Command::new("sh");
        // The one that it starts holds its output open.
        command.args(["-c", "sleep 600 & echo begun; : >\"$0\"; wait"]).arg(&begun);
        let (output, took) = std::thread::scope(|scope| {
            let output = scope.spawn(|| output(&mut command, &stop));
            while !begun.exists() && !output.is_finished() {
                std::thread::sleep(POLL);
            }
            let asked = Instant::now();
            stop.request();
            (output.join().unwrap().unwrap(), asked.elapsed())
        });
        std::fs::remove_file(&begun).unwrap();
        assert!(!output.status.success() && took < Duration::from_secs(120), "{output:?} after {took:?}");
        assert_eq!(output.stdout, b"begun\n");
    }
}
