//! The folder of captures: one folder inside per kind of trigger, each with a disk budget of its own.
//!
//! ```text
//! DIR/lock-wait/1764000000-812-0.capture      seconds since 1970, frame, number
//! ```
//!
//! A file is written under another name and renamed when it is whole, so that nobody reads half of one. Then the oldest
//! of the kind go until the rest is within the budget; the newest always stays. Runs on the recorder's own thread.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use throng_capture::model::TriggerKind;

/// Where captures go.
#[derive(Debug, Clone)]
pub(crate) struct CapturesFolder {
    root: PathBuf,
    /// Numbers the files of this process.
    written: u64,
}

impl CapturesFolder {
    pub fn new(root: PathBuf) -> CapturesFolder {
        CapturesFolder { root, written: 0 }
    }

    /// Writes a capture and keeps its kind within its budget.
    pub fn keep(
        &mut self,
        kind: TriggerKind,
        unix_s: u64,
        frame: u64,
        bytes: &[u8],
        budget_bytes: u64,
    ) -> io::Result<PathBuf> {
        let folder = self.root.join(kind.name());
        fs::create_dir_all(&folder)?;
        make_room(&folder, budget_bytes.saturating_sub(bytes.len() as u64))?;
        let path = folder.join(format!("{unix_s}-{frame}-{}.capture", self.written));
        let partial = path.with_extension("partial");
        // A write that failed half way must not take the room that the next one needs.
        fs::write(&partial, bytes).inspect_err(|_| drop(fs::remove_file(&partial)))?;
        fs::rename(&partial, &path)?;
        self.written += 1;
        Ok(path)
    }
}

/// Removes the oldest captures until the rest takes `left_bytes` at most.
fn make_room(folder: &Path, left_bytes: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "capture" || extension == "partial") {
            // Others may remove captures, too, and put there what they like.
            let Ok(about) = entry.metadata() else { continue };
            if !about.is_file() {
                continue;
            }
            files.push((about.modified()?, path, about.len()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, _, length)| length).sum();
    for (_, path, length) in files {
        if total <= left_bytes {
            break;
        }
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        total -= length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn test_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("throng-captures-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn the_oldest_of_a_kind_go_first_and_other_kinds_stay() {
        let root = test_folder("oldest");
        let mut folder = CapturesFolder::new(root.clone());
        folder.keep(TriggerKind::Frame, 1, 0, &[0; 90], 100).unwrap();
        for second in 1..=4 {
            folder.keep(TriggerKind::LockWait, second, second * 10, &[0; 40], 100).unwrap();
            // File times may be no finer than the kernel's clock tick.
            std::thread::sleep(std::time::Duration::from_millis(12));
        }
        assert_eq!(names(&root.join("lock-wait")), ["3-30-3.capture", "4-40-4.capture"]);
        assert_eq!(names(&root.join("frame")), ["1-0-0.capture"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn one_that_is_larger_than_the_budget_is_kept_alone() {
        let root = test_folder("larger");
        let mut folder = CapturesFolder::new(root.clone());
        folder.keep(TriggerKind::Manual, 1, 1, &[0; 50], 100).unwrap();
        folder.keep(TriggerKind::Manual, 2, 2, &[0; 500], 100).unwrap();
        assert_eq!(names(&root.join("manual")), ["2-2-1.capture"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_no_file_of_ours_is_left_alone() {
        let root = test_folder("foreign");
        let mut folder = CapturesFolder::new(root.clone());
        fs::create_dir_all(root.join("manual/0-0-0.capture")).unwrap();
        folder.keep(TriggerKind::Manual, 1, 1, &[0; 90], 100).unwrap();
        folder.keep(TriggerKind::Manual, 2, 2, &[0; 90], 100).unwrap();
        assert_eq!(names(&root.join("manual")), ["0-0-0.capture", "2-2-1.capture"]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let mut folder = CapturesFolder::new(PathBuf::from("/proc/nowhere"));
        assert!(folder.keep(TriggerKind::Manual, 1, 1, &[], 100).is_err());
    }
}
