//! The cache of programs: what was built is kept under all that it was made by, so that another compiler, other flags, or another
//! package of the same repository build anew.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::content_hash::{content_hash, text_hash};
use super::{BinaryError, SHORT_LETTERS};

/// Programs that are kept, of some 100 MB each; those that were not used for longest go.
const PROGRAMS_MAX: usize = 20;
/// Whoever began with a program may still start it anew for each pair: none goes that was asked for since then. Hundreds of runs by
/// `--repeat` take some hours.
const MAY_BE_IN_USE: Duration = Duration::from_hours(24);

/// What a program is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramKey(String);

impl ProgramKey {
    /// That of a commit. `below`: the folder of the repository that is built. `makers`: what else decides what comes of it.
    pub fn of_commit(commit: &str, below: &str, makers: &str) -> Self {
        Self(format!("{commit}-{}", short(&text_hash(&format!("{below}\n{makers}")))))
    }

    /// That of a folder, whose sources nobody has numbered: its bytes.
    pub fn of_folder(program: &Path) -> Self {
        Self(format!("folder-{}", short(&content_hash(program))))
    }
}

fn short(hash: &str) -> &str {
    &hash[..hash.len().min(SHORT_LETTERS)]
}

/// The folder of it, locked for as long as this lives.
pub(super) struct ProgramCache {
    folder: PathBuf,
    _lock: File,
}

impl ProgramCache {
    /// Makes the folder if it is missing, and waits for another process that has it.
    pub fn lock(folder: &Path, tell: &mut dyn FnMut(String)) -> Result<Self, BinaryError> {
        let path = folder.join("lock");
        let mut lock = || {
            fs::create_dir_all(folder)?;
            let file = File::create(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    tell(format!("waiting for another preflight, which builds in {}", folder.display()));
                    file.lock()?;
                }
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
            // Builds go on in folders of their own.
            Ok(Self { folder: folder.canonicalize()?, _lock: file })
        };
        lock().map_err(|cause: io::Error| BinaryError::Cache { path: path.clone(), cause })
    }

    pub fn worktrees(&self) -> PathBuf {
        self.folder.join("worktrees")
    }

    /// What cargo keeps of builds of revisions.
    pub fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    fn programs(&self) -> PathBuf {
        self.folder.join("programs")
    }

    pub fn find(&self, key: &ProgramKey, name: &str) -> Option<PathBuf> {
        let folder = self.programs().join(&key.0);
        let program = folder.join(name);
        program.is_file().then(|| {
            note_use(&folder);
            program
        })
    }

    /// Copies a program to where the next build leaves it alone, if it is not there.
    pub fn keep(&self, built: &Path, key: &ProgramKey, name: &str) -> Result<PathBuf, BinaryError> {
        if let Some(kept) = self.find(key, name) {
            return Ok(kept);
        }
        let folder = self.programs().join(&key.0);
        let (kept, unfinished) = (folder.join(name), folder.join("unfinished"));
        // Whoever finds it finds it whole.
        let copied = fs::create_dir_all(&folder)
            .and_then(|()| fs::copy(built, &unfinished))
            .and_then(|_| fs::rename(&unfinished, &kept));
        copied.map_err(|cause| BinaryError::Cache { path: folder.clone(), cause })?;
        note_use(&folder);
        sweep(&self.programs());
        Ok(kept)
    }
}

/// Others go before this one. A folder that cannot be touched is not worth a failure.
fn note_use(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.set_modified(SystemTime::now()));
}

/// Removes programs that were not used for longest. What cannot be removed stays: the next one tries again.
fn sweep(programs: &Path) {
    let entries = fs::read_dir(programs).into_iter().flatten().flatten();
    let mut all: Vec<(SystemTime, PathBuf)> = entries
        .map(|entry| {
            let used = entry.metadata().and_then(|about| about.modified());
            (used.unwrap_or(SystemTime::UNIX_EPOCH), entry.path())
        })
        .collect();
    all.sort();
    let too_many = all.len().saturating_sub(PROGRAMS_MAX);
    let in_use_since = SystemTime::now() - MAY_BE_IN_USE;
    let to_go = all[..too_many].iter().take_while(|(used, _)| *used < in_use_since);
    to_go.for_each(|(_, path)| drop(fs::remove_dir_all(path)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: what was built is found again only where the same would come of it.
    #[test]
    fn a_program_is_kept_under_all_that_it_is_made_by() {
        let key = |commit: &str, below: &str, makers: &str| ProgramKey::of_commit(commit, below, makers);
        let one = key("1234567890ab", "games/a/", "cargo 1.95.0\n");
        assert_eq!(one, key("1234567890ab", "games/a/", "cargo 1.95.0\n"));
        for other in [
            key("1234567890ac", "games/a/", "cargo 1.95.0\n"),
            key("1234567890ab", "games/b/", "cargo 1.95.0\n"),
            key("1234567890ab", "games/a/", "cargo 1.95.0\nRUSTFLAGS=-Ctarget-cpu=native"),
        ] {
            assert_ne!(one, other);
        }
        assert!(one.0.starts_with("1234567890ab-") && one.0.len() == 25, "{one:?}");
    }

    #[test]
    fn programs_that_were_used_long_ago_make_room() {
        let programs = std::env::temp_dir().join(format!("throng-preflight-sweep-{}", std::process::id()));
        let _ = fs::remove_dir_all(&programs);
        let used_at = |number: usize, at: SystemTime| {
            let path = programs.join(format!("{number:012}-1.95.0"));
            fs::create_dir_all(&path).unwrap();
            File::open(&path).unwrap().set_modified(at).unwrap();
        };
        let left = || {
            let entries = fs::read_dir(&programs).unwrap();
            let mut left: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
            left.sort();
            left
        };
        (0..PROGRAMS_MAX + 2)
            .for_each(|number| used_at(number, SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64)));
        sweep(&programs);
        assert_eq!((left().len(), left()[0].as_str()), (PROGRAMS_MAX, "000000000002-1.95.0"), "{:?}", left());
        // Somebody may be at each of these.
        (2..PROGRAMS_MAX + 5).for_each(|number| used_at(number, SystemTime::now()));
        sweep(&programs);
        assert_eq!(left().len(), PROGRAMS_MAX + 3, "{:?}", left());
        fs::remove_dir_all(&programs).unwrap();
    }
}
