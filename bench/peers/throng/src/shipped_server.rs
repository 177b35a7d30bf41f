//! Shipped server: `throng::Server` as it runs on a host, with as many small worlds as clients, on a clock and a
//! transport of the driver's.
//!
//! Timed are whole frames: what came in goes through the address table and into mailboxes, worlds that are due go to the
//! pool, their ticks, the way home, the server's counters. Worlds of 20 Hz lie in all three phases of the 60 Hz grid, so
//! a tick of the scene is three frames, one after the other. Settings and rules are the usual ones, tiers included;
//! a small world lies within the first. Clients come in through the door beforehand, at the usual pace.
//!
//! Not there: sleeping between frames, the status of each second, and the flight recorder, as in the other loads.

use std::net::SocketAddr;
use std::sync::Arc;

use peers_scenario::{Outbox, Scene, Server, Sight, Terms};
use throng::directory::{Directory, Placement};
use throng::ids::WorldId;
use throng::server::Environment;
use throng::settings::Settings;
use throng_net::protocol::{ClientId, UserData};
use throng_platform::steal::ManualSteal;
use throng_platform::time::Nanos;

use crate::components::schema;
use crate::frame_clock::FrameClock;
use crate::handshake::{SERVER, made_up_address, private_key};
use crate::small_world::{Moves, SmallWorld};
use crate::way_in::{DriverTransport, Waiting};
use crate::way_out::{Sent, WayOut};
use crate::world::TICK;

pub struct ShippedServer {
    server: throng::Server,
    clock: FrameClock,
    waiting: Waiting,
    sent: Sent,
    moves: Moves,
    /// By number of the client, whose world has the same.
    addresses: Vec<SocketAddr>,
    /// The next frame, and the end of the scene's tick that was run last.
    frame: u64,
    tick_end: Nanos,
    updates: u64,
    packets_lost: u64,
    allocations: u64,
}

/// Each client has a world of its own.
struct OwnWorlds;

impl Directory for OwnWorlds {
    fn place(&mut self, client_id: ClientId, _: &UserData) -> Placement {
        Placement::World(WorldId::new(client_id.0 as u32, 0))
    }

    fn left(&mut self, _: ClientId) {}
}

/// The shipped server's settings, with room for all clients.
pub fn settings(terms: &Terms) -> Settings {
    let mut settings = Settings::default();
    settings.server.clients_max = settings.server.clients_max.max(terms.clients);
    settings
}

impl ShippedServer {
    /// Runs the frames of one tick of the scene: each world ticks once.
    fn run_frames(&mut self) {
        self.tick_end += TICK;
        loop {
            let begin = self.server.start_of_frame(self.frame);
            if begin >= self.tick_end {
                break;
            }
            self.clock.begin_frame(begin);
            self.server.frame(self.frame);
            self.frame += 1;
        }
    }

    fn worlds(&self) -> impl Iterator<Item = WorldId> + use<> {
        (0..self.addresses.len() as u32).map(|number| WorldId::new(number, 0))
    }

    /// Adds up what worlds say of their last tick. Not timed.
    fn read_reports(&mut self) {
        for id in self.worlds() {
            let world = self.server.world_mut(id).expect("every world is home between two ticks");
            let stats = &world.report_mut().stats;
            assert_eq!(stats.datagrams_refused, 0, "the clients' packets are in order");
            self.updates += stats.replication.entity_updates;
            self.packets_lost += stats.packets_lost;
            self.allocations += stats.allocations;
        }
    }
}

impl Server for ShippedServer {
    fn new(terms: &Terms, scene: &Scene, addresses: &[SocketAddr]) -> Self {
        let address = |number| addresses.get(number as usize).copied().unwrap_or_else(|| made_up_address(number));
        let (clock, waiting, sent, moves) = (FrameClock::new(), Waiting::default(), Sent::default(), Moves::new(scene));
        let transport = DriverTransport { waiting: waiting.clone(), way_out: WayOut::new(terms, sent.clone()) };
        let environment = Environment {
            clock: Arc::new(clock.clone()),
            transport: Box::new(transport),
            seed: [terms.seed as u8; 32],
            steal: Box::new(ManualSteal::new(1)),
            private_key: private_key(),
            public_addresses: vec![SERVER],
            workers_count: terms.workers.max(1) as usize,
        };
        let mut server = throng::Server::with_environment(&settings(terms), schema(), environment);
        let kind = server.add_kind(SmallWorld::new(scene, moves.clone())).expect("20 Hz are possible");
        for number in 0..terms.clients {
            let world = server.create_world(kind, terms.seed).expect("one system needs no order");
            assert_eq!(world, WorldId::new(number, 0));
        }
        server.set_directory(OwnWorlds);
        server.prepare(Nanos::ZERO).expect("there are worlds");
        Self {
            server,
            clock,
            waiting,
            sent,
            moves,
            addresses: (0..terms.clients).map(address).collect(),
            frame: 0,
            tick_end: Nanos::ZERO,
            updates: 0,
            packets_lost: 0,
            allocations: 0,
        }
    }

    fn connect(&mut self, out: &mut Outbox) -> bool {
        self.run_frames();
        self.hand_over(out);
        self.worlds().all(|id| self.server.world_mut(id).is_some_and(|world| world.clients_count() == 1))
    }

    fn deliver(&mut self, client: u32, packet: &[u8]) {
        self.waiting.push(self.addresses[client as usize], packet);
    }

    fn tick(&mut self, scene: &Scene, _sight: &Sight) {
        self.moves.take(scene);
        self.allocations = 0;
        self.run_frames();
    }

    fn hand_over(&mut self, out: &mut Outbox) {
        self.sent.hand_over(out);
        self.read_reports();
    }

    fn updates(&self) -> Option<u64> {
        Some(self.updates)
    }

    fn more(&self) -> serde_json::Value {
        serde_json::json!({
            "packets_lost": self.packets_lost,
            "allocations_in_the_last_tick": self.allocations,
        })
    }
}
