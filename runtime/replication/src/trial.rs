//! Trial: a world, its clients and a bad network in one process, driven by a seed. For tests only.
//!
//! Entities come and go, move, gain and lose components; clients move, travel and are not written every tick;
//! packets are lost, doubled and late, and so are their acknowledgements. After every tick the views'
//! invariants are checked, and that no spawn goes to a client to which the entity is not relevant.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    Fault, InterestSettings, NetId, Replicas, ViewId, WorldReplication,
    bytes::{Reader, Writer},
    replicate::Replicate,
    schema::KindId,
    testing::{Flag, Health, Mood, Pose, schema},
};

/// How bad the network is, and how rich the world.
#[derive(Clone, Debug)]
pub struct Terms {
    pub seed: u64,
    pub clients: usize,
    pub entities_max: usize,
    pub loss: f64,
    pub doubling: f64,
    /// Longest way of a packet, or of an acknowledgement. (ticks)
    pub delay_max: u32,
    pub packet_bytes_max: usize,
    pub budget_bytes_per_tick: u32,
    pub fault: Fault,
}

impl Terms {
    /// Terms that differ a lot from seed to seed.
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            seed,
            clients: rng.random_range(1..4),
            entities_max: [5, 25, 150][rng.random_range(0..3)],
            loss: [0.0, 0.05, 0.2][rng.random_range(0..3)],
            doubling: [0.0, 0.05][rng.random_range(0..2)],
            delay_max: rng.random_range(0..6),
            packet_bytes_max: [60, 200, 1200][rng.random_range(0..3)],
            budget_bytes_per_tick: [200, 2400, 65_536][rng.random_range(0..3)],
            fault: Fault::None,
        }
    }
}

#[derive(Copy, Clone, Debug, Default)]
enum Stands {
    #[default]
    Everywhere,
    Hidden,
    At([f32; 2]),
}

/// What the server knows of an entity.
#[derive(Clone, Debug, Default)]
struct Original {
    standing: Stands,
    pose: Option<Pose>,
    health: Option<Health>,
    flag: Option<Flag>,
}

struct Datagram {
    arrives: u32,
    packet: u16,
    truth: Vec<u8>,
    snapshot: Vec<u8>,
}

struct Client {
    view: ViewId,
    centre: [f32; 2],
    own: Option<NetId>,
    epoch: u8,
    replicas: Replicas,
    next_packet: u16,
    on_the_way: Vec<Datagram>,
    acks_on_the_way: Vec<(u32, u16)>,
    /// Packets that are neither acknowledged nor given up, with the tick they were sent in.
    unanswered: BTreeMap<u16, u32>,
}

pub struct Trial {
    terms: Terms,
    rng: Xoshiro256PlusPlus,
    pub world: WorldReplication,
    originals: BTreeMap<NetId, Original>,
    clients: Vec<Client>,
    tick: u32,
}

const POSE: KindId = KindId(0);
const HEALTH: KindId = KindId(1);
const FLAG: KindId = KindId(2);

impl Trial {
    pub fn new(terms: Terms) -> Self {
        let settings = InterestSettings {
            enter_radius_m: 40.0,
            leave_radius_m: 50.0,
            budget_bytes_per_tick: terms.budget_bytes_per_tick,
            entities_max: terms.entities_max as u32,
            ..InterestSettings::default()
        };
        let mut world = WorldReplication::new(schema(), settings);
        world.set_fault(terms.fault);
        let rng = Xoshiro256PlusPlus::seed_from_u64(terms.seed);
        let mut trial = Self { rng, world, originals: BTreeMap::new(), clients: Vec::new(), tick: 0, terms };
        for _ in 0..trial.terms.clients {
            let view = trial.world.add_client(0);
            trial.world.set_view(view, [0.0; 2]);
            let mut replicas = Replicas::new(schema());
            // Long enough for a piece to be lost many times over: 0.2 per try, a try every 10 to 20 ticks.
            replicas.set_grace_ticks(300);
            trial.clients.push(Client {
                view,
                centre: [0.0; 2],
                own: None,
                epoch: 0,
                replicas,
                next_packet: 65_500,
                on_the_way: Vec::new(),
                acks_on_the_way: Vec::new(),
                unanswered: BTreeMap::new(),
            });
        }
        trial
    }

    /// Ticks in which the game does what it likes.
    pub fn run_wild(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.begin_tick();
            self.play();
            self.move_clients();
            self.exchange();
        }
    }

    /// Ticks in which nothing happens and nothing is lost.
    pub fn run_calm(&mut self, ticks: u32) {
        (self.terms.loss, self.terms.doubling) = (0.0, 0.0);
        for _ in 0..ticks {
            self.begin_tick();
            self.exchange();
        }
    }

    /// Ticks in which the network is as bad as it is, and the entities that are there move now and then.
    pub fn run_moving(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.begin_tick();
            self.move_some();
            self.exchange();
        }
    }

    /// What is near is relevant, what is far is not; in between it depends on where it came from.
    pub fn check_interest(&self) {
        for (client, centre, own) in self.clients.iter().map(|client| (client, client.centre, client.own)) {
            let relevant: BTreeSet<NetId> = self.world.relevant(client.view).collect();
            let own = own.filter(|own| self.world.contains(*own));
            let centre = own.and_then(|own| self.place_of(own)).unwrap_or(centre);
            for (id, original) in &self.originals {
                let distance = match original.standing {
                    _ if own == Some(*id) => 0.0,
                    Stands::Everywhere => 0.0,
                    Stands::Hidden => f32::MAX,
                    Stands::At(place) => (place[0] - centre[0]).hypot(place[1] - centre[1]),
                };
                assert!(distance > 39.99 || relevant.contains(id), "{id:?} is near, {:?}", self.terms);
                assert!(distance < 50.01 || !relevant.contains(id), "{id:?} is far, {:?}", self.terms);
            }
        }
    }

    fn place_of(&self, id: NetId) -> Option<[f32; 2]> {
        match self.originals.get(&id)?.standing {
            Stands::At(place) => Some(place),
            _ => None,
        }
    }

    /// Every client holds what is relevant to it and nothing else, as the server's values are rounded.
    pub fn check_clients(&self) {
        for client in &self.clients {
            let wanted: BTreeSet<NetId> = self.world.relevant(client.view).collect();
            let held: BTreeSet<NetId> = client.replicas.ids().collect();
            assert_eq!(held, wanted, "{:?}", self.terms);
            for id in wanted {
                let original = &self.originals[&id];
                assert_eq!(client.replicas.get::<Pose>(id), rounded(&original.pose).as_ref(), "{:?}", self.terms);
                assert_eq!(client.replicas.get::<Health>(id), rounded(&original.health).as_ref(), "{:?}", self.terms);
                assert_eq!(client.replicas.get::<Flag>(id), rounded(&original.flag).as_ref(), "{:?}", self.terms);
            }
        }
    }

    pub fn state_errors(&mut self) -> u64 {
        self.clients.iter_mut().map(|client| client.replicas.counts().state_errors).sum()
    }

    pub fn state_checks(&self) -> u64 {
        self.clients.iter().map(|client| client.replicas.counts().state_checks).sum()
    }

    pub fn check_no_state_errors(&mut self) {
        for client in &mut self.clients {
            if let Some(error) = client.replicas.take_state_error() {
                panic!("tick {}: {error:?} with {:?}", self.tick, self.terms);
            }
        }
    }

    fn begin_tick(&mut self) {
        self.tick += 1;
        self.world.begin_tick(self.tick);
    }

    fn play(&mut self) {
        let busy = self.rng.random_range(0..4);
        for _ in 0..busy {
            match self.rng.random_range(0..12) {
                0..=2 => self.spawn(),
                3 => {
                    if let Some(id) = self.anyone() {
                        self.originals.remove(&id);
                        assert!(self.world.despawn(id));
                    }
                }
                4 => {
                    if let Some(id) = self.anyone() {
                        self.world.remove(FLAG, id);
                        self.originals.get_mut(&id).unwrap().flag = None;
                    }
                }
                5 | 6 => {
                    let flag = self.any_flag();
                    if let Some(id) = self.anyone() {
                        self.world.update(FLAG, id, &flag);
                        self.originals.get_mut(&id).unwrap().flag = Some(flag);
                    }
                }
                7 | 8 => {
                    let health = Health { points: self.rng.random_range(0..1000) };
                    if let Some(id) = self.anyone() {
                        self.world.update(HEALTH, id, &health);
                        self.originals.get_mut(&id).unwrap().health = Some(health);
                    }
                }
                9 => {
                    if let Some(id) = self.anyone() {
                        self.world.hide(id);
                        self.originals.get_mut(&id).unwrap().standing = Stands::Hidden;
                    }
                }
                10 => {
                    if let Some(id) = self.anyone() {
                        self.world.clear_place(id);
                        self.originals.get_mut(&id).unwrap().standing = Stands::Everywhere;
                    }
                }
                _ => {
                    let pose = self.any_pose();
                    if let Some(id) = self.anyone() {
                        self.place(id, pose);
                    }
                }
            }
        }
        self.move_some();
    }

    fn move_some(&mut self) {
        let share = [0.0, 0.1, 1.0][self.rng.random_range(0..3)];
        let ids: Vec<NetId> = self.originals.keys().copied().collect();
        for id in ids {
            if let Some(mut pose) = self.originals[&id].pose.clone()
                && self.rng.random_bool(share)
            {
                for axis in 0..2 {
                    pose.place[axis] = (pose.place[axis] + self.rng.random_range(-2.0..2.0)).clamp(-90.0, 90.0);
                }
                self.place(id, pose);
            }
        }
    }

    fn spawn(&mut self) {
        let Ok(id) = self.world.spawn() else { return };
        self.originals.insert(id, Original::default());
        if self.rng.random_bool(0.9) {
            let pose = self.any_pose();
            self.place(id, pose);
        }
    }

    fn place(&mut self, id: NetId, pose: Pose) {
        self.world.update(POSE, id, &pose);
        self.world.set_place(id, [pose.place[0], pose.place[1]]);
        let original = self.originals.get_mut(&id).unwrap();
        original.standing = Stands::At([pose.place[0], pose.place[1]]);
        original.pose = Some(pose);
    }

    fn anyone(&mut self) -> Option<NetId> {
        let count = self.originals.len();
        let index = if count == 0 {
            return None;
        } else {
            self.rng.random_range(0..count)
        };
        self.originals.keys().nth(index).copied()
    }

    fn any_pose(&mut self) -> Pose {
        let place = [(); 3].map(|()| self.rng.random_range(-90.0..90.0));
        Pose { place, heading: self.rng.random_range(-10.0..10.0) }
    }

    fn any_flag(&mut self) -> Flag {
        let mood = [Mood::Calm, Mood::Wary, Mood::Angry][self.rng.random_range(0..3)];
        Flag { raised: self.rng.random_bool(0.5), mood }
    }

    /// Clients look around, own something else, or come back as new ones.
    fn move_clients(&mut self) {
        for index in 0..self.clients.len() {
            let view = self.clients[index].view;
            match self.rng.random_range(0..60) {
                0 => {
                    let centre = [(); 2].map(|()| self.rng.random_range(-90.0..90.0));
                    self.world.set_view(view, centre);
                    self.clients[index].centre = centre;
                }
                1 => {
                    let own = self.anyone();
                    self.world.set_own(view, own);
                    self.clients[index].own = own;
                }
                2 if self.rng.random_bool(0.1) => {
                    self.world.remove_client(view);
                    let client = &mut self.clients[index];
                    client.epoch = client.epoch.wrapping_add(1);
                    client.view = self.world.add_client(client.epoch);
                    self.world.set_view(client.view, [0.0; 2]);
                    (client.centre, client.own) = ([0.0; 2], None);
                    // The connection is the same: its answers to packets of the former view come here, too.
                }
                _ => {}
            }
        }
    }

    fn exchange(&mut self) {
        let Self { terms, rng, world, clients, tick, .. } = self;
        let tick = *tick;
        world.refresh_interest();
        world.check();
        for client in clients {
            client.answer(world, tick);
            if rng.random_bool(0.9) {
                client.send(world, terms, rng, tick);
            }
            client.receive(terms, rng, tick);
            client.replicas.check_truths();
        }
        world.check();
    }
}

impl Client {
    /// Handles acknowledgements as a connection does: three newer ones, or 30 ticks, mean lost.
    fn answer(&mut self, world: &mut WorldReplication, tick: u32) {
        let mut newest = None;
        self.acks_on_the_way.retain(|(arrives, packet)| {
            let here = *arrives <= tick;
            if here && let Some(sent_at) = self.unanswered.remove(packet) {
                newest = newest.max(Some(sent_at));
                world.acked(self.view, *packet);
            }
            !here
        });
        self.unanswered.retain(|packet, sent_at| {
            let lost = newest.is_some_and(|newest| newest >= *sent_at + 3) || *sent_at + 30 < tick;
            if lost {
                world.lost(self.view, *packet);
            }
            !lost
        });
    }

    fn send(&mut self, world: &mut WorldReplication, terms: &Terms, rng: &mut Xoshiro256PlusPlus, tick: u32) {
        let mut truth = Vec::new();
        if rng.random_bool(0.3) {
            world.write_truth(self.view, &mut truth);
        }
        let relevant: BTreeSet<NetId> = world.relevant(self.view).collect();
        // Now and then the connection lets out less than there is.
        let packets_max = if rng.random_bool(0.1) { 1 } else { 100 };
        for _ in 0..packets_max {
            let mut snapshot = vec![0xEE; terms.packet_bytes_max];
            let len = world.write_snapshot(self.view, tick as u16 / 8, &mut snapshot);
            if len == 0 && truth.is_empty() {
                break;
            }
            snapshot.truncate(len);
            if len > 0 {
                let mut eavesdropper = Replicas::new(schema());
                if terms.fault == Fault::None {
                    eavesdropper.apply(&snapshot).unwrap();
                }
                assert!(eavesdropper.ids().all(|id| relevant.contains(&id)), "a spawn of what is not relevant");
                if rng.random_bool(0.02) {
                    continue;
                }
                world.sent(self.view, self.next_packet);
            }
            self.unanswered.insert(self.next_packet, tick);
            let copies = if rng.random_bool(terms.loss) { 0 } else { 1 + usize::from(rng.random_bool(terms.doubling)) };
            for _ in 0..copies {
                let arrives = tick + rng.random_range(0..=terms.delay_max);
                let (truth, snapshot) = (truth.clone(), snapshot.clone());
                self.on_the_way.push(Datagram { arrives, packet: self.next_packet, truth, snapshot });
            }
            truth.clear();
            self.next_packet = self.next_packet.wrapping_add(1);
            if len == 0 {
                break;
            }
        }
    }

    fn receive(&mut self, terms: &Terms, rng: &mut Xoshiro256PlusPlus, tick: u32) {
        let mut index = 0;
        while index < self.on_the_way.len() {
            if self.on_the_way[index].arrives > tick {
                index += 1;
                continue;
            }
            let datagram = self.on_the_way.swap_remove(index);
            let mut apply = || {
                if !datagram.truth.is_empty() {
                    self.replicas.hold_truth(&datagram.truth, tick)?;
                }
                if !datagram.snapshot.is_empty() {
                    self.replicas.apply(&datagram.snapshot)?;
                }
                Ok::<_, crate::DecodeError>(())
            };
            let result = apply();
            if terms.fault == Fault::None {
                result.unwrap();
            }
            if !rng.random_bool(terms.loss) {
                let arrives = tick + rng.random_range(0..=terms.delay_max);
                self.acks_on_the_way.push((arrives, datagram.packet));
            }
        }
    }
}

/// A value as a client should hold it.
fn rounded<T: Replicate>(value: &Option<T>) -> Option<T> {
    let mut bytes = [0; 64];
    let mut out = Writer::new(&mut bytes);
    value.as_ref()?.encode(&mut out);
    Some(T::decode(&mut Reader::new(&bytes)).unwrap())
}

/// Seeds to try: so many, or as many as `THRONG_SEEDS` says for a longer search.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..std::env::var("THRONG_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// Whatever happened before, once packets get through a client holds exactly what it should.
#[test]
fn clients_come_to_hold_exactly_what_is_relevant() {
    for seed in seeds(200) {
        let mut trial = Trial::new(Terms::from_seed(seed));
        for _ in 0..3 {
            trial.run_wild(60);
            trial.run_calm(60 + 400 * u32::from(trial.terms.budget_bytes_per_tick < 1000));
            trial.check_clients();
            trial.check_interest();
            trial.terms.loss = Terms::from_seed(seed).loss;
        }
    }
}

/// Truths never blame a copy that is right.
#[test]
fn no_state_error_without_a_fault() {
    for seed in seeds(6) {
        let loss = [0.0, 0.05, 0.2][seed as usize % 3];
        let mut trial = Trial::new(Terms {
            loss,
            doubling: 0.05,
            budget_bytes_per_tick: 65_536,
            entities_max: [20, 100][seed as usize % 2],
            ..Terms::from_seed(seed)
        });
        for _ in 0..100 {
            trial.run_wild(100);
            trial.check_no_state_errors();
        }
        assert!(trial.state_checks() > 1000);
    }
}

/// A broken encoder does not go unseen, and the same run without the fault has nothing to complain about.
#[test]
fn every_fault_makes_state_errors() {
    for seed in seeds(10) {
        let errors = |fault: Fault| {
            let terms = Terms::from_seed(seed);
            let budget_bytes_per_tick = 65_536;
            let terms = Terms { fault, clients: 2, entities_max: 25, loss: 0.0, budget_bytes_per_tick, ..terms };
            let mut trial = Trial::new(terms);
            for client in &mut trial.clients {
                client.replicas.set_grace_ticks(40);
            }
            for _ in 0..5 {
                trial.run_wild(60);
                trial.run_moving(200);
            }
            trial.run_calm(60);
            trial.state_errors()
        };
        assert_eq!(errors(Fault::None), 0, "seed {seed}");
        for fault in [Fault::CorruptEncoding, Fault::LoseDespawns, Fault::SkipUpdates] {
            assert!(errors(fault) > 0, "{fault:?} goes unseen with seed {seed}");
        }
    }
}
