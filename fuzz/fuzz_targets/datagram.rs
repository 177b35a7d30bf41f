//! Datagrams of strangers at the gate: raw ones, and an honest client's, damaged, doubled, late or from elsewhere.
//!
//! Promise: no reply is longer than what asked for it, what is dropped is not answered, and only the honest response
//! from the honest address lets anybody in, once.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use throng_fuzz::{
    scene::{self, CLIENTS_MAX, START, UNIX_S, address},
    script::Script,
};
use throng_net::protocol::{GateOutcome, Reply};
use throng_platform::time::Nanos;

static HONEST: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| [true, false].into_iter().flat_map(scene::honest_datagrams).collect());

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let (mut gate, mut reply) = (scene::gate(), Reply::new());
    let (mut now, mut admitted) = (START, 0);
    while let Some(operation) = script.operation() {
        let from = address(operation >> 6);
        let mut honest = None;
        let mut datagram = match operation & 7 {
            0 => script.block().to_vec(),
            7 => {
                now += Nanos::from_millis(u64::from(script.u8()) * 50);
                gate.begin_frame(now, UNIX_S + (now - START).as_micros() / 1_000_000);
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
        let outcome = gate.handle(from, &mut datagram, &mut reply);
        assert!(reply.len() <= asked.len(), "{} bytes for {}", reply.len(), asked.len());
        match outcome {
            GateOutcome::Nothing(_) => assert!(reply.is_empty()),
            GateOutcome::Replied => assert!(!reply.is_empty()),
            GateOutcome::Connected(client) => {
                assert!(honest.is_some_and(|index| HONEST[index] == asked), "a stranger is in");
                assert_eq!(client.address, from);
                admitted += 1;
            }
        }
        assert!(admitted <= 1, "one token made two sessions");
        assert_eq!(gate.connected_count(), admitted);
        assert!(gate.used_token_count() <= 1 && gate.pending_count() <= 4 * CLIENTS_MAX);
    }
});
