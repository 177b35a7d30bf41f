//! Datagrams of strangers at the handshake: raw ones, and an honest client's, damaged, doubled, late or from elsewhere.
//!
//! Promise: no reply is longer than what asked for it, what is dropped is not answered, and only the honest response
//! from the honest address puts anybody in line, from where it is let in once.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use throng_fuzz::{
    scene::{self, CLIENTS_MAX, START, UNIX_S, address},
    script::Script,
};
use throng_net::protocol::{DenialReason, Reply, ServerHandshakeOutcome};
use throng_platform::time::Nanos;

static HONEST: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| [true, false].into_iter().flat_map(scene::honest_datagrams).collect());

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let (mut server_handshake, mut reply) = (scene::server_handshake(), Reply::new());
    let (mut now, mut admitted) = (START, 0);
    while let Some(operation) = script.operation() {
        let from = address(operation >> 6);
        let mut honest = None;
        let mut datagram = match operation & 7 {
            0 => script.block().to_vec(),
            7 => {
                now += Nanos::from_millis(u64::from(script.u8()) * 50);
                server_handshake.begin_frame(now, UNIX_S + (now - START).as_micros() / 1_000_000);
                // Now and then the line moves; some are called and left waiting, or turned away.
                let called = if operation & 8 != 0 { server_handshake.call_next() } else { None };
                if let Some(called) = called {
                    match operation >> 4 & 3 {
                        0 => {}
                        1 => server_handshake.refuse(called.address, DenialReason::WorldNotReady, &mut reply),
                        _ => admitted += usize::from(server_handshake.admit(called.address, &mut reply).is_some()),
                    }
                }
                server_handshake.check();
                assert!(admitted <= 1, "one token made two sessions");
                continue;
            }
            which => {
                let index = usize::from(which - 1) % HONEST.len();
                honest = Some(index);
                let mut datagram = HONEST[index].clone();
                if operation & 8 != 0 {
                    script.damage(&mut datagram);
                }
                datagram
            }
        };
        let asked = datagram.clone();
        let outcome = server_handshake.handle(from, &mut datagram, &mut reply);
        assert!(reply.len() <= asked.len(), "{} bytes for {}", reply.len(), asked.len());
        match outcome {
            ServerHandshakeOutcome::Nothing(_) => assert!(reply.is_empty()),
            ServerHandshakeOutcome::Replied | ServerHandshakeOutcome::Refused { .. } => assert!(!reply.is_empty()),
            ServerHandshakeOutcome::Queued => {
                assert!(honest.is_some_and(|index| HONEST[index] == asked), "a stranger stands in line");
                assert!(reply.is_empty());
            }
        }
        server_handshake.check();
        assert_eq!(server_handshake.connected_count(), admitted);
        assert!(server_handshake.queued_count() <= 1, "one token stands in line twice");
        assert!(server_handshake.used_token_count() <= 1 && server_handshake.pending_count() <= 4 * CLIENTS_MAX);
    }
});
