//! Promise: a peer that is heard and acknowledges nothing is let go after 12 s in which it was heard; one that says nothing at all
//! is left to the link's timeout.

use throng_net::{
    connection::{Channels, Received, Refusal, STALL_MAX},
    protocol::PAYLOAD_BYTES_MAX,
};
use throng_platform::time::Nanos;

const TICK: Nanos = Nanos::from_millis(50);

/// After which time a connection is over on which a reliable message is never acknowledged, within two minutes. `heard_at`:
/// when something came of the peer last.
fn refused_after(heard_at: impl Fn(Nanos) -> Nanos) -> Option<Nanos> {
    let (mut channels, mut received) = (Channels::new(Nanos::ZERO), Received::default());
    channels.send_reliable(&[1; 10]).unwrap();
    let refused = (1..2_400).map(|tick| Nanos(TICK.0 * tick)).find(|&now| {
        if channels.wants_packet(now) {
            channels.write(now, &[], &mut [0; PAYLOAD_BYTES_MAX]);
        }
        received.clear();
        channels.update(now, heard_at(now), &mut received);
        channels.refusal().is_some()
    });
    assert!(refused.is_none() || channels.refusal() == Some(Refusal::Unacknowledged));
    refused
}

#[test]
fn a_peer_that_only_keeps_the_link_alive_is_let_go_and_a_silent_one_is_not() {
    let second = |now: Nanos| Nanos(now.0 - now.0 % 1_000_000_000);
    let after = refused_after(second).expect("it is heard every second");
    assert!(after > STALL_MAX && after < STALL_MAX + Nanos::from_secs(1), "{after:?}");

    assert_eq!(refused_after(|_| Nanos::ZERO), None, "nothing comes of it");
    assert_eq!(refused_after(|now| now.min(Nanos::from_secs(5))), None, "after 5 s nothing comes of it");

    let seldom = |now: Nanos| Nanos(now.0 - now.0 % 6_000_000_000);
    let after = refused_after(seldom).expect("half of the time counts");
    assert!(after > STALL_MAX && after < Nanos(2 * STALL_MAX.0 + TICK.0), "{after:?}");
}
