//! Oracle: what each client should hold, and of what it may be told. Reads messages as the document says, not as
//! `Replicas` does.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    testing::{Flag, Health, Pose, TestWorld, ViewId},
    wire::{
        bytes::{Reader, Writer},
        ids::NetId,
        replicate::Replicate,
    },
};

use super::{
    ModelTest,
    network::Client,
    script::{Original, Relevance},
};

impl ModelTest {
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
}

impl Client {
    /// Whether this client may know of an entity, wherever it is.
    pub(super) fn may_know(&self, id: NetId, original: &Original) -> bool {
        let is_owner_only = matches!(original.relevance, Relevance::OwnerOnly);
        self.own == Some(id) || (!is_owner_only && (!original.filtered || self.allowed.contains(&id)))
    }

    /// Holds one record that goes out against who may know what.
    pub(super) fn look_for_leaks(
        &mut self,
        told: Told,
        relevant: &BTreeSet<NetId>,
        originals: &BTreeMap<NetId, Original>,
    ) {
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

    pub(super) fn look_for_leaks_in_sample(
        &mut self,
        sample: &[u8],
        originals: &BTreeMap<NetId, Original>,
        world: &TestWorld,
    ) {
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
}

/// What a record says, apart from values.
#[derive(Copy, Clone, Debug)]
pub enum Told {
    Update(u32),
    Spawn(NetId),
    Despawn(u32),
}

/// The records of a snapshot, read as the document says and not as `Replicas` does.
pub fn told_by(snapshot: &[u8]) -> Vec<Told> {
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

/// What the game's visibility filter answers: mostly yes, and another answer now and then while things happen.
pub fn may_see(view: ViewId, id: NetId, wild_ticks: u32) -> bool {
    let number = id.slot + 31 * u32::from(id.generation) + 7 * view.0 + wild_ticks / 16;
    number.wrapping_mul(0x9E37_79B9) >> 30 != 0
}

/// A value as a client should hold it.
fn rounded<T: Replicate>(value: &Option<T>) -> Option<T> {
    let mut bytes = [0; 64];
    let mut out = Writer::new(&mut bytes);
    value.as_ref()?.encode(&mut out);
    Some(T::decode(&mut Reader::new(&bytes)).unwrap())
}
