//! The `throng` command: a thin front end of the libraries.
//!
//! Every command has `--json`, which prints one JSON object as its last line with units in the key names. Exit status 0
//! = fine, 1 = the thing measured failed its bar, 2 = a mistake in how it was called or in the surroundings.

mod admin_key;
mod admin_port;
mod bots;
mod capture;
mod console;
mod crash;
mod crash_monitor;
mod crash_state;
mod demo;
mod games;
mod key;
mod load;
mod outcome;
mod output;
mod serve;
mod status_line;
mod this_build;
mod token;
mod wallclock;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use throng_profiler::log::{self, CategoryFilter, Lines};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::{outcome::Verdict, output::remark};

#[global_allocator]
static ALLOCATOR: throng_platform::allocator::CountingAllocator = throng_platform::allocator::CountingAllocator;

/// Authoritative multiplayer game servers that hold their tick: servers, bots, load tests.
#[derive(Parser)]
#[command(name = "throng", version = this_build::VERSION_AND_COMMIT, max_term_width = 100)]
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
    /// Captures of bad frames: have one saved, list, read and convert them.
    Capture(capture::CaptureArguments),
    /// Reports of servers' deaths, grouped by cause.
    Crash(crash::CrashArguments),
    /// Commands of a running server: its packets by kind, its rules read again.
    Console(console::ConsoleArguments),
    /// A new key for the admin port: a line of a server's file of keys.
    AdminKey(admin_key::NewKeyArguments),
    /// Where the wall time of a running process goes: all its threads, asleep or awake, without stopping any.
    Wallclock(wallclock::WallclockArguments),
    /// Watches over the server that started it, and reports its death.
    #[command(hide = true)]
    CrashMonitor,
    /// Dies on purpose, to see that a report arrives.
    #[command(hide = true)]
    CrashDrill(crash_monitor::DrillArguments),
}

/// What the command does with the words of its command line.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // All that this one does is sleep: it needs no log and keeps no memory.
    if let Command::CrashMonitor = cli.command {
        return crash_monitor::monitor();
    }
    throng_platform::allocator::keep_memory();
    // Written by a thread of its own: a reader of stderr that stalls costs lines, never a frame.
    let (log, _flushed_at_exit) = tracing_appender::non_blocking(std::io::stderr());
    if let Err(error) = set_log_levels() {
        remark(format_args!("throng: THRONG_LOG: {error}"));
        return ExitCode::from(2);
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(log);
    tracing_subscriber::registry().with(CategoryFilter).with(Lines::new()).with(lines).init();
    let result = match cli.command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Bots(arguments) => bots::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Token(arguments) => token::run(arguments),
        Command::Capture(arguments) => capture::run(arguments),
        Command::Crash(arguments) => crash::run(&arguments),
        Command::Console(arguments) => console::run(arguments),
        Command::AdminKey(arguments) => admin_key::run(&arguments),
        Command::Wallclock(arguments) => wallclock::run(arguments),
        Command::CrashMonitor => unreachable!("it has ended above"),
        Command::CrashDrill(arguments) => crash_monitor::drill(arguments),
    };
    match result {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(error) => {
            remark(format_args!("throng: {error}"));
            ExitCode::from(2)
        }
    }
}

/// What `THRONG_LOG` says, such as `server.clients=debug,all=warn`; rules come before it.
fn set_log_levels() -> Result<(), log::UnknownLevel> {
    if let Ok(text) = std::env::var("THRONG_LOG") {
        log::set_base_levels(&log::levels_from_text(&text)?);
    }
    Ok(())
}
