//! Binaries: what stands behind `--base` and `--change`: a program, a folder that is built, or a revision that is.
//!
//! A revision is checked out into a worktree in the cache folder and built there, in the same folder of the repository that the command
//! was called in. The worktree goes with the build, whether that succeeds or not; the working tree and what is not committed in it are
//! never touched. All such builds share a target folder, so that the second one compiles only what differs, and one preflight builds at
//! a time. What was built of a commit by a compiler is kept and not built again.
//!
//! ```text
//! CACHE/lock                          whoever builds has it
//! CACHE/worktrees/1234567890ab/       the checkout, while it is built
//! CACHE/target/                       what cargo keeps
//! CACHE/programs/1234567890ab-1.95.0/ the program of a commit
//! CACHE/programs/folder-071b36093b6c/ that of a folder, by its bytes; of both the last that were used are kept
//! ```

use std::fs::{self, File, TryLockError};
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value;
use siphasher::sip::SipHasher13;

use super::plan::Side;

/// Lines of a failed build that are shown: the error is in them.
const LINES_SHOWN: usize = 30;
const COMMIT_LETTERS: usize = 12;
/// Programs that are kept, of some 100 MB each; those that were not used for longest go.
const PROGRAMS_MAX: usize = 20;

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
    pub fn find(&self, side: Side, text: &str, tell: &mut dyn FnMut(String)) -> Result<PathBuf, BinaryError> {
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
            let built = self.build(side, text, &path, None)?;
            // The next build may replace it, and pages show commands with it.
            let hash: String = content_hash(&built).chars().take(COMMIT_LETTERS).collect();
            let _lock = self.lock(tell)?;
            return self.keep(&built, &format!("folder-{hash}"));
        }
        self.revision(side, text, tell)
    }

    fn revision(&self, side: Side, text: &str, tell: &mut dyn FnMut(String)) -> Result<PathBuf, BinaryError> {
        let unknown = |cause: String| BinaryError::Unknown { side, text: text.to_owned(), cause };
        let refused = |cause: String| BinaryError::Checkout { side, text: text.to_owned(), cause };
        if text.starts_with('-') {
            return Err(unknown("a revision begins with no dash".to_owned()));
        }
        let commit_of =
            |revision: &str| self.git(side, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]);
        let whole = commit_of(text)?.map_err(unknown)?;
        // Of the base nobody expects them.
        let may_be_meant = side == Side::Change && commit_of("HEAD")?.is_ok_and(|head| head == whole);
        if may_be_meant && self.has_changes(side)? {
            tell(format!(
                "note what is changed here and not committed is not in {text}; name the folder to have it built, too"
            ));
        }
        let commit: String = whole.chars().take(COMMIT_LETTERS).collect();
        let kept = format!("{commit}-{}", self.compiler(side)?);
        // Another process may be at the same.
        let _lock = self.lock(tell)?;
        let folder = self.programs().join(&kept);
        let program = folder.join(&self.name);
        if program.is_file() {
            note_use(&folder);
            return Ok(program);
        }
        // From the root of the repository to here.
        let below = self.git(side, &["rev-parse", "--show-prefix"])?.map_err(refused)?;
        tell(format!("checking {text} out ({commit})"));
        let worktree = Worktree::add(self, side, &commit)?.map_err(refused)?;
        let place = worktree.path.join(&below);
        if !place.is_dir() {
            return Err(refused(format!("there was no folder {below} in it yet")));
        }
        tell(format!("building {text} ({commit})"));
        let what = format!("{text} ({commit})");
        let built = self.build(side, &what, &place, Some(&self.cache.join("target")))?;
        self.keep(&built, &kept)
    }

    /// Whether what git knows of is not as committed. Files that it does not know of may be anything.
    fn has_changes(&self, side: Side) -> Result<bool, BinaryError> {
        let changes = self.git(side, &["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
        Ok(changes.is_ok_and(|changes| !changes.is_empty()))
    }

    /// Version of the compiler: what another one makes of the same source is another program.
    fn compiler(&self, side: Side) -> Result<String, BinaryError> {
        let output = cargo().arg("--version").current_dir(&self.here).output();
        let output = output.map_err(|cause| BinaryError::Program { side, program: "cargo", cause })?;
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(words.split_whitespace().nth(1).unwrap_or("unknown").replace('/', "-"))
    }

    fn programs(&self) -> PathBuf {
        self.cache.join("programs")
    }

    /// Goes with the file.
    fn lock(&self, tell: &mut dyn FnMut(String)) -> Result<File, BinaryError> {
        let path = self.cache.join("lock");
        let mut lock = || {
            fs::create_dir_all(&self.cache)?;
            let file = File::create(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    tell(format!("waiting for another preflight, which builds in {}", self.cache.display()));
                    file.lock()?;
                }
                Err(TryLockError::Error(cause)) => return Err(cause),
            }
            Ok(file)
        };
        lock().map_err(|cause| BinaryError::Cache { path: path.clone(), cause })
    }

    /// Copies a program to where the next build leaves it alone, if it is not there. Under the lock.
    fn keep(&self, built: &Path, name: &str) -> Result<PathBuf, BinaryError> {
        let folder = self.programs().join(name);
        let (kept, unfinished) = (folder.join(&self.name), folder.join("unfinished"));
        if !kept.is_file() {
            // Whoever finds it finds it whole.
            let copied = fs::create_dir_all(&folder)
                .and_then(|()| fs::copy(built, &unfinished))
                .and_then(|_| fs::rename(&unfinished, &kept));
            copied.map_err(|cause| BinaryError::Cache { path: folder.clone(), cause })?;
        }
        note_use(&folder);
        sweep(&self.programs());
        Ok(kept)
    }

    /// Builds a folder's default package; the program of our name, or the only one.
    fn build(&self, side: Side, what: &str, folder: &Path, target: Option<&Path>) -> Result<PathBuf, BinaryError> {
        let mut command = cargo();
        command.args(["build", "--release", "--message-format", "json-render-diagnostics"]).current_dir(folder);
        if let Some(target) = target {
            command.env("CARGO_TARGET_DIR", target);
        }
        let output = command.output().map_err(|cause| BinaryError::Program { side, program: "cargo", cause })?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = words.lines().collect();
            let lines = lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n");
            return Err(BinaryError::Build { side, what: what.to_owned(), lines });
        }
        let programs = programs(&String::from_utf8_lossy(&output.stdout));
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

    /// What git says in the repository here, or its words why not.
    fn git(&self, side: Side, words: &[&str]) -> Result<Result<String, String>, BinaryError> {
        let output = Command::new("git").args(words).current_dir(&self.here).output();
        let output = output.map_err(|cause| BinaryError::Program { side, program: "git", cause })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            return Ok(Ok(text(&output.stdout)));
        }
        let words = text(&output.stderr);
        Ok(Err(if words.is_empty() { "git knows no such revision".to_owned() } else { words }))
    }
}

/// SipHash-1-3 of a program's bytes, with the key 0, which is the same only for the same build: two of one commit may differ by what was
/// not committed. Empty if it cannot be read. Files of runs keep it, so it stays what it is, whatever compiles us.
pub fn content_hash(program: &Path) -> String {
    let mut hasher = SipHasher13::new();
    let hashed = File::open(program).and_then(|mut file| {
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(()),
                read => hasher.write(&piece[..read]),
            }
        }
    });
    hashed.map_or_else(|_| String::new(), |()| format!("{:016x}", hasher.finish()))
}

/// That which runs us, if one does, so that both are built by one toolchain.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A checkout in the cache, whose end it is that this is dropped: the repository knows of no more worktrees than before.
struct Worktree<'a> {
    builder: &'a Builder,
    side: Side,
    path: PathBuf,
}

impl<'a> Worktree<'a> {
    /// Under the lock: what lies there already was left by a process that was killed, and is removed.
    fn add(builder: &'a Builder, side: Side, commit: &str) -> Result<Result<Self, String>, BinaryError> {
        let cache = &builder.cache;
        let cache = cache.canonicalize().map_err(|cause| BinaryError::Cache { path: cache.clone(), cause })?;
        let worktree = Self { builder, side, path: cache.join("worktrees").join(commit) };
        worktree.remove();
        // By force: the repository may know of one there whose folder is gone. No other worktree is touched.
        let words = worktree.path.display().to_string();
        let added = builder.git(side, &["worktree", "add", "--force", "--quiet", "--detach", &words, commit])?;
        Ok(added.map(|_| worktree))
    }

    /// A worktree of another repository's, or half of one, is no more than a folder here.
    fn remove(&self) {
        let words = self.path.display().to_string();
        let _ = self.builder.git(self.side, &["worktree", "remove", "--force", &words]);
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        self.remove();
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
    all[..too_many].iter().for_each(|(_, path)| drop(fs::remove_dir_all(path)));
}

/// What cargo says that it has made.
fn programs(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?))).collect()
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
        let builder = Builder { name: "broken".to_owned(), here: folder.clone(), cache: folder.join("cache") };
        let error = builder.find(Side::Base, ".", &mut |_| ()).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.starts_with("--base: ") && error.contains("nothing_of_that_name"), "{error}");
    }

    #[test]
    fn what_is_nothing_is_told() {
        let builder = Builder { name: "throng".to_owned(), here: ".".into(), cache: std::env::temp_dir() };
        for text in ["no-such-revision", "--help"] {
            let error = builder.find(Side::Change, text, &mut |_| ()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--change {text} is no file, no folder, and no revision")), "{error}");
        }
    }

    #[test]
    fn a_build_is_known_by_its_bytes() {
        let folder = folder("content");
        let [one, same, other] = ["one", "same", "other"].map(|name| folder.join(name));
        fs::write(&one, vec![7; 3 << 20]).unwrap();
        fs::copy(&one, &same).unwrap();
        fs::write(&other, [vec![7; (3 << 20) - 1], vec![8]].concat()).unwrap();
        let [one, same, other] = [one, same, other].map(|path| content_hash(&path));
        let known = folder.join("known");
        fs::write(&known, "throng").unwrap();
        // By the reference's arithmetic: who changes it parts all runs that were kept.
        assert_eq!(content_hash(&known), "071b36093b6cc432");
        fs::remove_dir_all(&folder).unwrap();
        assert!(one.len() == 16 && one == same && one != other, "{one} {same} {other}");
        assert_eq!(content_hash(&folder), "", "nothing is there");
    }

    #[test]
    fn programs_are_those_that_cargo_names() {
        let messages =
            "{\"executable\":null}\n{\"executable\":\"/x/release/throng\"}\nnoise\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(programs(messages), [PathBuf::from("/x/release/throng")]);
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
            let said = self.builder.git(Side::Base, &[&by[..], words].concat()).unwrap();
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
            let found = self.builder.find(side, text, &mut |words| told.push(words));
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
        let commit: String = repository.git(&["rev-parse", "HEAD"]).chars().take(COMMIT_LETTERS).collect();
        fs::create_dir_all(repository.builder.cache.join("worktrees").join(commit).join("games")).unwrap();

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
        let commit: String = repository.git(&["rev-parse", "HEAD"]).chars().take(COMMIT_LETTERS).collect();
        let error = found.unwrap_err();
        let begin = format!("--base: main ({commit}) does not build; its last lines:");
        assert!(error.starts_with(&begin) && error.contains("nothing_of_that_name"), "{error}");
        assert!(!repository.builder.programs().exists(), "nothing is kept of it");
    }

    #[test]
    fn a_revision_from_before_the_game_says_so() {
        let repository = Repository::new("before", "fn main() {}\n");
        repository.git(&["mv", "../tiny", "../large"]);
        let large = Builder { here: repository.builder.here.with_file_name("large"), ..repository.builder.clone() };
        let error = large.find(Side::Base, "main", &mut |_| ()).unwrap_err().to_string();
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

    #[test]
    fn programs_that_were_used_long_ago_make_room() {
        let programs = folder("sweep");
        for number in 0..PROGRAMS_MAX + 2 {
            let path = programs.join(format!("{number:012}-1.95.0"));
            fs::create_dir(&path).unwrap();
            let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            File::open(&path).unwrap().set_modified(at).unwrap();
        }
        sweep(&programs);
        let mut left: Vec<String> = fs::read_dir(&programs)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        fs::remove_dir_all(&programs).unwrap();
        assert_eq!((left.len(), left[0].as_str()), (PROGRAMS_MAX, "000000000002-1.95.0"), "{left:?}");
    }
}
