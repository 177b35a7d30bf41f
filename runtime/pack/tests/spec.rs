//! Promise: the bytes that `docs/spec/pack.md` shows are the bytes that are written and read.

use throng_pack::{ArrayVec, Fault, HasSchema, List, Pack, Text, envelope, pack_body, unpack_body};

const SPEC: &str = include_str!("../../../docs/spec/pack.md");

/// The bytes of the block that begins with "```hex name".
fn golden(name: &str) -> Vec<u8> {
    let (_, block) = SPEC.split_once(&format!("```hex {name}\n")).expect("the block is there");
    let (block, _) = block.split_once("```").expect("the block ends");
    block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

#[derive(Clone, Debug, PartialEq, Pack)]
#[pack(name = "spec.traveller", version = 2)]
struct Traveller {
    name: Text<24>,
    #[pack(max = 100)]
    health: u8,
    #[pack(min = -4.0, max = 4.0)]
    facing: f32,
    items: List<Item, 32>,
    score: i32,
    #[pack(fixed)]
    seed: u32,
    #[pack(since = 2, default = 30)]
    ammunition: u16,
}

#[derive(Clone, Debug, PartialEq, Pack)]
#[pack(name = "spec.item", version = 2)]
enum Item {
    Medkit,
    Weapon {
        kind: u8,
        rounds: Option<u16>,
    },
    #[pack(since = 2)]
    Coins(u32),
}

fn traveller() -> Traveller {
    let items = vec![Item::Medkit, Item::Weapon { kind: 3, rounds: Some(300) }, Item::Weapon { kind: 1, rounds: None }];
    Traveller {
        name: Text::new("Zoë").unwrap(),
        health: 80,
        facing: 1.5,
        items: List::try_from(items).unwrap(),
        score: -3,
        seed: 0xDDCC_BBAA,
        ammunition: 200,
    }
}

#[track_caller]
fn check_both_ways<T: Pack + PartialEq + std::fmt::Debug>(name: &str, value: T) {
    let mut bytes = Vec::new();
    pack_body(&value, &mut bytes).unwrap();
    assert_eq!(bytes, golden(name), "{name}: {bytes:02x?}");
    assert_eq!(unpack_body::<T>(&bytes), Ok(value), "{name}");
}

#[test]
fn golden_values_are_written_and_read() {
    check_both_ways("u16", 300_u16);
    check_both_ways("i32", -3_i32);
    check_both_ways("f32", 1.5_f32);
    check_both_ways("text", Text::<24>::new("Zoë").unwrap());
    check_both_ways("option", Some(300_u16));
    check_both_ways("list", List::<i8, 8>::try_from(vec![1, -1]).unwrap());
    check_both_ways("list", ArrayVec::<i8, 8>::from_iter([1, -1]));
    check_both_ways("enum", Item::Weapon { kind: 3, rounds: Some(300) });
    check_both_ways("traveller", traveller());
}

#[test]
fn the_golden_envelope_is_written_and_read() {
    let mut bytes = Vec::new();
    envelope::write(&traveller(), &mut bytes).unwrap();
    assert_eq!(bytes, golden("envelope"), "{bytes:02x?}");
    assert_eq!(envelope::read::<Traveller>(&bytes), Ok(traveller()));
}

#[test]
fn the_golden_envelope_of_version_1_is_read() {
    let bytes = golden("envelope-1");
    assert_eq!(envelope::read::<Traveller>(&bytes), Ok(Traveller { ammunition: 30, ..traveller() }));
    let (envelope, rest) = envelope::Envelope::parse(&bytes).unwrap();
    assert!(envelope.holds::<Traveller>() && rest.is_empty());
    assert_eq!((envelope.version, envelope.value().len()), (1, bytes.len() - 23));
}

#[test]
fn the_hashes_in_the_text_are_the_programs() {
    let schema = Traveller::schema();
    for (what, hash) in [("id", schema.id), ("layout", schema.layout()), ("hash", schema.hash())] {
        assert!(SPEC.contains(&format!("{what} `{hash:016x}`")), "{what} is {hash:016x}");
    }
    assert!(SPEC.contains(&format!("id of `spec.item` is `{:016x}`", Item::SCHEMA.id)), "{:016x}", Item::SCHEMA.id);
    let printed = schema.parts().iter().map(|part| format!("{part}\n")).collect::<String>();
    assert!(SPEC.contains(&printed), "{printed}");
}

#[test]
fn another_type_is_refused_as_the_text_says() {
    let error = envelope::read::<Item>(&golden("envelope")).unwrap_err();
    assert_eq!(error.fault, Fault::WrongType { got: Traveller::SCHEMA.id });
}
