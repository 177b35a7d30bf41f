//! Control: the recorder, as other threads see it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use throng_capture::model::{TriggerKind, World};
use throng_platform::{allocator, ticks};

use crate::hand_off::HandOff;
use crate::kept::KeptCapture;
use crate::rules::Rules;
use crate::save_request::{Asked, AskedSave, SAVE_WITHIN, SaveError, Saved, StuckTick};
use crate::triggers::{Cause, Fired};
use crate::{log, memory, overruns, pool, saver, thread};

/// How often whoever waits for a capture looks whether the recorder has stopped.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A handle to a running recorder. Any thread.
#[derive(Clone)]
pub struct RecorderControl {
    hand_off: Arc<HandOff>,
}

/// The recorder's own figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderFigures {
    /// Scopes recorded by all threads.
    pub scopes: u64,
    /// Records that found no free block.
    pub records_lost: u64,
    /// Memory of its blocks.
    pub memory_bytes: u64,
    pub captures_saved: u64,
    /// Captures that could not be written.
    pub captures_failed: u64,
    /// Triggers that fired inside the cooldown of their cause.
    pub in_cooldown: u64,
    /// Triggers that fired while too many captures waited to be written, or scopes over budget while too many waited to
    /// be judged.
    pub crowded_out: u64,
    /// Scopes that were nested too deep to be recorded.
    pub scopes_too_deep: u64,
    /// Context switches and page faults that found the kernel's ring full.
    pub switches_lost: u64,
    /// Live blocks that should have been followed and found no place.
    pub samples_dropped: u64,
    /// Log lines that a capture will miss.
    pub log_lines_missed: u64,
    /// Large blocks that were freed in a tick because too many waited to be freed later.
    pub frees_not_deferred: u64,
}

impl RecorderControl {
    pub(crate) fn new(hand_off: Arc<HandOff>) -> RecorderControl {
        RecorderControl { hand_off }
    }

    /// Saves the last seconds now, and waits until the file is there. Works while the frame's thread is stuck.
    pub fn save_now(&self, note: &str) -> Result<Saved, SaveError> {
        if self.hand_off.settings.captures.is_none() {
            return Err(SaveError::NoFolder);
        }
        let (reply, answer) = channel();
        if !self.ask(note, Asked::ByHand(reply)) {
            if self.hand_off.is_closed() {
                return Err(SaveError::Stopped);
            }
            self.hand_off.counts.failed.fetch_add(1, Ordering::Relaxed);
            return Err(SaveError::TooMany);
        }
        let give_up_at = Instant::now() + SAVE_WITHIN;
        loop {
            match answer.recv_timeout(LOOK_EVERY) {
                Ok(saved) => return saved,
                Err(RecvTimeoutError::Disconnected) => return Err(SaveError::Stopped),
                Err(RecvTimeoutError::Timeout) if self.hand_off.is_closed() => return Err(SaveError::Stopped),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= give_up_at => return Err(SaveError::TooSlow),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Has the last seconds saved for a world that is stuck, and waits for nothing: whether they were is in the recorder's
    /// figures and in its log. Works while the frame's thread is stuck. False within the cooldown of its kind of world, while
    /// too many captures wait, or after the recorder's end: both are counted, and whoever is stuck still may be told of again.
    /// Without a folder, or where the rule is off, there is nothing to do. Allocates; takes locks that are held for moments.
    pub fn report_stuck(&self, stuck: StuckTick, note: &str) -> bool {
        let rules_say_so = || self.hand_off.rules().trigger(TriggerKind::StuckTick).is_on;
        if self.hand_off.settings.captures.is_none() || !rules_say_so() {
            return true;
        }
        let fired = Fired {
            kind: TriggerKind::StuckTick,
            cause: Cause::Tick,
            world_kind: stuck.world_kind,
            measured: stuck.running_ns,
            allowed: stuck.allowed_ns,
            world: Some(stuck.world),
            at: ticks::now(),
            frame: u64::MAX,
        };
        self.hand_off.admits_stuck(&fired) && self.ask(note, Asked::Watchdog(fired))
    }

    fn ask(&self, note: &str, asked: Asked) -> bool {
        self.hand_off.ask(AskedSave { note: note.into(), at_ticks: ticks::now(), asked })
    }

    /// Writes the last seconds to a file of its own, on the calling thread: for a process that is about to die and
    /// cannot rely on any other thread. Locks that only other threads hold for moments are waited for.
    pub fn save_crash(&self, path: &Path, world: Option<u32>) -> io::Result<()> {
        let bytes = saver::crash_capture(&self.hand_off, world)?;
        fs::write(path, bytes)
    }

    /// The latest captures that were written, oldest first: 32 at most. Allocates.
    pub fn kept_captures(&self) -> Vec<KeptCapture> {
        self.hand_off.kept.all()
    }

    /// The folder that captures go to.
    pub fn captures_folder(&self) -> Option<&Path> {
        self.hand_off.settings.captures.as_deref()
    }

    /// Puts other rules into force, with the next frame.
    pub fn set_rules(&self, rules: Rules) {
        self.hand_off.set_rules(rules);
    }

    pub fn rules(&self) -> Rules {
        self.hand_off.rules()
    }

    /// Names of the worlds, for captures.
    pub fn set_worlds(&self, worlds: Vec<World>) {
        self.hand_off.set_worlds(worlds);
    }

    pub fn figures(&self) -> RecorderFigures {
        let (counts, stuck) = (&self.hand_off.counts, self.hand_off.stuck_counts());
        RecorderFigures {
            scopes: thread::all().iter().map(|cells| cells.scopes()).sum(),
            records_lost: pool().lost(),
            memory_bytes: pool().size_bytes() as u64,
            captures_saved: counts.saved.load(Ordering::Relaxed),
            captures_failed: counts.failed.load(Ordering::Relaxed),
            in_cooldown: counts.in_cooldown.load(Ordering::Relaxed) + stuck.in_cooldown,
            crowded_out: counts.crowded_out.load(Ordering::Relaxed) + overruns::not_kept() + stuck.crowded_out,
            scopes_too_deep: thread::too_deep_count(),
            switches_lost: counts.switches_lost.load(Ordering::Relaxed) + self.hand_off.core_records_lost(),
            samples_dropped: memory::coverage().samples_dropped,
            log_lines_missed: log::lines_missed(),
            frees_not_deferred: allocator::deferred_frees().refused,
        }
    }
}
