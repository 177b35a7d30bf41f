//! What the kernel's scheduler did: sums per thread, and who else had the host's cores.
//!
//! [`ThreadSums`] is how long one of our threads ran, and how long it was ready and had no core. It works everywhere,
//! unprivileged and in containers, and tells how much, not when; [`perf`](crate::perf) tells when. [`HostLook`] answers
//! the next question, who had the cores meanwhile: two looks, and the busiest processes between them.
//!
//! `ThreadSums` is for the frame: no allocation, two system calls (about 2 us) per reading. `HostLook` is for a thread
//! that may take its time: it allocates and costs some 2 us per process of the host.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::ClockId;
use nix::unistd::{Pid, gettid};

use crate::process::cpu_time_of;
use crate::ticks::monotonic_ns;
use crate::time::Nanos;

/// How long a thread has run and waited since its start.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub running_ns: u64,
    /// Ready to run, without a core. A wait counts when it ends.
    pub waiting_ns: u64,
}

/// The kernel's sums about one thread of this process. Any thread may read them.
pub struct ThreadSums {
    schedstat: File,
    clock: ClockId,
}

impl ThreadSums {
    /// Of this thread; 0 means the calling one. Fails where `/proc` is not there or keeps no such sums.
    pub fn open(tid: u32) -> io::Result<ThreadSums> {
        let tid = number_of(tid);
        let schedstat = File::open(format!("/proc/self/task/{tid}/schedstat"))?;
        let sums = ThreadSums { schedstat, clock: clock_of(tid) };
        sums.read()?;
        Ok(sums)
    }

    /// Both sums as of now. Fails when the thread has ended.
    pub fn read(&self) -> io::Result<Sums> {
        let waiting_ns = self.read_waiting_ns()?;
        // The file's own first number is up to a timer's tick old while the thread runs; its clock never is.
        let running = self.clock.now()?;
        Ok(Sums { running_ns: running.tv_sec() as u64 * 1_000_000_000 + running.tv_nsec() as u64, waiting_ns })
    }

    /// Just the wait, for half the cost: one system call.
    pub fn read_waiting_ns(&self) -> io::Result<u64> {
        let mut bytes = [0; 80];
        let length = self.schedstat.read_at(&mut bytes, 0)?;
        waiting_ns_in(&bytes[..length]).ok_or(io::ErrorKind::InvalidData.into())
    }
}

/// The second of the three numbers: time run (ns), time waited (ns), times run.
fn waiting_ns_in(schedstat: &[u8]) -> Option<u64> {
    std::str::from_utf8(schedstat).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The processor time of a thread as a clock: the kernel's encoding has the number's complement in the high bits, and
/// below it "of one thread" (4) and "as the scheduler counts it" (2).
fn clock_of(tid: u32) -> ClockId {
    ClockId::from_raw((!(tid as libc::clockid_t) << 3) | 4 | 2)
}

fn number_of(tid: u32) -> u32 {
    if tid == 0 { gettid().as_raw() as u32 } else { tid }
}

/// What a thread does at the moment.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// It sleeps or waits for something, rather than running or waiting for a core.
    pub is_asleep: bool,
    /// The core that it runs on, or ran on last.
    pub core: u32,
}

/// Asks about a thread of this process (0: the calling one). Fails where it has ended. Allocates.
pub fn thread_state(tid: u32) -> io::Result<ThreadState> {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", number_of(tid)))?;
    thread_state_in(&stat).ok_or(io::ErrorKind::InvalidData.into())
}

/// `12 (name) S …`, and the name may hold brackets; the state is the third field, the core the 39th.
fn thread_state_in(stat: &str) -> Option<ThreadState> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_asleep = fields.next()? != "R";
    Some(ThreadState { is_asleep, core: fields.nth(39 - 4)?.parse().ok()? })
}

/// The cores that the calling thread may be tied to, by number.
pub fn pinnable_cores() -> Vec<u32> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|core| allowed.is_set(*core) == Ok(true)).map(|core| core as u32).collect()
}

/// Ties the calling thread to one core. For measurements: a scheduler that may choose does better.
pub fn pin_this_thread(core: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core as usize)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Puts the calling thread, and those that it starts from now on, in the batch class (`SCHED_BATCH`): one that is woken waits until the
/// core is free, and does not take it from the thread that woke it. For measurements on one core, where the time of the one would else
/// be within the scopes of the other. Needs no permission; sandboxes may refuse it.
pub fn join_batch_class() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads the struct that it is given.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The host's processes at one moment, to be compared with a later one.
pub struct HostLook {
    at_ns: u64,
    /// Processor time by process, in the order of their numbers.
    processes: Vec<(u32, Nanos)>,
    totals: Totals,
}

/// Processes that a look knows at most; on a host with more, some are missing.
const PROCESSES_MAX: usize = 8_192;

/// Who used the host's cores between two looks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostShares {
    /// Other processes, the busiest first. One that ended in between is missing.
    pub processes: Vec<ProcessShare>,
    /// What this process used. (cores)
    pub own_cores: f32,
    /// What all processes and the kernel used. (cores; in steps of 10 ms of processor time)
    pub busy_cores: f32,
    /// What a hypervisor gave to somebody else while this host wanted it. (cores)
    pub stolen_cores: f32,
    /// Cores that the host has.
    pub host_cores: u32,
}

/// One process's share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessShare {
    pub pid: u32,
    /// As `top` shows it; empty if the process is gone.
    pub name: String,
    /// Cores that it used [0 to all of them].
    pub cores: f32,
}

/// Less than this is not worth a line. (cores)
const CORES_MIN: f32 = 0.005;

impl HostLook {
    /// Looks at all processes that `/proc` shows. Where it shows nothing, the look is empty.
    pub fn now() -> HostLook {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut processes: Vec<(u32, Nanos)> =
            pids.filter_map(|pid| Some((pid, cpu_time_of(pid).ok()?))).take(PROCESSES_MAX).collect();
        processes.sort_unstable();
        let totals = fs::read_to_string("/proc/stat").map(|text| Totals::parse(&text)).unwrap_or_default();
        HostLook { at_ns: monotonic_ns(), processes, totals }
    }

    /// Who used how much since an earlier look, with at most `count_max` other processes by name.
    pub fn shares_since(&self, earlier: &HostLook, count_max: usize) -> HostShares {
        let elapsed_ns = self.at_ns.saturating_sub(earlier.at_ns).max(1) as f32;
        let mut used: Vec<(u32, f32)> = self
            .processes
            .iter()
            .map(|&(pid, now)| {
                let found = earlier.processes.binary_search_by_key(&pid, |&(pid, _)| pid);
                let before = found.map_or(Nanos::ZERO, |at| earlier.processes[at].1);
                // With less time than before, it is another process of the same number.
                let used = if before <= now { now - before } else { now };
                (pid, used.0 as f32 / elapsed_ns)
            })
            .collect();
        let own = used.iter().position(|&(pid, _)| pid == std::process::id());
        let own_cores = own.map_or(0.0, |at| used.swap_remove(at).1);
        used.retain(|&(_, cores)| cores >= CORES_MIN);
        used.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
        used.truncate(count_max);
        let share = |(pid, cores)| ProcessShare { pid, name: name_of(pid), cores };
        let [busy_cores, stolen_cores] = self.totals.cores_since(&earlier.totals);
        HostShares {
            processes: used.into_iter().map(share).collect(),
            own_cores,
            busy_cores,
            stolen_cores,
            host_cores: self.totals.cores,
        }
    }
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// The first line of `/proc/stat`, in the kernel's own unit of time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    busy: u64,
    stolen: u64,
    all: u64,
    cores: u32,
}

impl Totals {
    /// `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE` (guests are part of the users), then a
    /// line per core.
    fn parse(stat: &str) -> Totals {
        let mut totals = Totals::default();
        for line in stat.lines() {
            let Some((name, columns)) = line.split_once(' ').filter(|(name, _)| name.starts_with("cpu")) else {
                continue;
            };
            if name != "cpu" {
                totals.cores += 1;
                continue;
            }
            for (column, time) in columns.split_ascii_whitespace().take(8).enumerate() {
                let time: u64 = time.parse().unwrap_or(0);
                totals.all += time;
                match column {
                    3 | 4 => {}
                    7 => totals.stolen = time,
                    _ => totals.busy += time,
                }
            }
        }
        totals
    }

    /// Busy and stolen cores.
    fn cores_since(&self, earlier: &Totals) -> [f32; 2] {
        let all = self.all.saturating_sub(earlier.all).max(1) as f32;
        let cores = |now: u64, before: u64| now.saturating_sub(before) as f32 / all * self.cores as f32;
        [cores(self.busy, earlier.busy), cores(self.stolen, earlier.stolen)]
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::process::{cpu_time, thread_cpu_time};

    fn burn(time: Nanos) {
        let begin = thread_cpu_time();
        while thread_cpu_time() - begin < time {}
    }

    #[test]
    fn a_busy_thread_runs() {
        let sums = ThreadSums::open(0).unwrap();
        let (before, clock_before) = (sums.read().unwrap(), thread_cpu_time());
        burn(Nanos::from_millis(20));
        let (after, clock_after) = (sums.read().unwrap(), thread_cpu_time());
        let ratio = (after.running_ns - before.running_ns) as f64 / (clock_after - clock_before).0 as f64;
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
        let state = thread_state(0).unwrap();
        assert!(!state.is_asleep && pinnable_cores().contains(&state.core), "{state:?}");
    }

    #[test]
    fn a_thread_of_the_batch_class_starts_threads_of_it() {
        // SAFETY: asks about the calling thread.
        let class = || unsafe { libc::sched_getscheduler(0) };
        let classes = std::thread::spawn(move || {
            join_batch_class().unwrap();
            [class(), std::thread::spawn(class).join().unwrap()]
        });
        assert_eq!(classes.join().unwrap(), [libc::SCHED_BATCH; 2]);
    }

    #[test]
    fn two_threads_on_one_core_wait_for_each_other() {
        let core = pinnable_cores()[0];
        let work = move || {
            pin_this_thread(core).unwrap();
            let sums = ThreadSums::open(0).unwrap();
            let (before, begin_ns) = (sums.read().unwrap(), monotonic_ns());
            burn(Nanos::from_millis(150));
            let (after, end_ns) = (sums.read().unwrap(), monotonic_ns());
            let (running, waiting) = (after.running_ns - before.running_ns, after.waiting_ns - before.waiting_ns);
            // Never asleep, so the two make up the wall time, but for what a hypervisor stole.
            ((running + waiting) as f64 / (end_ns - begin_ns) as f64, waiting)
        };
        let threads = [std::thread::spawn(work), std::thread::spawn(work)];
        let seen = threads.map(|thread| thread.join().unwrap());
        // The later one may have the core for itself at the end; the two overlap for most of the time.
        assert!(seen.iter().all(|&(sum, _)| (0.8..1.02).contains(&sum)), "{seen:?}");
        assert!(seen.iter().map(|&(_, waiting)| waiting).sum::<u64>() > 150_000_000, "{seen:?}");
    }

    #[test]
    fn a_sleeping_thread_is_asleep_and_one_that_ended_an_error() {
        let (tell, told) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(gettid().as_raw() as u32).unwrap();
            wait.recv().unwrap();
        });
        let tid = told.recv().unwrap();
        let sums = ThreadSums::open(tid).unwrap();
        while !thread_state(tid).unwrap().is_asleep {
            std::thread::yield_now();
        }
        let before = sums.read().unwrap();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(sums.read().unwrap(), before, "it sleeps");
        go.send(()).unwrap();
        thread.join().unwrap();
        // The kernel may need a moment after the join.
        while sums.read().is_ok() {
            std::thread::yield_now();
        }
        assert!(ThreadSums::open(u32::MAX).is_err());
        assert!(thread_state(u32::MAX).is_err());
    }

    #[test]
    fn a_name_with_brackets_does_not_hide_the_state() {
        let stat = format!("12 (a) R (b) S{} 7 0 0\n", " 1".repeat(35));
        assert_eq!(thread_state_in(&stat), Some(ThreadState { is_asleep: true, core: 7 }));
        assert_eq!(thread_state_in("12 (a) S 1 2"), None);
        assert_eq!(thread_state_in(""), None);
    }

    #[test]
    fn sums_are_read_by_position() {
        assert_eq!(waiting_ns_in(b"149500000 151100000 312\n"), Some(151_100_000));
        assert_eq!(waiting_ns_in(b"149500000\n"), None);
        assert_eq!(waiting_ns_in(b""), None);
        assert_eq!(waiting_ns_in(b"1 x 2\n"), None);
    }

    #[test]
    fn another_process_is_named_with_its_share_and_this_one_is_not() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = child.id();
        let (earlier, own_before, child_before) = (HostLook::now(), cpu_time(), cpu_time_of(pid).unwrap());
        burn(Nanos::from_millis(100));
        let (later, own_after, child_after) = (HostLook::now(), cpu_time(), cpu_time_of(pid).unwrap());
        let shares = later.shares_since(&earlier, 10_000);
        child.kill().unwrap();
        child.wait().unwrap();

        assert!(shares.processes.iter().all(|share| share.pid != std::process::id()));
        assert!(shares.processes.iter().map(|share| share.cores).is_sorted_by(|a, b| a >= b));
        let found = shares.processes.iter().find(|share| share.pid == pid).unwrap();
        assert_eq!(found.name, "sh");
        let expect = (child_after - child_before).0 as f32 / (own_after - own_before).0 as f32;
        let ratio = found.cores / shares.own_cores / expect;
        assert!((0.8..1.25).contains(&ratio), "{ratio}: {shares:?}");
        assert!(shares.busy_cores <= shares.host_cores as f32);
        assert!(later.shares_since(&earlier, 1).processes.len() == 1);
    }

    #[test]
    fn host_totals_know_busy_stolen_and_idle_time() {
        let before = Totals::parse("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 5 6\n");
        let after = Totals::parse("cpu  150 10 130 850 50 5 5 100 50 0\ncpu0 1\ncpu1 1\nintr 5 6\n");
        // Of 300 units on two cores, 100 were busy and 100 stolen.
        let [busy, stolen] = after.cores_since(&before);
        assert!((busy - 2.0 / 3.0).abs() < 1e-6 && (stolen - 2.0 / 3.0).abs() < 1e-6, "{busy} {stolen}");
        assert_eq!(Totals::parse("no such line"), Totals::default());
    }
}
