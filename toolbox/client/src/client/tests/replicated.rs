//! The client below a real replicated world: copies come right over a bad line, audit samples find those that do
//! not, and a steady client allocates nothing.

use throng_platform::allocator::{CountingAllocator, thread_counts};
use throng_replication::{Fault, InterestSettings, Replicate, Traffic, View, ViewScratch, WorldReplication};

use super::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Place {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    at: [f32; 2],
}

#[derive(Clone, Debug, PartialEq, Replicate)]
struct Health {
    #[replicate(bits = 7)]
    points: u8,
}

const ENTITIES: usize = 30;

/// One replicated world, as a server ticks it, on a line that loses packets.
struct Scene {
    stage: Stage,
    world: WorldReplication,
    view: View,
    scratch: ViewScratch,
    traffic: Traffic,
    ids: Vec<NetId>,
    epoch: u8,
    tick: u32,
    received: Received,
    input_newest: u16,
    snapshot: Vec<u8>,
    audit_sample: Vec<u8>,
    rng: ChaCha20Rng,
}

impl Scene {
    fn new(fault: Fault) -> Self {
        let schema = SchemaBuilder::new().component::<Place>().component::<Health>().build();
        let stage = Stage::connected(schema.clone());
        let mut scene = Self {
            stage,
            scratch: ViewScratch::default(),
            traffic: Traffic::new(&schema),
            view: WorldReplication::new(schema.clone(), InterestSettings::default()).new_view(0),
            world: WorldReplication::new(schema, InterestSettings::default()),
            ids: Vec::new(),
            epoch: 0,
            tick: 0,
            received: Received::default(),
            input_newest: 0,
            snapshot: Vec::new(),
            audit_sample: Vec::new(),
            rng: ChaCha20Rng::from_seed([6; 32]),
        };
        scene.enter(fault);
        scene
    }

    /// A fresh world, as after a travel; its numbers begin anew, the connection's go on.
    fn enter(&mut self, fault: Fault) {
        let schema = self.world.schema().clone();
        self.world = WorldReplication::new(schema, InterestSettings::default());
        self.world.set_fault(fault);
        self.view = self.world.new_view(self.epoch);
        self.ids.clear();
        self.tick = 100 * u32::from(self.epoch);
        self.stage.say_enter(EnterWorld { epoch: self.epoch, tick: self.tick, ..HIDEOUT });
    }

    fn travel(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
        self.enter(Fault::None);
    }

    /// One tick of 50 ms: entities move, come and go; the client says something; a share `loss` of all
    /// datagrams is lost. Returns what the client allocated.
    fn tick(&mut self, loss: f64, turnover: bool, audit_samples: bool) -> u64 {
        self.tick += 1;
        self.stage.now += Nanos::from_millis(50);
        self.move_entities(turnover);
        let allocated = self.client_acts(loss);
        self.server_sends(audit_samples);
        allocated + self.client_hears(loss)
    }

    fn move_entities(&mut self, turnover: bool) {
        let schema = self.world.schema().clone();
        let (place, health) = (schema.kind_of::<Place>().expect("a kind"), schema.kind_of::<Health>().expect("a kind"));
        self.world.begin_tick(self.tick);
        if turnover && self.tick.is_multiple_of(7) && !self.ids.is_empty() {
            let gone = self.rng.random_range(0..self.ids.len());
            self.world.despawn(self.ids.swap_remove(gone));
        }
        while self.ids.len() < ENTITIES {
            let id = self.world.spawn().expect("room");
            self.world.update(health, id, &Health { points: 100 });
            self.ids.push(id);
        }
        for (index, id) in self.ids.iter().enumerate() {
            let angle = self.tick as f32 * 0.05 + index as f32;
            let at = [angle.cos() * 20.0, angle.sin() * 20.0];
            self.world.set_place(*id, at);
            self.world.update(place, *id, &Place { at });
            if (self.tick + index as u32).is_multiple_of(40) {
                self.world.update(health, *id, &Health { points: (self.tick % 100) as u8 });
            }
        }
        self.view.look_at([0.0, 0.0]);
        self.world.settle();
        self.world.refresh(&mut self.view, &mut self.scratch);
    }

    fn client_acts(&mut self, loss: f64) -> u64 {
        let Stage { client, now, up, server, .. } = &mut self.stage;
        // Into a buffer of its own, so that only the client's allocations are counted.
        let mut packets = Packets { buffer: [0; 1400], lengths: [0; 8], count: 0, kept: [[0; 1400]; 8] };
        let before = thread_counts();
        let _ = client.send_raw_input(*now, &[1, 2, 3, 4]);
        client.poll(*now, UNIX_S, &mut packets);
        let allocated = (thread_counts() - before).allocations;
        for (packet, len) in packets.kept.iter().zip(packets.lengths).take(packets.count) {
            up.datagrams.push_back(packet[..len].to_vec());
        }
        let server = server.as_mut().expect("connected");
        self.received.clear();
        server.update(*now, &mut self.received);
        while let Some(mut datagram) = up.datagrams.pop_front() {
            if !self.rng.random_bool(loss) {
                server.receive(*now, &mut datagram, &mut self.received).expect("an honest client");
            }
        }
        for packet in &self.received.acked {
            self.view.acked(packet.0);
        }
        for packet in &self.received.lost {
            self.world.lost(&mut self.view, packet.0);
        }
        for (_, message) in self.received.messages() {
            let [control::INPUT, epoch, low, high, ..] = message else { panic!("only inputs are sent") };
            if *epoch == self.epoch {
                self.input_newest = u16::from_le_bytes([*low, *high]);
            }
        }
        allocated
    }

    fn server_sends(&mut self, audit_samples: bool) {
        let Stage { now, down, server, .. } = &mut self.stage;
        let server = server.as_mut().expect("connected");
        self.audit_sample.clear();
        if audit_samples && self.world.write_audit_sample(&mut self.view, &mut self.traffic, &mut self.audit_sample) {
            server.send_unreliable(&self.audit_sample).expect("an audit sample fits");
        }
        self.world.settle();
        loop {
            self.snapshot.resize(server.room(*now), 0);
            let len =
                self.world.write_snapshot(&mut self.view, &mut self.traffic, self.input_newest, &mut self.snapshot);
            if len == 0 && !server.wants_packet(*now) {
                break;
            }
            let packet = server.send_packet(*now, &self.snapshot[..len], down);
            if len > 0 {
                self.world.sent(&mut self.view, packet.0);
            }
        }
    }

    fn client_hears(&mut self, loss: f64) -> u64 {
        let Stage { client, now, down, .. } = &mut self.stage;
        let mut allocated = 0;
        while let Some(mut datagram) = down.datagrams.pop_front() {
            if self.rng.random_bool(loss) {
                continue;
            }
            let before = thread_counts();
            client.receive(*now, &mut datagram);
            while client.next_input_to_update().is_some() {}
            allocated += (thread_counts() - before).allocations;
        }
        allocated
    }

    /// Copies that differ from the world, or are missing, or should be gone.
    fn wrong_copies(&self) -> usize {
        let replicas = self.stage.client.replicas();
        let angle = |index: usize| self.tick as f32 * 0.05 + index as f32;
        let right = self.ids.iter().enumerate().filter(|(index, id)| {
            let at = [angle(*index).cos() * 20.0, angle(*index).sin() * 20.0];
            replicas.get::<Place>(**id).is_some_and(|copy| copy.agrees_with(&Place { at }))
        });
        let missing_or_wrong = self.ids.len() - right.count();
        missing_or_wrong + replicas.ids().filter(|id| !self.ids.contains(id)).count()
    }
}

/// Up to eight packets, without a heap.
struct Packets {
    buffer: [u8; 1400],
    lengths: [usize; 8],
    count: usize,
    kept: [[u8; 1400]; 8],
}

impl PacketSink for Packets {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(&mut self, _to: SocketAddr, len: usize) {
        self.kept[self.count] = self.buffer;
        self.lengths[self.count] = len;
        self.count += 1;
    }
}

#[test]
fn copies_come_right_over_a_line_that_loses_a_fifth() {
    let mut scene = Scene::new(Fault::None);
    for _ in 0..1_200 {
        scene.tick(0.2, true, true);
    }
    for _ in 0..60 {
        scene.tick(0.0, false, true);
    }
    let stats = scene.stage.client.stats();
    assert_eq!(scene.wrong_copies(), 0);
    assert_eq!((stats.state_errors, stats.protocol_errors), (0, 0), "{:?}", scene.stage.client.next_state_error());
    assert!(stats.state_checks > 500 && stats.entity_updates > 20_000, "{stats:?}");
}

/// Negative control: what the checks are for.
#[test]
fn a_broken_encoder_does_not_go_unseen() {
    for fault in [Fault::CorruptEncoding, Fault::SkipUpdates, Fault::LoseDespawns] {
        let mut scene = Scene::new(fault);
        for _ in 0..600 {
            scene.tick(0.05, true, true);
        }
        let stats = scene.stage.client.stats();
        assert!(stats.state_errors > 0, "{fault:?}: {stats:?}");
        assert!(scene.stage.client.next_state_error().is_some());
    }
}

#[test]
fn travelling_leaves_nothing_of_the_old_world_behind() {
    let mut scene = Scene::new(Fault::None);
    for _ in 0..30 {
        for _ in 0..40 {
            scene.tick(0.2, true, true);
        }
        scene.travel();
    }
    for _ in 0..60 {
        scene.tick(0.0, false, true);
    }
    let stats = scene.stage.client.stats();
    assert_eq!(scene.wrong_copies(), 0);
    assert_eq!((stats.state_errors, stats.protocol_errors), (0, 0), "{:?}", scene.stage.client.next_state_error());
    assert_eq!(scene.stage.client.world().map(|world| world.epoch), Some(30));
}

/// Promise: a client that has seen its world allocates nothing while things move.
#[test]
fn a_steady_client_does_not_allocate() {
    let mut scene = Scene::new(Fault::None);
    let at_first: u64 = (0..200).map(|_| scene.tick(0.0, false, false)).sum();
    assert!(at_first > 0, "the allocator is counted");
    let allocated: u64 = (0..500).map(|_| scene.tick(0.0, false, false)).sum();
    assert_eq!(allocated, 0);
    assert_eq!(scene.wrong_copies(), 0);
}
