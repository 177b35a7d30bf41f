//! Streams, as a page, a script and an attacker open them.

use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::watch::WATCHERS_MAX;
use crate::watch::document::{Frames, Health as HealthLine, Line, Past, Second, Worlds};

/// What became of the gathering.
#[derive(Default)]
pub(super) struct Watched {
    begun: AtomicUsize,
    ended: AtomicUsize,
    asked: AtomicUsize,
    /// Worlds in each second, by which a line is as long as wanted.
    worlds: AtomicUsize,
}

impl Watched {
    /// Of as many seconds as it was asked for frames.
    pub fn past(&self) -> Past {
        Past { second: (0..self.asked.load(Ordering::SeqCst) as u32).collect(), ..Past::default() }
    }
}

pub(super) struct Gathered(Arc<Watched>);

impl Gathered {
    pub fn begin(watched: Arc<Watched>) -> Self {
        watched.begun.fetch_add(1, Ordering::SeqCst);
        Self(watched)
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl WatchSource for Gathered {
    fn frames(&mut self) -> Frames {
        let number = self.0.asked.fetch_add(1, Ordering::SeqCst);
        Frames { numbers: vec![number as f64], us: vec![700], lost: 0.0 }
    }

    fn health(&mut self) -> HealthLine {
        HealthLine { state: "running".into(), ..HealthLine::default() }
    }

    fn second(&mut self) -> Option<Second> {
        let world = "a world with a name of such a length that thousands of them are long".to_owned();
        let worlds = Worlds { world: vec![world; self.0.worlds.load(Ordering::SeqCst)], ..Worlds::default() };
        Some(Second { worlds, ..Second::default() })
    }
}

const QUICK: WatchPace = WatchPace {
    frames_every: Duration::from_millis(2),
    stalled_after: Duration::from_millis(300),
    watch_max: Duration::from_secs(60),
};

fn watched(worlds: usize, pace: WatchPace) -> (AdminHandle, Arc<Watched>) {
    let source = source("# EOF\n", HealthState::Running);
    source.watched.worlds.store(worlds, Ordering::SeqCst);
    let watched = source.watched.clone();
    let surroundings = Surroundings { watch_pace: pace, ..Surroundings::default() };
    (start_with(source, Console::new(), surroundings), watched)
}

/// An open stream whose head has come.
struct Stream(io::BufReader<TcpStream>);

impl Stream {
    /// `Err` with the status line of an answer that is none.
    fn open(admin: &AdminHandle, more: &str) -> Result<Self, String> {
        let mut stream = connect(admin);
        // Without chunks, as `throng top` asks.
        write!(stream, "GET /api/watch HTTP/1.0\r\nHost: localhost\r\n{more}\r\n").unwrap();
        let mut reader = io::BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
        if head.starts_with("HTTP/1.0 200") { Ok(Self(reader)) } else { Err(head) }
    }

    /// `None`: it is over.
    fn line(&mut self) -> Option<Line> {
        let mut text = String::new();
        match self.0.read_line(&mut text) {
            Ok(1..) if text.ends_with('\n') => Some(serde_json::from_str(&text).unwrap()),
            _ => None,
        }
    }

    fn until(&mut self, is_it: impl Fn(&Line) -> bool) -> Line {
        loop {
            let line = self.line().expect("the stream goes on");
            if is_it(&line) {
                return line;
            }
        }
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let give_up_at = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < give_up_at, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_watcher_is_told_who_he_is_and_what_was_then_frames_health_and_seconds() {
    let (admin, _) = watched(2, QUICK);
    let mut stream = Stream::open(&admin, &shows(WATCHER)).unwrap();
    let Some(Line::Hello(hello)) = stream.line() else { panic!("the first line says hello") };
    assert_eq!((hello.role.as_str(), hello.who.as_deref()), ("observe", Some("watcher")));
    assert_eq!(stream.line(), Some(Line::Past(Past::default())));
    let Line::Second(second) = stream.until(|line| matches!(line, Line::Second(_))) else { unreachable!() };
    assert_eq!(second.worlds.rows().count(), 2);
    let Line::Health(health) = stream.until(|line| matches!(line, Line::Health(_))) else { unreachable!() };
    assert_eq!((&*health.state, health.watch.watchers), ("running", 1));
    let Line::Frames(frames) = stream.until(|line| matches!(line, Line::Frames(_))) else { unreachable!() };
    let Line::Frames(next) = stream.until(|line| matches!(line, Line::Frames(_))) else { unreachable!() };
    assert_eq!((frames.us, next.numbers[0]), (vec![700], frames.numbers[0] + 1.0));
    // Who comes later is told of what was until then, once.
    let mut later = Stream::open(&admin, "").unwrap();
    assert!(matches!(later.line(), Some(Line::Hello(_))));
    let Some(Line::Past(past)) = later.line() else { panic!("what was comes next") };
    assert!(f64::from(*past.second.last().unwrap()) >= next.numbers[0], "{past:?}");
    for _ in 0..20 {
        assert!(!matches!(later.line().unwrap(), Line::Past(_) | Line::Hello(_)));
    }
}

/// Promise: without a watcher nothing is gathered, and all watchers share what is.
#[test]
fn nothing_is_gathered_while_nobody_watches() {
    let (admin, watched) = watched(1, QUICK);
    let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!((count(&watched.begun), count(&watched.asked)), (0, 0));
    for round in 1..=2 {
        let streams: Vec<Stream> = (0..3).map(|_| Stream::open(&admin, "").unwrap()).collect();
        for mut stream in streams {
            stream.until(|line| matches!(line, Line::Second(_)));
            assert_eq!((count(&watched.begun), count(&watched.ended)), (round, round - 1), "one gathering for all");
        }
        wait_until("the gathering ends with the last watcher", || count(&watched.ended) == round);
        let asked = count(&watched.asked);
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(count(&watched.asked), asked);
    }
}

#[test]
fn watchers_have_places_of_their_own_and_keep_nobody_from_asking() {
    let (admin, _) = watched(1, QUICK);
    let mut streams: Vec<Stream> = (0..WATCHERS_MAX).map(|_| Stream::open(&admin, "").unwrap()).collect();
    let refused = Stream::open(&admin, "").err().expect("one too many");
    assert!(refused.starts_with("HTTP/1.0 503"), "{refused}");
    // As many short connections as ever.
    let _silent: Vec<TcpStream> = (0..bounds::CONNECTIONS_MAX - 1).map(|_| connect(&admin)).collect();
    check(&admin, "/health", &["200 OK"]);
    drop(streams.pop());
    wait_until("a place is free again", || Stream::open(&admin, "").is_ok());
    check(&admin, "/metrics", &["admin.watchers_refused[] "]);
}

/// Promise: who reads slowly loses the oldest lines, and who reads nothing loses the stream; others notice nothing.
#[test]
fn a_watcher_that_takes_nothing_is_cut_off_and_counted() {
    let (admin, _) = watched(3_000, QUICK);
    let mut stalled = Stream::open(&admin, "").unwrap();
    let mut reads = Stream::open(&admin, "").unwrap();
    let give_up_at = Instant::now() + Duration::from_secs(60);
    loop {
        reads.until(|line| matches!(line, Line::Health(_)));
        let answer = request(&admin, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if answer.contains("admin.watchers_stalled[] 1") {
            break;
        }
        assert!(Instant::now() < give_up_at, "{answer}");
    }
    // What was on its way comes, and then the end.
    while stalled.line().is_some() {}
    let Line::Health(health) = reads.until(|line| matches!(line, Line::Health(line) if line.watch.watchers == 1))
    else {
        unreachable!()
    };
    assert!(health.watch.lines_dropped > 0.0, "{health:?}");
}

#[test]
fn a_stream_ends_when_its_time_is_over() {
    let watch_max = Duration::from_millis(200);
    let (admin, watched) = watched(1, WatchPace { watch_max, ..QUICK });
    let began = Instant::now();
    let mut stream = Stream::open(&admin, "").unwrap();
    while stream.line().is_some() {}
    assert!(began.elapsed() >= watch_max, "{:?}", began.elapsed());
    wait_until("and what is gathered with it", || watched.ended.load(Ordering::SeqCst) == 1);
}

/// A page that was loaded from a name which means this host by now is another server's.
#[test]
fn pages_of_other_servers_get_neither_page_nor_stream() {
    let (admin, watched) = watched(1, QUICK);
    for path in ["/", "/viewer", "/api/watch", "/api/captures", "/api/captures/scope/1.capture"] {
        let ask = |host: &str, more: &str| {
            request(&admin, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").as_bytes())
        };
        let refused = [
            ask("evil.example:9100", ""),
            ask("127.0.0.1.evil.example", ""),
            ask("127.0.0.1:9100", "Origin: http://evil.example\r\n"),
            ask("127.0.0.1:9100", "Origin: null\r\n"),
            ask("127.0.0.1:9100", "Sec-Fetch-Site: cross-site\r\n"),
        ];
        for answer in refused {
            assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
        }
    }
    assert_eq!(watched.begun.load(Ordering::SeqCst), 0);
    let page = request(&admin, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for header in ["frame-ancestors 'none'", "x-frame-options: DENY", "nosniff", "no-store", "text/html"] {
        assert!(page.contains(header), "{header}");
    }
}

#[test]
fn without_captures_there_are_directions() {
    let (admin, _) = watched(1, QUICK);
    for path in ["/api/captures", "/api/captures/scope/x/1.capture", "/api/stories/scope/x/1.capture"] {
        check(&admin, path, &["404 Not Found", "[recorder] captures"]);
    }
}
