//! Ticks: the cheapest clock there is, for measuring short stretches of time.
//!
//! The processor's own counter, read without a system call: 11 ns here, against 26 ns of `Instant::now`. It is used
//! where a measurement happens millions of times a second, and nowhere else: a tick means nothing until a
//! [`Calibration`] says how long it is.
//!
//! The counter is only good if it runs evenly on every core. The kernel judges that at boot; where it does not use the
//! counter as its own clock, ticks here are nanoseconds of the monotonic clock instead: costlier, never wrong.
//!
//! Any thread. Never allocates, but for the first use, which reads one small file.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Now, in ticks. Never goes backwards on one thread; between cores it is as even as the kernel found it at boot.
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if SOURCE.load(Ordering::Relaxed) == COUNTER {
            // SAFETY: reads a counter; every x86-64 processor has it.
            return unsafe { std::arch::x86_64::_rdtsc() };
        }
    }
    now_slowly()
}

/// The processor's counter, or 0 where [`now`] does not read it. For places that must be small and have another way
/// out.
#[inline(always)]
pub fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        if SOURCE.load(Ordering::Relaxed) == COUNTER {
            // SAFETY: reads a counter; every x86-64 processor has it.
            return unsafe { std::arch::x86_64::_rdtsc() };
        }
    }
    0
}

/// Until every load before it has its value, so that what they took is over by the next [`now`]. That alone does not wait for them: the
/// processor reads its counter while they are under way, as far ahead as it has room for instructions that are not done (some hundreds).
/// Some 10 ns, and what the loads still take; for tests of what is measured.
pub fn wait_for_loads() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Not asked yet, the processor's counter, or the monotonic clock. Written once, by whoever asks first; the value says
/// everything, so relaxed order is enough.
static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const COUNTER: u8 = 1;
const MONOTONIC: u8 = 2;

#[cold]
fn now_slowly() -> u64 {
    if SOURCE.load(Ordering::Relaxed) == UNKNOWN {
        SOURCE.store(if counter_is_even() { COUNTER } else { MONOTONIC }, Ordering::Relaxed);
        if SOURCE.load(Ordering::Relaxed) == COUNTER {
            return now();
        }
    }
    monotonic_ns()
}

/// Whether the kernel itself trusts the counter.
fn counter_is_even() -> bool {
    let chosen = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    cfg!(target_arch = "x86_64") && chosen.is_ok_and(|name| name.trim() == "tsc")
}

/// The kernel's monotonic clock (ns), which its own records are stamped with. About 26 ns.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How long a tick is, and which moment of the monotonic clock is which tick.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Calibration {
    ticks: u64,
    monotonic_ns: u64,
    ns_per_tick: f64,
}

impl Calibration {
    /// The process's one calibration. The first call takes about 20 ms.
    pub fn get() -> Calibration {
        static MEASURED: OnceLock<Calibration> = OnceLock::new();
        *MEASURED.get_or_init(|| Calibration::measure(Duration::from_millis(20)))
    }

    /// Compares the two clocks over `length`; the error is about 100 ns in it, so 5 ppm for 20 ms.
    fn measure(length: Duration) -> Calibration {
        let (ticks, monotonic_ns) = both_clocks();
        std::thread::sleep(length);
        let (ticks_later, monotonic_later_ns) = both_clocks();
        let ns_per_tick = (monotonic_later_ns - monotonic_ns) as f64 / (ticks_later - ticks).max(1) as f64;
        Calibration { ticks: ticks_later, monotonic_ns: monotonic_later_ns, ns_per_tick }
    }

    /// The same rate, bound to the present moment: over hours the two clocks drift apart, and a capture wants them to
    /// agree.
    pub fn renewed(self) -> Calibration {
        let (ticks, monotonic_ns) = both_clocks();
        // The rate over all the time since the last binding is better than the one that 20 ms gave.
        let passed = ticks.saturating_sub(self.ticks);
        let ns_per_tick = if passed as f64 * self.ns_per_tick > 1e9 {
            (monotonic_ns - self.monotonic_ns) as f64 / passed as f64
        } else {
            self.ns_per_tick
        };
        Calibration { ticks, monotonic_ns, ns_per_tick }
    }

    /// The monotonic clock's time at a tick (ns).
    pub fn monotonic_ns(&self, ticks: u64) -> u64 {
        let distance = ticks.wrapping_sub(self.ticks) as i64 as f64 * self.ns_per_tick;
        self.monotonic_ns.saturating_add_signed(distance as i64)
    }

    /// The tick at a time of the monotonic clock (ns).
    pub fn ticks_at(&self, monotonic_ns: u64) -> u64 {
        let distance = monotonic_ns.wrapping_sub(self.monotonic_ns) as i64 as f64 / self.ns_per_tick;
        self.ticks.saturating_add_signed(distance as i64)
    }

    /// A length in ticks as nanoseconds.
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }

    /// A length in nanoseconds as ticks.
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 / self.ns_per_tick) as u64
    }
}

/// A reading of both clocks at nearly the same moment: of a few tries, the one that was interrupted least.
fn both_clocks() -> (u64, u64) {
    let tries = (0..8).map(|_| {
        let before = now();
        let monotonic_ns = monotonic_ns();
        let after = now();
        (after - before, before + (after - before) / 2, monotonic_ns)
    });
    let (_, ticks, monotonic_ns) = tries.min().expect("eight tries were made");
    (ticks, monotonic_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_agree_with_the_monotonic_clock() {
        let calibration = Calibration::get();
        let (ticks, expect_ns) = both_clocks();
        let error_ns = calibration.monotonic_ns(ticks).abs_diff(expect_ns);
        assert!(error_ns < 1_000_000, "off by {error_ns} ns");
        assert!(calibration.ticks_at(expect_ns).abs_diff(ticks) < calibration.ticks(1_000_000));
    }

    #[test]
    fn lengths_convert_both_ways() {
        let calibration = Calibration::get();
        assert!(calibration.ns(calibration.ticks(1_000_000)).abs_diff(1_000_000) < 10);
        assert!(calibration.renewed().ns(calibration.ticks(1_000_000)).abs_diff(1_000_000) < 1_000);
    }

    #[test]
    fn ticks_only_grow() {
        let readings: Vec<u64> = (0..100).map(|_| now()).collect();
        assert!(readings.is_sorted());
    }
}
