//! Promise: bytes and values that break a limit are refused, each with what is wrong and where; nothing is reserved by
//! what bytes claim.

use throng_pack::{Fault, HasSchema, List, Pack, PackError, Text, envelope, pack_body, unpack_body};
use throng_platform::allocator::{CountingAllocator, thread_counts};

use crate::values::{self, Everything, Facing, Item, Numbers, Place, example};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[track_caller]
fn check<T: Pack + std::fmt::Debug>(bytes: &[u8], expect: (&str, &str, Fault)) {
    let PackError { type_name, field, fault } = unpack_body::<T>(bytes).expect_err("refused");
    assert_eq!((type_name, field, fault), expect, "{bytes:02x?}");
}

#[track_caller]
fn check_envelope(bytes: &[u8], expect: (&str, Fault)) {
    let PackError { type_name, field, fault } = envelope::read::<Everything>(bytes).expect_err("refused");
    assert_eq!((type_name, field, fault), (expect.0, "", expect.1), "{bytes:02x?}");
}

#[derive(Clone, Debug, PartialEq, Pack)]
struct Bag {
    open: bool,
    #[pack(min = -5, max = 5)]
    weight: i32,
    owner: Option<Text<3>>,
    things: List<u16, 300>,
}

#[test]
fn bytes_that_break_a_limit_are_refused_where_they_do() {
    let list_too_long = |count| Fault::ListTooLong { count, count_max: 300 };
    check::<Bag>(&[], ("Bag", "open", Fault::Truncated));
    check::<Bag>(&[2], ("Bag", "open", Fault::NoFlag));
    check::<Bag>(&[1, 12], ("Bag", "weight", Fault::OutOfRange));
    check::<Bag>(&[1, 0x8A, 0x00], ("Bag", "weight", Fault::Overlong));
    check::<Bag>(&[1, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F], ("Bag", "weight", Fault::OutOfRange));
    check::<Bag>(&[1, 10, 2], ("Bag", "owner", Fault::NoFlag));
    check::<Bag>(&[1, 10, 1, 4], ("Bag", "owner", Fault::TextTooLong { bytes: 4, bytes_max: 3 }));
    check::<Bag>(&[1, 10, 1, 2, 0xC3, 0x28], ("Bag", "owner", Fault::NotUtf8));
    check::<Bag>(&[1, 10, 1, 3, b'a', b'b'], ("Bag", "owner", Fault::Truncated));
    check::<Bag>(&[1, 10, 0, 0xAD, 0x02], ("Bag", "things", list_too_long(301)));
    check::<Bag>(&[1, 10, 0, 3, 1, 2], ("Bag", "things", Fault::Truncated));
    check::<Bag>(&[1, 10, 0, 1, 0x80, 0x80, 0x04], ("Bag", "things", Fault::OutOfRange));
    check::<Bag>(&[1, 10, 0, 0, 0], ("", "", Fault::TrailingBytes));
    let huge = [&[1, 10, 0][..], &[0xFF; 9], &[1]].concat();
    check::<Bag>(&huge, ("Bag", "things", list_too_long(u64::MAX)));
}

#[test]
fn floats_variants_and_conversions_are_refused_where_they_are() {
    let floats = |numbers: [f32; 3]| numbers.map(f32::to_le_bytes).concat();
    check::<Place>(&floats([0.0, f32::NAN, 0.0]), ("Place", "0", Fault::NotFinite));
    check::<Place>(&floats([0.0, 0.0, f32::NEG_INFINITY]), ("Place", "0", Fault::NotFinite));
    check::<Place>(&floats([0.0, 500.1, 0.0]), ("Place", "0", Fault::OutOfRange));
    check::<Item>(&[4], ("Item", "", Fault::UnknownVariant { got: 4 }));
    check::<Item>(&[], ("Item", "", Fault::Truncated));
    check::<Item>(&[1, 8, 0, 0], ("Item", "Weapon.kind", Fault::OutOfRange));
    check::<Item>(&[2, 201], ("Item", "Letter.0", Fault::TextTooLong { bytes: 201, bytes_max: 200 }));
    let mut bytes = Vec::new();
    pack_body(&Everything { facing: Facing { x: 9.5, z: 0.0 }, ..example() }, &mut bytes).unwrap();
    let place = bytes.windows(4).position(|four| four == 9.5_f32.to_le_bytes()).unwrap();
    bytes[place..place + 4].fill(0);
    check::<Everything>(&bytes, ("test.everything", "facing", Fault::Refused));
}

#[test]
fn values_that_break_a_limit_are_refused_before_they_leave() {
    let mut out = vec![1, 2, 3];
    let mut check = |value: Everything, expect: (&str, &str, Fault)| {
        let PackError { type_name, field, fault } = envelope::write(&value, &mut out).expect_err("refused");
        assert_eq!((type_name, field, fault), expect);
        assert_eq!(out, [1, 2, 3], "nothing of it is left behind");
    };
    let numbers = example().numbers;
    let with = |numbers: Numbers| Everything { numbers, ..example() };
    check(with(Numbers { ranged: 101, ..numbers.clone() }), ("Numbers", "ranged", Fault::OutOfRange));
    check(
        with(Numbers { rolls: values::list(vec![Some(2)]), ..numbers.clone() }),
        ("Numbers", "rolls", Fault::OutOfRange),
    );
    check(with(Numbers { exact: f64::NAN, ..numbers }), ("Numbers", "exact", Fault::NotFinite));
    let place = Place([f32::INFINITY, 0.0, 0.0]);
    check(Everything { place, ..example() }, ("Place", "0", Fault::OutOfRange));
    let facing = Facing { x: -1.5, z: 0.0 };
    check(Everything { facing, ..example() }, ("test.everything", "facing", Fault::OutOfRange));
}

#[test]
fn envelopes_are_refused_by_type_version_layout_parts_and_length() {
    const NAME: &str = "test.everything";
    let mut sound = Vec::new();
    envelope::write(&example(), &mut sound).unwrap();
    // Type id 0..8, layout 8..16, version 16..18, parts 18, `Item` 3 in 19..29, length 29..33.
    let item = Item::SCHEMA.id;
    assert_eq!(sound[18..29], [&[1][..], &item.to_le_bytes(), &[3, 0]].concat());
    let changed = |at: usize, with: &[u8]| {
        let mut bytes = sound.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    check_envelope(&[], (NAME, Fault::Truncated));
    check_envelope(&changed(0, &item.to_le_bytes()), (NAME, Fault::WrongType { got: item }));
    check_envelope(&changed(8, &[!sound[8]]), (NAME, Fault::LayoutChanged { version: 2 }));
    check_envelope(&changed(16, &[1]), (NAME, Fault::LayoutChanged { version: 1 }));
    check_envelope(&changed(16, &[0]), (NAME, Fault::NoVersion));
    check_envelope(&changed(16, &[3]), (NAME, Fault::NewerVersion { got: 3, known: 2 }));
    check_envelope(&changed(18, &[17]), (NAME, Fault::Parts));
    check_envelope(&changed(19, &Place::SCHEMA.id.to_le_bytes()), ("Place", Fault::NewerVersion { got: 3, known: 1 }));
    check_envelope(&changed(19, &7_u64.to_le_bytes()), (NAME, Fault::UnknownPart { got: 7 }));
    let own = Everything::SCHEMA.id;
    check_envelope(&changed(19, &own.to_le_bytes()), (NAME, Fault::UnknownPart { got: own }));
    check_envelope(&changed(27, &[4]), ("Item", Fault::NewerVersion { got: 4, known: 3 }));
    check_envelope(&changed(27, &[2]), (NAME, Fault::LayoutChanged { version: 2 }));
    check_envelope(&changed(27, &[1]), (NAME, Fault::Parts));
    check_envelope(&changed(29, &[0xFF; 4]), (NAME, Fault::Truncated));
    check_envelope(&[&sound[..], &[0]].concat(), (NAME, Fault::TrailingBytes));
    let length = (sound.len() - 33) as u32;
    let longer = changed(29, &(length + 1).to_le_bytes());
    check_envelope(&[&longer[..], &[0]].concat(), (NAME, Fault::TrailingBytes));
    let twice = [&sound[..18], &[2], &sound[19..29], &sound[19..]].concat();
    check_envelope(&twice, (NAME, Fault::Parts));
}

#[test]
fn every_refusal_is_told_with_its_place() {
    let told = |bytes: &[u8]| envelope::read::<Everything>(bytes).unwrap_err().to_string();
    let mut bytes = Vec::new();
    envelope::write(&example(), &mut bytes).unwrap();
    bytes[27] = 9;
    assert_eq!(told(&bytes), "`Item`: version 9 is newer than 3, which this program knows");
    bytes[0] ^= 1;
    let got = Everything::SCHEMA.id ^ 1;
    assert_eq!(told(&bytes), format!("`test.everything`: the bytes are of another type, {got:016x}"));
}

/// Lists of a million values, claimed by three bytes.
#[derive(Debug, Pack)]
struct Hoard {
    large: List<[u64; 8], 1_000_000>,
    young: List<Young, 1_000_000>,
}

/// No bytes at all in version 1.
#[derive(Debug, Pack)]
#[pack(version = 2)]
struct Young {
    #[pack(since = 2, default)]
    age: u64,
}

#[test]
fn nothing_is_reserved_by_what_bytes_claim() {
    let million = [0xC0, 0x84, 0x3D];
    let allocated_bytes = |bytes: &[u8]| {
        let before = thread_counts();
        assert_eq!(unpack_body::<Hoard>(bytes).unwrap_err().fault, Fault::Truncated);
        (thread_counts() - before).bytes
    };
    assert_eq!(allocated_bytes(&[&million[..], &[1; 99]].concat()), 0);
    // Values that may be of no bytes: room for as many as there are bytes.
    assert_eq!(allocated_bytes(&[&[0][..], &million, &[1; 10]].concat()), 10 * 8);
}

#[test]
fn packing_into_a_reused_buffer_allocates_nothing() {
    let value = example();
    let mut out = Vec::new();
    envelope::write(&value, &mut out).unwrap();
    let before = thread_counts();
    for _ in 0..100 {
        out.clear();
        envelope::write(&value, &mut out).unwrap();
    }
    assert_eq!(thread_counts().allocations - before.allocations, 0);
}
