//! World slot: what the frame keeps about a world while the world itself may be away with a worker.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use throng_platform::time::Nanos;
use throng_replication::TimeFactor;
use throng_scheduler::{CostEstimate, FrameGrid, Hertz, TickPhase};

use throng_world::{GameWorld, ids::WorldId};

use crate::{
    behind::Behind,
    host_watch::{HostShare, HostWatch},
    hosted_world::HostedWorld,
    lifecycle::{Answer, NewWorld},
    longest_tick::LongestTick,
    mailbox::Mailbox,
    overload::{Ladder, Level, Limits},
    recording::RecordingQueue,
    saves::SlotSaves,
    timeline::Timeline,
    world_record::WorldRecord,
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
    /// Of the tick that came home last.
    pub last_cost: Nanos,
    pub longest_tick: LongestTick,
    pub is_dormant: bool,
    /// How overloaded it is.
    pub ladder: Ladder,
    /// See `HostedWorld::running_since`.
    running_since: Arc<AtomicU64>,
    phase: TickPhase,
    /// That of a world whose time is not slowed, as this one's `phase` may be.
    usual_phase: TickPhase,
    /// How fast its time runs since the tick that left last.
    time_factor: TimeFactor,
    /// Which of the grid's phases for its rate the usual one is.
    pub phase_index: usize,
    /// The frame in which the period of the next tick begins. Due from then on.
    next_frame: u64,
    /// It rests, and its ticks are left out: up to this frame, in which one is due, unless mail comes before.
    rests_until: Option<u64>,
    /// Ticks that were left out since the last one, until the world is told.
    skipped: u32,
    /// Ticks missed since the start.
    pub ticks_missed: u64,
    /// When its ticks last did not keep up.
    pub behind: Option<Behind>,
    /// What the host took until then was its share of earlier misses.
    excused_until: Nanos,
    hang_is_reported: bool,
    /// It is to end as soon as it is home and nobody is in it; who asked for that is told.
    pub ending: Option<Answer<()>>,
    pub saves: SlotSaves,
    /// The program made it itself, and knows it by its id; see [`crate::parked_worlds`].
    pub keeps_place: bool,
    /// Its world panicked and is being made again.
    pub is_reloading: bool,
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
    pub fn new(
        mut world: GameWorld,
        plan: NewWorld,
        (phase_index, phase): (usize, TickPhase),
        frame: u64,
        checkpoint_period_s: u32,
        recording: Option<&Arc<RecordingQueue>>,
    ) -> Self {
        let mut cost = CostEstimate::new();
        cost.hint(world.report_mut().next_tick_hint);
        let (mailbox, running_since) = (Arc::<Mailbox>::default(), Arc::<AtomicU64>::default());
        let record = WorldRecord::begin(&mut world, &plan, checkpoint_period_s, recording);
        Self {
            id: world.id(),
            plan,
            name: world.name().clone(),
            rate: world.rate(),
            cost,
            last_cost: Nanos::ZERO,
            longest_tick: LongestTick::default(),
            is_dormant: false,
            ladder: Ladder::default(),
            home: Some(Box::new(HostedWorld::new(world, mailbox.clone(), running_since.clone(), record))),
            mailbox,
            running_since,
            phase,
            usual_phase: phase,
            time_factor: TimeFactor::USUAL,
            phase_index,
            next_frame: phase.next_due(frame),
            rests_until: None,
            skipped: 0,
            ticks_missed: 0,
            behind: None,
            excused_until: Nanos::ZERO,
            hang_is_reported: false,
            ending: None,
            saves: SlotSaves::default(),
            keeps_place: false,
            is_reloading: false,
        }
    }

    /// Whether a tick is due. Those that a resting world need not have are left out up to here.
    pub fn is_due(&mut self, frame: u64) -> bool {
        if self.is_dormant || self.saves.is_final || self.next_frame > frame {
            return false;
        }
        let Some(until) = self.rests_until else { return true };
        let is_woken = !self.mailbox.is_empty();
        // With mail the newest place counts; where the rest is over, the one that was waited for: it may be late.
        let next = match until <= frame {
            true => until.max(self.next_frame),
            false if is_woken => self.phase.due_after(self.next_frame, self.phase.due_count(self.next_frame, frame)),
            false => self.phase.next_due(frame + 1),
        };
        self.skipped += self.phase.due_count(self.next_frame, next) as u32;
        self.next_frame = next;
        next <= frame
    }

    /// The frame of the next tick of a world that is home and awake, unless mail wakes it before.
    pub fn next_frame(&self) -> Option<u64> {
        let next = self.rests_until.map_or(self.next_frame, |until| until.max(self.next_frame));
        (!self.is_dormant && self.home.is_some()).then_some(next)
    }

    /// Whether ticks are left out until mail comes or its time is over.
    pub fn is_resting(&self) -> bool {
        self.rests_until.is_some() && !self.is_dormant
    }

    /// Whether mail waits for a world that sleeps or rests: it is due in the next frame that it can be.
    pub fn is_woken(&self) -> bool {
        (self.is_dormant || self.rests_until.is_some()) && self.home.is_some() && !self.mailbox.is_empty()
    }

    /// It leaves: its rest is over. Returns how many ticks were left out.
    pub fn end_rest(&mut self) -> u32 {
        self.rests_until = None;
        std::mem::take(&mut self.skipped)
    }

    /// So many ticks from the next one on may be left out.
    pub fn begin_rest(&mut self, ticks: u32) {
        self.rests_until = (ticks > 0).then(|| self.phase.due_after(self.next_frame, ticks.into()));
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
        (self.phase_index, self.phase, self.usual_phase) = (phase_index, phase, phase);
        self.next_frame = phase.next_due(0);
    }

    /// Ends dormancy: the next tick is due from `frame` on, and none is counted as missed.
    pub fn wake(&mut self, frame: u64) {
        self.is_dormant = false;
        (self.rests_until, self.skipped) = (None, 0);
        if !self.time_factor.is_usual() {
            // It was slowed when it fell asleep; its ladder has forgotten that.
            (self.time_factor, self.phase) = (TimeFactor::USUAL, self.usual_phase);
            self.next_frame = frame;
        }
        self.next_frame = self.next_frame.max(frame);
    }

    /// How fast its time runs.
    pub fn time_factor(&self) -> TimeFactor {
        self.time_factor
    }

    /// The tick that is due leaves: from it on time runs as the ladder wants it. The ticks after it come less often, at
    /// a place of the longer period that follows from the world's place, so that worlds which are slowed together stay
    /// spread.
    pub fn obey_ladder(&mut self, grid: FrameGrid) -> TimeFactor {
        let factor = self.ladder.time_factor();
        if factor != self.time_factor {
            self.time_factor = factor;
            let stretched = || TickPhase::stretched(self.id.index(), self.rate, grid, factor.percent());
            self.phase = if factor.is_usual() { self.usual_phase } else { stretched() };
        }
        factor
    }

    /// From one tick to the next, as fast as its time runs.
    fn period(&self) -> Nanos {
        Nanos(self.rate.period().0 * 100 / u64::from(self.time_factor.percent()))
    }

    /// What its time falls behind in each tick.
    pub fn time_lost_per_tick(&self) -> Nanos {
        self.period().saturating_sub(self.rate.period())
    }

    /// Its world panicked, and another one takes its place: no worker has it.
    pub fn begin_reload(&mut self) {
        self.is_reloading = true;
        self.running_since.store(0, Ordering::Relaxed);
        self.hang_is_reported = false;
    }

    /// The world has been made again; the next tick is due in the frame after this one, and none is counted as missed.
    pub fn come_back(&mut self, world: GameWorld, record: Option<Box<WorldRecord>>, frame: u64) {
        let hosted = HostedWorld::new(world, self.mailbox.clone(), self.running_since.clone(), record);
        self.home = Some(Box::new(hosted));
        self.is_reloading = false;
        self.ladder.reset();
        self.wake(frame);
    }

    /// The next tick takes so many clients in.
    pub fn expect_arrivals(&mut self, count: u32) {
        self.cost.hint(Nanos(ARRIVAL_COST.0 * u64::from(count)));
    }

    /// How much of the period of the tick that has just finished was over by then; more than 1 when it was late. Before
    /// `close_tick`.
    pub fn period_share(&self, finished: Nanos, timeline: &Timeline) -> f32 {
        self.share_of_period(finished.saturating_sub(timeline.start_of(self.next_frame)))
    }

    pub fn share_of_period(&self, time: Nanos) -> f32 {
        (time.as_secs_f64() / self.period().as_secs_f64()) as f32
    }

    /// By what its ladder judges it.
    pub fn limits(&self, limits: Limits) -> Limits {
        limits.for_period(self.rate.period())
    }

    /// What it needs of one worker at full speed, by its last tick; nothing while it sleeps or rests.
    pub fn demand(&self) -> f64 {
        if self.is_dormant || self.is_resting() { 0.0 } else { self.last_cost.as_secs_f64() * f64::from(self.rate.0) }
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
        if missed > 0 || self.ladder.level() > Level::Normal {
            self.behind = Some(Behind::extended(self.behind, timeline.start_of(self.next_frame), finished));
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

    /// It has been in one tick for so long that it may not come back.
    pub fn hangs(&self, now: Nanos) -> bool {
        self.running_for(now).is_some_and(|running| running > HANG_REPORT_AFTER)
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
