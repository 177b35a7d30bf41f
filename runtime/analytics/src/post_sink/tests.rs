//! Receivers that take, fail and refuse, and what becomes of events meanwhile.

use std::sync::Mutex;

use super::*;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-spool-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// A receiver that answers as it is told, and remembers what it took.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<Inbox>>);

#[derive(Default)]
struct Inbox {
    answer: Option<PostError>,
    lines: Vec<u8>,
    requests: u64,
}

impl Receiver {
    fn answer(&self, with: Option<PostError>) {
        self.0.lock().unwrap().answer = with;
    }

    fn taken(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().lines.clone()).unwrap()
    }

    fn requests(&self) -> u64 {
        self.0.lock().unwrap().requests
    }
}

impl Post for Receiver {
    fn post(&mut self, body: &[u8], is_gzip: bool) -> Result<(), PostError> {
        let mut inner = self.0.lock().unwrap();
        inner.requests += 1;
        if let Some(error) = &inner.answer {
            return Err(error.clone());
        }
        if is_gzip {
            flate2::read::GzDecoder::new(body).read_to_end(&mut inner.lines).unwrap();
        } else {
            inner.lines.extend_from_slice(body);
        }
        Ok(())
    }
}

fn sink(folder: &Path, receiver: &Receiver, spool_bytes_max: u64) -> (PostSink, Arc<SharedCounts>) {
    let counts = Arc::<SharedCounts>::default();
    let settings = PostSettings {
        spool: folder.to_owned(),
        spool_bytes_max,
        post_bytes_max: 20,
        period: Duration::ZERO,
        gzip: true,
    };
    (PostSink::open(settings, Box::new(receiver.clone()), counts.clone()).unwrap(), counts)
}

fn later() -> Option<PostError> {
    Some(PostError::Later("status 500".into()))
}

/// Runs it with these lines, each a batch of one event, to the end.
fn run(sink: &mut PostSink, lines: std::ops::Range<u32>) {
    let backlog = Backlog::default();
    for line in lines {
        assert!(backlog.push(&Arc::new(Batch { lines: format!("line {line:03}\n").into_bytes(), events: 1 })));
    }
    backlog.close();
    sink.run(&backlog);
}

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|line| format!("line {line:03}\n")).collect()
}

#[test]
fn what_the_receiver_takes_is_posted_in_order_and_nothing_is_left() {
    let (folder, receiver) = (folder("takes"), Receiver::default());
    let (mut sink, counts) = sink(&folder, &receiver, 1 << 20);
    run(&mut sink, 0..40);
    assert_eq!(receiver.taken(), lines(0..40));
    assert_eq!(counts.sums().posted_events, 40);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_it_does_not_take_waits_on_the_disk_and_the_next_run_sends_it_first() {
    let (folder, receiver) = (folder("waits"), Receiver::default());
    receiver.answer(later());
    let (mut sink_one, counts) = sink(&folder, &receiver, 1 << 20);
    run(&mut sink_one, 0..10);
    let sums = counts.sums();
    assert_eq!((sums.spooled_events, sums.posted_events, sums.post_errors), (10, 0, 1));
    assert!(counts.is_away());
    assert_eq!(receiver.requests(), 1, "nobody asks again before the pause is over");
    // A file that was not finished when the process died.
    fs::write(folder.join("0-1-7.unfinished"), "line").unwrap();
    receiver.answer(None);
    let (mut sink_two, counts) = sink(&folder, &receiver, 1 << 20);
    let backlog = Arc::<Backlog>::default();
    let to_sink = backlog.clone();
    let thread = std::thread::spawn(move || sink_two.run(&to_sink));
    while counts.sums().posted_events < 10 {
        std::thread::yield_now();
    }
    assert!(backlog.push(&Arc::new(Batch { lines: lines(10..11).into_bytes(), events: 1 })));
    backlog.close();
    thread.join().unwrap();
    assert_eq!(receiver.taken(), lines(0..11));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_full_spool_drops_what_is_new_and_counts_it() {
    let (folder, receiver) = (folder("full"), Receiver::default());
    receiver.answer(later());
    let (mut sink, counts) = sink(&folder, &receiver, 4 * 18);
    run(&mut sink, 0..20);
    let sums = counts.sums();
    assert_eq!((sums.spooled_events, sums.dropped_spool_full), (8, 12));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_spool_that_cannot_be_written_is_counted_too() {
    let (folder, receiver) = (folder("unwritable"), Receiver::default());
    receiver.answer(later());
    let (mut sink, counts) = sink(&folder, &receiver, 1 << 20);
    fs::remove_dir_all(&folder).unwrap();
    run(&mut sink, 0..20);
    assert_eq!(counts.sums().dropped_spool_error, 20);
}

#[test]
fn what_the_receiver_refuses_for_good_is_dropped_and_does_not_hold_up_the_rest() {
    let (folder, receiver) = (folder("refuses"), Receiver::default());
    receiver.answer(Some(PostError::Never("status 422".into())));
    let (mut sink, counts) = sink(&folder, &receiver, 1 << 20);
    run(&mut sink, 0..4);
    receiver.answer(None);
    run(&mut sink, 4..8);
    let sums = counts.sums();
    assert_eq!((sums.dropped_refused, sums.posted_events, sums.spooled_events), (4, 4, 0));
    assert_eq!(receiver.taken(), lines(4..8));
    fs::remove_dir_all(folder).unwrap();
}

/// A receiver that looks how many requests are on the disk while it takes one.
struct Looks(PathBuf, Arc<Mutex<Vec<usize>>>);

impl Post for Looks {
    fn post(&mut self, _: &[u8], _: bool) -> Result<(), PostError> {
        self.1.lock().unwrap().push(fs::read_dir(&self.0).unwrap().count());
        Ok(())
    }
}

/// Promise: whoever waits no longer for a receiver that never answers loses nothing by that.
#[test]
fn once_a_server_ends_what_is_new_is_on_the_disk_before_it_is_sent() {
    let (folder, seen) = (folder("ends"), Arc::<Mutex<Vec<usize>>>::default());
    let (mut sink, counts) = sink(&folder, &Receiver::default(), 1 << 20);
    sink.post = Box::new(Looks(folder.clone(), seen.clone()));
    run(&mut sink, 0..1);
    let backlog = Backlog::default();
    backlog.announce_end();
    assert!(backlog.push(&Arc::new(Batch { lines: lines(1..2).into_bytes(), events: 1 })));
    backlog.close();
    sink.run(&backlog);
    assert_eq!(*seen.lock().unwrap(), [0, 1]);
    let sums = counts.sums();
    assert_eq!((sums.posted_events, sums.spooled_events), (2, 0));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "what was sent is not sent again");
    fs::remove_dir_all(folder).unwrap();
}

/// Promise: a receiver that is slow at the end costs nothing either: beside one last request all is on the disk.
#[test]
fn once_a_server_ends_one_request_is_made_and_the_rest_is_on_the_disk() {
    let (folder, seen) = (folder("ends-slowly"), Arc::<Mutex<Vec<usize>>>::default());
    let (mut sink, counts) = sink(&folder, &Receiver::default(), 1 << 20);
    sink.post = Box::new(Looks(folder.clone(), seen.clone()));
    let backlog = Backlog::default();
    backlog.announce_end();
    let batch = |number| Arc::new(Batch { lines: lines(number..number + 1).into_bytes(), events: 1 });
    (0..20).for_each(|number| assert!(backlog.push(&batch(number))));
    backlog.close();
    sink.run(&backlog);
    let sums = counts.sums();
    assert_eq!(sums.posted_events + sums.spooled_events, 20);
    assert!(seen.lock().unwrap().len() <= 1 && sums.spooled_events >= 10, "{sums:?}, {seen:?}");
    fs::remove_dir_all(folder).unwrap();
}
