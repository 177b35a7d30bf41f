//! The promise: reading takes memory for what a file holds, not for what it claims; and writing takes little beside the
//! capture.

use throng_capture::Capture;
use throng_capture::format::{read, read_within, write};
use throng_capture::model::*;
use throng_platform::allocator::{CountingAllocator, thread_counts};

#[path = "sample/mod.rs"]
mod sample;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What reading may take for each byte of the file. The dearest byte is the one of a thread or a site without names and
/// numbers, or of a page fault's event; a list that grows by doubling has been handed out up to four times what it
/// holds, old places included.
const MEMORY_PER_BYTE: u64 = 256;

fn written(capture: &Capture) -> Vec<u8> {
    let mut file = Vec::new();
    write(capture, &mut file).expect("it can be written");
    file
}

fn check_memory(file: &[u8], what: &str) {
    let before = thread_counts();
    let capture = read(file);
    let taken = (thread_counts() - before).bytes;
    let most = file.len() as u64 * MEMORY_PER_BYTE + 4_096;
    assert!(taken <= most, "{what}: {taken} bytes for a file of {}", file.len());
    drop(capture);
}

/// Gives every section the checksum of what it holds, so that the claims in it are believed as far as they go.
fn seal(file: &mut [u8]) {
    let mut at = 16;
    while let Some(header) = file.get(at..at + 9) {
        let length = u32::from_le_bytes(header[1..5].try_into().unwrap()) as usize;
        let Some(payload) = file.get(at + 9..).and_then(|rest| rest.get(..length)) else { return };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..5]);
        hasher.update(payload);
        let checksum = hasher.finalize().to_le_bytes();
        file[at + 5..at + 9].copy_from_slice(&checksum);
        at += 9 + length;
    }
}

#[test]
fn claims_of_a_damaged_file_take_no_memory() {
    let file = written(&sample::small());
    for len in 0..file.len() {
        check_memory(&file[..len], "cut short");
    }
    for at in 16..file.len() {
        // Huge lengths, and numbers that go on and on.
        for pattern in [&[0xff; 4][..], &[0xff; 9], &[0x7f], &[0x80, 0x80, 0x40]] {
            let mut mutated = file.clone();
            let len = pattern.len().min(file.len() - at);
            mutated[at..at + len].copy_from_slice(&pattern[..len]);
            check_memory(&mutated, "not sealed");
            seal(&mut mutated);
            check_memory(&mutated, "sealed");
        }
    }
}

#[test]
fn the_smallest_elements_are_dear_within_bounds() {
    let site = Site::default();
    let thread = Thread { events: vec![Event::PageFault { at_ns: 0 }; 100], ..Thread::default() };
    let capture = Capture {
        sites: vec![site; 3_000],
        threads: vec![thread; 1_000],
        worlds: vec![World::default(); 3_000],
        locks: vec![Lock::default(); 3_000],
        frames: vec![Frame { threads: vec![FrameThread::default(); 3], ..Frame::default() }; 3_000],
        logs: vec![LogLine::default(); 3_000],
        memory: Memory { at_ns: vec![0; 100], by_site: vec![LiveBytes { site: None, bytes: vec![0; 100] }; 1_000] },
        processes: vec![ProcessShare::default(); 3_000],
        host_threads: vec![HostThread::default(); 3_000],
        cores: vec![Core { number: 0, runs: vec![CoreRun::default(); 100] }; 1_000],
        host_stalls: vec![HostStall::default(); 3_000],
        ..Capture::default()
    };
    check_memory(&written(&capture), "smallest elements");
}

#[test]
fn writing_streams() {
    struct Nowhere;
    impl std::io::Write for Nowhere {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let capture = sample::busy(100_000, 5);
    let before = thread_counts();
    write(&capture, Nowhere).unwrap();
    let taken = (thread_counts() - before).bytes;
    // A section, and a few bytes per site: the file has 2 MB.
    assert!(taken < 100 * 1024, "{taken}");
}

/// Two bytes of a file are an event of 48: the reader goes as far as it may, and no further.
#[test]
fn a_maximum_of_memory_is_held() {
    const MAXIMUM: u64 = 4 << 20;
    let thread = Thread { events: vec![Event::PageFault { at_ns: 0 }; 1_000_000], ..Thread::default() };
    let file = written(&Capture { threads: vec![thread], ..Capture::default() });
    let before = thread_counts();
    assert!(read_within(&file, MAXIMUM).is_err());
    let taken = (thread_counts() - before).bytes;
    // A list that doubles has been handed out up to four times what it holds, old places included.
    assert!(taken <= 4 * MAXIMUM + 4_096, "{taken} bytes were taken for a file of {}", file.len());
    assert!(read(&file).is_ok(), "an ordinary maximum has room for it");
}
