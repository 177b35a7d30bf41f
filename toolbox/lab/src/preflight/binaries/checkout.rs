//! Checkouts of revisions: worktrees of the repository that the command was called in, which knows of no more of them afterwards.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{BinaryError, SHORT_LETTERS};
use crate::preflight::plan::Side;

/// The repository that a folder lies in, asked for one side.
#[derive(Clone, Copy)]
pub(super) struct Repository<'a> {
    pub here: &'a Path,
    pub side: Side,
}

impl Repository<'_> {
    /// The whole number of a revision's commit, or git's words why there is none.
    pub fn commit_of(&self, revision: &str) -> Result<Result<String, String>, BinaryError> {
        self.git(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
    }

    /// Whether what git knows of is not as committed. Files that it does not know of may be anything.
    pub fn has_changes(&self) -> Result<bool, BinaryError> {
        let changes = self.git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
        Ok(changes.is_ok_and(|changes| !changes.is_empty()))
    }

    /// From the root of the repository to here; empty at the root.
    pub fn folder_below(&self) -> Result<Result<String, String>, BinaryError> {
        self.git(&["rev-parse", "--show-prefix"])
    }

    /// What git says here, or its words why not.
    pub fn git(&self, words: &[&str]) -> Result<Result<String, String>, BinaryError> {
        let output = throng_commit::git(self.here).args(words).output();
        let output = output.map_err(|cause| BinaryError::Program { side: self.side, program: "git", cause })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(Ok(text(&output.stdout)));
        }
        let words = text(&output.stderr);
        Ok(Err(if words.is_empty() { "git knows no such revision".to_owned() } else { words }))
    }
}

/// A checkout, removed with this.
pub(super) struct Worktree<'a> {
    repository: Repository<'a>,
    path: PathBuf,
}

impl<'a> Worktree<'a> {
    /// Checks a commit out in a folder of `worktrees`, which is absolute. Under the lock of the cache, so a checkout of ours that lies
    /// there was left by a process that was killed, and is removed.
    pub fn add(
        repository: Repository<'a>,
        worktrees: &Path,
        commit: &str,
    ) -> Result<Result<Self, String>, BinaryError> {
        let left = fs::read_dir(worktrees).into_iter().flatten().flatten();
        left.filter(|entry| is_ours(&entry.file_name())).for_each(|entry| remove(repository, &entry.path()));
        let path = worktrees.join(commit);
        // By force: the repository may know of one there whose folder is gone. No other worktree is touched.
        let added =
            repository.git(&["worktree", "add", "--force", "--quiet", "--detach", &path.display().to_string(), commit]);
        let worktree = Self { repository, path };
        Ok(added?.map(|_| worktree))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        remove(self.repository, &self.path);
    }
}

/// Called as we call them: a cache may be named where somebody else has worktrees.
fn is_ours(name: &OsStr) -> bool {
    name.len() == SHORT_LETTERS && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit)
}

/// A worktree of another repository's, or half of one, is no more than a folder here.
fn remove(repository: Repository<'_>, path: &Path) {
    let _ = repository.git(&["worktree", "remove", "--force", &path.display().to_string()]);
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: what lies in the folder and is none of our checkouts is left alone.
    #[test]
    fn only_what_is_called_as_a_commit_is_ours() {
        assert!(is_ours(OsStr::new("0123456789ab")));
        for other in ["feature", "0123456789abc", "0123456789ag", "main", ""] {
            assert!(!is_ours(OsStr::new(other)), "{other}");
        }
    }
}
