//! Segments of recordings, by whoever can write where they are kept, checksums included.
//!
//! Promise: what cannot be read is told, what is before it is given, and whatever blocks say of themselves their ticks, entries
//! and hashes are read to their ends.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng::{
    recording::{Block, SegmentHeading, SegmentReader},
    world::world_kind::Hertz,
};

fuzz_target!(|bytes: &[u8]| {
    // As it is: nothing that is not as it was written gets further than its heading.
    read(bytes);
    read(&SegmentHeading { number: 1, recording_id: 1 }.seal(bytes));
});

fn read(bytes: &[u8]) {
    let Ok(reader) = SegmentReader::new(bytes) else { return };
    for group in reader.map_while(Result::ok) {
        for block in group.blocks().map_while(Result::ok) {
            match block {
                Block::Ticks(ticks) => {
                    for reader in [ticks.read(Hertz(20)), ticks.read_from(1, Hertz(20))] {
                        let entries: usize = reader.map_while(Result::ok).map(|tick| tick.entries().count()).sum();
                        assert!(entries <= bytes.len());
                    }
                }
                Block::Hash(hash) => {
                    assert!(hash.columns().len() <= 255);
                    assert!(hash.entities().count() <= bytes.len());
                    assert!(hash.entities().is_sorted_by(|a, b| a.0 < b.0));
                }
                Block::About(about) => assert!(about.arguments.len() <= bytes.len()),
                _ => {}
            }
        }
    }
}
