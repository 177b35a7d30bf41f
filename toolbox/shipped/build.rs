//! Finds out which commit is being built, for `src/main.rs`.
//!
//! Without git, and in a source tree that is no clone, it is `unknown`; whoever builds there says `THRONG_COMMIT` in the
//! environment. This is the last crate of all, so a new commit compiles nothing else.

use std::{env, path::Path, process::Command};

/// What the executable is made of, from the root of the repository.
const SOURCES: [&str; 5] = ["runtime", "toolbox", "games", "Cargo.toml", "Cargo.lock"];

fn main() {
    println!("cargo::rerun-if-env-changed=THRONG_COMMIT");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // With each change of them the executable is built anew, and whether they are as committed is asked again.
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let given = env::var("THRONG_COMMIT").ok().filter(|commit| !commit.trim().is_empty());
    let commit = given.or_else(|| commit_of(&root)).unwrap_or_else(|| "unknown".into());
    println!("cargo::rustc-env=THRONG_COMMIT={}", commit.trim());
}

/// The commit that is checked out in `root`, with `-modified` behind it if sources are not as committed.
fn commit_of(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        // Without its locks it leaves the index alone: others may use it at the same time.
        let output = Command::new("git").arg("--no-optional-locks").args(arguments).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A tree without git may lie in somebody else's clone.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // What git writes when something is committed or checked out. A file that is not there would be asked for always.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in [Some("HEAD"), Some("logs/HEAD"), branch.as_deref()].into_iter().flatten() {
        let path = root.join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&[&["status", "--porcelain", "--untracked-files=no", "--"][..], &SOURCES].concat())?;
    Some(if changes.is_empty() { commit } else { format!("{commit}-modified") })
}
