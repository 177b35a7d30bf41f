//! Meter: what scopes took from step to step, whatever is played.

use throng_platform::sched::ThreadSums;
use throng_platform::ticks::{self, Calibration};
use throng_profiler::site::{self, SUBSYSTEMS_MAX};
use throng_profiler::{thread, world_scopes};

use super::{ScopeTime, SubsystemTime};

/// Waiting is nobody's work.
const IDLE: &str = "idle";

pub(super) struct Meter {
    calibration: Calibration,
    before: Sums,
    /// When each step began (time of the processor's counter).
    begins: Vec<u64>,
}

/// Of all threads, since they began.
struct Sums {
    ticks_of_counter: [u64; SUBSYSTEMS_MAX],
    waited_ns: u64,
}

impl Meter {
    pub fn new() -> Self {
        Self { calibration: Calibration::get(), before: Sums::read(), begins: Vec::new() }
    }

    pub fn begin_step(&mut self) {
        self.begins.push(ticks::now());
    }

    /// What each subsystem took since the step before ended, and how long threads with worlds waited for a core (ns).
    pub fn end_step(&mut self) -> (Vec<SubsystemTime>, u64) {
        let now = Sums::read();
        let names = site::subsystems().into_iter().zip(site::subsystem_categories()).enumerate().skip(1);
        let names = names.filter(|(_, (name, _))| first_word(name) != IDLE);
        let times = names.filter_map(|(number, (subsystem, category))| {
            let taken = now.ticks_of_counter[number].saturating_sub(self.before.ticks_of_counter[number]);
            (taken > 0).then(|| SubsystemTime { subsystem, category, ns: self.calibration.ns(taken) })
        });
        let (times, waited_ns) = (times.collect(), now.waited_ns.saturating_sub(self.before.waited_ns));
        self.before = now;
        (times, waited_ns)
    }

    /// What scopes took in the last so many steps, what was waited left out; none of what the recorder no longer holds.
    pub fn scopes(&self, steps: usize) -> Vec<ScopeTime> {
        let Some(begin) = self.begins.get(self.begins.len().saturating_sub(steps)) else { return Vec::new() };
        let scopes = world_scopes::since(*begin).scopes.into_iter();
        let scopes = scopes.filter(|scope| first_word(scope.subsystem) != IDLE);
        scopes
            .map(|scope| ScopeTime {
                name: scope.name,
                subsystem: scope.subsystem,
                count: scope.count,
                own_ns: scope.own_ns,
            })
            .collect()
    }
}

impl Sums {
    fn read() -> Self {
        let mut sums = Self { ticks_of_counter: [0; SUBSYSTEMS_MAX], waited_ns: 0 };
        for cells in thread::all() {
            for (sum, ticks) in sums.ticks_of_counter.iter_mut().zip(cells.subsystem_ticks()) {
                *sum += ticks;
            }
            if cells.is_alive() && cells.class() == thread::ThreadClass::ShortTask {
                let waited = ThreadSums::open(cells.tid()).and_then(|sums| sums.read_waiting_ns());
                sums.waited_ns += waited.unwrap_or(0);
            }
        }
        sums
    }
}

fn first_word(subsystem: &str) -> &str {
    subsystem.split_once('.').map_or(subsystem, |(first, _)| first)
}
