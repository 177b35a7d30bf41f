//! Plants: test switches that let a subsystem take longer where its own scopes are, to see whether that is found.
//!
//! At the end of each scope of the subsystem ([`end_hook`]) a plant knows what the calling thread has spent in it, owes a share
//! of that, and takes it once it is enough for one piece: before the scope ends, so that it is the scope's. With a share of 0 the
//! looking alone is there, which is what the other build is given.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

use throng_platform::ticks::{self, Calibration};
use throng_profiler::{end_hook, site};

/// What a plant does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantKind {
    /// The processor works.
    Work,
    /// Lines of memory are read that no cache has, each after the other.
    Misses,
    /// The same instructions as for [`PlantKind::Misses`], on one line: what misses are held against.
    Hits,
    /// The thread sleeps.
    Wait,
}

/// More than caches hold.
const BUFFER_BYTES: usize = 128 << 20;
const LINE_BYTES: usize = 64;
/// A power of two, so that a step of odd length comes to all of them.
const LINES: usize = BUFFER_BYTES / LINE_BYTES;
/// Reads by which it is found out what one takes.
const TRIED: u32 = 20_000;
const LINES_MIN: u32 = 8;
const WORK_MIN_NS: u64 = 1_000;
/// A sleep takes some 50 µs more than it is told to.
const WAIT_MIN_NS: u64 = 200_000;

struct Plant {
    kind: PlantKind,
    /// Of the subsystem's own time.
    share: f64,
    /// What is owed is taken when it is so much (ticks).
    piece: f64,
    lines: Vec<u8>,
    /// Which of the lines are read: all of them, or the first.
    mask: usize,
    ticks_per_line: f64,
    calibration: Calibration,
}

static PLANT: OnceLock<Plant> = OnceLock::new();

/// What a thread owes.
#[derive(Clone, Copy, Default)]
struct Debt {
    /// Own time of the subsystem that was seen (ticks), what the plant took included; 0 before the first time.
    seen: u64,
    /// Less than nothing where more was taken.
    owed: f64,
    /// Where it reads next.
    line: usize,
}

thread_local! {
    static DEBT: Cell<Debt> = const { Cell::new(Debt { seen: 0, owed: 0.0, line: 0 }) };
}

/// Plants it for the life of the process, which has one at most. An error names the subsystems that there are.
pub(super) fn set(subsystem: &str, kind: PlantKind, share: f64) -> Result<(), String> {
    let known = site::subsystems();
    if !known.contains(&subsystem) {
        return Err(format!("there is no subsystem {subsystem}; there are {}", known[1..].join(", ")));
    }
    if PLANT.set(Plant::new(kind, share)).is_err() || !end_hook::set(subsystem, act) {
        return Err("a process has one plant at most".to_owned());
    }
    Ok(())
}

/// What the hook calls.
fn act(own_ticks: u64) {
    let Some(plant) = PLANT.get() else { return };
    let begin = ticks::now();
    DEBT.with(|cell| {
        let mut debt = cell.get();
        if debt.seen != 0 {
            debt.owed += own_ticks.saturating_sub(debt.seen) as f64 * plant.share;
        }
        if debt.owed >= plant.piece && plant.share > 0.0 {
            plant.pay(&mut debt);
        }
        debt.seen = own_ticks + (ticks::now() - begin);
        cell.set(debt);
    });
}

impl Plant {
    fn new(kind: PlantKind, share: f64) -> Self {
        let calibration = Calibration::get();
        let mut plant =
            Self { kind, share, piece: 0.0, lines: Vec::new(), mask: LINES - 1, ticks_per_line: 0.0, calibration };
        match kind {
            PlantKind::Work => plant.piece = calibration.ticks(WORK_MIN_NS) as f64,
            PlantKind::Wait => plant.piece = calibration.ticks(WAIT_MIN_NS) as f64,
            PlantKind::Misses | PlantKind::Hits => {
                // Written, so that each page is there: one that never was is the same page of zeros for all.
                plant.lines = vec![1; BUFFER_BYTES];
                let begin = ticks::now();
                black_box(plant.read(TRIED, 0));
                plant.ticks_per_line = (ticks::now() - begin) as f64 / f64::from(TRIED);
                plant.piece = plant.ticks_per_line * f64::from(LINES_MIN);
                if kind == PlantKind::Hits {
                    plant.mask = 0;
                }
            }
        }
        plant
    }

    fn pay(&self, debt: &mut Debt) {
        let begin = ticks::now();
        match self.kind {
            PlantKind::Work => work_until(begin + debt.owed as u64),
            PlantKind::Wait => std::thread::sleep(Duration::from_nanos(self.calibration.ns(debt.owed as u64))),
            PlantKind::Misses | PlantKind::Hits => {
                // By what was tried and not by what it takes, so that both do the same.
                let count = (debt.owed / self.ticks_per_line) as u32;
                debt.line = self.read(count, debt.line);
                debt.owed -= f64::from(count) * self.ticks_per_line;
                return;
            }
        }
        debt.owed -= (ticks::now() - begin) as f64;
    }

    /// Reads so many lines; which is next depends on what was read, so that the processor cannot read ahead.
    fn read(&self, count: u32, mut line: usize) -> usize {
        for _ in 0..count {
            let read = usize::from(self.lines[(line & self.mask) * LINE_BYTES]);
            // By Hull and Dobell it comes to all lines: what is added is odd, the factor is one more than a multiple of 4.
            line = (line.wrapping_mul(1_664_525).wrapping_add(1_013_904_222 + read)) & (LINES - 1);
        }
        // Else the scope would end while they are under way, and what it ends in would wait for them.
        ticks::wait_for_loads();
        line
    }
}

fn work_until(end: u64) {
    let mut word = end | 1;
    while ticks::now() < end {
        for _ in 0..16 {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
        }
        black_box(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_and_hits_read_as_often_and_misses_come_to_all_lines() {
        let plant = |mask| Plant {
            kind: PlantKind::Misses,
            share: 0.0,
            piece: 0.0,
            lines: vec![1; BUFFER_BYTES],
            mask,
            ticks_per_line: 1.0,
            calibration: Calibration::get(),
        };
        let (misses, hits) = (plant(LINES - 1), plant(0));
        assert_eq!(misses.read(1_000, 5), hits.read(1_000, 5), "the same steps, whatever they read");
        let mut seen = vec![false; LINES];
        let mut line = 0;
        for _ in 0..LINES {
            seen[line] = true;
            line = misses.read(1, line);
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
