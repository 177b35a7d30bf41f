//! Testing: what a test does when the host does not permit what it needs.
//!
//! A test that passes because it could not look says that a promise holds which nobody has tried. So it fails and names
//! what is missing, unless whoever runs it says that this user or host is not to be given it: with
//! [`WITHOUT_PRIVILEGE`]`=1` it prints what was not tried and passes.
//!
//! For tests alone; no server calls it.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::perf;

/// The environment variable that lets tests pass that need what the host does not permit.
pub const WITHOUT_PRIVILEGE: &str = "THRONG_TESTS_WITHOUT_PRIVILEGE";

/// Says that a test could not be tried, after which it should return.
///
/// # Panics
/// Unless [`WITHOUT_PRIVILEGE`] is `1`.
#[track_caller]
pub fn not_permitted(missing: &str) {
    let is_borne = std::env::var_os(WITHOUT_PRIVILEGE).is_some_and(|value| value == "1");
    assert!(is_borne, "{missing}. Give the tests what they need, or set {WITHOUT_PRIVILEGE}=1 to go without");
    eprintln!("not tried: {missing}");
}

/// `setpriv` that runs what it is given as a user without privileges: `program`, which must take `--help`, or another one
/// that starts it. A test program goes without perf_event there if the host keeps that from such users. `None` where
/// this is no root that could become somebody else, and where the program's folder is closed to others, which is
/// [`not_permitted`].
pub fn as_nobody(program: &str) -> Option<Command> {
    const NOBODY: [&str; 5] = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--"];
    if !std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        eprintln!("not tried as nobody: this user is not root either");
        return None;
    }
    let as_nobody = || {
        let mut command = Command::new("setpriv");
        command.args(NOBODY);
        // What the host forbids to nobody is no fault of it.
        command.env(WITHOUT_PRIVILEGE, if perf::is_open_to_all() { "0" } else { "1" });
        command
    };
    let tried = as_nobody().args([program, "--help"]).stdout(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        not_permitted(&format!(
            "`setpriv` (util-linux) cannot run {program} as nobody: it and the folders above it must be open to others \
             (build elsewhere with CARGO_TARGET_DIR)"
        ));
        return None;
    }
    Some(as_nobody())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the tests below, which are ignored, with the variable so.
    fn passes(test: &str, value: Option<&str>) -> bool {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", &format!("testing::tests::{test}")]).env_remove(WITHOUT_PRIVILEGE);
        value.into_iter().for_each(|value| _ = command.env(WITHOUT_PRIVILEGE, value));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() || said.contains("CAP_TO_FLY"), "it names what is missing: {said}");
        output.status.success()
    }

    #[test]
    fn what_cannot_be_tried_fails_unless_that_is_wanted() {
        let test = "a_test_that_needs_what_nobody_has";
        assert!(!passes(test, None));
        assert!(!passes(test, Some("0")));
        assert!(passes(test, Some("1")));
    }

    #[test]
    #[ignore = "for the test above, which runs it"]
    fn a_test_that_needs_what_nobody_has() {
        not_permitted("CAP_TO_FLY is missing");
    }
}
