//! `throng new`: a project to begin a game with.

use std::{env, path::PathBuf};

use clap::{ArgMatches, Args, FromArgMatches};
use throng_cli::OwnCommand;

/// A new game: a small project with worlds, bots, tests and settings, in a folder of its name.
#[derive(Args)]
struct NewArguments {
    /// The name of the project, its folder and its executable: lower-case letters, digits and hyphens.
    name: String,
    /// The checkout of Throng that it is built with; without it, the one that this command was built from.
    #[arg(long, value_name = "PATH")]
    throng: Option<PathBuf>,
}

pub fn command() -> OwnCommand {
    OwnCommand { words: NewArguments::augment_args(clap::Command::new("new")), run }
}

fn run(words: &ArgMatches) -> Result<(), Box<dyn std::error::Error>> {
    let NewArguments { name, throng } = NewArguments::from_arg_matches(words)?;
    throng_new::make(&name, &env::current_dir()?, &throng.unwrap_or_else(throng_new::built_from))?;
    println!("{name}: a game with two worlds, bots and tests. What comes next:");
    println!("    cd {name}");
    println!("    cargo run --release -- demo    # a server and bots on this machine");
    println!("    cargo test");
    Ok(())
}
