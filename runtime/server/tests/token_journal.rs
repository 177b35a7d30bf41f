//! The promise: with a token journal, a token that let somebody in lets nobody in after a restart, while fresh ones do;
//! and a journal that cannot be used keeps the server from starting.
//!
//! Real sockets, real files: the whole way from the settings to the handshake.

use std::{
    net::UdpSocket,
    path::{Path, PathBuf},
    time::Duration,
};

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng::{
    server::Server,
    settings::{Settings, TokenJournalFile},
    testing,
};
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, HandshakeState, PrivateKey, ProtocolId,
    TokenRequest,
};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    signals::StopFlag,
    time::Nanos,
};
use throng_replication::SchemaBuilder;

const KEY: PrivateKey = PrivateKey::new([7; 32]);
/// By which tokens know the server; the port that it really has is another in every run.
const PUBLIC_ADDRESS: &str = "203.0.113.5:40000";
/// Ten repetitions of what the client says; loopback takes microseconds.
const PATIENCE: Nanos = Nanos::from_secs(2);

fn settings(journal: &Path) -> Settings {
    let mut settings = Settings::default();
    settings.server.address = "127.0.0.1:0".parse().unwrap();
    settings.server.public_addresses = vec![PUBLIC_ADDRESS.parse().unwrap()];
    settings.server.token_journal = TokenJournalFile::Named(journal.to_owned());
    settings
}

fn token(settings: &Settings, client: u64) -> ConnectToken {
    let now_unix_s = MonotonicClock::new().unix_seconds();
    let request = TokenRequest {
        protocol_id: ProtocolId(settings.server.protocol_id),
        client_id: ClientId(client),
        server_addresses: settings.server.public_addresses.clone(),
        created_unix_s: now_unix_s,
        expires_unix_s: now_unix_s + 300,
        timeout_s: 10,
        user_data: [0; 256],
    };
    ConnectToken::generate(&request, &KEY, &mut ChaCha20Rng::seed_from_u64(client)).unwrap()
}

/// Runs a server from its start to its end; tells which of the tokens, shown one after the other, got somebody in.
fn run_and_show(settings: &Settings, tokens: &[ConnectToken]) -> Vec<bool> {
    let mut server = Server::bind(settings, SchemaBuilder::new().build(), KEY).unwrap();
    let empty = server.add_kind(testing::empty()).unwrap();
    server.create_world(empty, 1).unwrap();
    let address = server.local_addr();
    let stop = StopFlag::new().unwrap();
    let (stop_then, tokens) = (stop.clone(), tokens.to_vec());
    let clients = std::thread::spawn(move || {
        let admitted = tokens.into_iter().map(|token| gets_in(token, address)).collect();
        stop_then.request();
        admitted
    });
    server.run(&stop, &mut |_| {}).unwrap();
    clients.join().unwrap()
}

fn gets_in(token: ConnectToken, server: std::net::SocketAddr) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let clock = MonotonicClock::new();
    let mut client = ClientHandshake::new(token, ClientHandshakeSettings::default(), clock.now(), [9; 32]);
    let (mut out, mut heard) = ([0; 1400], [0; 1400]);
    while client.state() == HandshakeState::Connecting && clock.now() < PATIENCE {
        if let Some((_, len)) = client.poll(clock.now(), clock.unix_seconds(), &mut out) {
            socket.send_to(&out[..len], server).unwrap();
        }
        if let Ok(len) = socket.recv(&mut heard) {
            client.handle(clock.now(), &mut heard[..len]);
        }
    }
    client.state() == HandshakeState::Connected
}

fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-token-journal-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// An operator who gives a key and says nothing of journals.
#[test]
fn a_token_lets_in_once_though_nobody_named_a_journal() {
    let folder = folder("implied");
    let file = folder.join("throng.toml");
    let key = "07".repeat(32);
    let server =
        format!("address = \"127.0.0.1:0\"\npublic_addresses = [\"{PUBLIC_ADDRESS}\"]\nprivate_key = \"{key}\"");
    std::fs::write(&file, format!("[server]\n{server}\n")).unwrap();
    let remembering = Settings::load(&file).unwrap();
    let shown = token(&remembering, 1);
    assert_eq!(run_and_show(&remembering, std::slice::from_ref(&shown)), [true]);
    assert!(folder.join("tokens-127.0.0.1-0.used").exists());
    assert_eq!(run_and_show(&remembering, std::slice::from_ref(&shown)), [false]);

    std::fs::write(&file, format!("[server]\n{server}\ntoken_journal = \"off\"\n")).unwrap();
    assert_eq!(run_and_show(&Settings::load(&file).unwrap(), &[shown]), [true], "as it was wanted");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_token_lets_in_once_over_all_runs_of_the_server() {
    let folder = folder("named");
    let settings = settings(&folder.join("tokens.used"));
    let [first, second] = [1, 2].map(|client| token(&settings, client));
    assert_eq!(run_and_show(&settings, std::slice::from_ref(&first)), [true]);
    assert_eq!(run_and_show(&settings, &[first, second]), [false, true]);

    let foreign = folder.join("notes.txt");
    std::fs::write(&foreign, "somebody's notes\n").unwrap();
    let mut mistaken = settings.clone();
    mistaken.server.token_journal = TokenJournalFile::Named(foreign);
    let error = Server::bind(&mistaken, SchemaBuilder::new().build(), KEY).err().unwrap().to_string();
    assert!(error.contains("notes.txt: is not a token journal"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
