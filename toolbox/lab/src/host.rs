//! Host: what simple loads use on this machine, from inside and from outside.
//!
//! Before a server is blamed or praised for what it uses, somebody should know what its host makes of a load that is known.
//! So loops that do nothing but compute, write to a disk or send packets run for some seconds each, after as long a time in
//! which nothing runs; beside what each of them counted itself stand the accounts of the process, of its control group and
//! of the host ([`throng_platform::accounts`]). Where these disagree, they will about a server, too.
//!
//! This process is the load, so it should be alone in its control group, as a server is. Writes into the folder that is
//! named, into a file without a name; sends to itself on loopback. Takes a few cores for as long as it was told.

mod loads;
mod report;

use std::io;
use std::path::PathBuf;

use throng_history::Machine;
use throng_platform::accounts::{AccountReader, Rates};
use throng_platform::cores;
use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;

use loads::{Counted, Loop};
pub use report::{HostReport, LoadFigures};

/// What to try.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Length of each load (s, >= 1). Too low → figures of accounts that count in steps of 10 ms are coarse.
    pub seconds: u32,
    /// Threads of the loop that computes. More than a limit allows, and it is seen.
    pub threads: u32,
    /// Where the loop that writes does so.
    pub folder: PathBuf,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("{}: the disk loop cannot write there: {cause}; name another folder with --folder", folder.display())]
    Folder { folder: PathBuf, cause: io::Error },
    #[error("the network loop has no socket on loopback: {0}")]
    Socket(io::Error),
    #[error("a thread cannot start: {0}; raise `ulimit -u` or the container's pids limit")]
    Thread(io::Error),
}

/// Runs one load after the other, each told to `each` when it is over. Ends early when `stop` is requested, with those that
/// were whole.
pub fn measure(plan: &HostPlan, stop: &StopFlag, mut each: impl FnMut(&LoadFigures)) -> Result<HostReport, HostError> {
    let mut reader = AccountReader::default();
    let usable = cores::usable();
    let mut report = HostReport {
        seconds_per_load: plan.seconds,
        cores_allowed: usable.affinity,
        machine: Machine::here(),
        missing: reader.read().missing(),
        ..HostReport::default()
    };
    for kind in Loop::ALL {
        let length = Nanos::from_secs(plan.seconds.into());
        let threads = if kind == Loop::Busy { plan.threads } else { 1 };
        // Its files and sockets are there before it is measured.
        let running = loads::prepare(kind, threads, &plan.folder)?;
        let before = reader.read();
        let Counted { cpu, work } = running.run(length, stop)?;
        let rates = Rates::between(&before, &reader.read());
        if stop.requested() {
            break;
        }
        let figures = LoadFigures::new(kind, threads, &rates, cpu, work);
        each(&figures);
        report.loads.push(figures);
    }
    report.findings = report::findings(&report.loads);
    Ok(report)
}
