//! Runner: starts the peers, one at a time, and keeps what they say.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::peers::Row;
use crate::plan::{Plan, Size};

/// What one row did in one size.
pub struct Outcome {
    pub row: &'static Row,
    pub size: Size,
    /// One object per round.
    pub rounds: Vec<Value>,
    /// Why there is none, or one too few.
    pub failure: Option<String>,
}

pub fn run(plan: &Plan) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for &size in &plan.sizes {
        let rows = plan.rows.iter().filter(|row| row.left_out(size).is_none());
        let mut these: Vec<Outcome> =
            rows.map(|row| Outcome { row, size, rounds: Vec::new(), failure: None }).collect();
        for round in 0..plan.rounds {
            for outcome in these.iter_mut().filter(|outcome| outcome.failure.is_none()) {
                let began = Instant::now();
                match start(plan, outcome.row, size) {
                    Ok(figures) => outcome.rounds.push(figures),
                    Err(failure) => outcome.failure = Some(failure),
                }
                let Size { load, clients, entities } = size;
                let name = outcome.row.name;
                let seconds = began.elapsed().as_secs_f64();
                eprintln!("{load} {clients}x{entities} round {} {name}: {seconds:.1} s", round + 1);
            }
        }
        outcomes.append(&mut these);
    }
    outcomes
}

fn program(row: &Row) -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.with_file_name(row.program)
}

/// Runs one peer to its end.
fn start(plan: &Plan, row: &Row, size: Size) -> Result<Value, String> {
    let program = program(row);
    if !program.is_file() {
        return Err("not built".to_owned());
    }
    let mut command = Command::new(program);
    command.arg(size.load).args(row.arguments);
    let numbers = [
        ("--clients", size.clients),
        ("--entities", size.entities),
        ("--ticks", plan.ticks),
        ("--warmup", plan.warmup),
        ("--seconds-max", plan.seconds_max),
    ];
    for (name, number) in numbers {
        command.arg(name).arg(number.to_string());
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut output = child.stdout.take().ok_or("no output")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + Duration::from_secs(plan.patience_s);
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => break,
            Some(status) => return Err(format!("failed ({status})")),
            None if Instant::now() > deadline => {
                // Its clients' process ends with the pipe between them.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("not done after {} s", plan.patience_s));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    let text = reader.join().map_err(|_| "unread")?.map_err(|error| error.to_string())?;
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| format!("no figures: {error}"))
}
