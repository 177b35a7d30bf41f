//! What a tick gets from whoever runs it: the thread's own buffers, a way out for packets, and other threads that help.

use throng_analytics::Page;
use throng_metrics::game::GameSums;
use throng_net::{connection::Received, transport::DatagramSender};
use throng_platform::prefetch::FootprintDraft;
use throng_scheduler::{Helpers, ShortTask};

use crate::{client_batch::ClientBatch, scratch::Scratch};

/// What a thread that ticks worlds keeps for itself, whichever world it has.
pub struct Worker {
    /// Where packets go. Written by ticks, flushed by whoever owns the worker.
    pub sender: Box<dyn DatagramSender>,
    /// Which of the host's workers it is, to tell a helper from the worker that it helps.
    pub(crate) number: usize,
    /// What the games of the worlds that ran here counted since the host last took it.
    pub game: GameSums,
    /// Where analytics events of the worlds that run here go; none where nobody exports them, and while a tick has it.
    pub events: Option<Box<Page>>,
    pub(crate) received: Received,
    pub(crate) snapshot: Vec<u8>,
    pub(crate) footprint: FootprintDraft,
    /// `None` while a world has it.
    pub(crate) scratch: Option<Box<Scratch>>,
}

impl Worker {
    /// `number`: another one for each worker of a host.
    pub fn new(number: usize, sender: Box<dyn DatagramSender>) -> Self {
        let snapshot = Vec::with_capacity(throng_net::protocol::PAYLOAD_BYTES_MAX);
        Self {
            sender,
            number,
            game: GameSums::default(),
            events: None,
            received: Received::default(),
            snapshot,
            footprint: FootprintDraft::default(),
            scratch: None,
        }
    }
}

impl AsMut<Worker> for Worker {
    fn as_mut(&mut self) -> &mut Worker {
        self
    }
}

/// Other threads that serve a world's batches of clients while its tick waits for them (fork-join).
pub trait ForkJoin {
    /// What each of these threads keeps for itself.
    type Worker: AsMut<Worker>;

    /// How many threads there are beside the one that asks.
    fn count(&self) -> usize;

    /// Runs all batches ([`ClientBatch::run`]), here and on threads that have nothing else to do, and returns when the
    /// last is back.
    ///
    /// # Panics
    /// With what a batch panicked with, once all are back in `batches`.
    fn fork_join(&self, batches: &mut Vec<ClientBatch>, worker: &mut Self::Worker);
}

/// Nobody helps.
pub struct Alone;

impl ForkJoin for Alone {
    type Worker = Worker;

    fn count(&self) -> usize {
        0
    }

    fn fork_join(&self, batches: &mut Vec<ClientBatch>, worker: &mut Worker) {
        batches.iter_mut().for_each(|batch| batch.run(worker));
    }
}

impl<T> ForkJoin for Helpers<T>
where
    T: ShortTask<Batch = ClientBatch>,
    T::Worker: AsMut<Worker>,
{
    type Worker = T::Worker;

    fn count(&self) -> usize {
        Helpers::count(self)
    }

    fn fork_join(&self, batches: &mut Vec<ClientBatch>, worker: &mut T::Worker) {
        Helpers::fork_join(self, batches, worker);
    }
}
