//! What is unreadable, random or repeated: it is counted, and changes nothing.

use super::*;

#[test]
fn unreadable_messages_are_counted_and_change_nothing() {
    let mut stage = Stage::in_world(nothing_replicated());
    let bad: [&[u8]; 9] = [
        &[control::CONTROL, 1, 0, 20],
        &[control::INPUT, 0, 1, 0],
        &[control::SNAPSHOT],
        &[control::SNAPSHOT, 0, 1],
        &[control::SNAPSHOT, 0, 1, 0, 0, 0, 0, 0, 0xFF],
        &[control::AUDIT_SAMPLE],
        &[control::AUDIT_SAMPLE, 0, 1],
        &[4, 1, 2],
        &[15],
    ];
    for (index, message) in bad.iter().enumerate() {
        stage.say(message);
        stage.step();
        assert_eq!(stage.client.stats().protocol_errors, index as u64 + 1, "{message:?}");
    }
    stage.server().send_reliable(&[control::CONTROL, 77]).expect("room");
    stage.step();
    assert_eq!(stage.client.stats().protocol_errors, bad.len() as u64 + 1);
    assert_eq!(stage.client.world().map(|world| world.id), Some(1));
    assert_eq!(stage.client.state(), ClientState::Connected);
}

/// Promise: whatever an authenticated server says, a client counts and carries on.
#[test]
fn random_messages_never_panic() {
    let mut stage = Stage::in_world(nothing_replicated());
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    for _ in 0..20_000 {
        let mut message = vec![0; rng.random_range(1..60)];
        rng.fill(&mut message[..]);
        message[0] = rng.random_range(0..5);
        stage.say(&message);
        stage.step();
    }
    assert!(stage.client.stats().protocol_errors > 1_000);
    assert_eq!(stage.client.state(), ClientState::Connected);
}

#[test]
fn random_and_repeated_datagrams_are_refused_before_and_after_connecting() {
    let mut rng = ChaCha20Rng::from_seed([8; 32]);
    let mut junk = move || {
        let mut datagram = vec![0; rng.random_range(0..1_500)];
        rng.fill(&mut datagram[..]);
        datagram
    };
    let mut stage = Stage::new(nothing_replicated());
    for _ in 0..200 {
        stage.client.receive(stage.now, &mut junk());
    }
    assert_eq!(stage.client.state(), ClientState::Connecting);

    let mut stage = Stage::in_world(nothing_replicated());
    for _ in 0..200 {
        stage.client.receive(stage.now, &mut junk());
    }
    stage.say(&empty_snapshot(0, 501, 0));
    let mut repeated = stage.down.datagrams[0].clone();
    stage.step();
    stage.client.receive(stage.now, &mut repeated);
    assert_eq!(stage.client.stats().datagrams_refused, 201);
    assert_eq!((stage.client.stats().snapshots, stage.client.stats().protocol_errors), (1, 0));
}
