//! The recording thread: it writes used tokens to the journal's file, so that a disk that stalls makes clients wait in
//! line and no frame.
//!
//! Orders and answers go through two queues with a maximum, the length of the line of those who log in: there are no
//! more of them than that. What finds no room all the same is answered as failed, and its client denied. The thread has
//! the usual priority, since somebody waits for it. It ends, and gives the file's lock back, when the journal is
//! dropped and what it was given is written.
//!
//! Cost on the frame's thread: some 0.2 us a log-in, and a wake-up of the thread.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    thread::JoinHandle,
};

use throng_net::protocol::{JournalError, Recorded, TokenJournal, UsedToken};
use throng_platform::threads::{Priority, spawn_named};

/// A journal that is written by a thread of its own.
pub(crate) struct RecordingThread {
    /// `None` while it is dropped.
    orders: Option<SyncSender<UsedToken>>,
    /// In the order of the orders.
    done: Receiver<Result<(), JournalError>>,
    outstanding: VecDeque<UsedToken>,
    thread: Option<JoinHandle<()>>,
}

impl RecordingThread {
    /// `journal` keeps each record before it returns. At most `records_max` wait to be written.
    pub fn start(mut journal: impl TokenJournal + 'static, records_max: usize) -> std::io::Result<Self> {
        let (orders, to_write) = sync_channel::<UsedToken>(records_max);
        let (answers, done) = sync_channel(records_max);
        let thread = spawn_named("token-journal", Priority::Normal, move || {
            for used in to_write {
                let result = journal.record(&used).map(|_| ());
                if answers.send(result).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { orders: Some(orders), done, outstanding: VecDeque::new(), thread: Some(thread) })
    }
}

impl TokenJournal for RecordingThread {
    fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError> {
        let orders = self.orders.as_ref().ok_or(JournalError)?;
        orders.try_send(*used).map_err(|_| JournalError)?;
        self.outstanding.push_back(*used);
        Ok(Recorded::Later)
    }

    fn next_done(&mut self) -> Option<(UsedToken, Result<(), JournalError>)> {
        let result = match self.done.try_recv() {
            Err(TryRecvError::Empty) => return None,
            // The thread died: what it had is not kept, as far as anybody knows.
            Err(TryRecvError::Disconnected) => Err(JournalError),
            Ok(result) => result,
        };
        Some((self.outstanding.pop_front()?, result))
    }
}

impl Drop for RecordingThread {
    fn drop(&mut self) {
        self.orders = None;
        // It may wait for room to answer.
        while self.done.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // Its panic was told on standard error; the file is closed either way.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Writes a record when it is told to.
    struct Disk(Receiver<Result<(), JournalError>>);

    impl TokenJournal for Disk {
        fn record(&mut self, _: &UsedToken) -> Result<Recorded, JournalError> {
            self.0.recv().unwrap_or(Ok(())).map(|()| Recorded::Now)
        }
    }

    struct Faulty;

    impl TokenJournal for Faulty {
        fn record(&mut self, _: &UsedToken) -> Result<Recorded, JournalError> {
            std::panic::panic_any("a bug of ours")
        }
    }

    fn used(number: u8) -> UsedToken {
        super::super::tests::records(1, u64::from(number) + 30)[0]
    }

    #[test]
    fn records_are_written_in_order_beside_whoever_asked_for_them() {
        let (let_go, disk) = channel();
        let mut journal = RecordingThread::start(Disk(disk), 4).unwrap();
        let (first, second) = (used(1), used(2));
        assert_eq!(journal.record(&first), Ok(Recorded::Later), "the disk stands still");
        assert_eq!(journal.record(&second), Ok(Recorded::Later));
        assert_eq!(journal.next_done(), None);
        let_go.send(Err(JournalError)).unwrap();
        let_go.send(Ok(())).unwrap();
        let mut done = Vec::new();
        while done.len() < 2 {
            done.extend(journal.next_done());
            std::thread::yield_now();
        }
        assert_eq!(done, [(first, Err(JournalError)), (second, Ok(()))]);
    }

    #[test]
    fn what_a_thread_had_that_died_is_not_kept() {
        let mut journal = RecordingThread::start(Faulty, 4).unwrap();
        assert_eq!(journal.record(&used(1)), Ok(Recorded::Later));
        let done = std::iter::repeat_with(|| journal.next_done()).find_map(|done| done);
        assert_eq!(done, Some((used(1), Err(JournalError))));
        assert_eq!((journal.record(&used(2)), journal.next_done()), (Err(JournalError), None));
    }

    #[test]
    fn what_finds_no_room_is_not_kept_and_nobody_waits_for_it() {
        let (let_go, disk) = channel();
        let mut journal = RecordingThread::start(Disk(disk), 2).unwrap();
        let answers: Vec<_> = (0..10).map(|number| journal.record(&used(number))).collect();
        let refused = answers.iter().filter(|answer| **answer == Err(JournalError)).count();
        assert!((7..=8).contains(&refused), "two wait, and one may be with the disk: {answers:?}");
        drop(let_go);
        drop(journal);
    }
}
