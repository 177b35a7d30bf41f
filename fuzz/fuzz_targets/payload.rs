//! Payloads after decryption: a peer that holds the key sends what it likes into a conversation.
//!
//! Promise: never more heap than the budget, no more message bytes out than payload bytes in, every packet's fate told
//! at most once, and all invariants hold after every step.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use throng_fuzz::script::Script;
use throng_net::{
    connection::{Channels, HEAP_BYTES_MAX, Received},
    protocol::PAYLOAD_BYTES_MAX,
};
use throng_platform::time::Nanos;

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let mut now = Nanos::ZERO;
    let mut channels = Channels::new(now);
    let mut received = Received::default();
    let mut in_flight = HashSet::new();
    let (mut bytes_in, mut bytes_out) = (0, 0);
    while let Some(operation) = script.operation() {
        match operation & 7 {
            0..=2 => {
                let payload = script.block();
                bytes_in += payload.len();
                let _ = channels.read(now, &payload[..payload.len().min(PAYLOAD_BYTES_MAX)], &mut received);
            }
            3 => {
                now += Nanos::from_millis(u64::from(script.u8()) * 20);
                channels.update(now, now, &mut received);
            }
            4 => _ = channels.send_reliable(&vec![1; script.u16().into()]),
            5 => _ = channels.send_unreliable(&vec![2; script.u8().into()]),
            _ => {
                let room = channels.room();
                let message = vec![3; usize::from(script.u16()).min(room)];
                let mut payload = [0; PAYLOAD_BYTES_MAX];
                let (sequence, len) = channels.write(now, &message, &mut payload);
                assert!(len <= PAYLOAD_BYTES_MAX && in_flight.insert(sequence));
            }
        }
        for sequence in received.acked.iter().chain(&received.lost) {
            assert!(in_flight.remove(sequence), "the fate of {sequence:?} is told, but it is not under way");
        }
        bytes_out += received.messages().map(|(_, message)| message.len()).sum::<usize>();
        assert!(bytes_out <= bytes_in, "{bytes_out} bytes of messages out of {bytes_in}");
        received.clear();
        assert!(channels.heap_bytes() <= HEAP_BYTES_MAX);
        channels.check();
        if channels.refusal().is_some() {
            channels = Channels::new(now);
            in_flight.clear();
        }
    }
});
