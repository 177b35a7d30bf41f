//! Promise: a forged, expired, stolen or reused token never gets in; one token is one address is one
//! session, also after a restart.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::protocol::{
    ClientId, DenialReason, DropReason, HandshakeFailure, HandshakeState, JournalError, PrivateKey, ProtocolId,
    Recorded, Reply, ServerHandshake, ServerHandshakeOutcome, ServerHandshakeSettings, TokenJournal, TokenRequest,
    UsedToken,
};
use throng_platform::time::Nanos;

use crate::scene::*;

const NOW: Nanos = Nanos::from_secs(1);

fn refusal(server_handshake: &mut ServerHandshake, from: SocketAddr, datagram: &[u8]) -> Option<DropReason> {
    let mut reply = Reply::new();
    match server_handshake.handle(from, &mut datagram.to_vec(), &mut reply) {
        ServerHandshakeOutcome::Nothing(reason) => {
            assert!(reply.is_empty(), "what is dropped is not answered");
            Some(reason)
        }
        _ => None,
    }
}

#[test]
fn r05_every_flipped_bit_of_a_plain_request_is_refused() {
    let mut server_handshake = server_handshake(settings(), 1);
    let request = plain_request(&token(1, 1));
    assert_eq!(request.len() * 8, 8_624);
    for bit in 0..request.len() * 8 {
        let mut flipped = request.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(refusal(&mut server_handshake, client_address(0), &flipped).is_some(), "bit {bit}");
    }
    assert_eq!(server_handshake.pending_count(), 0);
    assert_eq!(refusal(&mut server_handshake, client_address(0), &request), None, "unchanged it is good");
}

#[test]
fn r05_every_flipped_bit_of_a_request_with_a_cookie_is_refused() {
    let mut server_handshake =
        server_handshake(ServerHandshakeSettings { proven_openings_per_frame_max: 100_000, ..settings() }, 1);
    let mut walker = Walker::new(token(1, 1), client_address(0), true, NOW, 1);
    let mut reply = Reply::new();
    server_handshake.handle(client_address(0), &mut walker.says(NOW).unwrap(), &mut reply);
    walker.hears(NOW, &reply);
    let request = walker.says(NOW).unwrap();
    assert_eq!((reply.len(), request.len()), (25, 1_102));
    for bit in 0..request.len() * 8 {
        let mut flipped = request.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(refusal(&mut server_handshake, client_address(0), &flipped).is_some(), "bit {bit}");
    }
    assert_eq!(
        refusal(&mut server_handshake, client_address(1), &request),
        Some(DropReason::BadCookie),
        "another address"
    );
    assert_eq!(refusal(&mut server_handshake, client_address(0), &request), None, "unchanged it is good");
}

#[test]
fn a_token_of_another_key_protocol_or_server_is_refused() {
    fn check(change: impl FnOnce(&mut TokenRequest), key: PrivateKey, expect: DropReason) {
        let mut request = token_request(1);
        change(&mut request);
        let datagram = plain_request(&token_with(&request, &key, 1));
        assert_eq!(refusal(&mut server_handshake(settings(), 1), client_address(0), &datagram), Some(expect));
    }
    check(|_| {}, PrivateKey::new([1; 32]), DropReason::TokenForged);
    check(|request| request.protocol_id = ProtocolId(1), KEY, DropReason::OtherProtocol);
    check(|request| request.server_addresses = vec![client_address(9)], KEY, DropReason::OtherServer);
}

/// Without a reason each of these stays `Connecting` until its token's timeout.
#[test]
fn a_client_of_ours_is_told_at_once_what_is_wrong_with_its_token() {
    fn check(change: impl FnOnce(&mut TokenRequest), key: PrivateKey, expect: Option<DenialReason>) {
        let mut server_handshake = server_handshake(settings(), 1);
        // Who is connected elsewhere, and at the address that the client has.
        connect(&mut server_handshake, token(9, 9), client_address(9), 9).expect("there is room");
        let mut request = token_request(1);
        change(&mut request);
        let mut walker = Walker::new(token_with(&request, &key, 1), client_address(0), true, NOW, 1);
        assert!(walker.walk(&mut server_handshake, NOW).is_none());
        let state = expect
            .map_or(HandshakeState::Connecting, |reason| HandshakeState::Failed(HandshakeFailure::Denied(reason)));
        assert_eq!(walker.handshake.state(), state);
        assert_eq!(server_handshake.stats().denied_token, u64::from(expect.is_some()));
        assert_eq!((server_handshake.pending_count(), server_handshake.used_token_count()), (0, 1));
    }
    check(|request| request.protocol_id = ProtocolId(1), KEY, Some(DenialReason::OtherProtocol));
    check(|request| request.server_addresses = vec![client_address(9)], KEY, Some(DenialReason::OtherServer));
    let too_old = |request: &mut TokenRequest| {
        (request.created_unix_s, request.expires_unix_s) = (UNIX_S - 200, UNIX_S - 100);
    };
    check(too_old, KEY, Some(DenialReason::TokenExpired));
    // Nobody is told anything of a token that another key sealed.
    let other_key = PrivateKey::new([1; 32]);
    check(|_| {}, other_key.clone(), None);
    check(|request| request.protocol_id = ProtocolId(1), other_key.clone(), None);
    check(too_old, other_key, None);
}

#[test]
fn a_client_that_shows_its_token_twice_is_told_unless_it_is_connected_with_it() {
    let mut server_handshake = server_handshake(settings(), 1);
    let home = client_address(0);
    connect(&mut server_handshake, token(1, 1), home, 2).expect("the first showing is good");
    let show = |server_handshake: &mut ServerHandshake, from| {
        let mut walker = Walker::new(token(1, 1), from, true, NOW, 3);
        assert!(walker.walk(server_handshake, NOW).is_none());
        walker.handshake.state()
    };
    let used = HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::TokenUsed));
    assert_eq!(show(&mut server_handshake, client_address(1)), used);
    // A copy of its request, from its own address: what it provokes would reach the client itself.
    assert_eq!(show(&mut server_handshake, home), HandshakeState::Connecting);
    server_handshake.disconnected(home);
    assert_eq!(show(&mut server_handshake, home), used);
    assert_eq!(server_handshake.stats().dropped(DropReason::TokenUsed), 3);
}

#[test]
fn a_server_that_is_named_wrongly_does_not_keep_a_client_from_the_next_one_of_its_token() {
    let mut elsewhere = server_handshake(settings(), 1);
    let mut request = token_request(1);
    request.server_addresses = vec![client_address(8), client_address(9)];
    let mut walker = Walker::new(token_with(&request, &KEY, 1), client_address(0), true, NOW, 1);
    assert!(walker.walk(&mut elsewhere, NOW).is_none());
    assert_eq!(walker.handshake.state(), HandshakeState::Connecting);
}

#[test]
fn a_token_counts_until_its_expiry_and_the_clock_skew() {
    fn check(unix_s: u64, expect: Option<DropReason>) {
        let mut server_handshake = ServerHandshake::new(settings(), wide_seed(1));
        server_handshake.begin_frame(NOW, unix_s);
        let datagram = plain_request(&token(1, 1));
        assert_eq!(refusal(&mut server_handshake, client_address(0), &datagram), expect, "at {unix_s}");
    }
    let end = UNIX_S + TOKEN_LIFE_S + settings().clock_skew_s;
    check(UNIX_S - 3_600, None);
    check(end - 1, None);
    check(end, Some(DropReason::TokenExpired));
    check(u64::MAX, Some(DropReason::TokenExpired));
}

#[test]
fn without_the_setting_a_plain_request_is_dropped_unread() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { plain_netcode: false, ..settings() }, 1);
    let datagram = plain_request(&token(1, 1));
    assert_eq!(refusal(&mut server_handshake, client_address(0), &datagram), Some(DropReason::PlainNetcodeOff));
    assert!(connect(&mut server_handshake, token(1, 1), client_address(0), 2).is_some(), "with a cookie it is good");
}

#[test]
fn a_shown_token_is_no_use_to_another_address() {
    let mut server_handshake = server_handshake(settings(), 1);
    let datagram = plain_request(&token(1, 1));
    assert_eq!(refusal(&mut server_handshake, client_address(0), &datagram), None);
    assert_eq!(refusal(&mut server_handshake, client_address(1), &datagram), Some(DropReason::TokenUsed));
    assert_eq!(refusal(&mut server_handshake, client_address(0), &datagram), None, "its own address may ask again");
}

#[test]
fn a_token_makes_one_session() {
    let mut server_handshake = server_handshake(settings(), 1);
    let (token, home) = (token(1, 1), client_address(0));
    let datagram = plain_request(&token);
    let admitted = connect(&mut server_handshake, token.clone(), home, 1).expect("the first showing is good");
    assert_eq!(admitted.user_data, [1; 256]);
    assert_eq!(refusal(&mut server_handshake, home, &datagram), Some(DropReason::TokenUsed));
    assert_eq!(refusal(&mut server_handshake, client_address(1), &datagram), Some(DropReason::TokenUsed));
    server_handshake.disconnected(admitted.address);
    for from in [home, client_address(1)] {
        assert_eq!(
            refusal(&mut server_handshake, from, &datagram),
            Some(DropReason::TokenUsed),
            "after the session, {from}"
        );
    }
}

#[test]
fn a_second_client_of_the_same_id_and_a_client_too_many_are_denied() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 2, ..settings() }, 1);
    let first = connect(&mut server_handshake, token(1, 1), client_address(1), 1).unwrap();
    let denied = |server_handshake: &mut ServerHandshake, client: u64, seed: u64, reason: DenialReason| {
        let mut walker = Walker::new(token(client, seed), client_address(seed), true, NOW, seed);
        assert!(walker.walk(server_handshake, NOW).is_none());
        assert_eq!(walker.handshake.state(), HandshakeState::Failed(HandshakeFailure::Denied(reason)));
    };
    denied(&mut server_handshake, 1, 2, DenialReason::AlreadyConnected);
    assert_eq!(server_handshake.stats().denied_connected, 1);
    connect(&mut server_handshake, token(2, 3), client_address(3), 3).unwrap();
    denied(&mut server_handshake, 3, 4, DenialReason::ServerFull);
    assert_eq!(server_handshake.stats().denied_full, 1);
    assert_eq!(server_handshake.connected_count(), 2);

    server_handshake.disconnected(first.address);
    assert!(
        connect(&mut server_handshake, token(1, 5), client_address(5), 5).is_some(),
        "the slot and the id are free again"
    );
}

/// The last slot goes to whoever answers first, however many were challenged for it.
#[test]
fn of_two_challenged_for_the_last_slot_one_is_denied() {
    let mut server_handshake = server_handshake(ServerHandshakeSettings { clients_max: 1, ..settings() }, 1);
    let mut reply = Reply::new();
    let mut walkers: Vec<Walker> = (0..2).map(|n| Walker::new(token(n, n), client_address(n), false, NOW, n)).collect();
    for walker in &mut walkers {
        server_handshake.handle(walker.address, &mut walker.says(NOW).unwrap(), &mut reply);
        walker.hears(NOW, &reply);
    }
    let admitted: Vec<bool> =
        walkers.iter_mut().map(|walker| walker.walk(&mut server_handshake, NOW).is_some()).collect();
    assert_eq!(admitted, [true, false]);
    assert_eq!(walkers[1].handshake.state(), HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::Unsaid)));
}

/// A file, as far as the handshake can tell: it outlives the handshake.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<u8>>>);

impl TokenJournal for Journal {
    fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError> {
        self.0.lock().unwrap().extend_from_slice(&used.to_bytes());
        Ok(Recorded::Now)
    }
}

impl Journal {
    fn read(&self) -> Vec<UsedToken> {
        let bytes = self.0.lock().unwrap();
        let (records, _torn) = bytes.as_chunks::<{ UsedToken::BYTES }>();
        records.iter().filter_map(UsedToken::from_bytes).collect()
    }

    fn server_handshake(&self, seed: u64) -> ServerHandshake {
        opened(ServerHandshake::with_journal(settings(), wide_seed(seed), self.read(), Box::new(self.clone())))
    }
}

#[test]
fn r05_a_used_token_stays_used_after_a_restart_with_a_journal() {
    let journal = Journal::default();
    for run in 0..10 {
        let mut server_handshake = journal.server_handshake(run);
        for earlier in 0..run {
            for from in [client_address(earlier), client_address(1_000)] {
                let datagram = plain_request(&token(earlier, earlier));
                assert_eq!(
                    refusal(&mut server_handshake, from, &datagram),
                    Some(DropReason::TokenUsed),
                    "run {run}, {earlier}"
                );
            }
        }
        assert!(connect(&mut server_handshake, token(run, run), client_address(run), run).is_some());
        // The process dies in the middle of the next record.
        journal.0.lock().unwrap().truncate((run as usize + 1) * UsedToken::BYTES);
    }
}

#[test]
fn r05_a_used_token_stays_used_after_a_restart_without_a_journal_by_the_rule_of_expiry() {
    let mut first_run = server_handshake(settings(), 1);
    let used = plain_request(&token(1, 1));
    assert!(connect(&mut first_run, token(1, 1), client_address(0), 1).is_some());

    let started_unix_s = UNIX_S + 3;
    let rule = ServerHandshakeSettings { tokens_expire_from_unix_s: started_unix_s + TOKEN_LIFE_S, ..settings() };
    let mut second_run = ServerHandshake::new(rule, wide_seed(2));
    second_run.begin_frame(NOW, started_unix_s);
    assert_eq!(refusal(&mut second_run, client_address(0), &used), Some(DropReason::TokenExpired));
    let mut made_since = token_request(2);
    made_since.created_unix_s = started_unix_s;
    made_since.expires_unix_s = started_unix_s + TOKEN_LIFE_S;
    assert!(connect(&mut second_run, token_with(&made_since, &KEY, 2), client_address(0), 2).is_some());
}

#[test]
fn a_journal_that_cannot_write_admits_nobody() {
    struct FullDisk;
    impl TokenJournal for FullDisk {
        fn record(&mut self, _: &UsedToken) -> Result<Recorded, JournalError> {
            Err(JournalError)
        }
    }
    let mut server_handshake = opened(ServerHandshake::with_journal(settings(), wide_seed(1), [], Box::new(FullDisk)));
    let mut walker = Walker::new(token(1, 1), client_address(0), true, NOW, 1);
    assert!(walker.walk(&mut server_handshake, NOW).is_none());
    assert_eq!(walker.handshake.state(), HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::Unable)));
    assert_eq!((server_handshake.stats().denied_journal, server_handshake.connected_count()), (1, 0));
}

/// A disk that is slow: clients wait in line, and no frame for it.
#[test]
fn a_client_waits_for_a_slow_journal_and_for_nothing_else() {
    #[derive(Default)]
    struct Disk {
        asked: Vec<UsedToken>,
        done: Vec<(UsedToken, Result<(), JournalError>)>,
    }
    #[derive(Clone, Default)]
    struct SlowDisk(Arc<Mutex<Disk>>);
    impl TokenJournal for SlowDisk {
        fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError> {
            self.0.lock().unwrap().asked.push(*used);
            Ok(Recorded::Later)
        }

        fn next_done(&mut self) -> Option<(UsedToken, Result<(), JournalError>)> {
            self.0.lock().unwrap().done.pop()
        }
    }
    for result in [Ok(()), Err(JournalError)] {
        let disk = SlowDisk::default();
        let journal = Box::new(disk.clone());
        let mut server_handshake = opened(ServerHandshake::with_journal(settings(), wide_seed(1), [], journal));
        let mut walker = Walker::new(token(1, 1), client_address(0), true, NOW, 1);
        assert!(walker.walk(&mut server_handshake, NOW).is_none());
        let mut reply = Reply::new();
        assert!(server_handshake.admit_next(&mut reply).is_none() && reply.is_empty(), "its token is not kept yet");
        assert_eq!(walker.handshake.state(), HandshakeState::Connecting);

        let asked = disk.0.lock().unwrap().asked.clone();
        assert_eq!(asked.len(), 1, "once");
        disk.0.lock().unwrap().done.push((asked[0], result));
        assert_eq!(server_handshake.admit_next(&mut reply).is_some(), result.is_ok());
        walker.hears(NOW, &reply);
        let expect = match result {
            Ok(()) => HandshakeState::Connected,
            Err(JournalError) => HandshakeState::Failed(HandshakeFailure::Denied(DenialReason::Unable)),
        };
        assert_eq!(walker.handshake.state(), expect);
        assert_eq!(server_handshake.used_token_count(), usize::from(result.is_ok()));
    }
}

/// Ten thousand showings of few tokens at many times, from few addresses, over restarts and clock steps,
/// against a model that remembers everything.
#[test]
fn r05_ten_thousand_showings_agree_with_a_model_that_forgets_nothing() {
    const FIRST_MADE_UNIX_S: u64 = UNIX_S - 1_000_000;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let journal = Journal::default();
    let mut server_handshake = journal.server_handshake(0);
    let mut sessions: HashMap<u64, u64> = HashMap::new();
    let (mut admitted_count, mut unix_s) = (0, UNIX_S);
    for case in 0..10_000u64 {
        if rng.random_ratio(1, 200) {
            server_handshake = journal.server_handshake(case);
        }
        // Time goes on, and now and then the wall clock steps by up to two minutes either way.
        unix_s = if rng.random_ratio(1, 20) { unix_s + rng.random_range(0..240) - 120 } else { unix_s + 1 };
        server_handshake.begin_frame(Nanos::from_secs(1), unix_s);

        let serial = (unix_s - FIRST_MADE_UNIX_S) / 7 - rng.random_range(0..20);
        let made_unix_s = FIRST_MADE_UNIX_S + serial * 7;
        let mut request = token_request(serial);
        (request.created_unix_s, request.expires_unix_s) = (made_unix_s, made_unix_s + TOKEN_LIFE_S);
        let token = token_with(&request, &KEY, 1_000_000 + serial);
        let home = client_address(rng.random_range(0..3));

        if let Some(admitted) = connect(&mut server_handshake, token, home, case) {
            assert!(unix_s < request.expires_unix_s + 60, "case {case}: expired");
            assert_eq!(sessions.insert(serial, case), None, "case {case}: a second session of token {serial}");
            assert_eq!(admitted.client_id, ClientId(serial));
            admitted_count += 1;
            server_handshake.disconnected(admitted.address);
        }
    }
    assert!(admitted_count > 500, "honest showings get in: {admitted_count}");
}
