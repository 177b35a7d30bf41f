//! Control messages: what a server says about the world that a client is in, and what both say of their schemas.
//!
//! Promise: a message is taken or refused, and what is taken says the same when said again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_net::control::{ENTER_WORLD_BYTES_MAX, EnterWorld, SchemaHash};

fuzz_target!(|bytes: &[u8]| {
    if let Some(schema) = SchemaHash::decode(bytes) {
        assert_eq!(schema.encode(), bytes);
        assert!(EnterWorld::decode(bytes).is_err(), "a message means one thing");
    }
    let Ok(entered) = EnterWorld::decode(bytes) else { return };
    assert!(entered.tick_hz > 0);
    let mut out = [0; ENTER_WORLD_BYTES_MAX];
    let len = entered.encode(&mut out);
    assert_eq!(len, bytes.len());
    assert_eq!(EnterWorld::decode(&out[..len]), Ok(entered));
});
