//! The `throng` command: a thin door to the libraries.
//!
//! Every command has `--json`, which prints one JSON object as its last line with units in the key names. Exit status 0 = fine,
//! 1 = the thing measured failed its bar, 2 = a mistake in how it was called or in the surroundings.

mod bots;
mod demo;
mod games;
mod load;
mod serve;
mod status_line;
mod token;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: throng_platform::allocator::CountingAllocator = throng_platform::allocator::CountingAllocator;

/// Authoritative multiplayer game servers that hold their tick: servers, bots, load tests.
#[derive(Parser)]
#[command(name = "throng", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A server and a swarm of bots on this machine, with a live status and a report at the end.
    Demo(demo::DemoArguments),
    /// A game server.
    Serve(serve::ServeArguments),
    /// A swarm of bots against a server.
    Bots(bots::BotsArguments),
    /// The daily load test: server and bots as processes, measured, judged, reported.
    Load(load::LoadArguments),
    /// A connect token, with which one client may connect once.
    Token(token::TokenArguments),
}

/// How a command ended when nothing went wrong with the command itself.
enum Verdict {
    Fine,
    /// What was measured failed its bar.
    Failed,
}

type CommandResult = Result<Verdict, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let cli = Cli::parse();
    throng_platform::allocator::keep_memory();
    // Written by a thread of its own: a reader of stderr that stalls costs lines, never a frame.
    let (log, _flushed_at_exit) = tracing_appender::non_blocking(std::io::stderr());
    tracing_subscriber::fmt()
        .with_writer(log)
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_env("THRONG_LOG").unwrap_or_else(|_| "info".into()))
        .with_target(false)
        .init();
    let result = match cli.command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Bots(arguments) => bots::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Token(arguments) => token::run(arguments),
    };
    match result {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("throng: {error}");
            ExitCode::from(2)
        }
    }
}
