//! Bad networks between real players and a real server: loss, delay, jitter, reordering, copies, turned bits,
//! blackouts.
//!
//! Every cell of the matrix has two relays of one seed. Through one, bots play: nobody falls out, and what they are
//! shown is what the server has. Through the other, two bare connections say more than the line carries, beside two
//! whose line is as long and otherwise good: everything reliable arrives once and in order, and at 5 % loss the pair
//! still gets 70 % of its neighbours' rate. Cells run beside each other, as players of one server do.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    time::{Duration, Instant},
};

use nix::{
    sched::{CloneFlags, unshare},
    unistd::gettid,
};
use throng_lab::relay::{Impairment, Relay};
use throng_platform::{testing::not_permitted, time::Nanos};

use crate::{
    address::KEY,
    child::{Server, alone, throng},
    crowd::Crowd,
    reliable_pair::{Pair, Said},
};

pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What a path does beside losing and delaying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disorder {
    Calm,
    /// Jitter, a tenth overtaken, a twentieth twice.
    Rough,
    /// Three in ten overtaken, a twentieth twice, a hundredth with a turned bit, and a second of nothing now and then.
    Wild,
}

/// One network.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub loss: f64,
    pub rtt_ms: u64,
    pub disorder: Disorder,
    pub blackout_every_s: u64,
}

impl Cell {
    /// All of them, in the order in which they are counted.
    pub fn thirty_six() -> Vec<Cell> {
        let mut cells = Vec::new();
        for loss in [0.0, 0.05, 0.2] {
            for rtt_ms in [0, 50, 150, 400] {
                for disorder in [Disorder::Calm, Disorder::Rough, Disorder::Wild] {
                    cells.push(Cell { loss, rtt_ms, disorder, blackout_every_s: 10 });
                }
            }
        }
        cells
    }

    /// One direction of it.
    pub fn impairment(&self) -> Impairment {
        let calm =
            Impairment { loss: self.loss, delay: Nanos::from_micros(self.rtt_ms * 500), ..Impairment::default() };
        let rough = Impairment {
            duplication: 0.05,
            reordering: 0.1,
            reorder_delay: Nanos::from_millis(40),
            jitter: Nanos::from_millis(10),
            ..calm
        };
        match self.disorder {
            Disorder::Calm => calm,
            Disorder::Rough => rough,
            Disorder::Wild => Impairment {
                reordering: 0.3,
                corruption: 0.01,
                jitter: Nanos::from_millis(20),
                blackout_every: Nanos::from_secs(self.blackout_every_s),
                blackout: Nanos::from_secs(1),
                ..rough
            },
        }
    }

    /// A line as long, and good.
    pub fn unimpaired(&self) -> Impairment {
        Impairment { delay: Nanos::from_micros(self.rtt_ms * 500), ..Impairment::default() }
    }
}

/// What was seen in a cell.
#[derive(Debug)]
struct Seen {
    cell: Cell,
    disconnects: u64,
    state_checks: u64,
    state_errors: u64,
    /// Of these, when the line had been good again for [`CONVERGED_WITHIN`], and one of them in words.
    state_errors_after: u64,
    state_error: Option<String>,
    protocol_errors: u64,
    /// What was said and heard on the bare connections, and beside them on the good line.
    said: Said,
    said_unimpaired: Said,
}

impl Seen {
    fn goodput_share(&self) -> f64 {
        self.said.bytes as f64 / self.said_unimpaired.bytes as f64
    }

    /// State errors that are no wonder. A copy is to be right two seconds after its change; where a fifth is lost and
    /// each try takes half a second, a change that is lost four times, or before a blackout and twice more, is later
    /// than that: once in some thousand.
    fn late_max(&self) -> u64 {
        let is_slow = self.cell.loss >= 0.2 && self.cell.rtt_ms >= 400;
        if is_slow { self.state_checks / 500 } else { 0 }
    }

    /// What a network of this kind must not do.
    fn faults(&self) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let mut note = |is_wrong, fault| faults.extend(Some(fault).filter(|_| is_wrong));
        note(self.disconnects > 0, "players fell out");
        let is_wrong = |words: &String| words.contains("another value");
        note(self.state_error.as_ref().is_some_and(is_wrong), "players were shown what was never so");
        note(self.state_errors > self.late_max(), "players were shown what was no longer so");
        note(self.state_errors_after > 0, "copies did not come right again");
        note(self.protocol_errors > 0, "messages could not be read");
        note(self.state_checks == 0, "nothing was checked");
        note(self.said.disorders > 0, "reliable messages came twice or out of order");
        note(self.said.missing > 0, "reliable messages never came");
        let is_of_the_promise = self.cell.loss <= 0.05 && self.cell.disorder == Disorder::Calm;
        note(is_of_the_promise && self.goodput_share() < 0.7, "less than 70 % of the unimpaired rate came through");
        faults
    }
}

/// A line that is good again has shown the truth after this, and a status has told so.
const CONVERGED_WITHIN: Duration = Duration::from_millis(2_500);

/// How a cell is played.
#[derive(Debug, Clone, Copy)]
struct Form {
    bots: usize,
    length: Duration,
    /// How long to play on when the line is good again and copies are right.
    after: Duration,
}

/// Plays on one network.
fn play(server: SocketAddr, cell: Cell, seed: u64, form: Form) -> Seen {
    let line = cell.impairment();
    let Form { bots, length, after } = form;
    let relay = Relay::start(LOOPBACK, server, seed, line, line).expect("sockets are left");
    let pairs = std::thread::spawn(move || {
        let mut pairs = [Pair::new(seed, line), Pair::new(seed, cell.unimpaired())];
        Pair::talk(&mut pairs, length);
        pairs.map(Pair::finish)
    });
    let crowd = Crowd::start_as(server, Some(relay.address()), 1_000 * (seed + 1), bots);
    std::thread::sleep(length);
    // Good-byes get through, and slots are free for who comes next.
    let good = cell.unimpaired();
    relay.impair(good, good);
    if !after.is_zero() {
        std::thread::sleep(CONVERGED_WITHIN);
    }
    let errors_before = crowd.last().state_errors;
    std::thread::sleep(after);
    let mut saw = crowd.finish();
    std::thread::sleep(Duration::from_secs(1));
    let [said, said_unimpaired] = pairs.join().expect("both ends are of this test");
    assert_eq!(relay.counts().refused, 0, "the relay itself lost some: {:?}", relay.counts());
    Seen {
        cell,
        disconnects: saw.disconnects + saw.connect_failures,
        state_checks: saw.state_checks,
        state_errors: saw.state_errors,
        state_errors_after: if after.is_zero() { 0 } else { saw.state_errors - errors_before },
        state_error: saw.state_error_examples.pop(),
        protocol_errors: saw.protocol_errors,
        said,
        said_unimpaired,
    }
}

/// Plays on all of them at once, with the seeds from `seed_first` on.
fn play_all(server: SocketAddr, cells: &[Cell], seed_first: u64, form: Form) -> Vec<Seen> {
    std::thread::scope(|scope| {
        let players: Vec<_> = (seed_first..)
            .zip(cells)
            .map(|(seed, &cell)| scope.spawn(move || play(server, cell, seed, form)))
            .collect();
        players.into_iter().map(|player| player.join().expect("a cell is played to its end")).collect()
    })
}

fn check(seen: &[Seen]) {
    for cell in seen {
        println!(
            "loss {:>2.0} %  rtt {:>3} ms  {:<5?}  {:>6} checks, {} errors, {} disconnects; \
             {:>6} reliable, {} missing, {} out of order; goodput {:.0} %",
            cell.cell.loss * 100.0,
            cell.cell.rtt_ms,
            cell.cell.disorder,
            cell.state_checks,
            cell.state_errors,
            cell.disconnects,
            cell.said.messages,
            cell.said.missing,
            cell.said.disorders,
            cell.goodput_share() * 100.0,
        );
    }
    let faults: Vec<_> = seen.iter().filter(|cell| !cell.faults().is_empty()).map(|it| (it, it.faults())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn bad_networks_lose_nobody_and_nothing() {
    let _alone = alone();
    let server = Server::start(&["--players", "24", "--npcs", "96"]);
    let cell = |loss, rtt_ms, disorder| Cell { loss, rtt_ms, disorder, blackout_every_s: 4 };
    let cells = [
        cell(0.05, 50, Disorder::Calm),
        cell(0.05, 150, Disorder::Rough),
        cell(0.2, 100, Disorder::Wild),
        cell(0.0, 400, Disorder::Wild),
    ];
    let form = Form { bots: 4, length: Duration::from_secs(4), after: Duration::from_secs(2) };
    check(&play_all(server.address, &cells, 1, form));
    assert!(server.stop().status.success());
}

/// The negative control: silence longer than a connection bears, and what is said unreliably on a line that loses.
#[test]
fn a_network_that_loses_players_and_words_is_noticed() {
    let mut pair = [Pair::new(1, Impairment { loss: 0.2, ..Impairment::default() })];
    pair[0].trust_the_network();
    Pair::talk(&mut pair, Duration::from_millis(500));
    let [said] = pair.map(Pair::finish);
    assert!(said.missing > 0, "{said:?}");

    let mut pair =
        [Pair::new(2, Impairment { duplication: 0.2, jitter: Nanos::from_millis(30), ..Impairment::default() })];
    pair[0].trust_the_network();
    Pair::talk(&mut pair, Duration::from_millis(500));
    let [said] = pair.map(Pair::finish);
    assert!(said.disorders > 0, "{said:?}");
}

/// All 36, each a minute, six beside each other.
#[test]
#[ignore = "full form: takes 8 min, and wants root for namespaces"]
fn r08_thirty_six_networks_between_namespaces() {
    let _alone = alone();
    let cells = Cell::thirty_six();
    let form = Form { bots: 8, length: Duration::from_secs(60), after: Duration::from_secs(3) };
    let seen = across_namespaces(|server| {
        (1..)
            .step_by(6)
            .zip(cells.chunks(6))
            .flat_map(|(seed, cells)| play_all(server, cells, seed, form))
            .collect::<Vec<_>>()
    });
    assert_eq!(seen.len(), 36);
    check(&seen);
}

/// Runs `test` in a network namespace of its own against a server in another; both end with it. Where that is not
/// permitted and the tests are to go without, both are where this process is.
fn across_namespaces<T: Send>(test: impl FnOnce(SocketAddr) -> T + Send) -> T {
    const SERVER_IP: &str = "10.99.0.1";
    const PLAYERS_IP: &str = "10.99.0.2";
    const SIZE: [&str; 4] = ["--players", "64", "--npcs", "256"];
    let start = |ip: &str| {
        let address = format!("{ip}:0");
        let mut command = throng(&["serve", "--address", &address, "--admin-address", "127.0.0.1:0"]);
        command.args(SIZE).env("THRONG_PRIVATE_KEY", KEY);
        Server::start_command(command)
    };
    // Namespaces belong to threads, and to what threads start: these two leave the others of this process alone.
    let players = || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            not_permitted(&format!("network namespaces, which take CAP_SYS_ADMIN: {error}; on loopback instead"));
            let server = start("127.0.0.1");
            let result = test(server.address);
            assert!(server.stop().status.success());
            return result;
        }
        ip("link set lo up");
        let players_thread = gettid();
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let host = scope.spawn(move || {
                unshare(CloneFlags::CLONE_NEWNET).expect("it worked a moment ago");
                ip("link set lo up");
                ip(&format!("link add server type veth peer name players netns {players_thread}"));
                ip(&format!("address add {SERVER_IP}/24 dev server"));
                ip("link set server up");
                let server = start(SERVER_IP);
                tell.send(server.address).expect("the test waits for it");
                // Until the other end is dropped.
                let _ = ended.recv();
                assert!(server.stop().status.success());
            });
            let server = told.recv().expect("a server starts");
            ip(&format!("address add {PLAYERS_IP}/24 dev players"));
            ip("link set players up");
            std::thread::sleep(Duration::from_secs(1));
            let begin = Instant::now();
            let result = test(server);
            println!("between namespaces, {:.0} s", begin.elapsed().as_secs_f64());
            drop(end);
            host.join().expect("a server ends");
            result
        })
    };
    std::thread::scope(|scope| scope.spawn(players).join().expect("its own assertions say why"))
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().expect("iproute2 is installed");
    assert!(status.success(), "ip {words}");
}
