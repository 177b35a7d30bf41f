//! `throng demo`: what a newcomer runs first. A load run that shows itself, with a report at the end.

use std::path::PathBuf;

use clap::Args;
use throng_lab::report;

use crate::{
    executable::Executable,
    load::{SavesWord, plan, run_plan, set_folders, tell},
    outcome::CommandResult,
    output::remark,
    played::Played,
    uploads,
};

/// Without `--seconds` the demo runs until it is stopped; a day is as good as that.
const UNTIL_STOPPED_S: u32 = 86_400;

/// Room for players who come by the game's page, beside that for all bots.
const SPARE_PLAYERS: u32 = 16;

#[derive(Args)]
pub struct DemoArguments {
    /// End by itself after so long (s); without it, Ctrl-C ends it. Either way there is a report.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// Folder for report.json, report.html, captures of bad frames, crash reports and the server's saves.
    #[arg(long, value_name = "DIR", default_value = "reports/demo")]
    report: PathBuf,
    /// Where a person plays among the bots, in a browser: TCP; port 0 = any free one; "off" = nowhere.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    browser_address: String,
    /// The same over WebTransport, where the browser has it: UDP.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    web_transport_address: String,
    #[command(flatten)]
    saves: SavesWord,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: DemoArguments, played: &Played<'_>, executable: Executable) -> CommandResult {
    let has_page = cfg!(feature = "browser") && played.game.play_page().is_some();
    let played = &played.for_demo(if has_page { SPARE_PLAYERS } else { 0 });
    report::make_folder(&arguments.report)?;
    remark(format_args!(
        "{} bots play {} on a server with {} NPCs; both run on this machine, over encrypted UDP{}",
        played.arguments.players,
        played.game.name(),
        played.arguments.npcs,
        if arguments.seconds.is_none() { "; Ctrl-C ends it with a report" } else { "" }
    ));
    // Whoever looks on is not to wait for a window; bots begin in the distribution that they settle in.
    let mut plan = plan(played, arguments.seconds.unwrap_or(UNTIL_STOPPED_S), 0)?;
    if has_page {
        let words = [
            "--browser-address",
            &arguments.browser_address,
            "--browser-tokens",
            "--web-transport-address",
            &arguments.web_transport_address,
        ];
        plan.serve_arguments.extend(words.map(String::from));
    }
    plan.until_stopped = arguments.seconds.is_none();
    arguments.saves.prepare(&mut plan, &arguments.report)?;
    set_folders(&mut plan, &arguments.report, None, None);
    let mut run = run_plan(&plan)?;
    let written = report::write(&mut run, &arguments.report);
    if written.is_ok() {
        // The settings of its server: those of this folder.
        uploads::push_report(None, &arguments.report);
    }
    let verdict = tell(&run, arguments.json, executable)?;
    written?;
    Ok(verdict)
}
