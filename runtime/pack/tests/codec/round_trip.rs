//! Promise: what is packed is unpacked to an equal value, whose bytes are the same again; and damaged bytes give an
//! error or a value within its limits.

use proptest::prelude::*;
use throng_pack::{Pack, envelope, pack_body, unpack_body};

use crate::values::{self, Everything, Item, Numbers, Place, example};

fn bytes_of(value: &Everything) -> Vec<u8> {
    let mut bytes = Vec::new();
    envelope::write(value, &mut bytes).expect("a value within its limits");
    bytes
}

/// Read, and within its limits, which packing checks; and the same bytes again.
fn check_whatever_is_read(bytes: &[u8]) {
    let Ok(value) = envelope::read::<Everything>(bytes) else { return };
    assert_eq!(bytes_of(&value), bytes, "{value:?}");
}

proptest! {
    #[test]
    fn values_come_back_as_they_went(value in values::everything()) {
        let mut bytes = vec![7];
        envelope::write(&value, &mut bytes).unwrap();
        prop_assert!(bytes.len() - 1 <= envelope::bytes_max::<Everything>());
        prop_assert_eq!(&envelope::read::<Everything>(&bytes[1..]).unwrap(), &value);
        bytes.clear();
        pack_body(&value, &mut bytes).unwrap();
        prop_assert!((Everything::BYTES_MIN..=Everything::BYTES_MAX).contains(&bytes.len()));
        prop_assert_eq!(unpack_body::<Everything>(&bytes).unwrap(), value);
    }

    #[test]
    fn damaged_bytes_are_refused_or_within_limits(
        value in values::everything(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = bytes_of(&value);
        for (place, with) in damage {
            let place = place.index(bytes.len());
            bytes[place] ^= with;
        }
        check_whatever_is_read(&bytes);
    }

    #[test]
    fn bytes_of_anything_are_refused_or_within_limits(body in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(value) = unpack_body::<Everything>(&body) {
            let mut again = Vec::new();
            pack_body(&value, &mut again).unwrap();
            prop_assert_eq!(again, body);
        }
    }
}

#[test]
fn every_flipped_bit_is_refused_or_within_limits() {
    let mut bytes = bytes_of(&example());
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        check_whatever_is_read(&bytes);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn bytes_cut_anywhere_are_refused() {
    let bytes = bytes_of(&example());
    for len in 0..bytes.len() {
        assert!(envelope::read::<Everything>(&bytes[..len]).is_err(), "cut to {len} bytes");
    }
}

#[test]
fn the_largest_and_the_smallest_are_known() {
    assert_eq!((Place::BYTES_MIN, Place::BYTES_MAX), (12, 12));
    // A number and a text of 200 bytes; a number alone.
    assert_eq!((Item::BYTES_MIN, Item::BYTES_MAX), (1, 1 + 1 + 200));
    let varints = 3 + 3 + 5 + 5 + 10 + 10;
    assert_eq!(Numbers::BYTES_MAX, 1 + 1 + varints + 8 + 2 * 2 + (1 + 4 * (1 + 5)) + 8);
    assert_eq!(Numbers::BYTES_MIN, 1 + 1 + 6 + 8 + 2 * 2 + 1 + 8);
}
