//! Files that rotate, tear, and cannot be written.

use std::sync::Arc;

use super::*;
use crate::{BATCHES_WAITING_MAX, read};

/// A folder of this test alone, empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-analytics-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn sink(folder: &Path, file_bytes_max: u64, total_bytes_max: u64) -> (FileSink, Arc<SharedCounts>) {
    let counts = Arc::<SharedCounts>::default();
    let file_age_max = Duration::from_secs(3_600);
    let settings = FileSettings { folder: folder.to_owned(), file_bytes_max, file_age_max, total_bytes_max };
    (FileSink::open(settings, "cafe", counts.clone()).unwrap(), counts)
}

/// Ten events a batch.
fn batch(number: u64) -> Arc<Batch> {
    let line = |at: u64| format!("{{\"session\":\"cafe\",\"sequence\":{}}}\n", number * 10 + at);
    Arc::new(Batch { lines: (0..10).map(line).collect::<String>().into_bytes(), events: 10 })
}

fn run(sink: &mut FileSink, batches: impl Iterator<Item = u64>) {
    let backlog = Backlog::default();
    batches.for_each(|number| assert!(backlog.push(&batch(number))));
    backlog.close();
    sink.run(&backlog);
}

#[test]
fn files_rotate_by_size_and_the_oldest_go() {
    let folder = folder("rotate");
    let batch_bytes = batch(10).lines.len() as u64;
    let (mut sink, counts) = sink(&folder, 2 * batch_bytes, 6 * batch_bytes);
    run(&mut sink, 10..30);
    let found = read::folder(&folder, |_| {}).unwrap();
    assert_eq!((found.files, found.events, found.torn, found.malformed), (3, 60, 0, 0));
    let sums = counts.sums();
    assert_eq!((sums.file_events, sums.removed_files, sums.file_errors, sums.dropped_file), (200, 7, 0, 0));
    let session = &found.sessions["cafe"];
    assert_eq!((session.events, session.missing, session.last()), (60, 0, 299), "the newest stay");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_rotate_by_age() {
    let folder = folder("age");
    let (mut sink, _) = sink(&folder, 1 << 20, 1 << 30);
    sink.settings.file_age_max = Duration::ZERO;
    run(&mut sink, 0..3);
    assert_eq!(read::folder(&folder, |_| {}).unwrap().files, 3);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_line_that_was_torn_by_a_death_is_told_and_the_next_run_writes_beside_it() {
    let folder = folder("torn");
    let (mut first, _) = sink(&folder, 1 << 20, 1 << 30);
    run(&mut first, 0..2);
    let (path, bytes) = event_files(&folder).unwrap().pop().unwrap();
    File::options().write(true).open(path).unwrap().set_len(bytes - 3).unwrap();
    let (mut second, _) = sink(&folder, 1 << 20, 1 << 30);
    second.session = "beef".into();
    run(&mut second, 2..3);
    let found = read::folder(&folder, |_| {}).unwrap();
    assert_eq!((found.files, found.events, found.torn, found.malformed), (2, 29, 1, 0));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_write_that_fails_leaves_no_half_line_and_is_tried_again() {
    let folder = folder("full");
    let (mut sink, counts) = sink(&folder, 1 << 20, 1 << 30);
    // The disk is full; what is written there cannot be taken back either.
    let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
    sink.current = Some(Current { file, path: "/dev/full".into(), bytes: 0, began: Instant::now() });
    let backlog = Arc::<Backlog>::default();
    (0..3).for_each(|number| assert!(backlog.push(&batch(number))));
    backlog.close();
    sink.run(&backlog);
    let sums = counts.sums();
    assert_eq!((sums.file_errors, sums.file_events, sums.dropped_file), (1, 30, 0));
    let found = read::folder(&folder, |_| {}).unwrap();
    assert_eq!((found.events, found.torn, found.malformed), (30, 0, 0));
    assert!(!counts.is_away());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn while_nothing_can_be_written_events_wait_and_what_finds_no_room_is_counted() {
    let folder = folder("gone");
    let (mut sink, counts) = sink(&folder, 1 << 20, 1 << 30);
    fs::remove_dir_all(&folder).unwrap();
    let backlog = Arc::<Backlog>::default();
    let to_sink = backlog.clone();
    let thread = std::thread::spawn(move || sink.run(&to_sink));
    assert!(backlog.push(&batch(0)));
    while !counts.is_away() {
        std::thread::yield_now();
    }
    let refused = (1..=BATCHES_WAITING_MAX as u64 + 5).filter(|number| !backlog.push(&batch(*number))).count();
    assert_eq!(refused, 5);
    // The folder is back, as when somebody made room.
    fs::create_dir_all(&folder).unwrap();
    backlog.close();
    thread.join().unwrap();
    let sums = counts.sums();
    assert_eq!((sums.file_events, sums.dropped_file), ((BATCHES_WAITING_MAX as u64 + 1) * 10, 0));
    let found = read::folder(&folder, |_| {}).unwrap();
    assert_eq!((found.events, found.sessions["cafe"].missing), (sums.file_events, 0));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_server_that_ends_while_nothing_can_be_written_says_how_much_it_lost() {
    let folder = folder("lost");
    let (mut sink, counts) = sink(&folder, 1 << 20, 1 << 30);
    fs::remove_dir_all(&folder).unwrap();
    run(&mut sink, 0..4);
    let sums = counts.sums();
    assert_eq!((sums.file_events, sums.dropped_file), (0, 40));
}
