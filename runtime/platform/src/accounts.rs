//! Accounts: what this process has used, by its own account and by those that are kept outside of it.
//!
//! From inside a virtual machine or a container a server may look half idle while whoever bills it sees more than its
//! share, or freezes it for a part of each period. Nothing that the process measures of itself shows that. So both sides
//! are read at one moment and told side by side:
//!
//! | side | account | kept by |
//! |---|---|---|
//! | inside | processor time, and how long threads were ready without a core | the process's clock, `/proc/self/task/TID/schedstat` |
//! | inside | bytes that it had a disk read and write | `/proc/self/io` |
//! | outside | processor time, and how often it was throttled | its control group ([`control_groups`](crate::control_groups)) |
//! | outside | processor time of everybody, network work of the kernel, what a hypervisor took | `/proc/stat` |
//! | outside | packets and bytes of everybody on this network | `/proc/self/net/dev` |
//!
//! The kernel keeps no account of a process's packets; those of a network namespace are the process's own only where it is
//! alone in it. What a hypervisor counts of a virtual machine cannot be read inside of it: steal is all that it tells.
//!
//! What cannot be read is `None`, and [`Account::missing`] says so in words.
//!
//! For a thread of low priority, once a second. Allocates. Cost: a file for each thread of the process and some ten more;
//! 0.5 ms for a server with ten threads.

mod figures;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use figures::{FIGURES, Figure, Rates};

use crate::control_groups::{GroupUse, ReadFile, read_file, use_by};
use crate::process;
use crate::ticks::monotonic_ns;
use crate::time::Nanos;

/// All accounts at one moment, since the start of whoever keeps them.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Of the monotonic clock.
    pub at: Nanos,
    pub inside: Inside,
    pub outside: Outside,
}

/// By the process itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    /// Of all threads, user and system, and the system's part of it.
    pub cpu: Nanos,
    pub kernel: Nanos,
    /// How long its threads were ready to run and had no core, added up. Of a thread that began and ended between two
    /// readings nothing is known.
    pub run_queue_wait: Option<Nanos>,
    pub disk: Option<Disk>,
}

/// What a disk had to do for the process: not what it wrote and nobody has written out yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// By those that see it from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside {
    pub group: Option<GroupUse>,
    pub host: Option<Host>,
    pub network: Option<Network>,
}

/// All of the host's cores, added up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub cores: u32,
    /// At work for anybody, the kernel's own included.
    pub busy: Nanos,
    /// Of that, what came after interrupts: mostly packets.
    pub softirq: Nanos,
    /// They wanted to run, and the hypervisor ran somebody else.
    pub steal: Nanos,
}

/// All of the network's interfaces, added up. What goes to a process of the same host counts on both sides.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    pub received_bytes: u64,
    pub received_packets: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
}

/// Reads accounts. Keeps what threads waited, since their own account ends with them.
#[derive(Debug, Default)]
pub struct AccountReader {
    /// By thread id: its wait when it was last looked at.
    waits: HashMap<u32, Nanos>,
    waited: Nanos,
}

impl AccountReader {
    /// All accounts, now.
    pub fn read(&mut self) -> Account {
        let run_queue_wait = self.run_queue_wait();
        // The process's own clock first and last would bracket the group's; one reading is a few us apart from it.
        let outside = outside_by(&read_file);
        let inside = Inside {
            cpu: process::cpu_time(),
            kernel: process::kernel_time(),
            run_queue_wait,
            disk: read_file(Path::new("/proc/self/io")).as_deref().and_then(disk_in),
        };
        Account { at: Nanos(monotonic_ns()), inside, outside }
    }

    fn run_queue_wait(&mut self) -> Option<Nanos> {
        let now: HashMap<u32, Nanos> = scheduled()?.map(|(tid, _, [_, waited])| (tid, waited)).collect();
        // A kernel that keeps no such account has no such file.
        (!now.is_empty()).then(|| self.add_waits(now))
    }

    fn add_waits(&mut self, now: HashMap<u32, Nanos>) -> Nanos {
        for (tid, wait) in &now {
            let before = self.waits.get(tid).copied().unwrap_or_default();
            // A number that was given to another thread begins anew.
            self.waited += if *wait >= before { *wait - before } else { *wait };
        }
        self.waits = now;
        self.waited
    }
}

/// What one thread of this process has used since it began, by the kernel's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadAccount {
    pub tid: u32,
    /// 15 bytes at most.
    pub name: String,
    pub cpu: Nanos,
    /// How long it was ready to run and had no core.
    pub run_queue_wait: Nanos,
}

/// All threads of this process, now; empty where the kernel keeps no such account. Allocates, and reads two files a thread.
pub fn threads() -> Vec<ThreadAccount> {
    let account = |(tid, task, [cpu, run_queue_wait]): (u32, PathBuf, [Nanos; 2])| {
        // One that has ended since is left out.
        let name = read_file(&task.join("comm"))?.trim_end().to_owned();
        Some(ThreadAccount { tid, name, cpu, run_queue_wait })
    };
    scheduled().into_iter().flatten().filter_map(account).collect()
}

/// Of each thread its id, its folder, and what it ran and waited; `None` where no thread can be listed.
fn scheduled() -> Option<impl Iterator<Item = (u32, PathBuf, [Nanos; 2])>> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    Some(tasks.flatten().filter_map(|task| {
        let tid = task.file_name().to_str()?.parse().ok()?;
        let task = task.path();
        let times = times_in(&read_file(&task.join("schedstat"))?)?;
        Some((tid, task, times))
    }))
}

impl Account {
    /// What could not be read, and what that leaves unknown; a sentence each.
    pub fn missing(&self) -> Vec<&'static str> {
        let Account { inside, outside, .. } = self;
        let group = match &outside.group {
            None => {
                Some("no control group's account can be read: what a container is billed or throttled for is not known")
            }
            Some(group) if group.is_whole_host => {
                Some("the process is in the root control group, whose account is the whole host's")
            }
            Some(_) => None,
        };
        let rest = [
            (inside.run_queue_wait.is_none(), "the kernel does not tell how long threads wait for a core (schedstat)"),
            (inside.disk.is_none(), "/proc/self/io cannot be read: what the process has disks do is not known"),
            (outside.host.is_none(), "/proc/stat cannot be read: what the host and its hypervisor count is not known"),
            (outside.network.is_none(), "/proc/self/net/dev cannot be read: the network's packets are not known"),
        ];
        group.into_iter().chain(rest.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, text)| text)).collect()
    }
}

fn outside_by(read: ReadFile<'_>) -> Outside {
    Outside {
        group: use_by(read),
        host: read(Path::new("/proc/stat")).as_deref().and_then(host_in),
        network: read(Path::new("/proc/self/net/dev")).as_deref().and_then(network_in),
    }
}

/// The first two of `run_ns wait_ns times_put_on_a_core`.
fn times_in(schedstat: &str) -> Option<[Nanos; 2]> {
    let mut numbers = schedstat.split_ascii_whitespace().map(|number| number.parse().ok().map(Nanos));
    Some([numbers.next()??, numbers.next()??])
}

/// Lines `read_bytes: 1` and `write_bytes: 2`, among others.
fn disk_in(io: &str) -> Option<Disk> {
    let field = |name| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(Disk { read_bytes: field("read_bytes:")?, written_bytes: field("write_bytes:")? })
}

/// The unit of `/proc/stat` (USER_HZ).
const STEP_NS: u64 = 10_000_000;

/// `cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE`, then a line for each core that is there. Old
/// kernels have fewer columns. What guests took is in USER and NICE.
fn host_in(stat: &str) -> Option<Host> {
    let sums = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let columns: Vec<u64> = sums.split_ascii_whitespace().map_while(|column| column.parse().ok()).collect();
    let column = |place: usize| columns.get(place).copied().unwrap_or_default();
    let of_core =
        |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let time = |steps: u64| Nanos(steps.saturating_mul(STEP_NS));
    (columns.len() >= 4).then(|| Host {
        cores: stat.lines().filter(of_core).count() as u32,
        busy: time([0, 1, 2, 5, 6].map(column).iter().sum()),
        softirq: time(column(6)),
        steal: time(column(7)),
    })
}

/// Two lines of heads, then `eth0: BYTES PACKETS ERRS DROP FIFO FRAME COMPRESSED MULTICAST BYTES PACKETS ...`; of large
/// numbers the first may stand right behind the colon.
fn network_in(dev: &str) -> Option<Network> {
    let mut sum = Network::default();
    let mut is_known = false;
    for (_, numbers) in dev.lines().filter_map(|line| line.split_once(':')) {
        let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
        let [received_bytes, received_packets, _, _, _, _, _, _, sent_bytes, sent_packets, ..] = numbers[..] else {
            continue;
        };
        is_known = true;
        sum.received_bytes += received_bytes;
        sum.received_packets += received_packets;
        sum.sent_bytes += sent_bytes;
        sum.sent_packets += sent_packets;
    }
    is_known.then_some(sum)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn the_host_is_read_with_the_columns_that_its_kernel_has() {
        let linux_6 = "cpu  100 10 50 9000 40 2 30 7 60 0\ncpu0 50 5 25 4500 20 1 15 4 30 0\ncpu1 50 5 25 4500 20 1 15 3 30 0\nintr 5\n";
        let ms = |ms| Nanos::from_millis(ms);
        let host = Host { cores: 2, busy: ms(1_920), softirq: ms(300), steal: ms(70) };
        assert_eq!(host_in(linux_6), Some(host));
        // Before 2.6.11 nobody had heard of steal.
        let old = "cpu  100 10 50 9000 40 2 30\ncpu0 100 10 50 9000 40 2 30\n";
        assert_eq!(host_in(old), Some(Host { cores: 1, steal: Nanos::ZERO, ..host }));
        for bad in ["", "cpu0 1 2 3 4 5\n", "cpu  1 2\n", "cpu  x\n"] {
            assert_eq!(host_in(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn all_interfaces_are_added_up() {
        let dev = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0\n  eth0:73077757088       4    0    0    0     0          0         0      500       6    0    0    0     0       0          0\n";
        let sum = Network { received_bytes: 73_077_757_188, received_packets: 6, sent_bytes: 600, sent_packets: 8 };
        assert_eq!(network_in(dev), Some(sum));
        assert_eq!(network_in("Inter-|\n face |\n"), None);
        assert_eq!(network_in("eth0: 1 2 3\n"), None);
    }

    #[test]
    fn disk_bytes_come_from_their_lines() {
        let io = "rchar: 6976\nwchar: 0\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n";
        assert_eq!(disk_in(io), Some(Disk { read_bytes: 4_096, written_bytes: 8_192 }));
        assert_eq!(disk_in("rchar: 1\n"), None);
        assert_eq!(times_in("5 6 7\n"), Some([Nanos(5), Nanos(6)]));
        assert_eq!((times_in("5\n"), times_in("5 x\n"), times_in("")), (None, None, None));
    }

    #[test]
    fn what_threads_waited_stays_known_when_they_have_ended() {
        let mut reader = AccountReader::default();
        let mut add =
            |waits: &[(u32, u64)]| reader.add_waits(waits.iter().map(|(tid, ns)| (*tid, Nanos(*ns))).collect()).0;
        assert_eq!(add(&[(1, 10), (2, 100)]), 110);
        assert_eq!(add(&[(1, 15)]), 115);
        // The number is another thread's now.
        assert_eq!(add(&[(1, 16), (2, 7)]), 123);
    }

    #[test]
    fn each_thread_has_its_own_account() {
        let of = |tid| threads().into_iter().find(|thread| thread.tid == tid);
        let own = crate::threads::this_thread_id();
        let Some(before) = of(own) else { return assert_eq!(threads(), []) };
        while process::thread_cpu_time() < Nanos(before.cpu.0 + 50_000_000) {
            black_box(());
        }
        let after = of(own).unwrap();
        assert!(after.cpu > before.cpu && after.run_queue_wait >= before.run_queue_wait, "{before:?} {after:?}");
        assert_eq!(before.name, std::fs::read_to_string("/proc/thread-self/comm").unwrap().trim_end());
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let nothing = Account {
            at: Nanos::ZERO,
            inside: Inside { cpu: Nanos::ZERO, kernel: Nanos::ZERO, run_queue_wait: None, disk: None },
            outside: outside_by(&|_| None),
        };
        let missing = nothing.missing().join("\n");
        for word in ["control group", "schedstat", "/proc/self/io", "/proc/stat", "/proc/self/net/dev"] {
            assert!(missing.contains(word), "{word}: {missing}");
        }
    }

    /// The process's clock and the files of this very host agree about a busy loop.
    #[test]
    fn a_busy_loop_is_seen_from_inside_and_from_outside() {
        let mut reader = AccountReader::default();
        let before = reader.read();
        while process::cpu_time() < before.inside.cpu + Nanos::from_millis(300) {
            (0..100_000).for_each(|n| {
                black_box(n);
            });
        }
        let after = reader.read();
        let rates = Rates::between(&before, &after);
        let inside = after.inside.cpu - before.inside.cpu;
        assert!(rates.get("inside.cpu_cores").is_some_and(|cores| cores > 0.0));
        // Both count in steps; and other processes are in these accounts, too.
        let at_least = Nanos(inside.0 / 2);
        let host = |account: &Account| account.outside.host.map(|host| host.busy);
        let group = |account: &Account| account.outside.group.as_ref().map(|group| group.used);
        for kept in [host, group] {
            if let (Some(before), Some(after)) = (kept(&before), kept(&after)) {
                assert!(after - before >= at_least, "{:?} of {inside:?}", after - before);
            }
        }
        assert!(after.inside.run_queue_wait >= before.inside.run_queue_wait);
    }
}
