//! The profile on disk: callgrind text with every event, and folded stacks of the wall time beside it.
//!
//! Each thread is the outermost function of its own stacks, so that both viewers show threads apart and together.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use throng_capture::call_tree::{CallTree, StackFrame};

use super::error::WallclockError;
use super::profile::Profile;

/// What callgrind files count. KCachegrind shows the first one when it opens them.
const EVENTS: [&str; 5] = ["Wall_ns", "Running_ns", "Waiting_ns", "Blocked_ns", "Samples"];
const WALL: usize = 0;

/// Where a profile was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFiles {
    pub callgrind: PathBuf,
    /// The same name with `.folded` behind it.
    pub folded: PathBuf,
}

/// Whether `callgrind` can be written. Asked before the run, since a run of hours whose profile has no place is lost.
pub fn check_writable(callgrind: &Path) -> Result<(), WallclockError> {
    let is_new = !callgrind.exists();
    let opened = File::options().append(true).create(true).open(callgrind);
    opened.map_err(|cause| WallclockError::Write { path: callgrind.to_owned(), cause })?;
    if is_new {
        // Nothing is left behind if there is no profile. What cannot be removed is written over.
        let _ = std::fs::remove_file(callgrind);
    }
    Ok(())
}

/// Writes both files, `callgrind` under that very name.
pub fn write(profile: &Profile, callgrind: &Path) -> Result<ProfileFiles, WallclockError> {
    let mut folded = callgrind.as_os_str().to_owned();
    folded.push(".folded");
    let files = ProfileFiles { callgrind: callgrind.to_owned(), folded: folded.into() };
    let tree = tree(profile);
    let command = format!("throng wallclock {} ({})", profile.pid, profile.name);
    create(&files.callgrind, |out| tree.write_callgrind(&command, out))?;
    create(&files.folded, |out| tree.write_folded(WALL, out))?;
    Ok(files)
}

fn create(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), WallclockError> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        fill(&mut out)?;
        out.flush()
    });
    written.map_err(|cause| WallclockError::Write { path: path.to_owned(), cause })
}

fn tree(profile: &Profile) -> CallTree {
    let mut tree = CallTree::new(&EVENTS);
    for thread in &profile.threads {
        let root = format!("thread {} ({})", thread.name, thread.tid);
        for (stack, times) in &thread.stacks {
            let mut frames = vec![StackFrame { function: &root, file: "", line: 0 }];
            frames.extend(stack.iter().filter_map(|frame| profile.frames.get(*frame as usize)).map(|frame| {
                StackFrame {
                    function: &frame.function,
                    file: frame.file.as_deref().unwrap_or(&frame.object),
                    line: frame.line,
                }
            }));
            let costs = [times.wall_ns(), times.running_ns, times.waiting_ns, times.blocked_ns, times.samples];
            tree.add_stack(&frames, &costs);
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::super::profile::tests::example;
    use super::*;

    #[test]
    fn every_thread_is_a_root_and_all_its_time_is_below_it() {
        let profile = example();
        let tree = tree(&profile);
        let all = profile.threads[0].times;
        assert_eq!(tree.totals(), [all.wall_ns(), all.running_ns, 0, all.blocked_ns, all.samples]);
        assert_eq!(
            tree.costs_of(&["thread example (42)", "main", "rest; deep"]),
            Some(&[7_000_000, 0, 0, 7_000_000, 1][..])
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_with_its_name() {
        let path = Path::new("/proc/nowhere/out");
        for error in [write(&example(), path).unwrap_err(), check_writable(path).unwrap_err()] {
            let error = error.to_string();
            assert!(error.contains("/proc/nowhere/out") && error.contains("--out"), "{error}");
        }
    }
}
