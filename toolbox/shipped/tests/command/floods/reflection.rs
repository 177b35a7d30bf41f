//! Reflection: before an address is proven it is sent no more bytes than it sent, at every moment of the exchange.

use std::{
    net::{SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::protocol::{ClientHandshake, ClientHandshakeSettings, ConnectToken};
use throng_platform::{
    clock::{Clock, MonotonicClock},
    random,
};

use super::{LISTEN_EVERY, SIZE, STRANGER_ID_FIRST, start_with, what_is_genuine};
use crate::{
    abuse::{Mutations, refused},
    address::token,
    child::{Server, alone},
    figures::{at_rate, both},
    half_open::{HalfOpen, Ledger},
    strangers::Forger,
};

/// Mutated datagrams of `sources_count` strangers, and among them handshakes that go as far as the challenge.
fn strangers_ask(server: SocketAddr, genuine: Vec<Vec<u8>>, count: u64, per_s: u64, sources_count: usize) -> Ledger {
    const HANDSHAKE_EVERY: u64 = 50;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut mutations = Mutations { rng: Xoshiro256PlusPlus::seed_from_u64(4), genuine };
    let mut strangers = HalfOpen::new(server, true);
    let mut datagram = Vec::new();
    at_rate(count, per_s, |number| {
        if number % HANDSHAKE_EVERY == 0 {
            let source = sources_count + (number / HANDSHAKE_EVERY) as usize;
            strangers.begin(source, token(server, STRANGER_ID_FIRST + number));
        } else {
            mutations.fill(&mut datagram);
            strangers.send(rng.random_range(0..sources_count), &datagram);
        }
        if number % LISTEN_EVERY == 0 {
            strangers.listen();
        }
    });
    strangers.listen_on(500);
    let ledger = strangers.ledger;
    println!(
        "{count} datagrams of {} sources, {} bytes; {} answers, {} bytes; {} handshakes to the challenge; \
         at worst {:.3} B back for each sent",
        ledger.sources(),
        ledger.sent_bytes,
        ledger.answers,
        ledger.heard_bytes,
        strangers.challenged,
        ledger.worst,
    );
    assert!(strangers.challenged * HANDSHAKE_EVERY * 10 >= count * 9, "{} got a challenge", strangers.challenged);
    ledger
}

fn nobody_is_answered_with_more_than_was_asked(count: u64, per_s: u64, sources_count: usize) {
    let _alone = alone();
    let mut genuine = None;
    for (name, plain) in [("reflection", false), ("reflection-plain", true)] {
        let settings = format!("[server]\nplain_netcode = {plain}\nopenings_per_frame_max = 1000\n");
        let mut server = start_with(name, &settings, &SIZE);
        let mut genuine = genuine.get_or_insert_with(|| what_is_genuine(server.address)).clone();
        genuine.extend((0..8).map(|number| plain_request(token(server.address, STRANGER_ID_FIRST + number))));
        let ledger = strangers_ask(server.address, genuine, count, per_s, sources_count);
        assert!(server.is_running());
        assert!(ledger.answers * 50 >= count, "hardly anything was answered: {} of {count}", ledger.answers);
        assert!(ledger.worst <= 1.0, "{} times as much to source {}", ledger.worst, ledger.worst_source);
        assert!(server.stop().status.success());
    }
}

#[test]
fn strangers_get_no_more_bytes_than_they_send() {
    nobody_is_answered_with_more_than_was_asked(20_000, 20_000, 10_000);
}

#[test]
#[ignore = "full form: takes a minute, and wants a release build"]
fn r03_a_million_datagrams_of_ten_thousand_sources() {
    nobody_is_answered_with_more_than_was_asked(1_000_000, 50_000, 10_000);
}

/// The negative control: a server that answers each hello with two cookies.
#[test]
fn a_server_that_amplifies_is_noticed() {
    const COOKIE_BYTES: usize = 25;
    let server = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    server.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket of ours");
    let address = server.local_addr().expect("it has one");
    let over = AtomicBool::new(false);
    let amplify = || {
        let mut datagram = [0; 2_048];
        while !over.load(Ordering::Relaxed) {
            let Ok((len, from)) = server.recv_from(&mut datagram) else { continue };
            let answer = if len > COOKIE_BYTES { &datagram[..COOKIE_BYTES] } else { &datagram };
            let _ = server.send_to(answer, from);
        }
    };
    let (_, worst) = both(amplify, || {
        let mut strangers = HalfOpen::new(address, true);
        strangers.send(1, &[7; 1_102]);
        strangers.listen_on(50);
        let fine = strangers.ledger.worst;
        strangers.send(2, &[7; 20]);
        strangers.listen_on(50);
        over.store(true, Ordering::Relaxed);
        (fine, strangers.ledger.worst)
    });
    assert!(worst.0 < 0.03 && worst.1 > 100.0, "{worst:?}");
}

/// A source that is the server's own address, and a port that nobody can have.
#[test]
fn a_server_that_is_told_it_wrote_to_itself_does_not_answer_for_ever() {
    let _alone = alone();
    let Some(mut forger) = Forger::open() else { return };
    let mut server = Server::start(&SIZE);
    let genuine = what_is_genuine(server.address);
    let nobody = SocketAddr::from(([127, 0, 0, 9], 0));
    let mut sent = 0;
    for _ in 0..50 {
        for datagram in &genuine {
            sent += u64::from(forger.send(server.address, server.address, datagram));
            sent += u64::from(forger.send(nobody, server.address, datagram));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(500));
    assert!(server.is_running());
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    let refused = refused(&ended, "gate");
    println!("{sent} of itself and of nobody, {refused} refused");
    // What is answered comes back to it as a cookie, which nothing answers.
    assert!((sent / 4..=sent + sent / 4).contains(&refused), "{refused} refused of {sent}");
}

/// The request of a client that does not prove its address first.
fn plain_request(token: ConnectToken) -> Vec<u8> {
    let clock = MonotonicClock::new();
    let settings = ClientHandshakeSettings { cookie_first: false };
    let mut handshake = ClientHandshake::new(token, settings, clock.now(), random::seed());
    let mut datagram = [0; 1_400];
    let (_, len) = handshake.poll(clock.now(), clock.unix_seconds(), &mut datagram).expect("the first is due at once");
    datagram[..len].to_vec()
}
