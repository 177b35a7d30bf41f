//! Network: the clients, and packets and acknowledgements on their way, lost, doubled and late.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    replicas::store::Replicas,
    source::fault::Fault,
    testing::{TestWorld, ViewId, schema},
    wire::ids::NetId,
};

use super::{
    ModelTest, Terms,
    oracle::{may_see, told_by},
    script::Original,
};

pub struct Datagram {
    arrives: u32,
    packet: u16,
    sample: Vec<u8>,
    snapshot: Vec<u8>,
}

pub struct Client {
    pub view: ViewId,
    pub centre: [f32; 2],
    pub own: Option<NetId>,
    pub team: Option<u16>,
    pub epoch: u8,
    /// Slots that it has been told of in this epoch.
    pub told: BTreeSet<u32>,
    /// Visibility-filtered entities that it may see in this tick.
    pub allowed: BTreeSet<NetId>,
    pub replicas: Replicas,
    pub next_packet: u16,
    pub on_the_way: Vec<Datagram>,
    pub acks_on_the_way: Vec<(u32, u16)>,
    /// Packets that are neither acknowledged nor given up, with the tick they were sent in.
    pub unanswered: BTreeMap<u16, u32>,
}

impl ModelTest {
    pub(super) fn exchange(&mut self) {
        let Self { terms, rng, world, clients, tick, wild_ticks, originals, .. } = self;
        let tick = *tick;
        clients.iter_mut().for_each(|client| client.allowed.clear());
        if terms.secretive {
            world.filter_visibility(&mut |view, id| {
                let client = clients.iter_mut().find(|client| client.view == view).expect("a client that is here");
                assert!(originals[&id].filtered && client.own != Some(id), "asked about what is not filtered");
                let may_see = may_see(view, id, *wild_ticks);
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
    /// A client that has just come into the world.
    pub fn new(view: ViewId) -> Self {
        let mut replicas = Replicas::new(schema());
        // Long enough for an encoded value to be lost many times over: 0.2 per try, a try every 10 to 20 ticks.
        replicas.set_grace_ticks(300);
        Self {
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
        }
    }

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
