//! Runs of the same two builds again and again: `--repeat`, which appends each to a file and counts those that are there.
//!
//! Wanted are runs that could have said something: what a busy host leaves no room to be seen in raises no alarm, and is no proof that
//! there would be none. So those that could say nothing are told apart, and run again, up to a maximum.

use std::{error::Error, fs::OpenOptions, io::Write, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throng_history::Machine;
use throng_lab::preflight::{PreflightPlan, PreflightReport, binaries, statistics::Verdict as Seen};
use throng_platform::signals::StopFlag;

use super::{PreflightArguments, run_once};
use crate::{
    outcome::{CommandResult, NOTHING_SAID, Verdict},
    output::{remark, say},
};

/// For each run that is wanted so many are made at most.
const TRIES: u32 = 2;
/// Pages that are named in words; the file names all.
const PAGES_TOLD_MAX: usize = 10;

/// What a run was of. Runs count together only where all of this is the same, and machines are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Identity {
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
    content: String,
    words: Vec<String>,
}

impl Identity {
    fn new(plan: &PreflightPlan, machine: Machine) -> Self {
        let build =
            |path: &Path, words: &[String]| BuildIdentity { content: binaries::content(path), words: words.to_vec() };
        Self {
            base: build(&plan.base, &plan.base_words),
            change: build(&plan.change, &plan.change_words),
            played: plan.words.clone(),
            read: plan.words.windows(2).filter_map(|words| read_by(&words[0], Path::new(&words[1]))).collect(),
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

/// What a word names that says where something is read from: the bytes of a file, and names and sizes of all files in a folder.
fn read_by(word: &str, path: &Path) -> Option<String> {
    if !["--config", "--recording"].contains(&word) {
        return None;
    }
    if !path.is_dir() {
        return Some(binaries::content(path));
    }
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<String> = files
        .map(|file| {
            let bytes = file.metadata().map_or(0, |about| about.len());
            format!("{} {bytes}", file.file_name().display())
        })
        .collect();
    files.sort();
    Some(files.join(", "))
}

/// Runs that are in a file already.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    runs: u32,
    /// Of these: saw something; could say nothing.
    seen: u32,
    unknown: u32,
    /// Of those that saw something, in the file's folder.
    pages: Vec<String>,
    /// Lines of other builds, games or options, or that do not say of which machine they are, which do not count.
    of_others: u32,
    /// Lines of another machine, which do not count either, and in what the last of them is unlike this one.
    of_other_machines: u32,
    machine_differences: Vec<String>,
    /// The last line was not written to its end: that run is run again.
    is_torn: bool,
}

impl Counted {
    fn read(text: &str, identity: &Identity) -> Self {
        let mut counted = Self { is_torn: !text.is_empty() && !text.ends_with('\n'), ..Self::default() };
        for line in text.lines().filter(|line| !line.is_empty()) {
            let Ok(run) = serde_json::from_str::<Value>(line) else { continue };
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
        self.unknown += u32::from(!has_seen && run["verdict"] == json!(Seen::Unknown));
        self.pages.extend(run["page"].as_str().map(str::to_owned));
    }

    /// Runs that could say something.
    fn said(&self) -> u32 {
        self.runs - self.unknown
    }

    /// Whether there are to be more, if so many are wanted.
    fn wants_more(&self, count: u32) -> bool {
        self.said() < count && self.runs < TRIES * count
    }

    fn verdict(&self, count: u32) -> Verdict {
        if self.seen > 0 {
            Verdict::Failed
        } else if self.said() < count {
            Verdict::Status(NOTHING_SAID)
        } else {
            Verdict::Fine
        }
    }
}

/// Many runs, of which those that are in the file already are not run again.
pub fn repeat(plan: &PreflightPlan, count: u32, arguments: &PreflightArguments, stop: &StopFlag) -> CommandResult {
    let path = arguments.report.join("runs.jsonl");
    let identity = Identity::new(plan, Machine::by_name());
    let mut counted = Counted::read(&std::fs::read_to_string(&path).unwrap_or_default(), &identity);
    if counted.of_others > 0 {
        remark(format_args!(
            "note {} runs in {} are of other builds, another game or other options, or name no machine, and do not count; --report names another folder",
            counted.of_others,
            path.display()
        ));
    }
    if counted.of_other_machines > 0 {
        remark(format_args!(
            "note {} runs in {} were on another machine ({}), and do not count; --report names another folder",
            counted.of_other_machines,
            path.display(),
            counted.machine_differences.join("; ")
        ));
    }
    while counted.wants_more(count) {
        let mut report = run_once(plan, &arguments.report, stop)?;
        if stop.requested() {
            let said = counted.said();
            return Err(
                format!("stopped when {said} of {count} runs could say something; the same command goes on").into()
            );
        }
        let found: Vec<Value> = report.seen().map(|finding| json!(finding)).collect();
        let number = counted.runs + 1;
        let page = if found.is_empty() { None } else { Some(keep_page(&mut report, &arguments.report, number)?) };
        let line = json!({
            "run": number, "verdict": report.verdict, "seen": found, "page": page, "pairs": report.findings.pairs,
            "undisturbed_share": report.findings.undisturbed_share, "took_disturbed": report.findings.took_disturbed,
            "all": report.findings.subsystems.first(), "base_commit": report.base.commit, "change_commit": report.change.commit,
            "of": identity,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let torn = if std::mem::take(&mut counted.is_torn) { "\n" } else { "" };
        writeln!(file, "{torn}{line}")?;
        counted.add(&line);
        remark(format_args!(
            "run {number} of {} at most: {} seen, {:.0} % of steps undisturbed; {} of {count} runs could say something, {} of them saw something",
            TRIES * count,
            found.len(),
            100.0 * report.findings.undisturbed_share,
            counted.said(),
            counted.seen
        ));
        if page.is_some() {
            remark(format_args!("its page: {}", report.report.unwrap_or_default()));
        }
    }
    tell(&counted, count, &path, arguments)?;
    Ok(counted.verdict(count))
}

/// Writes a report under a name of its own, which it returns: the next run's takes the place of `report.html`.
fn keep_page(report: &mut PreflightReport, folder: &Path, number: u32) -> Result<String, Box<dyn Error>> {
    let name = free_name(folder, number);
    report.write_named(folder, &name)?;
    Ok(page_of(&name))
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

fn tell(counted: &Counted, count: u32, path: &Path, arguments: &PreflightArguments) -> std::io::Result<()> {
    let Counted { runs, seen, unknown, pages, of_others, of_other_machines, .. } = counted;
    let said = counted.said();
    if said < count {
        remark(format_args!(
            "note {unknown} of {runs} runs could say nothing, and no more than {} are made: use a quieter host or longer runs, with another \
             --report, or go on with a larger --repeat",
            TRIES * count
        ));
    }
    if arguments.json {
        return say(json!({
            "runs": runs, "runs_that_could_say_something": said, "runs_that_saw_something": seen,
            "runs_that_could_say_nothing": unknown, "runs_of_others": of_others, "runs_of_other_machines": of_other_machines,
            "pages": pages, "file": path,
        }));
    }
    let file = path.display();
    say(format_args!(
        "{seen} of {said} runs that could say something saw something, {unknown} more could say nothing: {file}"
    ))?;
    if !pages.is_empty() {
        let told: Vec<String> =
            pages.iter().take(PAGES_TOLD_MAX).map(|page| path.with_file_name(page).display().to_string()).collect();
        let more = match pages.len() - told.len() {
            0 => String::new(),
            more => format!(" and {more} more, which the file names"),
        };
        say(format_args!("pages of those that saw something: {}{more}", told.join(", ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> PreflightPlan {
        PreflightPlan {
            base: "no-base".into(),
            change: "no-change".into(),
            recording: None,
            words: words.split(' ').map(str::to_owned).collect(),
            base_words: Vec::new(),
            change_words: Vec::new(),
            seconds: 30,
            pair_s: 0.3,
            frames_per_step: 20,
            valgrind: false,
        }
    }

    /// Promise: runs of another build, game, option or machine are not taken for ours, and a torn line is no run.
    #[test]
    fn only_runs_of_the_same_builds_and_the_same_play_count() {
        let here = || Machine { cpu: "EPYC".into(), cores: 2, memory_mb: 4_000, ..Machine::default() };
        let of = |words, machine| json!(Identity::new(&plan(words), machine));
        let (ours, other) = (of("--game duel", here()), of("--game frontier", here()));
        let line = |of: &Value, seen: Value, verdict: Seen| {
            format!("{}\n", json!({"of": of, "seen": seen, "verdict": verdict}))
        };
        let text = [
            line(&ours, json!([]), Seen::None),
            line(&ours, json!([{"name": "all"}]), Seen::Slower),
            line(&other, json!([{"name": "all"}]), Seen::Slower),
            format!("{}\n", json!({"run": 1, "seen": [], "pairs": 4})),
            line(&ours, json!([]), Seen::Unknown),
            "{\"run\": 4, \"ver".to_owned(),
        ];
        let identity = Identity::new(&plan("--game duel"), here());
        let counted = Counted::read(&text.concat(), &identity);
        let expect = Counted { runs: 3, seen: 1, unknown: 1, of_others: 2, is_torn: true, ..Counted::default() };
        assert_eq!(counted, expect, "lines of builds that kept no pages count, too");
        assert_eq!(Counted::read("", &identity), Counted::default());

        let mut nobodys = ours.clone();
        nobodys.as_object_mut().unwrap().remove("machine");
        let text = [
            line(&of("--game duel", Machine { cpu: "Xeon".into(), ..here() }), json!([]), Seen::None),
            line(&of("--game duel", Machine { memory_mb: 4_001, ..here() }), json!([]), Seen::None),
            line(&nobodys, json!([]), Seen::None),
        ];
        let counted = Counted::read(&text.concat(), &identity);
        assert_eq!((counted.runs, counted.of_other_machines, counted.of_others), (1, 1, 1), "{counted:?}");
        assert_eq!(counted.machine_differences, ["processor: Xeon and EPYC"]);
    }

    /// Promise: runs by settings or a recording that have changed since are of something else.
    #[test]
    fn what_was_read_is_part_of_what_a_run_was_of() {
        let folder = std::env::temp_dir().join(format!("throng-repeated-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let settings = folder.join("throng.toml");
        let read = |text: &str| {
            std::fs::write(&settings, text).unwrap();
            [("--config", &settings), ("--recording", &folder), ("--game", &folder)]
                .map(|(word, path)| read_by(word, path))
        };
        let (before, after) = (read("[game]\n"), read("[server]\n"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!((0..2).all(|at| before[at].is_some() && before[at] != after[at]), "{before:?} and {after:?}");
        assert_eq!(before[2], None);
    }

    /// Plays runs with these verdicts, as far as more are wanted; how many that were, how many could say something, and the exit status.
    fn outcome(count: u32, verdicts: impl IntoIterator<Item = Seen>) -> (u32, u32, u8) {
        let (mut counted, mut verdicts) = (Counted::default(), verdicts.into_iter());
        while counted.wants_more(count) {
            let verdict = verdicts.next().expect("there are no more runs than these");
            let seen = if verdict.is_seen() { json!([{"name": "all"}]) } else { json!([]) };
            counted.add(&json!({"seen": seen, "verdict": verdict}));
        }
        let status = match counted.verdict(count) {
            Verdict::Fine => 0,
            Verdict::Failed => 1,
            Verdict::Status(status) => status,
        };
        (counted.runs, counted.said(), status)
    }

    /// Promise: so many runs as are wanted could have raised an alarm, or it is said that they could not.
    #[test]
    fn runs_that_could_say_nothing_are_no_passes() {
        use Seen::{None, Slower, Unknown};
        assert_eq!(outcome(3, [None; 3]), (3, 3, 0));
        assert_eq!(outcome(3, [Unknown, None, Unknown, None, None]), (5, 3, 0));
        assert_eq!(outcome(3, [Unknown, None, Unknown, None, Unknown, Unknown]), (6, 2, 2));
        assert_eq!(outcome(3, [Unknown; 6]), (6, 0, 2));
        assert_eq!(outcome(3, [Unknown, Slower, Unknown, Unknown, Unknown, Unknown]), (6, 1, 1));
        assert_eq!(outcome(2, [Slower, None]), (2, 2, 1));
    }

    /// Promise: no page of a run that saw something is written over.
    #[test]
    fn pages_have_names_of_their_own() {
        let folder = std::env::temp_dir().join(format!("throng-repeated-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names = [3, 3, 4, 3].map(|number| {
            let name = free_name(&folder, number);
            std::fs::write(folder.join(page_of(&name)), "a page").unwrap();
            name
        });
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["run-3", "run-3-2", "run-4", "run-3-3"]);
    }

    #[test]
    fn a_run_that_saw_something_could_say_something() {
        let mut counted = Counted::default();
        counted
            .add(&json!({"seen": [{"name": "ai", "verdict": "gone"}], "verdict": Seen::Unknown, "page": "run-1.html"}));
        assert_eq!((counted.said(), counted.seen, counted.pages.as_slice()), (1, 1, &["run-1.html".to_owned()][..]));
    }
}
