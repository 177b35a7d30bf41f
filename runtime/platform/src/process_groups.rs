//! Groups of processes: a program with all that it has started, ended and counted as one.
//!
//! What runs a server is often a script or a launcher, whose own processor time says nothing and whose end leaves the
//! server behind. A child that is started as the leader of a group (`Command::process_group(0)`) hands the group down to
//! all that it starts, unless these leave it on purpose.
//!
//! A group is known by its leader's number. That number stays taken as long as the leader has not been waited for, so
//! [`has_ended`] looks without waiting: until the parent does, no group of strangers can have the number.
//!
//! Any thread. Signals and [`has_ended`] are a system call each; [`members`] and [`running`] read one file for each process
//! of the host.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// Asks all of the group to end, as `kill` does. Nothing happens if none of it is left.
pub fn ask_to_end(leader: u32) {
    send(leader, Signal::SIGTERM);
}

/// Ends all of the group at once.
pub fn kill(leader: u32) {
    send(leader, Signal::SIGKILL);
}

fn send(leader: u32, signal: Signal) {
    // 0 would be this process's own group, and 1 is `init`'s.
    let leader = i32::try_from(leader).unwrap_or(0);
    if leader > 1 {
        // It fails when nobody is left in it.
        let _ = killpg(Pid::from_raw(leader), signal);
    }
}

/// Whether this child of ours has ended. It stays to be waited for, so that its number is not given to another process.
/// Also true of what is no child of ours.
pub fn has_ended(child: u32) -> bool {
    let Ok(child) = i32::try_from(child) else { return true };
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(Pid::from_raw(child)), look), Ok(WaitStatus::StillAlive))
}

/// All processes of these groups. One that starts or ends meanwhile may be missing.
pub fn members(leaders: &BTreeSet<u32>) -> Vec<u32> {
    members_where(leaders, |_| true)
}

/// Those of them that still run: a process that has ended is a member until its parent has waited for it.
pub fn running(leaders: &BTreeSet<u32>) -> Vec<u32> {
    members_where(leaders, |state| !matches!(state, "Z" | "X"))
}

fn members_where(leaders: &BTreeSet<u32>, is_meant: impl Fn(&str) -> bool) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_member = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state_and_group_in(&stat).is_some_and(|(state, group)| leaders.contains(&group) && is_meant(state))
    };
    numbers.filter(is_member).collect()
}

/// State and group in a `stat` file: `PID (NAME) STATE PARENT GROUP ...`. A name may hold spaces and parentheses.
fn state_and_group_in(stat: &str) -> Option<(&str, u32)> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut words = behind_name.split_whitespace();
    Some((words.next()?, words.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_group_is_found_behind_any_name() {
        assert_eq!(state_and_group_in("12 (sh) S 1 34 34 0 -1"), Some(("S", 34)));
        assert_eq!(state_and_group_in("12 (a) R 1 7 (b) Z 1 34 34 0 -1"), Some(("Z", 34)));
        assert_eq!(state_and_group_in("12 (sh"), None);
        assert_eq!(state_and_group_in(""), None);
    }

    #[test]
    fn a_script_and_what_it_has_started_are_counted_and_ended_together() {
        let mut script = Command::new("sh")
            .args(["-c", "sleep 600 & echo started; wait"])
            .process_group(0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let leader = script.id();
        let of_group = || members(&BTreeSet::from([leader]));
        assert_eq!((line.as_str(), of_group().len()), ("started\n", 2));
        assert!(!has_ended(leader));

        kill(leader);
        while !has_ended(leader) {
            std::thread::yield_now();
        }
        assert!(has_ended(leader), "it can be asked again");
        assert!(of_group().contains(&leader), "it is a member until it is waited for");
        // The other one is not ours to wait for: it may stay a member, but does not run.
        while !running(&BTreeSet::from([leader])).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(script.wait().unwrap().code(), None, "it was left to be waited for");
    }

    #[test]
    fn numbers_that_are_no_group_are_left_alone() {
        for none in [0, 1, u32::MAX] {
            ask_to_end(none);
            assert!(has_ended(none));
        }
    }
}
