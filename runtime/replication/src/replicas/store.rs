//! Replicas: a client's copies of the entities that are relevant to it.
//!
//! Messages may be lost, doubled and late, so everything carries the tick it is true for, and older never
//! overwrites newer: each component of each entity has its own label, and each slot has the tick since which
//! it is held or empty. A slot that became empty is remembered for a while, so that a late spawn does not
//! bring back what is gone. A client believes nothing it cannot check: every read is bounded, refused
//! messages give a typed error, and memory grows only with bytes received, up to `replicas_max` slots.
//!
//! The epoch tells stays in worlds apart. A message of a newer epoch empties the copies and begins anew, since
//! it may come before the reliable message that announces the new world; one of an older epoch is ignored.
//!
//! Not for several threads at once. Cost: about 30 ns per update.

use std::sync::Arc;

use crate::{
    replicas::{
        held_samples::{HeldSamples, StateError},
        replica_column::{ReplicaColumn, ReplicaColumnOf},
    },
    wire::{
        bytes::{DecodeError, Reader},
        ids::NetId,
        message_kinds::{SLOWED_SNAPSHOT_KIND, SNAPSHOT_KIND},
        replicate::Replicate,
        schema::Schema,
        time_factor::TimeFactor,
    },
};

/// Slots that a client tracks, held or lately emptied, unless it says otherwise.
pub const REPLICAS_MAX: usize = 65_536;

/// A snapshot that is this much older than the newest is ignored, and an emptied slot is forgotten after as
/// long: nothing can come any more that would bring it back. (ticks) 51 s at 20 Hz, 8 s at 128 Hz; a server
/// gives a packet up after 64 newer ones.
const LATE_TICKS_MAX: u32 = 1024;

/// How often forgotten slots are swept out. (ticks)
const SWEEP_TICKS: u32 = 256;

/// Grace before an audit sample that cannot be checked counts as an error, until told otherwise. (ticks) 2 s at 20 Hz.
const GRACE_TICKS: u32 = 40;

/// What every snapshot begins with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    pub epoch: u8,
    pub tick: u32,
    /// Number of the client's last input that the tick took in.
    pub input: u16,
    /// How fast the world's time runs from this tick on.
    pub time_factor: TimeFactor,
}

/// Counted since the client began, across worlds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounts {
    /// Records that changed something.
    pub updates_applied: u64,
    /// Records, or messages, that were older than what is held.
    pub stale: u64,
    /// Components and tombstones that were checked against an audit sample.
    pub state_checks: u64,
    /// Checks that failed: a value, a presence or an absence was wrong, or did not come within the grace.
    pub state_errors: u64,
    /// Checks that newer state overtook.
    pub superseded: u64,
}

/// One slot as the client knows it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Replica {
    pub slot: u32,
    pub generation: u8,
    pub alive: bool,
    /// Which components are held.
    pub present: u16,
    /// Held, or empty, at least since this tick.
    pub since: u32,
}

/// A client's copies.
pub struct Replicas {
    pub(crate) schema: Arc<Schema>,
    /// Slot and index of every replica, by slot.
    order: Vec<(u32, u32)>,
    pub(crate) replicas: Vec<Replica>,
    /// `kinds` labels for each index: the tick as of which that component is held, or is not.
    pub(crate) labels: Vec<u32>,
    pub(crate) columns: Vec<Box<dyn ReplicaColumn>>,
    free: Vec<u32>,
    pub(crate) alive_count: usize,
    replicas_max: usize,
    epoch: Option<u8>,
    newest_tick: u32,
    swept_tick: u32,
    pub(crate) counts: ReplicaCounts,
    pub(crate) samples: HeldSamples,
}

impl Replicas {
    pub fn new(schema: Arc<Schema>) -> Self {
        Self::with_limit(schema, REPLICAS_MAX)
    }

    /// With at most `replicas_max` slots, held or lately emptied; a server that sends more is refused.
    pub fn with_limit(schema: Arc<Schema>, replicas_max: usize) -> Self {
        Self {
            columns: schema.kinds().iter().map(|kind| (kind.new_replica_column)()).collect(),
            schema,
            order: Vec::new(),
            replicas: Vec::new(),
            labels: Vec::new(),
            free: Vec::new(),
            alive_count: 0,
            replicas_max,
            epoch: None,
            newest_tick: 0,
            swept_tick: 0,
            counts: ReplicaCounts::default(),
            samples: HeldSamples::new(GRACE_TICKS),
        }
    }

    /// Applies a snapshot message. Of a message that turns out to be malformed the records before the mistake
    /// stay applied.
    pub fn apply(&mut self, message: &[u8]) -> Result<SnapshotHeader, DecodeError> {
        let mut from = Reader::new(message);
        let is_slowed = match from.u8()? {
            SNAPSHOT_KIND => false,
            SLOWED_SNAPSHOT_KIND => true,
            _ => return Err(DecodeError::WrongKind),
        };
        let (epoch, tick, input) = (from.u8()?, from.u32()?, from.u16()?);
        let time_factor = if is_slowed { TimeFactor::decode(from.u8()?) } else { Some(TimeFactor::USUAL) };
        let time_factor = time_factor.ok_or(DecodeError::OutOfRange)?;
        let header = SnapshotHeader { epoch, tick, input, time_factor };
        if !self.enter_epoch(header.epoch) {
            self.counts.stale += 1;
            return Ok(header);
        }
        if header.tick.saturating_add(LATE_TICKS_MAX) < self.newest_tick {
            self.counts.stale += 1;
            return Ok(header);
        }
        self.hear(header.tick);
        let result = self.apply_records(header.tick, &mut from);
        self.check_held_samples();
        result.map(|()| header)
    }

    /// Keeps an audit sample message until it can be checked. `now_tick` is the server's tick as far as the client
    /// knows. Audit samples of another epoch are ignored.
    pub fn hold_audit_sample(&mut self, message: &[u8], now_tick: u32) -> Result<(), DecodeError> {
        let sample = self.read_audit_sample(message)?;
        if Some(sample.epoch) == self.epoch {
            self.hear(now_tick.min(sample.tick));
            self.samples.push(sample);
        }
        Ok(())
    }

    /// Checks the held audit samples that can be checked. Those whose grace is over are errors.
    pub fn check_audit_samples(&mut self) {
        self.check_held_samples();
        self.expire_held_samples(self.newest_tick);
    }

    /// How long after its tick an audit sample must have come true. (ticks) Give it 2 s.
    pub fn set_grace_ticks(&mut self, ticks: u32) {
        self.samples.set_grace(ticks);
    }

    /// The oldest state error that has not been taken; the last few are kept.
    pub fn take_state_error(&mut self) -> Option<StateError> {
        self.samples.take_error()
    }

    /// The copy of a component, if the entity is held and has it.
    pub fn get<T: Replicate>(&self, id: NetId) -> Option<&T> {
        let (index, _) = self.held(id)?;
        self.column_of::<T>()?.values[index].as_ref()
    }

    /// Tick for which the copy of a component is true.
    pub fn tick_of<T: Replicate>(&self, id: NetId) -> Option<u32> {
        let (index, replica) = self.held(id)?;
        let kind = self.schema.kind_of::<T>()?.index();
        (replica.present >> kind & 1 == 1).then(|| self.labels[index * self.stride() + kind])
    }

    /// All copies of a component, by slot.
    pub fn iter<T: Replicate>(&self) -> impl Iterator<Item = (NetId, &T)> {
        let values = self.column_of::<T>().map_or(&[][..], |column| &column.values);
        self.alive().filter_map(move |(index, id)| Some((id, values.get(index)?.as_ref()?)))
    }

    /// All entities held, by slot.
    pub fn ids(&self) -> impl Iterator<Item = NetId> + '_ {
        self.alive().map(|(_, id)| id)
    }

    pub fn contains(&self, id: NetId) -> bool {
        self.held(id).is_some()
    }

    /// Entities held.
    pub fn len(&self) -> usize {
        self.alive_count
    }

    pub fn is_empty(&self) -> bool {
        self.alive_count == 0
    }

    pub fn epoch(&self) -> Option<u8> {
        self.epoch
    }

    /// Newest tick heard of in this epoch.
    pub fn newest_tick(&self) -> u32 {
        self.newest_tick
    }

    pub fn counts(&self) -> &ReplicaCounts {
        &self.counts
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Begins `epoch`: the copies of an older one are dropped. Returns false, and changes nothing, if `epoch` is
    /// itself older than what has been heard.
    pub fn enter_epoch(&mut self, epoch: u8) -> bool {
        match self.epoch {
            Some(current) if current == epoch => true,
            Some(current) if epoch.wrapping_sub(current) >= 128 => false,
            _ => {
                self.clear();
                self.epoch = Some(epoch);
                true
            }
        }
    }

    /// Drops all copies and audit samples; the epoch stays.
    pub fn clear(&mut self) {
        self.order.clear();
        self.replicas.clear();
        self.labels.clear();
        self.free.clear();
        self.columns.iter_mut().for_each(|column| column.grow(0));
        self.alive_count = 0;
        self.newest_tick = 0;
        self.swept_tick = 0;
        self.samples.clear();
    }

    /// Index of a slot's replica. `near` is where in the order to begin, and then where `slot` is or would be.
    pub(crate) fn seek(&self, slot: u32, near: &mut usize) -> Option<usize> {
        let rest = &self.order[*near..];
        let skipped = match rest {
            [(first, _), ..] if *first >= slot => 0,
            [_, (second, _), ..] if *second >= slot => 1,
            _ => rest.partition_point(|(other, _)| *other < slot),
        };
        *near += skipped;
        self.order.get(*near).filter(|(found, _)| *found == slot).map(|(_, index)| *index as usize)
    }

    /// A row for a slot that has none, empty since the beginning. `near` is where `seek` left it.
    pub(crate) fn add(&mut self, slot: u32, near: &mut usize) -> Result<usize, DecodeError> {
        if self.order.len() >= self.replicas_max && self.swept_tick != self.newest_tick {
            self.sweep();
            self.seek_again(slot, near);
        }
        if self.order.len() >= self.replicas_max {
            return Err(DecodeError::TooManyEntities);
        }
        let row = Replica { slot, generation: 0, alive: false, present: 0, since: 0 };
        let index = match self.free.pop() {
            Some(index) => {
                self.replicas[index as usize] = row;
                index
            }
            None => {
                let count = self.replicas.len() + 1;
                self.replicas.push(row);
                self.labels.resize(count * self.stride(), 0);
                self.columns.iter_mut().for_each(|column| column.grow(count));
                (count - 1) as u32
            }
        };
        self.order.insert(*near, (slot, index));
        Ok(index as usize)
    }

    fn seek_again(&self, slot: u32, near: &mut usize) {
        *near = 0;
        self.seek(slot, near);
    }

    /// Takes note of the server's tick.
    fn hear(&mut self, tick: u32) {
        if tick <= self.newest_tick {
            return;
        }
        self.samples.excuse_silence(tick - self.newest_tick);
        self.newest_tick = tick;
        if tick - self.swept_tick >= SWEEP_TICKS {
            self.sweep();
        }
    }

    /// Forgets slots that have been empty for long.
    fn sweep(&mut self) {
        self.swept_tick = self.newest_tick;
        let Self { order, replicas, free, newest_tick, .. } = self;
        order.retain(|(_, index)| {
            let replica = &replicas[*index as usize];
            let kept = replica.alive || replica.since.saturating_add(LATE_TICKS_MAX) >= *newest_tick;
            if !kept {
                free.push(*index);
            }
            kept
        });
    }

    /// The row of a slot, held or lately emptied.
    pub(crate) fn row(&self, slot: u32) -> Option<(usize, &Replica)> {
        let at = self.order.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        let index = self.order[at].1 as usize;
        Some((index, &self.replicas[index]))
    }

    fn held(&self, id: NetId) -> Option<(usize, &Replica)> {
        self.row(id.slot).filter(|(_, replica)| replica.alive && replica.generation == id.generation)
    }

    fn alive(&self) -> impl Iterator<Item = (usize, NetId)> + '_ {
        self.order.iter().filter_map(|(slot, index)| {
            let replica = &self.replicas[*index as usize];
            let id = NetId { slot: *slot, generation: replica.generation };
            replica.alive.then_some((*index as usize, id))
        })
    }

    fn column_of<T: Replicate>(&self) -> Option<&ReplicaColumnOf<T>> {
        let kind = self.schema.kind_of::<T>()?;
        self.columns[kind.index()].as_any().downcast_ref()
    }

    pub(crate) fn stride(&self) -> usize {
        self.columns.len()
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::{
        testing::{Health, TestWorld, ViewId, pose, schema},
        view::interest::InterestSettings,
        wire::schema::ComponentIndex,
    };

    /// A world whose messages a test delivers as it likes.
    struct Server {
        world: TestWorld,
        view: ViewId,
        tick: u32,
    }

    impl Server {
        fn new(epoch: u8) -> Self {
            let mut world = TestWorld::new(schema(), InterestSettings::default());
            let view = world.add_client(epoch);
            Self { world, view, tick: 0 }
        }

        fn begin(&mut self) {
            self.tick += 1;
            self.world.begin_tick(self.tick);
        }

        fn points(&mut self, id: NetId, points: u16) {
            self.world.update(ComponentIndex(1), id, &Health { points });
        }

        fn message(&mut self) -> Vec<u8> {
            self.world.refresh_interest();
            let mut out = [0; 1200];
            let len = self.world.write_snapshot(self.view, 0, &mut out);
            self.world.sent(self.view, self.tick as u16);
            out[..len].to_vec()
        }

        fn acknowledged(&mut self) -> Vec<u8> {
            let message = self.message();
            self.world.acked(self.view, self.tick as u16);
            message
        }
    }

    fn points(replicas: &Replicas, id: NetId) -> Option<u16> {
        replicas.get::<Health>(id).map(|health| health.points)
    }

    #[test]
    fn older_never_overwrites_newer() {
        let mut server = Server::new(0);
        let mut replicas = Replicas::new(schema());
        server.begin();
        let id = server.world.spawn().unwrap();
        server.points(id, 1);
        replicas.apply(&server.acknowledged()).unwrap();
        let messages = [2, 3].map(|points| {
            server.begin();
            server.points(id, points);
            server.acknowledged()
        });
        replicas.apply(&messages[1]).unwrap();
        replicas.apply(&messages[0]).unwrap();
        replicas.apply(&messages[1]).unwrap();
        assert_eq!((points(&replicas, id), replicas.tick_of::<Health>(id)), (Some(3), Some(3)));
    }

    #[test]
    fn a_late_spawn_does_not_bring_back_what_is_gone() {
        let mut server = Server::new(0);
        let mut replicas = Replicas::new(schema());
        server.begin();
        let id = server.world.spawn().unwrap();
        server.points(id, 1);
        let spawn = server.acknowledged();
        server.begin();
        server.world.despawn(id);
        let despawn = server.acknowledged();
        replicas.apply(&despawn).unwrap();
        replicas.apply(&spawn).unwrap();
        assert!(replicas.is_empty());
    }

    #[test]
    fn a_late_despawn_does_not_take_the_next_owner_of_the_slot() {
        let mut server = Server::new(0);
        server.world = TestWorld::new(schema(), InterestSettings { entities_max: 1, ..InterestSettings::default() });
        server.view = server.world.add_client(0);
        let mut replicas = Replicas::new(schema());
        server.begin();
        let first = server.world.spawn().unwrap();
        replicas.apply(&server.acknowledged()).unwrap();
        server.begin();
        server.world.despawn(first);
        let despawn = server.message();
        server.begin();
        let second = server.world.spawn().unwrap();
        assert_eq!(second.slot, first.slot);
        replicas.apply(&server.message()).unwrap();
        replicas.apply(&despawn).unwrap();
        assert_eq!(replicas.ids().collect::<Vec<_>>(), [second]);
    }

    #[test]
    fn a_newer_epoch_begins_anew_and_an_older_one_is_ignored() {
        let (mut old, mut new) = (Server::new(255), Server::new(0));
        let mut replicas = Replicas::new(schema());
        old.begin();
        old.world.spawn().unwrap();
        let message = old.acknowledged();
        replicas.apply(&message).unwrap();
        new.begin();
        let ids = [(); 2].map(|()| new.world.spawn().unwrap());
        replicas.apply(&new.acknowledged()).unwrap();
        assert_eq!(replicas.apply(&message).unwrap().epoch, 255);
        assert_eq!((replicas.epoch(), replicas.ids().collect::<Vec<_>>()), (Some(0), ids.to_vec()));
        assert!(replicas.enter_epoch(0));
        assert_eq!(replicas.len(), 2);
        assert!(replicas.enter_epoch(1));
        assert!(replicas.is_empty());
    }

    #[test]
    fn a_server_cannot_fill_a_clients_memory() {
        let mut replicas = Replicas::with_limit(schema(), 100);
        for round in 0..50_u32 {
            let mut message = vec![SNAPSHOT_KIND, 0];
            message.extend_from_slice(&(round + 1).to_le_bytes());
            message.extend_from_slice(&[0, 0]);
            for _ in 0..300 {
                // Slot 1, or one more than the one before; no components.
                message.extend_from_slice(&[1 << 3 | 0b011, round as u8, 0]);
            }
            assert_eq!(replicas.apply(&message), Err(DecodeError::TooManyEntities));
            assert!(replicas.len() <= 100 && replicas.replicas.len() <= 100);
        }
        let mut far = vec![SNAPSHOT_KIND, 0, 200, 0, 0, 0, 0, 0];
        far.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]);
        assert_eq!(replicas.apply(&far), Err(DecodeError::SlotLimit));
    }

    #[test]
    fn emptied_slots_are_forgotten_in_time() {
        let mut server = Server::new(0);
        let mut replicas = Replicas::new(schema());
        for _ in 0..5000 {
            server.begin();
            let id = server.world.spawn().unwrap();
            replicas.apply(&server.acknowledged()).unwrap();
            server.begin();
            server.world.despawn(id);
            replicas.apply(&server.acknowledged()).unwrap();
        }
        assert!(replicas.order.len() < 1400, "{} slots tracked", replicas.order.len());
    }

    #[test]
    fn hostile_bytes_are_refused_without_harm() {
        let mut server = Server::new(0);
        server.begin();
        for points in 0..20 {
            let id = server.world.spawn().unwrap();
            server.points(id, points);
            server.world.update(ComponentIndex(0), id, &pose(points.into()));
        }
        let snapshot = server.acknowledged();
        let mut sample = Vec::new();
        assert!(server.world.write_audit_sample(server.view, &mut sample));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut refused = 0;
        let mut replicas = Replicas::with_limit(schema(), 1000);
        for _ in 0..20_000 {
            let mut message = if rng.random_bool(0.7) { snapshot.clone() } else { sample.clone() };
            for _ in 0..rng.random_range(0..4) {
                let at = rng.random_range(0..message.len());
                match rng.random_range(0..3) {
                    0 => message[at] = rng.random(),
                    1 => message[at] ^= 1 << rng.random_range(0..8),
                    _ => message.truncate(at.max(1)),
                }
            }
            let result = replicas.apply(&message).map(drop).and(replicas.hold_audit_sample(&message, 1));
            refused += u32::from(result.is_err());
            replicas.check_audit_samples();
            for (_, pose) in replicas.iter::<crate::testing::Pose>() {
                assert!(pose.place.iter().all(|number| (-150.0..=150.0).contains(number)));
            }
        }
        assert!(refused > 1000);
        assert!(replicas.replicas.len() <= 1000);
    }
}
