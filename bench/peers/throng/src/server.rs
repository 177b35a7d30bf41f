//! Server: the host of the one world: it gives it its mail and to the pool, as `throng`'s own `hosted_world` does.

use std::net::SocketAddr;
use std::sync::Arc;

use peers_scenario::{Outbox, Scene, Server, Sight, Terms};
use throng_platform::allocator::thread_counts;
use throng_platform::clock::MonotonicClock;
use throng_platform::time::Nanos;
use throng_replication::InterestSettings;
use throng_scheduler::{Completion, Finished, Helpers, Scheduled, ShortTask, ShortTaskPool};
use throng_world::allowance::Allowance;
use throng_world::prelude::*;
use throng_world::world_builder::Kind;
use throng_world::{Client, ClientBatch, GameWorld, InTick, Mail, MailItem, Worker};

use crate::components::schema;
use crate::handshake::{connect, made_up_address};
use crate::way_out::{Sent, WayOut};
use crate::world::{Changes, Field, TICK};

/// What a server lets a client send, by default.
const PACKETS_PER_S_MAX: u32 = 300;
const BYTES_PER_S_MAX: u32 = 128 << 10;

/// The world with what its host keeps beside it.
struct HostedWorld {
    world: GameWorld,
    mail: Mail,
    now: Nanos,
    /// Allocations of the last tick, on its own worker.
    allocations: u64,
}

impl ShortTask for HostedWorld {
    type Worker = Worker;
    type Batch = ClientBatch;

    fn run(&mut self, worker: &mut Worker, helpers: &Helpers<Self>) {
        let before = thread_counts().allocations;
        let in_tick = InTick::begin();
        self.world.tick(self.now, &mut self.mail, worker, helpers);
        drop(in_tick);
        self.allocations = thread_counts().allocations - before;
    }

    fn run_batch(batch: &mut ClientBatch, worker: &mut Worker) {
        batch.run(worker);
    }

    fn rest(worker: &mut Worker) {
        // What the kernel did not take is counted by the sender.
        let _ = worker.sender.flush();
    }
}

pub struct ThrongServer {
    pool: ShortTaskPool<HostedWorld>,
    /// Here between two ticks.
    hosted: Option<Box<HostedWorld>>,
    due: Vec<Scheduled<HostedWorld>>,
    finished: Vec<Finished<HostedWorld>>,
    sent: Sent,
    updates: u64,
    spawns: u64,
    packets_lost: u64,
    allocations_of_helpers: u64,
    /// Allocations on the world's own worker in each tick.
    allocations: Vec<u64>,
}

impl ThrongServer {
    fn hosted(&mut self) -> &mut HostedWorld {
        self.hosted.as_mut().expect("the world is here between two ticks")
    }
}

impl Server for ThrongServer {
    fn new(terms: &Terms, scene: &Scene, addresses: &[SocketAddr]) -> Self {
        let mut kind = Kind::new(WorldKindId(0), Box::new(Field::new(terms, scene)));
        let (id, interest) = (WorldId::new(0, 0), InterestSettings::default());
        let built = kind.build_world(id, terms.seed, None, &schema(), &interest);
        let world = built.expect("two systems can be put in an order");
        let mut mail = Mail::default();
        for number in 0..terms.clients {
            let address = addresses.get(number as usize).copied().unwrap_or_else(|| made_up_address(number));
            let allowance = Allowance::new(PACKETS_PER_S_MAX, BYTES_PER_S_MAX, Nanos::ZERO);
            let connection = connect(number, address).1;
            let client = Box::new(Client::new(ClientKey(number), connection, Box::new([0; 256]), allowance));
            mail.push(MailItem::Arrival { client, from: None, transfer: None });
        }
        let sent = Sent::default();
        let mut way_out = WayOut::new(terms, sent.clone());
        let workers = 0..terms.workers.max(1) as usize;
        let workers = workers.map(|number| Worker::new(number, way_out.sender(number))).collect();
        Self {
            pool: ShortTaskPool::new(workers, Arc::new(MonotonicClock::new())),
            hosted: Some(Box::new(HostedWorld { world, mail, now: Nanos::ZERO, allocations: 0 })),
            due: Vec::new(),
            finished: Vec::new(),
            sent,
            updates: 0,
            spawns: 0,
            packets_lost: 0,
            allocations_of_helpers: 0,
            allocations: Vec::with_capacity(1 << 16),
        }
    }

    fn deliver(&mut self, client: u32, packet: &[u8]) {
        self.hosted().mail.push_datagram(ClientKey(client), packet);
    }

    fn tick(&mut self, scene: &Scene, _sight: &Sight) {
        let mut task = self.hosted.take().expect("the world is here between two ticks");
        task.now = task.now.saturating_add(TICK);
        task.world.ecs_mut().resource_mut::<Changes>().take(scene);
        self.due.push(Scheduled { task, deadline: Nanos::ZERO, cost: Nanos::ZERO });
        self.pool.submit(&mut self.due);
        assert_eq!(self.pool.wait(Nanos::MAX, &mut self.finished), Completion::AllDone);
        let Finished { mut task, panicked, .. } = self.finished.pop().expect("the world is back");
        assert!(!panicked, "the world's tick is in order");
        let report = task.world.report_mut();
        assert!(report.leaving.is_empty(), "everybody stays");
        assert_eq!(report.stats.datagrams_refused, 0, "the clients' packets are in order");
        self.updates += report.stats.replication.entity_updates;
        self.spawns += report.stats.replication.spawns;
        self.packets_lost += report.stats.packets_lost;
        self.allocations_of_helpers += report.stats.allocations;
        self.allocations.push(task.allocations);
        self.hosted = Some(task);
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        self.sent.hand_over(out);
    }

    fn updates(&self) -> Option<u64> {
        Some(self.updates)
    }

    fn more(&self) -> serde_json::Value {
        let settled = &self.allocations[self.allocations.len() / 2..];
        serde_json::json!({
            "spawns": self.spawns,
            "packets_lost": self.packets_lost,
            "allocations_in_the_second_half": settled.iter().sum::<u64>(),
            "allocations_of_helpers": self.allocations_of_helpers,
        })
    }
}
