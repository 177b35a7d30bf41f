//! libFuzzer: one target's run, and what it says, read.
//!
//! ```text
//! fuzz/artifacts/input/crash-0f3a...                 where a breaking input is: `Test unit written to PATH`
//! Done 48213 runs in 9 second(s)                     how many inputs were tried
//! ... Is the code instrumented for coverage?         the build lacks its counters: it would find nothing
//! ```
//!
//! What is said is kept by its end only, and shown when the run fails.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::step;

/// A panic's message, its stack and libFuzzer's own words about it.
const LINES_KEPT: usize = 60;

/// A slow input is a finding: everything that is parsed here takes microseconds.
const INPUT_S_MAX: u32 = 10;

/// What a target's run came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub target: String,
    /// How many were tried.
    pub inputs: Option<u64>,
    /// What is wrong and how to see it again.
    pub failure: Option<String>,
}

/// The target, to be run in the root.
pub(super) fn command(folder: &Path, target: &str) -> Command {
    let mut command = step::program(folder.join(target).as_os_str());
    command.arg(format!("-artifact_prefix=fuzz/artifacts/{target}/")).arg(format!("-timeout={INPUT_S_MAX}"));
    // Statics of several instrumented crates have the same names.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0");
    command
}

/// Lets a target look for `seconds`, from its seeds and from what earlier runs have found here.
pub(super) fn run(folder: &Path, target: &str, seconds: u32, is_shown: bool) -> Outcome {
    let outcome = |inputs, failure| Outcome { target: target.to_owned(), inputs, failure };
    // libFuzzer writes what it finds to the first folder, and stops if one of them does not exist.
    let (corpus, seeds) = (format!("fuzz/corpus/{target}"), format!("fuzz/seeds/{target}"));
    for made in [&corpus, &format!("fuzz/artifacts/{target}")] {
        if let Err(cause) = std::fs::create_dir_all(step::root().join(made)) {
            return outcome(None, Some(format!("{made} cannot be made: {cause}")));
        }
    }
    let mut command = command(folder, target);
    command.arg(format!("-max_total_time={seconds}")).arg(&corpus);
    command.args(step::root().join(&seeds).is_dir().then_some(&seeds));
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(cause) => return outcome(None, Some(format!("{target} could not be started: {cause}"))),
    };
    let said = child.stderr.take().map(|pipe| Said::read(pipe, is_shown)).unwrap_or_default();
    let is_well = child.wait().is_ok_and(|status| status.success());
    outcome(said.inputs, said.failure(target, is_well))
}

/// What a run has said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    last_lines: VecDeque<String>,
    artifact: Option<String>,
    inputs: Option<u64>,
    /// Nothing counts which code an input reaches, so nothing is looked for.
    is_blind: bool,
}

impl Said {
    fn read(from: impl Read, is_shown: bool) -> Self {
        let mut said = Self::default();
        for line in BufReader::new(from).split(b'\n') {
            let Ok(line) = line else { break };
            // An input may be in it.
            let line = String::from_utf8_lossy(&line).into_owned();
            if is_shown {
                eprintln!("{line}");
            }
            said.take(line);
        }
        said
    }

    fn take(&mut self, line: String) {
        if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.artifact = Some(path.trim().trim_start_matches("./").to_owned());
        }
        if let Some(inputs) = line.strip_prefix("Done ").and_then(|rest| rest.split_once(" runs in ")) {
            self.inputs = inputs.0.parse().ok();
        }
        self.is_blind |= line.contains("Is the code instrumented for coverage?");
        if self.last_lines.len() == LINES_KEPT {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line);
    }

    fn failure(&self, target: &str, is_well: bool) -> Option<String> {
        let what = match &self.artifact {
            _ if self.is_blind => {
                "it counts no coverage: the flags in xtask/src/fuzz/build.rs no longer fit".to_owned()
            }
            Some(path) => format!("the input: {path}\nreplay it: cargo xtask fuzz {target} --replay {path}"),
            None if is_well => return None,
            None => "it ended without an input to blame".to_owned(),
        };
        let lines: Vec<&str> = self.last_lines.iter().map(String::as_str).collect();
        Some(format!("{}\n\n{what}", lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        Said::read(text.as_bytes(), false)
    }

    #[test]
    fn a_quiet_run_is_fine_and_says_how_much_it_tried() {
        let said = said("INFO: Seed: 1\n#2\tINITED cov: 120 ft: 130\nDone 48213 runs in 9 second(s)\n");
        assert_eq!((said.inputs, said.failure("pack", true)), (Some(48_213), None));
    }

    #[test]
    fn a_broken_promise_names_its_input_and_how_to_replay_it() {
        let said = said(
            "thread '<unnamed>' panicked at fuzz_targets/pack.rs:21:13\n\
             ==7== ERROR: libFuzzer: deadly signal\n\
             artifact_prefix='fuzz/artifacts/pack/'; Test unit written to fuzz/artifacts/pack/crash-0f3a\n",
        );
        let failure = said.failure("pack", false).unwrap();
        assert!(failure.starts_with("thread '<unnamed>' panicked at"), "{failure}");
        let end = "the input: fuzz/artifacts/pack/crash-0f3a\n\
                   replay it: cargo xtask fuzz pack --replay fuzz/artifacts/pack/crash-0f3a";
        assert!(failure.ends_with(end), "{failure}");
    }

    #[test]
    fn an_end_without_an_input_and_a_build_without_counters_fail_too() {
        let killed = said("INFO: Seed: 1\n").failure("pack", false).unwrap();
        assert!(killed.ends_with("it ended without an input to blame"), "{killed}");
        let blind = said("WARNING: no interesting inputs were found so far. Is the code instrumented for coverage?\n");
        assert!(blind.failure("pack", true).unwrap().contains("counts no coverage"));
    }

    #[test]
    fn only_the_end_of_a_long_talk_is_kept() {
        let long: String = (0..200).map(|line| format!("line {line}\n")).collect();
        let said = said(&long);
        assert_eq!((said.last_lines.len(), said.last_lines[0].as_str()), (LINES_KEPT, "line 140"));
    }
}
