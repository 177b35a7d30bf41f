//! How many cores this process may really use.
//!
//! The number of cores in the machine is the wrong number of workers twice over: a process can be tied to
//! some of them (affinity, as `taskset` or a cpuset does), and a container can be limited to a share of
//! their time (a quota). Ten workers on a quota of two cores run for 20 ms and are then frozen for 80.
//!
//! The quota comes from the control group, in version 2 (`cpu.max`) or 1 (`cpu.cfs_quota_us`), where the
//! smallest one on the way up to the root holds. Read once at start; allocates, costs some 20 file reads.

use std::path::Path;

use crate::control_groups::{ReadFile, quota_by, read_file};

/// What the host grants.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct UsableCores {
    /// Cores this process may run on.
    pub affinity: usize,
    /// Cores' worth of time per period, e.g. 1.5; `None` = no limit.
    pub quota: Option<f64>,
    /// Threads that can run all the time: the smaller of both, a part of a core not counted, at least 1.
    pub count: usize,
}

/// Asks the kernel. Where it does not say, the answer is one core.
pub fn usable() -> UsableCores {
    usable_by(&read_file)
}

/// The same for any host, whose files are read through `read`.
fn usable_by(read: ReadFile<'_>) -> UsableCores {
    let status = read(Path::new("/proc/self/status")).unwrap_or_default();
    let affinity = allowed_cores(&status).unwrap_or(1).max(1);
    let quota = quota_by(read);
    let whole = quota.map_or(affinity, |cores| (cores as usize).clamp(1, affinity));
    UsableCores { affinity, quota, count: whole }
}

/// Counts the cores in the line `Cpus_allowed_list: 0-3,8` of a `status` file.
fn allowed_cores(status: &str) -> Option<usize> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut count = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count += (last + 1).checked_sub(first)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host made of its files.
    fn check(files: &[(&str, &str)], expected: UsableCores) {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        assert_eq!(usable_by(&read), expected);
    }

    const EIGHT_CORES: (&str, &str) = ("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n");
    const V2_MOUNT: (&str, &str) = (
        "/proc/self/mountinfo",
        "24 30 0:22 / /proc rw shared:12 - proc proc rw\n35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
    );
    const V1_MOUNTS: (&str, &str) = (
        "/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
    );

    #[test]
    fn a_host_without_limits_grants_its_affinity() {
        check(&[EIGHT_CORES], UsableCores { affinity: 8, quota: None, count: 8 });
        let unlimited = [
            EIGHT_CORES,
            V2_MOUNT,
            ("/proc/self/cgroup", "0::/user.slice\n"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
        ];
        check(&unlimited, UsableCores { affinity: 8, quota: None, count: 8 });
    }

    #[test]
    fn version_2_holds_the_smallest_quota_up_to_the_root() {
        let files = [
            EIGHT_CORES,
            V2_MOUNT,
            ("/proc/self/cgroup", "0::/pods/game-7/server\n"),
            ("/sys/fs/cgroup/pods/game-7/server/cpu.max", "400000 100000\n"),
            ("/sys/fs/cgroup/pods/game-7/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/pods/cpu.max", "max 100000\n"),
        ];
        check(&files, UsableCores { affinity: 8, quota: Some(2.5), count: 2 });
    }

    #[test]
    fn version_1_reads_quota_and_period_of_the_cpu_controller() {
        let files = [
            EIGHT_CORES,
            V1_MOUNTS,
            ("/proc/self/cgroup", "5:cpuset:/other\n2:cpu,cpuacct:/docker/abc\n0::/\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "300000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        check(&files, UsableCores { affinity: 8, quota: Some(3.0), count: 3 });
    }

    #[test]
    fn inside_a_container_the_mount_shows_the_group_as_its_root() {
        let files = [
            EIGHT_CORES,
            ("/proc/self/mountinfo", "35 24 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n"),
            ("/proc/self/cgroup", "0::/docker/abc\n"),
            ("/sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ];
        check(&files, UsableCores { affinity: 8, quota: Some(0.5), count: 1 });
    }

    #[test]
    fn a_quota_above_the_affinity_adds_nothing() {
        let files = [
            ("/proc/self/status", "Cpus_allowed_list:\t2,5\n"),
            V2_MOUNT,
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/cpu.max", "600000 100000\n"),
        ];
        check(&files, UsableCores { affinity: 2, quota: Some(6.0), count: 2 });
    }

    #[test]
    fn affinity_lists_are_counted() {
        let count = |list: &str| allowed_cores(&format!("Cpus_allowed_list:\t{list}\n"));
        assert_eq!(count("0"), Some(1));
        assert_eq!(count("0-3,8,10-11"), Some(7));
        assert_eq!(count("0-1023"), Some(1024));
        assert_eq!(count("3-1"), None);
        assert_eq!(count("x"), None);
        assert_eq!(allowed_cores("no such line"), None);
    }

    #[test]
    fn an_unreadable_host_is_one_core() {
        check(&[], UsableCores { affinity: 1, quota: None, count: 1 });
    }

    #[test]
    fn this_host_agrees_with_the_standard_library() {
        let here = usable();
        assert!(here.count >= 1 && here.count <= here.affinity);
        assert_eq!(here.count, std::thread::available_parallelism().unwrap().get());
    }
}
