//! Recordings by whoever can write where they are kept, checksums included: led through a game's worlds.
//!
//! Promise: behind what a server wrote any blocks may stand. Worlds are made, ticked, hashed and ended as they say, or it is told why not; and
//! the same bytes come to the same states on one thread and on two.

#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock};

use libfuzzer_sys::fuzz_target;
use throng::{
    recording::{RecordingFiles, SegmentHeading},
    replay::ReplayOptions,
};
use throng_fuzz::kept;

/// What stands in front of all bytes, and the file that they go to.
static BEGIN: LazyLock<(Vec<u8>, PathBuf)> = LazyLock::new(|| {
    let folder = kept::folder("replay");
    let blocks = kept::recorded_blocks(&folder);
    fs::create_dir_all(&folder).expect("a folder of ours");
    (blocks, folder.join("fuzzed.throngrec"))
});

fuzz_target!(|bytes: &[u8]| {
    let (begin, path) = &*BEGIN;
    let segment = SegmentHeading { number: 1, recording_id: 1 }.seal(&[&begin[..], bytes].concat());
    fs::write(path, segment).expect("a folder of ours");
    let recording = RecordingFiles::open(path).expect("it begins as a server wrote it");
    let game = kept::game(&recording);
    let [one, two] = [1, 2].map(|threads| {
        let options = ReplayOptions { threads, ..ReplayOptions::default() };
        game.replay(&recording, &options).expect("it is of this game")
    });
    assert!(one.ticks >= 1 && one.hashes_equal >= 1, "{one:?}");
    assert_eq!((one.ticks, one.ticks_skipped, one.states), (two.ticks, two.ticks_skipped, two.states));
    assert_eq!((one.divergences, one.failures.len()), (two.divergences, two.failures.len()));
});
