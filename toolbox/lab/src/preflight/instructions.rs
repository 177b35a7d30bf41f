//! Instructions of both builds: by the processor's counters where the host has them, by valgrind where one asks for it.
//!
//! Valgrind plays each build with steps and without: what is more in the one is that of the steps, bots included. It takes
//! some fifty times as long as the play itself, so it is few frames, and its figures say nothing of time. Each build is counted
//! twice, in turns: how far the two counts of one are apart says what a difference of the builds has to be more than.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use throng_platform::signals::StopFlag;

use super::pair::{PairFigures, ticks_of};
use super::plan::{PreflightPlan, STEPS_MIN, Side};
use super::step::Ready;
use crate::child::{Child, Said};

/// How instructions were counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instructions {
    pub by: CountedBy,
    /// Why not by the processor's counters, or not at all.
    pub missing: Option<String>,
    /// Why there is no verdict, if they were counted and there is none.
    pub unclear: Option<String>,
}

/// Who counted instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    /// The processor's counters.
    PerfEvent,
    Valgrind,
    /// Nobody did.
    None,
}

impl CountedBy {
    pub fn name(self) -> &'static str {
        match self {
            Self::PerfEvent => "perf_event",
            Self::Valgrind => "valgrind",
            Self::None => "none",
        }
    }
}

/// Frames under valgrind; of a recording, ticks of each world that ticks at one time.
pub(super) const FRAMES: u32 = 20;
// A pair has as many steps of a frame each at least, so a recording that can be compared is long enough.
const _: () = assert!(FRAMES <= STEPS_MIN);
/// So often each build is counted.
pub(super) const COUNTS: usize = 2;
/// Until a process under valgrind has its game and its bots, and until a step is over.
const WITHIN: Duration = Duration::from_secs(1_200);
const WARM_UP_S: &str = "0.2";

impl Instructions {
    /// By the processor's counters, if both builds and the host have them.
    pub(super) fn of(pairs: &[PairFigures]) -> Self {
        let why = pairs.iter().flat_map(|pair| pair.ready.iter().zip(Side::BOTH));
        let why =
            why.filter_map(|(ready, side)| Some(format!("{side}: {}", ready.instructions_missing.as_ref()?))).next();
        let silent = || "the processor's counters were there and said nothing".to_owned();
        let (by, missing) = match why {
            None if are_counted(pairs) => (CountedBy::PerfEvent, None),
            why => (CountedBy::None, why.or_else(|| Some(silent()))),
        };
        Self { by, missing, unclear: None }
    }
}

pub(super) fn are_counted(pairs: &[PairFigures]) -> bool {
    let mut steps = pairs.iter().flat_map(|pair| &pair.steps).peekable();
    steps.peek().is_some() && steps.all(|(base, change)| base.instructions.is_some() && change.instructions.is_some())
}

/// Of a frame or tick of each build, as often as each is counted; or why not.
pub(super) fn by_valgrind(plan: &PreflightPlan, stop: &StopFlag) -> Result<[[f64; COUNTS]; 2], String> {
    by(Path::new("valgrind"), plan, stop)
}

fn by(valgrind: &Path, plan: &PreflightPlan, stop: &StopFlag) -> Result<[[f64; COUNTS]; 2], String> {
    let of = |side: Side, steps: u32| {
        let counted = counted(valgrind, plan.program(side), &plan.arguments_of(side), steps, stop);
        counted.map_err(|why| format!("{side}: {why}"))
    };
    let mut per_unit = [[0.0; COUNTS]; 2];
    for count in 0..COUNTS {
        let without = [of(Side::Base, 0)?, of(Side::Change, 0)?];
        let ready = without.each_ref().map(|(ready, _)| ready.clone());
        // Both are to do as much.
        let frames = if plan.recording.is_some() { ticks_of(FRAMES, &ready) } else { FRAMES.into() };
        let step = frames.try_into().unwrap_or(u32::MAX);
        for ((side, counts), (_, without)) in Side::BOTH.into_iter().zip(&mut per_unit).zip(without) {
            let (_, with) = of(side, step)?;
            let more = with.checked_sub(without).filter(|more| *more > 0);
            let more =
                more.ok_or_else(|| format!("{side}: {step} {}s took no instructions more than none did", plan.per()))?;
            counts[count] = more as f64 / f64::from(step);
        }
    }
    Ok(per_unit)
}

/// What a process says when it is ready, and all its instructions, if it plays one step of so many frames; of 0, none.
fn counted(
    valgrind: &Path,
    program: &Path,
    words: &[String],
    frames: u32,
    stop: &StopFlag,
) -> Result<(Ready, u64), String> {
    let mut arguments = ["--cache-sim=no", "--cachegrind-out-file=/dev/null"].map(str::to_owned).to_vec();
    arguments.extend([program.display().to_string(), "workload".to_owned()]);
    arguments.extend(words.iter().cloned());
    arguments.extend(["--warm-up-s".to_owned(), WARM_UP_S.to_owned()]);
    let child = Child::start(valgrind, "--tool=cachegrind", &arguments, &[]);
    let mut child = child.map_err(|cause| format!("valgrind cannot be started: {cause}; install it"))?;
    let hear = |child: &mut Child| {
        let until = Instant::now() + WITHIN;
        loop {
            match child.hear(Instant::now() + Duration::from_millis(200)) {
                Some(Said::Ended) => return Err(format!("it ended under valgrind:\n{}", child.tail().join("\n"))),
                Some(Said::Ready(said) | Said::Status(said) | Said::Report(said)) => return Ok(said),
                None if stop.requested() => return Err("stopped".to_owned()),
                None if Instant::now() >= until => return Err("it said nothing under valgrind".to_owned()),
                None => {}
            }
        }
    };
    let ready =
        serde_json::from_value(hear(&mut child)?).map_err(|cause| format!("it said what cannot be read: {cause}"))?;
    if frames > 0 {
        child.order(&format!("step {frames}"));
        hear(&mut child)?;
    }
    child.stop();
    child.exit_status(Instant::now() + WITHIN);
    let tail = child.tail();
    let counted = instructions_in(&tail);
    counted
        .map(|counted| (ready, counted))
        .ok_or_else(|| format!("valgrind did not say what it counted:\n{}", tail.join("\n")))
}

/// `==4711== I   refs:      1,234,567`
fn instructions_in(words: &[String]) -> Option<u64> {
    let line = words.iter().rev().find(|line| line.contains(" I ") && line.contains("refs:"))?;
    let digits: String = line.rsplit(':').next()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::preflight::step::{Ready, Step};

    #[test]
    fn what_valgrind_counted_is_read() {
        let words = ["==7== Cachegrind", "==7== ", "==7== I refs:        1,234,567", "a last word"].map(str::to_owned);
        assert_eq!(instructions_in(&words), Some(1_234_567));
        assert_eq!(instructions_in(&["==7== I   refs:      12".to_owned()]), Some(12));
        assert_eq!(instructions_in(&["==7== nothing".to_owned()]), None);
    }

    #[test]
    fn why_instructions_are_not_counted_is_said_with_the_build() {
        let step = |instructions| Step { instructions, ..Step::default() };
        let pair = |missing: Option<&str>, instructions| PairFigures {
            steps: vec![(step(Some(1)), step(instructions))],
            ready: [None, missing]
                .map(|why| Ready { instructions_missing: why.map(str::to_owned), ..Ready::default() }),
            ..PairFigures::default()
        };
        let of = |pair| Instructions::of(&[pair]);
        assert_eq!(of(pair(None, Some(2))), Instructions { by: CountedBy::PerfEvent, missing: None, unclear: None });
        let missing = of(pair(Some("no counters"), None));
        assert_eq!((missing.by, missing.missing.as_deref()), (CountedBy::None, Some("change: no counters")));
        assert!(of(pair(None, None)).missing.is_some());
        for by in [CountedBy::PerfEvent, CountedBy::Valgrind, CountedBy::None] {
            assert_eq!(serde_json::to_value(by).unwrap(), by.name());
        }
    }

    /// Counts by a program in valgrind's place, which speaks as a workload does. `more`: what a shell makes of `frames` and `number`, the
    /// how manieth process of its build it is, for the instructions of a step.
    fn count(test: &str, recording: Option<&str>, more: &str) -> Result<[[f64; COUNTS]; 2], String> {
        let folder = std::env::temp_dir().join(format!("throng-instructions-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let valgrind = folder.join("valgrind");
        let script = format!(
            r#"#!/bin/sh
program=$4; log="{folder}/$program"; echo once >>"$log"; number=$(wc -l <"$log")
[ "$program" = base ] && worlds=3 || worlds=4
echo "{{\"ready\":{{\"worlds\":$worlds,\"ticks\":900}}}}"
counted=1000000
while read -r order frames; do
    counted=$((1000000 + {more}))
    echo '{{"status":{{}}}}'
done
echo "==7== I refs: $counted" >&2
"#,
            folder = folder.display()
        );
        // Written by another process: nobody can start what this one has open, and neither can a child of another test's.
        let write = ["-c", r#"printf %s "$1" >"$2" && chmod +x "$2""#, "write", &script];
        assert!(Command::new("sh").args(write).arg(&valgrind).status().unwrap().success());
        let plan = PreflightPlan {
            base: "base".into(),
            change: "change".into(),
            recording: recording.map(Into::into),
            valgrind: true,
            ..PreflightPlan::example()
        };
        let counted = by(&valgrind, &plan, &StopFlag::new().unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        counted
    }

    /// Promise: a step under valgrind is of as many ticks of each world of a recording as it is frames of a game with bots.
    #[test]
    fn a_step_of_a_recording_is_of_all_its_worlds() {
        // Beside what each takes, some that do not grow with the step, so that its length is seen.
        let more = "500 * frames + 120000";
        let fixed = |ticks: f64| 500.0 + 120_000.0 / ticks;
        assert_eq!(count("bots", None, more), Ok([[fixed(20.0); 2]; 2]));
        assert_eq!(count("recording", Some("evening"), more), Ok([[fixed(60.0); 2]; 2]), "of the fewer worlds");
    }

    #[test]
    fn each_build_is_counted_twice_and_less_than_nothing_is_told() {
        // The second and the fourth process of each build are those with a step.
        let counted = count("twice", None, "frames * number");
        assert_eq!(counted, Ok([[2.0, 4.0]; 2]));
        let counted = count("negative", None, "frames * (number > 3 ? -1 : 1)");
        assert_eq!(counted, Err("base: 20 frames took no instructions more than none did".to_owned()));
    }
}
