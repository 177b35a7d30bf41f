//! Swarms against a small server on real sockets: what the report says is what happened.

mod tapping_server;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tapping_server::{PRIVATE_KEY, PROTOCOL_ID, TappingServer, Trouble};
use throng_bots::{
    Behaviour, BehaviourCounters, Swarm, SwarmError, SwarmReport, SwarmSettings, SwarmStatus, TokenSigner, Tokens,
};
use throng_client::Client;
use throng_net::protocol::{ClientId, ConnectToken, TokenError, TokenRequest};
use throng_platform::clock::{Clock, MonotonicClock};
use throng_platform::random;
use throng_platform::signals::StopFlag;
use throng_platform::threads::Priority;
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
        self.taps += u64::from(client.send_raw_input(now, &[1, 2, 3]).is_ok());
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
        audited_one_in: 1,
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
    assert!(error.contains("no server answered") && error.contains("private key"), "{error}");
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

/// What the bot's own random source says first, and the thread that drives it.
type Minds = BTreeMap<usize, (u64, String)>;

/// Taps, and writes down once who it is.
struct Witness {
    bot: usize,
    minds: Arc<Mutex<Minds>>,
    has_told: bool,
    tapper: Tapper,
}

impl Behaviour for Witness {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        if !std::mem::replace(&mut self.has_told, true) {
            let thread = std::thread::current().name().unwrap_or_default().to_owned();
            let mut minds = self.minds.lock().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(minds.insert(self.bot, (rng.random(), thread)), None);
        }
        self.tapper.think(now, client, rng);
    }

    fn counters(&self) -> BehaviourCounters {
        self.tapper.counters()
    }
}

/// Promise: a swarm on several threads is the same swarm. Every bot plays, is itself, and is in the report.
#[test]
fn on_three_threads_it_is_the_same_swarm() {
    const PLAYERS: usize = 50;
    let play_on = |threads: usize| {
        let server = TappingServer::start(Trouble::default());
        let settings = SwarmSettings { threads: Some(threads), ..settings(server.address, PLAYERS, 2, 10) };
        let (minds, mut statuses) = (Arc::new(Mutex::new(Minds::new())), Vec::new());
        let minds_too = minds.clone();
        let make = move |bot| {
            Box::new(Witness { bot, minds: minds_too.clone(), has_told: false, tapper: Tapper::default() }) as Box<_>
        };
        let stop = StopFlag::new().expect("a descriptor");
        let report = Swarm::run(settings, schema(), make, stop, &mut |status| statuses.push(status.clone()))
            .expect("a healthy server");
        let seen = server.finish();

        assert_eq!((report.players_wanted, report.players_connected), (50, 50));
        assert_eq!((report.disconnects, report.connect_failures, report.login_retries), (0, 0, 0), "{report:?}");
        assert_eq!((report.state_errors, report.protocol_errors, report.packets_refused), (0, 0, 0), "{report:?}");
        assert_eq!((seen.admitted, seen.goodbyes), (50, 50), "each comes once and goes once");
        assert_eq!(report.counters["taps"], seen.inputs, "no bot is left out of the sums, and none is in twice");
        // Each turn is an input, a packet and a sample; the first ones are before the span. A third would be one thread's.
        let (packets, inputs) = (report.packets_out_per_s * report.seconds, seen.inputs as f64);
        assert!(report.seconds > 1.9 && packets > inputs * 0.5, "{packets} of {inputs} packets: {report:?}");
        assert!(report.input_to_update_ms.samples as f64 > inputs * 0.4, "{inputs} inputs: {report:?}");

        assert!((1..=3).contains(&statuses.len()), "one status a second, for all threads");
        let last = &statuses[statuses.len() - 1];
        assert_eq!((last.figures.players_wanted, last.figures.players_connected, last.players_joining), (50, 50, 0));
        Arc::into_inner(minds).expect("the bots are gone").into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    let (on_one, on_three) = (play_on(1), play_on(3));
    let numbers = |minds: &Minds| minds.iter().map(|(bot, (number, _))| (*bot, *number)).collect::<Vec<_>>();
    assert_eq!(numbers(&on_one), numbers(&on_three), "a bot's chance does not depend on its thread");
    assert_eq!(on_three.len(), PLAYERS);
    assert!(on_one.values().all(|(_, thread)| thread == "bots-0"));
    assert!(on_three.iter().all(|(bot, (_, thread))| *thread == format!("bots-{}", bot % 3)), "{on_three:?}");
}

#[test]
fn a_thread_whose_bots_are_all_turned_out_stays_until_the_time_is_up() {
    let trouble = Trouble { turn_out_odd_after: Some(Nanos::from_millis(300)), ..Trouble::default() };
    let server = TappingServer::start(trouble);
    // Of two threads the second has the bots with odd ids.
    let settings = SwarmSettings { threads: Some(2), ..settings(server.address, PLAYERS, 2, 10) };
    let report = run(settings, &mut |_| {}).expect("half a server");
    assert_eq!((report.players_connected, report.disconnects, server.finish().goodbyes), (10, 10, 10));
    // Its turns are counted like the others', so the shares and rates are those of the whole swarm.
    assert!(report.seconds > 1.9, "{report:?}");
}

/// As the kernel tells it for the calling thread: field 19 of its `stat`, counted from behind the name.
fn nice_of_this_thread() -> i32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux has it");
    let behind_name = &stat[stat.rfind(')').expect("a name in brackets") + 2..];
    behind_name.split(' ').nth(16).expect("a field").parse().expect("a number")
}

#[test]
fn bots_that_share_a_host_with_their_server_give_way_and_the_caller_does_not() {
    struct Nice(u64);
    impl Behaviour for Nice {
        fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
            self.0 = u64::from(nice_of_this_thread() >= 10);
        }
        fn counters(&self) -> BehaviourCounters {
            BehaviourCounters::new().with("nice", self.0)
        }
    }
    let before = nice_of_this_thread();
    let check = |priority: Priority, expect: u64| {
        let server = TappingServer::start(Trouble::default());
        let settings = SwarmSettings { threads: Some(2), priority, ..settings(server.address, 6, 1, 10) };
        let stop = StopFlag::new().expect("a descriptor");
        let report = Swarm::run(settings, schema(), |_bot| Box::new(Nice(0)), stop, &mut |_| {});
        assert_eq!(report.expect("a healthy server").counters["nice"], expect);
        assert_eq!(nice_of_this_thread(), before);
        server.finish();
    };
    check(Priority::Low, 6);
    check(Priority::Normal, if before >= 10 { 6 } else { 0 });
}

fn token(server: SocketAddr, bot: usize) -> Result<ConnectToken, TokenError> {
    let now_unix_s = MonotonicClock::new().unix_seconds();
    let request = TokenRequest {
        protocol_id: PROTOCOL_ID,
        client_id: ClientId(bot as u64),
        server_addresses: vec![server],
        created_unix_s: now_unix_s,
        expires_unix_s: now_unix_s + 60,
        timeout_s: 10,
        user_data: [0; 256],
    };
    ConnectToken::generate(&request, &PRIVATE_KEY.into(), &mut ChaCha20Rng::from_seed(random::seed()))
}

/// Promise: what ends one thread ends the swarm, in order: the others' bots say goodbye, and what was seen is told.
#[test]
fn a_thread_that_cannot_go_on_ends_the_run_with_its_error_and_all_figures() {
    let server = TappingServer::start(Trouble::default());
    let address = server.address;
    // The last bot, on the third thread, has no token; the one before has half a second to get in.
    let tokens =
        Tokens::Made(Box::new(move |bot| if bot == 5 { Err(TokenError::Forged) } else { token(address, bot) }));
    let settings = SwarmSettings {
        threads: Some(3),
        join_per_second: 2,
        status_every: Nanos::from_secs(3_600),
        ..SwarmSettings::new(address, 6, tokens)
    };
    let mut statuses = Vec::new();
    let error = run(settings, &mut |status| statuses.push(status.clone())).expect_err("a bot without a token");
    let seen = server.finish();
    assert!(matches!(error, SwarmError::Token { bot: 5, source: TokenError::Forged }), "{error}");
    assert_eq!((seen.admitted, seen.goodbyes), (5, 5), "the others go in order");
    let [SwarmStatus { players_joining: 0, figures, .. }] = &statuses[..] else { panic!("one status: {statuses:?}") };
    assert_eq!((figures.players_wanted, figures.players_connected), (6, 5));
    assert_eq!(figures.counters["taps"], seen.inputs);
    assert!(figures.input_to_update_ms.samples > 0 && figures.seconds > 2.0, "{figures:?}");
}

#[test]
fn a_bot_that_panics_takes_the_swarm_with_it() {
    struct Brittle(usize);
    impl Behaviour for Brittle {
        fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {
            assert_ne!(self.0, 2, "the bot that panics");
        }
    }
    let server = TappingServer::start(Trouble::default());
    let settings =
        SwarmSettings { threads: Some(2), seconds: None, join_per_second: 2, ..settings(server.address, 3, 0, 10) };
    let stop = StopFlag::new().expect("a descriptor");
    let run = || Swarm::run(settings, schema(), |bot| Box::new(Brittle(bot)), stop, &mut |_| {});
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).expect_err("a panic is no report");
    assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("the bot that panics")));
    assert_eq!(server.finish().goodbyes, 1, "the other thread's bot goes in order");
}
