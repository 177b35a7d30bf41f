//! Steal: for how long a hypervisor gave this process's cores to somebody else.
//!
//! The kernel of a virtual machine is told by its host how long each core wanted to run and could not, and adds it up
//! in `/proc/stat` (proc(5), the column "steal"). Where nobody tells it, as on a machine of its own or under a
//! hypervisor that keeps no such account, the sums stand still.
//!
//! Cores that stand still without a record there are told by stalls of the [`heartbeat`](crate::heartbeat).
//!
//! Whoever asks holds [`StealRecords`]: those of the host ([`HostRecords`]), or in tests and simulations such as are
//! made by hand ([`ManualSteal`]). Owned by one thread. Never allocates after its start. Cost of a reading: 9 us on two
//! cores, 27 us after a sleep; it grows with the host's cores and interrupts, since the kernel writes the whole file for
//! whoever wants its first lines.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::Clock;
use crate::heartbeat::StallReader;
use crate::sched::pinnable_cores;
use crate::ticks::monotonic_ns;
use crate::time::Nanos;

/// What was stolen, by somebody's word.
pub trait StealRecords: Send {
    /// For how long each of this process's cores was stolen since the host's start: always as many, in the same order,
    /// and never less than before.
    fn read(&mut self) -> &[Nanos];

    /// Hands over the stalls that ended since the last call, core by core, the oldest first.
    fn take_stalls(&mut self, each: &mut dyn FnMut(CoreStall));

    /// Cores whose stalls are told.
    fn stall_cores(&self) -> usize;
}

/// A core stood still for so long, by the clock of whoever holds the records.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CoreStall {
    /// The core's place, as in [`StealRecords::read`].
    pub core: usize,
    pub begin: Nanos,
    pub end: Nanos,
}

/// All that a host tells: the kernel's word, and the heartbeat's where there is one.
pub struct HostRecords {
    steal: KernelSteal,
    stalls: Option<StallReader>,
    /// The monotonic clock, when the holder's stood at zero. (ns)
    clock_start_ns: u64,
}

impl HostRecords {
    /// Of the cores that the calling thread may run on now, from which `stalls` must be. `clock` is the holder's.
    pub fn open(stalls: Option<StallReader>, clock: &dyn Clock) -> HostRecords {
        let clock_start_ns = monotonic_ns().saturating_sub(clock.now().0);
        HostRecords { steal: KernelSteal::open(), stalls, clock_start_ns }
    }
}

impl StealRecords for HostRecords {
    fn read(&mut self) -> &[Nanos] {
        self.steal.read()
    }

    fn take_stalls(&mut self, each: &mut dyn FnMut(CoreStall)) {
        let time = |ns: u64| Nanos(ns.saturating_sub(self.clock_start_ns));
        if let Some(stalls) = &mut self.stalls {
            stalls.take(|stall| {
                each(CoreStall { core: stall.place, begin: time(stall.begin_ns), end: time(stall.end_ns) });
            });
        }
    }

    fn stall_cores(&self) -> usize {
        self.stalls.as_ref().map_or(0, StallReader::cores_count)
    }
}

/// The kernel's word, in steps of 10 ms: what lies between two readings is up to a step more or less than it says.
pub struct KernelSteal {
    /// None where there is no `/proc`: nothing is ever stolen then.
    stat: Option<File>,
    /// By number.
    cores: Vec<u32>,
    stolen: Vec<Nanos>,
    text: Vec<u8>,
}

/// The unit of `/proc/stat`: a hundredth of a second (USER_HZ), whatever the kernel's own timer.
const STEP: Nanos = Nanos::from_millis(10);

/// Room for the line of a core: its name, and ten numbers of up to ten digits for three years.
const LINE_BYTES_MAX: usize = 128;

impl KernelSteal {
    /// Of the cores that the calling thread may run on now.
    pub fn open() -> KernelSteal {
        let cores = pinnable_cores();
        // Those of all cores are in one line before.
        let lines = cores.last().map_or(1, |last| *last as usize + 2);
        let mut steal = KernelSteal {
            stat: File::open("/proc/stat").ok(),
            stolen: vec![Nanos::ZERO; cores.len()],
            cores,
            text: vec![0; lines * LINE_BYTES_MAX],
        };
        steal.read();
        steal
    }
}

impl KernelSteal {
    /// As [`StealRecords::read`].
    pub fn read(&mut self) -> &[Nanos] {
        let length = self.stat.as_ref().and_then(|stat| stat.read_at(&mut self.text, 0).ok()).unwrap_or(0);
        note_stolen(&self.text[..length], &self.cores, &mut self.stolen);
        &self.stolen
    }
}

/// `cpu3 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE`, a line per core that is there. One that is
/// not keeps what it had, and so does one whose line is cut.
fn note_stolen(stat: &[u8], cores: &[u32], stolen: &mut [Nanos]) {
    let whole_lines = stat.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
    let Ok(text) = std::str::from_utf8(&stat[..whole_lines]) else { return };
    for line in text.lines().map_while(|line| line.strip_prefix("cpu")) {
        let mut columns = line.split_ascii_whitespace();
        let core = columns.next().and_then(|number| number.parse().ok());
        let place = core.and_then(|core| cores.binary_search(&core).ok()).filter(|_| !line.starts_with(' '));
        let steps = columns.nth(7).and_then(|steps| steps.parse::<u64>().ok());
        if let (Some(place), Some(steps)) = (place, steps) {
            stolen[place] = stolen[place].max(Nanos(steps.saturating_mul(STEP.0)));
        }
    }
}

/// Made by hand; clones share what was stolen.
#[derive(Clone, Debug)]
pub struct ManualSteal {
    /// Locked by whoever steals, and by whoever reads.
    stolen: Arc<Mutex<Vec<Nanos>>>,
    /// Likewise; taken by whoever asks first.
    stalls: Arc<Mutex<Vec<CoreStall>>>,
    read: Vec<Nanos>,
}

impl ManualSteal {
    /// Nothing was stolen of any of these.
    pub fn new(cores_count: usize) -> ManualSteal {
        let stolen = vec![Nanos::ZERO; cores_count];
        ManualSteal { stolen: Arc::new(Mutex::new(stolen.clone())), stalls: Arc::default(), read: stolen }
    }

    /// A core stood still, which no sum of stolen time tells. Moves no clock.
    pub fn stall(&self, stall: CoreStall) {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
    }

    /// Takes a core away for so long. Moves no clock.
    pub fn steal(&self, core: usize, time: Nanos) {
        self.stolen.lock().unwrap_or_else(PoisonError::into_inner)[core] += time;
    }
}

impl StealRecords for ManualSteal {
    fn read(&mut self) -> &[Nanos] {
        self.read.copy_from_slice(&self.stolen.lock().unwrap_or_else(PoisonError::into_inner));
        &self.read
    }

    fn take_stalls(&mut self, each: &mut dyn FnMut(CoreStall)) {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(each);
    }

    fn stall_cores(&self) -> usize {
        self.read.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicClock;

    #[track_caller]
    fn check(stat: &str, cores: &[u32], expect_ms: &[u64]) {
        let mut stolen = vec![Nanos::ZERO; cores.len()];
        note_stolen(stat.as_bytes(), cores, &mut stolen);
        assert_eq!(stolen, expect_ms.iter().map(|ms| Nanos::from_millis(*ms)).collect::<Vec<_>>());
    }

    #[test]
    fn each_core_has_the_steal_of_its_own_line() {
        let stat = "cpu  9 9 9 9 9 9 9 99 0 0\ncpu0 1 2 3 4 5 6 7 8 9 9\ncpu2 1 1 1 1 1 1 1 30 0 0\nintr 5 6\n";
        check(stat, &[0, 1, 2], &[80, 0, 300]);
        check(stat, &[2], &[300]);
        check("intr 5\ncpu0 1 2 3 4 5 6 7 8 9 9\n", &[0], &[0]);
    }

    #[test]
    fn what_is_cut_or_strange_counts_for_nothing() {
        check("cpu0 1 2 3 4 5 6 7 80 9 9\ncpu1 1 2 3 4 5 6 7 8", &[0, 1], &[800, 0]);
        check("cpu0 1 2 3\ncpux 1 2 3 4 5 6 7 8 9\ncpu1 1 2 3 4 5 6 7 8 9\n", &[0, 1], &[0, 80]);
        // A total whose first column is the number of a core.
        check("cpu 1 2 3 4 5 6 7 8 9 9\n", &[1], &[0]);
        check("", &[0], &[0]);
    }

    #[test]
    fn a_sum_never_goes_down() {
        let mut stolen = [Nanos::from_millis(70)];
        note_stolen(b"cpu0 1 2 3 4 5 6 7 6 9 9\n", &[0], &mut stolen);
        assert_eq!(stolen, [Nanos::from_millis(70)]);
    }

    #[test]
    fn the_kernel_tells_of_every_core_and_a_reading_allocates_nothing() {
        let mut steal = KernelSteal::open();
        let before = crate::allocator::thread_counts();
        let stolen = steal.read();
        assert_eq!((crate::allocator::thread_counts() - before).allocations, 0);
        assert_eq!(stolen.len(), pinnable_cores().len());
        let total: Nanos = stolen.iter().copied().sum();
        assert!(total <= steal.read().iter().copied().sum());
    }

    #[test]
    fn stalls_are_told_on_the_clock_of_whoever_asks() {
        let clock = MonotonicClock::new();
        let mut records = HostRecords::open(None, &clock);
        assert_eq!(records.stall_cores(), 0);
        records.take_stalls(&mut |stall| panic!("{stall:?}"));
        let off_by = Nanos(monotonic_ns() - records.clock_start_ns).0.abs_diff(clock.now().0);
        assert!(off_by < 1_000_000_000, "{off_by} ns");
    }

    #[test]
    fn clones_see_what_was_stolen() {
        let mut steal = ManualSteal::new(2);
        steal.clone().steal(1, Nanos::from_millis(3));
        assert_eq!(steal.read(), [Nanos::ZERO, Nanos::from_millis(3)]);
    }
}
