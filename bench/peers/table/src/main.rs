//! Table: runs all peers in turns, several rounds, and writes one table.
//!
//! Peers are programs beside this one; those that are not built are left out, and the table says so. A round runs
//! every peer once before the next begins, so that what else the machine does meets all of them alike; a peer's
//! ticks of all rounds are then one sample, of which median and 99th percentile are told.

mod peers;
mod plan;
mod report;
mod runner;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Runs the peers' bench.
#[derive(Parser)]
struct Arguments {
    /// Few clients and ticks, Throng and the floor only: does it work?
    #[arg(long)]
    small: bool,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
    /// Instead of the planned sizes: so many clients.
    #[arg(long)]
    clients: Option<u32>,
    /// With `--clients`: so many entities; otherwise as many as clients, and ten times as many in W3. Of W4 always 20
    /// times as many.
    #[arg(long)]
    entities: Option<u32>,
    /// Which loads, such as `W1,W3`.
    #[arg(long, value_delimiter = ',')]
    loads: Vec<String>,
    /// Which peers, such as `throng,floor`.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Turns of all peers.
    #[arg(long)]
    rounds: Option<u32>,
    /// Ticks to measure per round; slow peers stop earlier.
    #[arg(long)]
    ticks: Option<u32>,
    /// Folder for `peers.md` and `peers.json`.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = plan::Plan::new(&arguments);
    let outcomes = runner::run(&plan);
    let table = report::table(&plan, &outcomes);
    let figures = report::figures(&plan, &outcomes);
    if let Some(folder) = &arguments.out {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(folder.join("peers.md"), &table))
            .and_then(|()| std::fs::write(folder.join("peers.json"), figures.to_string()));
        if let Err(error) = written {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    }
    println!("{table}");
    if arguments.json {
        println!("{figures}");
    }
    let problems = report::problems(&outcomes);
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
