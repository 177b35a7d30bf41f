//! Recording: the server's side of the flight recorder.
//!
//! The frame tells it when a frame begins and ends; at the end it knows what each subsystem took, which goes into the
//! metrics. Without a recorder these cost a branch. A server in a simulation has none: its clock is not the recorder's.

use throng_capture::model;
use throng_platform::time::Nanos;
use throng_profiler::{Counter, Recorder, RecorderControl, RecorderFigures, is_recording, thread};

pub use crate::suggested_budgets::SuggestedBudgets;
use crate::{recorder_turns::RecorderTurns, server::Server};

static PLAYERS: Counter = Counter::new("server.players");
static WORLDS_STARTED: Counter = Counter::new("server.worlds_started");

/// The recorder hears of worlds that came and went so often at most.
const RECORDER_TOLD_PERIOD: Nanos = Nanos::from_millis(250);

impl Server {
    /// Gives the server a recorder to keep. Call before the first frame.
    pub fn set_recorder(&mut self, recorder: Recorder) {
        self.control.published.set_recorder(recorder.control());
        self.recorder = Some(recorder);
    }

    /// Says what the scopes of a subsystem may take together in one frame (µs), for operators whose rules say nothing
    /// of it.
    pub fn suggest_budget(&mut self, subsystem: &str, budget_us: u64) {
        self.suggested_budgets.add(subsystem, budget_us * 1_000);
    }

    /// Says what the scopes of a subsystem take together in the mean frame of a healthy server (µs): it is given a budget
    /// of four times that and at least 10 ms, which a usual frame does not break and twice the cost does. Of what takes
    /// less than 2.5 ms more than doubling is noticed. With a kind of world beyond 30 Hz the least budget is as much
    /// smaller as its period is shorter: 2.3 ms at 128 Hz.
    pub fn suggest_usual(&mut self, subsystem: &str, usual_us: f64) {
        self.suggested_budgets.add_usual(subsystem, usual_us);
    }

    /// Says what the scopes of a subsystem may take together in one tick of one world of this kind (µs, from 0.001), on
    /// average of a second and at least 100 ticks; for operators whose rules say nothing of it. It is the same for one
    /// world and for hundreds, and at any rate.
    pub fn suggest_per_tick(&mut self, kind: &str, subsystem: &str, budget_us: f64) {
        self.suggested_budgets.add_per_tick(kind, subsystem, budget_us);
    }

    /// What engine and game suggested so far, to complete an operator's rules with; at the rates of the kinds that were
    /// added so far.
    pub fn suggested_budgets(&self) -> SuggestedBudgets {
        self.suggested_budgets.at_period(self.kinds.iter().map(|kind| kind.rate.period().0).min())
    }

    /// What the recorder has counted since the start.
    pub(crate) fn recorder_figures(&self) -> RecorderFigures {
        self.recorder.as_ref().map(|recorder| recorder.control().figures()).unwrap_or_default()
    }

    /// The handle of the server's recorder, if it has one.
    pub fn recorder_control(&self) -> Option<RecorderControl> {
        self.recorder.as_ref().map(Recorder::control)
    }

    /// Tells the recorder what worlds there are and which thread runs the frames.
    pub(crate) fn introduce_to_recorder(&self) {
        let Some(recorder) = &self.recorder else { return };
        thread::register(thread::ThreadClass::Frame);
        let world = |slot: &crate::world_slot::WorldSlot| model::World {
            id: slot.id.number(),
            name: slot.name.to_string(),
            tick_hz: slot.rate.0,
        };
        recorder.control().set_worlds(self.worlds.iter().map(world).collect());
    }

    /// Tells the recorder of worlds that came and went, a few times a second at most: it costs a name for each world.
    pub(crate) fn tell_recorder_of_worlds(&mut self, now: Nanos) {
        if self.worlds_changed && now >= self.recorder_told_at + RECORDER_TOLD_PERIOD {
            self.worlds_changed = false;
            self.recorder_told_at = now;
            self.introduce_to_recorder();
        }
    }

    /// Switches the recorder off and on again in short turns, and compares what the process takes: what recording
    /// costs, without the changes of load that two runs would have.
    pub fn take_recorder_turns(&mut self) {
        self.recorder_turns = Some(RecorderTurns::default());
    }

    pub(crate) fn begin_frame_of_recorder(&mut self, frame: u64) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(turns) = &mut self.recorder_turns {
            turns.frame(frame, recorder, self.totals.server.ticks);
        }
        if is_recording() {
            recorder.frame_begin(frame, self.timeline.grid.period().0);
        }
    }

    pub(crate) fn end_frame_of_recorder(&mut self, worlds_started: usize) {
        let Some(recorder) = self.recorder.as_mut().filter(|_| is_recording()) else { return };
        PLAYERS.set(self.addresses.players_count() as f32);
        WORLDS_STARTED.set(worlds_started as f32);
        recorder.set_population((self.addresses.players_count() + self.worlds.len()) as u64);
        recorder.frame_end();
        let recorder = &*recorder;
        let figures = recorder.figures();
        self.watch_sums.add(recorder, figures);
        if !self.measure.is_over() {
            self.measure.tick_time.frame(recorder, figures, worlds_started as u64);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.subsystems(figures);
        }
    }
}
