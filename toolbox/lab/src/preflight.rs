//! Preflight: two builds held against each other, subsystem by subsystem, before a change goes in.
//!
//! ```text
//!  pair 1:  base    step 1 │        │ step 2 │ step 3 ...      one core, one process at a time,
//!           change         │ step 1 step 2 │        step 3     the same seeds: a step is the same work in both
//!  pair 2:  two new processes, the other one first
//! ```
//!
//! Wall time on a shared host is off by tens of percent, so noise has to cancel. Four things see to that:
//!
//! - **The work is the same.** Each process plays the game with its bots on a virtual clock (`workload`), with the same seed:
//!   step 40 of the one does what step 40 of the other does, and they come within some 50 ms of each other. What is compared is
//!   such steps, and what the host did to single ones is trimmed; steps in which a thread waited for its core are left out.
//! - **Threads of one process take turns where they wait.** In the batch class a worker that is woken does not take the core from the frame's
//!   thread; else its time would lie within the scope that woke it, or not, as the kernel likes.
//! - **Processes are drawn anew.** Where memory comes to lie makes a process faster or slower for all its life, by percents. So a run is many
//!   short pairs of processes, and a pair is one observation: what steps within it agree on may be luck of the pair.
//! - **Errors are counted for all subsystems at once** ([`statistics`]): an interval holds for all of them together but once in
//!   [`statistics::FALSE_ALARMS_ONE_IN`] runs.
//!
//! A recording is a workload, too: both processes replay it, and a step is so many of its ticks (`pair`). Whatever speaks
//! docs/spec/workload.md can be compared. Runs of the same builds are kept in one file and count together ([`repeated`]).

pub mod binaries;
pub mod counts;
pub mod instructions;
mod page;
mod pair;
mod plan;
pub mod repeated;
pub mod report;
pub mod statistics;
mod step;

use std::time::{Duration, Instant};

use throng_platform::sched;
use throng_platform::signals::StopFlag;

pub use pair::PreflightError;
pub use plan::{Per, PreflightPlan, Side};
pub use report::PreflightReport;
pub use step::{Played, Ready, ScopeSum, Scopes, Step};

use pair::PairFigures;
use plan::STEPS_MIN;
use statistics::PAIRS_MIN;

/// Runs the pairs, each told to `each` when it is over: its number, and how long a time is left (s). Takes the calling thread for
/// `plan.seconds`, or until there are three pairs. Ends early when `stop` is requested, which the report says.
///
/// # Errors
/// If a process does not play, if a build was replaced meanwhile, or if it was stopped with fewer than three pairs.
pub fn run(
    plan: &PreflightPlan,
    stop: &StopFlag,
    mut each: impl FnMut(usize, f64),
) -> Result<PreflightReport, PreflightError> {
    let cores = sched::pinnable_cores();
    let core = cores.last().copied();
    // Each pair starts them anew.
    let builds = Side::BOTH.map(|side| binaries::content_hash(plan.program(side)));
    let until = Instant::now() + Duration::from_secs(plan.seconds.into());
    let (mut pairs, mut longest, mut steps): (Vec<PairFigures>, Duration, Option<u32>) =
        (Vec::new(), Duration::ZERO, None);
    while pairs.len() < PAIRS_MIN || Instant::now() + longest < until {
        let begin = Instant::now();
        // The first pair says how many steps fit; all have as many, so that all are the same work.
        let pair = pair::run(plan, core, pairs.len(), steps, stop)?;
        if stop.requested() {
            break;
        }
        steps = steps.or(Some((pair.steps.len() as u32).max(STEPS_MIN)));
        pairs.push(pair);
        longest = longest.max(begin.elapsed());
        each(pairs.len(), until.saturating_duration_since(Instant::now()).as_secs_f64());
    }
    if pairs.len() < PAIRS_MIN {
        return Err(PreflightError::Stopped { pairs: pairs.len() });
    }
    let mut report = PreflightReport::new(plan, &pairs);
    report.check_builds(plan, builds.each_ref())?;
    report.interrupted = stop.requested();
    if plan.valgrind && report.instructions.missing.is_some() && !stop.requested() {
        report.add_valgrind(instructions::by_valgrind(plan, stop));
    }
    Ok(report)
}
