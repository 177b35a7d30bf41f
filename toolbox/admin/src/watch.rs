//! Watch: a stream of lines for whoever looks at a running server: the console page, `throng top`, scripts.
//!
//! `GET /api/watch` answers for as long as somebody reads: [lines](document) of JSON, frames four times a second and the
//! rest once. All watchers get the same lines, which are made once; before them each gets the last five minutes in what
//! charts show, which the server keeps for that. Without a watcher nothing is made, and nothing else is gathered on the
//! frame's thread ([`throng::watch`]).
//!
//! ```text
//! WatchSource --lines--> broadcast of TURNS_WAITING_MAX ---> one task for each watcher --1 turn's--> its connection
//!  every 250 ms              slow: the oldest are dropped        stalled for STALLED_AFTER: it ends
//! ```
//!
//! What watchers can make this process hold is bounded: `WATCHERS_MAX` of them, each with the lines above and the
//! buffers of one connection, for at most `WATCH_MAX`. What is dropped and refused is counted. The lines of one turn go
//! together, since each piece is a wake of two tasks and a call of the kernel.
//!
//! Runs on the admin thread. Cost with any number of watchers: some 0.5 ms a second to make the lines of a server of a
//! hundred worlds, and a copy into each socket; 0.3 ms and 20 KB once for each that comes.

mod body;
pub mod document;
mod gather;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use throng::metrics::LabelledCounters;
use throng_profiler::{log_category, log_warn, scope};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::AdminSource;
use crate::access::changes::Changes;
use crate::bounds::Life;
pub(crate) use body::Lines;
use document::{Frames, Health, Hello, Line, Second, WatchCost};
pub(crate) use gather::{ServerWatch, past};

log_category!(ADMIN = "admin");

/// Some people with a page each, and a script or two.
pub(crate) const WATCHERS_MAX: usize = 8;
/// Two seconds; whoever is further behind loses the oldest.
const TURNS_WAITING_MAX: usize = 8;
/// Nothing was taken for so long: nobody reads any more, or nobody could bear it.
const STALLED_AFTER: Duration = Duration::from_secs(5);
/// Then whoever still looks asks again, as the page does by itself.
const WATCH_MAX: Duration = Duration::from_secs(3600);
/// Between two lines of frames.
const FRAMES_EVERY: Duration = Duration::from_millis(250);
/// Between two seconds, in lines of frames.
const FRAMES_PER_SECOND: u32 = 4;

/// Somebody looks at a server. What is gathered for that ends when this is dropped.
pub trait WatchSource: Send {
    /// Frames that have ended since the last call.
    fn frames(&mut self) -> Frames;
    /// What is true of the server while its frame stands still, too. The watch's own part is filled in by whoever calls.
    fn health(&mut self) -> Health;
    /// The second that has ended last, once.
    fn second(&mut self) -> Option<Second>;
}

/// How watchers are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchPace {
    pub frames_every: Duration,
    pub stalled_after: Duration,
    pub watch_max: Duration,
}

impl Default for WatchPace {
    fn default() -> Self {
        Self { frames_every: FRAMES_EVERY, stalled_after: STALLED_AFTER, watch_max: WATCH_MAX }
    }
}

/// All watchers of a port.
pub(crate) struct Watchers {
    source: Arc<dyn AdminSource>,
    changes: Arc<Changes>,
    pace: WatchPace,
    places: Arc<Semaphore>,
    turns: broadcast::Sender<Turn>,
    /// Lines are being made. Its lock is held from the look whether anybody watches to the end of making.
    is_gathering: Mutex<bool>,
    counts: Counts,
}

/// The lines that were made in one turn.
#[derive(Clone)]
struct Turn {
    bytes: Bytes,
    /// Which ones these are of all that were made since the start.
    lines: Range<u64>,
}

/// Since the start. Written and read by the admin thread.
#[derive(Debug, Default)]
struct Counts {
    made: AtomicU64,
    dropped: AtomicU64,
    stalled: AtomicU64,
    refused: AtomicU64,
}

impl Watchers {
    pub(crate) fn new(source: Arc<dyn AdminSource>, changes: Arc<Changes>, pace: WatchPace) -> Arc<Self> {
        let (turns, _) = broadcast::channel(TURNS_WAITING_MAX);
        let places = Arc::new(Semaphore::new(WATCHERS_MAX));
        Arc::new(Self {
            source,
            changes,
            pace,
            places,
            turns,
            is_gathering: Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// A place for another watcher; `None`, and counted, if there is none.
    pub(crate) fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = self.places.clone().try_acquire_owned().ok();
        if place.is_none() {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// The lines for a watcher who has a place, for as long as his connection lasts.
    pub(crate) fn begin(self: &Arc<Self>, hello: Hello, life: &Arc<Life>, place: OwnedSemaphorePermit) -> Body {
        life.last((Instant::now() + self.pace.watch_max).into(), place);
        let (to, lines) = mpsc::channel(1);
        // There is room for one.
        let mut text = Vec::new();
        write(&Line::Hello(hello), &mut text);
        write(&Line::Past(self.source.past()), &mut text);
        let _ = to.try_send(text.into());
        let (all, received) = (self.clone(), self.turns.subscribe());
        let next = self.counts.made.load(Ordering::Relaxed);
        tokio::spawn(all.pass_on(received, next, to, life.clone()));
        let mut is_gathering = self.is_gathering.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut is_gathering, true) {
            tokio::spawn(self.clone().gather());
        }
        Body::new(Lines::new(lines))
    }

    /// What was dropped, cut off and refused.
    pub(crate) fn counters(&self) -> impl Iterator<Item = LabelledCounters> {
        let Counts { dropped, stalled, refused, .. } = &self.counts;
        let counts = [dropped, stalled, refused].map(|count| count.load(Ordering::Relaxed));
        let with_count =
            |((name, help), count)| LabelledCounters { name, help, keys: &[], rows: vec![(Vec::new(), count)] };
        FAMILIES.into_iter().zip(counts).map(with_count)
    }

    /// Passes lines on to one watcher, from the one of number `next` on, until it goes, or takes nothing any more.
    async fn pass_on(
        self: Arc<Self>,
        mut from: broadcast::Receiver<Turn>,
        mut next: u64,
        to: mpsc::Sender<Bytes>,
        life: Arc<Life>,
    ) {
        loop {
            let Turn { bytes, lines } = match from.recv().await {
                Ok(turn) => turn,
                // What the next turn has before it says how many lines these were.
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            self.counts.dropped.fetch_add(lines.start - next, Ordering::Relaxed);
            next = lines.end;
            match timeout(self.pace.stalled_after, to.send(bytes)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(_) => {
                    self.counts.stalled.fetch_add(1, Ordering::Relaxed);
                    let made = self.counts.made.load(Ordering::Relaxed);
                    self.counts.dropped.fetch_add(made - lines.start, Ordering::Relaxed);
                    log_warn!(ADMIN, "a watcher that takes nothing any more is cut off");
                    return life.end();
                }
            }
        }
    }

    /// Makes lines for as long as anybody watches.
    async fn gather(self: Arc<Self>) {
        let mut watch = self.source.clone().begin_watch();
        let mut turns = interval(self.pace.frames_every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut cost = WatchCost::default();
        // As long as the longest turn was, so that no line grows it anew.
        let mut text = Vec::new();
        for turn in 0_u32.. {
            turns.tick().await;
            if !self.is_watched() {
                break;
            }
            text.clear();
            let mut lines = 0;
            let frames = watch.frames();
            if !frames.numbers.is_empty() {
                write(&Line::Frames(frames), &mut text);
                lines += 1;
            }
            let (began, length) = (Instant::now(), text.len());
            if let Some(second) = watch.second() {
                scope!("admin.watch");
                write(&Line::Second(Box::new(second)), &mut text);
                lines += 1;
                (cost.us, cost.bytes) = (began.elapsed().as_secs_f64() * 1e6, (text.len() - length) as u32);
            }
            if turn.is_multiple_of(FRAMES_PER_SECOND) {
                cost.watchers = self.turns.receiver_count() as u32;
                cost.lines_dropped = self.counts.dropped.load(Ordering::Relaxed) as f64;
                let changes = self.changes.count() as f64;
                let health = Health { watch: cost.clone(), changes, ..watch.health() };
                write(&Line::Health(health), &mut text);
                lines += 1;
            }
            if lines > 0 {
                self.send(&text, lines);
            }
        }
    }

    fn send(&self, text: &[u8], lines: u64) {
        let first = self.counts.made.fetch_add(lines, Ordering::Relaxed);
        let _ = self.turns.send(Turn { bytes: Bytes::copy_from_slice(text), lines: first..first + lines });
    }

    /// Whether lines are wanted; if not, whoever comes next begins anew.
    fn is_watched(&self) -> bool {
        let mut is_gathering = self.is_gathering.lock().unwrap_or_else(PoisonError::into_inner);
        *is_gathering = self.turns.receiver_count() > 0;
        *is_gathering
    }
}

fn write(line: &Line, text: &mut Vec<u8>) {
    serde_json::to_writer(&mut *text, line).expect("numbers and texts");
    text.push(b'\n');
}

/// Dotted name and help, as `docs/metrics.md` has them.
pub(crate) const FAMILIES: [(&str, &str); 3] = [
    ("admin.watch_lines_dropped", "Lines that watchers of the admin port were too slow for."),
    ("admin.watchers_stalled", "Watchers that were cut off since they took nothing any more."),
    ("admin.watchers_refused", "Watchers that found no place."),
];
