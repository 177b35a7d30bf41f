//! Workload: a game with its bots, played on a virtual clock in steps of so many frames, each of which says what every
//! subsystem took by the real one.
//!
//! Two processes with the same seed do the same work in the same step, whatever the machine does meanwhile. So what they took
//! can be held against each other step by step, and the noise of the work itself is in neither. The network is in memory: what
//! the kernel takes for packets is not in here, and a load run measures that.
//!
//! A [recording](RecordedWorkload) is a workload, too: what is counted of it is counted the same way.
//!
//! Needs a recorder that runs, as `Server::start_recorder` starts one. The clients' work is on the calling thread, outside of
//! every scope; the server's worlds are on threads of their own.

mod instructions;
mod meter;
mod plant;
mod recorded;

use crate::simulation::Simulation;
use instructions::Instructions;
use meter::Meter;
pub use plant::PlantKind;
pub use recorded::RecordedWorkload;

/// A simulation that is watched from step to step.
pub struct Workload {
    simulation: Simulation,
    meter: Meter,
    before: Seen,
    instructions: Result<Instructions, String>,
}

/// What one step took.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFigures {
    /// Time of each subsystem without others inside (ns), with its category; those that took nothing are left out.
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
    /// Of a recording, a number of all states that it has hashes for so far: differs where the worlds went another way. Otherwise 0.
    pub states: u64,
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

/// All that is counted of the server, since the start.
struct Seen {
    allocations: u64,
    packets_out: u64,
    bytes_out: u64,
}

impl Workload {
    /// Watches a simulation from its present state on.
    pub fn new(simulation: Simulation) -> Self {
        let mut workload = Self {
            simulation,
            meter: Meter::new(),
            before: Seen { allocations: 0, packets_out: 0, bytes_out: 0 },
            instructions: Instructions::open(),
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
        self.meter.begin_step();
        let mut instructions = 0;
        for _ in 0..frames {
            self.simulation.step_players();
            let before = self.count_instructions();
            self.simulation.step_server();
            instructions += self.count_instructions().saturating_sub(before);
        }
        let (times, waited_ns) = self.meter.end_step();
        let now = self.look();
        let figures = StepFigures {
            times,
            allocations: now.allocations - self.before.allocations,
            packets_out: now.packets_out - self.before.packets_out,
            bytes_out: now.bytes_out - self.before.bytes_out,
            waited_ns,
            instructions: self.instructions.is_ok().then_some(instructions),
            states: 0,
        };
        self.before = now;
        figures
    }

    /// What scopes took in the last so many steps, what was waited left out; none of what the recorder no longer holds.
    pub fn scopes(&self, steps: usize) -> Vec<ScopeTime> {
        self.meter.scopes(steps)
    }

    /// Those of the server's threads so far; 0 where they are not counted.
    fn count_instructions(&mut self) -> u64 {
        self.instructions.as_mut().map_or(0, Instructions::count)
    }

    fn look(&mut self) -> Seen {
        let allocations = self.simulation.allocations();
        let server = self.simulation.server_mut();
        Seen {
            allocations,
            packets_out: server.count_of("net.packets_out"),
            bytes_out: server.count_of("net.bytes_out"),
        }
    }
}
