//! Capture files: what a developer opens that came from somebody else's server.
//!
//! Promise: a file is read or refused at a place in it; what is read has a summary and is written again the same, and
//! every converter, the call tree, the story and the redaction take it, whatever its times and names are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_capture::Capture;
use throng_capture::convert::{Target, convert};
use throng_capture::format::{MAGIC, read, read_summary, write};
use throng_capture::story::{Options, tell};

fuzz_target!(|bytes: &[u8]| {
    take(bytes);
    // Once more with checksums that are right, which chance never finds.
    let mut sealed = bytes.to_vec();
    seal(&mut sealed);
    take(&sealed);
});

fn take(file: &[u8]) {
    let summary = read_summary(std::io::Cursor::new(file));
    let Ok(capture) = read(file) else { return };
    assert_eq!(summary.expect("what is read has a summary").about, capture.about);
    let again = written(&capture);
    let second = read(&again).expect("what was written is read");
    // Compared as files: a value that is not a number differs from itself.
    assert_eq!(written(&second), again);
    for target in Target::ALL {
        convert(&capture, target, &mut std::io::sink()).expect("nothing refuses it");
    }
    tell(&capture, &Options::default()).expect("only a frame that is asked for may be missing");
    let clean = capture.without_free_text();
    assert!(clean.logs.iter().all(|line| !line.text.contains(char::is_control)));
}

fn written(capture: &Capture) -> Vec<u8> {
    let mut file = Vec::new();
    write(capture, &mut file).expect("what was read can be written");
    file
}

/// Gives each section the checksum of what it holds.
fn seal(file: &mut [u8]) {
    let mut at = MAGIC.len() + 2;
    while let Some(header) = file.get(at..at + 9) {
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        let Some(payload) = file.get(at + 9..).and_then(|rest| rest.get(..length)) else { return };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..5]);
        hasher.update(payload);
        let checksum = hasher.finalize().to_le_bytes();
        file[at + 5..at + 9].copy_from_slice(&checksum);
        at += 9 + length;
    }
}
