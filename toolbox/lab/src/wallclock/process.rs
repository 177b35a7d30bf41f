//! The process that is looked at: what /proc says about it and its threads.
//!
//! Everything here is reading of files, which neither stops nor signals anybody. Files that are read at every look
//! stay open: they name the thread, not its number, so a number that is given to another thread later is no danger.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use throng_platform::sampling::ProcessMemory;

use super::error::{WallclockError, how_to_be_allowed};

/// PF_KTHREAD of the kernel's sched.h, in the flags of /proc/PID/stat.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A process that may be looked into.
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) memory: ProcessMemory,
    folder: PathBuf,
    program: Option<Program>,
}

/// What a process runs: its path and the number of the file, which changes when another one takes the path.
type Program = (PathBuf, u64);

impl Process {
    /// `pid` may also be the number of any of its threads.
    pub(super) fn open(pid: u32) -> Result<Process, WallclockError> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(WallclockError::Machine);
        }
        let status = read(Path::new(&format!("/proc/{pid}/status"))).map_err(|error| gone(error, pid))?;
        let id = field(&status, "Tgid:").and_then(|id| id.parse().ok()).unwrap_or(pid);
        let folder = PathBuf::from(format!("/proc/{id}"));
        let name = field(&status, "Name:").unwrap_or_default().to_owned();
        let stat = read(&folder.join("stat")).map_err(|error| gone(error, pid))?;
        if flags(&stat) & KERNEL_THREAD != 0 {
            return Err(WallclockError::KernelThread { pid, name });
        }
        if matches!(state(&stat), Some('Z' | 'X')) {
            return Err(WallclockError::Ended { pid });
        }
        let mut process = Process { id, name, memory: ProcessMemory::of(id), folder, program: None };
        process.program = process.program_now();
        process.check_rights(&status)?;
        Ok(process)
    }

    /// Both ways in are tried before the run, since a run without them would show nothing.
    fn check_rights(&self, status: &str) -> Result<(), WallclockError> {
        let looked = read(&self.folder.join(format!("task/{}/syscall", self.id))).and_then(|_| {
            let maps = read(&self.folder.join("maps"))?;
            let first = maps.split_once('-').and_then(|(start, _)| u64::from_str_radix(start, 16).ok());
            match first.map(|address| self.memory.read(address, &mut [0; 8])) {
                Some(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
                _ => Ok(()),
            }
        });
        match looked {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let owner = field(status, "Uid:").and_then(|ids| ids.split_whitespace().next()?.parse().ok());
                let own = fs::metadata("/proc/self").ok().map(|metadata| metadata.uid());
                let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
                let fix = how_to_be_allowed(owner.is_some() && owner == own, scope.as_deref());
                Err(WallclockError::Forbidden { pid: self.id, fix })
            }
            Err(error) => Err(gone(error, self.id)),
            Ok(()) => Ok(()),
        }
    }

    /// Numbers of its threads, in the kernel's order. Fails when the process has ended.
    pub(super) fn thread_ids(&self) -> io::Result<Vec<u32>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(self.folder.join("task"))? {
            ids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        Ok(ids)
    }

    /// Changes when a thread starts or ends; much cheaper than listing them.
    pub(super) fn thread_count(&self) -> io::Result<u64> {
        Ok(fs::metadata(self.folder.join("task"))?.nlink())
    }

    pub(super) fn maps(&self) -> io::Result<String> {
        read(&self.folder.join("maps"))
    }

    /// Whether it has replaced its program by another one (exec) since it was last asked.
    pub(super) fn runs_another_program(&mut self) -> bool {
        let now = self.program_now();
        let is_another = now.is_some() && now != self.program;
        if is_another {
            self.program = now;
        }
        is_another
    }

    fn program_now(&self) -> Option<Program> {
        let link = self.folder.join("exe");
        Some((fs::read_link(&link).ok()?, fs::metadata(&link).ok()?.ino()))
    }

    /// A path of the process as this process opens it: it may live in a container with files of its own.
    pub(super) fn path_from_here(&self, path: &Path) -> PathBuf {
        self.folder.join("root").join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Files that are open through /proc even when their names are gone: the program, and one mapping.
    pub(super) fn unnamed(&self, start: u64, end: u64, path: &Path) -> Vec<PathBuf> {
        let mut paths = vec![self.folder.join(format!("map_files/{start:x}-{end:x}"))];
        if self.program_now().is_some_and(|(program, _)| program == path) {
            paths.push(self.folder.join("exe"));
        }
        paths
    }

    /// The file in which a just-in-time compiler says what its code is called, named by the number that the process
    /// has inside its own container.
    pub(super) fn perf_map(&self) -> PathBuf {
        let status = read(&self.folder.join("status")).unwrap_or_default();
        let inside = field(&status, "NSpid:").and_then(|ids| ids.split_whitespace().last()?.parse().ok());
        self.path_from_here(Path::new(&format!("/tmp/perf-{}.map", inside.unwrap_or(self.id))))
    }

    pub(super) fn thread(&self, id: u32) -> io::Result<ThreadFiles> {
        let folder = self.folder.join(format!("task/{id}"));
        Ok(ThreadFiles {
            schedstat: File::open(folder.join("schedstat"))?,
            syscall: File::open(folder.join("syscall"))?,
            comm: File::open(folder.join("comm"))?,
        })
    }
}

/// What the kernel counts of a thread's time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SchedStat {
    /// On a core (ns).
    pub(super) running_ns: u64,
    /// Ready, without a core (ns).
    pub(super) waiting_ns: u64,
    /// How often it was put on a core. Unchanged: it has not run at all since.
    pub(super) switches: u64,
}

/// Where a thread is, as far as can be said without stopping it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// On a core or ready for one.
    Running,
    Asleep {
        call: SleepCall,
        stack: u64,
        instruction: u64,
    },
}

/// What put a thread to sleep.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum SleepCall {
    System(u32),
    /// No system call: a page that comes from the disk, for one.
    Fault,
}

/// The files of one thread that are read at every look.
pub(super) struct ThreadFiles {
    schedstat: File,
    syscall: File,
    comm: File,
}

impl ThreadFiles {
    /// Fails when the thread has ended.
    pub(super) fn schedstat(&self) -> io::Result<SchedStat> {
        let mut buffer = [0; 96];
        parse_schedstat(read_now(&self.schedstat, &mut buffer)?).ok_or(io::ErrorKind::InvalidData.into())
    }

    pub(super) fn whereabouts(&self) -> io::Result<Whereabouts> {
        let mut buffer = [0; 256];
        match parse_syscall(read_now(&self.syscall, &mut buffer)?) {
            // A thread that has ended, and of whose end nobody has taken notice yet, has no stack any more.
            Some(Whereabouts::Asleep { stack: 0, .. }) => Err(io::Error::from_raw_os_error(ESRCH)),
            found => found.ok_or(io::ErrorKind::InvalidData.into()),
        }
    }

    pub(super) fn name(&self) -> Option<String> {
        let mut buffer = [0; 64];
        Some(read_now(&self.comm, &mut buffer).ok()?.trim_end().to_owned())
    }
}

fn read_now<'a>(file: &File, buffer: &'a mut [u8]) -> io::Result<&'a str> {
    let length = file.read_at(buffer, 0)?;
    std::str::from_utf8(&buffer[..length]).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// `run_ns wait_ns times_put_on_a_core`.
fn parse_schedstat(text: &str) -> Option<SchedStat> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(SchedStat { running_ns: next()?, waiting_ns: next()?, switches: next()? })
}

/// `running`, `-1 0xsp 0xpc`, or `number 0xarg (six times) 0xsp 0xpc`.
fn parse_syscall(text: &str) -> Option<Whereabouts> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (first, rest) = words.split_first()?;
    if *first == "running" {
        return Some(Whereabouts::Running);
    }
    let [.., stack, instruction] = rest else { return None };
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let call = first.parse().map_or(SleepCall::Fault, SleepCall::System);
    Some(Whereabouts::Asleep { call, stack: hex(stack)?, instruction: hex(instruction)? })
}

fn read(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

fn gone(error: io::Error, pid: u32) -> WallclockError {
    match error.kind() {
        io::ErrorKind::NotFound => WallclockError::NoProcess { pid },
        _ if error.raw_os_error() == Some(ESRCH) => WallclockError::Ended { pid },
        _ => WallclockError::Read { path: format!("/proc/{pid}").into(), cause: error },
    }
}

/// "No such process", which reading a file of /proc says once its process has ended.
const ESRCH: i32 = 3;

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// What follows the name in /proc/PID/stat; the name itself may contain anything, also `) R`.
fn after_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace()
}

fn state(stat: &str) -> Option<char> {
    after_name(stat).next()?.chars().next()
}

fn flags(stat: &str) -> u64 {
    after_name(stat).nth(6).and_then(|flags| flags.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_thread_says_where_and_a_running_one_only_that_it_runs() {
        assert_eq!(parse_syscall("running\n"), Some(Whereabouts::Running));
        assert_eq!(
            parse_syscall("202 0x7f00 0x80 0x0 0x0 0x0 0x0 0x7ffe10 0x7f3a5e\n"),
            Some(Whereabouts::Asleep { call: SleepCall::System(202), stack: 0x7f_fe10, instruction: 0x7f_3a5e })
        );
        assert_eq!(
            parse_syscall("-1 0x7ffe10 0x55d0\n"),
            Some(Whereabouts::Asleep { call: SleepCall::Fault, stack: 0x7f_fe10, instruction: 0x55d0 })
        );
        for bad in ["", "202", "202 1 2", "-1 0xzz 0x1"] {
            assert_eq!(parse_syscall(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn schedstat_is_three_numbers() {
        let stat = SchedStat { running_ns: 5, waiting_ns: 6, switches: 7 };
        assert_eq!(parse_schedstat("5 6 7\n"), Some(stat));
        assert_eq!(parse_schedstat("5 6\n"), None);
    }

    #[test]
    fn a_name_with_brackets_hides_nothing() {
        let stat = "12 (a) R 1 (b) S 1 12 12 0 -1 2129984 0 0";
        assert_eq!(state(stat), Some('S'));
        assert_eq!(flags(stat) & KERNEL_THREAD, KERNEL_THREAD);
    }

    #[test]
    fn this_process_may_be_looked_into_and_what_is_none_is_an_error() {
        let process = Process::open(std::process::id()).unwrap();
        let ids = process.thread_ids().unwrap();
        assert!(ids.contains(&std::process::id()));
        let files = process.thread(std::process::id()).unwrap();
        assert!(files.schedstat().unwrap().switches > 0);
        assert!(!files.name().unwrap().is_empty());
        assert!(matches!(Process::open((1 << 22) - 1), Err(WallclockError::NoProcess { .. })));
        assert!(matches!(
            Process::open(2),
            Err(WallclockError::KernelThread { .. } | WallclockError::NoProcess { .. })
        ));
    }
}
