//! A recording as a workload: its ticks are replayed on the calling thread, step by step as somebody asks.
//!
//! A step is so many ticks, of whichever worlds come next in the recording: the same ones in each process that replays it. Clients are not
//! there, so nothing is sent. What the recording needs between ticks - to be read, unpacked and hashed - is in no figure.

use throng::ids::WorldId;
use throng::recording::{RecordingFiles, WorldPlan};
use throng::replay::{DoneTick, Extent, ReplayGame, ReplayOptions, ReplayWatch};
use throng::world::input_log::LoggedTick;
use throng_platform::allocator;
use throng_profiler::thread::{ThreadClass, register};

use super::instructions::Instructions;
use super::meter::Meter;
use super::{PlantKind, ScopeTime, StepFigures, plant};

/// Of a longer recording no more is read (ms): pairs of processes are over long before.
const UNTIL_MS: u32 = 600_000;

/// A recording that is watched from step to step.
pub struct RecordedWorkload {
    extent: Extent,
    meter: Meter,
    instructions: Result<Instructions, String>,
    /// Ticks of this step, or of the warm-up, that are still to be done.
    left: u64,
    done: u64,
    is_warm: bool,
    is_over: bool,
    failed: Option<String>,
    step: Counted,
    /// What was counted when the tick began.
    before: Counted,
    states: u64,
}

#[derive(Clone, Copy, Default)]
struct Counted {
    allocations: u64,
    instructions: u64,
}

impl RecordedWorkload {
    /// Replays what was recorded in the first `warm_up_s`, then asks `next` how many ticks are the next step, with what the
    /// last one took; until it says none. Takes the calling thread for as long as that takes.
    ///
    /// # Errors
    /// If the recording is of another game, a world of it cannot be replayed, or it ends before `next` does.
    pub fn play(
        game: &ReplayGame,
        recording: &RecordingFiles,
        warm_up_s: f64,
        next: impl FnMut(&mut Self, Option<StepFigures>) -> Option<u32>,
    ) -> Result<(), String> {
        game.check(recording.about()).map_err(|error| error.to_string())?;
        register(ThreadClass::ShortTask);
        let extent = Extent::of(recording, (warm_up_s.max(0.0) * 1e3) as u32, UNTIL_MS);
        let workload = Self {
            left: if extent.ticks_after == 0 { 0 } else { extent.ticks_at_first },
            extent,
            meter: Meter::new(),
            instructions: Instructions::open(),
            done: 0,
            is_warm: false,
            is_over: false,
            failed: None,
            step: Counted::default(),
            before: Counted::default(),
            states: 0,
        };
        let mut playing = Playing { workload, next };
        if playing.workload.left == 0 {
            playing.turn();
        }
        if !playing.workload.is_over {
            let replayed = game.replay_watched(recording, &ReplayOptions::default(), &mut playing);
            replayed.map_err(|error| error.to_string())?;
        }
        let Self { failed, is_over, done, .. } = playing.workload;
        match failed {
            Some(error) => Err(error),
            None if !is_over => {
                Err(format!("it has no more than {done} ticks that can be replayed one after the other"))
            }
            None => Ok(()),
        }
    }

    /// How many ticks of how many worlds there are, and what is missing.
    pub fn extent(&self) -> &Extent {
        &self.extent
    }

    /// As [`Workload::slow`](super::Workload::slow).
    pub fn slow(&mut self, subsystem: &str, kind: PlantKind, share: f64) -> Result<(), String> {
        plant::set(subsystem, kind, share)
    }

    /// As [`Workload::instructions_missing`](super::Workload::instructions_missing).
    pub fn instructions_missing(&self) -> Option<&str> {
        self.instructions.as_ref().err().map(String::as_str)
    }

    /// As [`Workload::scopes`](super::Workload::scopes).
    pub fn scopes(&self, steps: usize) -> Vec<ScopeTime> {
        self.meter.scopes(steps)
    }

    fn count(&mut self) -> Counted {
        Counted {
            allocations: allocator::thread_counts().allocations,
            instructions: self.instructions.as_mut().map_or(0, Instructions::count),
        }
    }

    fn end_step(&mut self) -> StepFigures {
        let (times, waited_ns) = self.meter.end_step();
        let Counted { allocations, instructions } = std::mem::take(&mut self.step);
        StepFigures {
            times,
            allocations,
            packets_out: 0,
            bytes_out: 0,
            waited_ns,
            instructions: self.instructions.is_ok().then_some(instructions),
            states: self.states,
        }
    }
}

struct Playing<N> {
    workload: RecordedWorkload,
    next: N,
}

impl<N: FnMut(&mut RecordedWorkload, Option<StepFigures>) -> Option<u32>> Playing<N> {
    /// The warm-up or a step is over.
    fn turn(&mut self) {
        let workload = &mut self.workload;
        let figures = workload.end_step();
        let figures = std::mem::replace(&mut workload.is_warm, true).then_some(figures);
        match (self.next)(workload, figures) {
            Some(ticks) => workload.left = u64::from(ticks.max(1)),
            None => workload.is_over = true,
        }
        workload.meter.begin_step();
    }
}

impl<N: FnMut(&mut RecordedWorkload, Option<StepFigures>) -> Option<u32>> ReplayWatch for Playing<N> {
    fn begins(&mut self, _: WorldId, _: &WorldPlan, _: &LoggedTick<'_>) {
        self.workload.before = self.workload.count();
    }

    fn done(&mut self, _: &DoneTick<'_>) {
        let workload = &mut self.workload;
        if workload.is_over {
            return;
        }
        let now = workload.count();
        workload.step.allocations += now.allocations - workload.before.allocations;
        workload.step.instructions += now.instructions.saturating_sub(workload.before.instructions);
        workload.done += 1;
        workload.left -= 1;
        if workload.left == 0 {
            self.turn();
        }
    }

    fn ended(&mut self, _: WorldId) {}

    fn failed(&mut self, world: WorldId, why: &str) {
        if !self.workload.is_over {
            self.workload.failed = Some(format!("world {world} cannot be replayed: {why}"));
            self.workload.is_over = true;
        }
    }

    fn hashed(&mut self, _: WorldId, hash: u64) {
        self.workload.states = self.workload.states.rotate_left(7) ^ hash;
    }

    fn is_over(&self) -> bool {
        self.workload.is_over
    }
}
