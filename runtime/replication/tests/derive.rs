//! The promise: what a component declares is what goes over the wire, whatever types its fields have.

use glam::{Vec2, Vec3};
use throng_replication::{DecodeError, Reader, Replicate, Text, Writer};

const SIDE_M: f32 = 64.0;

#[derive(Copy, Clone, Debug, PartialEq, Replicate)]
enum Stance {
    Relevance,
    Crouching,
    Prone,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Everything {
    #[replicate(min = -SIDE_M, max = SIDE_M, step = 0.25)]
    place: Vec3,
    #[replicate(min = 0.0, max = 1.0, step = 0.1)]
    aim: Vec2,
    #[replicate(angle, bits = 6)]
    headings: [f32; 2],
    #[replicate(exact)]
    speed: f32,
    alive: bool,
    #[replicate(bits = 3)]
    team: u8,
    score: u16,
    seed: u32,
    stance: Stance,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Marker;

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Pair(bool, #[replicate(bits = 4)] u32);

/// Declared where both traits are in scope, as by a game whose component also travels.
mod packed_too {
    use throng_pack::{Pack, Text};
    use throng_replication::Replicate;

    #[derive(Copy, Clone, Debug, PartialEq, Pack, Replicate)]
    pub enum Rank {
        Private,
        Captain,
    }

    #[derive(Clone, Debug, PartialEq, Pack, Replicate)]
    pub struct Recruit {
        pub rank: Rank,
        pub name: Text<8>,
    }
}

fn everything() -> Everything {
    Everything {
        place: Vec3::new(-64.0, 0.1, 64.0),
        aim: Vec2::new(0.33, 1.0),
        headings: [-0.1, 7.0],
        speed: 1.0e-20,
        alive: true,
        team: 5,
        score: 65_535,
        seed: 0xDEAD_BEEF,
        stance: Stance::Prone,
    }
}

fn encoded<T: Replicate>(value: &T) -> Vec<u8> {
    let mut bytes = [0; 255];
    let mut out = Writer::new(&mut bytes);
    value.encode(&mut out);
    let len = out.len();
    assert!(!out.poisoned() && !out.clamped() && len <= T::BYTES_MAX);
    bytes[..len].to_vec()
}

/// There and back, rounded and exact.
fn check<T: Replicate + PartialEq + std::fmt::Debug>(value: &T) {
    let copy = T::decode(&mut Reader::new(&encoded(value))).unwrap();
    assert!(copy.agrees_with(value), "{copy:?} and {value:?}");
    assert_eq!(encoded(&copy), encoded(value));
    let mut bytes = [0; 255];
    let mut out = Writer::new(&mut bytes);
    value.encode_exact(&mut out);
    let len = out.len();
    assert!(len <= T::EXACT_BYTES_MAX);
    assert_eq!(&T::decode_exact(&mut Reader::new(&bytes[..len])).unwrap(), value);
}

#[test]
fn every_kind_of_field_comes_back() {
    check(&everything());
    check(&Marker);
    check(&Pair(true, 15));
    for stance in [Stance::Relevance, Stance::Crouching, Stance::Prone] {
        check(&stance);
    }
}

/// Both traits have a `BYTES_MAX`, which the derived code must not mix up.
#[test]
fn what_is_replicated_may_be_packed_too() {
    for rank in [packed_too::Rank::Private, packed_too::Rank::Captain] {
        let recruit = packed_too::Recruit { rank, name: Text::new("Fluß").unwrap() };
        check(&rank);
        check(&recruit);
        let mut bytes = Vec::new();
        throng_pack::pack_body(&recruit, &mut bytes).unwrap();
        assert_eq!(throng_pack::unpack_body(&bytes), Ok(recruit));
    }
}

#[test]
fn sizes_are_what_the_declarations_say() {
    let bits = 3 * 10 + 2 * 4 + 2 * 6 + 32 + 1 + 3 + 16 + 32 + 2;
    assert_eq!(Everything::BYTES_MAX, usize::div_ceil(bits, 8));
    assert_eq!((Marker::BYTES_MAX, Pair::BYTES_MAX, Stance::BYTES_MAX), (0, 1, 1));
    assert_eq!(Everything::NAME, "Everything");
}

#[test]
fn another_value_does_not_agree() {
    let value = everything();
    let copy = Everything::decode(&mut Reader::new(&encoded(&value))).unwrap();
    let others: [fn(&mut Everything); 6] = [
        |other| other.place.y += 0.3,
        |other| other.aim.x -= 0.2,
        |other| other.headings[1] += 0.2,
        |other| other.team = 4,
        |other| other.alive = false,
        |other| other.stance = Stance::Relevance,
    ];
    for change in others {
        let mut other = value.clone();
        change(&mut other);
        assert!(!copy.agrees_with(&other), "{copy:?} and {other:?}");
    }
}

#[test]
fn another_range_is_another_layout() {
    mod narrower {
        #[derive(Clone, throng_replication::Replicate)]
        pub struct Pair(pub bool, #[replicate(bits = 3)] pub u32);
    }
    assert_ne!(Pair::LAYOUT, narrower::Pair::LAYOUT);
}

/// Every number field, given each poison: marked where it is one, and finite and in range when decoded.
#[test]
fn poison_never_passes() {
    let poisons = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE / 2.0,
        -0.0,
        2_147_483_648.0,
        9_007_199_254_740_992.0,
    ];
    let fields: [fn(&mut Everything, f32); 5] = [
        |value, poison| value.place.x = poison,
        |value, poison| value.place.z = poison,
        |value, poison| value.aim.y = poison,
        |value, poison| value.headings[0] = poison,
        |value, poison| value.speed = poison,
    ];
    for field in fields {
        for poison in poisons {
            let mut value = everything();
            field(&mut value, poison);
            let mut bytes = [0; 255];
            let mut out = Writer::new(&mut bytes);
            value.encode(&mut out);
            assert_eq!(out.poisoned(), !poison.is_finite(), "{poison}");
            let copy = Everything::decode(&mut Reader::new(&bytes)).unwrap();
            assert!(copy.place.is_finite() && copy.aim.is_finite() && copy.speed.is_finite());
            assert!(copy.place.abs().max_element() <= SIDE_M && copy.aim.max_element() <= 1.0);
            assert!((0.0..7.0).contains(&copy.headings[0]));
            let mut out = Writer::new(&mut bytes);
            value.encode_exact(&mut out);
            Everything::decode_exact(&mut Reader::new(&bytes)).unwrap();
        }
    }
}

#[test]
fn codes_that_mean_nothing_are_refused() {
    assert_eq!(Stance::decode(&mut Reader::new(&[3])), Err(DecodeError::OutOfRange));
    assert_eq!(Stance::decode(&mut Reader::new(&[4])), Err(DecodeError::Padding));
    assert_eq!(Pair::decode(&mut Reader::new(&[])), Err(DecodeError::Truncated));
}
