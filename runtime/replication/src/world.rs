//! World replication: everything that one world has to tell, and to whom.
//!
//! Per tick, on the world's own thread and in this order: `begin_tick`; `spawn`, `update`, `remove`,
//! `set_place`, `despawn` for what changed; `refresh_interest`; and for each client `write_snapshot` until it
//! returns 0, with `sent` naming the packet that each message went into. `acked` and `lost` come whenever
//! the connection knows.
//!
//! ```
//! use throng_replication::{InterestSettings, Replicas, Replicate, SchemaBuilder, WorldReplication};
//!
//! #[derive(Clone, Debug, PartialEq, Replicate)]
//! struct Health {
//!     #[replicate(bits = 7)]
//!     points: u8,
//! }
//!
//! let schema = SchemaBuilder::new().component::<Health>().build();
//! let mut world = WorldReplication::new(schema.clone(), InterestSettings::default());
//! let view = world.add_client(0);
//!
//! world.begin_tick(1);
//! let hero = world.spawn().unwrap();
//! world.set_place(hero, [10.0, 5.0]);
//! world.update(schema.kind_of::<Health>().unwrap(), hero, &Health { points: 90 });
//! world.set_view(view, [0.0, 0.0]);
//! world.refresh_interest();
//! let mut packet = [0; 1200];
//! let len = world.write_snapshot(view, 0, &mut packet);
//! world.sent(view, 17);
//!
//! let mut replicas = Replicas::new(schema);
//! replicas.apply(&packet[..len]).unwrap();
//! assert_eq!(replicas.get::<Health>(hero), Some(&Health { points: 90 }));
//! world.acked(view, 17);
//! ```

use std::sync::Arc;

use crate::{
    entities::{Entities, EntitiesFull, Fault, NetId, Standing},
    interest::{Finder, InterestSettings, is_small},
    replicate::Replicate,
    schema::{KindId, Schema},
    truth::ExactSource,
    view::View,
};

/// Most slots a world may have; also the highest slot a client believes.
pub const SLOTS_MAX: u32 = 1 << 20;

/// A client of one world.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ViewId(u32);

/// What replication did since `take_stats` was called last.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationStats {
    /// Components encoded, whether their bytes changed or not.
    pub components_encoded: u64,
    /// Records of all kinds written into snapshots: updates, spawns and despawns.
    pub entity_updates: u64,
    pub spawns: u64,
    pub despawns: u64,
    pub snapshots: u64,
    pub snapshot_bytes: u64,
    pub truths: u64,
    /// Components that a lost packet carried last, and that are sent again.
    pub owed_again: u64,
    /// Values that were NaN or infinite when they were encoded. Never sent; see `poisoned`.
    pub poisoned: u64,
    /// Values outside their declared range when they were encoded, moved to its nearer end.
    pub clamped: u64,
    /// Spawns refused because the world was full.
    pub spawns_refused: u64,
}

/// The replicated side of one world. No ECS inside (see `ecs`), no clock, no sockets.
pub struct WorldReplication {
    entities: Entities,
    settings: InterestSettings,
    finder: Finder,
    views: Vec<Option<Box<View>>>,
    stats: ReplicationStats,
}

impl WorldReplication {
    pub fn new(schema: Arc<Schema>, settings: InterestSettings) -> Self {
        let settings = InterestSettings { entities_max: settings.entities_max.clamp(1, SLOTS_MAX), ..settings };
        Self {
            entities: Entities::new(schema, &settings),
            settings,
            finder: Finder::default(),
            views: Vec::new(),
            stats: ReplicationStats::default(),
        }
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.entities.schema
    }

    /// Begins a tick. Ticks must rise; changes made before are no longer this tick's.
    pub fn begin_tick(&mut self, tick: u32) {
        self.entities.begin_tick(tick);
    }

    pub fn tick(&self) -> u32 {
        self.entities.tick
    }

    /// A new entity, without components, relevant to everybody until it has a place.
    pub fn spawn(&mut self) -> Result<NetId, EntitiesFull> {
        self.entities.spawn()
    }

    /// Ends an entity. Returns whether it was there.
    pub fn despawn(&mut self, id: NetId) -> bool {
        self.entities.despawn(id)
    }

    pub fn contains(&self, id: NetId) -> bool {
        self.entities.get(id).is_some()
    }

    /// Where an entity is (m). NaN and infinities count as poison and change nothing.
    pub fn set_place(&mut self, id: NetId, place: [f32; 2]) {
        self.entities.set_place(id, place);
    }

    /// The entity has no place: it is relevant to everybody.
    pub fn clear_place(&mut self, id: NetId) {
        self.entities.set_standing(id, Standing::Everywhere);
    }

    /// The entity is relevant to its own client alone, until it has a place again.
    pub fn hide(&mut self, id: NetId) {
        self.entities.set_standing(id, Standing::Hidden);
    }

    /// Encodes a component's value, once for everybody. Returns whether its bytes changed. Ids of entities
    /// that are gone are ignored.
    pub fn update<T: Replicate>(&mut self, kind: KindId, id: NetId, value: &T) -> bool {
        debug_assert_eq!(self.entities.schema.kind_of::<T>(), Some(kind), "the kind is another component's");
        self.entities.update(kind, id, value)
    }

    /// Takes a component away from an entity that lives on.
    pub fn remove(&mut self, kind: KindId, id: NetId) {
        self.entities.remove(kind, id);
    }

    /// Entities that had a NaN or an infinity in a component or a place this tick, up to 64 of them, for the
    /// server to put into quarantine. What clients get instead is the lower end of the range.
    pub fn poisoned(&self) -> &[NetId] {
        self.entities.poisoned()
    }

    /// A client comes in. `epoch` tells its stay here from its stays elsewhere; it is in every message.
    pub fn add_client(&mut self, epoch: u8) -> ViewId {
        let view = Box::new(View::new(epoch, &self.entities, &self.settings));
        let index = self.views.iter().position(Option::is_none).unwrap_or(self.views.len());
        if index == self.views.len() {
            self.views.push(None);
        }
        self.views[index] = Some(view);
        ViewId(index as u32)
    }

    pub fn remove_client(&mut self, view: ViewId) {
        if let Some(counts) = self.views.get_mut(view.0 as usize).and_then(Option::take).map(|view| view.counts) {
            self.stats.add(counts);
        }
    }

    /// Where a client looks from (m), while its own entity has no place.
    pub fn set_view(&mut self, view: ViewId, centre: [f32; 2]) {
        if centre.iter().all(|number| number.is_finite())
            && let Some(view) = self.view_mut(view)
        {
            view.centre = Some(centre);
        }
    }

    /// Which entity is the client's own: always relevant to it, and it looks from there.
    pub fn set_own(&mut self, view: ViewId, own: Option<NetId>) {
        if let Some(view) = self.view_mut(view) {
            view.own = own;
            view.refresh_now = true;
        }
    }

    /// What this client may be sent per tick, in place of the settings' budget. (bytes)
    pub fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32) {
        if let Some(view) = self.view_mut(view) {
            view.budget_bytes_per_tick = bytes_per_tick;
        }
    }

    /// Rebuilds the relevant sets whose turn it is. Once per tick, after the changes.
    pub fn refresh_interest(&mut self) {
        let Self { entities, settings, finder, views, .. } = self;
        let period = if is_small(entities) { 1 } else { settings.period_ticks.max(1) };
        let is_due = |index: usize, view: &View| {
            view.refresh_now || (index as u32).wrapping_add(entities.tick).is_multiple_of(period)
        };
        let mut rebuilt = false;
        for (index, view) in views.iter_mut().enumerate() {
            let Some(view) = view.as_deref_mut().filter(|view| is_due(index, view)) else {
                continue;
            };
            if !std::mem::replace(&mut rebuilt, true) {
                finder.rebuild(entities, settings.cell_m);
            }
            view.refresh_now = false;
            view.bury_dead(entities);
            let own = view.own.filter(|own| entities.get(*own).is_some()).map(|own| own.slot);
            finder.find(entities.slots.len(), view.look_from(entities), own, settings);
            view.set_relevant(finder, entities);
        }
    }

    /// Writes the next message of this tick for a client, at most `out` long, and returns its length; 0 when
    /// there is nothing (more) to say. `input` is the number of the client's last input that this tick took
    /// in; when it is new it is told even if nothing else is.
    pub fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
        self.writers().write_snapshot(view, input, out)
    }

    /// All clients' writers, to be split over threads.
    pub fn writers(&mut self) -> Writers<'_> {
        self.entities.sort_touched();
        Writers {
            entities: &self.entities,
            radius_m: self.settings.enter_radius_m,
            packets_in_flight_max: self.settings.packets_in_flight_max,
            views: &mut self.views,
            first: 0,
        }
    }

    /// Names the packet that the message written last for this client went into. Without it the message
    /// counts as lost.
    pub fn sent(&mut self, view: ViewId, packet: u16) {
        self.writers().sent(view, packet);
    }

    pub fn acked(&mut self, view: ViewId, packet: u16) {
        if let Some(view) = self.view_mut(view) {
            view.acked(packet);
        }
    }

    /// A packet counts as lost: what it carried last is owed again. If it arrives all the same, no harm is done.
    pub fn lost(&mut self, view: ViewId, packet: u16) {
        if let Some(view) = self.view_mut(view) {
            view.lost(packet);
        }
    }

    /// Appends a truth (see `truth`) about one entity to `out`; false when there is none to tell.
    pub fn write_truth(&mut self, view: ViewId, out: &mut Vec<u8>) -> bool {
        self.write_truth_from(view, &mut |id, entities| entities.slots[id.slot as usize].present, out)
    }

    /// As `write_truth`, with the exact values read from `source` now: what replication missed is then not missed by the truth.
    pub(crate) fn write_truth_from(&mut self, view: ViewId, source: &mut ExactSource<'_>, out: &mut Vec<u8>) -> bool {
        let Self { entities, settings, views, .. } = self;
        let Some(view) = views.get_mut(view.0 as usize).and_then(Option::as_deref_mut) else {
            return false;
        };
        view.write_truth(entities, settings.enter_radius_m, source, out)
    }

    /// Test switch: breaks the encoder, to show that clients notice.
    pub fn set_fault(&mut self, fault: Fault) {
        self.entities.fault = fault;
    }

    /// Ids that a client should hold now; for tests and tools. May be `period_ticks` old.
    pub fn relevant(&self, view: ViewId) -> impl Iterator<Item = NetId> + '_ {
        let view = self.views.get(view.0 as usize).and_then(Option::as_deref);
        let entries = view.map_or(&[][..], |view| &view.entries);
        entries
            .iter()
            .filter(|entry| entry.is_relevant() && self.entities.get(entry.id()).is_some())
            .map(|entry| entry.id())
    }

    /// Whether an entity is relevant to a client now.
    pub fn hears(&self, view: ViewId, id: NetId) -> bool {
        let Some(view) = self.views.get(view.0 as usize).and_then(Option::as_deref) else { return false };
        view.find(id.slot).is_some_and(|index| view.entries[index].is_relevant() && view.entries[index].id() == id)
    }

    /// Where an entity is (m), if it has a place.
    pub fn place_of(&self, id: NetId) -> Option<[f32; 2]> {
        match self.entities.get(id)?.standing {
            Standing::At(place) => Some(place),
            Standing::Everywhere | Standing::Hidden => None,
        }
    }

    /// Where a client looks from (m), if it has a place.
    pub fn view_place(&self, view: ViewId) -> Option<[f32; 2]> {
        self.views.get(view.0 as usize)?.as_deref()?.look_from(&self.entities)
    }

    pub fn entities_count(&self) -> usize {
        self.entities.alive_count()
    }

    /// Counts since the last call.
    pub fn take_stats(&mut self) -> ReplicationStats {
        for view in self.views.iter_mut().flatten() {
            self.stats.add(std::mem::take(&mut view.counts));
        }
        let counts = std::mem::take(&mut self.entities.counts);
        self.stats.components_encoded += counts.encoded;
        self.stats.poisoned += counts.poisoned;
        self.stats.clamped += counts.clamped;
        self.stats.spawns_refused += counts.refused;
        std::mem::take(&mut self.stats)
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let views = self.views.iter().flatten().map(|view| size_of::<View>() + view.heap_bytes());
        self.entities.heap_bytes()
            + self.finder.heap_bytes()
            + self.views.capacity() * size_of::<Option<Box<View>>>()
            + views.sum::<usize>()
    }

    fn view_mut(&mut self, view: ViewId) -> Option<&mut View> {
        self.views.get_mut(view.0 as usize)?.as_deref_mut()
    }

    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.views.iter().flatten().for_each(|view| view.check());
    }
}

/// Writes snapshots of a range of a world's clients. What they read is shared and does not change; what they
/// write is their own, so halves can go to different threads and give the same bytes as one.
pub struct Writers<'a> {
    entities: &'a Entities,
    radius_m: f32,
    packets_in_flight_max: u8,
    views: &'a mut [Option<Box<View>>],
    /// Index of the first view.
    first: usize,
}

impl Writers<'_> {
    /// As `WorldReplication::write_snapshot`; 0 for clients outside this range.
    pub fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
        let (entities, radius_m) = (self.entities, self.radius_m);
        self.view_mut(view).map_or(0, |view| view.write_snapshot(entities, radius_m, input, out))
    }

    /// As `WorldReplication::sent`.
    pub fn sent(&mut self, view: ViewId, packet: u16) {
        let in_flight_max = self.packets_in_flight_max;
        if let Some(view) = self.view_mut(view) {
            view.sent(packet, in_flight_max);
        }
    }

    /// Two halves of about as many clients.
    pub fn split(&mut self) -> (Writers<'_>, Writers<'_>) {
        let middle = self.views.len() / 2;
        let (left, right) = self.views.split_at_mut(middle);
        let half = |views, first| Writers { views, first, ..*self };
        (half(left, self.first), half(right, self.first + middle))
    }

    /// The clients of this range.
    pub fn ids(&self) -> impl Iterator<Item = ViewId> + '_ {
        let present = self.views.iter().enumerate().filter(|(_, view)| view.is_some());
        present.map(|(index, _)| ViewId((self.first + index) as u32))
    }

    fn view_mut(&mut self, view: ViewId) -> Option<&mut View> {
        let index = (view.0 as usize).checked_sub(self.first)?;
        self.views.get_mut(index)?.as_deref_mut()
    }
}

impl ReplicationStats {
    fn add(&mut self, counts: crate::view::ViewCounts) {
        self.entity_updates += counts.records;
        self.spawns += counts.spawns;
        self.despawns += counts.despawns;
        self.snapshots += counts.snapshots;
        self.snapshot_bytes += counts.bytes;
        self.truths += counts.truths;
        self.owed_again += counts.owed_again;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{pose, schema};

    /// 40 entities and as many clients, which hear those around them.
    fn crowd() -> (WorldReplication, Vec<ViewId>) {
        let settings = InterestSettings { enter_radius_m: 8.0, leave_radius_m: 9.0, ..InterestSettings::default() };
        let mut world = WorldReplication::new(schema(), settings);
        let views = (0..40)
            .map(|index| {
                let id = world.spawn().unwrap();
                world.set_place(id, [index as f32, 0.0]);
                world.update(KindId(0), id, &pose(index as f32));
                let view = world.add_client(0);
                world.set_own(view, Some(id));
                view
            })
            .collect();
        world.refresh_interest();
        (world, views)
    }

    fn write(mut writers: Writers<'_>) -> Vec<(ViewId, Vec<u8>)> {
        let ids: Vec<_> = writers.ids().collect();
        let mut messages = Vec::new();
        for id in ids {
            let mut out = [0; 1200];
            let len = writers.write_snapshot(id, 0, &mut out);
            writers.sent(id, 0);
            messages.push((id, out[..len].to_vec()));
        }
        messages
    }

    /// Any number of threads writes the same bytes.
    #[test]
    fn writers_on_several_threads_write_what_one_writes() {
        let (mut world, views) = crowd();
        let alone = write(world.writers());
        assert_eq!(alone.iter().map(|(view, _)| *view).collect::<Vec<_>>(), views);
        let (mut world, _) = crowd();
        let mut all = world.writers();
        let (mut left, right) = all.split();
        let together = std::thread::scope(|threads| {
            let right = threads.spawn(move || write(right));
            let (first, second) = left.split();
            let first = threads.spawn(move || write(first));
            let second = write(second);
            [first.join().unwrap(), second, right.join().unwrap()].concat()
        });
        assert_eq!(together, alone);
    }

    /// 1,000 worlds of this size are a few megabytes.
    #[test]
    fn a_small_world_takes_a_few_kilobytes() {
        let mut world = WorldReplication::new(schema(), InterestSettings::default());
        let ids: Vec<_> = (0..20).map(|_| world.spawn().unwrap()).collect();
        let view = world.add_client(0);
        world.set_view(view, [0.0; 2]);
        for tick in 1..100 {
            world.begin_tick(tick);
            for id in &ids {
                world.set_place(*id, [tick as f32 * 0.1, 0.0]);
                world.update(KindId(0), *id, &pose(tick as f32 * 0.1));
            }
            world.refresh_interest();
            assert!(world.write_snapshot(view, 0, &mut [0; 1200]) > 0);
            world.sent(view, tick as u16);
        }
        let bytes = size_of::<WorldReplication>() + world.heap_bytes();
        assert!(bytes <= 8192, "{bytes} bytes");
    }

    #[test]
    fn a_client_that_left_is_no_longer_written() {
        let (mut world, views) = crowd();
        world.remove_client(views[3]);
        assert_eq!(world.write_snapshot(views[3], 0, &mut [0; 1200]), 0);
        world.acked(views[3], 0);
        assert_eq!(world.add_client(1), views[3]);
    }
}
