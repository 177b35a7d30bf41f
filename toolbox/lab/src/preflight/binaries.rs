//! Binaries: what stands behind `--base` and `--change`: a program, a folder that is built, or a revision that is.
//!
//! A revision is checked out into a worktree in the cache folder and built there, in the same folder of the repository that the command
//! was called in. The worktree goes with the build, whether that succeeds or not; the working tree and what is not committed in it are
//! never touched. All such builds share a target folder, so that the second one compiles only what differs, and one preflight builds at
//! a time. What was built of a commit is kept, and not built again where the same would come of it ([`program_cache`]).
//!
//! ```text
//! CACHE/lock                             whoever builds has it
//! CACHE/worktrees/1234567890ab/          the checkout, while it is built
//! CACHE/target/                          what cargo keeps
//! CACHE/programs/1234567890ab-8f.../     the program of a commit, by what else it is made by
//! CACHE/programs/folder-071b36093b6c/    that of a folder, by its bytes; of both the last that were used are kept
//! ```

mod cargo_build;
mod checkout;
mod content_hash;
mod program_cache;

use std::io;
use std::path::PathBuf;

use throng_platform::signals::StopFlag;

use self::cargo_build::{Build, BuildError};
use self::checkout::{Repository, Worktree};
use self::program_cache::{ProgramCache, ProgramKey};
use super::plan::Side;

pub use content_hash::content_hash;

/// Letters of a commit, and of a hash, that name a folder.
const SHORT_LETTERS: usize = 12;

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    #[error("{} {text} is no file, no folder, and no revision of the repository here: {cause}", side.option())]
    Unknown { side: Side, text: String, cause: String },
    #[error("{} {text} is a revision that cannot be checked out: {cause}", side.option())]
    Checkout { side: Side, text: String, cause: String },
    #[error("{}: {what} does not build; its last lines:\n{lines}", side.option())]
    Build { side: Side, what: String, lines: String },
    #[error("{}: {what} was built and has no program called {name}; it has: {found}", side.option())]
    NoProgram { side: Side, what: String, name: String, found: String },
    #[error("{}: {program} cannot be run: {cause}; install it", side.option())]
    Program { side: Side, program: &'static str, cause: io::Error },
    #[error("{}: {cause}; name another folder with --cache", path.display())]
    Cache { path: PathBuf, cause: io::Error },
    #[error("stopped while building")]
    Stopped,
}

/// How programs are found and made.
#[derive(Debug, Clone)]
pub struct Builder {
    /// Of the program that is wanted, where a build makes several.
    pub name: String,
    /// Where it was called: files and folders are named from here, and revisions are those of the repository that it lies in.
    pub here: PathBuf,
    pub cache: PathBuf,
}

impl Builder {
    /// Where nobody says otherwise: in the user's cache.
    pub fn default_cache() -> PathBuf {
        let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
        cache.unwrap_or_else(std::env::temp_dir).join("throng/preflight")
    }

    /// The program behind what was said for this side. `tell` hears what takes time. Builds of revisions wait for another process that builds
    /// in the same cache.
    ///
    /// # Errors
    /// If there is none, with why; if `stop` is requested while it is built.
    pub fn find(
        &self,
        side: Side,
        text: &str,
        stop: &StopFlag,
        tell: &mut dyn FnMut(String),
    ) -> Result<PathBuf, BinaryError> {
        let path = self.here.join(text);
        if path.is_file() {
            return path.canonicalize().map_err(|cause| BinaryError::Unknown {
                side,
                text: text.to_owned(),
                cause: cause.to_string(),
            });
        }
        if path.is_dir() {
            tell(format!("building {text}"));
            let built = self.build(side, text, &Build { folder: &path, target: None }, stop)?;
            // The next build may replace it, and pages show commands with it.
            return self.cache(tell)?.keep(&built, &ProgramKey::of_folder(&built), &self.name);
        }
        self.revision(side, text, stop, tell)
    }

    fn revision(
        &self,
        side: Side,
        text: &str,
        stop: &StopFlag,
        tell: &mut dyn FnMut(String),
    ) -> Result<PathBuf, BinaryError> {
        let repository = Repository { here: &self.here, side };
        let unknown = |cause: String| BinaryError::Unknown { side, text: text.to_owned(), cause };
        let refused = |cause: String| BinaryError::Checkout { side, text: text.to_owned(), cause };
        if text.starts_with('-') {
            return Err(unknown("a revision begins with no dash".to_owned()));
        }
        let whole = repository.commit_of(text)?.map_err(unknown)?;
        // Of the base nobody expects them.
        let may_be_meant = side == Side::Change && repository.commit_of("HEAD")?.is_ok_and(|head| head == whole);
        if may_be_meant && repository.has_changes()? {
            tell(format!(
                "note what is changed here and not committed is not in {text}; name the folder to have it built, too"
            ));
        }
        let commit: String = whole.chars().take(SHORT_LETTERS).collect();
        let below = repository.folder_below()?.map_err(refused)?;
        let makers = cargo_build::makers(&self.here).map_err(|(program, cause)| BinaryError::Program {
            side,
            program,
            cause,
        })?;
        let key = ProgramKey::of_commit(&commit, &below, &makers);
        // Another process may be at the same.
        let cache = self.cache(tell)?;
        if let Some(program) = cache.find(&key, &self.name) {
            return Ok(program);
        }
        tell(format!("checking {text} out ({commit})"));
        let worktree = Worktree::add(repository, &cache.worktrees(), &commit)?.map_err(refused)?;
        let folder = worktree.path().join(&below);
        if !folder.is_dir() {
            return Err(refused(format!("there was no folder {below} in it yet")));
        }
        let what = format!("{text} ({commit})");
        tell(format!("building {what}"));
        let built = self.build(side, &what, &Build { folder: &folder, target: Some(&cache.target()) }, stop)?;
        cache.keep(&built, &key, &self.name)
    }

    fn cache(&self, tell: &mut dyn FnMut(String)) -> Result<ProgramCache, BinaryError> {
        ProgramCache::lock(&self.cache, tell)
    }

    /// Builds a folder's default package; the program of our name, or the only one.
    fn build(&self, side: Side, what: &str, build: &Build<'_>, stop: &StopFlag) -> Result<PathBuf, BinaryError> {
        let programs = build.run(stop).map_err(|error| match error {
            BuildError::Run(cause) => BinaryError::Program { side, program: "cargo", cause },
            BuildError::Failed(lines) => BinaryError::Build { side, what: what.to_owned(), lines },
            BuildError::Stopped => BinaryError::Stopped,
        })?;
        let named = programs.iter().find(|path| path.file_name().is_some_and(|name| *name == *self.name));
        match (named, &programs[..]) {
            (Some(program), _) | (None, [program]) => Ok(program.clone()),
            _ => {
                let found: Vec<String> = programs.iter().map(|path| path.display().to_string()).collect();
                let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
                Err(BinaryError::NoProgram { side, what: what.to_owned(), name: self.name.clone(), found })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("throng-preflight-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn go_on() -> StopFlag {
        StopFlag::new().unwrap()
    }

    #[test]
    fn what_does_not_build_is_told_with_its_last_lines() {
        let folder = folder("broken");
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("Cargo.toml"), "[package]\nname = \"broken\"\nedition = \"2024\"\n[workspace]\n")
            .unwrap();
        fs::write(folder.join("src/main.rs"), "fn main() { nothing_of_that_name() }\n").unwrap();
        let builder = Builder { name: "broken".to_owned(), here: folder.clone(), cache: folder.join("cache") };
        let error = builder.find(Side::Base, ".", &go_on(), &mut |_| ()).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.starts_with("--base: ") && error.contains("nothing_of_that_name"), "{error}");
    }

    #[test]
    fn what_is_nothing_is_told() {
        let builder = Builder { name: "throng".to_owned(), here: ".".into(), cache: std::env::temp_dir() };
        for text in ["no-such-revision", "--help"] {
            let error = builder.find(Side::Change, text, &go_on(), &mut |_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--change {text} is no file, no folder, and no revision")), "{error}");
        }
    }

    /// A repository with a game in a folder of it, of one commit, and a cache beside it. All goes with the value.
    struct Repository {
        folder: PathBuf,
        builder: Builder,
    }

    const MANIFEST: &str = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";

    impl Repository {
        fn new(name: &str, main: &str) -> Self {
            let folder = folder(name);
            let game = folder.join("repository/games/tiny");
            fs::create_dir_all(game.join("src")).unwrap();
            fs::write(game.join("Cargo.toml"), MANIFEST).unwrap();
            fs::write(game.join(".gitignore"), "/target\n/Cargo.lock\n").unwrap();
            fs::write(game.join("src/main.rs"), main).unwrap();
            let builder = Builder { name: "tiny".to_owned(), here: game, cache: folder.join("cache") };
            let repository = Self { folder, builder };
            repository.git(&["init", "--quiet", "--initial-branch", "main", "../.."]);
            repository.commit();
            repository
        }

        fn git(&self, words: &[&str]) -> String {
            let by = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgsign=false"];
            let repository = checkout::Repository { here: &self.builder.here, side: Side::Base };
            let said = repository.git(&[&by[..], words].concat()).unwrap();
            said.unwrap_or_else(|why| panic!("{words:?}: {why}"))
        }

        fn commit(&self) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message", "one more"]);
        }

        fn write_main(&self, text: &str) {
            fs::write(self.builder.here.join("src/main.rs"), text).unwrap();
        }

        /// The program, or why there is none, and what was told meanwhile. Nothing of the repository is another for it.
        fn find(&self, side: Side, text: &str) -> (Result<PathBuf, String>, Vec<String>) {
            let state = || {
                let status = self.git(&["status", "--porcelain", "--branch"]);
                let main = fs::read_to_string(self.builder.here.join("src/main.rs")).unwrap();
                (status, main, self.git(&["worktree", "list"]), self.git(&["stash", "list"]))
            };
            let before = state();
            let mut told = Vec::new();
            let found = self.builder.find(side, text, &go_on(), &mut |words| told.push(words));
            assert_eq!(state(), before, "the repository is as it was, with no more worktrees");
            let left = fs::read_dir(self.builder.cache.join("worktrees")).into_iter().flatten().count();
            assert_eq!(left, 0, "no checkout is left");
            (found.map_err(|error| error.to_string()), told)
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn says(program: &Path) -> String {
        String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
    }

    /// Promise: a revision is what was committed, built in the game's own folder of the repository, once; what is changed and not
    /// committed is not in it, is told, and stays as it is.
    #[test]
    fn a_revision_is_built_as_it_was_committed_and_once() {
        let repository = Repository::new("revision", "fn main() { print!(\"first\") }\n");
        repository.write_main("fn main() { print!(\"second\") }\n");
        repository.commit();
        repository.write_main("fn main() { this is not even Rust }\n");
        // One that was killed has left half a checkout, of which the repository knows nothing.
        let commit: String = repository.git(&["rev-parse", "HEAD"]).chars().take(SHORT_LETTERS).collect();
        let worktrees = repository.builder.cache.join("worktrees");
        fs::create_dir_all(worktrees.join(commit).join("games")).unwrap();
        fs::create_dir_all(worktrees.join("0123456789ab")).unwrap();

        let (program, told) = repository.find(Side::Base, "main");
        let program = program.unwrap();
        assert_eq!(says(&program), "second");
        assert!(told[0].starts_with("checking main out"), "{told:?}");
        let (before, told) = repository.find(Side::Change, "HEAD~1");
        assert_eq!(says(&before.unwrap()), "first");
        assert!(!told.iter().any(|words| words.contains("not committed")), "{told:?}");
        let (again, told) = repository.find(Side::Base, "main");
        assert_eq!((again.unwrap(), told), (program.clone(), Vec::new()), "it is there already");
        let (again, told) = repository.find(Side::Change, "main");
        assert_eq!((again.unwrap(), told.len()), (program, 1), "it is there already: {told:?}");
        assert!(told[0].contains("not committed is not in main"), "{told:?}");
        // And the changed folder itself is what is built of it.
        let (changed, _) = repository.find(Side::Change, ".");
        assert!(changed.unwrap_err().contains("this is not even Rust"));
    }

    /// Promise: a revision that does not build is told with its name, its commit and what the compiler said, and leaves nothing behind.
    #[test]
    fn a_revision_that_does_not_build_is_told_and_nothing_is_lost() {
        let repository = Repository::new("no-build", "fn main() { nothing_of_that_name() }\n");
        repository.write_main("fn main() {}\n");
        let (found, _) = repository.find(Side::Base, "main");
        let commit: String = repository.git(&["rev-parse", "HEAD"]).chars().take(SHORT_LETTERS).collect();
        let error = found.unwrap_err();
        let begin = format!("--base: main ({commit}) does not build; its last lines:");
        assert!(error.starts_with(&begin) && error.contains("nothing_of_that_name"), "{error}");
        assert!(!repository.builder.cache.join("programs").exists(), "nothing is kept of it");
    }

    #[test]
    fn a_revision_from_before_the_game_says_so() {
        let repository = Repository::new("before", "fn main() {}\n");
        repository.git(&["mv", "../tiny", "../large"]);
        let large = Builder { here: repository.builder.here.with_file_name("large"), ..repository.builder.clone() };
        let error = large.find(Side::Base, "main", &go_on(), &mut |_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "--base main is a revision that cannot be checked out: there was no folder games/large/ in it yet"
        );
    }

    /// Promise: what a folder made is there when that folder has made something else: pages name it.
    #[test]
    fn the_program_of_a_folder_stays_when_the_folder_is_built_again() {
        let repository = Repository::new("folder", "fn main() { print!(\"first\") }\n");
        let first = repository.find(Side::Change, ".").0.unwrap();
        repository.write_main("fn main() { print!(\"second\") }\n");
        let second = repository.find(Side::Base, ".").0.unwrap();
        assert_eq!((says(&first), says(&second)), ("first".to_owned(), "second".to_owned()));
    }
}
