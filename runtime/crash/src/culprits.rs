//! Culprits: the worlds that a server died of, by the reports that it left.
//!
//! A server that is started again after its death makes the same worlds, and the one that killed it kills the next one. So
//! whoever starts a server asks here first. The culprit is the world that the dying thread was in. A server that ended itself
//! since all of its workers were stuck died of each world that one of them was in. One that the kernel killed for want of
//! memory has no dying thread: then it is the world that had been in its tick for longest by far, if there is one.
//!
//! For the start of a process; reads a handful of files, which may be damaged.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::MONITOR_COMMAND;
use crate::deaths;
use crate::report::{self, CrashReport, CrashedThread, TEXT_FILE};
use crate::state::{WorldState, unix_now};

/// A tick of this length is out of the ordinary, so that its world is to be suspected (ms).
const LONG_TICK_MS: u64 = 75;

/// A death, and the worlds that it came of.
#[derive(Clone, Debug, PartialEq)]
pub struct DeathOf {
    pub died_at_unix_s: u64,
    pub worlds: Vec<WorldState>,
}

impl CrashReport {
    /// The worlds that the process died of; none if it was something else, or nobody knows.
    pub fn culprits(&self) -> Vec<&WorldState> {
        let long = |thread: &&CrashedThread| {
            thread.world.as_ref().and_then(|world| world.ticking_ms).is_some_and(|ms| ms >= LONG_TICK_MS)
        };
        let long_ticks = || self.threads.iter().filter(long).filter_map(|thread| thread.world.as_ref());
        if self.last_words.is_some() {
            return long_ticks().collect();
        }
        if let Some(culprit) = self.culprit() {
            return culprit.world.iter().collect();
        }
        let mut suspects: Vec<_> = long_ticks().filter(|_| self.is_out_of_memory).collect();
        suspects.truncate(if suspects.len() == 1 { 1 } else { 0 });
        suspects
    }
}

/// Deaths of this game in `folder` within `window`, the oldest first. A report that cannot be read is passed over.
pub fn recent(folder: &Path, game: &str, window: Duration) -> Vec<DeathOf> {
    let since = unix_now().saturating_sub(window).as_secs();
    let folders = report::folders_of_deaths(folder).unwrap_or_default();
    let reports = folders.iter().filter_map(|death| deaths::read(&death.join(report::JSON_FILE)).ok());
    let recent = reports.filter(|report| report.game == game && report.died_at_unix_s >= since);
    let of = |report: &CrashReport| report.culprits().into_iter().cloned().collect::<Vec<_>>();
    recent.map(|report| DeathOf { died_at_unix_s: report.died_at_unix_s, worlds: of(&report) }).collect()
}

/// Waits until the report of this process's death is whole, for as long as its monitor is at work on it, but no longer than
/// `at_most`. False if there is none.
pub fn wait_for_report_of(pid: u32, folder: &Path, at_most: Duration) -> bool {
    const LOOK_EVERY: Duration = Duration::from_millis(10);
    let give_up_at = Instant::now() + at_most;
    loop {
        // Asked first: what it writes it has written before it ends.
        let is_at_work = Instant::now() < give_up_at && has_monitor(pid);
        let folders = report::folders_of_deaths(folder).unwrap_or_default();
        let own = folders.iter().rev().find(|death| report::pid_of(death) == Some(pid));
        if own.is_some_and(|death| fs::exists(death.join(TEXT_FILE)).unwrap_or_default()) {
            return true;
        }
        if !is_at_work {
            return false;
        }
        sleep(LOOK_EVERY);
    }
}

/// Whether a monitor of this process lives; one that has ended has no command line.
fn has_monitor(pid: u32) -> bool {
    let ending = format!("\0{MONITOR_COMMAND}\0{pid}\0");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| line.ends_with(ending.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_words::LastWords;

    fn thread(tid: u32, is_culprit: bool, world: Option<(u32, u64)>) -> CrashedThread {
        let world = world.map(|(id, ms)| WorldState { id, ticking_ms: Some(ms), ..Default::default() });
        CrashedThread { tid, is_culprit, world, ..Default::default() }
    }

    #[track_caller]
    fn check(report: &CrashReport, expect: &[u32]) {
        let found: Vec<u32> = report.culprits().iter().map(|world| world.id).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn the_world_that_the_dying_thread_was_in_is_the_culprit() {
        let threads = vec![thread(1, true, Some((7, 1))), thread(2, false, Some((8, 5_000)))];
        let report = CrashReport { threads, ..CrashReport::default() };
        check(&report, &[7]);
        let last_words = Some(LastWords::default());
        check(&CrashReport { last_words, ..report.clone() }, &[8]);
        let threads = vec![thread(1, true, None), thread(2, false, Some((8, 5_000)))];
        check(&CrashReport { threads, ..report }, &[]);
    }

    #[test]
    fn a_kill_for_want_of_memory_has_a_culprit_if_one_world_stands_out() {
        let killed = |is_out_of_memory, ms: [u64; 2]| CrashReport {
            is_out_of_memory,
            threads: vec![
                thread(1, false, Some((7, ms[0]))),
                thread(2, false, Some((8, ms[1]))),
                thread(3, false, None),
            ],
            ..CrashReport::default()
        };
        check(&killed(true, [900, 3]), &[7]);
        check(&killed(true, [3, 3]), &[]);
        check(&killed(true, [900, 900]), &[]);
        check(&killed(false, [900, 3]), &[]);
    }

    #[test]
    fn deaths_are_found_in_a_folder_by_game_and_time_and_a_broken_report_hides_none() {
        let folder = std::env::temp_dir().join(format!("throng-culprits-{}", std::process::id()));
        let now = unix_now().as_secs();
        let write = |at: u64, pid: u32, game: &str| {
            let threads = vec![thread(1, true, Some((pid, 1)))];
            let mut report = CrashReport { died_at_unix_s: at, pid, game: game.into(), threads, ..Default::default() };
            let death = folder.join(report::folder_name(at, pid));
            fs::create_dir_all(&death).unwrap();
            report.write(&death).unwrap();
            death
        };
        assert_eq!(recent(&folder, "wood", Duration::from_secs(60)), []);
        write(now - 90, 1, "wood");
        write(now - 30, 2, "wood");
        write(now - 20, 3, "shore");
        fs::write(write(now - 15, 5, "wood").join(report::JSON_FILE), "{").unwrap();
        write(now - 10, 4, "wood");
        let found = recent(&folder, "wood", Duration::from_secs(60));
        let ids: Vec<_> = found.iter().map(|death| death.worlds[0].id).collect();
        assert_eq!(ids, [2, 4]);
        assert!(wait_for_report_of(4, &folder, Duration::ZERO));
        assert!(!wait_for_report_of(6, &folder, Duration::from_secs(3_600)), "there is no monitor to wait for");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_report_is_waited_for_while_its_monitor_is_at_work() {
        let folder = std::env::temp_dir().join(format!("throng-culprits-late-{}", std::process::id()));
        let death = folder.join(report::folder_name(unix_now().as_secs(), 7_000_001));
        fs::create_dir_all(&death).unwrap();
        // What a monitor is called. It is told when to begin, and is then as slow as one on a host that is busy.
        let script = "read line; sleep 0.5; echo > \"$0/report.txt\"";
        let mut monitor = std::process::Command::new("sh")
            .args(["-c", script])
            .arg(&death)
            .args([MONITOR_COMMAND, "7000001"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // A process has no command line yet at the moment when it begins.
        while !has_monitor(7_000_001) {
            sleep(Duration::from_millis(1));
        }
        assert!(!wait_for_report_of(7_000_001, &folder, Duration::ZERO), "it is not there yet");
        drop(monitor.stdin.take());
        assert!(wait_for_report_of(7_000_001, &folder, Duration::from_secs(60)));
        monitor.wait().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
