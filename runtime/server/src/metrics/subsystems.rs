//! What every subsystem took and waited for, of every frame, always.
//!
//! ```text
//! subsystem_time_us_total{subsystem="replication"}               all its scopes, on all threads, without others inside
//! subsystem_frame_us_window_max{subsystem="replication"}         its costliest frame of the last five minutes
//! subsystem_lock_wait_us_total, subsystem_lock_wait_frame_us_window_max
//! category_time_us_total{category="gameplay"}, category_frame_us_window_max   the same by heading
//! frame_thread_time_us_total{state="running"|"waiting"|"blocked"}  wall time of frames on the threads that record
//! ```
//!
//! Subsystems register with their first scope, so new ones appear while the server runs; that frame allocates, the
//! others do not. Cost: about 1 ns per subsystem and frame.

use throng_metrics::{Cells, CounterId, Registry, WindowMaxId};
use throng_platform::time::Nanos;
use throng_profiler::{FrameFigures, RecorderFigures, site};

use super::{Figure, WINDOW_S};

#[derive(Default)]
pub(super) struct SubsystemMetrics {
    /// By number, as far as they are known. The first one is what is outside of every scope.
    known: Vec<OfSubsystem>,
    categories: Vec<OfCategory>,
    of_frames: Option<OfFrames>,
}

#[derive(Clone, Copy)]
struct OfSubsystem {
    time_us: CounterId,
    frame_max_us: WindowMaxId,
    lock_wait_us: CounterId,
    lock_wait_max_us: WindowMaxId,
    /// Place of its heading among the categories.
    category: usize,
}

struct OfCategory {
    name: &'static str,
    time_us: CounterId,
    frame_max_us: WindowMaxId,
    /// In the frame that is being added up.
    took: Nanos,
}

struct OfFrames {
    running_us: CounterId,
    waiting_us: CounterId,
    blocked_us: CounterId,
    scopes: CounterId,
    /// In the order of `RECORDER`.
    recorder: Vec<CounterId>,
}

const TIME_US: Figure = Figure {
    name: "subsystem.time_us",
    help: "Time of all scopes of the subsystem on all threads, without others inside.",
    advice: "Says where the processor time goes. Label `subsystem`.",
};
const FRAME_US: Figure = Figure {
    name: "subsystem.frame_us",
    help: "The same in one frame, the costliest of the last five minutes.",
    advice: "Names the subsystem of a long frame. Give it a budget in the rules file, and a capture is kept when it takes more.",
};
const LOCK_WAIT_US: Figure = Figure {
    name: "subsystem.lock_wait_us",
    help: "Time that the subsystem waited for locks.",
    advice: "Threads are in each other's way; a capture names the lock and who held it.",
};
const LOCK_WAIT_FRAME_US: Figure = Figure {
    name: "subsystem.lock_wait_frame_us",
    help: "The same in one frame, the longest of the last five minutes.",
    advice: "As above.",
};
const CATEGORY_TIME_US: Figure = Figure {
    name: "category.time_us",
    help: "Time of all scopes under a heading on all threads: of each subsystem, under the heading of its first scope.",
    advice: "Compare builds by it: the headings stay while subsystems come and go. Label `category`; `idle` is waiting for work.",
};
const CATEGORY_FRAME_US: Figure = Figure {
    name: "category.frame_us",
    help: "The same in one frame, the costliest of the last five minutes.",
    advice: "Says what kind of work a long frame was; `throng_subsystem_frame_us_window_max` names the subsystem.",
};
const THREAD_TIME_US: Figure = Figure {
    name: "frame.thread_time_us",
    help: "Wall time of frames on the threads that record, by what the thread did: label `state` is running, waiting or blocked.",
    advice: "Waiting grows when there are more threads than cores, or when the host gives its cores to others; blocked, with locks.",
};
const SCOPES: Figure = Figure {
    name: "profiler.scopes",
    help: "Scopes recorded.",
    advice: "Each costs some 20 ns: fewer in inner loops.",
};

/// All families but the recorder's counts.
#[cfg(test)]
pub(super) const FIGURES: [(&Figure, &str); 8] = [
    (&TIME_US, "_total"),
    (&FRAME_US, "_window_max"),
    (&LOCK_WAIT_US, "_total"),
    (&LOCK_WAIT_FRAME_US, "_window_max"),
    (&CATEGORY_TIME_US, "_total"),
    (&CATEGORY_FRAME_US, "_window_max"),
    (&THREAD_TIME_US, "_total"),
    (&SCOPES, "_total"),
];

/// Where the figure is.
type RecorderRow = (Figure, fn(&RecorderFigures) -> u64);

const fn row(
    name: &'static str,
    help: &'static str,
    advice: &'static str,
    read: fn(&RecorderFigures) -> u64,
) -> RecorderRow {
    (Figure { name, help, advice }, read)
}

/// The recorder's own counts, its losses among them: none is silent.
pub(super) const RECORDER: [RecorderRow; 10] = [
    row("profiler.captures_saved", "Captures written.", "Something was slow: read them with `throng capture`.", |f| {
        f.captures_saved
    }),
    row(
        "profiler.captures_failed",
        "Captures that could not be written.",
        "The disk is full or the folder is not writable; the log says which.",
        |f| f.captures_failed,
    ),
    row(
        "profiler.triggers_in_cooldown",
        "Triggers that fired within a cooldown.",
        "The same cause again and again: the first capture shows it.",
        |f| f.in_cooldown,
    ),
    row(
        "profiler.triggers_crowded_out",
        "Triggers while too many captures waited.",
        "Captures were lost. A slow disk, or too many triggers: raise their limits in the rules file.",
        |f| f.crowded_out,
    ),
    row(
        "profiler.records_lost",
        "Records that found no free block.",
        "Captures have gaps: give the recorder more memory in the settings.",
        |f| f.records_lost,
    ),
    row(
        "profiler.scopes_too_deep",
        "Scopes nested too deep to be recorded.",
        "Their time is in the scope around them. Recursion with a scope in it: move the scope out.",
        |f| f.scopes_too_deep,
    ),
    row(
        "profiler.switches_lost",
        "Context switches that found the kernel's ring full.",
        "Captures say less of who took the core. Rare on a host that is not overloaded.",
        |f| f.switches_lost,
    ),
    row(
        "profiler.samples_dropped",
        "Live blocks that found no place among the samples.",
        "A capture's memory by scope is too low. Very much memory is live in many blocks.",
        |f| f.samples_dropped,
    ),
    row(
        "profiler.log_lines_missed",
        "Log lines that a capture will miss.",
        "The log is louder than its ring: raise its levels in the rules file.",
        |f| f.log_lines_missed,
    ),
    row(
        "memory.frees_not_deferred",
        "Large blocks freed in a tick, with too many waiting.",
        "Ticks pay for giving memory back: look for what allocates so much.",
        |f| f.frees_not_deferred,
    ),
];

impl SubsystemMetrics {
    /// Registers what is new. True if the cells are too small now.
    pub fn meet(&mut self, registry: &mut Registry) -> bool {
        let is_first = self.of_frames.is_none();
        if is_first {
            self.of_frames = Some(OfFrames::register(registry));
        }
        if self.known.len() == site::subsystems_count() {
            return is_first;
        }
        let (names, categories) = (site::subsystems(), site::subsystem_categories());
        for (name, category) in names.iter().zip(categories).skip(self.known.len()) {
            let known = self.categories.iter().position(|known| known.name == category);
            let category = known.unwrap_or_else(|| {
                self.categories.push(OfCategory::register(registry, category));
                self.categories.len() - 1
            });
            self.known.push(OfSubsystem::register(registry, name, category));
        }
        true
    }

    /// Adds a frame.
    pub fn add(&mut self, figures: &FrameFigures, cells: &mut Cells) {
        for (number, of) in self.known.iter().enumerate() {
            let (took, waited) = (Nanos(figures.subsystem_ns[number]), Nanos(figures.lock_wait_ns[number]));
            if took > Nanos::ZERO {
                cells.add(of.time_us, took.as_micros());
                cells.max(of.frame_max_us, took.as_micros());
                self.categories[of.category].took.0 += took.0;
            }
            if waited > Nanos::ZERO {
                cells.add(of.lock_wait_us, waited.as_micros());
                cells.max(of.lock_wait_max_us, waited.as_micros());
            }
        }
        for of in &mut self.categories {
            let took = std::mem::take(&mut of.took);
            cells.add(of.time_us, took.as_micros());
            cells.max(of.frame_max_us, took.as_micros());
        }
        if let Some(of) = &self.of_frames {
            cells.add(of.running_us, Nanos(figures.running_ns).as_micros());
            cells.add(of.waiting_us, Nanos(figures.waiting_ns).as_micros());
            cells.add(of.blocked_us, Nanos(figures.blocked_ns).as_micros());
            cells.add(of.scopes, figures.scopes);
        }
    }

    /// Adds what the recorder counted between two looks.
    pub fn add_recorder(&self, now: &RecorderFigures, before: &RecorderFigures, cells: &mut Cells) {
        let Some(of) = &self.of_frames else { return };
        for (&id, (_, read)) in of.recorder.iter().zip(&RECORDER) {
            cells.add(id, read(now) - read(before));
        }
    }
}

impl OfSubsystem {
    fn register(registry: &mut Registry, name: &str, category: usize) -> OfSubsystem {
        let labels = [("subsystem", name)];
        OfSubsystem {
            time_us: registry.register_counter_with(TIME_US.name, TIME_US.help, &labels),
            frame_max_us: registry.register_window_max_with(FRAME_US.name, FRAME_US.help, WINDOW_S, &labels),
            lock_wait_us: registry.register_counter_with(LOCK_WAIT_US.name, LOCK_WAIT_US.help, &labels),
            lock_wait_max_us: registry.register_window_max_with(
                LOCK_WAIT_FRAME_US.name,
                LOCK_WAIT_FRAME_US.help,
                WINDOW_S,
                &labels,
            ),
            category,
        }
    }
}

impl OfCategory {
    fn register(registry: &mut Registry, name: &'static str) -> OfCategory {
        let labels = [("category", name)];
        let (time, most) = (&CATEGORY_TIME_US, &CATEGORY_FRAME_US);
        OfCategory {
            name,
            time_us: registry.register_counter_with(time.name, time.help, &labels),
            frame_max_us: registry.register_window_max_with(most.name, most.help, WINDOW_S, &labels),
            took: Nanos::ZERO,
        }
    }
}

impl OfFrames {
    fn register(registry: &mut Registry) -> OfFrames {
        let mut of_state =
            |state: &str| registry.register_counter_with(THREAD_TIME_US.name, THREAD_TIME_US.help, &[("state", state)]);
        OfFrames {
            running_us: of_state("running"),
            waiting_us: of_state("waiting"),
            blocked_us: of_state("blocked"),
            scopes: registry.register_counter(SCOPES.name, SCOPES.help),
            recorder: RECORDER.iter().map(|(figure, _)| registry.register_counter(figure.name, figure.help)).collect(),
        }
    }
}
