//! The bench of the history: a game as `throng new` makes it, with twenty commits, and the same with work planted in one of them. Each commit
//! is built and played some times, as its developer would; whether `throng history` names that commit and that subsystem, and nothing
//! where nothing was planted.
//!
//! The two are branches that part where the work is planted, so what came before is played once and counts for both. They are played by
//! turns. Runs are the state of the bench, too: one that was stopped goes on where it was, in `reports/history-commits`. Another plan,
//! another commit of this repository, which the game stands on, and another machine need another folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::command;
use crate::error::XtaskError;
use crate::new_game::NewGame;
use crate::step;

pub(super) const NAME: &str = "history";

/// What is passed on behind `--`.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=100))]
    commits: u32,
    /// The commit that has the work, counted from 1.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(2..=100))]
    planted: u32,
    /// Of the time in which sheep look for players.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,
    /// Of each commit.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    runs: u32,
    /// Measured of each run (s).
    #[arg(long, default_value_t = 15)]
    seconds: u32,
    /// A folder of its own, for the game and both histories.
    #[arg(long, value_name = "DIR", default_value = "reports/history-commits")]
    out: PathBuf,
}

/// What all runs of a folder are of, in its `plan.json`: written when the game has its commits.
#[derive(PartialEq, Serialize, Deserialize)]
struct Plan {
    throng: String,
    machine: String,
    commits: u32,
    planted: u32,
    percent: u32,
    runs: u32,
    seconds: u32,
}

impl Plan {
    /// Whether a file has this very plan.
    fn is_in(&self, text: &str) -> bool {
        serde_json::from_str(text).is_ok_and(|made: Self| made == *self)
    }
}

/// So many that frames have work: what a tick of a tenth of a millisecond takes depends on what the host's caches hold by chance, and
/// differs by a tenth from run to run.
const PLAYERS: &str = "200";
const SHEEP: &str = "5000";
/// Where the work is planted, and the subsystem that has it.
const PLACE: (&str, &str) = ("src/sheep.rs", "    for mut place in &mut sheep {\n        let Some(player)");
const SUBSYSTEM: &str = "my_game.sheep";
/// What changes with every commit, so that each is built.
const CHANGED: &str = "src/main.rs";

/// Branches, and folders of histories.
const INNOCENT: &str = "innocent";
const PLANTED: &str = "planted";

pub(super) fn run(words: &[String]) -> Result<(), XtaskError> {
    let words = Words::try_parse_from(words).map_err(|error| XtaskError::Usage(error.to_string()))?;
    if words.planted > words.commits {
        return Err(XtaskError::Usage("--planted is one of --commits".to_owned()));
    }
    let bench = Bench::begin(&words)?;
    let [innocent, planted] = [bench.commits(INNOCENT)?, bench.commits(PLANTED)?];
    for (number, commit) in (1..).zip(&innocent) {
        bench.play(number, commit, INNOCENT)?;
        if number >= words.planted {
            bench.play(number, &planted[number as usize - 1], PLANTED)?;
        }
    }
    bench.copy(&innocent[..words.planted as usize - 1])?;
    let faults = [bench.judge(INNOCENT, None)?, bench.judge(PLANTED, Some(&planted[words.planted as usize - 1]))?];
    match faults.concat() {
        faults if faults.is_empty() => Ok(()),
        faults => Err(XtaskError::Usage(faults.join("\n"))),
    }
}

struct Bench<'w> {
    words: &'w Words,
    game: NewGame,
    out: PathBuf,
}

impl<'w> Bench<'w> {
    /// The game with all its commits, made unless it is there.
    fn begin(words: &'w Words) -> Result<Self, XtaskError> {
        let out = step::root().join(&words.out);
        let &Words { commits, planted, percent, runs, seconds, .. } = words;
        let (throng, machine) = (super::peers::commit(), super::machine::machine_in_words());
        let plan = Plan { throng, machine, commits, planted, percent, runs, seconds };
        let (file, folder) = (out.join("plan.json"), out.join("game"));
        if let Ok(text) = fs::read_to_string(&file) {
            if !plan.is_in(&text) {
                return Err(usage(
                    &file,
                    &format!(
                        "is another plan, or of another machine, than {}; name another folder with --out",
                        json!(plan)
                    ),
                ));
            }
            return Ok(Self { words, game: NewGame::in_folder(&folder), out });
        }
        command::built()?;
        // Without a plan nothing was played of it yet.
        let bench = Self { words, game: NewGame::make(&folder)?, out };
        bench.git(&["init", "--quiet", "--initial-branch", INNOCENT])?;
        // It completes the lock file, which is part of every commit.
        bench.build()?;
        for number in 1..words.planted {
            bench.commit(number, None)?;
        }
        bench.git(&["branch", PLANTED])?;
        for (branch, percent) in [(INNOCENT, None), (PLANTED, Some(words.percent))] {
            bench.git(&["checkout", "--quiet", branch])?;
            bench.commit(words.planted, percent)?;
            for number in words.planted + 1..=words.commits {
                bench.commit(number, None)?;
            }
        }
        fs::write(&file, json!(plan).to_string()).map_err(|cause| usage(&file, &cause.to_string()))?;
        Ok(bench)
    }

    /// A change that costs nothing, and `percent` more work if that is asked for.
    fn commit(&self, number: u32, percent: Option<u32>) -> Result<(), XtaskError> {
        let change = |path: &str, change: &dyn Fn(&str) -> String| {
            let path = self.game.folder().join(path);
            let text = fs::read_to_string(&path).map_err(|cause| usage(&path, &cause.to_string()))?;
            let changed = change(&text);
            if changed == text {
                return Err(usage(&path, "has no such place as the work is planted in; put right PLACE in this bench"));
            }
            fs::write(&path, changed).map_err(|cause| usage(&path, &cause.to_string()))
        };
        change(CHANGED, &|text| format!("{text}// Commit {number}.\n"))?;
        if let Some(percent) = percent {
            let (path, place) = PLACE;
            let work = format!(
                "    for place in sheep.iter().take(sheep.iter().count() * {percent} / 100) {{\n        \
                 std::hint::black_box(players.iter().find(|player| player.distance_m(place) < FEAR_M));\n    }}\n"
            );
            change(path, &|text| text.replacen(place, &format!("{work}{place}"), 1))?;
        }
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", &format!("commit {number}")]).map(drop)
    }

    /// Commits of a branch, the first one first.
    fn commits(&self, branch: &str) -> Result<Vec<String>, XtaskError> {
        let told = self.git(&["log", "--reverse", "--abbrev=12", "--format=%h", branch])?;
        Ok(told.lines().map(str::to_owned).collect())
    }

    /// Builds and plays a commit as often as is still to do.
    fn play(&self, number: u32, commit: &str, branch: &str) -> Result<(), XtaskError> {
        let done = self.lines(branch, commit)?.len() as u32;
        if done >= self.words.runs {
            return Ok(());
        }
        eprintln!(
            "── commit {number} of {}, {branch}: {done} of {} runs are done",
            self.words.commits, self.words.runs
        );
        self.git(&["checkout", "--quiet", commit])?;
        self.build()?;
        for _ in done..self.words.runs {
            self.load(branch)?;
        }
        // A build that is not of this commit would be played for ever.
        let kept = self.lines(branch, commit)?.len() as u32;
        if kept < self.words.runs {
            return Err(usage(&self.log(), &format!("{kept} runs of commit {commit} were kept; it says why no more")));
        }
        Ok(())
    }

    fn build(&self) -> Result<(), XtaskError> {
        let mut build = self.game.cargo(&["build", "--release", "--quiet"]);
        step::run("build", &mut build, "put right what the compiler names")
    }

    /// A run whose bars do not hold is one all the same.
    fn load(&self, branch: &str) -> Result<(), XtaskError> {
        let mut load = self.program();
        load.args(["load", "--players", PLAYERS, "--npcs", SHEEP, "--seconds", &self.words.seconds.to_string()]);
        load.args(["--settle-s-max", "0", "--history"]).arg(self.history(branch));
        let log = fs::File::create(self.log()).map_err(|cause| usage(&self.log(), &cause.to_string()))?;
        load.arg("--report").arg(self.out.join("report")).stdout(Stdio::null()).stderr(log);
        load.status().map(drop).map_err(|cause| usage(&self.game.executable(), &cause.to_string()))
    }

    /// What the last run said.
    fn log(&self) -> PathBuf {
        self.out.join("load.log")
    }

    fn program(&self) -> Command {
        let mut program = step::program(self.game.executable().as_os_str());
        program.current_dir(self.game.folder());
        program
    }

    /// In the game's folder: its repository says in which order commits stand.
    fn history(&self, branch: &str) -> PathBuf {
        self.game.folder().join("reports").join(branch)
    }

    /// What is kept of a commit's runs.
    fn lines(&self, branch: &str, commit: &str) -> Result<Vec<String>, XtaskError> {
        let folder = self.history(branch);
        let Ok(files) = fs::read_dir(&folder) else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        for file in files.flatten() {
            let text = fs::read_to_string(file.path()).map_err(|cause| usage(&file.path(), &cause.to_string()))?;
            let records = text.lines().filter_map(|line| Some((line, serde_json::from_str::<Value>(line).ok()?)));
            lines.extend(records.filter(|(_, record)| record["commit"] == commit).map(|(line, _)| line.to_owned()));
        }
        Ok(lines)
    }

    /// What is kept of commits that both branches have.
    fn copy(&self, commits: &[String]) -> Result<(), XtaskError> {
        let (folder, file) = (self.history(PLANTED), self.history(PLANTED).join("before.jsonl"));
        let mut lines = Vec::new();
        for commit in commits {
            lines.extend(self.lines(INNOCENT, commit)?);
        }
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, lines.join("\n") + "\n"));
        written.map_err(|cause| usage(&file, &cause.to_string()))
    }

    /// What `history` says of a branch, and what is wrong with that. `planted`: the commit that is to be named.
    fn judge(&self, branch: &str, planted: Option<&str>) -> Result<Vec<String>, XtaskError> {
        let page = self.out.join(format!("{branch}.html"));
        let mut history = self.program();
        history.arg("history").arg(self.history(branch)).arg("--html").arg(&page).arg("--json");
        let told = step::output_of("history", &mut history, "its own words are above")?;
        let told: Value = serde_json::from_str(told.lines().last().unwrap_or_default())
            .map_err(|cause| usage(&page, &format!("`history --json` said no JSON: {cause}")))?;
        println!("{branch}: {} runs, {}", told["runs"], page.display());
        let changes = told["changes"].as_array().map_or(&[][..], Vec::as_slice);
        for change in changes {
            let row =
                ["subsystem", "verdict", "good_commit", "likely_commit", "bad_commit"].map(|key| text_of(change, key));
            let percent = change["change_percent"].as_f64().unwrap_or_default();
            println!("  {} {percent:.1} % {} suspects", row.join(" "), change["suspects_count"]);
        }
        Ok(faults_of(branch, changes, planted))
    }

    fn git(&self, words: &[&str]) -> Result<String, XtaskError> {
        let mut git = step::program("git".as_ref());
        git.args(["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]);
        git.args(words).current_dir(self.game.folder());
        step::output_of("git", &mut git, "it is about the scratch game of this bench; remove that folder to begin anew")
    }
}

fn text_of<'a>(change: &'a Value, key: &str) -> &'a str {
    change[key].as_str().unwrap_or_default()
}

/// What is wrong with the changes that `history` names on a branch: just the planted one is to be there, with one suspect.
fn faults_of(branch: &str, changes: &[Value], planted: Option<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut is_named = false;
    for change in changes {
        let [subsystem, verdict, likely] = ["subsystem", "verdict", "likely_commit"].map(|key| text_of(change, key));
        let is_it = planted == Some(likely) && subsystem == SUBSYSTEM && verdict == "slower";
        is_named |= is_it;
        if !is_it {
            faults.push(format!("{branch}: {subsystem} was named {verdict} since {likely}, where nothing was planted"));
        } else if change["suspects_count"] != 1 {
            let suspects = &change["suspects_count"];
            faults.push(format!("{branch}: {subsystem} was named with {suspects} suspects, and {likely} alone is one"));
        }
    }
    if let Some(commit) = planted.filter(|_| !is_named) {
        faults.push(format!("{branch}: {SUBSYSTEM} was not named slower since {commit}"));
    }
    faults
}

fn usage(path: &Path, words: &str) -> XtaskError {
    XtaskError::Usage(format!("{}: {words}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: runs of another machine, or of one that is not known, are not gone on with.
    #[test]
    fn a_plan_of_another_machine_is_another_plan() {
        let plan = |machine: &str| Plan {
            throng: "1234".to_owned(),
            machine: machine.to_owned(),
            commits: 20,
            planted: 11,
            percent: 15,
            runs: 3,
            seconds: 15,
        };
        assert!(plan("AMD EPYC").is_in(&json!(plan("AMD EPYC")).to_string()));
        let mut of_before = json!(plan("AMD EPYC"));
        of_before.as_object_mut().unwrap().remove("machine");
        for other in [json!(plan("Xeon")), of_before] {
            assert!(!plan("AMD EPYC").is_in(&other.to_string()), "{other}");
        }
    }

    /// Promise: the planted commit alone, in its subsystem alone, passes; everything else that is named is a fault.
    #[test]
    fn the_planted_commit_passes_if_it_is_the_only_suspect() {
        let change = |subsystem: &str, verdict: &str, likely: &str, suspects: u32| {
            serde_json::json!({
                "subsystem": subsystem, "verdict": verdict, "likely_commit": likely, "suspects_count": suspects,
            })
        };
        let check = |changes: &[Value], planted: Option<&str>, expect: usize| {
            let faults = faults_of("planted", changes, planted);
            assert_eq!(faults.len(), expect, "{faults:?}");
        };
        let it = change(SUBSYSTEM, "slower", "c7", 1);
        check(&[], None, 0);
        check(std::slice::from_ref(&it), Some("c7"), 0);
        check(&[change(SUBSYSTEM, "slower", "c7", 10)], Some("c7"), 1);
        check(std::slice::from_ref(&it), None, 1);
        check(&[], Some("c7"), 1);
        check(&[it, change("replication", "slower", "c7", 1)], Some("c7"), 1);
        check(&[change(SUBSYSTEM, "slower", "c8", 1)], Some("c7"), 2);
        check(&[change(SUBSYSTEM, "faster", "c7", 1)], Some("c7"), 2);
    }

    #[test]
    fn the_work_has_its_place_in_the_template() {
        let (path, place) = PLACE;
        let text = fs::read_to_string(step::root().join("games/meadow").join(path)).unwrap();
        assert_eq!(text.matches(place).count(), 1);
    }
}
