//! Swarms against a small server on real sockets: what the report says is what happened.

mod tapping_server;

use std::net::SocketAddr;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use tapping_server::{PRIVATE_KEY, PROTOCOL_ID, TappingServer, Trouble};
use throng_bots::{
    Behaviour, BehaviourCounters, Swarm, SwarmError, SwarmReport, SwarmSettings, SwarmStatus, TokenSigner, Tokens,
};
use throng_client::Client;
use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;
use throng_replication::{Schema, SchemaBuilder};

const PLAYERS: usize = 20;

/// Sends one input per turn and counts those that were taken.
#[derive(Default)]
struct Tapper {
    taps: u64,
}

impl Behaviour for Tapper {
    fn think(&mut self, now: Nanos, client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
        self.taps += u64::from(client.send_input(now, &[1, 2, 3]).is_ok());
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new().with("taps", self.taps)
    }
}

fn schema() -> Arc<Schema> {
    SchemaBuilder::new().build()
}

fn settings(connect: SocketAddr, players: usize, seconds: u64, timeout_s: i32) -> SwarmSettings {
    let tokens = Tokens::Signed(TokenSigner {
        protocol_id: PROTOCOL_ID,
        private_key: PRIVATE_KEY.into(),
        client_id_first: 100,
        timeout_s,
    });
    SwarmSettings { seconds: Some(seconds), ..SwarmSettings::new(connect, players, tokens) }
}

fn run(settings: SwarmSettings, on_status: &mut dyn FnMut(&SwarmStatus)) -> Result<SwarmReport, SwarmError> {
    let stop = StopFlag::new().expect("a descriptor");
    Swarm::run(settings, schema(), |_bot| Box::new(Tapper::default()), stop, on_status)
}

#[test]
fn every_bot_plays_to_the_end_and_the_counts_are_the_servers() {
    let server = TappingServer::start(Trouble::default());
    let mut statuses = Vec::new();
    let report = run(settings(server.address, PLAYERS, 3, 10), &mut |status| statuses.push(status.clone()))
        .expect("a healthy server");
    let seen = server.finish();

    assert_eq!((report.players_wanted, report.players_connected), (20, 20));
    assert_eq!((report.disconnects, report.connect_failures), (0, 0));
    assert_eq!((report.protocol_errors, report.state_errors, report.state_error_bots), (0, 0, 0));
    assert_eq!((seen.admitted, seen.goodbyes), (20, 20), "every bot says goodbye, once counted");
    assert_eq!(report.counters["taps"], seen.inputs, "loopback loses nothing");

    // 3 s of 20 bots at 20 Hz; a busy machine may make it less.
    assert!((300..=1_400).contains(&report.counters["taps"]), "{report:?}");
    assert!((5.0..=35.0).contains(&(report.packets_out_per_s / 20.0)), "{report:?}");
    let latency = report.input_to_update_ms;
    assert!(latency.samples > 300 && latency.p50 > 0.1 && latency.p50 <= latency.p99, "{latency:?}");
    assert!(latency.p99 <= latency.max && report.cpu_cores > 0.0 && report.bytes_in_per_s > 0.0);

    assert!((2..=4).contains(&statuses.len()), "one status a second");
    let last = &statuses[statuses.len() - 1];
    assert_eq!((last.figures.players_connected, last.players_joining), (20, 0));
    assert!(last.figures.counters["taps"] > statuses[0].figures.counters["taps"]);
}

#[test]
fn half_of_the_packets_lost_costs_latency_and_nobody() {
    let server = TappingServer::start(Trouble { loss: 0.5, ..Trouble::default() });
    let report = run(settings(server.address, PLAYERS, 4, 20), &mut |_| {}).expect("a server in trouble");
    let seen = server.finish();

    assert_eq!((report.players_connected, report.disconnects, report.connect_failures), (20, 0, 0), "{report:?}");
    assert_eq!((report.protocol_errors, report.state_errors), (0, 0));
    assert!(seen.inputs < report.counters["taps"] * 3 / 4, "half of the inputs were lost on the way");
    assert!(report.input_to_update_ms.samples > 100, "a later input answers for a lost one: {report:?}");
}

#[test]
fn bots_that_are_turned_out_are_disconnects_and_no_failures() {
    let trouble = Trouble { turn_out_odd_after: Some(Nanos::from_millis(800)), ..Trouble::default() };
    let server = TappingServer::start(trouble);
    let report = run(settings(server.address, PLAYERS, 2, 10), &mut |_| {}).expect("half a server");
    let seen = server.finish();

    assert_eq!((report.players_connected, report.disconnects, report.connect_failures), (10, 10, 0));
    assert_eq!((seen.admitted, seen.goodbyes), (20, 10));
}

#[test]
fn nonsense_from_the_server_is_counted_once_per_bot() {
    let server = TappingServer::start(Trouble { nonsense: true, ..Trouble::default() });
    let report = run(settings(server.address, PLAYERS, 1, 10), &mut |_| {}).expect("a strange server");
    server.finish();
    assert_eq!((report.protocol_errors, report.players_connected), (20, 20));
}

#[test]
fn a_server_that_never_answers_is_an_error_with_its_address() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("a bound socket");
    let error = run(settings(address, 3, 60, 1), &mut |_| {}).expect_err("nobody is there").to_string();
    assert!(error.contains(&format!("none of 3 bots got into a world at {address}")), "{error}");
    assert!(error.contains("no server of the token answered") && error.contains("private key"), "{error}");
}

#[test]
fn a_stop_request_ends_the_run_with_a_report() {
    let server = TappingServer::start(Trouble::default());
    let stop = StopFlag::new().expect("a descriptor");
    let asked = stop.clone();
    let settings = SwarmSettings { seconds: None, ..settings(server.address, PLAYERS, 0, 10) };
    let report =
        Swarm::run(settings, schema(), |_bot| Box::new(Tapper::default()), stop, &mut |_status| asked.request())
            .expect("a healthy server");
    assert_eq!((report.players_connected, server.finish().goodbyes), (20, 20));
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_sent() {
    let nowhere: SocketAddr = "127.0.0.1:9".parse().expect("an address");
    let error = run(settings(nowhere, 1 << 40, 1, 10), &mut |_| {}).expect_err("too many").to_string();
    assert!(error.contains("each of 1099511627776 bots needs a socket") && error.contains("ulimit -n"), "{error}");
    assert!(matches!(run(settings(nowhere, 0, 1, 10), &mut |_| {}), Err(SwarmError::NoPlayers)));
    let too_fast = SwarmSettings { tick_hz: 1_001, ..settings(nowhere, 1, 1, 10) };
    assert!(matches!(run(too_fast, &mut |_| {}), Err(SwarmError::TickRate { tick_hz: 1_001 })));
}
