//! Instructions of both builds: by the processor's counters where the host has them, by valgrind where one asks for it.
//!
//! Valgrind plays each build twice, once without a step: what is more in the other is that of the steps, bots included. It takes
//! some fifty times as long as the play itself, so it is few frames, and its figures say nothing of time.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use throng_platform::signals::StopFlag;

use super::pair::PairFigures;
use super::plan::PreflightPlan;
use crate::child::{Child, Said};

/// How instructions were counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// `perf_event`, `valgrind` or `none`.
    pub by: &'static str,
    /// Why not by the processor's counters, or not at all.
    pub missing: Option<String>,
}

/// Frames under valgrind.
const FRAMES: u32 = 20;
/// Until a process under valgrind has its game and its bots, and until a step is over.
const WITHIN: Duration = Duration::from_secs(1_200);
const WARM_UP_S: &str = "0.2";

impl Instructions {
    /// By the processor's counters, if both builds and the host have them.
    pub(super) fn of(pairs: &[PairFigures]) -> Self {
        let why = pairs.iter().flat_map(|pair| pair.instructions_missing.iter().zip(["base", "change"]));
        let why = why.filter_map(|(why, which)| Some(format!("{which}: {}", why.as_ref()?))).next();
        match why {
            None if are_counted(pairs) => Self { by: "perf_event", missing: None },
            None => {
                Self { by: "none", missing: Some("the processor's counters were there and said nothing".to_owned()) }
            }
            why => Self { by: "none", missing: why },
        }
    }
}

pub(super) fn are_counted(pairs: &[PairFigures]) -> bool {
    let mut steps = pairs.iter().flat_map(|pair| &pair.steps).peekable();
    steps.peek().is_some() && steps.all(|(base, change)| base.instructions.is_some() && change.instructions.is_some())
}

/// Of a frame of each build, or why not.
pub(super) fn by_valgrind(plan: &PreflightPlan, stop: &StopFlag) -> Result<[f64; 2], String> {
    let mut per_frame = [0.0; 2];
    for ((path, own), found) in
        [(&plan.base, &plan.base_words), (&plan.change, &plan.change_words)].into_iter().zip(&mut per_frame)
    {
        let words: Vec<String> = plan.words.iter().chain(own).cloned().collect();
        let without = counted(path, &words, 0, stop)?;
        let with = counted(path, &words, FRAMES, stop)?;
        *found = with.saturating_sub(without) as f64 / f64::from(FRAMES);
    }
    Ok(per_frame)
}

/// All instructions of one process that plays so many frames.
fn counted(program: &Path, words: &[String], frames: u32, stop: &StopFlag) -> Result<u64, String> {
    let mut arguments = ["--cache-sim=no", "--cachegrind-out-file=/dev/null"].map(str::to_owned).to_vec();
    arguments.extend([program.display().to_string(), "workload".to_owned()]);
    arguments.extend(words.iter().cloned());
    arguments.extend(["--warm-up-s".to_owned(), WARM_UP_S.to_owned()]);
    let child = Child::start("valgrind".as_ref(), "--tool=cachegrind", &arguments, &[]);
    let mut child = child.map_err(|cause| format!("valgrind cannot be started: {cause}; install it"))?;
    let hear = |child: &mut Child| {
        let until = Instant::now() + WITHIN;
        loop {
            match child.hear(Instant::now() + Duration::from_millis(200)) {
                Some(Said::Ended) => return Err(format!("it ended under valgrind:\n{}", child.tail().join("\n"))),
                Some(_) => return Ok(()),
                None if stop.requested() => return Err("stopped".to_owned()),
                None if Instant::now() >= until => return Err("it said nothing under valgrind".to_owned()),
                None => {}
            }
        }
    };
    hear(&mut child)?;
    if frames > 0 {
        child.order(&format!("step {frames}"));
        hear(&mut child)?;
    }
    child.stop();
    child.exit_status(Instant::now() + WITHIN);
    let tail = child.tail();
    instructions_in(&tail).ok_or_else(|| format!("valgrind did not say what it counted:\n{}", tail.join("\n")))
}

/// `==4711== I   refs:      1,234,567`
fn instructions_in(words: &[String]) -> Option<u64> {
    let line = words.iter().rev().find(|line| line.contains(" I ") && line.contains("refs:"))?;
    let digits: String = line.rsplit(':').next()?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::pair::Step;

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
            instructions_missing: [None, missing.map(str::to_owned)],
            ..PairFigures::default()
        };
        let of = |pair| Instructions::of(&[pair]);
        assert_eq!(of(pair(None, Some(2))), Instructions { by: "perf_event", missing: None });
        let missing = of(pair(Some("no counters"), None));
        assert_eq!((missing.by, missing.missing.as_deref()), ("none", Some("change: no counters")));
        assert!(of(pair(None, None)).missing.is_some());
    }
}
