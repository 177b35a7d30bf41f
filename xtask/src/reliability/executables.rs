//! Test executables: what one call of cargo builds, and the tests in each.
//!
//! In the server's own profile: a full form measures what an operator runs.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::error::XtaskError;
use crate::step::{self, cargo};

/// The tests of a library, or of a file under `tests`.
pub(crate) struct Executable {
    /// Of which package.
    pub package: String,
    path: PathBuf,
    /// Where cargo would run it: in its package's folder.
    folder: PathBuf,
}

/// A line of `--message-format json`, as far as it is looked at.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds them all.
pub(crate) fn build() -> Result<Vec<Executable>, XtaskError> {
    let mut command = cargo();
    command.args(["test", "--release", "--workspace", "--locked", "--no-run", "--message-format", "json"]);
    let lines = step::output_of("build of the tests", &mut command, "the build's errors are above")?;
    Ok(lines.lines().filter_map(executable_of).collect())
}

fn executable_of(line: &str) -> Option<Executable> {
    let Message { executable, manifest_path, profile } = serde_json::from_str(line).ok()?;
    let folder = manifest_path?.parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let is_test = profile?.test;
    executable.filter(|_| is_test).map(|path| Executable { package, path, folder })
}

impl Executable {
    /// The names of its tests, those that are ignored included.
    pub(crate) fn tests(&self) -> Result<Vec<String>, XtaskError> {
        let listed = step::output_of("list", self.command().args(["--list", "--include-ignored"]), "build it anew")?;
        Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    }

    /// Runs one test, and shows what it prints. Whether it passed.
    pub(crate) fn run(&self, test: &str) -> Result<bool, XtaskError> {
        let mut command = self.command();
        command.args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
        let started = command.status();
        let status = started.map_err(|cause| XtaskError::Start {
            program: self.path.display().to_string(),
            cause,
            next: "build it anew".to_owned(),
        })?;
        Ok(status.success())
    }

    fn command(&self) -> Command {
        let mut command = step::program(self.path.as_os_str());
        // As cargo does, for tests that look for files of their package.
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_cargo_built_the_tests_are_found() {
        let check = |line: &str, expect: Option<(&str, &str)>| {
            let found = executable_of(line);
            let found = found.as_ref().map(|it| (it.package.as_str(), it.path.to_str().unwrap()));
            assert_eq!(found, expect, "{line}");
        };
        let built = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/runtime/net/Cargo.toml","profile":{{"opt_level":"3","test":{test}}},"executable":{executable}}}"#
            )
        };
        check(&built(true, r#""/t/net-1a""#), Some(("net", "/t/net-1a")));
        check(&built(false, r#""/t/throng""#), None);
        check(&built(true, "null"), None);
        check(r#"{"reason":"build-finished","success":true}"#, None);
        check("   Compiling net", None);
    }
}
