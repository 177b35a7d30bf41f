//! Model test: a world, its clients and a bad network in one process, driven by a seed. For tests only.
//!
//! Entities come and go, move, gain and lose components, become owner-only or visibility-filtered, and change teams;
//! clients move, travel, change teams and are not written every tick; rules are replaced; packets are lost, doubled and
//! late, and so are their acknowledgements. After every tick the views' invariants are checked, and every byte that
//! goes out is decoded and held against who may know what.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    replicas::store::Replicas,
    source::{
        fault::Fault,
        rules::{KindRule, ReplicationRules, ResolvedRules, Tier},
    },
    testing::{Flag, Health, Mood, Pose, TestWorld, ViewId, schema},
    view::interest::InterestSettings,
    wire::{
        bytes::{Reader, Writer},
        ids::NetId,
        replicate::Replicate,
        schema::ComponentIndex,
    },
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
    pub packets_in_flight_max: u8,
    pub fault: Fault,
    /// Tiers, ranges and throttles, which change now and then.
    pub ruled: bool,
    /// Entities are visibility-filtered, and clients see them at times.
    pub secretive: bool,
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
            packets_in_flight_max: [64, 6][rng.random_range(0..2)],
            fault: Fault::None,
            ruled: rng.random_bool(0.5),
            secretive: rng.random_bool(0.5),
        }
    }
}

/// Rules of a small world, with waits of up to 40 ticks.
fn some_rules(rng: &mut Xoshiro256PlusPlus) -> ResolvedRules {
    let rate = |rng: &mut Xoshiro256PlusPlus| [20.0, 10.0, 7.0, 4.0][rng.random_range(0..4)];
    let tier = |rng: &mut Xoshiro256PlusPlus, to_m| Tier { to_m, updates_per_s: rate(rng) };
    let tiers = [8.0, 20.0, 45.0].map(|to_m| tier(rng, to_m));
    let ranged = |rng: &mut Xoshiro256PlusPlus| KindRule {
        range_m: [None, Some(15.0), Some(30.0)][rng.random_range(0..3)],
        updates_per_s_max: [None, Some(4.0)][rng.random_range(0..2)],
    };
    let rules = ReplicationRules {
        tiers: tiers[..rng.random_range(0..=3)].to_vec(),
        catch_up_m: 30.0,
        keepalive_s: 2.0,
        components: (0..3).map(|_| ranged(rng)).collect(),
        ..ReplicationRules::default()
    };
    rules.resolved(20.0)
}

#[derive(Copy, Clone, Debug, Default)]
enum Relevance {
    #[default]
    Everywhere,
    OwnerOnly,
    At([f32; 2]),
}

/// What the server knows of an entity.
#[derive(Clone, Debug, Default)]
struct Original {
    relevance: Relevance,
    pose: Option<Pose>,
    health: Option<Health>,
    flag: Option<Flag>,
    team: Option<u16>,
    filtered: bool,
}

struct Datagram {
    arrives: u32,
    packet: u16,
    sample: Vec<u8>,
    snapshot: Vec<u8>,
}

struct Client {
    view: ViewId,
    centre: [f32; 2],
    own: Option<NetId>,
    team: Option<u16>,
    epoch: u8,
    /// Slots that it has been told of in this epoch.
    told: BTreeSet<u32>,
    /// Visibility-filtered entities that it may see in this tick.
    allowed: BTreeSet<NetId>,
    replicas: Replicas,
    next_packet: u16,
    on_the_way: Vec<Datagram>,
    acks_on_the_way: Vec<(u32, u16)>,
    /// Packets that are neither acknowledged nor given up, with the tick they were sent in.
    unanswered: BTreeMap<u16, u32>,
}

pub struct ModelTest {
    terms: Terms,
    rng: Xoshiro256PlusPlus,
    pub world: TestWorld,
    originals: BTreeMap<NetId, Original>,
    clients: Vec<Client>,
    tick: u32,
    /// Stands still while nothing happens, and with it who may see whom.
    wild_ticks: u32,
    pub leaks_looked_for: u64,
}

const POSE: ComponentIndex = ComponentIndex(0);
const HEALTH: ComponentIndex = ComponentIndex(1);
const FLAG: ComponentIndex = ComponentIndex(2);

impl ModelTest {
    pub fn new(terms: Terms) -> Self {
        let settings = InterestSettings {
            enter_radius_m: 40.0,
            leave_radius_m: 50.0,
            budget_bytes_per_tick: terms.budget_bytes_per_tick,
            entities_max: terms.entities_max as u32,
            packets_in_flight_max: terms.packets_in_flight_max,
            ..InterestSettings::default()
        };
        let mut world = TestWorld::new(schema(), settings);
        world.set_fault(terms.fault);
        let rng = Xoshiro256PlusPlus::seed_from_u64(terms.seed);
        let mut test = Self {
            rng,
            world,
            originals: BTreeMap::new(),
            clients: Vec::new(),
            tick: 0,
            wild_ticks: 0,
            leaks_looked_for: 0,
            terms,
        };
        for _ in 0..test.terms.clients {
            let view = test.world.add_client(0);
            test.world.set_view(view, [0.0; 2]);
            let mut replicas = Replicas::new(schema());
            // Long enough for an encoded value to be lost many times over: 0.2 per try, a try every 10 to 20 ticks.
            replicas.set_grace_ticks(300);
            test.clients.push(Client {
                view,
                centre: [0.0; 2],
                own: None,
                team: None,
                epoch: 0,
                told: BTreeSet::new(),
                allowed: BTreeSet::new(),
                replicas,
                next_packet: 65_500,
                on_the_way: Vec::new(),
                acks_on_the_way: Vec::new(),
                unanswered: BTreeMap::new(),
            });
        }
        test
    }

    /// Ticks in which the game does what it likes.
    pub fn run_wild(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.begin_tick();
            self.wild_ticks += 1;
            if self.terms.ruled && self.rng.random_bool(0.02) {
                let rules = some_rules(&mut self.rng);
                self.world.set_rules(&rules, 20.0);
            }
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
                let distance = match original.relevance {
                    _ if own == Some(*id) => 0.0,
                    _ if original.filtered && !client.allowed.contains(id) => f32::MAX,
                    Relevance::Everywhere | Relevance::At(_)
                        if client.team.is_some() && original.team == client.team =>
                    {
                        0.0
                    }
                    Relevance::Everywhere => 0.0,
                    Relevance::OwnerOnly => f32::MAX,
                    Relevance::At(place) => (place[0] - centre[0]).hypot(place[1] - centre[1]),
                };
                assert!(distance > 39.99 || relevant.contains(id), "{id:?} is near, {:?}", self.terms);
                assert!(distance < 50.01 || !relevant.contains(id), "{id:?} is far, {:?}", self.terms);
            }
        }
    }

    fn place_of(&self, id: NetId) -> Option<[f32; 2]> {
        match self.originals.get(&id)?.relevance {
            Relevance::At(place) => Some(place),
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
                let terms = || format!("{id:?} of {:?}, tick {}, {:?}", client.view, self.tick, self.terms);
                assert_eq!(client.replicas.get::<Pose>(id), rounded(&original.pose).as_ref(), "{}", terms());
                assert_eq!(client.replicas.get::<Health>(id), rounded(&original.health).as_ref(), "{}", terms());
                assert_eq!(client.replicas.get::<Flag>(id), rounded(&original.flag).as_ref(), "{}", terms());
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
            match self.rng.random_range(0..15) {
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
                        self.world.set_owner_only(id);
                        self.originals.get_mut(&id).unwrap().relevance = Relevance::OwnerOnly;
                    }
                }
                10 => {
                    if let Some(id) = self.anyone() {
                        self.world.clear_place(id);
                        self.originals.get_mut(&id).unwrap().relevance = Relevance::Everywhere;
                    }
                }
                11 => {
                    let team = self.any_team();
                    if let Some(id) = self.anyone() {
                        self.world.set_team(id, team);
                        self.originals.get_mut(&id).unwrap().team = team;
                    }
                }
                12 if self.terms.secretive => {
                    if let Some(id) = self.anyone() {
                        let filtered = self.rng.random_bool(0.7);
                        self.world.set_visibility_filtered(id, filtered);
                        self.originals.get_mut(&id).unwrap().filtered = filtered;
                    }
                }
                13 => {
                    let weight = self.rng.random_range(0.05..20.0);
                    if let Some(id) = self.anyone() {
                        self.world.set_weight(id, weight);
                    }
                }
                _ => {
                    let pose = self.any_pose();
                    if let Some(id) = self.anyone() {
                        self.place(id, pose);
                        if self.rng.random_bool(0.5) {
                            self.world.set_urgent(id);
                        }
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
        original.relevance = Relevance::At([pose.place[0], pose.place[1]]);
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

    fn any_team(&mut self) -> Option<u16> {
        [None, Some(1), Some(2)][self.rng.random_range(0..3)]
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
                3 => {
                    let team = self.any_team();
                    self.world.set_view_team(view, team);
                    self.clients[index].team = team;
                }
                2 if self.rng.random_bool(0.1) => {
                    self.world.remove_client(view);
                    let client = &mut self.clients[index];
                    client.epoch = client.epoch.wrapping_add(1);
                    client.view = self.world.add_client(client.epoch);
                    self.world.set_view(client.view, [0.0; 2]);
                    (client.centre, client.own, client.team) = ([0.0; 2], None, None);
                    client.told.clear();
                    // The connection is the same: its answers to packets of the former view come here, too.
                }
                _ => {}
            }
        }
    }

    fn exchange(&mut self) {
        let Self { terms, rng, world, clients, tick, wild_ticks, originals, .. } = self;
        let tick = *tick;
        clients.iter_mut().for_each(|client| client.allowed.clear());
        if terms.secretive {
            world.filter_visibility(&mut |view, id| {
                let client = clients.iter_mut().find(|client| client.view == view).expect("a client that is here");
                assert!(originals[&id].filtered && client.own != Some(id), "asked about what is not filtered");
                let number = id.slot + 31 * u32::from(id.generation) + 7 * view_number(view) + *wild_ticks / 16;
                let may_see = number.wrapping_mul(0x9E37_79B9) >> 30 != 0;
                if may_see {
                    client.allowed.insert(id);
                }
                may_see
            });
        }
        world.refresh_interest();
        world.check();
        for client in clients {
            client.answer(world, tick);
            if rng.random_bool(0.9) {
                self.leaks_looked_for += client.send(world, terms, rng, tick, originals);
            }
            client.receive(terms, rng, tick);
            client.replicas.check_audit_samples();
        }
        world.check();
    }
}

impl Client {
    /// Handles acknowledgements as a connection does: three newer ones, or 30 ticks, mean lost.
    fn answer(&mut self, world: &mut TestWorld, tick: u32) {
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

    /// Returns how many records and audit samples were looked at.
    fn send(
        &mut self,
        world: &mut TestWorld,
        terms: &Terms,
        rng: &mut Xoshiro256PlusPlus,
        tick: u32,
        originals: &BTreeMap<NetId, Original>,
    ) -> u64 {
        let mut looked_at = 0;
        let mut sample = Vec::new();
        if rng.random_bool(0.3) {
            world.write_audit_sample(self.view, &mut sample);
        }
        let relevant: BTreeSet<NetId> = world.relevant(self.view).collect();
        if !sample.is_empty() {
            looked_at += 1;
            self.look_for_leaks_in_sample(&sample, originals, world);
        }
        // Now and then the connection lets out less than there is.
        let packets_max = if rng.random_bool(0.1) { 1 } else { 100 };
        for _ in 0..packets_max {
            let mut snapshot = vec![0xEE; terms.packet_bytes_max];
            let len = world.write_snapshot(self.view, tick as u16 / 8, &mut snapshot);
            if len == 0 && sample.is_empty() {
                break;
            }
            snapshot.truncate(len);
            if len > 0 {
                for told in told_by(&snapshot) {
                    looked_at += 1;
                    self.look_for_leaks(told, &relevant, originals);
                }
                if rng.random_bool(0.02) {
                    continue;
                }
                world.sent(self.view, self.next_packet);
            }
            self.unanswered.insert(self.next_packet, tick);
            let copies = if rng.random_bool(terms.loss) { 0 } else { 1 + usize::from(rng.random_bool(terms.doubling)) };
            for _ in 0..copies {
                let arrives = tick + rng.random_range(0..=terms.delay_max);
                let (sample, snapshot) = (sample.clone(), snapshot.clone());
                self.on_the_way.push(Datagram { arrives, packet: self.next_packet, sample, snapshot });
            }
            sample.clear();
            self.next_packet = self.next_packet.wrapping_add(1);
            if len == 0 {
                break;
            }
        }
        looked_at
    }

    /// Whether this client may know of an entity, wherever it is.
    fn may_know(&self, id: NetId, original: &Original) -> bool {
        let is_owner_only = matches!(original.relevance, Relevance::OwnerOnly);
        self.own == Some(id) || (!is_owner_only && (!original.filtered || self.allowed.contains(&id)))
    }

    /// Holds one record that goes out against who may know what.
    fn look_for_leaks(&mut self, told: Told, relevant: &BTreeSet<NetId>, originals: &BTreeMap<NetId, Original>) {
        let slot = match told {
            Told::Despawn(slot) => {
                assert!(self.told.contains(&slot), "a despawn of what it never held: {slot}");
                return;
            }
            Told::Update(slot) | Told::Spawn(NetId { slot, .. }) => slot,
        };
        let id = relevant.iter().find(|id| id.slot == slot);
        let id = *id.unwrap_or_else(|| panic!("{told:?} of what is not relevant"));
        if let Told::Spawn(spawned) = told {
            assert_eq!(spawned, id, "a spawn of a former owner");
        } else {
            assert!(self.told.contains(&slot), "an update of what it never held");
        }
        assert!(self.may_know(id, &originals[&id]), "{told:?} of what it may not know of");
        self.told.insert(slot);
    }

    fn look_for_leaks_in_sample(&mut self, sample: &[u8], originals: &BTreeMap<NetId, Original>, world: &TestWorld) {
        let mut from = Reader::new(&sample[6..]);
        let present = from.u8().unwrap() != 0;
        let id = NetId { slot: from.varint().unwrap(), generation: from.u8().unwrap() };
        if let Some(original) = originals.get(&id) {
            assert!(self.may_know(id, original), "a sample about what it may not know of: {id:?}");
        }
        if present {
            assert!(originals.contains_key(&id));
            let is_told = world.hears(self.view, id);
            let is_near = |place: [f32; 2]| (place[0] - self.centre[0]).hypot(place[1] - self.centre[1]) < 40.0;
            let is_overlooked =
                matches!(originals[&id].relevance, Relevance::At(place) if self.own.is_some() || is_near(place));
            assert!(is_told || is_overlooked, "a sample about what is not relevant: {id:?}");
            self.told.insert(id.slot);
        } else {
            assert!(self.told.contains(&id.slot), "a tombstone sample of what it never held");
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
                if !datagram.sample.is_empty() {
                    self.replicas.hold_audit_sample(&datagram.sample, tick)?;
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

/// What a record says, apart from values.
#[derive(Copy, Clone, Debug)]
enum Told {
    Update(u32),
    Spawn(NetId),
    Despawn(u32),
}

/// The records of a snapshot, read as the document says and not as `Replicas` does.
fn told_by(snapshot: &[u8]) -> Vec<Told> {
    records(snapshot).into_iter().map(|(told, _)| told).collect()
}

/// Slots and masks of a snapshot's updates and spawns; nothing of an empty message.
pub fn masks(snapshot: &[u8]) -> Vec<(u32, u8)> {
    let records = if snapshot.is_empty() { Vec::new() } else { records(snapshot) };
    let mask = |(told, mask)| match told {
        Told::Update(slot) | Told::Spawn(NetId { slot, .. }) => Some((slot, mask)),
        Told::Despawn(_) => None,
    };
    records.into_iter().filter_map(mask).collect()
}

fn records(snapshot: &[u8]) -> Vec<(Told, u8)> {
    let mut from = Reader::new(&snapshot[crate::SNAPSHOT_HEADER_BYTES..]);
    let (mut slot, mut mask_before, mut all) = (0, 1, Vec::new());
    while !from.is_at_end() {
        let head = from.varint().unwrap();
        let (delta, told, mask) = match head & 0b111 {
            0b111 => (head >> 3, Told::Despawn(slot + (head >> 3)), 0),
            0b011 => {
                let id = NetId { slot: slot + (head >> 3), generation: from.u8().unwrap() };
                (head >> 3, Told::Spawn(id), from.u8().unwrap())
            }
            _ if head & 1 == 1 => {
                mask_before = from.u8().unwrap();
                (head >> 2, Told::Update(slot + (head >> 2)), mask_before)
            }
            _ => (head >> 1, Told::Update(slot + (head >> 1)), mask_before),
        };
        slot += delta;
        all.push((told, mask));
        // Pose, health and flag, in whole bytes.
        let bytes = [7, 2, 1].iter().enumerate().map(|(kind, bytes)| (mask >> kind & 1) * bytes);
        (0..bytes.sum()).for_each(|_| _ = from.u8().unwrap());
    }
    all
}

fn view_number(view: ViewId) -> u32 {
    view.0
}

/// A value as a client should hold it.
fn rounded<T: Replicate>(value: &Option<T>) -> Option<T> {
    let mut bytes = [0; 64];
    let mut out = Writer::new(&mut bytes);
    value.as_ref()?.encode(&mut out);
    Some(T::decode(&mut Reader::new(&bytes)).unwrap())
}

/// Seeds to try: so many, or those that `THRONG_SEEDS` names: `5000` for the first 5,000, `17..18` for one of them.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let wanted = std::env::var("THRONG_SEEDS").unwrap_or_default();
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    first.parse().unwrap_or(0)..end.parse().unwrap_or(usual)
}

/// Whatever happened before, once packets get through a client holds exactly what it should; and whatever went out
/// before was for it to know.
#[test]
fn clients_come_to_hold_exactly_what_is_relevant() {
    clients_come_to_hold_what_is_relevant(seeds(200));
}

#[test]
#[ignore = "10,000 seeds: minutes"]
fn r16_clients_come_to_hold_exactly_what_is_relevant_full() {
    clients_come_to_hold_what_is_relevant(seeds(10_000));
}

fn clients_come_to_hold_what_is_relevant(seeds: std::ops::Range<u64>) {
    let (mut looked_for, tried) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let mut test = ModelTest::new(Terms::from_seed(seed));
        for _ in 0..3 {
            test.run_wild(60);
            // Two seconds for the keepalive, and then two in which the last thing lost gets through.
            test.run_calm(100 + 400 * u32::from(test.terms.budget_bytes_per_tick < 1000));
            test.check_clients();
            test.check_interest();
            test.terms.loss = Terms::from_seed(seed).loss;
        }
        looked_for += test.leaks_looked_for;
    }
    assert!(looked_for > 500 * tried, "{looked_for} records in {tried} runs");
}

/// Audit samples never blame a copy that is right.
#[test]
fn no_state_error_without_a_fault() {
    for seed in seeds(6) {
        let loss = [0.0, 0.05, 0.2][seed as usize % 3];
        let mut test = ModelTest::new(Terms {
            loss,
            doubling: 0.05,
            budget_bytes_per_tick: 65_536,
            entities_max: [20, 100][seed as usize % 2],
            ..Terms::from_seed(seed)
        });
        for _ in 0..100 {
            test.run_wild(100);
            test.check_no_state_errors();
        }
        assert!(test.state_checks() > 1000);
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
            let mut test = ModelTest::new(terms);
            for client in &mut test.clients {
                client.replicas.set_grace_ticks(40);
            }
            for _ in 0..5 {
                test.run_wild(60);
                test.run_moving(200);
            }
            test.run_calm(60);
            test.state_errors()
        };
        assert_eq!(errors(Fault::None), 0, "seed {seed}");
        for fault in [Fault::CorruptEncoding, Fault::LoseDespawns, Fault::SkipUpdates] {
            assert!(errors(fault) > 0, "{fault:?} goes unseen with seed {seed}");
        }
    }
}
