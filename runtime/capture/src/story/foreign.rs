//! Other processes' use of the cores, summed by name: a build is many short processes of few names.

use std::collections::HashMap;

use super::{context::Context, facts::ProcessFacts, words};

/// By name, the busiest first.
pub fn facts(context: &Context) -> Vec<ProcessFacts> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut facts: Vec<ProcessFacts> = Vec::new();
    let mut cores_of_pid: Vec<f32> = Vec::new();
    for process in &context.capture.processes {
        let place = *places.entry(&process.name).or_insert_with(|| {
            let name = words::name(&process.name);
            facts.push(ProcessFacts { name, pid: process.pid, processes: 0, cores: 0.0 });
            cores_of_pid.push(process.cores);
            facts.len() - 1
        });
        let of_name = &mut facts[place];
        of_name.processes += 1;
        of_name.cores += process.cores;
        if process.cores > cores_of_pid[place] {
            (of_name.pid, cores_of_pid[place]) = (process.pid, process.cores);
        }
    }
    facts.sort_by(|a, b| b.cores.total_cmp(&a.cores));
    facts
}

/// Cores that all of them used.
pub fn cores(context: &Context) -> f32 {
    context.capture.processes.iter().map(|process| process.cores).sum()
}

/// `sh (pid 312) 0.98 cores` or `16 x sh 1.30 cores (pid 312, ...)`; `unit` stands behind the figure.
pub fn words_of(it: &ProcessFacts, unit: &str) -> String {
    match it.processes {
        0 | 1 => format!("{} (pid {}) {:.2}{unit}", it.name, it.pid, it.cores),
        count => format!("{count} x {} {:.2}{unit} (pid {}, ...)", it.name, it.cores, it.pid),
    }
}
