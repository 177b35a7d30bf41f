//! Table: runs all peers in turns, several rounds, and writes one table. With `--crowd` the peers are forms of Throng,
//! and the sizes those of one world that fills up.
//!
//! Peers are programs beside this one; those that are not built are left out, and the table says so. A round runs
//! every peer once before the next begins, so that what else the machine does meets all of them alike; a peer's
//! ticks of all rounds are then one sample, of which median and 99th percentile are told.

mod history;
mod peers;
mod plan;
mod report;
mod runner;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use serde_json::json;
use throng_history::Machine;

/// Runs the peers' bench.
#[derive(Parser)]
struct Arguments {
    /// Few clients and ticks, Throng and the floor only: does it work?
    #[arg(long)]
    small: bool,
    /// Instead of the comparison: Throng alone, in one world with more and more clients (load W1).
    #[arg(long)]
    crowd: bool,
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
    /// Folder for table and figures: `peers.md` and `peers.json`, or `crowd.md` and `crowd.json`.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the same figures once more, if nothing is wrong with them.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Folder of the history that they go to, too, if nothing is wrong with them: a run for each size.
    #[arg(long)]
    history: Option<PathBuf>,
    /// How all this was called, and the commit of what is measured: for those who read the figures.
    #[arg(long, default_value = "")]
    command: String,
    #[arg(long, default_value = "")]
    commit: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let plan = plan::Plan::new(&arguments);
    let outcomes = runner::run(&plan);
    let table = report::table(&plan, &outcomes);
    let mut figures = report::figures(&plan, &outcomes);
    let machine = Machine::here();
    figures["machine"] = json!(machine);
    figures["command"] = json!(arguments.command);
    figures["commit"] = json!(arguments.commit);
    println!("{table}");
    if arguments.json {
        println!("{figures}");
    }
    let problems = report::problems(&outcomes);
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    let kept = arguments.keep.filter(|_| problems.is_empty());
    let figures = report::row_by_row(&figures);
    let files = [(&arguments.out, "md", &table), (&arguments.out, "json", &figures), (&kept, "json", &figures)];
    for (folder, extension, text) in files {
        let Some(folder) = folder else { continue };
        let path = folder.join(plan.name).with_extension(extension);
        if let Err(error) = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text)) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if let Some(folder) = arguments.history.filter(|_| problems.is_empty()) {
        let about = history::About { commit: &arguments.commit, command: &arguments.command, machine: &machine };
        if let Err(error) = history::keep(&folder, &plan, &outcomes, about) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
