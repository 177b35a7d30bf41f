//! The promise: signed integers, ranges of integers, options, lists, enums with fields, structs in structs and links go
//! as the table in `throng_replication_derive` says, come back as they went in, and bytes that mean nothing are refused.

use glam::Vec2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_replication::{ArrayVec, DecodeError, EntityLink, List, NetId, Reader, Replicate, Text, Writer};

#[derive(Copy, Clone, Debug, PartialEq, Replicate)]
enum Mood {
    Calm,
    Angry,
    Afraid,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
enum Wish {
    Rest,
    Follow(EntityLink),
    Go {
        #[replicate(min = -64.0, max = 63.0, step = 1.0)]
        to: Vec2,
        #[replicate(bits = 4)]
        haste: i8,
    },
}

#[derive(Copy, Clone, Debug, PartialEq, Replicate)]
struct Stack {
    #[replicate(min = 1, max = 99)]
    count: u16,
    mood: Mood,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Everything {
    small: i8,
    middle: i16,
    large: i32,
    #[replicate(bits = 5)]
    shift: i32,
    #[replicate(min = -1000, max = 1000)]
    degrees: i16,
    #[replicate(min = -64.0, max = 63.0, step = 1.0)]
    aim: Option<f32>,
    #[replicate(bits = 2)]
    mood: Option<Mood>,
    name: Option<Text<6>>,
    stacks: ArrayVec<Stack, 3>,
    #[replicate(bits = 7)]
    marks: List<u8, 5>,
    rows: ArrayVec<Option<ArrayVec<bool, 2>>, 2>,
    wish: Wish,
    target: EntityLink,
}

/// Bits, lowest first, put together without any of the library's code.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(&mut self, value: u64, count: u32) {
        (0..count).for_each(|bit| self.0.push(value >> bit & 1 == 1));
    }

    /// 0, -1, 1, -2, ..
    fn zigzag(&mut self, value: i64, count: u32) {
        self.put(if value < 0 { -value * 2 - 1 } else { value * 2 } as u64, count);
    }

    fn link(&mut self, link: &EntityLink) {
        self.put(link.id().is_some().into(), 1);
        if let Some(id) = link.id() {
            self.put(id.generation.into(), 8);
            self.put(id.slot.into(), 20);
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| (0..8).zip(bits).fold(0, |byte, (bit, set)| byte | u8::from(*set) << bit);
        self.0.chunks(8).map(byte).collect()
    }
}

/// What `value` goes as, `exact` or rounded, by the table.
fn expected(value: &Everything, exact: bool) -> Vec<u8> {
    let mut bits = Bits::default();
    let number = |bits: &mut Bits, number: f32| {
        if exact { bits.put(number.to_bits().into(), 32) } else { bits.put((number + 64.0) as u64, 7) }
    };
    bits.zigzag(value.small.into(), 8);
    bits.zigzag(value.middle.into(), 16);
    bits.zigzag(value.large.into(), 32);
    bits.zigzag(value.shift.into(), if exact { 32 } else { 5 });
    if exact {
        bits.zigzag(value.degrees.into(), 16)
    } else {
        bits.put((value.degrees + 1000) as u64, 11)
    }
    bits.put(value.aim.is_some().into(), 1);
    value.aim.into_iter().for_each(|aim| number(&mut bits, aim));
    bits.put(value.mood.is_some().into(), 1);
    value.mood.into_iter().for_each(|mood| bits.put(mood as u64, 2));
    bits.put(value.name.is_some().into(), 1);
    if let Some(name) = &value.name {
        bits.put(name.len() as u64, 8);
        name.bytes().for_each(|byte| bits.put(byte.into(), 8));
    }
    bits.put(value.stacks.len() as u64, 2);
    for stack in &value.stacks {
        if exact {
            bits.put(stack.count.into(), 16)
        } else {
            bits.put(u64::from(stack.count) - 1, 7)
        }
        bits.put(stack.mood as u64, 2);
    }
    bits.put(value.marks.len() as u64, 3);
    value.marks.iter().for_each(|mark| bits.put((*mark).into(), if exact { 8 } else { 7 }));
    bits.put(value.rows.len() as u64, 2);
    for row in &value.rows {
        bits.put(row.is_some().into(), 1);
        if let Some(row) = row {
            bits.put(row.len() as u64, 2);
            row.iter().for_each(|set| bits.put((*set).into(), 1));
        }
    }
    match &value.wish {
        Wish::Rest => bits.put(0, 2),
        Wish::Follow(link) => {
            bits.put(1, 2);
            bits.link(link);
        }
        Wish::Go { to, haste } => {
            bits.put(2, 2);
            number(&mut bits, to.x);
            number(&mut bits, to.y);
            bits.zigzag((*haste).into(), if exact { 8 } else { 4 });
        }
    }
    bits.link(&value.target);
    bits.bytes()
}

fn encoded<T: Replicate>(value: &T, exact: bool) -> Vec<u8> {
    let mut bytes = [0; 255];
    let mut out = Writer::new(&mut bytes);
    if exact {
        value.encode_exact(&mut out)
    } else {
        value.encode(&mut out)
    }
    let len = out.len();
    assert!(!out.poisoned() && !out.clamped());
    assert!(len <= if exact { T::EXACT_BYTES_MAX } else { T::BYTES_MAX });
    bytes[..len].to_vec()
}

fn link(rng: &mut impl Rng) -> EntityLink {
    let id = NetId { slot: rng.random_range(0..1 << 20), generation: rng.random() };
    if rng.random() { id.into() } else { EntityLink::NONE }
}

fn mood(rng: &mut impl Rng) -> Mood {
    [Mood::Calm, Mood::Angry, Mood::Afraid][rng.random_range(0..3)]
}

/// Whole numbers only: those that rounding leaves alone.
fn everything(rng: &mut impl Rng) -> Everything {
    let metres = |rng: &mut dyn rand::RngCore| rng.random_range(-64_i32..=63) as f32;
    let name = ["", "Ada", "Fluß", "abcdef"][rng.random_range(0..4)];
    let stacks = rng.random_range(0..=3);
    let marks: Vec<u8> = (0..rng.random_range(0..=5)).map(|_| rng.random_range(0..128)).collect();
    Everything {
        small: rng.random(),
        middle: rng.random(),
        large: rng.random(),
        shift: rng.random_range(-16..=15),
        degrees: rng.random_range(-1000..=1000),
        aim: rng.random::<bool>().then(|| metres(rng)),
        mood: rng.random::<bool>().then(|| mood(rng)),
        name: rng.random::<bool>().then(|| Text::new(name).unwrap()),
        stacks: (0..stacks).map(|_| Stack { count: rng.random_range(1..=99), mood: mood(rng) }).collect(),
        marks: List::try_from(marks).unwrap(),
        rows: (0..rng.random_range(0..=2))
            .map(|_| rng.random::<bool>().then(|| (0..rng.random_range(0..=2)).map(|_| rng.random()).collect()))
            .collect(),
        wish: match rng.random_range(0..3) {
            0 => Wish::Rest,
            1 => Wish::Follow(link(rng)),
            _ => Wish::Go { to: Vec2::new(metres(rng), metres(rng)), haste: rng.random_range(-8..=7) },
        },
        target: link(rng),
    }
}

#[test]
fn values_go_as_the_table_says_and_come_back() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    for _ in 0..2_000 {
        let value = everything(&mut rng);
        for exact in [false, true] {
            let bytes = encoded(&value, exact);
            assert_eq!(bytes, expected(&value, exact), "{value:?}");
            let mut from = Reader::new(&bytes);
            let copy = if exact { Everything::decode_exact(&mut from) } else { Everything::decode(&mut from) }.unwrap();
            assert!(from.is_at_end() && copy.agrees_with(&value));
            assert_eq!(copy, value);
            // A part of it is none of it.
            for end in 0..bytes.len() {
                let mut from = Reader::new(&bytes[..end]);
                let cut = if exact { Everything::decode_exact(&mut from) } else { Everything::decode(&mut from) };
                assert_eq!(cut.err(), Some(DecodeError::Truncated));
            }
        }
    }
}

/// Whatever comes in, it is refused, or it is what would be sent for the value that it gives.
#[test]
fn arbitrary_bytes_are_refused_or_mean_what_they_say() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = encoded(&everything(&mut rng), false);
        for _ in 0..rng.random_range(0..3) {
            let at = rng.random_range(0..bytes.len());
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        let mut from = Reader::new(&bytes);
        match Everything::decode(&mut from) {
            Err(_) => refused += 1,
            Ok(value) => {
                taken += 1;
                assert_eq!(encoded(&value, false), bytes[..bytes.len() - from.remaining().len()]);
            }
        }
        let _ = Everything::decode_exact(&mut Reader::new(&bytes));
    }
    assert!(refused > 500 && taken > 5_000, "{refused} refused, {taken} taken");
}

#[test]
fn sizes_are_what_the_declarations_say() {
    let stack = 7 + 2;
    let wish = 2 + 29;
    let bits = 8 + 16 + 32 + 5 + 11 + (1 + 7) + (1 + 2) + (1 + 8 + 48) + (2 + 3 * stack) + (3 + 5 * 7);
    let bits = bits + (2 + 2 * (1 + 2 + 2)) + wish + 29;
    assert_eq!(Everything::BYTES_MAX, usize::div_ceil(bits, 8));
    let exact_bits = 8 + 16 + 32 + 32 + 16 + (1 + 32) + (1 + 2) + (1 + 8 + 48) + (2 + 3 * (16 + 2)) + (3 + 5 * 8);
    let exact_bits = exact_bits + (2 + 2 * (1 + 2 + 2)) + (2 + 2 * 32 + 8) + 29;
    assert_eq!(Everything::EXACT_BYTES_MAX, usize::div_ceil(exact_bits, 8));
    assert_eq!((Wish::NAME, Wish::BYTES_MAX, Stack::BYTES_MAX), ("Wish", 4, 2));
    const { assert!(Everything::LINKS && Wish::LINKS && !Stack::LINKS && !Mood::LINKS) };
}

#[test]
fn codes_that_mean_nothing_are_refused() {
    // The fourth of three variants.
    assert_eq!(Wish::decode(&mut Reader::new(&[3])), Err(DecodeError::OutOfRange));
    // A count of 100, and no mood.
    assert_eq!(Stack::decode(&mut Reader::new(&[99, 0])), Err(DecodeError::OutOfRange));
    assert_eq!(Stack::decode(&mut Reader::new(&[0x80, 1])), Err(DecodeError::OutOfRange));
    #[derive(Clone, Debug, PartialEq, Replicate)]
    struct Party(ArrayVec<u8, 2>);
    assert_eq!(Party::decode(&mut Reader::new(&[3, 0, 0, 0, 0])), Err(DecodeError::OutOfRange));
    assert_eq!(Party::decode(&mut Reader::new(&[4])), Err(DecodeError::Padding));
}

#[test]
fn what_is_out_of_range_becomes_the_nearer_end_and_is_told() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(13);
    let sound = Everything { aim: None, wish: Wish::Rest, ..everything(&mut rng) };
    type Change = (fn(&mut Everything), fn(&Everything) -> bool);
    let changes: [Change; 6] = [
        (|value| value.shift = 16, |copy| copy.shift == 15),
        (|value| value.shift = i32::MIN, |copy| copy.shift == -16),
        (|value| value.degrees = i16::MIN, |copy| copy.degrees == -1000),
        (|value| value.aim = Some(1e9), |copy| copy.aim == Some(63.0)),
        (|value| value.marks = List::try_from(vec![200]).unwrap(), |copy| *copy.marks == [127]),
        (
            |value| value.wish = Wish::Go { to: Vec2::ZERO, haste: -9 },
            |copy| matches!(copy.wish, Wish::Go { haste: -8, .. }),
        ),
    ];
    for (change, is_held) in changes {
        let mut value = sound.clone();
        change(&mut value);
        let mut bytes = [0; 255];
        let mut out = Writer::new(&mut bytes);
        value.encode(&mut out);
        assert!(out.clamped() && !out.poisoned(), "{value:?}");
        let copy = Everything::decode(&mut Reader::new(&bytes)).unwrap();
        assert!(is_held(&copy) && copy.agrees_with(&value), "{copy:?}");
    }
    let mut bytes = [0; 255];
    let mut out = Writer::new(&mut bytes);
    Everything { aim: Some(f32::NAN), ..sound }.encode(&mut out);
    assert!(out.poisoned());
}

#[test]
fn another_value_does_not_agree() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(14);
    let stacks: ArrayVec<Stack, 3> = [Stack { count: 5, mood: Mood::Calm }; 2].into_iter().collect();
    let value =
        Everything { aim: Some(3.0), stacks, wish: Wish::Rest, target: EntityLink::NONE, ..everything(&mut rng) };
    let copy = Everything::decode(&mut Reader::new(&encoded(&value, false))).unwrap();
    let others: [fn(&mut Everything); 7] = [
        |other| other.small = !other.small,
        |other| other.degrees = -other.degrees - 1,
        |other| other.aim = None,
        |other| other.aim = Some(4.0),
        |other| other.stacks.truncate(1),
        |other| other.stacks[1].count = 6,
        |other| other.wish = Wish::Follow(EntityLink::NONE),
    ];
    for change in others {
        let mut other = value.clone();
        change(&mut other);
        assert!(!copy.agrees_with(&other), "{copy:?} and {other:?}");
    }
    let other = Everything { target: NetId { slot: 1, generation: 1 }.into(), ..value };
    assert!(!copy.agrees_with(&other));
}

/// Two programs that would read each other's bytes wrongly do not have the same layout.
#[test]
fn every_declaration_is_a_layout_of_its_own() {
    macro_rules! layouts {
        ($($(#[$attribute:meta])* $kind:ty;)*) => {
            [$({
                #[derive(Clone, Replicate)]
                #[allow(dead_code)]
                struct One($(#[$attribute])* $kind);
                One::LAYOUT
            }),*]
        };
    }
    mod renamed {
        #[derive(Clone, throng_replication::Replicate)]
        pub enum Mood {
            Calm,
            Afraid,
            Angry,
        }
    }
    let layouts = layouts! {
        u8;
        i8;
        i16;
        bool;
        #[replicate(bits = 5)] u8;
        #[replicate(bits = 5)] i8;
        #[replicate(min = 0, max = 31)] u8;
        #[replicate(min = -1, max = 30)] i8;
        #[replicate(min = -2, max = 29)] i8;
        Option<u8>;
        Option<Option<u8>>;
        ArrayVec<u8, 3>;
        ArrayVec<u8, 2>;
        ArrayVec<i8, 3>;
        Text<3>;
        Text<4>;
        NetId;
        EntityLink;
        Option<NetId>;
        Mood;
        renamed::Mood;
        Wish;
        Stack;
    };
    for (index, layout) in layouts.iter().enumerate() {
        assert!(!layouts[..index].contains(layout), "declaration {index}");
    }
    // Which of the two lists holds them is each program's own.
    let same = layouts! { ArrayVec<u8, 3>; List<u8, 3>; };
    assert_eq!(same[0], same[1]);
}
