//! `throng host`: what this machine makes of a load that is known. The work is the lab's.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use throng_lab::host::{self, HostPlan};
use throng_platform::{cores, signals};

use crate::{
    outcome::{CommandResult, Verdict},
    output::{remark, say},
};

#[derive(Args)]
pub struct HostArguments {
    #[command(subcommand)]
    command: HostCommand,
}

#[derive(Subcommand)]
enum HostCommand {
    /// Runs a busy loop, a disk loop and a network loop for some seconds each, and says what they used by their own word,
    /// by their process's, by its control group's and by the host's.
    Measure(MeasureArguments),
}

#[derive(Args)]
struct MeasureArguments {
    /// Length of each of the four loads (s); the first one does nothing.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    seconds: u32,
    /// Threads of the busy loop. Otherwise one for each core that this process may run on.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    threads: Option<u32>,
    /// Where the disk loop writes 64 MiB at most, into a file that has no name. Otherwise the folder for temporary files,
    /// which may be no disk.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: HostArguments) -> CommandResult {
    let HostCommand::Measure(MeasureArguments { seconds, threads, folder, json }) = arguments.command;
    let plan = HostPlan {
        seconds,
        threads: threads.unwrap_or_else(|| cores::usable().affinity as u32),
        folder: folder.unwrap_or_else(std::env::temp_dir),
    };
    let stop = signals::install_stop();
    let report = host::measure(&plan, &stop, |load| remark(load.sentence()))?;
    if json {
        say(serde_json::to_string(&report)?)?;
    } else {
        say(report.to_string().trim_end())?;
    }
    Ok(Verdict::Fine)
}
