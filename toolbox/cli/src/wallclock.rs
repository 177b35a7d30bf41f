//! `throng wallclock PID`: where the wall time of a running process goes, thread by thread. The work is the lab's.

use std::path::PathBuf;

use clap::Args;
use throng_history::Machine;
use throng_lab::wallclock::{self, WallclockPlan, WallclockReport};
use throng_platform::signals;

use crate::{
    outcome::{CommandResult, Verdict},
    output::say,
};

#[derive(Args)]
pub struct WallclockArguments {
    /// The process, or any of its threads.
    pid: u32,
    /// Looks per second at every thread.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    hz: u32,
    /// Length of the run (s). Ctrl-C ends it earlier, with a report.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// The callgrind file; folded stacks are written beside it, as FILE.folded. Otherwise callgrind.out.wallclock.PID.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: WallclockArguments) -> CommandResult {
    let WallclockArguments { pid, hz, seconds, out, json } = arguments;
    let out = out.unwrap_or_else(|| format!("callgrind.out.wallclock.{pid}").into());
    wallclock::check_writable(&out)?;
    let stop = signals::install_stop();
    let profile = wallclock::run(WallclockPlan { pid, hz, seconds }, &stop)?;
    let files = wallclock::write(&profile, &out)?;
    let report = WallclockReport::of(&profile, Some(&files));
    if json {
        let mut told = serde_json::to_value(&report)?;
        told["machine"] = serde_json::to_value(Machine::here())?;
        say(told)?;
    } else {
        say(report.to_string().trim_end())?;
    }
    Ok(Verdict::Fine)
}
