//! The commands that every game gets: `demo`, `serve`, `bots`, `load`, `preflight`, `density`, `host`, `console`, `top`, `history`,
//! `record`, `replay`, `saves`, `capture`, `crash`, `wallclock`, `token`, `sync`, `admin-key`, `schema`, each with every flag. A thin
//! front end of the libraries, which knows no game.
//!
//! A game is one value ([`Game`]), and its executable is
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use throng_cli::Game;
//! # use throng::replication::SchemaBuilder;
//!
//! fn my_game() -> Game {
//!     // Its worlds, bots, options, settings: see the crate `throng-game`.
//!     # Game::new("meadow", || SchemaBuilder::new().build(), |_server, _arguments| Ok(()))
//! }
//!
//! fn main() -> ExitCode {
//!     throng_cli::main(my_game())
//! }
//! ```
//!
//! `games/meadow` is a whole game of that kind, and `throng new NAME` writes another one like it. What an executable has with this library beside the commands: the
//! counting allocator, by which captures and metrics know of memory. It is declared here, so an executable must not
//! declare a global allocator of its own.
//!
//! Every command has `--json`, which prints one JSON object as its last line with units in the key names. Exit status 0
//! = fine, 1 = the thing measured failed its bar, 2 = a mistake in how it was called or in the surroundings, 3 = a
//! supervised server died too often.
//!
//! `load` and `demo` start this very executable twice, as server and as bots; what the processes tell each other is in
//! `docs/spec/child.md`.

mod admin_key;
mod admin_port;
mod bots;
mod browser;
mod capture;
mod compare;
mod console;
mod crash;
mod crash_monitor;
mod crash_state;
mod daily;
mod demo;
mod density;
mod executable;
mod history;
mod host;
mod key;
mod load;
mod outcome;
mod output;
mod own_command;
mod played;
mod preflight;
mod record;
mod recorded_game;
mod replay;
mod saves;
mod schema;
mod serve;
mod service_manager;
mod status_line;
mod supervisor;
mod sync;
mod token;
mod top;
mod uploads;
mod wallclock;
mod workload;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use throng_profiler::log::{self, CategoryFilter, Lines};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use executable::Executable;
pub use own_command::OwnCommand;
pub use throng_game::{Arguments, BuildError, Game, GameOption, Options};

use crate::{
    outcome::{CommandResult, Verdict},
    output::remark,
    played::Played,
};

#[allow(unexpected_cfgs, reason = "`cargo xtask sanitize` sets it")]
mod allocator {
    /// Counts what each thread allocates, for captures, metrics and reports. A sanitizer watches the system's allocator, and
    /// would see nothing of what lies in this one.
    #[cfg(not(sanitizer_compat))]
    #[global_allocator]
    static ALLOCATOR: throng_platform::allocator::CountingAllocator = throng_platform::allocator::CountingAllocator;
}

#[derive(Parser)]
#[command(max_term_width = 100)]
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
    /// A swarm of bots against a server; with --compare, what recorded bots cost against recorded people.
    Bots(bots::BotsArguments),
    /// The load test: server and bots as processes, measured, judged, reported.
    Load(load::LoadArguments),
    /// How many instances of any command this host holds: frame time against their number, and a forecast.
    Density(density::DensityArguments),
    /// This machine: what loads that are known use on it, from inside and from outside.
    Host(host::HostArguments),
    /// Two builds held against each other, subsystem by subsystem: slower, faster, or no difference seen.
    Preflight(preflight::PreflightArguments),
    /// Runs that were kept: between which commits a subsystem became slower.
    History(history::HistoryArguments),
    /// A connect token, with which one client may connect once.
    Token(token::TokenArguments),
    /// Captures of bad frames: have one saved, list, read and convert them.
    Capture(capture::CaptureArguments),
    /// Reports of servers' deaths, grouped by cause.
    Crash(crash::CrashArguments),
    /// Commands of a running server: its packets by kind, its rules read again.
    Console(console::ConsoleArguments),
    /// How a running server does, drawn anew each second: frames, subsystems, worlds, host.
    Top(top::TopArguments),
    /// Begins and ends the recording of what enters a running server's worlds, and says how it stands.
    Record(record::RecordArguments),
    /// A recording, run again: every world is to come to the states that it had.
    Replay(replay::ReplayArguments),
    /// Saves of a server that does not run: verified, counted, one of them shown.
    Saves(saves::SavesArguments),
    /// A folder of captures or reports to the object store, and back.
    Sync(sync::SyncArguments),
    /// A new key for the admin port: a line of a server's file of keys.
    AdminKey(admin_key::NewKeyArguments),
    /// What the game's server says and is told, as TypeScript, for clients in browsers.
    Schema(schema::SchemaArguments),
    /// Where the wall time of a running process goes: all its threads, asleep or awake, without stopping any.
    Wallclock(wallclock::WallclockArguments),
    /// A game with its bots in one process on a virtual clock, step by step as `preflight` asks.
    #[command(hide = true)]
    Workload(workload::WorkloadArguments),
    /// Watches over the server that started it, and reports its death.
    #[command(hide = true)]
    CrashMonitor {
        /// The server's process, which is said for who lists processes.
        #[arg(value_name = "PID")]
        _of: Option<u32>,
    },
    /// Dies on purpose, to see that a report arrives.
    #[command(hide = true)]
    CrashDrill(crash_monitor::DrillArguments),
}

/// The `main` of an executable with one game: reads the command line and does what it says. The command is called as the
/// game is, and `--version` says the game's version and commit.
pub fn main(game: Game) -> ExitCode {
    let (version, commit) = game.version_and_commit();
    main_with(Executable { name: game.name(), version, commit }, vec![game])
}

/// The same for an executable with several games, the usual one first: `--game NAME` chooses one.
///
/// # Panics
/// When there is no game, when two have one name, or when a game's option is called as one of a command is.
pub fn main_with(executable: Executable, games: Vec<Game>) -> ExitCode {
    main_with_commands(executable, games, &[])
}

/// The same with commands of the executable's own.
///
/// # Panics
/// As [`main_with`], and when one of these is called as a command is that every executable has.
pub fn main_with_commands(executable: Executable, games: Vec<Game>, own: &[OwnCommand]) -> ExitCode {
    let matches = own_command::add_words(command_line(executable, &games), own).get_matches();
    if let Some((command, words)) = own_command::find(own, &matches) {
        return end(executable, (command.run)(words).map(|()| Verdict::Fine));
    }
    let Cli { command } = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // All that this one does is sleep: it needs no log and keeps no memory.
    if let Command::CrashMonitor { .. } = command {
        return crash_monitor::monitor(executable);
    }
    throng_platform::allocator::keep_memory();
    // Written by a thread of its own: a reader of stderr that stalls costs lines, never a frame.
    let (log, _flushed_at_exit) = tracing_appender::non_blocking(std::io::stderr());
    if let Err(error) = set_log_levels() {
        remark(format_args!("{}: THRONG_LOG: {error}", executable.name));
        return ExitCode::from(2);
    }
    let lines = tracing_subscriber::fmt::layer().with_writer(log);
    tracing_subscriber::registry().with(CategoryFilter).with(Lines::new()).with(lines).init();
    end(executable, run(executable, &games, command, &matches))
}

/// The exit status, and the line that says what was wrong.
fn end(executable: Executable, result: CommandResult) -> ExitCode {
    match result {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Ok(Verdict::Status(status)) => ExitCode::from(status),
        Err(error) => {
            remark(format_args!("{}: {error}", executable.name));
            ExitCode::from(2)
        }
    }
}

/// The words that the executable understands: those of every command, and those of its games.
pub(crate) fn command_line(executable: Executable, games: &[Game]) -> clap::Command {
    let about = match games {
        [game] if !game.description().is_empty() => game.description(),
        _ => "Authoritative multiplayer game servers that hold their tick: servers, bots, load tests",
    };
    let version: &'static str = executable.version_and_commit().leak();
    played::add_words(Cli::command().name(executable.name).about(about).version(version), games)
}

fn run(executable: Executable, games: &[Game], command: Command, matches: &ArgMatches) -> CommandResult {
    let played = || Played::of(games, matches);
    match command {
        Command::Demo(arguments) => demo::run(arguments, &played()?, executable),
        Command::Serve(arguments) => serve::run(arguments, &played()?, executable),
        Command::Bots(arguments) if arguments.compares() => arguments.compare(executable, games),
        Command::Bots(arguments) => bots::run(arguments, &played()?),
        Command::Load(arguments) if arguments.daily => {
            daily::run(&arguments, &Played::every(games, matches)?, executable)
        }
        Command::Load(arguments) => load::run(arguments, &played()?, executable),
        Command::Density(arguments) => density::run(arguments),
        Command::Host(arguments) => host::run(arguments),
        Command::Preflight(arguments) => preflight::run(arguments, &played()?, executable, games),
        Command::Workload(arguments) => workload::run(arguments, &played()?, executable, games),
        Command::History(arguments) => history::run(arguments),
        Command::Token(arguments) => token::run(arguments),
        Command::Capture(arguments) => capture::run(arguments),
        Command::Crash(arguments) => crash::run(&arguments),
        Command::Console(arguments) => console::run(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments, executable, games),
        Command::Saves(arguments) => saves::run(arguments, games),
        Command::Sync(arguments) => sync::run(arguments),
        Command::Schema(arguments) => schema::run(arguments, games),
        Command::AdminKey(arguments) => admin_key::run(&arguments),
        Command::Wallclock(arguments) => wallclock::run(arguments),
        Command::CrashMonitor { .. } => unreachable!("it has ended before"),
        Command::CrashDrill(arguments) => crash_monitor::drill(arguments, executable),
    }
}

/// Libraries that warn of what strangers say to them, who could fill a disk so.
const SAY_ERRORS_ALONE: &str = "web_transport_quinn=error,quinn=error,quinn_proto=error,quinn_udp=error,rustls=error";

/// What `THRONG_LOG` says, such as `server.clients=debug,all=warn`; rules come before it.
fn set_log_levels() -> Result<(), log::UnknownLevel> {
    let mut levels = log::levels_from_text(SAY_ERRORS_ALONE)?;
    if let Ok(text) = std::env::var("THRONG_LOG") {
        levels.extend(log::levels_from_text(&text)?);
    }
    log::set_base_levels(&levels);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: who reads the README knows which commands there are.
    #[test]
    fn the_readme_has_every_command() {
        let readme = include_str!("../../../README.md");
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            assert!(readme.contains(&format!("\n| `throng {name}")), "README.md has no row of `throng {name}`");
        }
    }
}
