//! Why a swarm came to nothing, in words that say what to look at.

use std::io;
use std::net::SocketAddr;

use throng_client::DisconnectReason;
use throng_net::protocol::{HandshakeFailure, TokenError};
use throng_platform::limits::LimitError;
use throng_platform::udp::BindError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum SwarmError {
    #[error("a swarm of no players has nothing to do: ask for at least one")]
    NoPlayers,
    #[error("bots must think at 1 to 1,000 Hz, not {tick_hz}")]
    TickRate { tick_hz: u32 },
    #[error("each of {players} bots needs a socket: {source}")]
    OpenFiles { players: usize, source: LimitError },
    #[error("no thread for the bots: {0} (`ulimit -u`, or pids.max of the control group, may be too low)")]
    Thread(io::Error),
    #[error("bot {bot} has no socket: {source}")]
    Socket { bot: usize, source: BindError },
    #[error("the kernel's list of readable sockets failed: {0}")]
    Epoll(io::Error),
    #[error("bot {bot} has no connect token: {source}")]
    Token { bot: usize, source: TokenError },
    #[error("none of {tried} bots got into a world at {address}: {}{}", first_reason(.first_failure), advice(.first_failure))]
    NobodyGotIn { address: SocketAddr, tried: u64, first_failure: Option<DisconnectReason> },
}

/// What the first bot that failed was told; nobody failed when the time was up before.
fn first_reason(first_failure: &Option<DisconnectReason>) -> String {
    match first_failure {
        Some(reason) => reason.to_string(),
        None => "the time was up while they waited for an answer".to_owned(),
    }
}

/// What to look at where the server said nothing. One that gave a reason was reached.
fn advice(first_failure: &Option<DisconnectReason>) -> &'static str {
    use DisconnectReason::Handshake;
    match first_failure {
        None | Some(Handshake(HandshakeFailure::TimedOut | HandshakeFailure::TokenExpired)) => {
            ". Check that a server listens on exactly this UDP address, that it is one of the server's public addresses, \
             that no firewall drops UDP on the way, and that bots and server have the same protocol id and private key"
        }
        Some(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_gave_a_reason_is_not_looked_for() {
        let first_failure = Some(DisconnectReason::SchemaMismatch { own: 1, server: 2 });
        let address = "127.0.0.1:40000".parse().expect("an address");
        let error = SwarmError::NobodyGotIn { address, tried: 20, first_failure };
        let text = error.to_string();
        assert!(text.contains("different versions of the game") && !text.contains("firewall"), "{text}");
    }

    #[test]
    fn the_error_of_a_silent_server_names_address_and_remedies() {
        let error = SwarmError::NobodyGotIn {
            address: "127.0.0.1:40000".parse().expect("an address"),
            tried: 20,
            first_failure: Some(DisconnectReason::Handshake(HandshakeFailure::TimedOut)),
        };
        let text = error.to_string();
        for part in ["20 bots", "127.0.0.1:40000", "no server answered", "firewall", "private key"] {
            assert!(text.contains(part), "{part:?} is missing in {text:?}");
        }
    }
}
