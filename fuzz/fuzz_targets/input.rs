//! What a client of Precinct says to its world: inputs, words and names.
//!
//! Promise: a message is taken or refused; what is taken is in range, fits where it goes next, and says the same when
//! said again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use precinct::protocol::{
    ClientMessage, Input, NAME_BYTES_MAX, SAID_BYTES_MAX, SAY_BYTES_MAX, decode_said, encode_said,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(input) = Input::decode(bytes) {
        assert_eq!(input.encode(), bytes);
        let [x, z] = input.direction();
        assert!(x.hypot(z) <= 1.0 + 1e-6);
        assert!((0.0..=std::f32::consts::TAU).contains(&input.yaw()));
        assert!(input.pitch().abs() < std::f32::consts::FRAC_PI_2);
    }
    if let Ok(message) = ClientMessage::decode(bytes) {
        assert_eq!(message.encode(), bytes);
        let (ClientMessage::Say(words) | ClientMessage::Name(words)) = message;
        assert!(!words.chars().any(char::is_control));
        if let ClientMessage::Name(name) = message {
            assert!(name.is_ascii() && name.len() <= NAME_BYTES_MAX);
        }
    }
    if let Ok((name, words)) = decode_said(bytes) {
        assert!(name.len() <= NAME_BYTES_MAX && words.len() <= SAY_BYTES_MAX);
        assert_eq!(encode_said(name, words, &mut [0; SAID_BYTES_MAX]), bytes);
    }
});
