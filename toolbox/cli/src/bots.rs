//! `bots`: a swarm of bots against a server that runs already.
//!
//! Fails when they could not play: when one did not get in or lost its connection, could not read what it was told, or was
//! told wrong values.
//!
//! They play as the game's bots do, or say again what the players of a recording said. With `--compare` nobody plays, and two
//! recordings are held against each other ([`compare`](crate::compare)).

use std::{
    io::BufRead,
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use serde::Serialize;
use throng::recording::RecordingFiles;
use throng_bots::{Joins, Swarm, SwarmError, SwarmReport, SwarmSettings, SwarmStatus, TokenSigner, Tokens};
use throng_game::{Game, MakeBehaviour};
use throng_history::Machine;
use throng_likeness::{PlaysInputs, RecordedInputs, Who};
use throng_net::protocol::ProtocolId;
use throng_platform::{
    signals::{self, StopFlag},
    threads::{Priority, spawn_named},
};

use crate::{
    compare::CompareArguments,
    executable::Executable,
    key::KeyArguments,
    outcome::{CommandResult, Verdict},
    output::{OutputArguments, Reader, remark, say},
    played::Played,
    status_line::StatusLine,
};

#[derive(Args)]
pub struct BotsArguments {
    /// The server, as HOST:PORT.
    #[arg(long, value_parser = resolve, required_unless_present = "compare")]
    connect: Option<SocketAddr>,
    /// How many bots; without it 100, or as many as the recording of --inputs has players.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    players: Option<u32>,
    /// Let each bot say what a player of this recording said, when that said it, instead of playing.
    #[arg(long, value_name = "RECORDING")]
    inputs: Option<PathBuf>,
    /// Whose inputs: all, browser, others, or client ids as 7 or 1-500.
    #[arg(long, value_name = "WHO", requires = "inputs", default_value = "all")]
    inputs_of: Who,
    /// How often they think and send an input (Hz); without it as often as the game says, or as the recording of --inputs has it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    hz: Option<u32>,
    #[command(flatten)]
    compare: CompareArguments,
    /// How long to play after the last one is in (s); without it, until stopped, or until the recording of --inputs is over.
    #[arg(long)]
    seconds: Option<u64>,
    /// What the bots do; every game has `play`.
    #[arg(long, default_value = "play", value_parser = ["play"])]
    behaviour: String,
    /// Bots that join per second, unless the scenario has them all join at once.
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    join_per_second: u32,
    /// Threads that drive them; without it, one for 400 bots at 20 Hz, and no more than there are cores.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Let their threads have a low priority: for a server on the same host, whose workers must not wait for them.
    #[arg(long)]
    low_priority: bool,
    /// Client id of the first bot; the others follow. Two swarms on one server need ranges apart.
    #[arg(long, default_value_t = 1)]
    first_client_id: u64,
    /// One bot in so many asks the server for audit samples, and checks what it is told.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    audited_one_in: u32,
    /// Seed of their behaviour.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    key: KeyArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// A host name or address with a port.
fn resolve(text: &str) -> Result<SocketAddr, String> {
    let mut found =
        text.to_socket_addrs().map_err(|error| format!("{error}; write HOST:PORT, such as 127.0.0.1:40000"))?;
    found.next().ok_or_else(|| "the name has no address".into())
}

/// Bots where nobody says how many.
const PLAYERS: u32 = 100;

impl BotsArguments {
    /// Whether recordings are to be compared, and nobody plays.
    pub fn compares(&self) -> bool {
        self.compare.is_wanted()
    }

    pub fn compare(&self, executable: Executable, games: &[Game]) -> CommandResult {
        self.compare.run(self.output.reader(), executable, games)
    }
}

/// What the bots of a run do, and how many, how often and for how long unless somebody says otherwise.
struct Part {
    behaviours: MakeBehaviour,
    players: u32,
    hz: u32,
    seconds: Option<u64>,
}

fn part(arguments: &BotsArguments, played: &Played<'_>) -> Result<Part, Box<dyn std::error::Error>> {
    let Some(path) = &arguments.inputs else {
        let (behaviours, hz) = (played.behaviours()?, played.game.bots_hz());
        return Ok(Part { behaviours, players: PLAYERS, hz, seconds: None });
    };
    let inputs = recorded_inputs(path, arguments.inputs_of, played)?;
    inputs.faults().iter().for_each(remark);
    let (players, hz, seconds) = (inputs.players() as u32, inputs.inputs_hz(), inputs.length_s());
    remark(format_args!("{}: {players} players, inputs at {hz} Hz at most, {seconds} s", path.display()));
    let plays = PlaysInputs::new(Arc::new(inputs));
    let behaviours: MakeBehaviour = Box::new(move |bot| Box::new(plays.bot(bot)));
    Ok(Part { behaviours, players: players.min(16_384), hz, seconds: Some(seconds.max(1)) })
}

fn recorded_inputs(path: &Path, who: Who, played: &Played<'_>) -> Result<RecordedInputs, Box<dyn std::error::Error>> {
    let recording = RecordingFiles::open(path)?;
    let inputs = RecordedInputs::read(&recording, who, played.game.name(), &played.game.schema());
    Ok(inputs.map_err(|error| format!("{}: {error}", path.display()))?)
}

pub fn run(arguments: BotsArguments, played: &Played<'_>) -> CommandResult {
    arguments.compare.check_unused()?;
    let stop = signals::install_stop();
    let Part { behaviours, players, hz, seconds } = part(&arguments, played)?;
    let connect = arguments.connect.ok_or("--connect: say which server, as HOST:PORT")?;
    let (settings, key) = arguments.key.settings_and_key("bots make their own connect tokens with the server's key")?;
    let signer = TokenSigner {
        protocol_id: ProtocolId(settings.server.protocol_id),
        private_key: key.to_private_key(),
        client_id_first: arguments.first_client_id,
        timeout_s: settings.server.timeout_s as i32,
        audited_one_in: arguments.audited_one_in as usize,
    };
    let swarm = SwarmSettings {
        seconds: arguments.seconds.or(seconds),
        tick_hz: arguments.hz.unwrap_or(hz),
        seed: arguments.seed,
        join_per_second: match played.arguments.scenario.joins {
            Joins::InTurn => arguments.join_per_second,
            Joins::AtOnce => u32::MAX,
        },
        threads: arguments.threads.map(usize::from),
        priority: if arguments.low_priority { Priority::Load } else { Priority::Normal },
        ..SwarmSettings::new(connect, arguments.players.unwrap_or(players) as usize, Tokens::Signed(signer))
    };
    let reader = arguments.output.reader();
    if reader == Reader::Parent {
        end_with_parent(stop.clone())?;
    }
    let line = StatusLine::new();
    let result = Swarm::run(swarm, played.game.schema(), behaviours, stop, &mut |status| {
        if reader == Reader::Parent {
            // A parent that is gone says so by the end of stdin, too.
            let _ = say(serde_json::json!({ "status": status }));
        } else {
            line.show(&one_line(status));
        }
    });
    line.finish();
    let report = match result {
        Ok(report) => report,
        // That is what was to be found out, not a mistake in how it was asked.
        Err(error @ SwarmError::NobodyGotIn { .. }) => {
            remark(format_args!("FAIL {error}"));
            return Ok(Verdict::Failed);
        }
        Err(error) => return Err(error.into()),
    };
    reader.tell_report(&ToldReport::new(&report, reader))?;
    let failures = report.failures();
    failures.iter().for_each(|failure| remark(format_args!("FAIL {failure}")));
    Ok(if failures.is_empty() { Verdict::Fine } else { Verdict::Failed })
}

/// What is told of a run.
#[derive(Serialize)]
struct ToldReport<'r> {
    #[serde(flatten)]
    report: &'r SwarmReport,
    /// Whose times they are. A parent looks for itself, when nobody plays any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<Machine>,
}

impl<'r> ToldReport<'r> {
    fn new(report: &'r SwarmReport, reader: Reader) -> Self {
        Self { report, machine: (reader != Reader::Parent).then(Machine::here) }
    }
}

fn one_line(status: &SwarmStatus) -> String {
    let figures = &status.figures;
    format!(
        "{:>5.0} s  {} of {} bots playing  {} in line  {} disconnects  {} state errors in {} checks  \
         input to update {:.0} ms p50, {:.0} ms p99  {:.2} cores",
        status.elapsed_s,
        figures.players_connected,
        figures.players_wanted,
        figures.players_queued,
        figures.disconnects,
        figures.state_errors,
        figures.state_checks,
        figures.input_to_update_ms.p50,
        figures.input_to_update_ms.p99,
        figures.cpu_cores,
    )
}

/// Stops when the parent closes its end, however it ends. Its orders to measure are the server's; a swarm reports its
/// whole run.
fn end_with_parent(stop: StopFlag) -> std::io::Result<()> {
    spawn_named("parent", Priority::Low, move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() {
                break;
            }
        }
        stop.request();
    })?;
    Ok(())
}
