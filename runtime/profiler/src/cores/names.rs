//! Names of the host's threads, those that have ended included.
//!
//! A thread that was there before the records began is asked for its name once, when it first has a core or starts
//! another. All others come with records: begun by a thread whose name is known, then renamed, perhaps with another program. So a compiler
//! that lived for 3 ms has its name, and a host that starts a thousand processes a second costs no look into `/proc`.
//!
//! Cost: 20 ns per switch, 10 us per thread that is asked. Memory: 64 bytes per thread; of those that have ended 1,024 are kept, and
//! more only for the minute after their end. So a host that starts a few processes a second does not fill 1 MiB in an hour.

use std::collections::{HashMap, VecDeque};

use throng_platform::perf::cores::{CoreRecord, ThreadName};

/// Threads that are known at once. Beyond them those that ended first are forgotten; if all live on, everybody is, and
/// asked anew.
pub(super) const NAMES_MAX: usize = 16_384;

/// So many threads that have ended are known, however long ago that was.
const ENDED_KEPT: usize = 1_024;

/// Others that have ended are known for so long. Records of who ran reach back some seconds on a host on which many end.
const ENDED_KEPT_NS: u64 = 60_000_000_000;

#[derive(Default)]
pub(super) struct Names {
    threads: HashMap<u32, Thread>,
    /// When, and which; in the order of their ends.
    ended: VecDeque<(u64, u32)>,
    /// What records told since the last [`Names::settle`], of all cores.
    told: Vec<CoreRecord>,
    /// Threads that had a core and were not known.
    new: Vec<(u32, u32)>,
}

struct Thread {
    pid: u32,
    name: Option<ThreadName>,
    ended_ns: Option<u64>,
    /// It was known before nobody told for a while: its number may be another's by now.
    is_doubtful: bool,
}

impl Thread {
    fn new(pid: u32, name: Option<ThreadName>) -> Thread {
        Thread { pid, name, ended_ns: None, is_doubtful: false }
    }
}

impl Names {
    /// A thread has a core.
    pub fn meet(&mut self, pid: u32, tid: u32) {
        // Two of the same batch do no harm.
        if tid != 0 && !self.is_known(tid) && self.new.last() != Some(&(pid, tid)) {
            self.new.push((pid, tid));
        }
    }

    fn is_known(&self, tid: u32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| !thread.is_doubtful)
    }

    /// For a while nothing was told: whoever has a core from now on is asked anew. Names that were known stay until then.
    pub fn doubt(&mut self) {
        self.threads.values_mut().for_each(|thread| thread.is_doubtful = true);
    }

    /// A thread begins, has another name, or ends.
    pub fn note(&mut self, record: CoreRecord) {
        self.told.push(record);
    }

    /// Takes what was noted of all cores, in the order of time, and then asks for whoever is still not known.
    pub fn settle(&mut self, mut name_of: impl FnMut(u32, u32) -> Option<ThreadName>) {
        let mut told = std::mem::take(&mut self.told);
        told.sort_by_key(|record| at_ns(*record));
        let newest_ns = told.last().map_or(0, |record| at_ns(*record));
        for record in told.drain(..) {
            match record {
                CoreRecord::Started { pid, tid, parent_tid, .. } => {
                    let known = self.name_of(parent_tid).filter(|_| self.is_known(parent_tid));
                    let name = known.or_else(|| name_of(parent_tid, parent_tid));
                    self.insert(tid, Thread::new(pid, name));
                }
                CoreRecord::Named { pid, tid, name, .. } => {
                    self.insert(tid, Thread::new(pid, Some(name)));
                }
                CoreRecord::Ended { at_ns, tid } => self.end(at_ns, tid),
                CoreRecord::Runs { .. } | CoreRecord::Lost { .. } => {}
            }
        }
        self.told = told;
        while let Some((at_ns, _)) = self.ended.front()
            && self.ended.len() > ENDED_KEPT
            && at_ns.saturating_add(ENDED_KEPT_NS) < newest_ns
        {
            self.forget_first_ended();
        }
        let mut new = std::mem::take(&mut self.new);
        for (pid, tid) in new.drain(..) {
            let known = self.threads.get(&tid);
            let is_unnamed =
                known.is_none_or(|thread| thread.name.is_none() && thread.ended_ns.is_none() || thread.is_doubtful);
            if is_unnamed {
                let name = name_of(pid, tid);
                self.insert(tid, Thread::new(pid, name));
            }
            // The process is called as its first thread.
            if pid != 0 && !self.is_known(pid) {
                let name = name_of(pid, pid);
                self.insert(pid, Thread::new(pid, name));
            }
        }
        self.new = new;
    }

    fn insert(&mut self, tid: u32, thread: Thread) {
        while self.threads.len() >= NAMES_MAX && !self.threads.contains_key(&tid) {
            if !self.forget_first_ended() {
                self.threads.clear();
            }
        }
        self.threads.insert(tid, thread);
    }

    fn end(&mut self, at_ns: u64, tid: u32) {
        if let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.ended_ns.is_none()) {
            thread.ended_ns = Some(at_ns);
            self.ended.push_back((at_ns, tid));
        }
    }

    /// False if there is none.
    fn forget_first_ended(&mut self) -> bool {
        let Some((at_ns, tid)) = self.ended.pop_front() else { return false };
        // Its number may have been given to another thread since.
        if self.threads.get(&tid).is_some_and(|thread| thread.ended_ns == Some(at_ns)) {
            self.threads.remove(&tid);
        }
        true
    }

    /// The last that it had; `None` if it was not to be had.
    pub fn name_of(&self, tid: u32) -> Option<ThreadName> {
        self.threads.get(&tid)?.name
    }

    /// Its process.
    pub fn pid_of(&self, tid: u32) -> Option<u32> {
        Some(self.threads.get(&tid)?.pid)
    }
}

fn at_ns(record: CoreRecord) -> u64 {
    match record {
        CoreRecord::Runs { at_ns, .. }
        | CoreRecord::Lost { at_ns, .. }
        | CoreRecord::Named { at_ns, .. }
        | CoreRecord::Started { at_ns, .. }
        | CoreRecord::Ended { at_ns, .. } => at_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ThreadName {
        ThreadName::new(text.as_bytes())
    }

    fn started(at_ns: u64, tid: u32, parent_tid: u32) -> CoreRecord {
        CoreRecord::Started { at_ns, pid: tid, tid, parent_tid }
    }

    fn named(at_ns: u64, tid: u32, text: &str) -> CoreRecord {
        CoreRecord::Named { at_ns, pid: tid, tid, name: name(text) }
    }

    fn never(pid: u32, tid: u32) -> Option<ThreadName> {
        panic!("nobody need ask for {pid}/{tid}")
    }

    #[test]
    fn a_thread_that_was_there_before_is_asked_once_and_its_process_with_it() {
        let mut names = Names::default();
        names.meet(7, 8);
        names.meet(0, 0);
        names.settle(|pid, tid| Some(name(&format!("{pid}-{tid}"))));
        assert_eq!((names.name_of(8), names.name_of(7)), (Some(name("7-8")), Some(name("7-7"))));
        assert_eq!((names.pid_of(8), names.name_of(0)), (Some(7), None));
        names.meet(7, 8);
        names.settle(never);
    }

    #[test]
    fn a_process_of_a_moment_has_its_name_and_keeps_it() {
        let mut names = Names::default();
        names.meet(5, 5);
        names.settle(|_, _| Some(name("make")));
        // It ran on another core than it was started on: that core's ring was read first.
        names.meet(6, 6);
        names.meet(9, 9);
        [named(30, 6, "rustc"), CoreRecord::Ended { at_ns: 40, tid: 6 }, started(20, 6, 5), started(21, 9, 5)]
            .into_iter()
            .for_each(|record| names.note(record));
        names.settle(never);
        assert_eq!((names.name_of(6), names.name_of(9)), (Some(name("rustc")), Some(name("make"))));
    }

    #[test]
    fn a_number_that_is_used_again_is_another_thread() {
        let mut names = Names::default();
        [started(1, 6, 5), named(2, 6, "cc1"), CoreRecord::Ended { at_ns: 3, tid: 6 }]
            .into_iter()
            .for_each(|record| names.note(record));
        names.settle(|_, _| None);
        [started(11, 6, 5), named(12, 6, "ld")].into_iter().for_each(|record| names.note(record));
        names.settle(|_, _| None);
        assert_eq!(names.name_of(6), Some(name("ld")));
    }

    #[test]
    fn after_a_while_in_which_nobody_told_everybody_is_asked_anew() {
        let mut names = Names::default();
        [named(1, 6, "cc1"), CoreRecord::Ended { at_ns: 2, tid: 6 }, named(3, 7, "make"), named(4, 8, "sh")]
            .into_iter()
            .for_each(|record| names.note(record));
        names.settle(never);
        names.doubt();
        [(6, 6), (7, 8)].into_iter().for_each(|(pid, tid)| names.meet(pid, tid));
        names.settle(|_, tid| Some(name(&format!("new-{tid}"))));
        assert_eq!([6, 7, 8].map(|tid| names.name_of(tid).unwrap().to_string()), ["new-6", "new-7", "new-8"]);
        names.meet(7, 8);
        names.settle(never);
        // Whom nobody met since has the name that it had.
        names.note(named(5, 9, "ld"));
        names.settle(never);
        names.doubt();
        assert_eq!(names.name_of(9), Some(name("ld")));
        names.note(started(6, 10, 9));
        names.settle(|_, tid| Some(name(&format!("new-{tid}"))));
        assert_eq!(names.name_of(10), Some(name("new-9")), "a parent is asked, too");
    }

    #[test]
    fn those_that_have_ended_are_known_for_a_minute_and_few_of_them_for_longer() {
        let mut names = Names::default();
        let per_s = 200;
        for second in 0..600_u64 {
            for thread in 0..per_s {
                let (at_ns, tid) = (second * 1_000_000_000 + thread, 1 + (second * per_s + thread) as u32);
                names.note(named(at_ns, tid, "cc1"));
                names.note(CoreRecord::Ended { at_ns, tid });
            }
            names.settle(never);
        }
        let newest = 600 * per_s as u32;
        assert!(names.threads.len() <= 61 * per_s as usize, "{}", names.threads.len());
        assert_eq!(names.name_of(newest - 59 * per_s as u32), Some(name("cc1")), "less than a minute ago");
        // Then one a minute: the thousand that ended last stay.
        for minute in 10..200_u64 {
            names.note(CoreRecord::Named { at_ns: minute * 60_000_000_000, pid: 1, tid: 1 << 30, name: name("sh") });
            names.settle(never);
        }
        assert_eq!(names.name_of(newest - ENDED_KEPT as u32 / 2), Some(name("cc1")));
        assert!(names.threads.len() <= ENDED_KEPT + 1, "{}", names.threads.len());
    }

    #[test]
    fn whoever_ended_first_is_forgotten_first_and_none_is_kept_beyond_the_maximum() {
        let mut names = Names::default();
        for tid in 1..=NAMES_MAX as u32 {
            names.note(named(u64::from(tid), tid, "sh"));
        }
        [30, 20].into_iter().for_each(|tid| names.note(CoreRecord::Ended { at_ns: u64::MAX, tid }));
        names.settle(never);
        names.note(named(1, 1 << 20, "new"));
        names.settle(never);
        assert_eq!((names.name_of(30), names.name_of(20)), (None, Some(name("sh"))));
        names.note(named(1, 2 << 20, "new"));
        names.note(named(1, 3 << 20, "newer"));
        names.settle(never);
        assert_eq!((names.name_of(20), names.name_of(3 << 20)), (None, Some(name("newer"))));
        assert!(names.threads.len() <= NAMES_MAX);
    }
}
