//! Kept waiting: how long a server's threads were ready and had no core, by moments, so that a time that the server promises
//! can be judged on a host that is busy.
//!
//! A thread of the test reads what the kernel has counted for the watchdog and the workers every few milliseconds, and what a
//! hypervisor took from the host. What it reads late only makes the moments wider, and the promise looser by what was waited
//! in them.

use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What a hypervisor took is told in steps.
const STEAL_STEP: Duration = Duration::from_millis(10);
pub const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What was counted by one moment.
struct Look {
    /// Since 1970, as the times of log lines.
    at: Duration,
    /// Ready and without a core, by thread.
    waited: BTreeMap<u32, Duration>,
    stolen: Duration,
}

/// Looks at a server.
pub struct Watching {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Look>>,
    watchdog: u32,
}

/// What they have seen.
pub struct Waits {
    looks: Vec<Look>,
    watchdog: u32,
}

impl Waits {
    /// From now on.
    pub fn watch(pid: u32) -> Watching {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
        let tids: Vec<u32> = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect();
        let named = |tid: &u32| fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
        let watchdog = tids.iter().copied().find(|tid| named(tid).trim_end() == "watchdog").expect("it has a watchdog");
        let is_over = Arc::new(AtomicBool::new(false));
        let until = is_over.clone();
        let thread = std::thread::spawn(move || {
            let mut looks = Vec::new();
            // Once more after the last word.
            loop {
                let was_over = until.load(Ordering::Acquire);
                looks.push(Look::at(pid, &tids));
                if was_over {
                    return looks;
                }
                std::thread::sleep(LOOK_EVERY);
            }
        });
        Watching { is_over, thread, watchdog }
    }

    /// How long the watchdog and `thread` waited for a core in the `length` before a log line, and what was stolen.
    pub fn in_line(&self, line: &str, length: Duration, thread: u32) -> Duration {
        let said = time_of_day(line);
        let day = Duration::from_secs(self.looks[0].at.as_secs() / DAY.as_secs() * DAY.as_secs());
        // It may have been midnight meanwhile.
        let end = [day + said, day + DAY + said].into_iter().find(|end| *end >= self.looks[0].at);
        let end = end.expect("the line came after the first look");
        let before = self.looks.iter().rfind(|look| look.at + length <= end).unwrap_or(&self.looks[0]);
        let after = self.looks.iter().find(|look| look.at >= end).expect("it was looked once more");
        let waited = |tid: u32| {
            let of = |look: &Look| look.waited.get(&tid).copied().expect("it was there from the start");
            of(after) - of(before)
        };
        let stolen = after.stolen - before.stolen;
        let stolen = if stolen.is_zero() { stolen } else { stolen + STEAL_STEP };
        waited(self.watchdog) + waited(thread) + stolen
    }
}

impl Watching {
    /// After the lines that are to be judged.
    pub fn finish(self) -> Waits {
        self.is_over.store(true, Ordering::Release);
        Waits { looks: self.thread.join().expect("it does not panic"), watchdog: self.watchdog }
    }
}

impl Look {
    fn at(pid: u32, tids: &[u32]) -> Look {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        let read = |tid: u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
            Some((tid, Duration::from_nanos(text.split_whitespace().nth(1)?.parse().ok()?)))
        };
        let waited = tids.iter().filter_map(|tid| read(*tid)).collect();
        Look { at, waited, stolen: stolen() }
    }
}

/// From all cores since the start.
fn stolen() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let steps = stat.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse::<u32>().ok());
    STEAL_STEP * steps.unwrap_or_default()
}

/// Of a log line, which begins with `2026-01-31T12:34:56.789012Z`.
pub fn time_of_day(line: &str) -> Duration {
    let time = line.split_once('T').and_then(|(_, rest)| rest.split_once('Z')).map(|(time, _)| time);
    let parts: Vec<f64> = time.into_iter().flat_map(|time| time.split(':')).flat_map(str::parse).collect();
    let [hours, minutes, seconds] = parts[..] else { panic!("no time in {line}") };
    Duration::from_secs_f64((hours * 60.0 + minutes) * 60.0 + seconds)
}

#[test]
fn the_wait_of_a_line_is_that_of_its_moment() {
    let at = |ms: u64, waited_ms: u64| Look {
        at: DAY * 3 + Duration::from_secs(3_600) + Duration::from_millis(ms),
        waited: BTreeMap::from([(1, Duration::from_millis(waited_ms)), (2, Duration::from_millis(ms / 10))]),
        stolen: Duration::from_millis(if ms > 300 { 20 } else { 0 }),
    };
    let waits = Waits { looks: vec![at(0, 0), at(100, 10), at(200, 40), at(300, 90), at(400, 90)], watchdog: 1 };
    let waited = |line, length| waits.in_line(line, Duration::from_millis(length), 2).as_millis();
    assert_eq!(waited("1970-01-04T01:00:00.200000Z  WARN", 100), 30 + 10);
    assert_eq!(waited("1970-01-04T01:00:00.250000Z  WARN", 100), 80 + 20, "from the look before it began");
    assert_eq!(waited("1970-01-04T01:00:00.350000Z  WARN", 50), 10 + 30, "and what was stolen, with a step more");
}
