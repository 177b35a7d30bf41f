//! The exporter: takes full pages, makes lines of them, and gives these to the sinks. On a thread of low priority, which
//! looks for pages ten times a second, since waking it would cost the frame a system call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_queue::ArrayQueue;
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::log_warn;

use crate::{
    backlog::Backlog,
    counts::{SharedCounts, add},
    error::StartError,
    file_sink::{FileSettings, FileSink},
    lines::{Batch, Identity, LineWriter},
    log::ANALYTICS,
    page::{PAGE_BYTES, Page},
    post_sink::{Post, PostSettings, PostSink},
};

/// How often it looks for pages.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Where events go. Without any sink they are emitted, counted, and gone.
#[derive(Default)]
pub struct Sinks {
    pub file: Option<FileSettings>,
    pub post: Option<(PostSettings, Box<dyn Post>)>,
}

/// The frame's end of it: hands pages over.
pub struct FrameEvents {
    full: Arc<ArrayQueue<Box<Page>>>,
    empty: Arc<ArrayQueue<Box<Page>>>,
    counts: Arc<SharedCounts>,
    sequence: u64,
}

impl FrameEvents {
    /// At a frame's end, a worker's page: what was emitted into it gets its sequence numbers and goes to the exporter, and
    /// the worker gets an empty one. If none is empty the worker keeps its page, for as long as it has room; while half of all
    /// wait, so it does until its own is half full, so that a burst finds pages and not their first lines. Two exchanges of
    /// a pointer; never waits, never allocates.
    pub fn hand_over(&mut self, page: &mut Option<Box<Page>>, unix_offset_ms: i64) {
        let Some(own) = page.as_mut().filter(|own| !own.is_empty()) else { return };
        let (emitted, dropped) = own.take_news();
        add(&self.counts.emitted, emitted.into());
        add(&self.counts.dropped_page, dropped.into());
        let is_prompt = self.full.len() < self.full.capacity() / 2 || own.is_half_full();
        let Some(empty) = is_prompt.then(|| self.empty.pop()).flatten() else { return };
        let mut full = std::mem::replace(own, empty);
        full.sequence = self.sequence;
        full.unix_offset_ms = unix_offset_ms;
        self.sequence += u64::from(full.emitted());
        // There is room for all pages that there are.
        let _ = self.full.push(full);
    }

    pub fn counts(&self) -> &Arc<SharedCounts> {
        &self.counts
    }
}

/// Writes and posts until it is told to end.
pub struct Exporter {
    /// Nothing is ever sent: its end is the order to stop.
    order: Option<SyncSender<()>>,
    threads: Vec<JoinHandle<()>>,
    /// Of the one that posts.
    post: Option<Arc<Backlog>>,
    /// All sinks have everything.
    is_done: Arc<AtomicBool>,
}

impl Exporter {
    /// The server has been told to stop. What is new is in the spool before it is posted, and what is there stays there.
    pub fn announce_end(&self) {
        self.post.iter().for_each(|backlog| backlog.announce_end());
    }

    /// After the last frame: takes what is left, brings it into files and to the receiver, or into the spool. What is
    /// asked for ends by itself: a request has its time-out. False: it was not done within `wait_max`, and is left.
    pub fn finish(mut self, wait_max: Duration) -> bool {
        self.announce_end();
        drop(self.order.take());
        let end = Instant::now() + wait_max;
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            if Instant::now() >= end {
                log_warn!(
                    ANALYTICS,
                    "analytics events are left behind: a sink did not take them in time; what is in the spool is sent by the next start"
                );
                self.threads.clear();
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        self.is_done.load(Ordering::Relaxed)
    }
}

/// The exporter's work without its thread.
pub(crate) struct Export {
    full: Arc<ArrayQueue<Box<Page>>>,
    empty: Arc<ArrayQueue<Box<Page>>>,
    counts: Arc<SharedCounts>,
    lines: LineWriter,
    file: Option<Arc<Backlog>>,
    post: Option<Arc<Backlog>>,
}

impl Export {
    /// `queue_bytes` of pages, beside those of the workers.
    pub fn new(
        identity: &Identity,
        queue_bytes: usize,
        counts: Arc<SharedCounts>,
        file: Option<Arc<Backlog>>,
        post: Option<Arc<Backlog>>,
    ) -> (Self, FrameEvents) {
        let pages = queue_bytes.div_ceil(PAGE_BYTES).max(1);
        let (full, empty) = (Arc::new(ArrayQueue::new(pages)), Arc::new(ArrayQueue::new(pages)));
        (0..pages).for_each(|_| drop(empty.push(Box::default())));
        let frame = FrameEvents { full: full.clone(), empty: empty.clone(), counts: counts.clone(), sequence: 0 };
        (Self { full, empty, counts, lines: LineWriter::new(identity), file, post }, frame)
    }

    /// Takes all pages that are there.
    pub fn turn(&mut self) {
        let Self { full, empty, counts, lines, file, post } = self;
        let mut give = |batch: Batch| {
            let batch = Arc::new(batch);
            for (sink, dropped) in [(&*file, &counts.dropped_file), (&*post, &counts.dropped_post)] {
                if sink.as_ref().is_some_and(|sink| !sink.push(&batch)) {
                    add(dropped, batch.events);
                }
            }
        };
        while let Some(mut page) = full.pop() {
            let malformed = lines.add(&page, &mut give);
            add(&counts.dropped_malformed, malformed);
            page.clear();
            let _ = empty.push(page);
        }
        lines.rest().into_iter().for_each(give);
    }

    /// What came last, and the end.
    pub fn end(&mut self) {
        self.turn();
        [&self.file, &self.post].into_iter().flatten().for_each(|sink| sink.close());
    }
}

/// Starts the threads: the exporter's, and one for each sink. `queue_bytes` of pages are allocated now.
pub fn start(identity: &Identity, queue_bytes: usize, sinks: Sinks) -> Result<(FrameEvents, Exporter), StartError> {
    let counts = Arc::<SharedCounts>::default();
    let Sinks { file, post } = sinks;
    let backlog = || Arc::<Backlog>::default();
    let (of_file, of_post) = (file.as_ref().map(|_| backlog()), post.as_ref().map(|_| backlog()));
    let ending = of_post.clone();
    let (mut export, frame) = Export::new(identity, queue_bytes, counts.clone(), of_file.clone(), of_post.clone());
    let mut threads = Vec::new();
    // Opened before any thread starts, so that an error leaves none behind.
    let file = file.map(|settings| FileSink::open(settings, &identity.session, counts.clone())).transpose()?;
    let post = post.map(|(settings, post)| PostSink::open(settings, post, counts.clone())).transpose()?;
    let (order, orders) = sync_channel(1);
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    threads.push(spawn_named("analytics", Priority::Low, move || {
        while orders.recv_timeout(LOOK_PERIOD) == Err(RecvTimeoutError::Timeout) {
            export.turn();
        }
        export.end();
        done.store(true, Ordering::Relaxed);
    }));
    if let (Some(mut sink), Some(backlog)) = (file, of_file) {
        threads.push(spawn_named("analytics-file", Priority::Low, move || sink.run(&backlog)));
    }
    if let (Some(mut sink), Some(backlog)) = (post, of_post) {
        threads.push(spawn_named("analytics-post", Priority::Low, move || sink.run(&backlog)));
    }
    let threads = threads.into_iter().collect::<Result<_, _>>().map_err(StartError::Thread)?;
    Ok((frame, Exporter { order: Some(order), threads, post: ending, is_done }))
}
