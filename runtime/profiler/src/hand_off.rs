//! Hand-off: the queues and slots between the frame's thread, the recorder's thread and whoever asks for a capture.
//!
//! The frame's thread never waits here: queues are lock-free, and where there is a lock it only tries. What it could
//! not hand over it keeps until the next frame.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use throng_capture::model::{SwitchSource, World};
use throng_platform::ticks::{self, Calibration};

use crate::capture_builder::FrameNote;
use crate::cores::CoreHistory;
use crate::kept::KeptCaptures;
use crate::rules::Rules;
use crate::save_request::AskedSave;
use crate::settings::RecorderSettings;
use crate::switches::SwitchHistory;
use crate::triggers::{Fired, TriggerCounts, Triggers};

/// Frames that are remembered: 16 s at 128 Hz, more than blocks reach back.
const FRAMES_MAX: usize = 2048;

/// Captures that may wait to be saved.
const REQUESTS_MAX: usize = 16;

pub(crate) struct HandOff {
    pub settings: RecorderSettings,
    /// When the recorder started, of the monotonic clock (ns).
    pub start_ns: u64,
    pub switches: SwitchRecords,
    frames: Mutex<VecDeque<FrameNote>>,
    requests: ArrayQueue<Fired>,
    /// What the recorder's thread has noticed, for the frame's thread to judge.
    noticed: ArrayQueue<Fired>,
    /// None from the recorder's end on.
    asked: Mutex<Option<Vec<AskedSave>>>,
    rules: Mutex<Rules>,
    /// Counts changes of `rules`; written under its lock.
    rules_version: AtomicU64,
    /// What judges stuck ticks, by rules of this version: the frame's thread may be stuck itself.
    stuck: Mutex<(u64, Triggers)>,
    worlds: Mutex<Arc<Vec<World>>>,
    /// Clients and worlds. Written by the frame's thread, read by the recorder's once a second for its own sake alone:
    /// relaxed.
    pub population: AtomicU64,
    is_stopping: AtomicBool,
    /// Nothing is to be watched. Written by the frame's thread, obeyed by the recorder's with its next turn: relaxed.
    rests: AtomicBool,
    bell: Condvar,
    /// With `bell`: the recorder's thread sleeps under it.
    asleep: Mutex<()>,
    pub counts: Counts,
    pub kept: KeptCaptures,
}

/// What tells captures about switches.
pub(crate) struct SwitchRecords {
    pub source: SwitchSource,
    /// Why it is not a better one; empty with the best one, and if nobody wanted it.
    pub why_not: String,
    pub history: SwitchHistory,
    /// Who had our cores, where that is told.
    pub cores: Option<CoreHistory>,
}

/// Figures for reports. Each is written by one thread and read by any, for its own sake alone: relaxed.
#[derive(Default)]
pub(crate) struct Counts {
    pub saved: AtomicU64,
    pub failed: AtomicU64,
    pub switches_lost: AtomicU64,
    pub in_cooldown: AtomicU64,
    pub crowded_out: AtomicU64,
}

impl HandOff {
    pub fn new(settings: RecorderSettings, switches: SwitchRecords) -> HandOff {
        let rules = settings.rules.clone();
        let second = Calibration::get().ticks(1_000_000_000);
        HandOff {
            settings,
            start_ns: ticks::monotonic_ns(),
            switches,
            frames: Mutex::new(VecDeque::with_capacity(FRAMES_MAX)),
            requests: ArrayQueue::new(REQUESTS_MAX),
            noticed: ArrayQueue::new(REQUESTS_MAX),
            asked: Mutex::new(Some(Vec::new())),
            stuck: Mutex::new((0, Triggers::new(rules.clone(), second))),
            rules: Mutex::new(rules),
            rules_version: AtomicU64::new(0),
            worlds: Mutex::default(),
            population: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            bell: Condvar::new(),
            asleep: Mutex::default(),
            counts: Counts::default(),
            kept: KeptCaptures::default(),
        }
    }

    /// Records of the cores that found a ring full.
    pub fn core_records_lost(&self) -> u64 {
        self.switches.cores.as_ref().map_or(0, CoreHistory::records_lost)
    }

    /// Whether triggers save: there is a folder for it.
    pub fn saves_by_itself(&self) -> bool {
        self.settings.captures.is_some()
    }

    /// Remembers a frame; its note is left with the memory of an older one. Skipped if a capture reads the frames just
    /// now.
    pub fn keep_frame(&self, note: &mut FrameNote, counts: TriggerCounts) {
        self.counts.in_cooldown.store(counts.in_cooldown, Ordering::Relaxed);
        self.counts.crowded_out.store(counts.crowded_out, Ordering::Relaxed);
        let Ok(mut frames) = self.frames.try_lock() else { return };
        let mut next =
            if frames.len() == FRAMES_MAX { frames.pop_front().unwrap_or_default() } else { FrameNote::default() };
        next.number = note.number;
        std::mem::swap(&mut next, note);
        frames.push_back(next);
    }

    /// Frames that overlap a time (ticks). Recorder's thread; allocates.
    pub fn frames_between(&self, begin: u64, end: u64) -> Vec<FrameNote> {
        let frames = lock(&self.frames);
        frames.iter().filter(|note| note.end_ticks >= begin && note.begin_ticks <= end).cloned().collect()
    }

    /// Whether another capture may wait to be saved.
    pub fn has_room(&self) -> bool {
        !self.requests.is_full()
    }

    /// Asks for a capture. Frame's thread, when there is room.
    pub fn request(&self, fired: Fired) {
        let pushed = self.requests.push(fired);
        debug_assert!(pushed.is_ok(), "the frame's thread has looked whether there is room");
    }

    pub fn take_request(&self) -> Option<Fired> {
        self.requests.pop()
    }

    /// Recorder's thread: something for the frame's thread to judge. What finds no room is noticed again a second
    /// later.
    pub fn notice(&self, fired: Fired) {
        let _ = self.noticed.push(fired);
    }

    pub fn take_noticed(&self) -> Option<Fired> {
        self.noticed.pop()
    }

    /// Asks for a capture, and wakes the recorder's thread. False if too many wait, or nobody is there any more.
    pub fn ask(&self, save: AskedSave) -> bool {
        let mut asked = lock(&self.asked);
        let Some(waiting) = asked.as_mut().filter(|waiting| waiting.len() < REQUESTS_MAX) else { return false };
        waiting.push(save);
        self.bell.notify_one();
        true
    }

    pub fn take_asked(&self) -> Vec<AskedSave> {
        lock(&self.asked).as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether a stuck tick is to be saved: there is room, its rule is on, and none of its kind of world was saved lately.
    /// The watchdog's thread.
    pub fn admits_stuck(&self, fired: &Fired) -> bool {
        let mut stuck = lock(&self.stuck);
        let version = self.rules_version.load(Ordering::Acquire);
        if stuck.0 != version {
            stuck.1.set_rules(self.rules());
            stuck.0 = version;
        }
        let has_room = lock(&self.asked).as_ref().is_some_and(|waiting| waiting.len() < REQUESTS_MAX);
        if !has_room {
            stuck.1.counts.crowded_out += 1;
        }
        has_room && stuck.1.admit(fired)
    }

    /// What became of stuck ticks.
    pub fn stuck_counts(&self) -> TriggerCounts {
        lock(&self.stuck).1.counts
    }

    /// Nothing more is saved: whoever waits for a capture by hand hears of it.
    pub fn close(&self) {
        *lock(&self.asked) = None;
    }

    pub fn is_closed(&self) -> bool {
        lock(&self.asked).is_none()
    }

    pub fn set_rules(&self, rules: Rules) {
        let mut current = lock(&self.rules);
        *current = rules;
        self.rules_version.fetch_add(1, Ordering::Release);
    }

    pub fn rules(&self) -> Rules {
        lock(&self.rules).clone()
    }

    /// Frame's thread: rules that it does not have yet; at the latest a frame after nobody else is at them.
    pub fn rules_newer_than(&self, version: u64) -> Option<(u64, Rules)> {
        if self.rules_version.load(Ordering::Acquire) == version {
            return None;
        }
        let rules = self.rules.try_lock().ok()?;
        Some((self.rules_version.load(Ordering::Acquire), rules.clone()))
    }

    pub fn set_worlds(&self, worlds: Vec<World>) {
        *lock(&self.worlds) = Arc::new(worlds);
    }

    pub fn worlds(&self) -> Arc<Vec<World>> {
        lock(&self.worlds).clone()
    }

    /// Sleeps until there is something to do by hand, or until `timeout`.
    pub fn sleep(&self, timeout: Duration) {
        let asleep = lock(&self.asleep);
        if !self.is_stopping() && lock(&self.asked).as_ref().is_none_or(Vec::is_empty) {
            drop(self.bell.wait_timeout(asleep, timeout));
        }
    }

    /// The recorder's thread looks seldom, or as often as usual from now on. Frame's thread: takes no lock, so a bell that
    /// rings just before it sleeps is not heard, and it looks once more seldom.
    pub fn rest(&self, rests: bool) {
        self.rests.store(rests, Ordering::Relaxed);
        if !rests {
            self.bell.notify_one();
        }
    }

    pub fn is_resting(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.bell.notify_one();
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

/// Poison is ignored: no panic can leave what these locks protect half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
