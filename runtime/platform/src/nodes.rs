//! Memory nodes: which cores are near which memory.
//!
//! On a host with several nodes a program whose threads and memory are on two of them waits longer for memory. Whoever
//! starts many programs ties each to one node; the kernel then gives it memory of that node as well, since memory comes
//! from where it is first touched.
//!
//! Read once, from `/sys`; allocates. A host that does not tell has one node with all cores.

use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A node with the cores of it that this process may use: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub number: u32,
    /// Ascending.
    pub cores: Vec<u32>,
}

/// The nodes on which this process may run, by number. Empty where the host does not tell.
pub fn usable() -> Vec<Node> {
    let Ok(allowed) = sched_getaffinity(CALLING_THREAD) else { return Vec::new() };
    usable_in(Path::new("/sys/devices/system/node"), &|core| allowed.is_set(core as usize).unwrap_or(false))
}

impl Node {
    /// Ties the calling thread to the node's cores, and with it all threads and processes that it starts from now on.
    pub fn tie_calling_thread(&self) -> io::Result<()> {
        let mut set = CpuSet::new();
        for &core in &self.cores {
            set.set(core as usize)?;
        }
        Ok(sched_setaffinity(CALLING_THREAD, &set)?)
    }
}

const CALLING_THREAD: Pid = Pid::from_raw(0);

fn usable_in(folder: &Path, is_allowed: &dyn Fn(u32) -> bool) -> Vec<Node> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut nodes: Vec<Node> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
            let cores: Vec<u32> = cores_in(&list).into_iter().filter(|&core| is_allowed(core)).collect();
            // A node may have memory alone.
            (!cores.is_empty()).then_some(Node { number, cores })
        })
        .collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// Cores of a list such as `0-3,8`. What cannot be read of it is left out.
fn cores_in(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(cores_in("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(cores_in("5"), [5]);
        assert!(cores_in("\n").is_empty() && cores_in("x-3").is_empty());
    }

    #[test]
    fn nodes_without_a_core_of_ours_are_left_out() {
        let folder = std::env::temp_dir().join(format!("throng-nodes-{}", std::process::id()));
        for (name, list) in
            [("node10", "8-11\n"), ("node0", "0-3\n"), ("node1", "4-7\n"), ("node2", "\n"), ("power", "0\n")]
        {
            fs::create_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("cpulist"), list).unwrap();
        }
        let found = usable_in(&folder, &|core| core >= 2 && !(4..8).contains(&core));
        let node = |number, cores: &[u32]| Node { number, cores: cores.to_vec() };
        assert_eq!(found, [node(0, &[2, 3]), node(10, &[8, 9, 10, 11])]);
        fs::remove_dir_all(&folder).unwrap();
        assert!(usable_in(&folder, &|_| true).is_empty(), "a host that does not tell");
    }

    #[test]
    fn a_thread_that_is_tied_hands_it_down_and_keeps_it_to_itself() {
        let before = sched_getaffinity(CALLING_THREAD).unwrap();
        let core = (0..CpuSet::count()).find(|core| before.is_set(*core).unwrap()).unwrap() as u32;
        let tied = std::thread::spawn(move || {
            Node { number: 0, cores: vec![core] }.tie_calling_thread().unwrap();
            std::thread::spawn(|| sched_getaffinity(CALLING_THREAD).unwrap()).join().unwrap()
        });
        let tied = tied.join().unwrap();
        let has: Vec<usize> = (0..CpuSet::count()).filter(|core| tied.is_set(*core).unwrap()).collect();
        assert_eq!(has, [core as usize]);
        assert_eq!(sched_getaffinity(CALLING_THREAD).unwrap(), before);
    }
}
