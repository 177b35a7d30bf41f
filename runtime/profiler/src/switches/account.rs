//! One thread's time: from switch records to running, waiting and blocked.
//!
//! ```text
//!   frame begins                                            frame ends
//!        |--running--|--waiting--|--running--|------blocked------|
//!                Preempted    Running     Blocked
//! ```
//!
//! Every nanosecond of a frame goes to the state that the thread was in, so the three add up to the frame whatever the
//! records say; lost records make the split wrong, never the sum.
//!
//! The kernel does not record when a sleeping thread woke, so a sleep holds the wait for a core at its end. How long
//! these waits were together is known from the kernel's own sum: what of it was not waiting after a preemption was
//! waiting after a sleep, and is moved from blocked to waiting when the frame is settled.
//!
//! Plain numbers: no clock, no system call, no allocation.

use throng_platform::perf::Record;

/// How a frame's wall time was spent. (ns)
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub running_ns: u64,
    pub waiting_ns: u64,
    pub blocked_ns: u64,
}

impl Split {
    /// From the kernel's sums over a frame that was `wall_ns` long. They can say more than that: a long wait counts
    /// when it ends.
    pub(super) fn of_sums(running_ns: u64, waiting_ns: u64, wall_ns: u64) -> Split {
        let running_ns = running_ns.min(wall_ns);
        let waiting_ns = waiting_ns.min(wall_ns - running_ns);
        Split { running_ns, waiting_ns, blocked_ns: wall_ns - running_ns - waiting_ns }
    }
}

/// One wait for a core.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub begin_ns: u64,
    /// How long it was at most, and at least.
    pub waited_ns: u64,
    pub waited_ns_min: u64,
    /// Where it ran then, if that is known.
    pub core: Option<u32>,
}

/// What the thread does, and since when.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    Waiting { since_ns: u64 },
    Blocked { since_ns: u64 },
}

pub(super) struct Account {
    state: State,
    frame_begin_ns: u64,
    /// Up to here time has been given to the states.
    at_ns: u64,
    split: Split,
    ended: Ended,
    longest: Option<Wait>,
}

/// What ended since the account was settled last.
#[derive(Default)]
struct Ended {
    /// Waits after preemptions, in full length.
    preempted_ns: u64,
    /// Sleeps, those of them that ended within the frame, and how much of the frame these had taken.
    sleeps: u64,
    sleeps_in_frame: u64,
    slept_in_frame_ns: u64,
    /// In full length.
    slept_ns: u64,
    longest_sleep_ns: u64,
    longest_sleep_end_ns: u64,
    longest_sleep_core: u32,
}

impl Account {
    /// A thread that is as `record` says.
    pub(super) fn new(record: Record) -> Account {
        let state = match record {
            Record::Blocked { at_ns } => State::Blocked { since_ns: at_ns },
            Record::Preempted { at_ns } => State::Waiting { since_ns: at_ns },
            Record::Running { .. } | Record::PageFault { .. } => State::Running,
        };
        let (at_ns, split) = (record.at_ns(), Split::default());
        Account { state, frame_begin_ns: at_ns, at_ns, split, ended: Ended::default(), longest: None }
    }

    /// From here on time belongs to a new frame.
    pub(super) fn begin_frame(&mut self, begin_ns: u64) {
        self.frame_begin_ns = begin_ns;
        self.at_ns = begin_ns;
        self.split = Split::default();
    }

    pub(super) fn note(&mut self, record: Record) {
        let at_ns = record.at_ns();
        match record {
            Record::PageFault { .. } => {}
            Record::Running { core, .. } => {
                self.pass_until(at_ns);
                self.end_absence(at_ns, core);
                self.state = State::Running;
            }
            Record::Preempted { .. } => {
                self.pass_until(at_ns);
                self.state = State::Waiting { since_ns: at_ns };
            }
            Record::Blocked { .. } => {
                self.pass_until(at_ns);
                self.state = State::Blocked { since_ns: at_ns };
            }
        }
    }

    /// Whether something ended that may have been a wait: then the kernel's sum has changed.
    pub(super) fn has_ended_absence(&self) -> bool {
        self.ended.preempted_ns > 0 || self.ended.sleeps > 0
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// The thread is no more: it looks asleep from here on.
    pub(super) fn retire(&mut self) {
        self.state = State::Blocked { since_ns: self.at_ns };
    }

    /// Gives the time up to here to the present state. What is before the frame's begin is nobody's.
    pub(super) fn pass_until(&mut self, at_ns: u64) {
        let passed_ns = at_ns.saturating_sub(self.at_ns);
        self.at_ns += passed_ns;
        match self.state {
            State::Running => self.split.running_ns += passed_ns,
            State::Waiting { .. } => self.split.waiting_ns += passed_ns,
            State::Blocked { .. } => self.split.blocked_ns += passed_ns,
        }
    }

    fn end_absence(&mut self, at_ns: u64, core: u32) {
        match self.state {
            State::Running => {}
            State::Waiting { since_ns } => {
                let waited_ns = at_ns.saturating_sub(since_ns);
                self.ended.preempted_ns += waited_ns;
                self.offer(Wait { begin_ns: since_ns, waited_ns, waited_ns_min: waited_ns, core: Some(core) });
            }
            State::Blocked { since_ns } => {
                let ended = &mut self.ended;
                let slept_ns = at_ns.saturating_sub(since_ns);
                ended.sleeps += 1;
                ended.slept_ns += slept_ns;
                if at_ns >= self.frame_begin_ns {
                    ended.sleeps_in_frame += 1;
                    ended.slept_in_frame_ns += at_ns - since_ns.max(self.frame_begin_ns).min(at_ns);
                }
                if slept_ns >= ended.longest_sleep_ns {
                    ended.longest_sleep_ns = slept_ns;
                    ended.longest_sleep_end_ns = at_ns;
                    ended.longest_sleep_core = core;
                }
            }
        }
    }

    fn offer(&mut self, wait: Wait) {
        if self.longest.is_none_or(|longest| longest.waited_ns < wait.waited_ns) {
            self.longest = Some(wait);
        }
    }

    /// The kernel says that the waits that ended since the last time make `waited_ns`: sets right what sleeps hid.
    pub(super) fn settle(&mut self, waited_ns: u64) {
        let ended = std::mem::take(&mut self.ended);
        let woken_ns = waited_ns.saturating_sub(ended.preempted_ns).min(ended.slept_ns);
        if woken_ns == 0 {
            return;
        }
        // Where sleeps ended before the frame as well, nobody knows whose wait it was: each gets the same.
        let share_ns = (woken_ns as u128 * ended.sleeps_in_frame as u128 / ended.sleeps as u128) as u64;
        let moved_ns = share_ns.min(ended.slept_in_frame_ns).min(self.split.blocked_ns);
        self.split.blocked_ns -= moved_ns;
        self.split.waiting_ns += moved_ns;

        let longest_ns = woken_ns.min(ended.longest_sleep_ns);
        let others_ns = ended.slept_ns - ended.longest_sleep_ns;
        self.offer(Wait {
            begin_ns: ended.longest_sleep_end_ns - longest_ns,
            waited_ns: longest_ns,
            waited_ns_min: woken_ns.saturating_sub(others_ns).max(woken_ns.div_ceil(ended.sleeps)).min(longest_ns),
            core: Some(ended.longest_sleep_core),
        });
    }

    /// The frame's time, and the longest wait that ended since the last call.
    pub(super) fn take(&mut self) -> (Split, Option<Wait>) {
        (self.split, self.longest.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame from 1,000 to 2,000 ns; the thread sleeps since 100. `waited_ns`: what the kernel's sum has grown by.
    #[track_caller]
    fn check(records: &[Record], waited_ns: u64, [running, waiting, blocked]: [u64; 3], expect: Option<Wait>) {
        let mut account = Account::new(Record::Blocked { at_ns: 100 });
        account.begin_frame(1_000);
        records.iter().for_each(|record| account.note(*record));
        account.pass_until(2_000);
        account.settle(waited_ns);
        let (split, longest) = account.take();
        assert_eq!([split.running_ns, split.waiting_ns, split.blocked_ns], [running, waiting, blocked]);
        assert_eq!(running + waiting + blocked, 1_000);
        assert_eq!(longest, expect);
    }

    fn running(at_ns: u64) -> Record {
        Record::Running { at_ns, core: 3 }
    }

    fn preempted(at_ns: u64) -> Record {
        Record::Preempted { at_ns }
    }

    fn blocked(at_ns: u64) -> Record {
        Record::Blocked { at_ns }
    }

    fn exact(begin_ns: u64, waited_ns: u64) -> Option<Wait> {
        Some(Wait { begin_ns, waited_ns, waited_ns_min: waited_ns, core: Some(3) })
    }

    #[test]
    fn a_thread_that_sleeps_through_is_blocked() {
        check(&[], 0, [0, 0, 1_000], None);
        check(&[], 77, [0, 0, 1_000], None);
    }

    #[test]
    fn a_preemption_is_a_wait_of_known_length() {
        check(&[running(1_100), preempted(1_300), running(1_800)], 500, [400, 500, 100], exact(1_300, 500));
        check(&[running(1_100), preempted(1_300)], 0, [200, 700, 100], None);
    }

    #[test]
    fn what_the_kernel_counts_beyond_preemptions_was_waited_after_a_sleep() {
        check(&[running(1_400), blocked(1_900)], 150, [500, 150, 350], exact(1_250, 150));
        let both = [running(1_400), preempted(1_500), running(1_600), blocked(1_900)];
        check(&both, 250, [400, 250, 350], exact(1_250, 150));
    }

    #[test]
    fn a_wait_that_began_before_the_frame_counts_in_it_from_its_begin() {
        check(&[running(1_400)], 700, [600, 400, 0], exact(700, 700));
        // More than it slept cannot be: the sum is younger than the records.
        check(&[running(1_400)], 5_000, [600, 400, 0], exact(100, 1_300));
    }

    #[test]
    fn of_several_waits_after_sleeps_only_bounds_are_known() {
        let twice = [running(1_100), blocked(1_200), running(1_500)];
        let wait =
            |begin_ns, waited_ns, waited_ns_min| Some(Wait { begin_ns, waited_ns, waited_ns_min, core: Some(3) });
        check(&twice, 100, [600, 100, 300], wait(1_000, 100, 50));
        check(&twice, 900, [600, 400, 0], wait(200, 900, 600));
    }

    #[test]
    fn what_happens_between_frames_only_changes_the_state() {
        let before = [running(400), preempted(600), running(900)];
        check(&before, 300, [1_000, 0, 0], exact(600, 300));
        // One sleep ended before the frame, one in it: each gets half of what was waited.
        let both = [running(400), blocked(600), running(1_600)];
        let expect = Some(Wait { begin_ns: 1_540, waited_ns: 60, waited_ns_min: 30, core: Some(3) });
        check(&both, 60, [400, 30, 570], expect);
    }

    #[test]
    fn lost_records_spoil_the_split_and_never_the_sum() {
        check(
            &[running(1_100), running(1_200), blocked(1_300), preempted(1_400)],
            9_999,
            [200, 700, 100],
            exact(100, 1_000),
        );
        check(&[running(1_900), blocked(1_500)], 0, [0, 0, 1_000], None);
    }

    #[test]
    fn the_state_is_carried_over_frames() {
        let mut account = Account::new(running(0));
        account.note(preempted(900));
        for (begin_ns, waiting_ns) in [(1_000, 1_000), (2_500, 400)] {
            account.begin_frame(begin_ns);
            if begin_ns == 2_500 {
                account.note(running(2_900));
            }
            account.pass_until(begin_ns + 1_000);
            account.settle(if begin_ns == 2_500 { 2_000 } else { 0 });
            let (split, longest) = account.take();
            assert_eq!(split, Split { running_ns: 1_000 - waiting_ns, waiting_ns, blocked_ns: 0 });
            assert_eq!(longest, if begin_ns == 2_500 { exact(900, 2_000) } else { None });
        }
    }

    #[test]
    fn sums_that_are_too_large_are_cut_to_the_frame() {
        assert_eq!(Split::of_sums(300, 200, 1_000), Split { running_ns: 300, waiting_ns: 200, blocked_ns: 500 });
        assert_eq!(Split::of_sums(300, 2_000, 1_000), Split { running_ns: 300, waiting_ns: 700, blocked_ns: 0 });
        assert_eq!(Split::of_sums(2_000, 5, 1_000), Split { running_ns: 1_000, waiting_ns: 0, blocked_ns: 0 });
    }
}
