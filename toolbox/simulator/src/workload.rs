//! Workload: a game with its bots, played on a virtual clock in steps of so many frames, each of which says what every
//! subsystem took by the real one.
//!
//! Two processes with the same seed do the same work in the same step, whatever the machine does meanwhile. So what they took
//! can be held against each other step by step, and the noise of the work itself is in neither. The network is in memory: what
//! the kernel takes for packets is not in here, and a load run measures that.
//!
//! Needs a recorder that runs, as `Server::start_recorder` starts one. The clients' work is on the calling thread, outside of
//! every scope; the server's is on its own.

use throng_platform::sched::ThreadSums;
use throng_platform::ticks::{self, Calibration};
use throng_profiler::Scope;
use throng_profiler::site::{self, SUBSYSTEMS_MAX, Site};
use throng_profiler::thread;

use crate::simulation::Simulation;

/// Waiting is nobody's work.
const IDLE: &str = "idle";

/// A simulation that is watched from step to step.
pub struct Workload {
    simulation: Simulation,
    calibration: Calibration,
    before: Seen,
    ballast: Option<Ballast>,
}

/// What one step took.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFigures {
    /// Time of each subsystem without others inside (ns), with its heading; those that took nothing are left out.
    pub times: Vec<SubsystemTime>,
    /// Allocations of the server in it, where they are counted.
    pub allocations: u64,
    /// What it sent to clients.
    pub packets_out: u64,
    pub bytes_out: u64,
    /// How long threads of the server waited for a core in it (ns); 0 where the kernel does not say.
    pub waited_ns: u64,
}

/// What a subsystem took in a step.
#[derive(Debug, Clone, PartialEq)]
pub struct SubsystemTime {
    pub subsystem: &'static str,
    pub category: &'static str,
    pub ns: u64,
}

/// All that is counted, since the start.
#[derive(Clone)]
struct Seen {
    ticks_of_counter: [u64; SUBSYSTEMS_MAX],
    allocations: u64,
    packets_out: u64,
    bytes_out: u64,
    waited_ns: u64,
}

/// Test switch: a subsystem that takes longer than it would.
struct Ballast {
    subsystem: &'static str,
    site: &'static Site,
    /// Of its own time.
    share: f64,
    /// All that it has taken until it was last seen to (time of the processor's counter).
    taken: u64,
}

impl Workload {
    /// Watches a simulation from its present state on.
    pub fn new(simulation: Simulation) -> Self {
        let mut workload = Self {
            simulation,
            calibration: Calibration::get(),
            before: Seen {
                ticks_of_counter: [0; SUBSYSTEMS_MAX],
                allocations: 0,
                packets_out: 0,
                bytes_out: 0,
                waited_ns: 0,
            },
            ballast: None,
        };
        workload.before = workload.look();
        workload
    }

    /// Test switch: from now on a subsystem takes so much more of its own time (0.02 is 2 %), in scopes of its own that do
    /// nothing.
    pub fn slow(&mut self, subsystem: &str, share: f64) {
        let site = site::intern(&format!("{subsystem}.ballast"), None);
        let subsystem = site.subsystem_name();
        self.ballast = Some(Ballast { subsystem, site, share, taken: taken_by(subsystem) });
    }

    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    pub fn simulation_mut(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// Plays so many frames. Allocates: what is counted of the server is counted on its own threads and in its frames.
    pub fn step(&mut self, frames: u32) -> StepFigures {
        for _ in 0..frames {
            self.simulation.step();
            self.add_ballast();
        }
        let now = self.look();
        let before = std::mem::replace(&mut self.before, now.clone());
        let names = site::subsystems().into_iter().zip(site::subsystem_categories()).enumerate().skip(1);
        let times =
            names.filter(|(_, (name, _))| first_word(name) != IDLE).filter_map(|(number, (subsystem, category))| {
                let taken = now.ticks_of_counter[number].saturating_sub(before.ticks_of_counter[number]);
                (taken > 0).then(|| SubsystemTime { subsystem, category, ns: self.calibration.ns(taken) })
            });
        StepFigures {
            times: times.collect(),
            allocations: now.allocations - before.allocations,
            packets_out: now.packets_out - before.packets_out,
            bytes_out: now.bytes_out - before.bytes_out,
            waited_ns: now.waited_ns.saturating_sub(before.waited_ns),
        }
    }

    fn look(&mut self) -> Seen {
        let allocations = self.simulation.allocations();
        let server = self.simulation.server_mut();
        let mut seen = Seen {
            ticks_of_counter: [0; SUBSYSTEMS_MAX],
            allocations,
            packets_out: server.count_of("net.packets_out"),
            bytes_out: server.count_of("net.bytes_out"),
            waited_ns: 0,
        };
        for cells in thread::all() {
            for (sum, ticks) in seen.ticks_of_counter.iter_mut().zip(cells.subsystem_ticks()) {
                *sum += ticks;
            }
            if cells.is_alive() && cells.class() == thread::ThreadClass::ShortTask {
                let waited = ThreadSums::open(cells.tid()).and_then(|sums| sums.read_waiting_ns());
                seen.waited_ns += waited.unwrap_or(0);
            }
        }
        seen
    }

    /// Spins for the share of what its subsystem has taken by itself since the last frame.
    fn add_ballast(&mut self) {
        let Some(ballast) = &mut self.ballast else { return };
        let own = taken_by(ballast.subsystem).saturating_sub(ballast.taken);
        let until = ticks::now() + (own as f64 * ballast.share) as u64;
        {
            let _scope = Scope::begin(ballast.site);
            while ticks::now() < until {
                std::hint::spin_loop();
            }
        }
        ballast.taken = taken_by(ballast.subsystem);
    }
}

/// All that a subsystem has taken on all threads since the start (time of the processor's counter).
fn taken_by(subsystem: &str) -> u64 {
    let Some(number) = site::subsystems().iter().position(|name| *name == subsystem) else { return 0 };
    thread::all().iter().filter_map(|cells| cells.subsystem_ticks().nth(number)).sum()
}

fn first_word(subsystem: &str) -> &str {
    subsystem.split_once('.').map_or(subsystem, |(first, _)| first)
}
