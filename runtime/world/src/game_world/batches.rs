//! Batches: a world's clients are lent to idle workers twice in a tick, to open what they sent and to tell them what
//! there is.
//!
//! How clients are cut depends on their number and on that of the helpers, and what comes of it does not: batches come
//! back in their order, and messages are read in the order in which their datagrams came. What a batch does is its own
//! (`client_batch`). The world waits until the last is back.

use throng_metrics::Counters;
use throng_platform::time::Nanos;

use super::{GameWorld, own};
use crate::{
    client_batch::{ClientBatch, SealedDatagram, Stage, Work},
    inbox::Inbox,
    mail::{Mail, MailItem},
    scratch::Scratch,
    worker::ForkJoin,
};

impl GameWorld {
    /// Opens what clients sent, in batches, and gives the game's messages to its inbox in the order in which their
    /// datagrams came.
    pub(super) fn open_datagrams<H: ForkJoin>(
        &mut self,
        mail: &mut Mail,
        datagrams_count: usize,
        worker: &mut H::Worker,
        helpers: &H,
    ) {
        let per_batch = self.cut_batches(Work::Open, datagrams_count, worker.as_mut().number, helpers.count());
        let mut begin = 0;
        for (number, item) in (0..).zip(&mail.items) {
            let MailItem::Datagram { client, end } = *item else { continue };
            // A datagram can be on its way here while its client leaves; UDP may lose it just as well.
            if let Some(place) = self.clients.place_of(client) {
                let client = (place % per_batch) as u32;
                self.scratch.batches[place / per_batch].datagrams.push(SealedDatagram { number, client, begin, end });
            }
            begin = end;
        }
        let Scratch { batches, spare_buffers, mail_bytes, .. } = &mut *self.scratch;
        std::mem::swap(own(mail_bytes), &mut mail.bytes);
        // From the last on: so each has what it had a tick ago, and nothing grows that has grown.
        for batch in batches.iter_mut().rev() {
            batch.mail = Some((mail_bytes.clone(), self.declared.clone()));
            batch.buffer = spare_buffers.pop().unwrap_or_default();
        }
        helpers.fork_join(batches, worker);
        std::mem::swap(own(mail_bytes), &mut mail.bytes);
        self.filled.inbox = true;
        self.ecs.resource_mut::<Inbox>().take_opened(batches);
        self.take_batches_back();
    }

    /// Brings every client up to date, on all workers that have nothing else to do.
    pub(super) fn tell_clients<H: ForkJoin>(&mut self, worker: &mut H::Worker, helpers: &H) {
        if let Some(reactive) = &mut self.reactive {
            reactive.client_due = Nanos::MAX;
        }
        if self.clients.is_empty() {
            return;
        }
        own(&mut self.replication).settle();
        self.cut_batches(Work::Tell, self.clients.len(), worker.as_mut().number, helpers.count());
        let batches = &mut self.scratch.batches;
        for batch in batches.iter_mut() {
            batch.replication = Some(self.replication.clone());
            batch.traffic = Some(self.sent.lend());
        }
        helpers.fork_join(batches, worker);
        self.take_batches_back();
    }

    /// Cuts all clients into batches, as many as are worth it if so many of them need work, and returns how many are in
    /// each but the last.
    fn cut_batches(&mut self, work: Work, work_count: usize, worker: usize, helpers_count: usize) -> usize {
        let count = self.clients.len();
        let worthwhile = work_count.min(count) / ClientBatch::CLIENTS_MIN;
        let batches_count = worthwhile.min(2 * (helpers_count + 1)).clamp(1, ClientBatch::PER_WORLD_MAX);
        let per_batch = count.div_ceil(batches_count);
        let (world, kind) = (self.id.number(), self.recorded_kind);
        let time_factor = self.replication.time_factor();
        let rested = self.reactive.as_ref().map(|reactive| reactive.rested());
        let stage = Stage { world, kind, tick: self.tick, now: self.now, time_factor, rested, worker };
        let Scratch { batches, spare_batches, .. } = &mut *self.scratch;
        // Exactly: a batch takes most of a kilobyte, and a list that grows by itself begins with room for four.
        batches.reserve_exact(count.div_ceil(per_batch));
        for index in (0..count.div_ceil(per_batch)).rev() {
            let mut batch = spare_batches.pop().unwrap_or_else(ClientBatch::empty);
            batch.begin(work, stage);
            self.clients.take_last(count.min((index + 1) * per_batch) - index * per_batch, &mut batch.clients);
            batches.push(batch);
        }
        batches.reverse();
        per_batch
    }

    fn take_batches_back(&mut self) {
        let Scratch { batches, spare_batches, .. } = &mut *self.scratch;
        spare_batches.reserve_exact(batches.len());
        for mut batch in batches.drain(..) {
            self.clients.give_back(&mut batch.clients);
            self.report.stats.merge(&batch.stats);
            if let Some(reactive) = &mut self.reactive {
                reactive.client_due = reactive.client_due.min(batch.next_due);
            }
            if let Some(traffic) = batch.traffic.take() {
                self.sent.take_back(traffic);
            }
            spare_batches.push(batch);
        }
    }
}
