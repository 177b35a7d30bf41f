//! World: the server's side, one tick in the order of `server::game_world`.

use std::net::SocketAddr;

use bevy_ecs::prelude::*;
use peers_scenario::{Load, Outbox, SIGHT_M, Scene, Server, Sight, Terms};
use throng_platform::allocator;
use throng_platform::time::Nanos;
use throng_replication::{
    InterestSettings, WorldReplication,
    ecs::{Collector, Replicated},
};

use crate::components::{Health, Number, Pose, schema};
use crate::handshake::{connect, made_up_address};
use crate::part::{Helper, Part, Seat, Work, run};

/// 20 ticks a second.
pub const TICK: Nanos = Nanos::from_millis(50);

pub struct ThrongServer {
    ecs: World,
    entities: Vec<Entity>,
    collector: Collector,
    replication: WorldReplication,
    parts: Vec<Part>,
    helpers: Vec<Helper>,
    clients_per_part: u32,
    now: Nanos,
    updates: u64,
    spawns: u64,
    /// Allocations on the world's thread in each tick.
    allocations: Vec<u64>,
}

/// Everything within sight is held at any time: sets are rebuilt every 4 ticks, in which two entities come nearer
/// by 1.5 m at most. No tiers, no budget: whoever is in sight is told of at every tick.
fn interest(terms: &Terms) -> InterestSettings {
    InterestSettings {
        enter_radius_m: SIGHT_M + if terms.load == Load::W1 { 1.5 } else { 0.0 },
        leave_radius_m: SIGHT_M + 2.0,
        budget_bytes_per_tick: 1 << 20,
        ..InterestSettings::default()
    }
}

impl Server for ThrongServer {
    fn new(terms: &Terms, scene: &Scene, addresses: &[SocketAddr]) -> Self {
        let mut ecs = World::new();
        let mut collector = Collector::new(schema());
        collector.replicate::<Pose>(&mut ecs);
        collector.replicate::<Health>(&mut ecs);
        collector.replicate::<Number>(&mut ecs);
        collector.placed_by::<Pose>(&mut ecs);
        let mut replication = WorldReplication::new(schema(), interest(terms));
        let spawn = |number: u32| {
            let (pose, points) = (scene.poses[number as usize], scene.health[number as usize]);
            ecs.spawn((Replicated::default(), Pose::from(pose), Health { points }, Number { number })).id()
        };
        let entities: Vec<Entity> = (0..terms.entities).map(spawn).collect();
        replication.begin_tick(1);
        collector.collect(&mut ecs, &mut replication);
        ecs.clear_trackers();
        let mut seat = |number: u32| {
            let view = replication.add_client(0);
            replication.set_own(view, collector.net_id(&ecs, entities[number as usize]));
            let address = addresses.get(number as usize).copied().unwrap_or_else(|| made_up_address(number));
            Seat::new(connect(number, address).1, view)
        };
        let clients_per_part = terms.clients.div_ceil(terms.workers.max(1));
        let begins = (0..terms.clients).step_by(clients_per_part as usize);
        let parts: Vec<Part> = begins
            .map(|begin| {
                let clients = begin..terms.clients.min(begin + clients_per_part);
                let seats = clients.clone().map(&mut seat).collect();
                Part::new(terms, clients, seats)
            })
            .collect();
        let helpers = (1..parts.len()).map(|_| Helper::new()).collect();
        Self {
            ecs,
            entities,
            collector,
            replication,
            parts,
            helpers,
            clients_per_part,
            now: Nanos::ZERO,
            updates: 0,
            spawns: 0,
            allocations: Vec::with_capacity(1 << 16),
        }
    }

    fn deliver(&mut self, client: u32, packet: &[u8]) {
        self.parts[(client / self.clients_per_part) as usize].add_letter(client, packet);
    }

    fn tick(&mut self, scene: &Scene, _sight: &Sight) {
        let before = allocator::thread_counts().allocations;
        let Self { parts, helpers, replication, ecs, .. } = self;
        self.now = self.now.saturating_add(TICK);
        parts.iter_mut().for_each(|part| part.now = self.now);
        run(parts, helpers, Work::Open);
        play(ecs, &self.entities, scene);
        replication.begin_tick(scene.tick + 1);
        self.collector.collect(ecs, replication);
        ecs.clear_trackers();
        for part in parts.iter_mut() {
            part.share = replication.lend(&part.views);
        }
        run(parts, helpers, Work::Tell);
        for part in parts {
            replication.give_back(std::mem::take(&mut part.share));
        }
        let stats = replication.take_stats();
        self.updates += stats.entity_updates;
        self.spawns += stats.spawns;
        self.allocations.push(allocator::thread_counts().allocations - before);
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        self.parts.iter_mut().for_each(|part| part.hand_over(out));
    }

    fn updates(&self) -> Option<u64> {
        Some(self.updates)
    }

    fn more(&self) -> serde_json::Value {
        let settled = &self.allocations[self.allocations.len() / 2..];
        serde_json::json!({
            "spawns": self.spawns,
            "packets_lost": self.parts.iter().map(|part| part.packets_lost).sum::<u64>(),
            "allocations_in_the_second_half": settled.iter().sum::<u64>(),
            "allocations_of_helpers": self.parts.iter().map(|part| part.allocations_elsewhere).sum::<u64>(),
            "replication_heap_mb": self.replication.heap_bytes() as f64 / 1e6,
        })
    }
}

/// The game: what moved, moves.
fn play(ecs: &mut World, entities: &[Entity], scene: &Scene) {
    for &number in &scene.moved {
        if let Some(mut pose) = ecs.get_mut::<Pose>(entities[number as usize]) {
            *pose = scene.poses[number as usize].into();
        }
    }
    for &number in &scene.hurt {
        if let Some(mut health) = ecs.get_mut::<Health>(entities[number as usize]) {
            health.points = scene.health[number as usize];
        }
    }
}
