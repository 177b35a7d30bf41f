//! Runs of the same two builds again and again: `--repeat`, which appends each to a file and counts those that are there. Which count,
//! and when there are enough, is the lab's.

use std::path::Path;

use serde_json::json;
use throng_history::Machine;
use throng_lab::preflight::{
    PreflightPlan,
    repeated::{CountedRuns, Identity, RunsFile, runs_max},
};
use throng_platform::signals::StopFlag;

use super::{PreflightArguments, run_once};
use crate::{
    outcome::{CommandResult, NOTHING_SAID, Verdict},
    output::{remark, say},
};

/// Pages that are named in words; the file names all.
const PAGES_TOLD_MAX: usize = 10;
/// Lines that are named likewise; JSON has all.
const LINES_TOLD_MAX: usize = 10;

/// Many runs, of which those that are in the file already are not run again.
pub fn repeat(plan: &PreflightPlan, count: u32, arguments: &PreflightArguments, stop: &StopFlag) -> CommandResult {
    let mut runs = RunsFile::read(&arguments.report, Identity::new(plan, Machine::by_name()))?;
    tell_of_others(&runs);
    while runs.counted().wants_more(count) {
        let mut report = run_once(plan, stop)?;
        report.write(&arguments.report)?;
        runs.check(&report, plan)?;
        if stop.requested() {
            let said = runs.counted().said();
            return Err(
                format!("stopped when {said} of {count} runs could say something; the same command goes on").into()
            );
        }
        let number = runs.next_number();
        let page = runs.keep_page(&mut report)?;
        runs.append(&report, page.as_deref())?;
        remark(format_args!(
            "run {number} of {} at most: {} seen, {:.0} % of steps undisturbed; {} of {count} runs could say something, {} of them saw something",
            runs_max(count),
            report.seen().count(),
            100.0 * report.findings.undisturbed_share,
            runs.counted().said(),
            runs.counted().seen
        ));
        if page.is_some() {
            remark(format_args!("its page: {}", report.report.unwrap_or_default()));
        }
    }
    tell(runs.counted(), count, runs.path(), arguments)?;
    Ok(verdict(runs.counted(), count))
}

fn verdict(counted: &CountedRuns, count: u32) -> Verdict {
    if counted.seen > 0 {
        Verdict::Failed
    } else if counted.said() < count {
        Verdict::Status(NOTHING_SAID)
    } else {
        Verdict::Fine
    }
}

/// Of runs in the file that do not count.
fn tell_of_others(runs: &RunsFile) {
    let (counted, file) = (runs.counted(), runs.path().display());
    for line in counted.damaged_lines.iter().take(LINES_TOLD_MAX) {
        remark(format_args!("note {file}:{line}: is no run: damaged, or not written to its end"));
    }
    if let Some(more @ 1..) = counted.damaged_lines.len().checked_sub(LINES_TOLD_MAX) {
        remark(format_args!("note {file}: {more} more lines are no runs"));
    }
    if counted.of_others > 0 {
        remark(format_args!(
            "note {} runs in {file} are of other builds, another game or other options, or name no machine, and do not count; --report names another folder",
            counted.of_others
        ));
    }
    if counted.of_other_machines > 0 {
        remark(format_args!(
            "note {} runs in {file} were on another machine ({}), and do not count; --report names another folder",
            counted.of_other_machines,
            counted.machine_differences.join("; ")
        ));
    }
}

fn tell(counted: &CountedRuns, count: u32, path: &Path, arguments: &PreflightArguments) -> std::io::Result<()> {
    let CountedRuns { runs, seen, unknown, pages, of_others, of_other_machines, damaged_lines, .. } = counted;
    let said = counted.said();
    if said < count {
        remark(format_args!(
            "note {unknown} of {runs} runs could say nothing, and no more than {} are made: use a quieter host or longer runs, with another \
             --report, or go on with a larger --repeat",
            runs_max(count)
        ));
    }
    if arguments.json {
        return say(json!({
            "runs": runs, "runs_that_could_say_something": said, "runs_that_saw_something": seen,
            "runs_that_could_say_nothing": unknown, "runs_of_others": of_others, "runs_of_other_machines": of_other_machines,
            "damaged_lines": damaged_lines, "pages": pages, "file": path,
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

    /// Promise: so many runs as are wanted could have raised an alarm, or it is said that they could not.
    #[test]
    fn runs_that_could_say_nothing_are_no_passes() {
        let check = |runs, unknown, seen, expect| {
            let status = match verdict(&CountedRuns { runs, unknown, seen, ..CountedRuns::default() }, 3) {
                Verdict::Fine => 0,
                Verdict::Failed => 1,
                Verdict::Status(status) => status,
            };
            assert_eq!(status, expect, "{runs} runs, {unknown} unknown, {seen} saw something");
        };
        check(3, 0, 0, 0);
        check(5, 2, 0, 0);
        check(6, 4, 0, 2);
        check(6, 6, 0, 2);
        check(6, 5, 1, 1);
        check(3, 0, 1, 1);
    }
}
