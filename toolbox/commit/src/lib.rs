//! Which commit an executable is built of, for its build script: reports, captures, crash reports and the history of runs say it.
//!
//! In `build.rs`, with this crate in `[build-dependencies]`:
//!
//! ```no_run
//! throng_commit::set(&["src", "Cargo.toml", "Cargo.lock"]);
//! ```
//!
//! Then `env!("THRONG_COMMIT")` in the package is the commit. Do it in the package of the executable, since a new commit compiles that
//! package anew.
//!
//! [`git`] is for whoever else asks a repository.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Where nothing can be found out.
const UNKNOWN: &str = "unknown";

/// Sets `THRONG_COMMIT` for the package whose build script this is: twelve letters of the commit that is checked out, with `-modified`
/// behind it if `sources` are not as committed. `sources` are files and folders of this clone, from the package's folder on: all that
/// the executable is made of, and no folder of a build. What lies in another clone, such as a library by its path, is not looked at.
///
/// Whoever builds without git, or outside of a clone, says `THRONG_COMMIT` in the environment; otherwise it is `unknown` there, and where git
/// does not know the package's manifest. The script runs again when a source, the commit or that variable changes; once a new project has its
/// first commit, when a source changes next.
///
/// # Panics
/// Outside of a build script.
pub fn set(sources: &[&str]) {
    let package =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("this is for build scripts, which cargo runs"));
    println!("cargo::rerun-if-env-changed=THRONG_COMMIT");
    let given = env::var("THRONG_COMMIT").ok().map(|given| given.trim().to_owned()).filter(|given| !given.is_empty());
    let found = given.is_none().then(|| Checkout::of(&package)).flatten();
    let files = found.as_ref().map(Checkout::files).unwrap_or_default();
    // A file that is not there would have the script run with every build.
    let watched = sources.iter().map(|source| package.join(source)).chain(files).filter(|path| path.exists());
    watched.for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    let commit = given.or_else(|| found?.commit(sources)).unwrap_or_else(|| UNKNOWN.to_owned());
    println!("cargo::rustc-env=THRONG_COMMIT={commit}");
}

/// A package in a clone.
struct Checkout<'p> {
    package: &'p Path,
}

impl<'p> Checkout<'p> {
    /// A package that git does not know may lie in somebody else's clone.
    fn of(package: &'p Path) -> Option<Self> {
        let checkout = Self { package };
        checkout.git(&["ls-files", "--error-unmatch", "--", "Cargo.toml"]).map(|_| checkout)
    }

    /// What git writes when something is committed or checked out.
    fn files(&self) -> Vec<PathBuf> {
        let branch = self.git(&["symbolic-ref", "--quiet", "HEAD"]);
        let names = [Some("HEAD"), Some("logs/HEAD"), branch.as_deref()].into_iter().flatten();
        names.filter_map(|name| Some(self.package.join(self.git(&["rev-parse", "--git-path", name])?))).collect()
    }

    fn commit(&self, sources: &[&str]) -> Option<String> {
        let commit = self.git(&["rev-parse", "--short=12", "HEAD"])?;
        let changes = self.git(&[&["status", "--porcelain", "--untracked-files=no", "--"], sources].concat());
        let Some(changes) = changes else {
            println!("cargo::warning=THRONG_COMMIT is unknown: {sources:?} are not all in this clone");
            return None;
        };
        Some(if changes.is_empty() { commit } else { format!("{commit}-modified") })
    }

    fn git(&self, arguments: &[&str]) -> Option<String> {
        // Without its locks it leaves the index alone: others may use it at the same time.
        let mut git = git(self.package);
        let output = git.arg("--no-optional-locks").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// The program `git`, to be given arguments, for the repository that `folder` lies in. A hook of git's has variables in its environment
/// that name a repository, a working tree and an index. The child gets none of these, so that only `folder` counts.
pub fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"].into_iter().for_each(|name| _ = git.env_remove(name));
    git.current_dir(folder);
    git
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn run(folder: &Path, words: &str) {
        let mut git = git(folder);
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]);
        git.args(words.split(' '));
        assert!(git.output().expect("git is there").status.success(), "git {words}");
    }

    /// Promise: whoever asks a repository from within a hook asks the one of the folder.
    #[test]
    fn variables_of_a_hook_are_kept_from_git() {
        let asked = git(Path::new("."));
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            assert!(asked.get_envs().any(|(key, value)| key == name && value.is_none()), "{name} is handed on");
        }
    }

    #[test]
    fn a_package_has_its_commit_and_what_is_changed_since_is_told() {
        let folder = env::temp_dir().join(format!("throng-commit-{}", std::process::id()));
        // Left by a process of the same number that was killed.
        let _ = fs::remove_dir_all(&folder);
        let package = folder.join("game");
        fs::create_dir_all(package.join("src")).unwrap();
        fs::write(package.join("Cargo.toml"), "[package]").unwrap();
        fs::write(package.join("src/main.rs"), "fn main() {}").unwrap();
        let commit =
            || Checkout::of(&package).and_then(|checkout| checkout.commit(&["src", "Cargo.toml", "Cargo.lock"]));
        assert_eq!(commit(), None, "no clone");
        run(&folder, "init --quiet");
        assert_eq!(commit(), None, "a clone that does not know the package");
        run(&folder, "add game");
        assert_eq!(commit(), None, "no commit yet");
        run(&folder, "commit --quiet --message first");
        let first = commit().expect("a commit");
        assert!(first.len() == 12 && first.bytes().all(|letter| letter.is_ascii_hexdigit()), "{first}");
        fs::write(package.join("notes"), "dear").unwrap();
        assert_eq!(commit().as_ref(), Some(&first), "no source");
        fs::write(package.join("src/main.rs"), "fn main() { }").unwrap();
        assert_eq!(commit(), Some(format!("{first}-modified")));
        run(&folder, "commit --quiet --all --message second");
        assert!(commit().is_some_and(|second| second != first && second.len() == 12));
        assert_eq!(
            Checkout::of(&package).and_then(|checkout| checkout.commit(&["../.."])),
            None,
            "outside of the clone"
        );
        let files = Checkout::of(&package).expect("a clone").files();
        assert!(files.len() == 3 && files.iter().all(|file| file.exists()), "{files:?}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
