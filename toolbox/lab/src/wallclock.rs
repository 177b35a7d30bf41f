//! Wall-clock sampling: where the time of any running process goes, thread by thread, asleep or awake.
//!
//! A profiler that samples only running threads says nothing about a server that waits for a disk, a lock or its next
//! frame. This one divides all of each thread's wall time over its stacks: running, ready but without a core, blocked.
//! How much of each is counted by the kernel and exact; only the division is sampled.
//!
//! It attaches to any process and changes nothing in it: no signal, no stop, no code inside it. Sleeping threads are
//! read from /proc and from their memory (`unwind`), running ones through the kernel's own samples
//! ([`throng_platform::sampling`]). Where the host forbids part of that, the report says what is missing and which
//! setting gives it (`source`).
//!
//! ```text
//! process ─ /proc, memory, rings ─> sampler ─> ledger per thread ─> profile ─> report, callgrind, folded stacks
//!                                     └> unwind ─ addresses ───────> names ┘
//! ```
//!
//! One thread, for as long as the run takes. Cost at 100 looks/s: about 1 us per sleeping thread and look, 20 us per
//! thread that slept elsewhere at the look before, and 5 us per sample of a running thread: 2 to 3 % of a core for six
//! busy threads. The sampled threads pay some us per sample and about 3 us per context switch; of threads that switch
//! more than 5,000 times a second, switches are not noted. How they divide over running, waiting and blocked is as exact
//! as ever; what they slept on rests on looks alone, and the report says by how much that may be off.

mod call_site;
mod error;
mod files;
mod image;
mod ledger;
mod maps;
mod names;
mod process;
mod profile;
mod report;
mod sampler;
mod schedule;
mod source;
mod stack_reader;
mod still_places;
mod timeline;
mod unwind;

use throng_platform::clock::MonotonicClock;
use throng_platform::signals::StopFlag;
use throng_platform::threads::{Priority, spawn_named};
use throng_platform::time::Nanos;
use throng_platform::{limits, process as own_process, random};

pub use error::WallclockError;
pub use files::{ProfileFiles, check_writable, write};
pub use ledger::Times;
pub use names::NamedFrame;
pub use profile::{FunctionTimes, Profile, ThreadProfile};
pub use report::{FunctionReport, Stops, ThreadReport, WallclockReport};
pub use source::{OnCore, Source};
pub use unwind::UnwindCounts;

/// Three files and one ring per thread, for a process with a thousand threads.
const OPEN_FILES: u64 = 4_096;

/// What to sample and how.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WallclockPlan {
    pub pid: u32,
    /// Looks per second (1 to 1,000, default 50). Too low → short runs say little; too high → the sampler takes a
    /// noticeable part of a core, mostly by unwinding threads that sleep often.
    pub hz: u32,
    /// Length of the run (s, >= 1, default 10). The division over stacks settles with its root: after 10 s at 100
    /// looks/s, shares of a thread's wall time are within 3 points, mostly within 1. Where samples of the kernel are
    /// refused, several points for threads with many short sleeps.
    pub seconds: u32,
}

/// Samples the process until the time is over, it ends, or `stop` is requested; then gives names to what was seen.
pub fn run(plan: WallclockPlan, stop: &StopFlag) -> Result<Profile, WallclockError> {
    let process = process::Process::open(plan.pid)?;
    // Less is enough for most processes, and threads that find no room are counted.
    let _ = limits::raise_open_files(OPEN_FILES);
    let stop = stop.clone();
    let work = move || {
        let clock = MonotonicClock::new();
        let cpu_before = own_process::thread_cpu_time();
        let length = Nanos::from_secs(plan.seconds.into());
        let sampled = sampler::Sampler::new(process, plan.hz, &clock).run(length, &stop, random::seed());
        let cpu_sampled = own_process::thread_cpu_time();
        let mut profile = profile::name(sampled, plan.hz);
        profile.own_cpu_share = cpu_sampled.saturating_sub(cpu_before).as_secs_f64() / profile.seconds.max(1e-9);
        profile.naming_cpu_s = own_process::thread_cpu_time().saturating_sub(cpu_sampled).as_secs_f64();
        profile
    };
    let thread = spawn_named("wallclock", Priority::Normal, work).map_err(WallclockError::Thread)?;
    let profile = match thread.join() {
        Ok(profile) => profile,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    if profile.threads.iter().all(|thread| thread.times.wall_ns() == 0) {
        return Err(WallclockError::Ended { pid: plan.pid });
    }
    Ok(profile)
}
