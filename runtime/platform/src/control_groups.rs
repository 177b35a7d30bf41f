//! Control groups: which of the kernel's groups limits this process's processor time, and what that group has used.
//!
//! Version 2 has one tree of groups, version 1 one for each controller, and a host may have both. What a file system of
//! groups shows begins at its mount: inside a container that is, as a rule, the container's own group.
//!
//! A group counts what all of its processes use. So it is the process's own account only where the process is alone in it,
//! and the root's is the whole host's. Throttling is counted by the group that has the limit, which may be one further up.
//!
//! Any thread. Allocates; a reading is some 10 small files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::time::Nanos;

/// How files are read: those of this host, or of one that a test makes up.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Reads a file of this host.
pub(crate) fn read_file(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// What the process's group has used since it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupUse {
    /// Of the control groups' interface: 1 or 2.
    pub version: u8,
    /// The group's name as the kernel tells it, such as `/system.slice/game.service`.
    pub name: String,
    /// It is the root of all groups: what it counts is every process of the host.
    pub is_whole_host: bool,
    pub used: Nanos,
    /// The limit that is nearest, if there is one.
    pub limit: Option<Limit>,
}

/// A limit of processor time, and what came of it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limit {
    /// Cores' worth of time.
    pub quota_cores: f64,
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Those in which it had to stand still.
    pub throttled_periods: u64,
    /// For how long it did; added up over cores.
    pub throttled: Nanos,
}

/// What the group of this process has used. `None` where the kernel does not say.
pub fn own_use() -> Option<GroupUse> {
    use_by(&read_file)
}

pub(crate) fn use_by(read: ReadFile<'_>) -> Option<GroupUse> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    // Where version 1 has the controller, version 2 knows nothing of limits.
    let (version, mount, name, used) = [Version::One, Version::Two].into_iter().find_map(|version| {
        mounts_of(&mounts, ACCOUNT).into_iter().filter(|mount| mount.version == version).find_map(|mount| {
            let name = group_in(&groups, version, ACCOUNT)?;
            let directory = directories_up(&mount, name).into_iter().next()?;
            let used = match version {
                Version::One => read(&directory.join("cpuacct.usage"))?.trim().parse().ok().map(Nanos),
                Version::Two => used_in(&read(&directory.join("cpu.stat"))?),
            };
            Some((version, mount, name.to_string_lossy().into_owned(), used?))
        })
    })?;
    let has_limit_file = directories_up(&mount, Path::new(&name))
        .first()
        .is_some_and(|directory| read(&directory.join("cpu.max")).is_some());
    Some(GroupUse {
        is_whole_host: name == "/" && mount.root == Path::new("/") && !has_limit_file,
        version: if version == Version::One { 1 } else { 2 },
        name,
        used,
        limit: nearest_limit(read, &groups, &mounts),
    })
}

/// The smallest quota of this process's groups and of those around them, with what its group says of it.
fn nearest_limit(read: ReadFile<'_>, groups: &str, mounts: &str) -> Option<Limit> {
    let limits = limits_by(read, groups, mounts);
    let (quota_cores, directory) = limits.into_iter().min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    let stat = read(&directory.join("cpu.stat")).unwrap_or_default();
    let throttled = (field_in(&stat, "throttled_usec").map(|us| us.saturating_mul(1_000)))
        .or_else(|| field_in(&stat, "throttled_time"))
        .unwrap_or_default();
    Some(Limit {
        quota_cores,
        periods: field_in(&stat, "nr_periods").unwrap_or_default(),
        throttled_periods: field_in(&stat, "nr_throttled").unwrap_or_default(),
        throttled: Nanos(throttled),
    })
}

/// The smallest quota of this process's groups and of those around them, in cores.
pub(crate) fn quota_by(read: ReadFile<'_>) -> Option<f64> {
    let groups = read(Path::new("/proc/self/cgroup"))?;
    let mounts = read(Path::new("/proc/self/mountinfo"))?;
    limits_by(read, &groups, &mounts).into_iter().map(|(cores, _)| cores).min_by(f64::total_cmp)
}

/// All quotas on the way up to the root, in cores, each with its group's directory.
fn limits_by(read: ReadFile<'_>, groups: &str, mounts: &str) -> Vec<(f64, PathBuf)> {
    let mut limits = Vec::new();
    for mount in mounts_of(mounts, LIMIT) {
        let Some(group) = group_in(groups, mount.version, LIMIT) else { continue };
        for directory in directories_up(&mount, group) {
            let cores = match mount.version {
                Version::One => {
                    let number = |name| read(&directory.join(name));
                    number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us")).and_then(|(q, p)| cores(&q, &p))
                }
                Version::Two => read(&directory.join("cpu.max")).and_then(|text| cores_in_cpu_max(&text)),
            };
            limits.extend(cores.map(|cores| (cores, directory)));
        }
    }
    limits
}

/// The controllers of version 1 that limit processor time, and that count it.
const LIMIT: &str = "cpu";
const ACCOUNT: &str = "cpuacct";

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A file system of control groups.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// The group that is shown at `point`: `/` on the host, the container's own group inside some containers.
    root: PathBuf,
    point: PathBuf,
}

/// Those with the controller, of the lines of `mountinfo`: `31 23 0:28 ROOT POINT options [tags] - TYPE SOURCE
/// super-options`.
fn mounts_of(mountinfo: &str, wanted: &str) -> Vec<Mount> {
    let parse = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?.into(), left.next()?.into());
        let mut right = right.split(' ');
        match right.next()? {
            "cgroup2" => Some(Mount { version: Version::Two, root, point }),
            "cgroup" if right.nth(1)?.split(',').any(|option| option == wanted) => {
                Some(Mount { version: Version::One, root, point })
            }
            _ => None,
        }
    };
    mountinfo.lines().filter_map(parse).collect()
}

/// Lines of `cgroup`: `4:cpu,cpuacct:/path` in version 1, `0::/path` in version 2.
fn group_in<'a>(cgroup: &'a str, version: Version, wanted: &str) -> Option<&'a Path> {
    cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let found = match version {
            Version::One => controllers.split(',').any(|controller| controller == wanted),
            Version::Two => controllers.is_empty(),
        };
        found.then_some(Path::new(path))
    })
}

/// The group's directory and all those above it, as far as the mount shows them.
fn directories_up(mount: &Mount, group: &Path) -> Vec<PathBuf> {
    // A group outside the mount's root belongs to the host's view; ours begins at the mount.
    let below = group.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    below.ancestors().map(|part| mount.point.join(part)).collect()
}

/// `max 100000` (no limit) or `150000 100000` (quota and period in µs).
fn cores_in_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    cores(quota, period)
}

/// Quota over period; `max` and -1 mean no limit.
fn cores(quota_us: &str, period_us: &str) -> Option<f64> {
    let quota_us: f64 = quota_us.trim().parse::<i64>().ok()? as f64;
    let period_us: f64 = period_us.trim().parse::<u32>().ok()?.into();
    (quota_us > 0.0 && period_us > 0.0).then(|| quota_us / period_us)
}

/// What version 2 has in `cpu.stat`: `usage_usec 1234` and other lines.
fn used_in(cpu_stat: &str) -> Option<Nanos> {
    field_in(cpu_stat, "usage_usec").map(|us| Nanos(us.saturating_mul(1_000)))
}

/// The number of a line `name number`.
fn field_in(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a host made of its files says.
    fn used(files: &[(&str, &str)]) -> Option<GroupUse> {
        use_by(&|path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    const V2_MOUNT: (&str, &str) =
        ("/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    /// As Linux 6.1 with systemd writes it.
    const V2_STAT: &str = "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 40\nnr_throttled 10\nthrottled_usec 700000\nnr_bursts 0\nburst_usec 0\n";

    #[test]
    fn version_2_counts_in_microseconds() {
        let files = [
            V2_MOUNT,
            ("/proc/self/cgroup", "0::/game.service\n"),
            ("/sys/fs/cgroup/game.service/cpu.stat", V2_STAT),
            ("/sys/fs/cgroup/game.service/cpu.max", "150000 100000\n"),
        ];
        let limit = Limit { quota_cores: 1.5, periods: 40, throttled_periods: 10, throttled: Nanos::from_millis(700) };
        let used = used(&files).unwrap();
        assert_eq!((used.version, used.name.as_str(), used.is_whole_host), (2, "/game.service", false));
        assert_eq!((used.used, used.limit), (Nanos::from_millis(2_500), Some(limit)));
    }

    #[test]
    fn throttling_is_told_by_the_group_that_has_the_limit() {
        // As Linux 5.10 writes it for a group without the controller.
        let bare = "usage_usec 900\nuser_usec 900\nsystem_usec 0\n";
        let files = [
            V2_MOUNT,
            ("/proc/self/cgroup", "0::/pod/server\n"),
            ("/sys/fs/cgroup/pod/server/cpu.stat", bare),
            ("/sys/fs/cgroup/pod/server/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pod/cpu.stat", V2_STAT),
            ("/sys/fs/cgroup/pod/cpu.max", "50000 100000\n"),
        ];
        let used = used(&files).unwrap();
        assert_eq!(used.used, Nanos::from_micros(900));
        assert_eq!(used.limit.map(|limit| (limit.quota_cores, limit.throttled_periods)), Some((0.5, 10)));
    }

    #[test]
    fn version_1_counts_in_nanoseconds_and_by_controller() {
        let files = [
            (
                "/proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n36 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("/proc/self/cgroup", "2:cpuacct:/counted\n1:cpu:/limited\n0::/\n"),
            ("/sys/fs/cgroup/cpuacct/counted/cpuacct.usage", "123456789\n"),
            ("/sys/fs/cgroup/cpu/limited/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/limited/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/limited/cpu.stat", "nr_periods 8\nnr_throttled 3\nthrottled_time 40000000\n"),
            // The file of the other version is there, and counts everybody.
            ("/sys/fs/cgroup/unified/cpu.stat", V2_STAT),
        ];
        let limit = Limit { quota_cores: 0.5, periods: 8, throttled_periods: 3, throttled: Nanos::from_millis(40) };
        let used = used(&files).unwrap();
        assert_eq!((used.version, used.used, used.limit), (1, Nanos(123_456_789), Some(limit)));
        assert_eq!((used.name.as_str(), used.is_whole_host), ("/counted", false));
    }

    #[test]
    fn the_root_is_told_from_a_container_that_sees_itself_as_the_root() {
        let root = [V2_MOUNT, ("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/cpu.stat", V2_STAT)];
        let whole = used(&root).unwrap();
        assert!(whole.is_whole_host && whole.limit.is_none());
        // The root has no file for a limit.
        let container = [&root[..], &[("/sys/fs/cgroup/cpu.max", "max 100000\n")]].concat();
        assert!(!used(&container).unwrap().is_whole_host);
    }

    #[test]
    fn what_is_missing_or_strange_is_no_account() {
        assert_eq!(used(&[]), None);
        assert_eq!(used(&[("/proc/self/cgroup", "0::/\n"), ("/proc/self/mountinfo", "")]), None);
        assert_eq!(used(&[V2_MOUNT, ("/proc/self/cgroup", "0::/\n")]), None);
        let strange = [V2_MOUNT, ("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/cpu.stat", "usage_usec much\n")];
        assert_eq!(used(&strange), None);
    }

    #[test]
    fn this_host_says_the_same_of_the_quota_twice() {
        if let Some(used) = own_use() {
            assert_eq!(used.limit.map(|limit| limit.quota_cores), quota_by(&read_file));
        }
    }
}
