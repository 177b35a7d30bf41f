//! What the thread that saves does, step by step.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use crossbeam_queue::ArrayQueue;
use throng_platform::{clock::Clock, process, time::Nanos};

use super::{WriterSettings, counters::Cells};
use crate::{
    commit::{Ack, Done, Order, Outcome, Refusal, Request},
    refused_keys::RefusedKeys,
    store::Store,
    store_error::StoreError,
};

/// What the frame's thread and the one that saves share.
pub(super) struct Shared {
    pub orders: ArrayQueue<Order>,
    pub acks: ArrayQueue<Ack>,
    /// Added to by the frame's thread, taken from by the other. A number that stands for nothing else: relaxed.
    pub queued_bytes: AtomicUsize,
    /// Written by the thread that saves.
    pub is_down: AtomicBool,
    /// Written by the frame's thread, after its last order.
    pub ends: AtomicBool,
    /// Set by the frame's thread: the next batch does not wait for others to join it.
    pub hurries: AtomicBool,
    pub counters: Cells,
}

impl Shared {
    pub fn new(orders_max: usize) -> Shared {
        Shared {
            orders: ArrayQueue::new(orders_max),
            acks: ArrayQueue::new(orders_max),
            queued_bytes: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            hurries: AtomicBool::new(false),
            counters: Cells::default(),
        }
    }
}

/// What came of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Worked,
    /// Nothing waits.
    Idle,
    /// The store is down, and it is too early to try again.
    Wait(Nanos),
}

/// The end of the thread that saves.
pub(super) struct Work {
    store: Box<dyn Store>,
    settings: WriterSettings,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    refused: RefusedKeys,
    /// Those that are being written, or in doubt.
    batch: Vec<Order>,
    failure: Option<Failure>,
    /// How long it waits before it tries again. It is back at the shortest when a batch is written: a disk that is full lets
    /// the store be opened, and then takes nothing.
    pause: Nanos,
    /// It was opened anew after a failure, and nothing has been written since.
    is_unproven: bool,
}

/// The store has failed, and the batch is in doubt.
struct Failure {
    cause: StoreError,
    retry_at: Nanos,
}

impl Work {
    pub fn new(store: Box<dyn Store>, settings: WriterSettings, clock: Arc<dyn Clock>, shared: Arc<Shared>) -> Work {
        let pause = settings.retry_first;
        let (refused, batch) = (RefusedKeys::default(), Vec::new());
        Work { store, settings, clock, shared, refused, batch, failure: None, pause, is_unproven: false }
    }

    /// Until the frame's end says so. Then all that waits is still written; a store that is down is given one more chance.
    pub fn run(mut self) {
        loop {
            // Read before the queue is: what was given before the end is found by the step.
            let ends = self.shared.ends.load(Ordering::Acquire);
            match self.step() {
                Step::Worked => self.shared.counters.set_thread_cpu(process::thread_cpu_time()),
                Step::Idle if ends => return,
                Step::Idle => {
                    thread::park();
                    let hurries = self.shared.hurries.swap(false, Ordering::AcqRel);
                    if !hurries && !self.shared.ends.load(Ordering::Acquire) {
                        thread::sleep(self.settings.gather.into());
                    }
                }
                Step::Wait(_) if ends => {
                    if let Some(failure) = &mut self.failure {
                        failure.retry_at = Nanos::ZERO;
                    }
                    if matches!(self.step(), Step::Wait(_)) {
                        return;
                    }
                }
                Step::Wait(until) => match self.clock.real_timeout(until) {
                    Some(timeout) => thread::park_timeout(timeout),
                    None => thread::park(),
                },
            }
        }
    }

    pub fn step(&mut self) -> Step {
        if self.failure.is_some() {
            return self.settle();
        }
        self.take_batch();
        if self.batch.is_empty() {
            return Step::Idle;
        }
        let began = self.clock.now();
        let (store, batch, refused) = (&mut self.store, &self.batch, &mut self.refused);
        // The store's file may be anything; whatever its code does with it, the thread goes on.
        let applied = catch_unwind(AssertUnwindSafe(|| store.apply(batch, refused)));
        match applied.unwrap_or(Err(StoreError::Panicked)) {
            Ok(outcomes) => {
                self.shared.counters.count_batch(self.clock.now().saturating_sub(began));
                (self.pause, self.is_unproven) = (self.settings.retry_first, false);
                self.answer(outcomes);
                Step::Worked
            }
            Err(cause) => {
                self.shared.counters.count_error();
                self.shared.is_down.store(true, Ordering::Release);
                let retry_at = if self.is_unproven { self.next_try() } else { Nanos::ZERO };
                self.failure = Some(Failure { cause, retry_at });
                self.settle()
            }
        }
    }

    /// After a pause, which is twice as long the next time.
    fn next_try(&mut self) -> Nanos {
        let pause = self.pause;
        self.pause = Nanos(pause.0 * 2).min(self.settings.retry_longest);
        self.clock.now() + pause
    }

    /// Opens the store anew and answers those in doubt.
    fn settle(&mut self) -> Step {
        let Some(failure) = &self.failure else { return Step::Idle };
        if self.clock.now() < failure.retry_at {
            return Step::Wait(failure.retry_at);
        }
        let store = &mut self.store;
        let settled = catch_unwind(AssertUnwindSafe(|| store.settle())).unwrap_or(Err(StoreError::Panicked));
        let outcomes = match settled {
            Err(_) => {
                self.shared.counters.count_error();
                let retry_at = self.next_try();
                if let Some(failure) = &mut self.failure {
                    failure.retry_at = retry_at;
                }
                return Step::Wait(retry_at);
            }
            Ok(Some(outcomes)) => outcomes,
            Ok(None) => {
                let refusal = Refusal::Store(failure.cause.clone());
                for order in &self.batch {
                    if let Request::Commit(commit) = &order.request {
                        self.refused.note(commit, order.ticket);
                    }
                }
                vec![Err(refusal); self.batch.len()]
            }
        };
        (self.failure, self.is_unproven) = (None, true);
        self.shared.counters.count_reopened();
        self.answer(outcomes);
        // After the answers: who sees that it is up again can see why it was down.
        self.shared.is_down.store(false, Ordering::Release);
        Step::Worked
    }

    fn take_batch(&mut self) {
        let mut bytes = 0;
        while bytes < self.settings.batch_bytes_max
            && let Some(order) = self.shared.orders.pop()
        {
            bytes += order.request.bytes();
            self.batch.push(order);
        }
    }

    fn answer(&mut self, outcomes: Vec<Outcome>) {
        for (order, outcome) in self.batch.drain(..).zip(outcomes) {
            let bytes = order.request.bytes();
            match &outcome {
                Ok(Done::Committed) => self.shared.counters.count_commit(bytes),
                Ok(_) => {}
                Err(_) => self.shared.counters.count_refused(),
            }
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            let pushed = self.shared.acks.push(Ack { ticket: order.ticket, outcome });
            debug_assert!(pushed.is_ok(), "as many places as orders may be unacknowledged");
        }
    }
}
