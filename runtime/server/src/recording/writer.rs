//! Writer: the recording's thread. It takes parts from the queue, compresses them and writes segments.
//!
//! Of low priority: where there is no time for it, parts wait, and then are lost and counted; frames never wait. It looks
//! into the queue twenty times a second, and writes a group when there is enough for one, or once a second. A segment that
//! is old or large enough is closed, and the next one begins; the oldest go when all have as many bytes as they may.
//!
//! A disk that takes nothing ends the segment where it was good. The log says so, and another one is tried after
//! [`TRY_AGAIN`]; what comes meanwhile is lost, counted, and every world is recorded again from its next checkpoint on.
//!
//! Sketch of the cost for 1,000 players at 20 Hz: 1 MB/s of blocks, LZ4 at 400 MB/s, 2.5 ms of a core each second; 0.4 MB/s
//! on disk.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use throng_profiler::{log_category, log_error, log_info, log_warn};
use throng_world::ids::WorldId;

use super::{
    blocks::{self, About, WorldPlan},
    counts::RecordingTotals,
    folder::{make_room, segment_path},
    queue::{Message, RecordingQueue},
    segment::{self, SegmentHeading},
};

log_category!(pub(crate) RECORDING = "server.recording");

/// Between two looks into the queue.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// A group is written when it has so much (bytes), or is so old.
pub(super) const GROUP_BYTES: usize = 1 << 20;
const GROUP_PERIOD: Duration = Duration::from_secs(1);

/// After an error of the disk.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// A segment has one of so many parts of all bytes, and a group more, at most, so that there are always some whole ones.
const SEGMENTS_MIN: u64 = 8;

/// What the thread is told at its start.
pub(crate) struct Order {
    pub folder: PathBuf,
    pub bytes_max: u64,
    pub segment_s: u32,
    pub about: About,
    /// Texts of the rules that are in force; each segment has them as they are when it begins.
    pub rules: Arc<Mutex<Vec<String>>>,
    /// By chance: no other recording has it.
    pub recording_id: u64,
}

/// Where segments are put: files, or what a test has in their place.
pub(crate) trait Disk: Send {
    type File: SegmentWrite;

    /// A new file.
    fn create(&mut self, path: &Path) -> io::Result<Self::File>;
}

/// A segment's file.
pub(crate) trait SegmentWrite {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// What is behind so many bytes is not to be there.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

/// The operating system's files.
pub(crate) struct Files;

impl Disk for Files {
    type File = File;

    fn create(&mut self, path: &Path) -> io::Result<File> {
        File::create_new(path)
    }
}

impl SegmentWrite for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

pub(crate) struct Writer<D: Disk> {
    queue: Arc<RecordingQueue>,
    disk: D,
    order: Order,
    began: Instant,
    /// What worlds were made from.
    plans: HashMap<WorldId, Box<WorldPlan>>,
    /// Worlds whose plan is in this segment.
    told: HashSet<WorldId>,
    group: Vec<u8>,
    parts_in_group: u64,
    group_began: Instant,
    packed: Vec<u8>,
    segment: Option<Segment<D::File>>,
    number: u32,
    try_again_at: Option<Instant>,
    lost_told: u64,
    /// Of the server's recordings before this one.
    totals_before: RecordingTotals,
}

struct Segment<F> {
    file: F,
    bytes: u64,
    began: Instant,
}

impl<D: Disk> Writer<D> {
    pub fn new(queue: Arc<RecordingQueue>, order: Order, disk: D) -> Self {
        let (now, totals_before) = (Instant::now(), queue.counts.read());
        Self {
            queue,
            disk,
            order,
            began: now,
            plans: HashMap::new(),
            told: HashSet::new(),
            group: Vec::new(),
            parts_in_group: 0,
            group_began: now,
            packed: Vec::new(),
            segment: None,
            number: 0,
            try_again_at: None,
            lost_told: totals_before.parts_lost,
            totals_before,
        }
    }

    /// The thread, until the queue is to end and nothing waits in it. It has the lock while it works: nobody else wants it
    /// but whoever writes the last of a process that dies.
    pub fn run(writer: &Mutex<Self>) {
        while !writer.lock().unwrap_or_else(PoisonError::into_inner).look() {
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    /// Looks into the queue, and writes what it is time for. True: that was the last time.
    fn look(&mut self) -> bool {
        let is_ending = self.queue.is_ending();
        self.take_all();
        if is_ending {
            self.end();
        } else {
            if self.group_began.elapsed() >= GROUP_PERIOD {
                self.write_group();
                self.tell_lost();
            }
            self.rotate_if_due();
        }
        is_ending
    }

    fn end(&mut self) {
        self.close(true);
        self.tell_lost();
        let (now, before) = (self.queue.counts.read(), &self.totals_before);
        log_info!(
            RECORDING,
            segments = self.number,
            written_bytes = now.bytes_written - before.bytes_written,
            parts_lost = now.parts_lost - before.parts_lost,
            "the recording has ended"
        );
    }

    fn take_all(&mut self) {
        while let Some(message) = self.queue.pop() {
            self.take(message);
        }
        self.queue.counts.worlds.store(self.plans.len() as u64, Ordering::Relaxed);
    }

    /// Writes all that waits, on whichever thread.
    pub fn write_now(&mut self) {
        self.take_all();
        self.write_group();
    }

    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::World(world, plan) => {
                self.told.remove(&world);
                self.plans.insert(world, plan);
            }
            Message::Forget(world) => {
                self.told.remove(&world);
                self.plans.remove(&world);
            }
            Message::Part { world, number, bytes } => {
                // Of a world that no message has described it is the last of an earlier recording.
                if self.plans.contains_key(&world) && self.may_write() {
                    if self.told.insert(world)
                        && let Some(plan) = self.plans.get(&world)
                    {
                        blocks::write_world(world, plan, &mut self.group);
                    }
                    blocks::write_part(world, number, &mut self.group);
                    self.group.extend_from_slice(&bytes);
                    self.parts_in_group += 1;
                } else {
                    self.queue.count_lost(1, bytes.len());
                }
                self.queue.give_back(bytes);
                if self.group.len() >= GROUP_BYTES {
                    self.write_group();
                }
            }
        }
    }

    /// Whether there is a segment to write to; begins one if it is time.
    fn may_write(&mut self) -> bool {
        if self.segment.is_some() {
            return true;
        }
        if self.try_again_at.is_some_and(|at| Instant::now() < at) {
            return false;
        }
        match self.begin_segment() {
            Ok(()) => true,
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        self.order.about.rules.clone_from(&self.order.rules.lock().unwrap_or_else(PoisonError::into_inner));
        let Order { folder, bytes_max, about, recording_id, .. } = &self.order;
        let dropped = make_room(folder, *bytes_max, self.segment_bytes_max())?;
        self.queue.counts.segments_dropped.fetch_add(dropped, Ordering::Relaxed);
        self.number += 1;
        let mut file = self.disk.create(&segment_path(folder, about.unix_s, self.number))?;
        let mut bytes = Vec::new();
        SegmentHeading { number: self.number, recording_id: *recording_id }.write(&mut bytes);
        file.append(&bytes)?;
        self.segment = Some(Segment { file, bytes: bytes.len() as u64, began: Instant::now() });
        self.try_again_at = None;
        self.told.clear();
        blocks::write_about(about, &mut self.group);
        self.queue.counts.segments.fetch_add(1, Ordering::Relaxed);
        self.queue.begin_segment();
        Ok(())
    }

    fn segment_bytes_max(&self) -> u64 {
        self.order.bytes_max / SEGMENTS_MIN
    }

    pub(super) fn write_group(&mut self) {
        self.group_began = Instant::now();
        let Some(segment) = self.segment.as_mut().filter(|_| !self.group.is_empty()) else { return };
        let at_ms = self.began.elapsed().as_millis() as u32;
        self.packed.clear();
        segment::write_group(&self.group, at_ms, &mut self.packed);
        match segment.file.append(&self.packed) {
            Ok(()) => {
                segment.bytes += self.packed.len() as u64;
                self.queue.counts.bytes_written.fetch_add(self.packed.len() as u64, Ordering::Relaxed);
                self.clear_group();
            }
            Err(error) => {
                // What is before it stays good; the tail would be taken for damage.
                let _ = segment.file.cut(segment.bytes);
                self.queue.count_lost(self.parts_in_group, self.group.len());
                self.fail(&error);
            }
        }
        // One checkpoint of a large world must not stay for ever.
        if self.group.capacity() > 16 * GROUP_BYTES {
            (self.group, self.packed) = (Vec::new(), Vec::new());
        }
    }

    fn clear_group(&mut self) {
        self.group.clear();
        self.parts_in_group = 0;
    }

    /// Closes a segment that is old or large enough.
    pub(super) fn rotate_if_due(&mut self) {
        let (segment_s, bytes_max) = (u64::from(self.order.segment_s), self.segment_bytes_max());
        let is_over = |segment: &Segment<D::File>| {
            segment.began.elapsed() >= Duration::from_secs(segment_s) || segment.bytes >= bytes_max
        };
        if self.segment.as_ref().is_some_and(is_over) {
            self.close(false);
        }
    }

    /// As if [`TRY_AGAIN`] were over.
    #[cfg(test)]
    pub(super) fn try_again_now(&mut self) {
        self.try_again_at = None;
    }

    fn close(&mut self, is_last: bool) {
        if self.segment.is_none() {
            return;
        }
        blocks::write_closed(is_last, &mut self.group);
        self.write_group();
        self.segment = None;
    }

    fn fail(&mut self, error: &io::Error) {
        self.segment = None;
        self.clear_group();
        self.try_again_at = Some(Instant::now() + TRY_AGAIN);
        self.queue.counts.write_errors.fetch_add(1, Ordering::Relaxed);
        self.queue.break_all();
        log_error!(
            RECORDING,
            folder = %self.order.folder.display(),
            %error,
            again_s = TRY_AGAIN.as_secs(),
            "the recording cannot be written: give the disk room, or a smaller [recording] max_mb; it is tried again soon, and \
             there is a gap"
        );
    }

    fn tell_lost(&mut self) {
        let lost = self.queue.counts.parts_lost.load(Ordering::Relaxed);
        if lost > self.lost_told && self.try_again_at.is_none() {
            log_warn!(
                RECORDING,
                parts = lost - self.lost_told,
                waiting_bytes = self.queue.waiting_bytes(),
                "parts of the recording were lost, since the disk or its thread was too slow; their worlds are recorded again \
                 from their next checkpoints on"
            );
        }
        self.lost_told = lost;
    }
}
