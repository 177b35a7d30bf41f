//! Runs of the same two builds again and again: `--repeat`, which appends each to a file and counts those that are there.

use std::{fs::OpenOptions, io::Write, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throng_history::Machine;
use throng_lab::preflight::{PreflightPlan, binaries, statistics::Verdict as Seen};
use throng_platform::signals::StopFlag;

use super::{PreflightArguments, run_once};
use crate::{
    outcome::{CommandResult, Verdict},
    output::{remark, say},
};

/// What a run was of. Runs count together only where all of this is the same, and machines are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Identity {
    base: BuildIdentity,
    change: BuildIdentity,
    played: Vec<String>,
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

/// Runs that are in a file already.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    runs: u32,
    /// Of these: saw something; could say nothing.
    seen: u32,
    unknown: u32,
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
        self.runs += 1;
        self.seen += u32::from(run["seen"].as_array().is_some_and(|seen| !seen.is_empty()));
        self.unknown += u32::from(run["verdict"] == json!(Seen::Unknown));
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
    while counted.runs < count {
        let report = run_once(plan, &arguments.report, stop)?;
        if stop.requested() {
            return Err(format!("stopped after {} of {count} runs; the same command goes on", counted.runs).into());
        }
        let found: Vec<Value> = report.seen().map(|finding| json!(finding)).collect();
        let line = json!({
            "run": counted.runs + 1, "verdict": report.verdict, "seen": found, "pairs": report.findings.pairs,
            "undisturbed_share": report.findings.undisturbed_share, "took_disturbed": report.findings.took_disturbed,
            "all": report.findings.subsystems.first(), "base_commit": report.base.commit, "change_commit": report.change.commit,
            "of": identity,
        });
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let torn = if std::mem::take(&mut counted.is_torn) { "\n" } else { "" };
        writeln!(file, "{torn}{line}")?;
        counted.add(&line);
        remark(format_args!(
            "run {} of {count}: {} seen, {:.0} % of steps undisturbed; {} runs saw something, {} could say nothing",
            counted.runs,
            found.len(),
            100.0 * report.findings.undisturbed_share,
            counted.seen,
            counted.unknown
        ));
    }
    let Counted { runs, seen, unknown, of_others, of_other_machines, .. } = counted;
    if arguments.json {
        say(json!({
            "runs": runs, "runs_that_saw_something": seen, "runs_that_could_say_nothing": unknown, "runs_of_others": of_others,
            "runs_of_other_machines": of_other_machines, "file": path,
        }))?;
    } else {
        let path = path.display();
        say(format_args!("{seen} of {runs} runs saw something, {unknown} could say nothing: {path}"))?;
    }
    Ok(if seen == 0 { Verdict::Fine } else { Verdict::Failed })
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
        assert_eq!(counted, expect);
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
}
