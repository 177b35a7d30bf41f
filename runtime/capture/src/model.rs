//! The model of a capture: what every reader and writer of captures agrees on.
//!
//! All times are nanoseconds of the recorder's own clock, which starts at 0 with the process's recorder. Events of a
//! thread stand in the order in which they were recorded, which is the order of their **ends**: a scope comes after the
//! scopes inside it, and what belongs to a moment ([`Event::World`], [`Event::Switch`]) stands at that moment. Indices
//! (`site`, `lock`, …) point into the lists of the same capture.

use serde::Serialize;

/// One recording, from pre-roll to post-roll.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Capture {
    pub about: About,
    pub sites: Vec<Site>,
    pub threads: Vec<Thread>,
    pub worlds: Vec<World>,
    pub locks: Vec<Lock>,
    /// In the order of their numbers.
    pub frames: Vec<Frame>,
    pub counters: Vec<Counter>,
    pub logs: Vec<LogLine>,
    pub memory: Memory,
    /// What else ran on the host around the capture, the busiest first; empty where nothing is known.
    pub processes: Vec<ProcessShare>,
    /// Threads of the whole host that had one of `cores`.
    pub host_threads: Vec<HostThread>,
    /// Our cores and who had them; empty where the kernel tells of our own threads alone.
    pub cores: Vec<Core>,
    /// Times in which a core stood still for everybody; by core, in the order of their ends.
    pub host_stalls: Vec<HostStall>,
}

/// Where, when and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct About {
    /// Program and version, such as `throng 0.1.0 (abc1234)`.
    pub build: String,
    pub game: String,
    /// Cores that the process may use.
    pub cores: u32,
    /// Seconds since 1970 when it was saved.
    pub saved_unix_s: u64,
    pub trigger: Trigger,
    /// The first and the last moment that it covers. (ns)
    pub begin_ns: u64,
    pub end_ns: u64,
    /// The frame that the trigger fired in.
    pub frame: u64,
    /// Where context switches come from.
    pub switches: SwitchSource,
    /// Why from no better source, and what would give one; empty with the best one, and if nobody wanted it.
    pub switches_why_not: String,
    /// Records that were lost for want of a free block since the recorder started.
    pub records_lost: u64,
    /// Whether log texts and other free text are as they were. Otherwise they were cleaned of what a player may have
    /// written, addresses and keys.
    pub has_free_text: bool,
}

/// What made the recorder save.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trigger {
    pub kind: TriggerKind,
    /// What it was about: the name of a scope, subsystem, thread or lock; `world.tick` for `Tick` and `StuckTick`, empty for `Frame`,
    /// `WorkersBusy` and `Manual`. A subsystem that has a budget of its own in one kind of world is called `ai@dark-zone`,
    /// one with a budget for a tick of it `ai per tick@dark-zone`.
    pub name: String,
    /// What was measured and what was allowed, in the kind's [`TriggerKind::unit`].
    pub measured: u64,
    pub allowed: u64,
    /// The world that it happened in, if in one.
    pub world: Option<u32>,
    /// When. (ns)
    pub at_ns: u64,
    /// Why somebody asked, for `Manual`; else a sentence of the recorder's.
    pub note: String,
}

/// Between a subsystem and the kind of world whose budget it broke.
pub const OF_KIND: &str = "@";

/// After a subsystem, if its budget is for one tick, and what was measured the mean of many.
pub const PER_TICK: &str = " per tick";

impl Trigger {
    /// The subsystem that it is about, and the kind of world of which the budget is; `None`: of all together.
    pub fn subsystem(&self) -> (&str, Option<&str>) {
        self.name.rsplit_once(OF_KIND).map_or((&self.name, None), |(subsystem, kind)| (subsystem, Some(kind)))
    }
}

/// Kinds of triggers; each has its folder of captures, named as in [`TriggerKind::name`], and in it one per cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerKind {
    /// By hand: console, HTTP, code.
    #[default]
    Manual,
    /// A frame took longer than its target. (ns)
    Frame,
    /// The scopes of a subsystem together took longer than its budget in one frame. (ns)
    Subsystem,
    /// One scope took longer than expected. (ns)
    Scope,
    /// One wait for a lock. (ns)
    LockWait,
    /// A frame's thread was ready to run and had no core. (ns)
    RunQueue,
    /// A thread allocates faster than allowed. (bytes/s)
    MemoryRate,
    /// One allocation in a world's tick larger than allowed. (bytes)
    LargeAllocation,
    /// A scope's live bytes grow and grow. (bytes/s)
    Leak,
    /// The process died.
    Crash,
    /// A tick of a world ended after its period, or was missed. (ns)
    Tick,
    /// The workers together had next to nothing to wait for, [`WORKERS_BUSY_FRAMES`] frames in a row. (%)
    WorkersBusy,
    /// A world is in one tick for so long that the watchdog named it; saved while it still is. (ns)
    StuckTick,
}

/// Frames in a row that [`TriggerKind::WorkersBusy`] is about: 0.2 s at 60 Hz, in which each world of 20 Hz has 4 ticks.
/// Fewer and a wave of arrivals, which is over by the next tick, would be captured.
pub const WORKERS_BUSY_FRAMES: usize = 12;

impl TriggerKind {
    pub const ALL: [TriggerKind; 13] = [
        TriggerKind::Manual,
        TriggerKind::Frame,
        TriggerKind::Subsystem,
        TriggerKind::Scope,
        TriggerKind::LockWait,
        TriggerKind::RunQueue,
        TriggerKind::MemoryRate,
        TriggerKind::LargeAllocation,
        TriggerKind::Leak,
        TriggerKind::Crash,
        TriggerKind::Tick,
        TriggerKind::WorkersBusy,
        TriggerKind::StuckTick,
    ];

    /// Its name in rules, folders and files.
    pub fn name(self) -> &'static str {
        match self {
            TriggerKind::Manual => "manual",
            TriggerKind::Frame => "frame",
            TriggerKind::Subsystem => "subsystem",
            TriggerKind::Scope => "scope",
            TriggerKind::LockWait => "lock-wait",
            TriggerKind::RunQueue => "run-queue",
            TriggerKind::MemoryRate => "memory-rate",
            TriggerKind::LargeAllocation => "large-allocation",
            TriggerKind::Leak => "leak",
            TriggerKind::Crash => "crash",
            TriggerKind::Tick => "tick",
            TriggerKind::WorkersBusy => "workers-busy",
            TriggerKind::StuckTick => "stuck-tick",
        }
    }

    /// What [`Trigger::measured`] and [`Trigger::allowed`] are in.
    pub fn unit(self) -> Unit {
        match self {
            TriggerKind::Frame
            | TriggerKind::Tick
            | TriggerKind::Subsystem
            | TriggerKind::Scope
            | TriggerKind::LockWait
            | TriggerKind::RunQueue
            | TriggerKind::StuckTick => Unit::Nanoseconds,
            TriggerKind::MemoryRate | TriggerKind::Leak => Unit::BytesPerSecond,
            TriggerKind::LargeAllocation => Unit::Bytes,
            TriggerKind::WorkersBusy => Unit::Percent,
            TriggerKind::Manual | TriggerKind::Crash => Unit::None,
        }
    }
}

/// What a kind of trigger measures in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    BytesPerSecond,
    Bytes,
    /// Of all that could have been.
    Percent,
    /// Nothing is measured: it is asked for, or happens.
    None,
}

impl Unit {
    /// As it stands behind a figure; empty for none.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Bytes => "bytes",
            Unit::Percent => "%",
            Unit::None => "",
        }
    }
}

/// How the capture knows when a thread was not running, best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchSource {
    /// Those of our own threads as below, and in [`Capture::cores`] every switch of our cores, whoever had them.
    CpuWide,
    /// Every context switch of the process's own threads, from the kernel (perf_event).
    PerfEvent,
    /// Sums per thread and frame (`/proc/self/task/TID/schedstat`).
    Schedstat,
    #[default]
    None,
}

impl SwitchSource {
    /// Whether every switch of our own threads is there.
    pub fn has_each_switch(self) -> bool {
        matches!(self, SwitchSource::CpuWide | SwitchSource::PerfEvent)
    }
}

/// A place in the code that records scopes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Site {
    /// Dotted, as everywhere: `replication.interest`.
    pub name: String,
    /// The part of the name that budgets and metrics are about.
    pub subsystem: String,
    /// One of the categories of `throng_profiler::Category`, by name: `replication`, `network`, …
    pub category: String,
    pub file: String,
    pub line: u32,
    /// What one scope may take, if anything was said. (ns)
    pub budget_ns: Option<u64>,
}

/// What a thread is for: who may wait for whom is judged by this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadClass {
    /// Runs the frame.
    Frame,
    /// Updates worlds within the frame.
    ShortTask,
    /// Work that may take many frames, at low priority.
    LongTask,
    #[default]
    Other,
}

impl ThreadClass {
    /// Its name in stories and reports.
    pub fn name(self) -> &'static str {
        match self {
            ThreadClass::Frame => "frame",
            ThreadClass::ShortTask => "short-task",
            ThreadClass::LongTask => "long-task",
            ThreadClass::Other => "other",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Thread {
    pub name: String,
    /// The kernel's thread id.
    pub tid: u32,
    pub class: ThreadClass,
    pub events: Vec<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Event {
    /// A scope of `site` on this thread.
    Scope { site: u32, begin_ns: u64, end_ns: u64 },
    /// A scope that was still open when the capture ended.
    OpenScope { site: u32, begin_ns: u64 },
    /// From here on the thread works for this world; `None`: for none.
    World { at_ns: u64, world: Option<u32>, tick: u32 },
    /// What the scope just before it allocated and freed by itself, without the scopes inside it.
    Allocations { count: u32, frees: u32, bytes: u64 },
    /// The thread waited for a lock that `holder` had.
    LockWait { lock: u32, begin_ns: u64, end_ns: u64, holder: Option<Holder> },
    /// The thread got a core or lost it.
    Switch { at_ns: u64, change: Switch },
    /// The kernel had to find memory for the thread.
    PageFault { at_ns: u64 },
    /// One large allocation within a world's tick.
    LargeAllocation { at_ns: u64, bytes: u64 },
    /// A value of a counter.
    Count { at_ns: u64, counter: u32, value: f32 },
}

/// Who had a lock while another thread waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Holder {
    pub thread: u32,
    /// Its innermost scope when it took the lock.
    pub site: Option<u32>,
    pub world: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Switch {
    /// Runs from here on, on this core.
    Running { core: u32 },
    /// The kernel took its core away: it waits for one.
    Preempted,
    /// It gave its core up: it sleeps or waits for something. It may wait for a core before it runs again.
    Blocked,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct World {
    pub id: u32,
    /// Its kind's name, such as `hideout`.
    pub name: String,
    pub tick_hz: u16,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Lock {
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counter {
    pub name: String,
}

/// One pass of the server loop, with what the recorder summed up about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Frame {
    pub number: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub budget_ns: u64,
    /// Per thread that works for frames: how its wall time of this frame was spent.
    pub threads: Vec<FrameThread>,
}

/// How one thread spent a frame; the three add up to the frame's wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FrameThread {
    /// Index into the capture's threads.
    pub thread: u32,
    pub running_ns: u64,
    /// Ready to run, without a core.
    pub waiting_ns: u64,
    /// Asleep, or waiting for something.
    pub blocked_ns: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LogLine {
    pub at_ns: u64,
    pub thread: u32,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    pub target: String,
    pub text: String,
}

/// Live memory by scope over time, estimated from samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Memory {
    /// Moments at which live bytes were noted, oldest first.
    pub at_ns: Vec<u64>,
    pub by_site: Vec<LiveBytes>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LiveBytes {
    /// `None`: allocated outside every scope.
    pub site: Option<u32>,
    /// One value per moment of [`Memory::at_ns`].
    pub bytes: Vec<u64>,
}

/// Another process's use of the host's cores around the capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProcessShare {
    pub pid: u32,
    pub name: String,
    /// Cores that it used [0 to all of them].
    pub cores: f32,
}

/// A thread of any process of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostThread {
    pub pid: u32,
    pub tid: u32,
    pub owner: Owner,
    /// The last that it had of the time of the capture; empty if it was not to be had.
    pub name: String,
    /// Its process's.
    pub process: String,
}

/// Whose thread it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// Of another process, or the kernel's.
    #[default]
    Foreign,
    /// Of the process that was recorded.
    Own,
    /// Nobody's: the core had nothing to do.
    Idle,
}

/// A core of the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Core {
    /// The kernel's number.
    pub number: u32,
    /// In the order of time; each goes on to the next one, the last to the end of the capture.
    pub runs: Vec<CoreRun>,
}

/// Who had a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CoreRun {
    pub at_ns: u64,
    /// Index into [`Capture::host_threads`]; `None`: not known, records are missing.
    pub thread: Option<u32>,
}

/// A time in which a core did not run a thread of this process that goes before everything else: the host had taken
/// the core away, its kernel kept it, or somebody had stopped the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostStall {
    /// The kernel's number.
    pub core: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
}
