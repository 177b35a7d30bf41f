//! World slot: what the frame keeps about a world while the world itself may be away with a worker.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use throng_platform::time::Nanos;
use throng_scheduler::{CostEstimate, Hertz, TickPhase};

use throng_world::{GameWorld, ids::WorldId};

use crate::{
    host_watch::{HostShare, HostWatch},
    hosted_world::HostedWorld,
    lifecycle::{Answer, NewWorld},
    mailbox::Mailbox,
    overload::Ladder,
    timeline::Timeline,
};

/// A world that has been in one tick for this long is reported as hanging (reliability R24 asks for 100 ms).
pub const HANG_REPORT_AFTER: Nanos = Nanos::from_millis(100);

/// What it costs a world that a client comes in: its view is made, its player too, and it is greeted and shown all that
/// is near. Ticks of precinct that took one in took 65 to 100 µs longer than others of their worlds (12 bots and 200
/// NPCs on 2 cores). Too low → a world that takes many in starts behind others; too high → before busier ones.
const ARRIVAL_COST: Nanos = Nanos::from_micros(80);

pub(crate) struct WorldSlot {
    pub id: WorldId,
    /// What it was made from: its seed is told in reports of its death, and all of it is remembered if it panics.
    pub plan: NewWorld,
    pub name: Arc<str>,
    pub rate: Hertz,
    pub mailbox: Arc<Mailbox>,
    /// The world itself, unless a worker has it.
    pub home: Option<Box<HostedWorld>>,
    pub cost: CostEstimate,
    pub is_dormant: bool,
    /// How overloaded it is.
    pub ladder: Ladder,
    /// See `HostedWorld::running_since`.
    running_since: Arc<AtomicU64>,
    phase: TickPhase,
    /// Which of the grid's phases for its rate that is.
    pub phase_index: usize,
    /// The frame in which the period of the next tick begins. Due from then on.
    next_frame: u64,
    /// Ticks missed since the start.
    pub ticks_missed: u64,
    /// What the host took until then was its share of earlier misses.
    excused_until: Nanos,
    hang_is_reported: bool,
    /// It is to end as soon as it is home and nobody is in it; who asked for that is told.
    pub ending: Option<Answer<()>>,
    /// The program made it itself, and knows it by its id; see [`crate::held`].
    pub keeps_place: bool,
}

/// How a tick stood to its period.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TickOutcome {
    /// How long after the end of its period it finished; zero when in time.
    pub lateness: Nanos,
    /// How long after the period that it was due in: longer by the periods that it missed.
    pub late_by: Nanos,
    /// Periods that went by before it started: ticks that were never run.
    pub missed: u64,
    /// What of that is the host's.
    pub of_host: HostShare,
}

impl WorldSlot {
    /// A world that ticks for the first time in a frame after `frame`; it misses nothing before.
    pub fn new(mut world: GameWorld, plan: NewWorld, (phase_index, phase): (usize, TickPhase), frame: u64) -> Self {
        let mut cost = CostEstimate::new();
        cost.hint(world.report_mut().next_tick_hint);
        let (mailbox, running_since) = (Arc::<Mailbox>::default(), Arc::<AtomicU64>::default());
        Self {
            id: world.id(),
            plan,
            name: world.name().clone(),
            rate: world.rate(),
            cost,
            is_dormant: false,
            ladder: Ladder::default(),
            home: Some(Box::new(HostedWorld::new(world, mailbox.clone(), running_since.clone()))),
            mailbox,
            running_since,
            phase,
            phase_index,
            next_frame: phase.next_due(frame),
            ticks_missed: 0,
            excused_until: Nanos::ZERO,
            hang_is_reported: false,
            ending: None,
            keeps_place: false,
        }
    }

    pub fn is_due(&self, frame: u64) -> bool {
        !self.is_dormant && self.next_frame <= frame
    }

    /// The frame of the next tick of a world that is home and awake.
    pub fn next_frame(&self) -> Option<u64> {
        (!self.is_dormant && self.home.is_some()).then_some(self.next_frame)
    }

    /// A worker has it.
    pub fn is_away(&self) -> bool {
        self.home.is_none()
    }

    /// When the next tick's period ends, which is when the one after it is due.
    pub fn deadline(&self, timeline: &Timeline) -> Nanos {
        timeline.start_of(self.phase.next_due(self.next_frame + 1))
    }

    /// Changes the world's place in the grid, before the first frame.
    pub fn set_phase(&mut self, (phase_index, phase): (usize, TickPhase)) {
        (self.phase_index, self.phase) = (phase_index, phase);
        self.next_frame = phase.next_due(0);
    }

    /// Ends dormancy: the next tick is due from `frame` on, and none is counted as missed.
    pub fn wake(&mut self, frame: u64) {
        self.is_dormant = false;
        self.next_frame = self.next_frame.max(frame);
    }

    /// The next tick takes so many clients in.
    pub fn expect_arrivals(&mut self, count: u32) {
        self.cost.hint(Nanos(ARRIVAL_COST.0 * u64::from(count)));
    }

    /// How much of the period of the tick that has just finished was over by then; more than 1 when it was late. Before
    /// `close_tick`.
    pub fn period_share(&self, finished: Nanos, timeline: &Timeline) -> f32 {
        let begin = timeline.start_of(self.next_frame);
        let period = self.deadline(timeline).saturating_sub(begin);
        (finished.saturating_sub(begin).as_secs_f64() / period.as_secs_f64().max(1e-9)) as f32
    }

    /// Books a finished tick and moves on to the next period.
    pub fn close_tick(
        &mut self,
        started: Nanos,
        finished: Nanos,
        timeline: &Timeline,
        host: &mut HostWatch,
    ) -> TickOutcome {
        let late_by = finished.saturating_sub(self.deadline(timeline));
        let (missed, next) = self.missed_if_started_in(timeline.frame_at(started));
        let mut of_host = HostShare::default();
        if missed > 0 {
            let missed_if_at = |at| self.missed_if_started_in(timeline.frame_at(at)).0;
            let from = timeline.start_of(self.next_frame).max(self.excused_until);
            of_host = host.share_of(missed, from, started, missed_if_at);
            self.excused_until = self.excused_until.max(of_host.until);
        }
        self.next_frame = next;
        self.ticks_missed += missed;
        self.hang_is_reported = false;
        TickOutcome { lateness: finished.saturating_sub(timeline.start_of(next)), late_by, missed, of_host }
    }

    /// Periods that have gone by when the tick that is due starts in this frame, and where the one after it begins.
    fn missed_if_started_in(&self, frame: u64) -> (u64, u64) {
        let missed = self.phase.due_count(self.next_frame, frame);
        (missed, self.phase.next_due(frame.max(self.next_frame) + 1))
    }

    /// For how long a worker has been running it, once per hang.
    pub fn reports_hang(&mut self, now: Nanos) -> Option<Nanos> {
        let hanging = self.running_for(now).filter(|&running| running > HANG_REPORT_AFTER)?;
        (!std::mem::replace(&mut self.hang_is_reported, true)).then_some(hanging)
    }

    /// How long its tick has been running; `None` for worlds that are home or in the list.
    pub fn running_for(&self, now: Nanos) -> Option<Nanos> {
        let running_since = Nanos(self.running_since.load(Ordering::Relaxed));
        (self.is_away() && running_since > Nanos::ZERO).then(|| now.saturating_sub(running_since))
    }

    /// Ticks that a world which is away has missed up to `now`: periods that began and ended while it was in one tick.
    pub fn missing_since_it_left(&self, now: Nanos, timeline: &Timeline) -> u64 {
        if !self.is_away() {
            return 0;
        }
        self.phase.due_count(self.next_frame, timeline.frame_at(now)).saturating_sub(1)
    }
}
