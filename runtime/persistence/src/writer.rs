//! Writer: saves behind the tick's back.
//!
//! The frame's thread has the [`Writer`] and hands in orders; a thread of low priority has the store and carries them
//! out. Between them are two queues without locks, each with a maximum. What does not fit is refused at once and stays
//! with its giver, who goes on playing and tries again with what is true by then; so a disk that is slow, full or dead
//! costs saves, and no tick.
//!
//! ```text
//! submit --> orders, at most so many and so many bytes --> Work::step: all that wait, one transaction
//! take_ack <-- acks, as many as there can be orders <------ ticket and outcome, in the tickets' order
//! ```
//!
//! When the store fails, those orders wait until it has been opened anew and says whether they are in it; whoever asks
//! meanwhile is refused ([`Full::Down`]). So an outcome is always the truth, and late rather than guessed.
//!
//! Cost on the frame's thread: a place in a queue, and where the other thread sleeps a system call to wake it.

mod counters;
mod work;

use std::{
    io, mem,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
    time::Duration,
};

use thiserror::Error;
use throng_platform::{
    clock::{Clock, MonotonicClock},
    threads::{Priority, spawn_named},
    time::Nanos,
};

pub use counters::SaveCounters;
use work::{Shared, Work};

use crate::{
    commit::{Ack, Commit, Order, Request, Ticket},
    lease::LeaseRequest,
    store::{Reads, Store},
};

/// A thread that is to end is looked at so often.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How much may wait, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// Orders that are not acknowledged yet, or whose acknowledgement nobody took. Too low: refusals in a wave of saves.
    /// Too high: memory, some 200 bytes for each place.
    pub orders_max: usize,
    /// Bytes of the orders that wait; one alone may be more. Too low: refusals while the disk is slow. Too high: memory.
    pub queue_bytes_max: usize,
    /// Bytes of orders after which a batch takes no more. Too low: more fsyncs. Too high: the first of a batch
    /// waits for the last.
    pub batch_bytes_max: usize,
    /// How long the first of a batch waits for others. Too low: two fsyncs for each commit. Too high:
    /// acknowledgements come late.
    pub gather: Nanos,
    /// How long after a failure the store is opened anew, if at once was too early; doubled each time.
    pub retry_first: Nanos,
    /// At most so long.
    pub retry_longest: Nanos,
}

impl Default for WriterSettings {
    fn default() -> WriterSettings {
        WriterSettings {
            orders_max: 16_384,
            queue_bytes_max: 64 << 20,
            batch_bytes_max: 8 << 20,
            gather: Nanos::from_millis(20),
            retry_first: Nanos::from_millis(100),
            retry_longest: Nanos::from_secs(10),
        }
    }
}

/// Why an order was not even taken. Nothing of it is saved; hand it in again later, as things are then.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum Full {
    #[error("{waiting} bytes wait to be saved, at most {max} may")]
    Bytes { waiting: usize, max: usize },
    #[error("{0} orders wait to be saved or to be looked at")]
    Orders(usize),
    #[error("the store is being opened anew after a failure")]
    Down,
    #[error("the thread that saves has ended")]
    Ended,
}

/// Who carries the orders out.
enum Hand {
    Thread(JoinHandle<()>),
    /// The calling thread, when acknowledgements are taken: for simulations.
    Own(Box<Work>),
    /// It is over.
    Nobody,
}

/// The frame's end. One thread has it.
pub struct Writer {
    settings: WriterSettings,
    shared: Arc<Shared>,
    reads: Arc<dyn Reads>,
    hand: Hand,
    /// The newest order that was given, and the newest whose acknowledgement was taken.
    given: Ticket,
    seen: Ticket,
}

impl Writer {
    /// Saves on a thread of low priority.
    pub fn start(store: Box<dyn Store>, settings: WriterSettings) -> io::Result<Writer> {
        let clock = Arc::new(MonotonicClock::new());
        Writer::start_on(store, settings, clock, |work| spawn_named("saves", Priority::Low, work))
    }

    /// The same on a thread that somebody else starts, and with another clock.
    pub fn start_on(
        store: Box<dyn Store>,
        settings: WriterSettings,
        clock: Arc<dyn Clock>,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<Writer> {
        let mut writer = Writer::inline(store, settings, clock);
        if let Hand::Own(work) = mem::replace(&mut writer.hand, Hand::Nobody) {
            writer.hand = Hand::Thread(spawn(Box::new(move || work.run()))?);
        }
        Ok(writer)
    }

    /// Saves on the calling thread, whenever acknowledgements are asked for: the same orders give the same answers.
    pub fn inline(store: Box<dyn Store>, settings: WriterSettings, clock: Arc<dyn Clock>) -> Writer {
        let (reads, shared) = (store.reader(), Arc::new(Shared::new(settings.orders_max)));
        let work = Work::new(store, settings.clone(), clock, Arc::clone(&shared));
        let hand = Hand::Own(Box::new(work));
        Writer { settings, shared, reads, hand, given: Ticket(0), seen: Ticket(0) }
    }

    /// Hands a commit in. Never waits.
    pub fn submit(&mut self, commit: Commit) -> Result<Ticket, Full> {
        self.give(Request::Commit(commit))
    }

    /// Whether a commit of so many bytes would be taken now; if not, that is counted as a commit that was not. Who asks
    /// before a commit is put together makes none for nothing.
    pub fn has_room_for(&self, bytes: usize) -> Result<(), Full> {
        self.check_room(bytes).inspect_err(|_| self.shared.counters.count_full())
    }

    /// Asks for a lease. Never waits: the lease comes with the acknowledgement.
    pub fn lease(&mut self, request: LeaseRequest) -> Result<Ticket, Full> {
        self.give(Request::Lease(request))
    }

    /// What is given next is written at once, and does not wait for more that goes into the same transaction: for somebody who
    /// waits for it.
    pub fn hurry(&self) {
        self.shared.hurries.store(true, Ordering::Release);
    }

    /// What became of an order since this was last asked. Never waits.
    ///
    /// After a refusal the store is behind the game: what the refused commit and all after it wrote must be handed in
    /// again, with the present values of everybody concerned, in one commit.
    pub fn take_ack(&mut self) -> Option<Ack> {
        if let Hand::Own(work) = &mut self.hand {
            work.step();
        }
        let ack = self.shared.acks.pop()?;
        self.seen = ack.ticket;
        Some(ack)
    }

    /// For threads that load.
    pub fn reads(&self) -> Arc<dyn Reads> {
        Arc::clone(&self.reads)
    }

    /// The store has failed and was not opened anew yet.
    pub fn is_down(&self) -> bool {
        self.shared.is_down.load(Ordering::Acquire)
    }

    pub fn counters(&self) -> SaveCounters {
        let orders = self.given.0 - self.seen.0;
        self.shared.counters.read(orders, self.shared.queued_bytes.load(Ordering::Relaxed), self.reads.damaged())
    }

    /// What the longest transaction took since this was last asked.
    pub fn take_longest_batch(&mut self) -> Nanos {
        self.shared.counters.take_longest()
    }

    /// Saves everything that was handed in, ends the thread, and returns what is not acknowledged yet. Waits, for a store
    /// that does not come back without end: a process that is to be over in time calls [`Self::finish_within`]. Orders
    /// whose outcome cannot be found out have no acknowledgement.
    pub fn finish(self) -> Vec<Ack> {
        self.finish_within(Nanos::MAX).acks
    }

    /// As [`Self::finish`], for so long at most. A thread that is still in its store then is let go of: it ends with the
    /// process, and what it had in hand is there whole or not at all.
    pub fn finish_within(mut self, patience: Nanos) -> Finished {
        self.shared.ends.store(true, Ordering::Release);
        let mut is_over = true;
        match mem::replace(&mut self.hand, Hand::Nobody) {
            Hand::Thread(thread) => {
                thread.thread().unpark();
                is_over = wait_for_end(&thread, patience);
                if is_over {
                    // That it panicked was told by the panic's own message; what it acknowledged before counts.
                    _ = thread.join();
                }
            }
            Hand::Own(work) => work.run(),
            Hand::Nobody => {}
        }
        Finished { acks: std::iter::from_fn(|| self.shared.acks.pop()).collect(), is_over }
    }

    fn give(&mut self, request: Request) -> Result<Ticket, Full> {
        let bytes = request.bytes();
        self.has_room_for(bytes)?;
        let ticket = Ticket(self.given.0 + 1);
        self.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.shared.orders.push(Order { ticket, seen: self.seen, request }).is_err() {
            // There are as many places as orders may be unacknowledged.
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(Full::Orders(self.settings.orders_max));
        }
        self.given = ticket;
        if let Hand::Thread(thread) = &self.hand {
            thread.thread().unpark();
        }
        Ok(ticket)
    }

    fn check_room(&self, bytes: usize) -> Result<(), Full> {
        let has_ended = match &self.hand {
            Hand::Thread(thread) => thread.is_finished(),
            Hand::Own(_) => false,
            Hand::Nobody => true,
        };
        if has_ended {
            return Err(Full::Ended);
        }
        if self.is_down() {
            return Err(Full::Down);
        }
        let orders = (self.given.0 - self.seen.0) as usize;
        if orders >= self.settings.orders_max {
            return Err(Full::Orders(orders));
        }
        let (waiting, max) = (self.shared.queued_bytes.load(Ordering::Relaxed), self.settings.queue_bytes_max);
        // What is larger than all that may wait goes by itself.
        if waiting > 0 && waiting + bytes > max { Err(Full::Bytes { waiting, max }) } else { Ok(()) }
    }
}

/// What is left of a writer.
#[derive(Debug)]
pub struct Finished {
    /// What was not acknowledged before.
    pub acks: Vec<Ack>,
    /// Its thread has ended, and nothing more comes of it.
    pub is_over: bool,
}

/// A thread has no join with an end, so it is looked at.
fn wait_for_end(thread: &JoinHandle<()>, patience: Nanos) -> bool {
    let clock = MonotonicClock::new();
    let give_up_at = Nanos(clock.now().0.saturating_add(patience.0));
    while !thread.is_finished() && clock.now() < give_up_at {
        thread::sleep(LOOK_EVERY);
    }
    thread.is_finished()
}

/// The thread writes what waits, and ends by itself.
impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        if let Hand::Thread(thread) = &self.hand {
            thread.thread().unpark();
        }
    }
}
