//! `throng token`: makes a connect token, as a game's own login service would with the library call.

use std::{io::Write, net::SocketAddr, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use clap::Args;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use throng_net::protocol::{ClientId, ConnectToken, GAME_DATA_BYTES, ProtocolId, TokenRequest, user_data};
use throng_platform::{clock::Clock, clock::MonotonicClock, random};

use crate::{
    key::KeyArguments,
    outcome::{CommandResult, Verdict},
    output::say,
};

#[derive(Args)]
pub struct TokenArguments {
    /// Who the token is for; one client id is connected at most once at a time.
    #[arg(long)]
    client_id: u64,
    /// Address of the server, as the client reaches it; give several to let the client try one after the other.
    #[arg(long = "server", required = true)]
    servers: Vec<SocketAddr>,
    #[command(flatten)]
    key: KeyArguments,
    /// How long the token may be used to connect (s).
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    expires_s: u64,
    /// After how long without a packet the connection ends (s).
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=600))]
    timeout_s: i32,
    /// Up to 248 bytes that the game finds at the client's arrival.
    #[arg(long, default_value = "")]
    user_data: String,
    /// Ask for audit samples, which the server sends if its settings allow it.
    #[arg(long)]
    audit_samples: bool,
    /// Write the 2,048 bytes to a file instead of base64 to the terminal.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: TokenArguments) -> CommandResult {
    let (settings, key) =
        arguments.key.settings_and_key("a token is only good for the server that has the same one")?;
    let given = arguments.user_data.as_bytes();
    let user_data = user_data(given, arguments.audit_samples)
        .ok_or_else(|| format!("--user-data has {} bytes; at most {GAME_DATA_BYTES} fit", given.len()))?;
    let now_unix_s = MonotonicClock::new().unix_seconds();
    let request = TokenRequest {
        protocol_id: ProtocolId(settings.server.protocol_id),
        client_id: ClientId(arguments.client_id),
        server_addresses: arguments.servers,
        created_unix_s: now_unix_s,
        expires_unix_s: now_unix_s + arguments.expires_s,
        timeout_s: arguments.timeout_s,
        user_data,
    };
    let mut random = ChaCha20Rng::from_seed(random::seed());
    let bytes = ConnectToken::generate(&request, &key.to_private_key(), &mut random)?.to_bytes();
    match &arguments.out {
        Some(path) => std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))?,
        None if !arguments.json => writeln!(std::io::stdout(), "{}", BASE64.encode(bytes))?,
        None => {}
    }
    if arguments.json {
        let object = serde_json::json!({
            "client_id": arguments.client_id,
            "expires_unix_s": request.expires_unix_s,
            "token_base64": BASE64.encode(bytes),
            "file": arguments.out,
        });
        say(object)?;
    }
    Ok(Verdict::Fine)
}
