//! `bots`: a swarm of bots against a server that runs already.
//!
//! Fails when they could not play: when one did not get in or lost its connection, could not read what it was told, or was
//! told wrong values.

use std::{
    io::BufRead,
    net::{SocketAddr, ToSocketAddrs},
};

use clap::Args;
use throng_bots::{Joins, Swarm, SwarmError, SwarmSettings, SwarmStatus, TokenSigner, Tokens};
use throng_net::protocol::ProtocolId;
use throng_platform::{
    signals::{self, StopFlag},
    threads::{Priority, spawn_named},
};

use crate::{
    key::KeyArguments,
    outcome::{CommandResult, Verdict},
    output::{OutputArguments, Reader, remark, say},
    played::Played,
    status_line::StatusLine,
};

#[derive(Args)]
pub struct BotsArguments {
    /// The server, as HOST:PORT.
    #[arg(long, value_parser = resolve)]
    connect: SocketAddr,
    /// How many bots.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    players: u32,
    /// How long to play after the last one is in (s); without it, until stopped.
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

pub fn run(arguments: BotsArguments, played: &Played<'_>) -> CommandResult {
    let stop = signals::install_stop();
    let behaviours = played.behaviours()?;
    let (settings, key) = arguments.key.settings_and_key("bots make their own connect tokens with the server's key")?;
    let signer = TokenSigner {
        protocol_id: ProtocolId(settings.server.protocol_id),
        private_key: key.to_private_key(),
        client_id_first: arguments.first_client_id,
        timeout_s: settings.server.timeout_s as i32,
        audited_one_in: arguments.audited_one_in as usize,
    };
    let swarm = SwarmSettings {
        seconds: arguments.seconds,
        tick_hz: played.game.bots_hz(),
        seed: arguments.seed,
        join_per_second: match played.arguments.scenario.joins {
            Joins::InTurn => arguments.join_per_second,
            Joins::AtOnce => u32::MAX,
        },
        threads: arguments.threads.map(usize::from),
        priority: if arguments.low_priority { Priority::Load } else { Priority::Normal },
        ..SwarmSettings::new(arguments.connect, arguments.players as usize, Tokens::Signed(signer))
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
    reader.tell_report(&report)?;
    let failures = report.failures();
    failures.iter().for_each(|failure| remark(format_args!("FAIL {failure}")));
    Ok(if failures.is_empty() { Verdict::Fine } else { Verdict::Failed })
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
