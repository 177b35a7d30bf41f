//! Beside: a part of CI that runs while another one mostly waits.
//!
//! Most of the tests' time is servers and bots that play for some seconds.
//! The compiler and the fuzz targets take the rest, in the scheduler's idle class, as a process of their own: a thread of
//! any other class takes the core as soon as it wakes, also one at a low priority. What it says goes into a file, since two
//! that speak at once cannot be read, and is shown when it has ended.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::error::XtaskError;
use crate::step;

/// What runs.
pub(crate) struct Beside {
    name: &'static str,
    child: Child,
    began: Instant,
    said: PathBuf,
}

impl Beside {
    /// Starts this executable with other words.
    pub(crate) fn start(name: &'static str, words: &[&str]) -> Result<Beside, XtaskError> {
        let own = std::env::current_exe().map_err(|cause| XtaskError::Usage(format!("this executable: {cause}")))?;
        let mut command = step::program("chrt".as_ref());
        command.args(["--idle", "0"]).arg(own).args(words);
        Beside::spawn(name, command)
    }

    fn spawn(name: &'static str, mut command: Command) -> Result<Beside, XtaskError> {
        let said = step::target_folder().join(format!("beside-{name}.txt"));
        let unusable = |cause| XtaskError::Usage(format!("{}: {cause}", said.display()));
        fs::create_dir_all(step::target_folder()).map_err(unusable)?;
        let output = File::create(&said).map_err(unusable)?;
        let errors = output.try_clone().map_err(unusable)?;
        eprintln!("── {name}: begun beside what follows; what it says is in {}", said.display());
        let child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn().map_err(|cause| {
            let program = command.get_program().to_string_lossy().into_owned();
            XtaskError::Start { program, cause, next: "see whether it is installed".to_owned() }
        })?;
        Ok(Beside { name, child, began: Instant::now(), said })
    }

    /// Waits for it, and shows what it said.
    pub(crate) fn wait(mut self) -> Result<(), XtaskError> {
        let status = self.child.wait().map_err(|cause| XtaskError::Usage(format!("{}: {cause}", self.name)))?;
        match fs::read(&self.said) {
            Ok(said) => eprint!("{}", String::from_utf8_lossy(&said)),
            Err(cause) => eprintln!("{}: {cause}", self.said.display()),
        }
        eprintln!("── {}: ended {:.1} s after it began", self.name, self.began.elapsed().as_secs_f64());
        step::check(self.name, status, "its last lines are above")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &'static str, script: &str) -> Beside {
        let mut command = step::program("sh".as_ref());
        command.args(["-c", script]);
        Beside::spawn(name, command).unwrap()
    }

    #[test]
    fn what_fails_beside_fails_when_it_is_waited_for() {
        assert!(shell("test-fine", "echo fine").wait().is_ok());
        let failed = shell("test-failed", "echo why >&2; exit 3").wait().unwrap_err().to_string();
        assert!(failed.contains("test-failed") && failed.contains('3'), "{failed}");
        let said = fs::read_to_string(step::target_folder().join("beside-test-failed.txt")).unwrap();
        assert_eq!(said, "why\n");
    }
}
