//! `throng schema`: what a game's server says and is told, as a TypeScript file.

use std::path::PathBuf;

use clap::Args;
use throng_game::Game;

use crate::{
    outcome::{CommandResult, Verdict},
    output::{remark, say},
};

#[derive(Args)]
pub struct SchemaArguments {
    /// Of this game; without it, of the usual one.
    #[arg(long)]
    game: Option<String>,
    /// What the file imports the client package from.
    #[arg(long, default_value = "throng-client")]
    client: String,
    /// Write it into this file instead of to the terminal.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Compare the file with what would be written, and fail if it is another: for CI.
    #[arg(long, requires = "out")]
    check: bool,
}

pub fn run(arguments: SchemaArguments, games: &[Game]) -> CommandResult {
    let game = match &arguments.game {
        None => &games[0],
        Some(name) => games.iter().find(|game| game.name() == *name).ok_or_else(|| {
            let names: Vec<&str> = games.iter().map(Game::name).collect();
            format!("--game {name}: there is none of that name; there are {}", names.join(", "))
        })?,
    };
    let written = throng_typescript::module(game.name(), &game.schema(), &arguments.client)?;
    let Some(out) = &arguments.out else {
        say(written.trim_end())?;
        return Ok(Verdict::Fine);
    };
    if !arguments.check {
        std::fs::write(out, written).map_err(|cause| format!("--out {}: cannot be written: {cause}", out.display()))?;
        return Ok(Verdict::Fine);
    }
    if std::fs::read_to_string(out).is_ok_and(|kept| kept == written) {
        return Ok(Verdict::Fine);
    }
    remark(format_args!(
        "{}: is not what this build of {} has; write it anew without --check",
        out.display(),
        game.name()
    ));
    Ok(Verdict::Failed)
}
