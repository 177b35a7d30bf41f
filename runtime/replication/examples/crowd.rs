//! Crowd: what a tick of replication costs in one large world, without network or encryption.
//!
//! `cargo run --release -p throng-replication --example crowd [ticks]` prints, for each scene, microseconds of CPU per
//! tick for taking in changes, for interest and for writing (best of five runs), bytes, and a hash of all that was
//! written.
//!
//! - W1: every client has an entity, all move, each hears about 50.
//! - W2: the same, and everybody hears everybody.
//! - W3: 200 clients, 2,000 entities of which 1 % change, everybody hears everything.

use throng_platform::process::thread_cpu_time;
use throng_replication::{
    ComponentIndex, InterestSettings, NetId, Replicate, ReplicationRules, SchemaBuilder, Traffic, View, ViewScratch,
    WorldReplication,
};

#[derive(Clone, Replicate)]
struct Pose {
    #[replicate(min = -1024.0, max = 1024.0, step = 0.02)]
    place: [f32; 3],
    #[replicate(angle, bits = 8)]
    yaw: f32,
}

#[derive(Clone, Replicate)]
struct Health {
    points: u16,
}

struct Scene {
    name: &'static str,
    clients: usize,
    entities: usize,
    /// Share of the entities that move in a tick.
    moving: f32,
    radius_m: f32,
    tiers: bool,
}

struct Crowd {
    world: WorldReplication,
    /// Kinds of poses and healths.
    kinds: [ComponentIndex; 2],
    ids: Vec<NetId>,
    views: Vec<View>,
    scratch: ViewScratch,
    traffic: Traffic,
    places: Vec<[f32; 2]>,
    tick: u32,
    random: u64,
    /// Per view, the packets of the last tick.
    unanswered: Vec<u16>,
}

#[derive(Default)]
struct Times {
    changes_us: f64,
    interest_us: f64,
    write_us: f64,
    bytes: u64,
    updates: u64,
    hash: u64,
    heap_bytes: usize,
}

impl Crowd {
    fn new(scene: &Scene) -> Self {
        let schema = SchemaBuilder::new().component::<Pose>().component::<Health>().build();
        // 50 entities in a circle of the radius.
        let area_m2 = scene.entities as f32 / 50.0 * std::f32::consts::PI * scene.radius_m.powi(2);
        let side_m = if scene.radius_m > 1000.0 { 500.0 } else { area_m2.sqrt() };
        let settings = InterestSettings {
            enter_radius_m: scene.radius_m,
            leave_radius_m: scene.radius_m * 1.1,
            budget_bytes_per_tick: 65_536,
            ..InterestSettings::default()
        };
        let mut world = WorldReplication::new(schema.clone(), settings);
        if scene.tiers {
            world.set_rules(&ReplicationRules::for_schema(&schema).resolved(20.0), 20.0, []);
        }
        let mut crowd = Self {
            ids: (0..scene.entities).map(|_| world.spawn().unwrap()).collect(),
            views: (0..scene.clients).map(|_| world.new_view(0)).collect(),
            scratch: ViewScratch::default(),
            traffic: Traffic::new(&schema),
            places: Vec::new(),
            kinds: [schema.kind_of::<Pose>().unwrap(), schema.kind_of::<Health>().unwrap()],
            world,
            tick: 0,
            random: 88_172_645_463_325_252,
            unanswered: Vec::new(),
        };
        for (view, id) in crowd.views.iter_mut().zip(&crowd.ids) {
            view.set_own(Some(*id));
        }
        crowd.places = (0..scene.entities).map(|_| [(); 2].map(|()| (crowd.random() - 0.5) * side_m)).collect();
        crowd
    }

    fn random(&mut self) -> f32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 40) as f32 / (1_u64 << 24) as f32
    }

    fn tick(&mut self, moving: f32, times: &mut Times) {
        self.tick += 1;
        let first = self.tick == 1;
        for index in 0..self.places.len() {
            if first || self.random() < moving {
                for axis in 0..2 {
                    self.places[index][axis] += (self.random() - 0.5) * 0.5;
                }
            }
        }
        let begin = thread_cpu_time();
        self.world.begin_tick(self.tick);
        for (index, id) in self.ids.iter().enumerate() {
            let [x, z] = self.places[index];
            self.world.set_place(*id, [x, z]);
            self.world.update(self.kinds[0], *id, &Pose { place: [x, 0.0, z], yaw: x });
            if first || (index as u32 + self.tick).is_multiple_of(100) {
                self.world.update(self.kinds[1], *id, &Health { points: self.tick as u16 });
            }
        }
        let changed = thread_cpu_time();
        self.world.settle();
        for view in &mut self.views {
            self.world.refresh(view, &mut self.scratch);
        }
        let refreshed = thread_cpu_time();
        let mut out = [0; 1200];
        let before = std::mem::take(&mut self.unanswered);
        let mut before = before.into_iter();
        for view in &mut self.views {
            let packets = before.next().unwrap_or(0);
            (0..packets).for_each(|packet| view.acked((self.tick as u16 - 1) * 64 + packet));
            let mut packets = 0;
            loop {
                let len = self.world.write_snapshot(view, &mut self.traffic, 0, &mut out);
                if len == 0 {
                    break;
                }
                self.world.sent(view, self.tick as u16 * 64 + packets);
                packets += 1;
                times.bytes += len as u64;
                for chunk in out[..len].chunks(512) {
                    let word =
                        u64::from_le_bytes(chunk[chunk.len() - 8.min(chunk.len())..].try_into().unwrap_or([0; 8]));
                    times.hash = (times.hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                }
            }
            self.unanswered.push(packets);
        }
        let written = thread_cpu_time();
        times.changes_us += changed.saturating_sub(begin).as_secs_f64() * 1e6;
        times.interest_us += refreshed.saturating_sub(changed).as_secs_f64() * 1e6;
        times.write_us += written.saturating_sub(refreshed).as_secs_f64() * 1e6;
        times.updates += self.views.iter_mut().map(|view| view.take_counts().entity_updates).sum::<u64>();
    }
}

fn main() {
    let ticks: u32 = std::env::args().nth(1).and_then(|ticks| ticks.parse().ok()).unwrap_or(40);
    let scene =
        |name, clients, entities, moving, radius_m, tiers| Scene { name, clients, entities, moving, radius_m, tiers };
    println!(
        "{:24} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}  hash",
        "scene", "changes", "interest", "write", "updates", "ns each", "bytes", "MB"
    );
    for scene in [
        scene("W1 C=500", 500, 500, 1.0, 60.0, false),
        scene("W1 C=1000", 1000, 1000, 1.0, 60.0, false),
        scene("W1 C=1000, tiers", 1000, 1000, 1.0, 60.0, true),
        scene("W1 C=2000", 2000, 2000, 1.0, 60.0, false),
        scene("W2 C=400", 400, 400, 1.0, 5000.0, false),
        scene("W3 C=200", 200, 2000, 0.01, 5000.0, false),
        scene("2000 and 10000", 2000, 12000, 0.3, 60.0, false),
        scene("2000 and 10000, tiers", 2000, 12000, 0.3, 60.0, true),
        scene("quiet 2000 and 10000", 2000, 12000, 0.0, 60.0, false),
    ] {
        let mut best: Option<Times> = None;
        for _ in 0..5 {
            let mut crowd = Crowd::new(&scene);
            for _ in 0..8 {
                crowd.tick(scene.moving, &mut Times::default());
            }
            let mut times = Times::default();
            (0..ticks).for_each(|_| crowd.tick(scene.moving, &mut times));
            let total = |times: &Times| times.changes_us + times.interest_us + times.write_us;
            let views = crowd.views.iter().map(|view| size_of::<View>() + view.heap_bytes()).sum::<usize>();
            let around = crowd.scratch.heap_bytes() + crowd.traffic.heap_bytes();
            times.heap_bytes = crowd.world.heap_bytes() + views + around;
            if best.as_ref().is_none_or(|best| total(&times) < total(best)) {
                best = Some(times);
            }
        }
        let Some(best) = best else { continue };
        let per_tick = f64::from(ticks);
        println!(
            "{:24} {:9.1} {:9.1} {:9.1} {:9.0} {:9.2} {:9.0} {:6.1}  {:016x}",
            scene.name,
            best.changes_us / per_tick,
            best.interest_us / per_tick,
            best.write_us / per_tick,
            best.updates as f64 / per_tick,
            best.write_us * 1e3 / best.updates.max(1) as f64,
            best.bytes as f64 / per_tick,
            best.heap_bytes as f64 / 1e6,
            best.hash
        );
    }
}
