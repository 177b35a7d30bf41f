//! Promise: who has proven itself waits in line, in order of arrival, for as long as it speaks; the rate is kept,
//! places are told to those who ask and to nobody else, and waiting costs neither the handshake nor the token.

use std::net::SocketAddr;

use throng_net::protocol::{
    ClientId, DenialReason, DropReason, HandshakeFailure, HandshakeState, QueueState, Reply, ServerHandshake,
    ServerHandshakeOutcome, ServerHandshakeSettings,
};
use throng_platform::time::Nanos;

use crate::scene::*;

const FRAME: Nanos = Nanos::from_millis(50);

/// A server with a line, and clients who come to it on a perfect path.
struct Storm {
    server_handshake: ServerHandshake,
    now: Nanos,
    reply: Reply,
    walkers: Vec<Walker>,
    proven: Vec<SocketAddr>,
    admitted: Vec<(Nanos, SocketAddr)>,
}

impl Storm {
    fn new(settings: ServerHandshakeSettings, clients: u64, cookie_first: bool) -> Self {
        let now = Nanos::from_secs(1);
        let walker = |n| Walker::new(token(n, n), client_address(n), cookie_first, now, n);
        Self {
            server_handshake: server_handshake(settings, 1),
            now,
            reply: Reply::new(),
            walkers: (0..clients).map(walker).collect(),
            proven: Vec::new(),
            admitted: Vec::new(),
        }
    }

    /// Everybody says what is due; then the line moves.
    fn frame(&mut self) {
        self.now += FRAME;
        self.server_handshake.begin_frame(self.now, UNIX_S);
        for walker in &mut self.walkers {
            let Some(mut datagram) = walker.says(self.now) else { continue };
            if let ServerHandshakeOutcome::Queued =
                self.server_handshake.handle(walker.address, &mut datagram, &mut self.reply)
            {
                self.proven.push(walker.address);
            }
            walker.hears(self.now, &self.reply);
        }
        while let Some(admitted) = self.server_handshake.admit_next(&mut self.reply) {
            self.admitted.push((self.now, admitted.address));
            let (now, mut said) = (self.now, self.reply.bytes().to_vec());
            self.walker(admitted.address).handshake.handle(now, &mut said);
        }
        self.server_handshake.check();
    }

    fn walker(&mut self, address: SocketAddr) -> &mut Walker {
        self.walkers.iter_mut().find(|walker| walker.address == address).expect("one of ours")
    }

    fn run(&mut self, frames: u64) {
        (0..frames).for_each(|_| self.frame());
    }
}

fn eight_a_frame(clients_max: usize) -> ServerHandshakeSettings {
    ServerHandshakeSettings {
        clients_max,
        admissions_per_frame_max: 8,
        proven_openings_per_frame_max: 64,
        ..settings()
    }
}

/// 3,200 clients at 8 in 50 ms take 20 s, twice what a handshake may take in silence.
#[test]
fn a_storm_comes_in_in_order_at_the_rate_that_is_set_and_nobody_times_out() {
    let mut storm = Storm::new(eight_a_frame(4_000), 3_200, true);
    storm.run(460);
    let order: Vec<SocketAddr> = storm.admitted.iter().map(|(_, address)| *address).collect();
    assert_eq!(order.len(), 3_200);
    assert_eq!(order, storm.proven, "in order of arrival");
    for frame in storm.admitted.chunk_by(|a, b| a.0 == b.0) {
        assert!(frame.len() <= 8, "{} in one frame", frame.len());
    }
    assert!(storm.walkers.iter().all(|walker| walker.handshake.state() == HandshakeState::Connected));
    let stats = storm.server_handshake.stats();
    assert_eq!((stats.queued, stats.admitted, stats.queue_silent), (3_200, 3_200, 0));
    assert!(stats.queue_wait_max > Nanos::from_secs(10), "{:?}", stats.queue_wait_max);
}

/// The negative control of the above: a line with room for one is none.
#[test]
fn without_a_line_most_of_a_storm_is_sent_away() {
    let mut storm = Storm::new(ServerHandshakeSettings { queue_max: 1, ..eight_a_frame(4_000) }, 100, true);
    storm.run(100);
    let denied = HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::QueueFull));
    let denied_count = storm.walkers.iter().filter(|walker| walker.handshake.state() == denied).count();
    assert!(denied_count > 80, "{denied_count}");
    assert_eq!(denied_count as u64, storm.server_handshake.stats().denied_queue_full);
    assert_eq!(denied_count + storm.admitted.len(), 100, "nobody is left without an answer");
}

#[test]
fn each_is_told_its_place_and_moves_up() {
    let mut storm = Storm::new(ServerHandshakeSettings { admissions_per_frame_max: 1, ..eight_a_frame(64) }, 40, true);
    let mut last = vec![u32::MAX; 40];
    for _ in 0..60 {
        storm.frame();
        for (walker, last) in storm.walkers.iter().zip(&mut last) {
            match walker.handshake.queue() {
                Some(QueueState::InLine { place, length }) => {
                    assert!(place <= *last && place <= length && length <= 40, "{place} of {length} after {last}");
                    *last = place;
                }
                Some(QueueState::WorldBeingMade) => panic!("nobody makes worlds here"),
                None => {}
            }
        }
    }
    assert_eq!(storm.admitted.len(), 40);
    assert!(last.iter().filter(|&&place| place <= 40).count() >= 30, "those who waited were told: {last:?}");
}

/// Clients of other netcode libraries wait in the same line, and are told what the standard knows: nothing.
#[test]
fn plain_clients_wait_in_order_too_and_are_told_nothing() {
    let mut storm = Storm::new(eight_a_frame(200), 100, false);
    storm.run(20);
    let order: Vec<SocketAddr> = storm.admitted.iter().map(|(_, address)| *address).collect();
    assert_eq!((order.len(), &order), (100, &storm.proven));
    assert_eq!(storm.server_handshake.stats().places_told, 0);
    assert!(storm.server_handshake.stats().dropped(DropReason::InLine) > 0, "some had to say it again");
}

/// Walks until the client stands in line, and no further.
fn stand_in_line(server_handshake: &mut ServerHandshake, walker: &mut Walker, now: Nanos) {
    let mut reply = Reply::new();
    while let Some(mut datagram) = walker.says(now) {
        if let ServerHandshakeOutcome::Queued = server_handshake.handle(walker.address, &mut datagram, &mut reply) {
            return;
        }
        walker.hears(now, &reply);
    }
    panic!("the server never took it: {:?}", server_handshake.stats());
}

fn millis(now: u64) -> Nanos {
    Nanos::from_millis(now)
}

#[test]
fn who_falls_silent_loses_its_place_and_who_speaks_keeps_it() {
    let mut server_handshake = server_handshake(settings(), 1);
    let mut walkers: Vec<Walker> =
        (0..3).map(|n| Walker::new(token(n, n), client_address(n), true, millis(1_000), n)).collect();
    for walker in &mut walkers {
        stand_in_line(&mut server_handshake, walker, millis(1_000));
    }
    let mut reply = Reply::new();
    for now in (1_050..60_000).step_by(50).map(millis) {
        server_handshake.begin_frame(now, UNIX_S);
        let speaks = &mut walkers[2];
        if let Some(mut datagram) = speaks.says(now) {
            server_handshake.handle(speaks.address, &mut datagram, &mut reply);
            assert!(!reply.is_empty(), "at {now:?}");
            speaks.hears(now, &reply);
        }
        server_handshake.check();
    }
    assert_eq!((server_handshake.queued_count(), server_handshake.stats().queue_silent), (1, 2));
    assert_eq!(walkers[2].handshake.queue(), Some(QueueState::InLine { place: 1, length: 1 }));
    // It has waited for twice as long as its token lives.
    let admitted = server_handshake.admit_next(&mut reply).expect("its turn");
    assert_eq!(admitted.client_id, ClientId(2));
    walkers[2].hears(millis(60_000), &reply);
    assert_eq!(walkers[2].handshake.state(), HandshakeState::Connected);
}

#[test]
fn a_waiting_clients_token_is_its_own_and_makes_one_session() {
    let mut server_handshake = server_handshake(settings(), 1);
    let now = millis(1_000);
    let mut walker = Walker::new(token(1, 1), client_address(1), true, now, 1);
    stand_in_line(&mut server_handshake, &mut walker, now);
    let mut reply = Reply::new();
    let elsewhere = server_handshake.handle(client_address(9), &mut plain_request(&token(1, 1)), &mut reply);
    assert!(matches!(elsewhere, ServerHandshakeOutcome::Nothing(DropReason::TokenUsed)), "{elsewhere:?}");
    assert_eq!(server_handshake.used_token_count(), 0, "not spent before it is in");
    let admitted = server_handshake.admit_next(&mut reply).expect("its turn");
    assert_eq!(server_handshake.used_token_count(), 1);
    server_handshake.disconnected(admitted.address);
    for from in [client_address(1), client_address(9)] {
        let again = server_handshake.handle(from, &mut plain_request(&token(1, 1)), &mut reply);
        assert!(matches!(again, ServerHandshakeOutcome::Nothing(DropReason::TokenUsed)), "{again:?}");
    }
}

/// Its answers were lost, it starts over, with the same token or a fresh one, here or elsewhere: its place is kept.
#[test]
fn who_comes_again_keeps_its_place() {
    let now = millis(1_000);
    for (again, from) in [(token(1, 1), 1), (token(1, 21), 1), (token(1, 21), 21)] {
        let mut server_handshake = server_handshake(settings(), 1);
        for n in 0..3 {
            stand_in_line(&mut server_handshake, &mut Walker::new(token(n, n), client_address(n), true, now, n), now);
        }
        let mut walker = Walker::new(again, client_address(from), true, now, 99);
        let mut reply = Reply::new();
        for step in 0..4 {
            if walker.handshake.queue().is_some() {
                break;
            }
            let at = now + Nanos::from_millis(300 * step);
            server_handshake.handle(walker.address, &mut walker.says(at).expect("a step is due"), &mut reply);
            walker.hears(at, &reply);
            server_handshake.check();
        }
        assert_eq!(walker.handshake.queue(), Some(QueueState::InLine { place: 2, length: 3 }));
        let order: Vec<u64> =
            std::iter::from_fn(|| server_handshake.admit_next(&mut reply)).map(|it| it.client_id.0).collect();
        assert_eq!(order, [0, 1, 2]);
    }
}

#[test]
fn copies_of_a_response_prove_nothing() {
    let mut server_handshake = server_handshake(settings(), 1);
    let now = millis(1_000);
    let mut walker = Walker::new(token(1, 1), client_address(1), true, now, 1);
    stand_in_line(&mut server_handshake, &mut walker, now);
    let mut reply = Reply::new();
    let response = walker.says(now + Nanos::from_millis(300)).expect("due again");
    assert!(matches!(
        server_handshake.handle(walker.address, &mut response.clone(), &mut reply),
        ServerHandshakeOutcome::Replied
    ));
    for at in (1_000..8_000).step_by(100) {
        server_handshake.begin_frame(millis(at), UNIX_S);
        server_handshake.handle(walker.address, &mut response.clone(), &mut reply);
        assert!(reply.is_empty());
    }
    assert_eq!(server_handshake.queued_count(), 0, "silent, whoever repeats its packets");
}

/// Who repeats a request too has the server challenge the client again; that makes nothing new of its old responses.
#[test]
fn copies_of_a_request_and_a_response_prove_nothing() {
    let mut server_handshake = server_handshake(settings(), 1);
    let now = millis(1_000);
    let mut walker = Walker::new(token(1, 1), client_address(1), true, now, 1);
    stand_in_line(&mut server_handshake, &mut walker, now);
    let response = walker.says(now + Nanos::from_millis(300)).expect("due again");
    let mut reply = Reply::new();
    for at in (1_000..8_000).step_by(100) {
        server_handshake.begin_frame(millis(at), UNIX_S);
        server_handshake.handle(walker.address, &mut plain_request(&token(1, 1)), &mut reply);
        server_handshake.handle(walker.address, &mut response.clone(), &mut reply);
    }
    assert_eq!(server_handshake.stats().queue_silent, 1, "its place is lost");
    assert_eq!(server_handshake.queued_count(), 0, "and it does not come in again");
}

/// Nor do copies from before it started over, whose sequences were others.
#[test]
fn copies_from_before_a_client_started_over_say_nothing_of_it() {
    let now = millis(1_000);
    for (seed_before, seed) in [(1, 99), (99, 1)] {
        let mut server_handshake = server_handshake(settings(), 1);
        let mut before = Walker::new(token(1, 1), client_address(1), true, now, seed_before);
        stand_in_line(&mut server_handshake, &mut before, now);
        let mut copy = before.says(now + Nanos::from_millis(300)).expect("due again");
        let mut walker = Walker::new(token(1, 1), client_address(1), true, now, seed);
        let mut reply = Reply::new();
        for step in 0..3 {
            let at = now + Nanos::from_millis(300 * step);
            server_handshake.handle(walker.address, &mut walker.says(at).expect("a step is due"), &mut reply);
            walker.hears(at, &reply);
        }
        assert_eq!(walker.handshake.queue(), Some(QueueState::InLine { place: 1, length: 1 }));
        let outcome = server_handshake.handle(walker.address, &mut copy, &mut reply);
        assert!(matches!(outcome, ServerHandshakeOutcome::Nothing(DropReason::ResponseReplayed)), "{outcome:?}");
        let admitted = server_handshake.admit_next(&mut reply).expect("its turn");
        walker.hears(now, &reply);
        let mut out = [0; 1400];
        let len = walker.handshake.into_link().seal_keep_alive(&mut out, now);
        assert!(admitted.link.sequence_mark().is_plausible(&out[..len]), "its packets are known as its own");
    }
}

#[test]
fn a_called_client_waits_for_its_world_and_is_let_in_or_told_why_not() {
    let now = millis(1_000);
    for refusal in [None, Some(DenialReason::RefusedByGame), Some(DenialReason::WorldNotReady)] {
        let mut server_handshake = server_handshake(settings(), 1);
        let mut walker = Walker::new(token(1, 1), client_address(1), true, now, 1);
        stand_in_line(&mut server_handshake, &mut walker, now);
        let called = server_handshake.call_next().expect("its turn");
        assert_eq!((called.client_id, called.user_data, called.address), (ClientId(1), [1; 256], walker.address));
        assert!(server_handshake.call_next().is_none());
        let mut reply = Reply::new();
        let at = now + Nanos::from_millis(300);
        server_handshake.handle(walker.address, &mut walker.says(at).expect("due again"), &mut reply);
        walker.hears(at, &reply);
        assert_eq!(walker.handshake.queue(), Some(QueueState::WorldBeingMade));
        match refusal {
            None => assert!(server_handshake.admit(walker.address, &mut reply).is_some()),
            Some(reason) => server_handshake.refuse(walker.address, reason, &mut reply),
        }
        walker.hears(at, &reply);
        let expect = refusal
            .map_or(HandshakeState::Connected, |reason| HandshakeState::Failed(HandshakeFailure::Denied(reason)));
        assert_eq!(walker.handshake.state(), expect);
        assert_eq!(
            (server_handshake.queued_count(), server_handshake.used_token_count()),
            (0, usize::from(refusal.is_none()))
        );
        assert!(server_handshake.admit(walker.address, &mut reply).is_none() && reply.is_empty(), "it waits no more");
    }
}

/// Whoever stands in line has a slot: the last one is not given away to who comes later.
#[test]
fn slots_are_kept_for_those_in_line() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 2, ..settings() }, 1);
    let now = millis(1_000);
    for n in 0..2 {
        stand_in_line(&mut server_handshake, &mut Walker::new(token(n, n), client_address(n), true, now, n), now);
    }
    let mut third = Walker::new(token(3, 3), client_address(3), true, now, 3);
    assert!(third.walk(&mut server_handshake, now).is_none());
    let full = HandshakeFailure::Denied(DenialReason::ServerFull);
    assert_eq!(third.handshake.state(), HandshakeState::Failed(full));
    let mut reply = Reply::new();
    assert_eq!(std::iter::from_fn(|| server_handshake.admit_next(&mut reply)).count(), 2);
}

/// After a crash, or under a new address, a player comes back with a fresh token while the server still has its earlier
/// session: on a full server, too, since it is given the slot that it has.
#[test]
fn a_player_who_comes_back_is_called_with_its_earlier_session() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 2, ..settings() }, 1);
    let now = millis(1_000);
    for n in 1..=2 {
        connect(&mut server_handshake, token(n, n), client_address(n), n).expect("there is room");
    }
    let mut back = Walker::new(token(1, 11), client_address(11), true, now, 11);
    stand_in_line(&mut server_handshake, &mut back, now);
    let called = server_handshake.call_next().expect("its turn");
    assert_eq!((called.client_id, called.session), (ClientId(1), Some(client_address(1))));
    assert!(server_handshake.is_connected(ClientId(1)));

    assert_eq!(server_handshake.disconnected(client_address(1)), Some(ClientId(1)));
    server_handshake.check();
    let mut third = Walker::new(token(3, 3), client_address(3), true, now, 3);
    assert!(third.walk(&mut server_handshake, now).is_none(), "the slot is promised");
    let mut reply = Reply::new();
    assert!(server_handshake.admit(back.address, &mut reply).is_some());
    server_handshake.check();
    back.hears(now, &reply);
    assert_eq!(back.handshake.state(), HandshakeState::Connected);
    assert_eq!(server_handshake.connected_count(), 2);
}

/// A client with a fixed port that crashed comes back from where it is connected. Its session is its own to take over;
/// nobody else's token ends it, though that one can be heard at the same address.
#[test]
fn who_comes_back_to_its_own_address_takes_its_session_over_and_nobody_else_does() {
    let mut server_handshake = server_handshake(settings(), 1);
    let (now, home) = (millis(1_000), client_address(1));
    connect(&mut server_handshake, token(1, 1), home, 1).expect("there is room");
    let mut reply = Reply::new();
    for cookie_first in [false, true] {
        let mut stranger = Walker::new(token(2, 2), home, cookie_first, now, 2);
        assert!(stranger.walk(&mut server_handshake, now).is_none());
        assert_eq!(server_handshake.queued_count(), 0);
        let told = HandshakeFailure::Denied(DenialReason::AddressTaken);
        let expect = if cookie_first { HandshakeState::Failed(told) } else { HandshakeState::Connecting };
        assert_eq!(stranger.handshake.state(), expect);
    }
    assert_eq!(server_handshake.stats().dropped(DropReason::AddressConnected), 2);

    let mut back = Walker::new(token(1, 11), home, true, now, 11);
    stand_in_line(&mut server_handshake, &mut back, now);
    let called = server_handshake.call_next().expect("its turn");
    assert_eq!((called.client_id, called.address, called.session), (ClientId(1), home, Some(home)));
    assert!(server_handshake.is_called(home, ClientId(1)) && !server_handshake.is_called(home, ClientId(2)));
    assert_eq!(server_handshake.disconnected(home), Some(ClientId(1)));
    assert!(server_handshake.admit(home, &mut reply).is_some());
    server_handshake.check();
    back.hears(now, &reply);
    assert_eq!((back.handshake.state(), server_handshake.connected_count()), (HandshakeState::Connected, 1));
}

/// Of two that were challenged at one address, the one that came in first has it.
#[test]
fn a_response_from_an_address_that_another_has_by_now_is_dropped() {
    let mut server_handshake = server_handshake(settings(), 1);
    let (now, home) = (millis(1_000), client_address(1));
    let mut reply = Reply::new();
    stand_in_line(&mut server_handshake, &mut Walker::new(token(1, 1), home, true, now, 1), now);
    let mut late = Walker::new(token(2, 2), home, false, now, 2);
    server_handshake.handle(home, &mut late.says(now).expect("due at once"), &mut reply);
    late.hears(now, &reply);
    assert!(server_handshake.admit_next(&mut reply).is_some());
    let outcome = server_handshake.handle(home, &mut late.says(now).expect("due at once"), &mut reply);
    assert!(matches!(outcome, ServerHandshakeOutcome::Nothing(DropReason::AddressConnected)), "{outcome:?}");
    server_handshake.check();
}
