//! Connect tokens: bytes that a client was given as one, and what the handshake makes of the request that they lead to.
//!
//! Promise: a token is read or refused; what was read says the same when written again; none but the back end's own
//! gets an answer from the handshake.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_fuzz::{
    scene::{self, START, UNIX_S, address},
    script::Script,
};
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ConnectToken, Reply, ServerHandshakeOutcome, TOKEN_BYTES,
};

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let bytes = match script.u8() & 1 {
        0 => {
            let mut bytes = scene::token().to_bytes();
            while let Some(value) = script.operation() {
                bytes[usize::from(script.u16()) % TOKEN_BYTES] ^= value;
            }
            bytes
        }
        _ => {
            let mut bytes = [0; TOKEN_BYTES];
            let given = script.bytes(TOKEN_BYTES);
            bytes[..given.len()].copy_from_slice(given);
            bytes
        }
    };
    let Ok(token) = ConnectToken::from_bytes(&bytes) else { return };
    assert!((1..=32).contains(&token.server_addresses().len()));
    let written = token.to_bytes();
    let again = ConnectToken::from_bytes(&written).expect("what was read can be read again");
    assert_eq!(again.to_bytes(), written);

    let settings = ClientHandshakeSettings { cookie_first: false };
    let mut client = ClientHandshake::new(token, settings, START, [2; 32]);
    let mut out = [0; 1400];
    let Some((_, len)) = client.poll(START, UNIX_S, &mut out) else { return };
    let honest = out[..len] == scene::honest_datagrams(false)[0][..];
    let mut reply = Reply::new();
    let outcome = scene::server_handshake().handle(address(0), &mut out[..len], &mut reply);
    assert_eq!(matches!(outcome, ServerHandshakeOutcome::Replied), honest, "{outcome:?}");
    assert!(reply.len() <= len);
    client.handle(START, &mut reply.bytes().to_vec());
});
