//! The last switches and faults of every followed thread, for captures.
//!
//! The frame's thread writes and a saver reads, each seldom at the same time. The frame's thread never waits: while a
//! saver copies a thread's records, new ones stay with the writer ([`super::Switches`]) and go in a frame later.
//!
//! Fixed memory per thread, taken in full when it is first followed: 320 KiB. So a server's memory does not grow for hours while
//! the records of threads that seldom wake fill. The oldest records make room for new ones.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_platform::perf::Record;

/// Switches kept per thread. A worker that waits for work 10 times a frame, 20 frames a second, fills it in 41 s.
const SWITCHES_MAX: usize = 16_384;

/// Faults kept per thread: 16 MiB of fresh memory. Apart from the switches, which a large allocation would push out.
const FAULTS_MAX: usize = 4_096;

/// Threads that are no longer followed and whose records are still kept: a capture may be about the time before.
const FORMER_MAX: usize = 16;

/// What happened to the followed threads. Clones share it; for threads other than the frame's.
#[derive(Clone, Default)]
pub struct SwitchHistory {
    threads: Arc<Mutex<Vec<Arc<ThreadHistory>>>>,
}

impl SwitchHistory {
    /// What happened from `begin_ns` to `end_ns` (monotonic clock), by the thread's index, in the order of time.
    ///
    /// The first record of a thread says how it was at `begin_ns`, as if it had become so then; it is missing if the
    /// thread was not followed yet or the records do not reach back that far. The last frame may be missing while it is
    /// being written. Allocates.
    pub fn between(&self, begin_ns: u64, end_ns: u64) -> Vec<(u32, Vec<Record>)> {
        let threads = lock(&self.threads).clone();
        let windows = threads.iter().map(|thread| (thread.index, lock(&thread.records).between(begin_ns, end_ns)));
        windows.filter(|(_, records)| !records.is_empty()).collect()
    }

    /// Room for a thread, which is as `first` says.
    pub(super) fn add(&self, index: u32, first: Record) -> Arc<ThreadHistory> {
        let mut records = Records::new();
        records.push(first);
        let thread = Arc::new(ThreadHistory { index, records: Mutex::new(records) });
        let mut threads = lock(&self.threads);
        // Nobody else holds those that are no longer followed.
        let former = |thread: &Arc<ThreadHistory>| Arc::strong_count(thread) == 1;
        if threads.iter().filter(|thread| former(thread)).count() >= FORMER_MAX
            && let Some(oldest) = threads.iter().position(former)
        {
            threads.remove(oldest);
        }
        threads.push(thread.clone());
        thread
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct ThreadHistory {
    index: u32,
    records: Mutex<Records>,
}

impl ThreadHistory {
    /// Takes what is in `pending`, unless somebody reads at this moment: then it stays there.
    pub(super) fn try_take(&self, pending: &mut Vec<Record>) {
        if let Ok(mut records) = self.records.try_lock() {
            pending.drain(..).for_each(|record| records.push(record));
        }
    }
}

struct Records {
    switches: VecDeque<Record>,
    faults: VecDeque<Record>,
    /// The last switch that had to make room.
    before: Option<Record>,
}

impl Records {
    fn new() -> Records {
        Records { switches: touched(SWITCHES_MAX), faults: touched(FAULTS_MAX), before: None }
    }

    fn push(&mut self, record: Record) {
        if let Record::PageFault { .. } = record {
            if self.faults.len() == FAULTS_MAX {
                self.faults.pop_front();
            }
            self.faults.push_back(record);
        } else {
            if self.switches.len() == SWITCHES_MAX {
                self.before = self.switches.pop_front();
            }
            self.switches.push_back(record);
        }
    }

    fn between(&self, begin_ns: u64, end_ns: u64) -> Vec<Record> {
        let first = self.switches.partition_point(|record| record.at_ns() <= begin_ns);
        let state = if first > 0 { self.switches.get(first - 1).copied() } else { self.before };
        let state = state.filter(|record| record.at_ns() <= begin_ns);
        let mut records: Vec<Record> = state.map(|record| as_of(record, begin_ns)).into_iter().collect();
        let within = |record: &&Record| record.at_ns() > begin_ns && record.at_ns() <= end_ns;
        records.extend(self.switches.range(first..).take_while(within));
        records.extend(self.faults.iter().filter(within));
        records.sort_by_key(|record| record.at_ns());
        records
    }
}

/// An empty list with room for so many, all of whose pages the kernel has given already.
fn touched(count: usize) -> VecDeque<Record> {
    let mut records = VecDeque::from(vec![Record::Blocked { at_ns: 0 }; count]);
    records.clear();
    records
}

/// The same state, as if it had begun at `at_ns`.
fn as_of(record: Record, at_ns: u64) -> Record {
    match record {
        Record::Running { core, .. } => Record::Running { at_ns, core },
        Record::Preempted { .. } => Record::Preempted { at_ns },
        Record::Blocked { .. } => Record::Blocked { at_ns },
        Record::PageFault { .. } => Record::PageFault { at_ns },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(at_ns: u64) -> Record {
        Record::Running { at_ns, core: 1 }
    }

    fn blocked(at_ns: u64) -> Record {
        Record::Blocked { at_ns }
    }

    fn fault(at_ns: u64) -> Record {
        Record::PageFault { at_ns }
    }

    #[track_caller]
    fn check(records: &[Record], window: (u64, u64), expect: &[Record]) {
        let history = SwitchHistory::default();
        history.add(9, records[0]).try_take(&mut records[1..].to_vec());
        let seen = history.between(window.0, window.1);
        let expect = if expect.is_empty() { vec![] } else { vec![(9, expect.to_vec())] };
        assert_eq!(seen, expect);
    }

    #[test]
    fn a_window_begins_with_the_state_at_its_begin() {
        let records = [running(10), blocked(20), running(40), fault(45), blocked(50)];
        check(&records, (30, 45), &[blocked(30), running(40), fault(45)]);
        check(&records, (20, 39), &[blocked(20)]);
        check(&records, (60, 70), &[blocked(60)]);
        check(&records, (0, 15), &[running(10)]);
        check(&records, (0, 5), &[]);
    }

    #[test]
    fn faults_stand_between_switches_at_their_time() {
        let records = [running(10), fault(15), fault(17), blocked(20), fault(45), running(40)];
        check(&records, (12, 50), &[running(12), fault(15), fault(17), blocked(20), running(40), fault(45)]);
    }

    #[test]
    fn the_oldest_records_make_room_and_leave_their_state() {
        let count = SWITCHES_MAX as u64 + 100;
        let mut records: Vec<Record> =
            (1..=count).map(|n| if n % 2 == 0 { blocked(n * 10) } else { running(n * 10) }).collect();
        records.extend((0..2 * FAULTS_MAX as u64).map(|n| fault(20 + n)));
        // 100 are gone; the last of them tells how the thread was just before the first that is left.
        check(&records, (1_005, 1_010), &[blocked(1_005), running(1_010)]);
        // Further back nobody knows.
        check(&records, (500, 1_010), &[running(1_010)]);
        let history = SwitchHistory::default();
        history.add(0, running(0)).try_take(&mut records);
        assert_eq!(records, [], "taken");
        assert_eq!(history.between(0, u64::MAX)[0].1.len(), SWITCHES_MAX + FAULTS_MAX);
    }

    #[test]
    fn a_reader_at_work_is_not_waited_for() {
        let history = SwitchHistory::default();
        let thread = history.add(0, running(0));
        let mut pending = vec![blocked(5)];
        let reading = lock(&thread.records);
        thread.try_take(&mut pending);
        assert_eq!(pending, [blocked(5)]);
        drop(reading);
        thread.try_take(&mut pending);
        assert_eq!(pending, []);
    }

    #[test]
    fn of_former_threads_only_the_latest_are_kept() {
        let history = SwitchHistory::default();
        let followed = history.add(0, running(0));
        for index in 1..=3 * FORMER_MAX as u32 {
            drop(history.add(index, running(0)));
        }
        let kept: Vec<u32> = history.between(0, 1).into_iter().map(|(index, _)| index).collect();
        assert_eq!(kept.len(), FORMER_MAX + 1);
        assert_eq!((kept[0], *kept.last().unwrap()), (0, 3 * FORMER_MAX as u32));
        drop(followed);
    }
}
