//! Promise: slots are taken only after authentication; half-open handshakes are bounded, live 5 s, and push
//! out only the oldest; honest clients come in meanwhile.

use std::collections::VecDeque;
use std::net::SocketAddr;

use throng_net::protocol::{HandshakeState, Reply, ServerHandshake, ServerHandshakeSettings};
use throng_platform::time::Nanos;

use crate::scene::*;

const FRAME: Nanos = Nanos::from_micros(16_667);

#[test]
fn half_open_handshakes_are_bounded_and_end_after_five_seconds() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 10, ..settings() }, 1);
    let mut reply = Reply::new();
    for n in 0..100 {
        server_handshake.handle(client_address(n), &mut plain_request(&token(n, n)), &mut reply);
        assert!(!reply.is_empty());
        assert!(server_handshake.pending_count() <= 40);
    }
    assert_eq!(
        (server_handshake.pending_count(), server_handshake.connected_count()),
        (40, 0),
        "nobody has a slot yet"
    );
    assert_eq!(server_handshake.stats().pending_evicted, 60);
    server_handshake.begin_frame(Nanos::from_millis(5_999), UNIX_S);
    assert_eq!(server_handshake.pending_count(), 40);
    server_handshake.begin_frame(Nanos::from_millis(6_000), UNIX_S);
    assert_eq!((server_handshake.pending_count(), server_handshake.stats().pending_expired), (0, 40));
}

/// Repeating a request does not make a handshake younger, nor does it take a second place.
#[test]
fn a_repeated_request_keeps_its_place() {
    let mut server_handshake = server_handshake(settings(), 1);
    let mut reply = Reply::new();
    for millis in (1_000..6_000).step_by(200) {
        server_handshake.begin_frame(Nanos::from_millis(millis), UNIX_S);
        server_handshake.handle(client_address(0), &mut plain_request(&token(1, 1)), &mut reply);
        assert_eq!(server_handshake.pending_count(), 1);
    }
    server_handshake.begin_frame(Nanos::from_millis(6_000), UNIX_S);
    assert_eq!(server_handshake.pending_count(), 0);
}

#[test]
fn what_is_over_the_frames_budget_waits_for_the_next_frame() {
    let budgets = ServerHandshakeSettings { openings_per_frame_max: 3, cookies_per_frame_max: 5, ..settings() };
    let mut server_handshake = server_handshake(budgets, 1);
    let mut reply = Reply::new();
    let mut answered = |server_handshake: &mut ServerHandshake, cookie_first: bool| {
        let now = Nanos::from_secs(1);
        (0..20)
            .filter(|&n| {
                let mut walker = Walker::new(token(n, n), client_address(n), cookie_first, now, n);
                server_handshake.handle(walker.address, &mut walker.says(now).unwrap(), &mut reply);
                !reply.is_empty()
            })
            .count()
    };
    assert_eq!((answered(&mut server_handshake, false), answered(&mut server_handshake, true)), (3, 5));
    server_handshake.begin_frame(Nanos::from_secs(1), UNIX_S);
    assert_eq!((answered(&mut server_handshake, false), answered(&mut server_handshake, true)), (3, 5));
}

/// 1,667 half-open handshakes a second, each with a good token of its own, and honest clients 100 ms away.
fn check_a_crowd(seconds: u64, half_open_per_frame: u64, honest_count: usize) {
    let mut server_handshake =
        ServerHandshake::new(ServerHandshakeSettings { clients_max: 600, ..settings() }, wide_seed(1));
    let mut reply = Reply::new();
    let frames = seconds * 60;
    let mut honest: Vec<(Walker, Option<Nanos>, Nanos)> = Vec::new();
    let mut on_the_way: VecDeque<(Nanos, usize, Vec<u8>)> = VecDeque::new();
    let mut half_open = 1_000_000;
    for frame in 0..frames + 120 {
        let now = Nanos(FRAME.0 * frame);
        server_handshake.begin_frame(now, UNIX_S);
        for _ in 0..half_open_per_frame {
            half_open += 1;
            server_handshake.handle(
                client_address(half_open),
                &mut plain_request(&token(half_open, half_open)),
                &mut reply,
            );
        }
        if frame < frames && honest.len() as u64 * frames < honest_count as u64 * frame {
            let n = honest.len() as u64;
            honest.push((Walker::new(token(n, n), client_address(n), true, now, n), None, now));
        }
        for (n, (walker, _, _)) in honest.iter_mut().enumerate() {
            if let Some(datagram) = walker.says(now) {
                on_the_way.push_back((now + Nanos::from_millis(100), n, datagram));
            }
        }
        // The whole round trip is on the way there; the answer comes at once.
        while on_the_way.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, n, mut datagram) = on_the_way.pop_front().unwrap();
            let (walker, connected, _) = &mut honest[n];
            if server_handshake.handle_and_admit(walker.address, &mut datagram, &mut reply).is_some() {
                *connected = Some(now);
            }
            if !reply.is_empty() {
                walker.hears(now, &reply);
            }
        }
        assert!(server_handshake.pending_count() <= 4 * 600);
    }
    let in_time = honest
        .iter()
        .filter(|(walker, connected, begun)| {
            let quick = connected.is_some_and(|at| at.saturating_sub(*begun) < Nanos::from_secs(2));
            quick && walker.handshake.state() == HandshakeState::Connected
        })
        .count();
    assert!(honest.len() >= honest_count - 1);
    assert!(in_time * 1_000 >= honest.len() * 999, "{in_time} of {} in under 2 s", honest.len());
    assert_eq!(server_handshake.connected_count(), honest.len());
}

#[test]
fn honest_clients_come_in_through_a_crowd_of_half_open_handshakes() {
    check_a_crowd(10, 28, 83);
}

#[test]
#[ignore = "the full size: 100,000 half-open and 500 honest in 60 s"]
fn r09_five_hundred_honest_clients_come_in_through_a_hundred_thousand() {
    check_a_crowd(60, 28, 500);
}

/// A path that loses a third of everything, both ways.
#[test]
fn the_handshake_gets_through_loss() {
    let mut server_handshake = ServerHandshake::new(settings(), wide_seed(1));
    let mut reply = Reply::new();
    let lost = |n: u64, step: u64| (n * 7 + step * 13 + n * step).is_multiple_of(3);
    for n in 0..50u64 {
        let from: SocketAddr = client_address(n);
        let begun = n * 10_000;
        let mut walker = Walker::new(token(n, n), from, n % 2 == 0, Nanos::from_millis(begun), n);
        let mut link = None;
        for step in 0..180 {
            let now = Nanos::from_millis(begun + step * 50);
            server_handshake.begin_frame(now, UNIX_S);
            let Some(mut datagram) = walker.says(now) else {
                continue;
            };
            if lost(n, step) {
                continue;
            }
            // Once admitted, the address belongs to its link, which answers with keep-alives.
            match &mut link {
                None => {
                    if let Some(admitted) = server_handshake.handle_and_admit(from, &mut datagram, &mut reply) {
                        link = Some(admitted.link);
                    }
                    if !reply.is_empty() && !lost(n, step + 1) {
                        walker.hears(now, &reply);
                    }
                }
                Some(link) => {
                    assert!(link.open(&mut datagram, now).is_err(), "a repeated response is no traffic");
                    let mut out = [0; 1400];
                    let len = link.seal_keep_alive(&mut out, now);
                    walker.handshake.handle(now, &mut out[..len]);
                }
            }
        }
        assert_eq!(walker.handshake.state(), HandshakeState::Connected, "client {n}");
        assert_eq!(server_handshake.disconnected(from), Some(throng_net::protocol::ClientId(n)));
    }
}
