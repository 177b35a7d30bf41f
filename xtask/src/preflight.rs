//! Preflight: the working tree held against main, before a change goes in.
//!
//! `throng preflight` does the work, as for any game; here it is built of the working tree, which is the change. All games are played,
//! one after the other, each with its own table and report: a change may be slower in one alone.

use clap::Args;

use crate::error::XtaskError;
use crate::step::{self, cargo};
use crate::web::PLAYED;

#[derive(Args)]
pub(crate) struct PreflightArguments {
    /// The revision that the working tree is held against.
    #[arg(long, value_name = "REV", default_value = "main")]
    base: String,
    /// 30 s a game instead of four minutes.
    #[arg(long)]
    quick: bool,
    /// Only this game; may be given several times. All of them if none is given.
    #[arg(long = "game", value_name = "GAME", value_parser = PLAYED)]
    games: Vec<String>,
    /// Passed on to `throng preflight` as they are, such as `--players 100`.
    #[arg(last = true)]
    more: Vec<String>,
}

pub(crate) fn run(arguments: &PreflightArguments) -> Result<(), XtaskError> {
    let games: Vec<&str> = match &arguments.games[..] {
        [] => PLAYED.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    // One that is slower keeps nobody from hearing of the others.
    let failed: Vec<String> =
        games.iter().filter_map(|game| play(game, arguments).err()).map(|e| e.to_string()).collect();
    if failed.is_empty() { Ok(()) } else { Err(XtaskError::Usage(failed.join("\n"))) }
}

fn play(game: &str, arguments: &PreflightArguments) -> Result<(), XtaskError> {
    let report = format!("reports/preflight/{game}");
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", "throng-shipped", "--", "preflight"]);
    command.args(["--base", &arguments.base, "--change", ".", "--game", game, "--report", &report]);
    command.args(arguments.quick.then_some("--quick")).args(&arguments.more);
    let next = format!("what it says above tells why; if something is slower, {report}/report.html has it as a page");
    step::run(&format!("preflight of {game}"), &mut command, &next)
}
