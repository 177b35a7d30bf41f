//! Heartbeat: when a core stood still for everybody, which no record of the kernel's tells.
//!
//! A virtual machine's core that its host takes away stands still without a switch, and often without steal in
//! `/proc/stat`. So on each core that this process may use a thread sleeps until the next beat, every [`PERIOD`] of the
//! monotonic clock. It is a real-time one of high priority, so nothing of user space keeps it from waking in time: when
//! it wakes [`LATE_MIN`] too late or more, the host had the core, or the kernel itself. (Or somebody stopped the whole
//! process, by SIGSTOP or by freezing its container, which is not its own doing either.)
//!
//! ```text
//!   beat      beat      due                  woke      due
//!    |---------|---------x~~~~~~~~~~~~~~~~~~~|----|---------|
//!                        <--- the stall ---->
//! ```
//!
//! What is noted begins with the beat that was due, so it is shorter than what was, by a period at most.
//!
//! Real-time threads take CAP_SYS_NICE or a limit of real-time priority (RLIMIT_RTPRIO); elsewhere there is no
//! heartbeat, since one that other processes can delay says nothing of the host.
//!
//! Whoever wants to know reads [`StallLog`], any thread, without a lock. Never allocates after its start. Cost: 250
//! wake-ups a second of each core, of 3 to 6 us with the kernel's part, which is 0.1 % of it, and 0.3 to 0.5 % on a
//! host where each wakes a core from its sleep. Every 2 ms would tell 2 ms more of each stall for twice that; those that
//! make a tick late are ten times as long. While nothing is to be late it can rest, and costs nothing ([`Heartbeat::rest`]).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use nix::sys::resource::{Resource, getrlimit};
use thiserror::Error;

use crate::sched::{pin_this_thread, pinnable_cores};
use crate::threads::{Priority, spawn_named};
use crate::ticks::monotonic_ns;
use crate::time::Nanos;

/// Time between two beats of a core. Too low: the beats take processor time. Too high: stalls of this length go by
/// between two beats.
pub const PERIOD: Nanos = Nanos::from_millis(4);

/// So late is a stall. Too low: the kernel's own work, which may take a ms with interrupts off, is told as the host's.
/// Too high: several short stalls, which make a tick late together, are told as none. At 128 Hz, half of a tick's period.
pub const LATE_MIN: Nanos = Nanos::from_millis(4);

/// Stalls that are remembered per core. One after the other these are more than a second; on a host as bad as that,
/// readers that look less often miss some.
const STALLS_KEPT: usize = 256;

/// Real-time priority, 1 to 99: before what users run as real-time, after what keeps the kernel alive.
const PRIORITY: i32 = 90;

/// A core stood still for so long. (ns, monotonic clock)
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The core's place among those that are watched.
    pub place: usize,
    /// The kernel's number of it.
    pub core: u32,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Why there is no heartbeat.
#[derive(Debug, Error)]
pub enum HeartbeatError {
    #[error(
        "real-time priority is not permitted ({0}): give the program CAP_SYS_NICE, or a limit of real-time priority \
         (`ulimit -r 90`, LimitRTPRIO=90 in its unit)"
    )]
    Priority(io::Error),
    #[error("a thread cannot be started or tied to its core: {0}")]
    Thread(io::Error),
}

/// Beats until it is dropped.
pub struct Heartbeat {
    log: StallLog,
    orders: Arc<Orders>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads are to do. Written by the owner, who then wakes them; read by them before each beat, for its own sake
/// alone: relaxed.
#[derive(Default)]
struct Orders {
    is_stopping: AtomicBool,
    rests: AtomicBool,
}

impl Heartbeat {
    /// Begins on each core that the calling thread may use; one thread each.
    pub fn start() -> Result<Heartbeat, HeartbeatError> {
        let log = StallLog::of(pinnable_cores());
        let orders = Arc::<Orders>::default();
        // Dropped on failure: then the threads that have begun end.
        let mut heartbeat = Heartbeat { log: log.clone(), orders: orders.clone(), threads: Vec::new() };
        for place in 0..log.cores.len() {
            let (log, orders) = (log.clone(), orders.clone());
            let (tell, told) = sync_channel(1);
            let core = log.cores[place].core;
            let thread = spawn_named(&format!("heartbeat-{core}"), Priority::Normal, move || {
                let ready = pin_this_thread(core)
                    .map_err(HeartbeatError::Thread)
                    .and_then(|()| be_real_time().map_err(HeartbeatError::Priority));
                let is_ready = ready.is_ok();
                let _ = tell.send(ready);
                if is_ready {
                    beat(&log.cores[place], &orders);
                }
            });
            heartbeat.threads.push(thread.map_err(HeartbeatError::Thread)?);
            told.recv().map_err(|_| HeartbeatError::Thread(io::ErrorKind::Other.into()))??;
        }
        Ok(heartbeat)
    }

    /// What it notes, for readers.
    pub fn log(&self) -> StallLog {
        self.log.clone()
    }

    /// Stops beating with the next beat, or goes on at once: the next one is due a [`PERIOD`] from now. Of the time between
    /// nothing is noted. Any thread; to go on takes a system call for each core.
    pub fn rest(&self, rests: bool) {
        self.orders.rests.store(rests, Ordering::Relaxed);
        if !rests {
            self.wake();
        }
    }

    fn wake(&self) {
        self.threads.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.orders.is_stopping.store(true, Ordering::Relaxed);
        self.wake();
        for thread in self.threads.drain(..) {
            // It cannot panic; if it did, there would be no more beats to stop.
            let _ = thread.join();
        }
    }
}

/// One core's thread.
fn beat(stalls: &CoreStalls, orders: &Orders) {
    let mut due_ns = monotonic_ns() + PERIOD.0;
    while !orders.is_stopping.load(Ordering::Relaxed) {
        if orders.rests.load(Ordering::Relaxed) {
            std::thread::park();
            // Nothing was due meanwhile.
            due_ns = monotonic_ns() + PERIOD.0;
            continue;
        }
        sleep_until(due_ns);
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(due_ns) >= LATE_MIN.0 {
            stalls.note(due_ns, now_ns);
        }
        // Beats that were missed are not made up for.
        due_ns = (due_ns + PERIOD.0).max(now_ns);
    }
}

fn sleep_until(at_ns: u64) {
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    loop {
        // SAFETY: reads the time that it is given; with an absolute time nothing is written.
        let result = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const at, std::ptr::null_mut())
        };
        if result != libc::EINTR {
            return;
        }
    }
}

/// With [`PRIORITY`], or the highest below it that the limit permits.
fn be_real_time() -> io::Result<()> {
    let permitted = getrlimit(Resource::RLIMIT_RTPRIO).map_or(0, |(soft, _)| soft.min(PRIORITY as u64) as i32);
    set_real_time(PRIORITY).or_else(|error| if permitted > 0 { set_real_time(permitted) } else { Err(error) })
}

fn set_real_time(priority: i32) -> io::Result<()> {
    // Zero is right for what else there is in it, on systems where there is more.
    // SAFETY: a structure of plain numbers.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: 0 is the calling thread, and the structure is only read. What it starts does not inherit it.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The last stalls of each core. Clones share it.
#[derive(Clone, Debug)]
pub struct StallLog {
    cores: Arc<[CoreStalls]>,
}

/// The stalls of one core, in a ring that its thread alone writes.
#[derive(Debug)]
struct CoreStalls {
    core: u32,
    /// Noted since the start. Stored after the slot was written (release), and loaded before one is read (acquire).
    count: AtomicU64,
    /// Begin and end. (ns) While one is overwritten, a reader may see half of it: so it looks at the count again.
    slots: [[AtomicU64; 2]; STALLS_KEPT],
}

impl StallLog {
    /// For these cores, without a thread that notes anything.
    fn of(cores: Vec<u32>) -> StallLog {
        let of_core = |core| CoreStalls {
            core,
            count: AtomicU64::new(0),
            slots: std::array::from_fn(|_| [AtomicU64::new(0), AtomicU64::new(0)]),
        };
        StallLog { cores: cores.into_iter().map(of_core).collect() }
    }

    /// Cores that are watched, by place.
    pub fn cores_count(&self) -> usize {
        self.cores.len()
    }

    /// A reader that begins with what is noted from now on.
    pub fn reader(&self) -> StallReader {
        let read = self.cores.iter().map(|core| core.count.load(Ordering::Acquire)).collect();
        StallReader { log: self.clone(), read }
    }

    /// What is remembered of a time (ns, monotonic clock), core by core, the oldest first.
    pub fn between(&self, begin_ns: u64, end_ns: u64) -> Vec<Stall> {
        let mut stalls = Vec::new();
        StallReader { log: self.clone(), read: vec![0; self.cores.len()] }.take(|stall| stalls.push(stall));
        stalls.retain(|stall| stall.begin_ns < end_ns && stall.end_ns > begin_ns);
        stalls
    }
}

impl CoreStalls {
    fn note(&self, begin_ns: u64, end_ns: u64) {
        let count = self.count.load(Ordering::Relaxed);
        let [begin, end] = &self.slots[count as usize % STALLS_KEPT];
        // Not before the last count: whoever sees these, sees that one, too.
        begin.store(begin_ns, Ordering::Release);
        end.store(end_ns, Ordering::Release);
        self.count.store(count + 1, Ordering::Release);
    }

    /// The stall of this number, unless it has made room.
    fn get(&self, number: u64) -> Option<(u64, u64)> {
        let [begin, end] = &self.slots[number as usize % STALLS_KEPT];
        let seen = (begin.load(Ordering::Acquire), end.load(Ordering::Acquire));
        // The slot of the one that is being written is that of the oldest.
        (number + STALLS_KEPT as u64 > self.count.load(Ordering::Acquire)).then_some(seen)
    }
}

/// Reads each stall once.
#[derive(Clone, Debug)]
pub struct StallReader {
    log: StallLog,
    /// By core: how many were read.
    read: Vec<u64>,
}

impl StallReader {
    /// Cores that are watched.
    pub fn cores_count(&self) -> usize {
        self.log.cores_count()
    }

    /// Hands over what was noted since the last call, core by core, the oldest first. Never allocates; a load per core
    /// if there is nothing.
    pub fn take(&mut self, mut each: impl FnMut(Stall)) {
        for (place, (core, read)) in self.log.cores.iter().zip(&mut self.read).enumerate() {
            let count = core.count.load(Ordering::Acquire);
            for number in (*read).max(count.saturating_sub(STALLS_KEPT as u64 - 1))..count {
                if let Some((begin_ns, end_ns)) = core.get(number) {
                    each(Stall { place, core: core.core, begin_ns, end_ns });
                }
            }
            *read = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::not_permitted;

    fn taken(reader: &mut StallReader) -> Vec<(u32, u64, u64)> {
        let mut stalls = Vec::new();
        reader.take(|stall| stalls.push((stall.core, stall.begin_ns, stall.end_ns)));
        stalls
    }

    #[test]
    fn each_reader_gets_every_stall_once() {
        let log = StallLog::of(vec![0, 5]);
        log.cores[0].note(1, 2);
        let mut late = log.reader();
        let mut early = StallReader { log: log.clone(), read: vec![0, 0] };
        log.cores[1].note(10, 20);
        assert_eq!(taken(&mut early), [(0, 1, 2), (5, 10, 20)]);
        assert_eq!((taken(&mut early), taken(&mut late)), (vec![], vec![(5, 10, 20)]));
    }

    #[test]
    fn the_oldest_make_room() {
        let log = StallLog::of(vec![0]);
        let mut reader = log.reader();
        (0..1_000).for_each(|n| log.cores[0].note(n, n + 1));
        let seen = taken(&mut reader);
        assert_eq!((seen.len(), seen[0], seen.last()), (STALLS_KEPT - 1, (0, 745, 746), Some(&(0, 999, 1_000))));
        assert_eq!(log.cores[0].get(3), None);
    }

    #[test]
    fn of_a_time_only_what_touches_it_is_told() {
        let log = StallLog::of(vec![0]);
        [(10, 20), (30, 40), (50, 60)].into_iter().for_each(|(begin, end)| log.cores[0].note(begin, end));
        let seen: Vec<u64> = log.between(20, 50).iter().map(|stall| stall.begin_ns).collect();
        assert_eq!(seen, [30]);
    }

    /// Runs one of the tests below in a process of its own.
    fn alone(test: &str) {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let test = format!("heartbeat::tests::{test}");
        let output = command.args(["--ignored", "--exact", &test, "--nocapture"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    /// One that beats, unless that is not permitted here.
    fn permitted() -> Option<Heartbeat> {
        match Heartbeat::start() {
            Ok(heartbeat) => Some(heartbeat),
            Err(HeartbeatError::Thread(error)) => panic!("{error}"),
            Err(error) => {
                not_permitted(&error.to_string());
                None
            }
        }
    }

    /// A stop of the whole process looks like a stall, which is how a test can make one.
    #[test]
    fn a_process_that_stood_still_is_told_on_every_core() {
        alone("a_process_that_is_stopped_for_100_ms");
    }

    #[test]
    #[ignore = "for the test above, which runs it"]
    fn a_process_that_is_stopped_for_100_ms() {
        let Some(heartbeat) = permitted() else { return };
        let mut reader = heartbeat.log().reader();
        let begin_ns = monotonic_ns();
        // Somebody else must let us go on.
        let pid = std::process::id();
        let script = format!("kill -STOP {pid}; sleep 0.1; kill -CONT {pid}");
        let status = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
        assert!(status.success());
        // A beat later every thread has woken.
        std::thread::sleep((PERIOD + PERIOD).into());
        let end_ns = monotonic_ns();
        let mut stalled_ns = vec![0; heartbeat.log().cores_count()];
        reader.take(|stall| {
            assert!((begin_ns - PERIOD.0..end_ns).contains(&stall.begin_ns) && stall.end_ns <= end_ns, "{stall:?}");
            stalled_ns[stall.place] += stall.end_ns - stall.begin_ns;
        });
        assert!(stalled_ns.iter().all(|ns| *ns >= 80_000_000), "{stalled_ns:?}");
    }

    /// How often each heartbeat of this process has gone to sleep in the kernel.
    fn sleeps() -> Vec<u64> {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let statuses = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
        let of_heartbeats = statuses.filter(|status| status.starts_with("Name:\theartbeat-"));
        let count = |status: String| {
            let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
            count.trim().parse().unwrap()
        };
        of_heartbeats.map(count).collect()
    }

    #[test]
    fn at_rest_nothing_beats_and_no_stall_comes_of_it() {
        alone("a_heartbeat_that_rests_for_100_ms");
    }

    #[test]
    #[ignore = "for the test above, which runs it"]
    fn a_heartbeat_that_rests_for_100_ms() {
        let Some(heartbeat) = permitted() else { return };
        let mut reader = heartbeat.log().reader();
        heartbeat.rest(true);
        // Each had its last beat, and one more was on its way.
        std::thread::sleep((PERIOD + PERIOD + PERIOD).into());
        let (resting_ns, before) = (monotonic_ns(), sleeps());
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!((before.len(), sleeps()), (heartbeat.log().cores_count(), before.clone()));
        let awake_ns = monotonic_ns();
        heartbeat.rest(false);
        while sleeps().iter().zip(&before).any(|(now, before)| *now < before + 5) {
            std::thread::sleep(PERIOD.into());
        }
        reader.take(|stall| assert!(stall.end_ns <= resting_ns || stall.begin_ns >= awake_ns, "{stall:?}"));
    }

    #[test]
    fn it_ends_when_it_is_dropped_even_at_rest() {
        for rests in [false, true] {
            let Ok(heartbeat) = Heartbeat::start() else { return };
            heartbeat.rest(rests);
            let log = heartbeat.log();
            assert_eq!(log.cores_count(), pinnable_cores().len());
            drop(heartbeat);
            assert_eq!(Arc::strong_count(&log.cores), 1, "no thread holds it any more");
        }
    }
}
