//! Promise: over real HTTP every event reaches the receiver, or is counted by the cause for which it did not; whatever the
//! receiver does, the frame's end is not held up.

use std::{
    collections::BTreeSet,
    io::Read,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use throng::settings::AnalyticsSettings;
use throng_analytics::{AnalyticsCounts, Exporter, FrameEvents, Identity, Page, Sinks, start, tick::begin_tick};

throng_analytics::analytics!(Step = "step", 1 { number: u64 });

/// What the receiver does with a request.
#[derive(Clone, Copy)]
enum Manner {
    Takes,
    Answers(u16),
    /// Says nothing for so long.
    Stalls(Duration),
}

#[derive(Clone)]
struct Remote(Arc<Mutex<Held>>);

/// How the receiver behaves, and which events it has.
struct Held {
    manner: Manner,
    sequences: BTreeSet<u64>,
}

/// A real HTTP server, on a thread of its own for as long as the test's process lives.
fn serve() -> (Remote, SocketAddr) {
    let remote = Remote(Arc::new(Mutex::new(Held { manner: Manner::Takes, sequences: BTreeSet::new() })));
    let router = Router::new().route("/events", post(take)).with_state(remote.clone());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    (remote, told.recv().unwrap())
}

async fn take(State(Remote(remote)): State<Remote>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let manner = remote.lock().unwrap().manner;
    match manner {
        Manner::Takes => {}
        Manner::Answers(status) => return StatusCode::from_u16(status).unwrap(),
        Manner::Stalls(time) => tokio::time::sleep(time).await,
    }
    assert_eq!(headers["content-type"], "application/x-ndjson");
    assert_eq!(headers["authorization"], "Bearer s3cret");
    let mut lines = String::new();
    assert_eq!(headers["content-encoding"], "gzip");
    flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut lines).unwrap();
    let mut remote = remote.lock().unwrap();
    for line in lines.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        remote.sequences.insert(event["sequence"].as_u64().unwrap());
    }
    StatusCode::NO_CONTENT
}

impl Remote {
    fn set(&self, manner: Manner) {
        self.0.lock().unwrap().manner = manner;
    }

    fn has(&self) -> u64 {
        self.0.lock().unwrap().sequences.len() as u64
    }
}

/// The frame's side of a server that posts.
struct Frames {
    events: FrameEvents,
    exporter: Exporter,
    page: Option<Box<Page>>,
    longest: Duration,
}

impl Frames {
    fn begin(name: &str, address: SocketAddr) -> Self {
        let folder = std::env::temp_dir().join(format!("throng-receiver-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let key_file = folder.join("key");
        std::fs::write(&key_file, "s3cret\n").unwrap();
        let settings = AnalyticsSettings {
            url: Some(format!("http://{address}/events")),
            spool: Some(spool(&folder)),
            key_file: Some(key_file),
            ..AnalyticsSettings::default()
        };
        let mut how = settings.post().unwrap();
        how.period = Duration::from_millis(20);
        let receiver = throng_upload::receiver(&settings).unwrap().unwrap();
        let identity = Identity { server: "test".into(), session: "cafe".into() };
        let sinks = Sinks { file: None, post: Some((how, receiver)) };
        let (events, exporter) = start(&identity, settings.queue_bytes(), sinks).unwrap();
        Self { events, exporter, page: Some(Box::default()), longest: Duration::ZERO }
    }

    /// So many frames, of ten events each.
    fn run(&mut self, frames: u64) {
        for frame in 0..frames {
            let began = Instant::now();
            let tick = begin_tick(&mut self.page, 0, frame as u32, 0);
            (0..10).for_each(|number| Step { number }.emit());
            tick.end(&mut self.page);
            self.events.hand_over(&mut self.page, 0);
            self.longest = self.longest.max(began.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn counts(&self) -> AnalyticsCounts {
        self.events.counts().sums()
    }

    /// Runs frames in which nothing is emitted.
    fn until(&mut self, is_so: impl Fn(AnalyticsCounts) -> bool) {
        let began = Instant::now();
        while !is_so(self.counts()) {
            self.events.hand_over(&mut self.page, 0);
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", self.counts());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn spool(folder: &std::path::Path) -> PathBuf {
    folder.join("spool")
}

#[test]
fn a_receiver_that_fails_for_a_while_gets_everything_once_it_is_back() {
    let (remote, address) = serve();
    let mut frames = Frames::begin("fails", address);
    frames.run(50);
    frames.until(|counts| counts.posted_events == 500);
    remote.set(Manner::Answers(500));
    frames.run(50);
    frames.until(|counts| counts.post_errors > 0);
    assert!(frames.events.counts().is_away());
    frames.run(50);
    remote.set(Manner::Takes);
    frames.until(|counts| counts.posted_events == 1_500);
    assert!(frames.exporter.finish(Duration::from_secs(20)));
    assert_eq!((remote.has(), frames.events.counts().sums().dropped()), (1_500, 0));
}

#[test]
fn a_receiver_that_refuses_lines_for_good_makes_a_gap_as_large_as_the_count() {
    let (remote, address) = serve();
    let mut frames = Frames::begin("refuses", address);
    frames.run(20);
    frames.until(|counts| counts.posted_events == 200);
    remote.set(Manner::Answers(413));
    frames.run(20);
    frames.until(|counts| counts.dropped_refused > 0 && counts.dropped_refused + counts.posted_events == 400);
    remote.set(Manner::Takes);
    frames.run(20);
    frames.until(|counts| counts.posted_events + counts.dropped_refused == 600);
    let dropped = frames.counts().dropped_refused;
    assert!(frames.exporter.finish(Duration::from_secs(20)));
    let held = remote.0.lock().unwrap();
    let last = *held.sequences.last().unwrap();
    assert_eq!((last + 1, last + 1 - held.sequences.len() as u64), (600, dropped));
}

/// It stalls for longer than the test takes: a tick that waited for it would be seen.
#[test]
fn a_receiver_that_stalls_holds_nobody_up() {
    let (remote, address) = serve();
    remote.set(Manner::Stalls(Duration::from_secs(3_600)));
    let mut frames = Frames::begin("stalls", address);
    frames.run(300);
    assert_eq!((frames.counts().emitted, frames.counts().dropped()), (3_000, 0));
    assert!(frames.longest < Duration::from_secs(1), "{:?}", frames.longest);
    assert!(!frames.exporter.finish(Duration::from_millis(50)), "it says that something is left");
}

/// Promise: who ends in order waits less for it than a server has at its end (14 s), and all is in the spool then.
#[test]
fn a_receiver_that_never_answers_is_given_up_and_everything_is_in_the_spool() {
    let (remote, address) = serve();
    remote.set(Manner::Stalls(Duration::from_secs(3_600)));
    let mut frames = Frames::begin("never-answers", address);
    frames.run(30);
    while frames.page.as_ref().is_some_and(|page| !page.is_empty()) {
        frames.events.hand_over(&mut frames.page, 0);
    }
    let counts = frames.events.counts().clone();
    frames.exporter.announce_end();
    assert!(frames.exporter.finish(Duration::from_secs(14)), "{:?}", counts.sums());
    let sums = counts.sums();
    assert_eq!((sums.spooled_events, sums.posted_events, sums.dropped()), (300, 0, 0), "{sums:?}");
}

#[test]
fn a_receiver_that_is_not_there_leaves_everything_in_the_spool() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut frames = Frames::begin("nobody", nobody);
    frames.run(30);
    frames.until(|counts| counts.spooled_events > 0);
    while frames.page.as_ref().is_some_and(|page| !page.is_empty()) {
        frames.events.hand_over(&mut frames.page, 0);
    }
    let counts = frames.events.counts().clone();
    assert!(frames.exporter.finish(Duration::from_secs(20)));
    let sums = counts.sums();
    assert_eq!((sums.spooled_events, sums.posted_events, sums.dropped()), (300, 0, 0), "{sums:?}");
}
