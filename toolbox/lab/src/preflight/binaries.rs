//! Binaries: what stands behind `--base` and `--change`: a program, a folder that is built, or a revision that is.
//!
//! A revision is checked out into a worktree in the cache folder and built there; all builds share a target folder, so that the
//! second one compiles only what differs. What was built of a commit is kept and not built again.
//!
//! ```text
//! CACHE/worktrees/1234567890ab/    the checkout
//! CACHE/target/                    what cargo keeps
//! CACHE/programs/1234567890ab      the program
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Lines of a failed build that are shown: the error is in them.
const LINES_SHOWN: usize = 30;
const COMMIT_LETTERS: usize = 12;

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    #[error("{option} {text} is no file, no folder, and no revision of the repository here: {cause}")]
    Unknown { option: &'static str, text: String, cause: String },
    #[error("{option}: {what} does not build; its last lines:\n{lines}")]
    Build { option: &'static str, what: String, lines: String },
    #[error("{option}: {what} was built and has no program called {name}; it has: {found}")]
    NoProgram { option: &'static str, what: String, name: String, found: String },
    #[error("{option}: {program} cannot be run: {cause}; install it")]
    Program { option: &'static str, program: &'static str, cause: io::Error },
    #[error("{}: {cause}; name another folder with --cache", path.display())]
    Cache { path: PathBuf, cause: io::Error },
}

/// How programs are found and made.
#[derive(Debug, Clone)]
pub struct Builder {
    /// Of the program that is wanted, where a build makes several.
    pub name: String,
    pub cache: PathBuf,
}

impl Builder {
    /// Where nobody says otherwise: in the user's cache.
    pub fn default_cache() -> PathBuf {
        let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
        cache.unwrap_or_else(std::env::temp_dir).join("throng/preflight")
    }

    /// The program behind what was said for `option`. `tell` hears what takes time.
    pub fn find(&self, option: &'static str, text: &str, tell: &mut dyn FnMut(String)) -> Result<PathBuf, BinaryError> {
        let path = Path::new(text);
        if path.is_file() {
            return path.canonicalize().map_err(|cause| BinaryError::Unknown {
                option,
                text: text.to_owned(),
                cause: cause.to_string(),
            });
        }
        if path.is_dir() {
            tell(format!("building {text}"));
            let built = self.build(option, text, path, None)?;
            // The next build may replace it.
            return self.keep(&built, &format!("{option}-{}", std::process::id()).replace("--", ""));
        }
        self.revision(option, text, tell)
    }

    fn revision(&self, option: &'static str, text: &str, tell: &mut dyn FnMut(String)) -> Result<PathBuf, BinaryError> {
        let unknown = |cause: String| BinaryError::Unknown { option, text: text.to_owned(), cause };
        if text.starts_with('-') {
            return Err(unknown("a revision begins with no dash".to_owned()));
        }
        let commit =
            git(option, &["rev-parse", "--verify", "--quiet", &format!("{text}^{{commit}}")])?.map_err(unknown)?;
        let commit: String = commit.chars().take(COMMIT_LETTERS).collect();
        let program = self.cache.join("programs").join(&commit).join(&self.name);
        if program.is_file() {
            return Ok(program);
        }
        let worktree = self.cache.join("worktrees").join(&commit);
        if !worktree.is_dir() {
            tell(format!("checking {text} out ({commit})"));
            let words = worktree.display().to_string();
            git(option, &["worktree", "prune"])?.map_err(unknown)?;
            git(option, &["worktree", "add", "--quiet", "--detach", &words, &commit])?.map_err(unknown)?;
        }
        tell(format!("building {text} ({commit})"));
        let built = self.build(option, text, &worktree, Some(&self.cache.join("target")))?;
        self.keep(&built, &commit)
    }

    fn keep(&self, built: &Path, name: &str) -> Result<PathBuf, BinaryError> {
        let folder = self.cache.join("programs").join(name);
        let kept = folder.join(&self.name);
        let copied = fs::create_dir_all(&folder).and_then(|()| fs::copy(built, &kept));
        copied.map_err(|cause| BinaryError::Cache { path: folder, cause })?;
        Ok(kept)
    }

    /// Builds a folder's default package; the program of our name, or the only one.
    fn build(
        &self,
        option: &'static str,
        what: &str,
        folder: &Path,
        target: Option<&Path>,
    ) -> Result<PathBuf, BinaryError> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["build", "--release", "--message-format", "json-render-diagnostics"]).current_dir(folder);
        if let Some(target) = target {
            command.env("CARGO_TARGET_DIR", target);
        }
        let output = command.output().map_err(|cause| BinaryError::Program { option, program: "cargo", cause })?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = words.lines().collect();
            let lines = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
            return Err(BinaryError::Build { option, what: what.to_owned(), lines });
        }
        let programs = programs(&String::from_utf8_lossy(&output.stdout));
        let named = programs.iter().find(|path| path.file_name().is_some_and(|name| *name == *self.name));
        match (named, &programs[..]) {
            (Some(program), _) | (None, [program]) => Ok(program.clone()),
            _ => {
                let found: Vec<String> = programs.iter().map(|path| path.display().to_string()).collect();
                let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
                Err(BinaryError::NoProgram { option, what: what.to_owned(), name: self.name.clone(), found })
            }
        }
    }
}

/// What cargo says that it has made.
fn programs(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?))).collect()
}

/// What git says, or its words why not.
fn git(option: &'static str, words: &[&str]) -> Result<Result<String, String>, BinaryError> {
    let output = Command::new("git").args(words).output();
    let output = output.map_err(|cause| BinaryError::Program { option, program: "git", cause })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(Ok(text(&output.stdout)));
    }
    let words = text(&output.stderr);
    Ok(Err(if words.is_empty() { "git knows no such revision".to_owned() } else { words }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("throng-preflight-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_does_not_build_is_told_with_its_last_lines() {
        let folder = folder("broken");
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("Cargo.toml"), "[package]\nname = \"broken\"\nedition = \"2024\"\n[workspace]\n")
            .unwrap();
        fs::write(folder.join("src/main.rs"), "fn main() { nothing_of_that_name() }\n").unwrap();
        let builder = Builder { name: "broken".to_owned(), cache: folder.join("cache") };
        let error = builder.find("--base", &folder.display().to_string(), &mut |_| ()).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.starts_with("--base: ") && error.contains("nothing_of_that_name"), "{error}");
    }

    #[test]
    fn what_is_nothing_is_told() {
        let builder = Builder { name: "throng".to_owned(), cache: std::env::temp_dir() };
        for text in ["no-such-revision", "--help"] {
            let error = builder.find("--change", text, &mut |_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--change {text} is no file, no folder, and no revision")), "{error}");
        }
    }

    #[test]
    fn programs_are_those_that_cargo_names() {
        let messages =
            "{\"executable\":null}\n{\"executable\":\"/x/release/throng\"}\nnoise\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(programs(messages), [PathBuf::from("/x/release/throng")]);
    }
}
