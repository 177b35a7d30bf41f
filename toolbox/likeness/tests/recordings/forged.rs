//! Recordings by whoever means ill: right by every checksum; blocks and ticks are written here as `docs/spec/recording.md` draws them.

use std::{fs, path::Path};

use throng::recording::SegmentHeading;

use crate::yard::schema;

/// What a hostile world's ticks hold, by name.
pub fn hostile_ticks() -> Vec<(&'static str, Vec<u8>)> {
    let input = |client: u32, kind: u8, bytes: &[u8]| {
        let mut entry = vec![3, 0, 0, kind];
        entry.extend_from_slice(&client.to_le_bytes());
        entry.extend_from_slice(&[0, 0]);
        entry.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        entry.extend_from_slice(bytes);
        entry
    };
    let request = |client: u32, kind: u8, bytes: &[u8]| {
        let mut entry = vec![4, kind];
        entry.extend_from_slice(&client.to_le_bytes());
        entry.extend_from_slice(&[0, 0]);
        entry.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        entry.extend_from_slice(bytes);
        entry
    };
    let arrival = |client: u32, id: u64| {
        let mut entry = vec![1];
        entry.extend_from_slice(&client.to_le_bytes());
        entry.extend_from_slice(&id.to_le_bytes());
        entry.extend_from_slice(&[0xFF; 256]);
        entry.extend_from_slice(&[0, 0, 0]);
        entry
    };
    let many: Vec<u8> = (0..5_000_u32).flat_map(|client| arrival(client, u64::MAX - u64::from(client % 7))).collect();
    vec![
        ("strangers", tick(0, &input(7, 0, &[1, 1, 255, 255]))),
        (
            "kinds",
            [tick(0, &arrival(1, 5)), tick(1, &[input(1, 250, &[0; 9]), request(1, 250, b"x")].concat())].concat(),
        ),
        (
            "lengths",
            [tick(0, &arrival(1, 5)), tick(1, &input(1, 0, &[7; 60_000])), tick(2, &request(1, 0, &[7; 60_000]))]
                .concat(),
        ),
        ("ticks", [tick(0, &arrival(1, 5)), tick(u32::MAX / 2 - 1, &input(1, 0, &[1, 1, 1, 1]))].concat()),
        ("cut_short", tick(0, &input(1, 0, &[1; 4])[..9])),
        ("no_entries", tick(0, &[99, 1, 2, 3])),
        ("many", tick(0, &many)),
        ("departures", tick(0, &[2, 9, 0, 0, 0])),
        ("damaged", vec![1; 40]),
    ]
}

/// One tick of an input log.
fn tick(number: u32, entries: &[u8]) -> Vec<u8> {
    let mut tick = number.to_le_bytes().to_vec();
    tick.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    tick.extend_from_slice(&crc32fast::hash(entries).to_le_bytes());
    tick.extend_from_slice(&crc32fast::hash(&tick[..12]).to_le_bytes());
    tick.extend_from_slice(entries);
    tick
}

/// A recording with one world that did these ticks.
pub fn write(folder: &Path, ticks: &[u8]) {
    let mut about = Vec::new();
    for text in ["yard", "", ""] {
        about.push(text.len() as u8);
        about.extend_from_slice(text.as_bytes());
    }
    about.extend_from_slice(&schema().hash().to_le_bytes());
    // When, settings, three lists, draws.
    about.extend_from_slice(&[0; 8 + 1 + 3 + 1]);
    let id = [0; 8];
    let mut world = id.to_vec();
    world.extend_from_slice(b"\x04yard\x14\x00");
    world.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let part = [&id[..], &[0; 4]].concat();
    let blocks = [block(1, &about), block(2, &world), block(3, &part), block(4, &[]), block(6, ticks), block(8, &[0])];
    let segment = SegmentHeading { number: 1, recording_id: 9 }.seal(&blocks.concat());
    fs::write(folder.join("recording-000000000001-000001.throngrec"), segment).expect("a folder of ours");
}

fn block(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut block = vec![kind];
    block.extend_from_slice(&(content.len() as u32).to_le_bytes());
    block.extend_from_slice(content);
    block
}
