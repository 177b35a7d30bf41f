//! What is told of long tasks: to the console, and to Prometheus by kind. On the asker's thread, from figures that threads
//! leave behind; no frame waits for it.

use serde::Serialize;
use throng_metrics::LabelledGauges;
use throng_scheduler::{LongKindRow, LongTasks};

/// How long tasks stand now.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LongTaskReport {
    /// Threads that do them; 0 in a simulation.
    pub threads: usize,
    /// Workers that leave their cores to them, and whether newcomers and worlds that are to be made wait.
    pub starvation_level: usize,
    pub admission_waits: bool,
    pub waiting: usize,
    /// What all that is not done will take of a core, and of that what gives memory back.
    pub outstanding_ms: f64,
    pub freeing_ms: f64,
    /// As far as known.
    pub freeing_mb: f64,
    pub kinds: Vec<LongTaskRow>,
}

/// Long tasks of one kind, since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LongTaskRow {
    pub kind: &'static str,
    pub started: u64,
    pub finished: u64,
    pub missed: u64,
    pub panicked: u64,
    pub refused: u64,
    /// What one usually takes of a core.
    pub usual_ms: f64,
    pub wait_ms_max: f64,
}

impl LongTaskReport {
    pub(crate) fn of(tasks: &LongTasks, starvation_level: usize, admission_waits: bool) -> Self {
        let row = |row: LongKindRow| LongTaskRow {
            kind: row.name,
            started: row.started,
            finished: row.finished,
            missed: row.missed,
            panicked: row.panicked,
            refused: row.refused,
            usual_ms: row.usual_cost.as_millis_f64(),
            wait_ms_max: row.wait_max.as_millis_f64(),
        };
        Self {
            threads: tasks.threads(),
            starvation_level,
            admission_waits,
            waiting: tasks.waiting(),
            outstanding_ms: tasks.outstanding().as_millis_f64(),
            freeing_ms: tasks.freeing().as_millis_f64(),
            freeing_mb: tasks.freeing_bytes() as f64 / 1e6,
            kinds: tasks.rows().into_iter().map(row).collect(),
        }
    }
}

/// Name, what it says, and how it is read.
type Figure = (&'static str, &'static str, fn(&LongTaskRow) -> f64);

pub(crate) const FIGURES: [Figure; 5] = [
    ("long_task.finished", "Long tasks of this kind that are done", |row| row.finished as f64),
    ("long_task.missed", "Of those, done after their deadline", |row| row.missed as f64),
    ("long_task.panicked", "Of those, panicked", |row| row.panicked as f64),
    ("long_task.usual_ms", "What one usually takes of a core", |row| row.usual_ms),
    ("long_task.wait_ms_max", "The longest that one waited for a thread, since the start", |row| row.wait_ms_max),
];

/// A series for each kind that there ever was.
pub(crate) fn gauges(report: &LongTaskReport) -> Vec<LabelledGauges> {
    let gauge = |&(name, help, read): &Figure| {
        let rows = report.kinds.iter().map(|row| (vec![row.kind.to_owned()], read(row))).collect();
        LabelledGauges { name, help, keys: &["kind"], rows }
    };
    FIGURES.iter().map(gauge).collect()
}
