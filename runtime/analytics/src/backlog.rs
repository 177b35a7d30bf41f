//! Backlog: batches that wait for one sink, between the exporter's thread and the sink's.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{BATCHES_WAITING_MAX, lines::Batch};

/// A queue with a maximum. Neither end is a frame's thread, so its lock is an ordinary one.
#[derive(Default)]
pub(crate) struct Backlog {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Batch>>,
    is_closed: bool,
    /// The server has been told to stop.
    is_ending: bool,
}

/// What came within the time that a sink waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Batch(Arc<Batch>),
    Nothing,
    /// It was closed, and the last batch was taken.
    End,
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False: it is full, and the batch is not in it.
    pub fn push(&self, batch: &Arc<Batch>) -> bool {
        let mut state = self.state();
        let has_room = state.waiting.len() < BATCHES_WAITING_MAX;
        if has_room {
            state.waiting.push_back(batch.clone());
            self.news.notify_all();
        }
        has_room
    }

    /// Nothing comes any more; whoever waits goes on at once.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.news.notify_all();
    }

    /// The server has been told to stop: there is little time left to whoever takes from here.
    pub fn announce_end(&self) {
        self.state().is_ending = true;
    }

    pub fn is_ending(&self) -> bool {
        self.state().is_ending
    }

    /// The oldest batch, waited for as long as `wait_max`.
    pub fn take(&self, wait_max: Duration) -> Taken {
        let mut state = self.state();
        if state.waiting.is_empty() && !state.is_closed && wait_max > Duration::ZERO {
            let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
            let waited = self.news.wait_timeout_while(state, wait_max, is_idle);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match state.waiting.pop_front() {
            Some(batch) => Taken::Batch(batch),
            None if state.is_closed => Taken::End,
            None => Taken::Nothing,
        }
    }

    /// Waits for `pause`, or until it is closed, whatever else comes. True: it is closed.
    pub fn pause(&self, pause: Duration) -> bool {
        let end = Instant::now() + pause;
        let mut state = self.state();
        while !state.is_closed {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_backlog_refuses_and_a_closed_one_hands_out_what_it_has() {
        let backlog = Backlog::default();
        let batch = Arc::new(Batch { lines: vec![1], events: 1 });
        assert_eq!(backlog.take(Duration::ZERO), Taken::Nothing);
        assert!((0..BATCHES_WAITING_MAX).all(|_| backlog.push(&batch)));
        assert!(!backlog.push(&batch));
        backlog.close();
        assert!(backlog.pause(Duration::from_secs(60)), "it does not wait for that");
        (0..BATCHES_WAITING_MAX).for_each(|_| assert_eq!(backlog.take(Duration::ZERO), Taken::Batch(batch.clone())));
        assert_eq!(backlog.take(Duration::from_secs(60)), Taken::End);
    }
}
