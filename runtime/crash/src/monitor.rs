//! The monitor: the process that writes the report of another one's death.
//!
//! It is started by the server, from the same executable, and sleeps on its end of the line: no memory of the server's,
//! no timer, no processor time. When a thread of the server has crashed it stops all of them, reads what it needs, lets
//! them go and finds the names afterwards. When the line goes dead without a goodbye, the server was killed.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use crash_handler::CrashContext;
use nix::sys::signal::Signal;
use throng_platform::signals;

use crate::cause::{self, Fault};
use crate::dump::{self, StoppedProcess};
use crate::maps::Maps;
use crate::names::Names;
use crate::report::{self, CrashReport, CrashedThread, DUMP_FILE};
use crate::stack::{Calls, INNER_FRAMES, Unwind, loaded_files};
use crate::state::{ProcessState, SharedState, unix_now};
use crate::wire::{self, Hello, Word};

/// Watches over the server at the other end of stdin until that ends; writes a report if it died.
///
/// To be called by [`crate::MONITOR_COMMAND`] and by nothing else, before anything is started. Fails when its stdin is
/// not such a line.
pub fn run() -> io::Result<()> {
    // Whoever ends a server with all its processes means the server; this one ends with it.
    signals::ignore(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE])?;
    let line = io::stdin().as_fd().try_clone_to_owned()?;
    let Word::Hello(hello, shared) = wire::hear(line.as_fd())? else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "this command is for servers to start"));
    };
    let shared = SharedState::from_fd(shared);
    let oom_kills_at_start = cause::oom_kills();
    wire::send_ready(line.as_fd())?;
    let report = match wire::hear(line.as_fd())? {
        Word::Crash { died_at_unix_s, context } => {
            let death = Death { hello: &hello, shared: &shared, died_at_unix_s };
            death.report_crash(*context, || drop(wire::send_done(line.as_fd())))?
        }
        Word::Silence => {
            let death = Death { hello: &hello, shared: &shared, died_at_unix_s: unix_now().as_secs() };
            match death.report_kill(oom_kills_at_start)? {
                Some(report) => report,
                None => return Ok(()),
            }
        }
        Word::Goodbye | Word::Hello(..) => return Ok(()),
    };
    let folder = hello.folder.join(report::folder_name(report.died_at_unix_s, report.pid));
    eprintln!("throng: {}; the report is in {}", report.headline(), folder.display());
    report::remove_oldest(&hello.folder, hello.crashes_kept, hello.bytes_kept)
}

struct Death<'a> {
    hello: &'a Hello,
    shared: &'a SharedState,
    died_at_unix_s: u64,
}

impl Death<'_> {
    fn folder(&self) -> io::Result<std::path::PathBuf> {
        let folder = self.hello.folder.join(report::folder_name(self.died_at_unix_s, self.hello.pid));
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The server is in its signal handler and waits; `let_go` ends that.
    fn report_crash(&self, mut context: CrashContext, let_go: impl FnOnce()) -> io::Result<CrashReport> {
        let folder = self.folder()?;
        let culprit_tid = context.tid as u32;
        let fault = fault_of(&context);
        // What the format calls the exception's address; the handler leaves another field there.
        context.siginfo.ssi_addr = fault.address.unwrap_or(0);

        let mut report = CrashReport::new(self.hello, self.died_at_unix_s);
        report.signal = Some(cause::signal_name(fault.signal));
        report.fault_address = fault.address.map(|address| format!("{address:#x}"));
        let maps = Maps::of(self.hello.pid).unwrap_or_default();
        report.meaning = cause::fault_meaning(fault, &maps);
        let state = self.state(&mut report);

        let files = loaded_files(self.hello.pid, &maps);
        let mut stacks = Vec::new();
        match StoppedProcess::stop(context) {
            Ok(mut process) => {
                let mut unwind = Unwind::new(&files);
                for thread in process.threads(&maps) {
                    let calls = unwind.calls(thread.registers, &thread.stack);
                    report.threads.push(CrashedThread { tid: thread.tid, name: thread.name, ..Default::default() });
                    stacks.push((thread.tid, calls));
                }
                self.write_dump(&mut process, &maps, &folder, &mut report);
            }
            Err(error) => {
                report.incomplete.push(format!("no minidump and no stacks: {error}"));
                let name = fs::read_to_string(format!("/proc/{}/task/{culprit_tid}/comm", self.hello.pid));
                let name = name.unwrap_or_default().trim_end().to_owned();
                report.threads.push(CrashedThread { tid: culprit_tid, name, ..Default::default() });
            }
        }
        let_go();

        let mut names = Names::new(files.iter().map(|(file, _)| file));
        let (state, age) = state;
        report.describe_process(state, age, Some(culprit_tid));
        for (tid, calls) in stacks {
            if let Some(thread) = report.threads.iter_mut().find(|thread| thread.tid == tid) {
                name_calls(thread, &calls, &mut names);
            }
        }
        if let Some(meaning) = report.culprit().and_then(|culprit| cause::abort_meaning(&culprit.stack))
            && matches!(fault.signal, libc::SIGABRT | libc::SIGILL)
        {
            report.meaning = meaning.to_owned();
        }
        cause::tell_of_own_end(&mut report);
        report.write(&folder)?;
        Ok(report)
    }

    fn write_dump(&self, process: &mut StoppedProcess, maps: &Maps, folder: &Path, report: &mut CrashReport) {
        // The same as the report says, so cleaned in the same way.
        let mut told = CrashReport::new(self.hello, self.died_at_unix_s);
        if let Ok(Some((state, age))) = self.shared.read() {
            told.describe_process(state, age, None);
        }
        let comment = serde_json::to_string(&told).unwrap_or_default();
        let written =
            process.minidump(maps, &comment, self.died_at_unix_s, &mut report.incomplete).and_then(|contents| {
                report::write_whole(&folder.join(DUMP_FILE), &contents).map_err(|error| error.to_string())
            });
        if let Err(error) = written {
            report.incomplete.push(error);
        }
    }

    /// The server is gone. `None` if it ended by itself after all.
    fn report_kill(&self, oom_kills_at_start: Option<u64>) -> io::Result<Option<CrashReport>> {
        let mut report = CrashReport::new(self.hello, self.died_at_unix_s);
        match end_of(self.hello.pid) {
            Some(End::Exit) => return Ok(None),
            Some(End::Signal(number)) => report.signal = Some(cause::signal_name(number)),
            None => report.incomplete.push("the process was cleared away before its signal could be read".into()),
        }
        let is_out_of_memory = match (oom_kills_at_start, cause::oom_kills()) {
            (Some(before), Some(after)) => after > before,
            _ => false,
        };
        report.is_out_of_memory = is_out_of_memory;
        report.meaning = match &report.signal {
            _ if is_out_of_memory => "killed by the kernel: its control group ran out of memory".into(),
            Some(signal) => cause::plain_meaning(signal.number).into(),
            None => "by a signal that no handler sees, such as SIGKILL".into(),
        };
        report.incomplete.push("a process that is killed leaves no stacks".into());
        let (state, age) = self.state(&mut report);
        report.describe_process(state, age, None);
        report.write(&self.folder()?)?;
        Ok(Some(report))
    }

    fn state(&self, report: &mut CrashReport) -> (ProcessState, std::time::Duration) {
        match self.shared.read() {
            Ok(Some(state)) => return state,
            Ok(None) => report.incomplete.push("worlds and scopes: it died before it first told of them".into()),
            Err(error) => report.incomplete.push(format!("worlds and scopes: {error}")),
        }
        Default::default()
    }
}

fn name_calls(thread: &mut CrashedThread, calls: &Calls, names: &mut Names) {
    for (index, &address) in calls.addresses.iter().enumerate() {
        if index == INNER_FRAMES {
            thread.frames_before_gap = thread.stack.len();
        }
        thread.stack.extend(names.frames_at(address));
    }
    thread.frames_left_out = calls.left_out;
}

fn fault_of(context: &CrashContext) -> Fault {
    let info = &context.siginfo;
    // The handler keeps the kernel's `siginfo_t` under a type with other names for its bytes: where a fault's address
    // is, that type has `ssi_uid` and `ssi_fd`. A code above 0 says that the kernel found a fault; others are signals
    // that somebody sent.
    let address = u64::from(info.ssi_uid) | (u64::from(info.ssi_fd as u32) << 32);
    let is_fault = info.ssi_code > 0 && info.ssi_signo as i32 != libc::SIGABRT;
    Fault {
        signal: info.ssi_signo as i32,
        address: is_fault.then_some(address),
        stack_pointer: dump::registers_of(context).stack_pointer,
    }
}

enum End {
    Exit,
    Signal(i32),
}

/// How a process ended; `None` if its parent has cleared it away already.
fn end_of(pid: u32) -> Option<End> {
    let status = end_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    Some(if status & 0x7f == 0 { End::Exit } else { End::Signal(status & 0x7f) })
}

/// The wait status, last of the fields of `/proc/<pid>/stat`. The second is the name, in brackets, and may hold
/// anything.
fn end_in(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    matches!(fields.next()?, "Z" | "X").then(|| fields.next_back()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_read_while_it_is_not_cleared_away() {
        assert_eq!(end_in("12 (a (b) Z 3) Z 1 1 1 0 0 9\n"), Some(9));
        assert_eq!(end_in("12 (throng) S 1 1 1 0 0 0\n"), None, "it lives");
        assert_eq!(end_in("rubbish"), None);
        assert!(end_of(std::process::id()).is_none());
    }
}
