//! The facts of a story: names as they may be printed, times in milliseconds, everything sorted by how much it matters.

use serde::Serialize;

use crate::model::{Owner, SwitchSource, TriggerKind};

/// Everything that a story tells.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Story {
    /// One sentence that names the cause.
    pub verdict: String,
    pub about: AboutFacts,
    /// `None` if the capture has no frames.
    pub frame: Option<FrameFacts>,
    pub threads: Vec<ThreadFacts>,
    pub worlds: Vec<WorldFacts>,
    /// Worlds that had time in the frame.
    pub worlds_count: usize,
    pub subsystems: Vec<SubsystemFacts>,
    /// All of them: what kind of work the frame was.
    pub categories: Vec<CategoryFacts>,
    pub scopes: Vec<ScopeFacts>,
    pub scopes_over_budget: Vec<OverBudgetFacts>,
    pub lock_waits: Vec<LockWaitFacts>,
    pub core_waits: Vec<CoreWaitFacts>,
    pub host_stalls: Vec<HostStallFacts>,
    /// What the server used, by its own word and by others'.
    pub accounts: Vec<AccountFacts>,
    pub allocators: Vec<AllocatorFacts>,
    pub droppers: Vec<DropperFacts>,
    pub thread_allocations: Vec<ThreadAllocationFacts>,
    pub large_allocations: Vec<LargeAllocationFacts>,
    pub page_faults: Vec<PageFaultFacts>,
    pub leaks: Vec<LeakFacts>,
    pub logs: Vec<LogFacts>,
    pub logs_count: usize,
    pub processes: Vec<ProcessFacts>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct AboutFacts {
    pub build: String,
    pub game: String,
    pub cores: u32,
    pub saved: String,
    pub saved_unix_s: u64,
    pub covers_ms: f64,
    pub frames: usize,
    pub threads: usize,
    pub worlds: usize,
    pub trigger: TriggerFacts,
    pub switches: SwitchSource,
    /// What is lost for want of a better source; empty with the best one.
    pub switches_lost: String,
    /// Why there is no better source, and what would give one; may be empty.
    pub switches_why_not: String,
    pub records_lost: u64,
    pub has_free_text: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct TriggerFacts {
    pub kind: TriggerKind,
    pub name: String,
    /// In `unit`.
    pub measured: u64,
    pub allowed: u64,
    pub unit: &'static str,
    pub world: Option<u32>,
    pub world_name: Option<String>,
    pub frame: u64,
    pub note: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct FrameFacts {
    pub number: u64,
    pub is_the_triggers: bool,
    pub wall_ms: f64,
    pub budget_ms: f64,
    /// Median of the other frames.
    pub usual_wall_ms: f64,
    pub other_frames: usize,
    /// Of the frame thread's wall time, outside of every scope [0 to 1].
    pub unaccounted_share: f64,
    /// The same of all time that frame and short-task threads ran or waited for a core.
    pub unaccounted_share_of_workers: f64,
    #[serde(skip)]
    pub wall_ns: u64,
    #[serde(skip)]
    pub budget_ns: u64,
    #[serde(skip)]
    pub usual_wall_ns: u64,
}

/// How a thread spent the frame, and how it usually does: medians of the other frames.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ThreadFacts {
    pub name: String,
    pub class: &'static str,
    pub running_ms: f64,
    pub waiting_ms: f64,
    pub blocked_ms: f64,
    pub outside_of_scopes_ms: f64,
    pub usual_running_ms: f64,
    pub usual_waiting_ms: f64,
    pub usual_blocked_ms: f64,
    /// Its scopes' states are estimated from sums.
    pub is_estimate: bool,
    #[serde(skip)]
    pub thread: u32,
    #[serde(skip)]
    pub waiting_ns: u64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct WorldFacts {
    pub id: u32,
    pub name: String,
    pub tick: u32,
    pub thread: String,
    pub wall_ms: f64,
    pub running_ms: f64,
    pub waiting_ms: f64,
    pub blocked_ms: f64,
    /// Median of the other frames that it had time in.
    pub usual_wall_ms: f64,
    pub dearest_scope: Option<String>,
    #[serde(skip)]
    pub wall_ns: u64,
    /// Of the thread that ran it longest: others may have helped at the same time.
    #[serde(skip)]
    pub running_ns_max: u64,
    #[serde(skip)]
    pub usual_wall_ns: u64,
    #[serde(skip)]
    pub dearest_scope_ns: u64,
}

/// Times are sums over all threads; exclusive but for `inclusive_ms`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SubsystemFacts {
    pub name: String,
    pub wall_ms: f64,
    pub running_ms: f64,
    pub waiting_ms: f64,
    pub blocked_ms: f64,
    pub inclusive_ms: f64,
    pub usual_wall_ms: f64,
    pub scopes: u64,
    /// Known for the subsystem that the trigger is about.
    pub budget_ms: Option<f64>,
    /// Running and waiting for a core.
    #[serde(skip)]
    pub busy_ns: u64,
    #[serde(skip)]
    pub usual_busy_ns: u64,
}

/// Scopes under one heading. Times are sums over all threads, exclusive.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CategoryFacts {
    pub name: String,
    pub wall_ms: f64,
    pub running_ms: f64,
    pub waiting_ms: f64,
    pub blocked_ms: f64,
    pub usual_wall_ms: f64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct ScopeFacts {
    pub name: String,
    pub place: String,
    pub wall_ms: f64,
    pub running_ms: f64,
    pub waiting_ms: f64,
    pub blocked_ms: f64,
    pub inclusive_ms: f64,
    pub usual_wall_ms: f64,
    pub count: u64,
}

/// A scope that took longer than expected.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OverBudgetFacts {
    pub scope: String,
    pub longest_ms: f64,
    pub budget_ms: f64,
    pub over: u64,
    pub count: u64,
    pub thread: String,
}

/// Waits of one thread for one lock within the frame.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LockWaitFacts {
    pub lock: String,
    pub thread: String,
    pub class: &'static str,
    pub scope: Option<String>,
    pub world: Option<u32>,
    pub waited_ms: f64,
    pub longest_ms: f64,
    pub waits: u64,
    /// Who had it in the longest wait.
    pub holder: Option<LockHolder>,
    pub is_priority_inversion: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct LockHolder {
    pub thread: String,
    pub class: &'static str,
    pub scope: Option<String>,
    pub world: Option<u32>,
}

/// A time in which a thread had work and no core.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CoreWaitFacts {
    pub thread: String,
    pub begin_ms: f64,
    pub waited_ms: f64,
    /// The one that it lost, and waited for.
    pub core: u32,
    /// Who had that core meanwhile, exactly, the longest first; empty where the kernel does not tell.
    pub had_core: Vec<HadCoreFacts>,
    /// Which of our threads ran meanwhile, the longest first; the rest of the cores' time went to others.
    pub ran: Vec<RanFacts>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct RanFacts {
    pub thread: String,
    pub class: &'static str,
    pub core: u32,
    pub ran_ms: f64,
}

/// Who had a core that a thread of ours waited for: a thread of ours, all other processes of one name, or nobody.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HadCoreFacts {
    pub owner: Owner,
    pub name: String,
    /// Of the one of the name that had it longest.
    pub pid: u32,
    /// How many have the name.
    pub processes: usize,
    pub ran_ms: f64,
}

/// A time in which a core stood still for everybody, anywhere in the capture.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HostStallFacts {
    pub core: u32,
    /// After the frame's begin; negative before it.
    pub begin_ms: f64,
    pub stalled_ms: f64,
}

/// A figure of what the server used, in the whole capture.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AccountFacts {
    /// With its unit, and the side that it was seen from: `inside.cpu_cores`.
    pub name: String,
    /// The newest value, and the largest.
    pub last: f64,
    pub most: f64,
    /// How many there are: one a second.
    pub values: usize,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct AllocatorFacts {
    pub scope: String,
    pub bytes: u64,
    pub allocations: u64,
    pub frees: u64,
}

/// In the frame.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DropperFacts {
    pub scope: String,
    pub allocations: u64,
    pub frees: u64,
}

/// Over the whole capture.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ThreadAllocationFacts {
    pub thread: String,
    pub bytes: u64,
    pub allocations: u64,
    pub bytes_per_s: f64,
    pub dearest_scope: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct LargeAllocationFacts {
    pub bytes: u64,
    pub scope: Option<String>,
    pub world: Option<u32>,
    pub world_name: Option<String>,
    pub thread: String,
    pub at_ms: f64,
    pub is_in_frame: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct PageFaultFacts {
    pub scope: String,
    pub page_faults: u64,
}

/// A scope whose live bytes grew over the capture.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LeakFacts {
    pub scope: String,
    pub live_bytes_first: u64,
    pub live_bytes_last: u64,
    pub seconds: f64,
    pub bytes_per_s: f64,
    /// Part of the moments at which it had not fallen [0 to 1]; 1 for what only grows.
    pub rising_share: f64,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct LogFacts {
    pub at_ms: f64,
    pub level: String,
    pub thread: String,
    pub target: String,
    pub text: String,
}

/// Other processes of one name.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ProcessFacts {
    pub name: String,
    /// Of the busiest of the name.
    pub pid: u32,
    /// How many have the name.
    pub processes: usize,
    /// All of them together.
    pub cores: f32,
}

/// Rows per list: what a screen holds. Programs get the same, for a list of thousands of worlds is no story.
pub(super) const ROWS_MAX: usize = 5;
/// Categories per story: the ten, idleness, and some of a game's own.
pub(super) const CATEGORIES_MAX: usize = 16;
/// Threads per story.
pub(super) const THREADS_MAX: usize = 8;
