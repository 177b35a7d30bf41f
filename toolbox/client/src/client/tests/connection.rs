//! How a connection begins, is kept and ends: silence, goodbyes, a full server, the line before it, and what a player is told.

use super::*;

#[test]
fn a_server_that_never_answers_is_given_up_after_the_tokens_timeout() {
    let mut stage = Stage::new(nothing_replicated());
    let mut sent = 0;
    while stage.client.state() == ClientState::Connecting {
        stage.now += STEP;
        stage.client.poll(stage.now, UNIX_S, &mut stage.up);
        sent += std::mem::take(&mut stage.up.datagrams).len();
        assert!(stage.now < Nanos::from_secs(6), "the token says 5 s");
    }
    let reason = DisconnectReason::Handshake(HandshakeFailure::TimedOut);
    assert_eq!(stage.client.state(), ClientState::Disconnected(reason));
    assert_eq!(stage.client.next_event(), Some(ClientEvent::Disconnected(reason)));
    assert!((10..=50).contains(&sent), "it tried several times and did not flood: {sent}");
}

#[test]
fn a_server_that_falls_silent_is_noticed() {
    let mut stage = Stage::in_world(nothing_replicated());
    let silent_since = stage.now;
    while stage.client.state() == ClientState::Connected {
        stage.now += STEP;
        stage.client.poll(stage.now, UNIX_S, &mut stage.up);
        assert!(stage.now < silent_since + Nanos::from_secs(6), "the token says 5 s");
    }
    assert_eq!(stage.client.state(), ClientState::Disconnected(DisconnectReason::TimedOut));
    assert_eq!(stage.client.world().map(|world| world.id), Some(1), "the last view stays readable");
    assert_eq!(stage.client.send_raw_input(stage.now, &[1]), Err(SendInputError::NotInWorld));
    assert!(matches!(stage.client.send_raw(&[16]), Err(SendMessageError::NotConnected)));
}

#[test]
fn an_idle_connection_is_kept_alive_by_both_sides() {
    let mut stage = Stage::in_world(nothing_replicated());
    for _ in 0..2_000 {
        stage.step();
    }
    assert_eq!(stage.client.state(), ClientState::Connected, "20 s of nothing to say");
    let packets = stage.client.connection_stats().expect("connected").packets_sent;
    assert!(packets < 200, "{packets} packets for nothing");
}

#[test]
fn goodbyes_are_heard_both_ways() {
    let mut stage = Stage::in_world(nothing_replicated());
    stage.client.close(stage.now, &mut stage.up);
    assert_eq!(stage.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByClient));
    stage.up.datagrams.truncate(1);
    stage.deliver_up();
    assert!(stage.server_heard_goodbye);

    let mut stage = Stage::in_world(nothing_replicated());
    let (now, server) = (stage.now, stage.server.as_mut().expect("connected"));
    server.close(now, &mut stage.down);
    stage.deliver_down();
    assert_eq!(stage.client.state(), ClientState::Disconnected(DisconnectReason::ClosedByServer));
    stage.client.poll(stage.now, UNIX_S, &mut stage.up);
    assert!(stage.up.datagrams.is_empty(), "a client that was turned out is silent");
}

/// The server is full, and then it is not: the client rests, asks for a fresh token each time, and comes in.
#[test]
fn a_client_that_was_sent_away_comes_again_with_a_fresh_token() {
    let mut stage = Stage::new(nothing_replicated());
    stage.server_handshake = server_handshake(1);
    stage.server_handshake.begin_frame(stage.now, UNIX_S);
    let occupant: SocketAddr = "10.0.0.3:50000".parse().expect("an address");
    let mut handshake = ClientHandshake::new(token(7, 7), ClientHandshakeSettings::default(), stage.now, [7; 32]);
    let mut datagram = [0; 1400];
    while let Some((_, len)) = handshake.poll(stage.now, UNIX_S, &mut datagram) {
        stage.server_handshake.handle_and_admit(occupant, &mut datagram[..len], &mut stage.reply);
        handshake.handle(stage.now, &mut stage.reply.bytes().to_vec());
    }
    assert_eq!(stage.server_handshake.connected_count(), 1);

    stage.client = stage.client.with_retries(RetrySettings::default());
    let (mut asked_at, mut failures) = (Vec::new(), 0);
    for _ in 0..500 {
        stage.step();
        while let Some(event) = stage.client.next_event() {
            failures += usize::from(matches!(event, ClientEvent::AttemptFailed(_)));
        }
        if stage.client.wants_token(stage.now) {
            assert_eq!(stage.client.state(), ClientState::Resting);
            asked_at.push(stage.now);
            if asked_at.len() == 2 {
                stage.server_handshake.disconnected(occupant);
            }
            let number = asked_at.len() as u8;
            stage.client.try_again(token(42, 10 + number), stage.now, [10 + number; 32]);
        }
    }
    assert_eq!(stage.client.state(), ClientState::Connected);
    let stats = stage.client.login_stats();
    assert_eq!((stats.attempts, failures, asked_at.len()), (3, 2, 2));
    assert_eq!((stats.denied[DenialReason::ServerFull as usize], stats.timeouts), (2, 0));
    assert!(asked_at[1] - asked_at[0] >= Nanos::from_secs(1), "the second rest is the longer one: {asked_at:?}");
}

#[test]
fn a_client_in_line_knows_its_place_and_waits_for_as_long_as_it_takes() {
    let mut stage = Stage::new(nothing_replicated());
    let line = ServerHandshakeSettings::new(PROTOCOL, KEY, vec![server_address()], 4);
    stage.server_handshake =
        ServerHandshake::new(ServerHandshakeSettings { admissions_per_frame_max: 0, ..line }, [4; 32]);
    for _ in 0..2_000 {
        stage.step();
    }
    assert_eq!(stage.client.state(), ClientState::Connecting, "20 s, where the token bears 5 s of silence");
    assert_eq!(stage.client.queue(), Some(QueueState::InLine { place: 1, length: 1 }));
    let called = stage.server_handshake.call_next();
    assert!(called.is_none(), "nobody is called in this test");
}

/// A game may show them as they are: one line to the player, and none of our words for what he does not see.
#[test]
fn every_reason_can_be_read_by_a_player() {
    let denials = DenialReason::ALL.map(HandshakeFailure::Denied);
    let failures = [HandshakeFailure::TimedOut, HandshakeFailure::TokenExpired].into_iter().chain(denials);
    let mut texts: Vec<String> = failures.map(|failure| DisconnectReason::Handshake(failure).to_string()).collect();
    let others = [
        DisconnectReason::ClosedByServer,
        DisconnectReason::TimedOut,
        DisconnectReason::Refused(Refusal::Unacknowledged),
        DisconnectReason::SchemaMismatch { own: 1, server: 2 },
        DisconnectReason::ClosedByClient,
    ];
    texts.extend(others.map(|reason| reason.to_string()));
    for text in &texts {
        assert!((5..=200).contains(&text.len()) && !text.contains('\n'), "{text:?}");
        for ours in ["handshake", "packet", "slot", "Denied", "of the token"] {
            assert!(!text.contains(ours), "{ours:?} in {text:?}");
        }
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), DenialReason::ALL.len() + 7, "no two reasons read alike");
}
