//! Hosted world: a world with what the server keeps beside it, as a short task for the pool.
//!
//! The pool gives it to a worker, which takes the world's mail, runs one tick and adds what it counted to the worker's
//! own sums. Batches of the world's clients are what idle workers may take.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use throng_analytics::Page;
use throng_metrics::game::GameSums;
use throng_net::transport::DatagramSender;
use throng_platform::{allocator, clock::Clock, time::Nanos};
use throng_scheduler::{Helpers, ShortTask};
use throng_world::{Client, ClientBatch, GameWorld, InTick, Mail, MailItem, Worker};

use crate::{
    client_report::ClientCosts,
    long_tasks::Later,
    mailbox::Mailbox,
    packet_report::{PacketSums, Reported},
    worker_post::WorkerPost,
    world_record::{LastRecord, RecordScratch, WorldRecord},
};

/// What each worker thread keeps for itself.
pub(crate) struct HostWorker {
    worker: Worker,
    clock: Arc<dyn Clock>,
    /// What the worlds that ran here since the frame thread last took it have sent, by kind and cause.
    pub packets: PacketSums,
    /// What they have told of their clients.
    pub clients: ClientCosts,
    /// Datagrams that the kernel did not take. Added to by all workers, read by the frame thread once a frame; only the
    /// sum matters, so relaxed order is enough.
    send_dropped: Arc<AtomicU64>,
    /// Where the watchdog reads what this worker is at.
    post: Arc<WorkerPost>,
    /// Where values go that ticks give up; none once its thread knows.
    later: Option<Later>,
    /// Where checkpoints and hashes are written; kept for its memory.
    record: RecordScratch,
}

impl HostWorker {
    pub fn new(
        number: usize,
        sender: Box<dyn DatagramSender>,
        clock: Arc<dyn Clock>,
        send_dropped: Arc<AtomicU64>,
        clients_max: usize,
        post: Arc<WorkerPost>,
        later: Later,
    ) -> Self {
        let (worker, clients) = (Worker::new(number, sender), ClientCosts::new(clients_max));
        Self {
            worker,
            clock,
            packets: PacketSums::default(),
            clients,
            send_dropped,
            post,
            later: Some(later),
            record: RecordScratch::default(),
        }
    }
}

impl HostWorker {
    /// What the games of the worlds that ran here counted since it was last taken.
    pub fn game_mut(&mut self) -> &mut GameSums {
        &mut self.worker.game
    }

    /// Where they emit analytics events.
    pub fn events_mut(&mut self) -> &mut Option<Box<Page>> {
        &mut self.worker.events
    }
}

impl AsMut<Worker> for HostWorker {
    fn as_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }
}

/// A world and what the server keeps beside it.
pub(crate) struct HostedWorld {
    pub world: GameWorld,
    mailbox: Arc<Mailbox>,
    /// The mail of the tick; empty between two. It changes places with what waits in the mailbox, so that buffers which
    /// grew for a crowded world stay with it: one that all worlds of a worker share would leave each with the largest.
    mail: Mail,
    /// When a worker began this tick, 0 while none has it. Written by the worker, read by the frame thread to tell a
    /// world that hangs from one that waits for its turn; nothing else follows from it, so relaxed order is enough.
    running_since: Arc<AtomicU64>,
    /// Time of the frame that the next tick belongs to; the same for all worlds of the frame.
    pub now: Nanos,
    /// The second of its time in which it last told what was sent and what clients took.
    reported_second: u32,
    /// What it can be made again from, if its kind keeps checkpoints.
    record: Option<Box<WorldRecord>>,
}

impl HostedWorld {
    pub fn new(
        world: GameWorld,
        mailbox: Arc<Mailbox>,
        running_since: Arc<AtomicU64>,
        record: Option<Box<WorldRecord>>,
    ) -> Self {
        Self { world, mailbox, mail: Mail::default(), running_since, now: Nanos::ZERO, reported_second: 0, record }
    }

    /// What it can be made again from, after a panic.
    pub fn take_record(&mut self) -> Option<LastRecord> {
        self.record.take()?.end(&mut self.world)
    }

    /// It is not ticked any more: what was recorded of it is handed over.
    pub fn end_record(&mut self) {
        self.record = None;
    }

    /// Mail that a panic left.
    pub fn take_mail(&mut self) -> Vec<MailItem> {
        self.mail.drain().collect()
    }

    /// Takes its clients out, those included that a panic left in the middle of a tick. The rest is to be dropped.
    #[expect(clippy::vec_box, reason = "a client moves as a pointer, from world to world")]
    pub fn into_clients(mut self: Box<Self>) -> (Vec<Box<Client>>, Box<Self>) {
        let mut clients = self.world.take_clients();
        // Those who were about to come in when it panicked.
        clients.extend(self.mail.drain().filter_map(|item| match item {
            MailItem::Arrival { client, .. } => Some(client),
            _ => None,
        }));
        (clients, self)
    }

    fn tick(&mut self, worker: &mut HostWorker, helpers: &Helpers<Self>) {
        self.mailbox.swap(&mut self.mail);
        self.world.tick(self.now, &mut self.mail, worker, helpers);
        // Once a second, and not all worlds in the same tick. Of a world that rests some ticks are left out.
        let turn = self.world.ticks().wrapping_sub(1).wrapping_add(self.world.id().number());
        let second = turn / u32::from(self.world.rate().0);
        if std::mem::replace(&mut self.reported_second, second) != second {
            let reported = Reported::of(self.world.id(), self.world.kind());
            self.world.take_traffic(|row| worker.packets.add(reported, row));
            let (world, kind) = (self.world.id(), self.world.kind());
            self.world.take_client_costs(|cost| worker.clients.add(world, kind, cost));
        }
    }
}

impl ShortTask for HostedWorld {
    type Worker = HostWorker;
    type Batch = ClientBatch;

    fn run(&mut self, worker: &mut HostWorker, helpers: &Helpers<Self>) {
        worker.later.take().iter().for_each(Later::set_for_this_thread);
        let before = allocator::thread_counts().allocations;
        let now = worker.clock.now();
        self.running_since.store(now.0, Ordering::Relaxed);
        let at_work = worker.post.begin(self.world.id(), self.world.kind(), now);
        let in_tick = InTick::begin();
        self.tick(worker, helpers);
        drop(in_tick);
        drop(at_work);
        self.world.count_allocations(allocator::thread_counts().allocations - before);
        if let Some(record) = &mut self.record
            && !self.world.report_mut().was_listening
            && !record.note_tick(&mut self.world, &mut worker.record)
        {
            self.record = None;
        }
        self.running_since.store(0, Ordering::Relaxed);
    }

    fn run_batch(batch: &mut ClientBatch, worker: &mut HostWorker) {
        if !batch.is_to_be_timed() {
            return batch.run(&mut worker.worker);
        }
        let began_at = worker.clock.now();
        batch.run(&mut worker.worker);
        let took = worker.clock.now().saturating_sub(began_at);
        worker.clients.add_time(batch.is_opening(), batch.line_units(), took);
    }

    /// Hands what tasks have left in the batch to the kernel.
    fn rest(worker: &mut HostWorker) {
        let outcome = worker.worker.sender.flush();
        if outcome.dropped > 0 {
            worker.send_dropped.fetch_add(outcome.dropped as u64, Ordering::Relaxed);
        }
    }
}
