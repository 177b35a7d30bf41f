//! Workload: a game with its bots, played on a virtual clock in steps of so many frames, each of which says what every
//! subsystem took by the real one.
//!
//! Two processes with the same seed do the same work in the same step, whatever the machine does meanwhile. So what they took
//! can be held against each other step by step, and the noise of the work itself is in neither. The network is in memory: what
//! the kernel takes for packets is not in here, and a load run measures that.
//!
//! Needs a recorder that runs, as `Server::start_recorder` starts one. The clients' work is on the calling thread, outside of
//! every scope; the server's worlds are on threads of their own.

mod instructions;
mod plant;

use throng_platform::sched::ThreadSums;
use throng_platform::ticks::{self, Calibration};
use throng_profiler::site::{self, SUBSYSTEMS_MAX};
use throng_profiler::{thread, world_scopes};

use crate::simulation::Simulation;
use instructions::Instructions;
pub use plant::PlantKind;

/// Waiting is nobody's work.
const IDLE: &str = "idle";

/// A simulation that is watched from step to step.
pub struct Workload {
    simulation: Simulation,
    calibration: Calibration,
    before: Seen,
    instructions: Result<Instructions, String>,
    /// When each step began (time of the processor's counter).
    begins: Vec<u64>,
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
    /// What the processor counted of the server's frames, where it does.
    pub instructions: Option<u64>,
}

/// What scopes of one name took.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopeTime {
    pub name: &'static str,
    pub subsystem: &'static str,
    pub count: u64,
    /// Without scopes inside.
    pub own_ns: u64,
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
            instructions: Instructions::open(),
            begins: Vec::new(),
        };
        workload.before = workload.look();
        workload
    }

    /// Test switch, once in a process: from now on a subsystem takes so much more of its own time (0.02 is 2 %), within its own
    /// scopes. An error names the subsystems that there are.
    pub fn slow(&mut self, subsystem: &str, kind: PlantKind, share: f64) -> Result<(), String> {
        plant::set(subsystem, kind, share)
    }

    /// Why instructions are not counted, if they are not.
    pub fn instructions_missing(&self) -> Option<&str> {
        self.instructions.as_ref().err().map(String::as_str)
    }

    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    pub fn simulation_mut(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// Plays so many frames. Allocates: what is counted of the server is counted on its own threads and in its frames.
    pub fn step(&mut self, frames: u32) -> StepFigures {
        self.begins.push(ticks::now());
        let mut instructions = 0;
        for _ in 0..frames {
            self.simulation.step_players();
            let before = self.count_instructions();
            self.simulation.step_server();
            instructions += self.count_instructions().saturating_sub(before);
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
            instructions: self.instructions.is_ok().then_some(instructions),
        }
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

    /// Those of the server's threads so far; 0 where they are not counted.
    fn count_instructions(&mut self) -> u64 {
        self.instructions.as_mut().map_or(0, Instructions::count)
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
}

fn first_word(subsystem: &str) -> &str {
    subsystem.split_once('.').map_or(subsystem, |(first, _)| first)
}
