//! Promise: the bytes that `docs/spec/channels.md` shows are the bytes on the wire.

use throng_net::connection::{
    Acks, Channels, Chunk, FRAGMENT_BYTES_MAX, FragmentId, MESSAGE_BYTES_MAX, PacketHeader, PacketSequence, Received,
    WINDOW_FRAGMENTS, parse,
};
use throng_platform::time::Nanos;

const SPEC: &str = include_str!("../../../../docs/spec/channels.md");

/// The bytes of the block that begins with "```hex name".
fn golden(name: &str) -> Vec<u8> {
    let (_, block) = SPEC.split_once(&format!("```hex {name}\n")).expect("the block is there");
    let (block, _) = block.split_once("```").expect("the block ends");
    block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

fn check(name: &str, sequence: u16, acks: Acks, expect: &[Chunk<'_>]) {
    let bytes = golden(name);
    let (header, chunks) = parse(&bytes).unwrap_or_else(|malformed| panic!("{name}: {malformed}"));
    assert_eq!(header, PacketHeader { sequence: PacketSequence(sequence), acks }, "{name}");
    assert_eq!(chunks.collect::<Vec<_>>(), expect, "{name}");
}

const NOTHING: Acks = Acks { newest: PacketSequence(0), bits: 0 };

#[test]
fn golden_bytes_decode_to_what_the_text_says() {
    check("header-first", 7, NOTHING, &[]);
    check("header-acks", 65_535, Acks { newest: PacketSequence(2), bits: 0b1011 }, &[]);
    check("unreliable", 0, NOTHING, &[Chunk::Unreliable(b"abc")]);
    check(
        "reliable",
        1,
        NOTHING,
        &[
            Chunk::Fragment { id: FragmentId(0), last: true, bytes: b"hi" },
            Chunk::Fragment { id: FragmentId(1), last: true, bytes: b"!" },
            Chunk::Unreliable(b"x"),
        ],
    );
}

#[test]
fn a_connection_writes_the_golden_bytes() {
    let mut channels = Channels::new(Nanos::ZERO);
    let mut payload = [0; 1_200];
    let (_, len) = channels.write(Nanos::ZERO, b"abc", &mut payload);
    assert_eq!(payload[..len], golden("unreliable"));
    channels.send_reliable(b"hi").unwrap();
    channels.send_reliable(b"!").unwrap();
    channels.send_unreliable(b"x").unwrap();
    let (_, len) = channels.write(Nanos::ZERO, &[], &mut payload);
    assert_eq!(payload[..len], golden("reliable"));
}

#[test]
fn received_packets_are_acked_as_drawn() {
    let mut channels = Channels::new(Nanos::ZERO);
    for sequence in [u16::MAX, 2, 1] {
        let bytes = [&sequence.to_le_bytes()[..], &[0; 6]].concat();
        channels.read(Nanos::ZERO, &bytes, &mut Received::default()).unwrap();
    }
    let mut payload = [0; 1_200];
    channels.write(Nanos::ZERO, &[], &mut payload);
    assert_eq!(payload[2..8], golden("header-acks")[2..8]);
}

#[test]
fn the_numbers_in_the_text_are_the_constants() {
    assert!(SPEC.contains(&format!("fragments of {FRAGMENT_BYTES_MAX} bytes")));
    assert!(SPEC.contains(&format!("at most {} ahead", WINDOW_FRAGMENTS - 1)));
    assert_eq!(MESSAGE_BYTES_MAX, 65_536);
}
