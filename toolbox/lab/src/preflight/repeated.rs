//! Repeated: runs of the same two builds, kept in one file, a line of JSON each, so that many of them count together.
//!
//! ```text
//! {"of": {base, change, played, ...}, "run": 3, "verdict": "none", "seen": [], "page": null, ...}   one run, complete
//! {"of": {base, ch                                                                                  torn: no run
//! ```
//!
//! Runs count where all that they were of is the same and machines are alike; others in the file are told apart by why they do not. Lines
//! are appended and never changed. One that was not written to its end is no run, and the next one begins on a line of its own. A line
//! that is no run is told by its number, unless it is the last and torn: the runs that were in it are made again, and may take hours.
//!
//! Wanted are runs that could have said something: what a busy host leaves no room to be seen in raises no alarm, and is no proof that
//! there would be none. So those that could say nothing are counted apart, and made again, up to a maximum.
//!
//! On the caller's thread, between runs. Reads and hashes both builds and what they read, and allocates.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throng_history::Machine;

use super::statistics::Verdict;
use super::{PreflightError, PreflightPlan, PreflightReport, binaries};
use crate::report::ReportError;

/// The file, in the folder of the runs' reports.
const FILE: &str = "runs.jsonl";
/// For each run that is wanted so many are made at most.
const TRIES: u32 = 2;

/// What a run was of. Runs count together only where all of this is the same, and machines are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    base: BuildIdentity,
    change: BuildIdentity,
    played: Vec<String>,
    /// Of the settings and the recording that it was played by: runs of what has changed since are of something else.
    read: Vec<String>,
    seconds: u32,
    pair_s: f64,
    frames_per_step: u32,
    /// By its names: a calibration of each start would part runs of one host.
    machine: Machine,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BuildIdentity {
    // The key is that of files from before.
    #[serde(rename = "content")]
    content_hash: String,
    words: Vec<String>,
}

impl Identity {
    /// Of runs by this plan on this machine. Reads both builds, the settings and what lies in the recording's folder, as they are now.
    pub fn new(plan: &PreflightPlan, machine: Machine) -> Self {
        let build = |path: &Path, words: &[String]| BuildIdentity {
            content_hash: binaries::content_hash(path),
            words: words.to_vec(),
        };
        Self {
            base: build(&plan.base, &plan.base_arguments),
            change: build(&plan.change, &plan.change_arguments),
            played: plan.arguments.clone(),
            read: plan.files_read.iter().map(|path| fingerprint(path)).collect(),
            seconds: plan.seconds,
            pair_s: plan.pair_s,
            frames_per_step: plan.frames_per_step,
            machine,
        }
    }

    /// Whether the other is of the same in all but the machine.
    fn is_of_the_same(&self, other: &Self) -> bool {
        *self == Self { machine: self.machine.clone(), ..other.clone() }
    }
}

/// By which it is seen that something was changed: a hash of the bytes of a file; names and sizes of all files in a folder.
fn fingerprint(path: &Path) -> String {
    if !path.is_dir() {
        return binaries::content_hash(path);
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<String> = files
        .map(|file| {
            let bytes = file.metadata().map_or(0, |about| about.len());
            format!("{} {bytes}", file.file_name().display())
        })
        .collect();
    files.sort();
    files.join(", ")
}

/// Runs of one file, by whether they count.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CountedRuns {
    pub runs: u32,
    /// Of these: saw something; could say nothing.
    pub seen: u32,
    pub unknown: u32,
    /// Of those that saw something, in the file's folder.
    pub pages: Vec<String>,
    /// Lines of other builds, games or options, or that do not say of which machine they are, which do not count.
    pub of_others: u32,
    /// Lines of another machine, which do not count either, and in what the last of them is unlike this one.
    pub of_other_machines: u32,
    pub machine_differences: Vec<String>,
    /// Numbers of lines that are no run [>= 1].
    pub damaged_lines: Vec<usize>,
}

impl CountedRuns {
    fn read(bytes: &[u8], identity: &Identity) -> Self {
        let mut counted = Self::default();
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let Ok(run) = serde_json::from_slice::<Value>(line) else {
                // A writer died in the middle of a line without an end.
                if !is_torn(line) {
                    counted.damaged_lines.push(number);
                }
                continue;
            };
            let of = Identity::deserialize(&run["of"]).ok().filter(|of| identity.is_of_the_same(of));
            let Some(of) = of else {
                counted.of_others += 1;
                continue;
            };
            match of.machine.differences(&identity.machine) {
                differences if differences.is_empty() => counted.add(&run),
                differences => {
                    counted.of_other_machines += 1;
                    counted.machine_differences = differences;
                }
            }
        }
        counted
    }

    fn add(&mut self, run: &Value) {
        let has_seen = run["seen"].as_array().is_some_and(|seen| !seen.is_empty());
        self.runs += 1;
        self.seen += u32::from(has_seen);
        // What was seen could be said, whatever is unknown of the whole frame.
        self.unknown += u32::from(!has_seen && run["verdict"] == json!(Verdict::Unknown));
        self.pages.extend(run["page"].as_str().map(str::to_owned));
    }

    /// Runs that could say something.
    pub fn said(&self) -> u32 {
        self.runs - self.unknown
    }

    /// Whether there are to be more, if so many are wanted that could say something.
    pub fn wants_more(&self, count: u32) -> bool {
        self.said() < count && self.runs < runs_max(count)
    }
}

/// Whether the last line has no end.
fn is_torn(bytes: &[u8]) -> bool {
    bytes.last().is_some_and(|last| *last != b'\n')
}

/// So many runs are made at most, if so many are wanted that could say something.
pub fn runs_max(count: u32) -> u32 {
    count.saturating_mul(TRIES)
}

/// Why nobody knows which runs have been made.
#[derive(Debug, thiserror::Error)]
#[error("runs that are kept in {} cannot be read: {cause}; name another folder with --report, or remove the file", path.display())]
pub struct RunsFileError {
    path: PathBuf,
    cause: io::Error,
}

/// The file of runs in one folder, and those in it that count.
#[derive(Debug)]
pub struct RunsFile {
    path: PathBuf,
    identity: Identity,
    counted: CountedRuns,
    /// The last line was not written to its end: that run is made again.
    is_torn: bool,
}

impl RunsFile {
    /// Counts the runs of this identity in the folder's file. One that is missing has none.
    ///
    /// # Errors
    /// If it is there and cannot be read: runs in it may have taken hours, and nobody is to make them again without a word.
    pub fn read(folder: &Path, identity: Identity) -> Result<Self, RunsFileError> {
        let path = folder.join(FILE);
        let bytes = match std::fs::read(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|cause| RunsFileError { path: path.clone(), cause })?,
        };
        let counted = CountedRuns::read(&bytes, &identity);
        Ok(Self { path, identity, counted, is_torn: is_torn(&bytes) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// If the run is of something else than what the file's runs are counted for: a program was built anew since, or what both read has
    /// changed.
    pub fn check(&self, report: &PreflightReport, plan: &PreflightPlan) -> Result<(), PreflightError> {
        let Identity { base, change, read: was_read, .. } = &self.identity;
        report.check_builds(plan, [&base.content_hash, &change.content_hash])?;
        match plan.files_read.iter().zip(was_read).find(|(path, was)| fingerprint(path) != **was) {
            Some((path, _)) => Err(PreflightError::ReadChanged { path: path.clone() }),
            None => Ok(()),
        }
    }

    pub fn counted(&self) -> &CountedRuns {
        &self.counted
    }

    /// The number of the run that is appended next.
    pub fn next_number(&self) -> u32 {
        self.counted.runs + 1
    }

    /// Writes the report of a run that saw something beside the file, under a name of its own: the next run's takes the place of
    /// `report.html`. Returns the page's name for [`append`](Self::append), which comes next; `None` if the run saw nothing.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_page(&self, report: &mut PreflightReport) -> Result<Option<String>, ReportError> {
        if report.seen().next().is_none() {
            return Ok(None);
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let name = free_name(folder, self.next_number());
        report.write_named(folder, &name)?;
        Ok(Some(page_of(&name)))
    }

    /// Appends a run with the page that was kept of it, and counts it.
    ///
    /// # Errors
    /// If the file cannot be opened or written. The run then does not count.
    pub fn append(&mut self, report: &PreflightReport, page: Option<&str>) -> io::Result<()> {
        let seen: Vec<Value> = report.seen().map(|finding| json!(finding)).collect();
        let line = json!({
            "run": self.next_number(), "verdict": report.verdict, "seen": seen, "page": page, "pairs": report.findings.pairs,
            "undisturbed_share": report.findings.undisturbed_share, "took_disturbed": report.findings.took_disturbed,
            "all": report.findings.subsystems.first(), "base_commit": report.base.commit, "change_commit": report.change.commit,
            "of": self.identity,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        let torn = if std::mem::take(&mut self.is_torn) { "\n" } else { "" };
        writeln!(file, "{torn}{line}")?;
        self.counted.add(&line);
        Ok(())
    }
}

/// A name that no page in the folder has: runs of other builds there are numbered, too.
fn free_name(folder: &Path, number: u32) -> String {
    let mut name = format!("run-{number}");
    let mut again = 1;
    while folder.join(page_of(&name)).exists() {
        again += 1;
        name = format!("run-{number}-{again}");
    }
    name
}

fn page_of(name: &str) -> String {
    format!("{name}.html")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::pair::PairFigures;

    fn plan(words: &str) -> PreflightPlan {
        PreflightPlan { arguments: words.split(' ').map(str::to_owned).collect(), ..PreflightPlan::example() }
    }

    fn here() -> Machine {
        Machine { cpu: "EPYC".into(), cores: 2, memory_mb: 4_000, ..Machine::default() }
    }

    /// Gone when dropped.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("throng-repeated-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Promise: runs of another build, game, option or machine are not taken for ours, and a torn line is no run.
    #[test]
    fn only_runs_of_the_same_builds_and_the_same_play_count() {
        let of = |words, machine| json!(Identity::new(&plan(words), machine));
        let (ours, other) = (of("--game duel", here()), of("--game frontier", here()));
        let line = |of: &Value, seen: Value, verdict: Verdict| {
            format!("{}\n", json!({"of": of, "seen": seen, "verdict": verdict}))
        };
        let text = [
            line(&ours, json!([]), Verdict::None),
            line(&ours, json!([{"name": "all"}]), Verdict::Slower),
            line(&other, json!([{"name": "all"}]), Verdict::Slower),
            format!("{}\n", json!({"run": 1, "seen": [], "pairs": 4})),
            line(&ours, json!([]), Verdict::Unknown),
            "{\"run\": 4, \"ver".to_owned(),
        ];
        let identity = Identity::new(&plan("--game duel"), here());
        let counted = CountedRuns::read(text.concat().as_bytes(), &identity);
        let expect = CountedRuns { runs: 3, seen: 1, unknown: 1, of_others: 2, ..CountedRuns::default() };
        assert_eq!(counted, expect, "lines of builds that kept no pages count, too");
        assert_eq!(CountedRuns::read(b"", &identity), CountedRuns::default());

        let mut nobodys = ours.clone();
        nobodys.as_object_mut().unwrap().remove("machine");
        let text = [
            line(&of("--game duel", Machine { cpu: "Xeon".into(), ..here() }), json!([]), Verdict::None),
            line(&of("--game duel", Machine { memory_mb: 4_001, ..here() }), json!([]), Verdict::None),
            line(&nobodys, json!([]), Verdict::None),
        ];
        let counted = CountedRuns::read(text.concat().as_bytes(), &identity);
        assert_eq!((counted.runs, counted.of_other_machines, counted.of_others), (1, 1, 1), "{counted:?}");
        assert_eq!(counted.machine_differences, ["processor: Xeon and EPYC"]);
    }

    /// Promise: runs by settings or a recording that have changed since are of something else.
    #[test]
    fn what_was_read_is_part_of_what_a_run_was_of() {
        let folder = TestFolder::new("read");
        let settings = folder.0.join("throng.toml");
        let identity = |path: &Path, text: &str| {
            std::fs::write(&settings, text).unwrap();
            Identity::new(&PreflightPlan { files_read: vec![path.to_owned()], ..plan("--game duel") }, here())
        };
        for path in [&settings, &folder.0] {
            let [before, same, after] = ["[game]\n", "[game]\n", "[server]\n"].map(|text| identity(path, text));
            assert!(before == same && before != after, "{before:?} and {after:?}");
        }
        // And in the middle of a command, too.
        let plan = PreflightPlan { files_read: vec![settings.clone()], ..plan("--game duel") };
        let runs = RunsFile::read(&folder.0, Identity::new(&plan, here())).unwrap();
        let report = PreflightReport::new(&plan, &[PairFigures::default()]);
        runs.check(&report, &plan).unwrap();
        std::fs::write(&settings, "[game]\n").unwrap();
        let error = runs.check(&report, &plan).unwrap_err().to_string();
        assert!(error.contains("throng.toml changed while runs by it were repeated"), "{error}");
    }

    /// Promise: what is appended behind a torn line is read again as it was counted.
    #[test]
    fn runs_behind_a_torn_line_count() {
        let folder = TestFolder::new("torn");
        let open = || RunsFile::read(&folder.0, Identity::new(&plan("--game duel"), here())).unwrap();
        std::fs::write(folder.0.join(FILE), "{\"run\": 1, \"ver").unwrap();
        let mut report = PreflightReport::new(&plan("--game duel"), &[PairFigures::default()]);
        let mut runs = open();
        for number in 1..=2 {
            assert_eq!(runs.next_number(), number);
            let page = runs.keep_page(&mut report).unwrap();
            assert_eq!(page, None, "it saw nothing");
            runs.append(&report, page.as_deref()).unwrap();
        }
        assert_eq!(runs.counted().runs, 2);
        // The torn line is not the last one any more.
        let expect = CountedRuns { runs: 2, damaged_lines: vec![1], ..CountedRuns::default() };
        assert_eq!(open().counted(), &expect);
    }

    /// Promise: whatever became of the file, the runs in it that are whole count, and what does not is told.
    #[test]
    fn lines_that_are_damaged_are_told_and_a_file_that_cannot_be_read_is_no_empty_one() {
        let folder = TestFolder::new("damaged");
        let read = || RunsFile::read(&folder.0, Identity::new(&plan("--game duel"), here()));
        assert_eq!(read().unwrap().counted(), &CountedRuns::default(), "there is none yet");
        let whole = json!({"of": Identity::new(&plan("--game duel"), here()), "seen": [], "verdict": Verdict::None});
        let whole = format!("{whole}\n").into_bytes();
        let damaged = [&b"\xFF"[..], &whole].concat();
        let torn = &whole[..whole.len() / 2];
        std::fs::write(folder.0.join(FILE), [&whole[..], &damaged, b"no JSON\n\n", &whole, torn].concat()).unwrap();
        let runs = read().unwrap();
        assert_eq!((runs.counted().runs, &runs.counted().damaged_lines[..], runs.is_torn), (2, &[2, 3][..], true));

        std::fs::remove_file(folder.0.join(FILE)).unwrap();
        std::fs::create_dir(folder.0.join(FILE)).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains("runs.jsonl cannot be read: Is a directory"), "{error}");
    }

    /// Plays runs with these verdicts, as far as more are wanted; how many that were, how many could say something, and how many saw it.
    fn counts(count: u32, verdicts: impl IntoIterator<Item = Verdict>) -> (u32, u32, u32) {
        let (mut counted, mut verdicts) = (CountedRuns::default(), verdicts.into_iter());
        while counted.wants_more(count) {
            let verdict = verdicts.next().expect("there are no more runs than these");
            let seen = if verdict.is_seen() { json!([{"name": "all"}]) } else { json!([]) };
            counted.add(&json!({"seen": seen, "verdict": verdict}));
        }
        (counted.runs, counted.said(), counted.seen)
    }

    /// Promise: there are more runs until as many as are wanted could say something, or there have been twice as many.
    #[test]
    fn runs_that_could_say_nothing_are_made_again() {
        use Verdict::{None, Slower, Unknown};
        assert_eq!(counts(3, [None; 3]), (3, 3, 0));
        assert_eq!(counts(3, [Unknown, None, Unknown, None, None]), (5, 3, 0));
        assert_eq!(counts(3, [Unknown, None, Unknown, None, Unknown, Unknown]), (6, 2, 0));
        assert_eq!(counts(3, [Unknown; 6]), (6, 0, 0));
        assert_eq!(counts(3, [Unknown, Slower, Unknown, Unknown, Unknown, Unknown]), (6, 1, 1));
        assert_eq!(counts(2, [Slower, None]), (2, 2, 1));
    }

    /// Promise: no page of a run that saw something is written over.
    #[test]
    fn pages_have_names_of_their_own() {
        let folder = TestFolder::new("pages");
        let names = [3, 3, 4, 3].map(|number| {
            let name = free_name(&folder.0, number);
            std::fs::write(folder.0.join(page_of(&name)), "a page").unwrap();
            name
        });
        assert_eq!(names, ["run-3", "run-3-2", "run-4", "run-3-3"]);
    }

    #[test]
    fn a_run_that_saw_something_could_say_something() {
        let mut counted = CountedRuns::default();
        counted.add(
            &json!({"seen": [{"name": "ai", "verdict": "gone"}], "verdict": Verdict::Unknown, "page": "run-1.html"}),
        );
        assert_eq!((counted.said(), counted.seen, counted.pages.as_slice()), (1, 1, &["run-1.html".to_owned()][..]));
    }
}
