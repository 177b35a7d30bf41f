//! The course of a run: all that the threads of a swarm know of each other while they drive their bots.
//!
//! When everybody has been sent in, when nobody is left, and whether it is to end at once. Every thread writes it and
//! every thread reads it once a turn of its loop. Each field stands for itself and carries no other data, so relaxed
//! order is enough: a thread that sees a change a moment later does a moment later what follows from it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;

pub(crate) struct Course {
    /// Whether somebody asks for a stop, from outside.
    stop: StopFlag,
    /// Threads that have bots to send in yet.
    sending_in: AtomicUsize,
    /// When the last thread was done with that (ns); `Nanos::MAX` until then.
    all_sent_in_at_ns: AtomicU64,
    /// Threads that have bots left, or to send in.
    with_bots: AtomicUsize,
    /// A thread cannot go on, or there is nobody to report to.
    is_cut_short: AtomicBool,
}

impl Course {
    pub fn new(stop: StopFlag, threads: usize) -> Self {
        Self {
            stop,
            sending_in: AtomicUsize::new(threads),
            all_sent_in_at_ns: AtomicU64::new(Nanos::MAX.0),
            with_bots: AtomicUsize::new(threads),
            is_cut_short: AtomicBool::new(false),
        }
    }

    /// A thread has sent in all of its bots. Once per thread.
    pub fn batch_is_sent_in(&self, now: Nanos) {
        if self.sending_in.fetch_sub(1, Relaxed) == 1 {
            self.all_sent_in_at_ns.store(now.0, Relaxed);
        }
    }

    /// When the last bot of all was sent in, if that is done.
    pub fn all_sent_in_at(&self) -> Option<Nanos> {
        Some(Nanos(self.all_sent_in_at_ns.load(Relaxed))).filter(|&at| at != Nanos::MAX)
    }

    /// A thread has no bot left. Once per thread.
    pub fn batch_is_gone(&self) {
        self.with_bots.fetch_sub(1, Relaxed);
    }

    /// Has all threads end.
    pub fn cut_short(&self) {
        self.is_cut_short.store(true, Relaxed);
    }

    /// Whether the run ends before its time.
    pub fn is_over(&self) -> bool {
        self.stop.requested() || self.is_cut_short.load(Relaxed) || self.with_bots.load(Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course_of_two() -> (Course, StopFlag) {
        let stop = StopFlag::new().expect("a descriptor");
        (Course::new(stop.clone(), 2), stop)
    }

    #[test]
    fn all_are_sent_in_when_the_last_thread_says_so() {
        let (course, _stop) = course_of_two();
        course.batch_is_sent_in(Nanos::from_secs(3));
        assert_eq!(course.all_sent_in_at(), None);
        course.batch_is_sent_in(Nanos::from_secs(5));
        assert_eq!(course.all_sent_in_at(), Some(Nanos::from_secs(5)));
        assert!(!course.is_over());
    }

    #[test]
    fn it_is_over_when_nobody_is_left_when_asked_for_and_when_a_thread_cannot_go_on() {
        let (course, _stop) = course_of_two();
        course.batch_is_gone();
        assert!(!course.is_over(), "the other thread has bots");
        course.batch_is_gone();
        assert!(course.is_over());

        let (course, stop) = course_of_two();
        stop.request();
        assert!(course.is_over());

        let (course, _stop) = course_of_two();
        course.cut_short();
        assert!(course.is_over());
    }
}
