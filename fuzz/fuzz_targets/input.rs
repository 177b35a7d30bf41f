//! What a client of Precinct and its world say to each other: inputs, words, names, pockets.
//!
//! Promise: a message is taken or refused; what is taken is in range, fits where it goes next, and says the same when
//! said again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use precinct::protocol::{CallMe, Input, NAME_BYTES_MAX, Pockets, SAY_BYTES_MAX, Said, Say};
use throng_pack::{Pack, pack_body, unpack_body};

fuzz_target!(|bytes: &[u8]| {
    if let Some(input) = taken::<Input>(bytes) {
        let [x, z] = input.direction();
        assert!(x.hypot(z) <= 1.0 + 1e-6);
        assert!((0.0..=std::f32::consts::TAU).contains(&input.yaw()));
        assert!(input.pitch().abs() < std::f32::consts::FRAC_PI_2);
    }
    if let Some(Say { words }) = taken(bytes) {
        assert!(words.len() <= SAY_BYTES_MAX && !words.chars().any(char::is_control));
    }
    if let Some(CallMe { name }) = taken(bytes) {
        assert!(name.is_ascii() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control));
    }
    if let Some(Said { speaker, words }) = taken(bytes) {
        assert!(speaker.len() <= NAME_BYTES_MAX && words.len() <= SAY_BYTES_MAX);
    }
    if let Some(Pockets { inventory }) = taken(bytes) {
        inventory.check();
    }
});

fn taken<T: Pack>(bytes: &[u8]) -> Option<T> {
    let value = unpack_body::<T>(bytes).ok()?;
    let mut again = Vec::new();
    pack_body(&value, &mut again).expect("what was read can be written");
    assert_eq!(again, bytes);
    Some(value)
}
