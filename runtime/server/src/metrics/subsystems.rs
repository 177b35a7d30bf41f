//! What every subsystem took and waited for, of every frame, always.
//!
//! ```text
//! subsystem_time_us_total{subsystem="replication"}               all its scopes, on all threads, without others inside
//! subsystem_frame_us_window_max{subsystem="replication"}         its dearest frame of the last five minutes
//! subsystem_lock_wait_us_total, subsystem_lock_wait_frame_us_window_max
//! frame_thread_time_us_total{state="running"|"waiting"|"blocked"}  wall time of frames on the threads that record
//! ```
//!
//! Subsystems register with their first scope, so new ones appear while the server runs; that frame allocates, the others do not.
//! Cost: about 1 ns per subsystem and frame.

use throng_metrics::{Cells, CounterId, Registry, WindowMaxId};
use throng_platform::time::Nanos;
use throng_profiler::{FrameFigures, RecorderFigures, site};

use super::WINDOW_S;

#[derive(Default)]
pub(super) struct SubsystemMetrics {
    /// By number, as far as they are known. The first one is what is outside of every scope.
    known: Vec<OfSubsystem>,
    of_frames: Option<OfFrames>,
}

#[derive(Clone, Copy)]
struct OfSubsystem {
    time_us: CounterId,
    frame_max_us: WindowMaxId,
    lock_wait_us: CounterId,
    lock_wait_max_us: WindowMaxId,
}

struct OfFrames {
    running_us: CounterId,
    waiting_us: CounterId,
    blocked_us: CounterId,
    scopes: CounterId,
    /// In the order of `RECORDER`.
    recorder: Vec<CounterId>,
}

/// Name, help, and where the figure is.
type RecorderRow = (&'static str, &'static str, fn(&RecorderFigures) -> u64);

/// The recorder's own counts, its losses among them: none is silent.
const RECORDER: [RecorderRow; 10] = [
    ("profiler.captures_saved", "Captures written", |figures| figures.captures_saved),
    ("profiler.captures_failed", "Captures that could not be written", |figures| figures.captures_failed),
    ("profiler.triggers_in_cooldown", "Triggers that fired within a cooldown", |figures| figures.in_cooldown),
    ("profiler.triggers_crowded_out", "Triggers while too many captures waited", |figures| figures.crowded_out),
    ("profiler.records_lost", "Records that found no free block", |figures| figures.records_lost),
    ("profiler.scopes_too_deep", "Scopes nested too deep to be recorded", |figures| figures.scopes_too_deep),
    ("profiler.switches_lost", "Context switches that found the kernel's ring full", |figures| figures.switches_lost),
    ("profiler.samples_dropped", "Live blocks that found no place among the samples", |figures| {
        figures.samples_dropped
    }),
    ("profiler.log_lines_missed", "Log lines that a capture will miss", |figures| figures.log_lines_missed),
    ("memory.frees_not_deferred", "Large blocks freed in a tick, with too many waiting", |figures| {
        figures.frees_not_deferred
    }),
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
        let names = site::subsystems();
        for name in &names[self.known.len()..] {
            self.known.push(OfSubsystem::register(registry, name));
        }
        true
    }

    /// Adds a frame.
    pub fn add(&self, figures: &FrameFigures, cells: &mut Cells) {
        for (number, of) in self.known.iter().enumerate() {
            let (took, waited) = (Nanos(figures.subsystem_ns[number]), Nanos(figures.lock_wait_ns[number]));
            if took > Nanos::ZERO {
                cells.add(of.time_us, took.as_micros());
                cells.max(of.frame_max_us, took.as_micros());
            }
            if waited > Nanos::ZERO {
                cells.add(of.lock_wait_us, waited.as_micros());
                cells.max(of.lock_wait_max_us, waited.as_micros());
            }
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
        for (&id, (_, _, read)) in of.recorder.iter().zip(&RECORDER) {
            cells.add(id, read(now) - read(before));
        }
    }
}

impl OfSubsystem {
    fn register(registry: &mut Registry, name: &str) -> OfSubsystem {
        let labels = [("subsystem", name)];
        OfSubsystem {
            time_us: registry.register_counter_with(
                "subsystem.time_us",
                "Time of all scopes of the subsystem on all threads, without others inside",
                &labels,
            ),
            frame_max_us: registry.register_window_max_with(
                "subsystem.frame_us",
                "The same in one frame, the dearest of the last five minutes",
                WINDOW_S,
                &labels,
            ),
            lock_wait_us: registry.register_counter_with(
                "subsystem.lock_wait_us",
                "Time that the subsystem waited for locks",
                &labels,
            ),
            lock_wait_max_us: registry.register_window_max_with(
                "subsystem.lock_wait_frame_us",
                "The same in one frame, the longest of the last five minutes",
                WINDOW_S,
                &labels,
            ),
        }
    }
}

impl OfFrames {
    fn register(registry: &mut Registry) -> OfFrames {
        let mut of_state = |state: &str| {
            registry.register_counter_with(
                "frame.thread_time_us",
                "Wall time of frames on the threads that record, by what the thread did",
                &[("state", state)],
            )
        };
        OfFrames {
            running_us: of_state("running"),
            waiting_us: of_state("waiting"),
            blocked_us: of_state("blocked"),
            scopes: registry.register_counter("profiler.scopes", "Scopes recorded"),
            recorder: RECORDER.iter().map(|&(name, help, _)| registry.register_counter(name, help)).collect(),
        }
    }
}
