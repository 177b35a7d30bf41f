//! Cores: which threads of the whole host had our cores, where the kernel tells.
//!
//! [`Switches`](crate::switches::Switches) knows when our threads had no core; this knows who had it instead. Each core
//! that this process may use has a ring of the kernel's ([`throng_platform::perf::cores`]), which a thread of its own
//! empties every [`READ_EVERY`], so that captures, which take seconds to write at low priority, cost no records. What it
//! read is kept for captures: 16 bytes per switch ([`runs`]), and a name per thread ([`names`]).
//!
//! No frame's thread comes here. Cost: each switch of a core, whosever it is, costs that core some 2 us more and the
//! reader 0.1 us. A host with 5,000 switches a second on each core loses 1 % of it; 260 KiB of locked memory per core,
//! and up to 1 MiB for what is kept. That is why it is a setting. Switched off, nothing is recorded and nobody wakes.

mod names;
mod runs;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use throng_capture::model::{Core, CoreRun, HostThread, Owner};
use throng_platform::perf::cores::{CoreEvents, CoreRecord, ThreadName, sees_all_processes};
use throng_platform::sched::pinnable_cores;
use throng_platform::threads::{Priority, spawn_named};

use names::Names;
use runs::{Runs, UNKNOWN};

/// A ring holds 160 ms of a core that switches 20,000 times a second.
const READ_EVERY: Duration = Duration::from_millis(20);

/// Cores that are followed: 260 MiB of memory at the very most. On a larger host some stay unknown.
const CORES_MAX: usize = 256;

/// Records of one core that one turn takes, so that no flood of them keeps it.
const RECORDS_MAX: usize = 16_384;

/// How long a capture waits for the rings: a turn takes a few ms.
const LOCKED_WITHIN: Duration = Duration::from_millis(100);

/// Follows the cores until it is dropped.
pub(crate) struct CoreWatch {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

/// What the cores did, for captures. Any thread but a frame's.
#[derive(Clone)]
pub(crate) struct CoreHistory {
    shared: Arc<Shared>,
}

struct Shared {
    /// The reader's, and a saver's for moments.
    rings: Mutex<Rings>,
    /// Written by the frame's thread, obeyed by the reader with its next turn, for which it is woken if it sleeps: relaxed.
    is_on: AtomicBool,
    is_stopping: AtomicBool,
    /// Records that found a ring full. Written by whoever reads the rings, for its own sake alone: relaxed.
    lost: AtomicU64,
}

struct Rings {
    events: Vec<CoreEvents>,
    is_on: bool,
    known: Known,
}

impl CoreWatch {
    /// Begins to follow the cores that this process may use. Fails where the kernel does not tell; the error says what
    /// to do about it.
    pub fn start() -> Result<CoreWatch, String> {
        let cores: Vec<u32> = pinnable_cores().into_iter().take(CORES_MAX).collect();
        let events: Result<Vec<CoreEvents>, _> = cores.iter().map(|core| CoreEvents::open(*core)).collect();
        let events = events.map_err(|error| error.to_string())?;
        let known = Known::new(cores, std::process::id(), sees_all_processes());
        let shared = Arc::new(Shared {
            rings: Mutex::new(Rings { events, is_on: true, known }),
            is_on: AtomicBool::new(true),
            is_stopping: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        });
        let for_reader = Arc::clone(&shared);
        // Not a low one: with the cores taken it would be the last to run, just when it has most to read.
        let reader = spawn_named("recorder-cores", Priority::Normal, move || {
            while !for_reader.is_stopping.load(Ordering::Relaxed) {
                for_reader.rings.lock().unwrap_or_else(PoisonError::into_inner).read(&for_reader);
                if for_reader.is_on.load(Ordering::Relaxed) {
                    std::thread::park_timeout(READ_EVERY);
                } else {
                    std::thread::park();
                }
            }
        });
        let reader = reader.map_err(|error| format!("which other processes had a core stays unknown: {error}"))?;
        Ok(CoreWatch { shared, reader: Some(reader) })
    }

    pub fn history(&self) -> CoreHistory {
        CoreHistory { shared: Arc::clone(&self.shared) }
    }

    /// Stops following within 20 ms, or goes on at once. What happens meanwhile is not known. A system call to go on.
    pub fn switch_on(&self, is_on: bool) {
        let was_on = self.shared.is_on.swap(is_on, Ordering::Relaxed);
        if is_on && !was_on {
            self.wake();
        }
    }

    fn wake(&self) {
        self.reader.iter().for_each(|reader| reader.thread().unpark());
    }
}

impl Drop for CoreWatch {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(reader) = self.reader.take() {
            // It cannot panic over what a kernel says; if it did, there is nobody to tell.
            let _ = reader.join();
        }
    }
}

impl CoreHistory {
    /// Who had which core from `begin_ns` to `end_ns` (monotonic clock): threads, and the cores' runs with places among
    /// them. The first run of a core says who had it at `begin_ns`, as if from then. Times stay on the monotonic clock.
    pub fn between(&self, begin_ns: u64, end_ns: u64) -> (Vec<HostThread>, Vec<Core>) {
        // Whoever asks may be the reader itself, on its way out of the process.
        let give_up_at = Instant::now() + LOCKED_WITHIN;
        loop {
            match self.shared.rings.try_lock() {
                Ok(mut rings) => return rings.read_between(&self.shared, begin_ns, end_ns),
                Err(TryLockError::Poisoned(rings)) => {
                    return rings.into_inner().read_between(&self.shared, begin_ns, end_ns);
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= give_up_at => return (Vec::new(), Vec::new()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// Records that were lost since the beginning because a ring was full.
    pub fn records_lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Rings {
    /// Takes what the rings hold, and obeys whoever wants them on or off.
    fn read(&mut self, shared: &Shared) {
        let Rings { events, is_on, known } = self;
        let wanted = shared.is_on.load(Ordering::Relaxed);
        let changes = std::mem::replace(is_on, wanted) != wanted;
        if changes {
            // Before the rings are read: what they would hold behind that would be read later, as if it were news.
            // It has worked before; where it does not now, records are missing or too many, and no harm is done.
            events.iter_mut().for_each(|events| _ = events.switch_on(wanted));
        }
        for (place, events) in events.iter_mut().enumerate() {
            events.read(RECORDS_MAX, |record| known.take(place, record));
        }
        known.settle(ThreadName::of);
        if changes && wanted {
            known.doubt_names();
        }
        if !wanted {
            // With every look: a flood is not read at once.
            (0..events.len()).for_each(|place| known.forget_present(place));
        }
        shared.lost.store(known.lost, Ordering::Relaxed);
    }

    fn read_between(&mut self, shared: &Shared, begin_ns: u64, end_ns: u64) -> (Vec<HostThread>, Vec<Core>) {
        self.read(shared);
        self.known.between(begin_ns, end_ns)
    }
}

/// What the records told.
struct Known {
    own_pid: u32,
    /// Whether the thread 0 is an idle core for sure.
    zero_is_idle: bool,
    cores: Vec<(u32, Runs)>,
    names: Names,
    lost: u64,
}

impl Known {
    fn new(cores: Vec<u32>, own_pid: u32, zero_is_idle: bool) -> Known {
        let cores = cores.into_iter().map(|core| (core, Runs::default())).collect();
        Known { own_pid, zero_is_idle, cores, names: Names::default(), lost: 0 }
    }

    /// One record of the core in this place.
    fn take(&mut self, place: usize, record: CoreRecord) {
        let runs = &mut self.cores[place].1;
        match record {
            CoreRecord::Runs { at_ns, pid, tid } => {
                runs.push(at_ns, tid);
                self.names.meet(pid, tid);
            }
            CoreRecord::Lost { at_ns, count } => {
                self.lost += count;
                runs.lose(at_ns);
            }
            other => self.names.note(other),
        }
    }

    /// Once the rings of all cores were read: a thread may have begun on one and run on another.
    fn settle(&mut self, name_of: impl FnMut(u32, u32) -> Option<ThreadName>) {
        self.names.settle(name_of);
    }

    /// Threads began, ended and were renamed, and nobody told.
    fn doubt_names(&mut self) {
        self.names.doubt();
    }

    /// From the last record on, nobody knows who has the core.
    fn forget_present(&mut self, place: usize) {
        self.cores[place].1.lose_present();
    }

    fn between(&self, begin_ns: u64, end_ns: u64) -> (Vec<HostThread>, Vec<Core>) {
        let mut tids: Vec<u32> = Vec::new();
        let windows: Vec<_> = self.cores.iter().map(|(core, runs)| (*core, runs.between(begin_ns, end_ns))).collect();
        for (_, runs) in &windows {
            tids.extend(runs.iter().map(|run| run.tid).filter(|tid| *tid != UNKNOWN));
        }
        tids.sort_unstable();
        tids.dedup();
        let place_of = |tid: u32| tids.binary_search(&tid).ok().map(|place| place as u32);
        let cores = windows.into_iter().filter(|(_, runs)| !runs.is_empty()).map(|(number, runs)| Core {
            number,
            runs: runs.iter().map(|run| CoreRun { at_ns: run.at_ns, thread: place_of(run.tid) }).collect(),
        });
        (tids.iter().map(|tid| self.host_thread(*tid)).collect(), cores.collect())
    }

    fn host_thread(&self, tid: u32) -> HostThread {
        if tid == 0 {
            let name = if self.zero_is_idle { "idle" } else { "idle or outside of this container" };
            return HostThread { owner: Owner::Idle, name: name.into(), process: name.into(), ..HostThread::default() };
        }
        let name = |tid| self.names.name_of(tid).map(|name| name.to_string()).unwrap_or_default();
        let pid = self.names.pid_of(tid).unwrap_or(tid);
        let owner = if pid == self.own_pid { Owner::Own } else { Owner::Foreign };
        let (name, process) = (name(tid), name(pid));
        // The process's first thread may have ended, or never have had a core.
        let process = if process.is_empty() { name.clone() } else { process };
        HostThread { pid, tid, owner, name, process }
    }
}
