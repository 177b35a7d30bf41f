//! World replication: everything that one world has to tell, shared by all its clients.
//!
//! What a client holds and is owed is a [`View`], and belongs to the client. A tick has two halves. In the first the
//! world's own thread changes what there is to tell: `begin_tick`; `spawn`, `update`, `remove`, `set_place`, `despawn`;
//! `filter_visibility`. Then `settle` ends the changes. In the second half nothing changes here any more, so any number
//! of threads may serve views at once, each with a [`ViewScratch`] and a [`Traffic`] of its own: `refresh`, and
//! `write_snapshot` until it returns 0, with `sent` naming the packet that each message went into. `acked` and `lost`
//! come whenever the connection knows. However the views are shared out, their bytes are the same.
//!
//! ```
//! use throng_replication::{
//!     InterestSettings, Replicas, Replicate, SchemaBuilder, Traffic, ViewScratch, WorldReplication,
//! };
//!
//! #[derive(Clone, Debug, PartialEq, Replicate)]
//! struct Health {
//!     #[replicate(bits = 7)]
//!     points: u8,
//! }
//!
//! let schema = SchemaBuilder::new().component::<Health>().build();
//! let mut world = WorldReplication::new(schema.clone(), InterestSettings::default());
//! let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
//! let mut view = world.new_view(0);
//!
//! world.begin_tick(1);
//! let hero = world.spawn().unwrap();
//! world.set_place(hero, [10.0, 5.0]);
//! world.update(schema.kind_of::<Health>().unwrap(), hero, &Health { points: 90 });
//! world.settle();
//!
//! view.look_at([0.0, 0.0]);
//! world.refresh(&mut view, &mut scratch);
//! let mut packet = [0; 1200];
//! let len = world.write_snapshot(&mut view, &mut traffic, 0, &mut packet);
//! world.sent(&mut view, 17);
//!
//! let mut replicas = Replicas::new(schema);
//! replicas.apply(&packet[..len]).unwrap();
//! assert_eq!(replicas.get::<Health>(hero), Some(&Health { points: 90 }));
//! view.acked(17);
//! ```

use std::sync::Arc;

use throng_platform::prefetch::FootprintDraft;

use crate::{
    source::{
        bulk::Bulk,
        entities::{EntitiesFull, Relevance},
        fault::Fault,
        rings::Rings,
        rules::{InterestRadii, ResolvedRules},
    },
    stats::ReplicationStats,
    view::{
        audit_sample::ExactSource,
        client_view::View,
        interest::{Found, InterestSettings, is_small},
        scene::Scene,
        traffic::{Counts, Overhead, Traffic},
    },
    wire::{
        ids::{NetId, SLOTS_MAX},
        replicate::Replicate,
        schema::{ComponentIndex, Schema},
        time_factor::TimeFactor,
    },
};

/// Audit samples leave out components that may reach the client later than this: it waits 2 s for what a sample tells
/// before it counts an error, and half of that is left for losses. (s)
const AUDITED_DELAY_S_MAX: f32 = 1.0;

/// What the updates of one tick are put together in, kept for its memory alone: one per thread that ticks worlds.
#[derive(Default)]
pub struct UpdateBuffers(Bulk);

/// What serving views works with, kept for its memory alone: one per thread that serves views, for any world.
#[derive(Default)]
pub struct ViewScratch {
    found: Found,
    allowed: Vec<u32>,
    filtered_near: Vec<u32>,
    /// Whom one client is asked about together, and a bit for each of them.
    candidates: Vec<NetId>,
    answers: Vec<u64>,
}

impl ViewScratch {
    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.found.heap_bytes()
            + (self.allowed.capacity() + self.filtered_near.capacity()) * 4
            + self.candidates.capacity() * size_of::<NetId>()
            + self.answers.capacity() * 8
    }
}

/// The replicated side of one world, as all its clients share it. No ECS inside (see `ecs`), no clock, no sockets, no
/// client.
pub struct WorldReplication {
    scene: Scene,
    /// Which turns of interest are taken: views with the same turn are refreshed in the same ticks.
    turns: Vec<bool>,
}

impl WorldReplication {
    pub fn new(schema: Arc<Schema>, settings: InterestSettings) -> Self {
        let settings = InterestSettings { entities_max: settings.entities_max.clamp(1, SLOTS_MAX), ..settings };
        Self { scene: Scene::new(schema, settings), turns: Vec::new() }
    }

    /// Notes what every tick reads, beside itself.
    pub fn note_lists(&self, footprint: &mut FootprintDraft) {
        self.scene.entities.note_lists(footprint);
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.scene.entities.schema
    }

    /// Begins a tick. Ticks must rise; changes made before are no longer this tick's.
    pub fn begin_tick(&mut self, tick: u32) {
        self.scene.entities.begin_tick(tick);
        self.scene.rings.begin_tick(tick);
    }

    /// Clients are told half as often of what is not near enough to be told at once; or as the rules say again. Between
    /// two ticks, or before anything is told in one; allocates nothing, and nobody is owed anything for it.
    pub fn set_thinned(&mut self, is_thinned: bool) {
        if self.scene.rings.is_thinned() != is_thinned {
            self.scene.rings.set_thinned(is_thinned, self.scene.entities.tick);
            self.scene.bulk.outdate();
        }
    }

    /// How fast the world's time runs from its next tick on: clients are told with their snapshots. Between two ticks.
    pub fn set_time_factor(&mut self, factor: TimeFactor) {
        self.scene.set_time_factor(factor);
    }

    pub fn time_factor(&self) -> TimeFactor {
        self.scene.time_factor
    }

    pub fn tick(&self) -> u32 {
        self.scene.entities.tick
    }

    /// A new entity, without components, relevant to everybody until it has a place.
    pub fn spawn(&mut self) -> Result<NetId, EntitiesFull> {
        self.scene.entities.spawn()
    }

    /// Generations of all ids' slots, for whoever keeps the world; `restore_ids` takes them.
    pub fn slot_generations(&self) -> impl ExactSizeIterator<Item = u8> {
        self.scene.entities.slot_generations()
    }

    /// Slots without an entity, in the order in which they are given again.
    pub fn free_slots(&self) -> impl ExactSizeIterator<Item = u32> {
        self.scene.entities.free_slots()
    }

    /// Gives entities, which have nothing yet, the ids of `alive`, in a world that never had one; those to come get the ids
    /// that they would have got there. `tick` is the last one that was begun.
    ///
    /// Returns false if the ids contradict each other or are too many. Then the world is of no use.
    #[must_use]
    pub fn restore_ids(
        &mut self,
        tick: u32,
        generations: &[u8],
        free: &[u32],
        alive: impl IntoIterator<Item = NetId>,
    ) -> bool {
        self.begin_tick(tick);
        self.scene.entities.restore(generations, free, alive)
    }

    /// Ends an entity. Returns whether it was there.
    pub fn despawn(&mut self, id: NetId) -> bool {
        self.scene.entities.despawn(id)
    }

    pub fn contains(&self, id: NetId) -> bool {
        self.scene.entities.get(id).is_some()
    }

    /// Where an entity is (m). NaN and infinities count as poison and change nothing.
    pub fn set_place(&mut self, id: NetId, place: [f32; 2]) {
        self.scene.entities.set_place(id, place);
    }

    /// The entity has no place: it is relevant to everybody.
    pub fn clear_place(&mut self, id: NetId) {
        self.scene.entities.set_relevance(id, Relevance::Everywhere);
    }

    /// The entity is relevant to its own client alone, until it has a place again.
    pub fn set_owner_only(&mut self, id: NetId) {
        self.scene.entities.set_relevance(id, Relevance::OwnerOnly);
    }

    /// The entity is also relevant to the clients of this team, wherever they are. None: of no team.
    pub fn set_team(&mut self, id: NetId, team: Option<u16>) {
        self.scene.entities.set_team(id, team.unwrap_or(0));
    }

    /// How urgent an entity's changes are when a client's budget does not do for all. 1 is the usual; 4 waits a quarter
    /// as long. [0.1 to 100] What is outside is moved to the nearer end.
    pub fn set_weight(&mut self, id: NetId, weight: f32) {
        self.scene.entities.set_weight(id, weight);
    }

    /// The entity is told only to clients that `filter_visibility` lets see it, and to its own. At once.
    pub fn set_visibility_filtered(&mut self, id: NetId, filtered: bool) {
        self.scene.entities.set_visibility_filtered(id, filtered);
    }

    /// What changes of the entity this tick goes at once to all who hold it, whatever the distance. For teleports.
    pub fn set_urgent(&mut self, id: NetId) {
        self.scene.entities.hurry(id);
        self.scene.entities.set_urgent(id);
    }

    /// From now on these rules hold. `ticks_per_s` is the world's rate; `views` are those of all its clients. Between
    /// two ticks; allocates, and makes every client's copies current once.
    pub fn set_rules<'a>(
        &mut self,
        rules: &ResolvedRules,
        ticks_per_s: f32,
        views: impl IntoIterator<Item = &'a mut View>,
    ) {
        self.scene.set_radii(rules.radii);
        let Scene { entities, rings, bulk, .. } = &mut self.scene;
        let audited_delay_ticks_max = (ticks_per_s * AUDITED_DELAY_S_MAX) as u32;
        let mut new = Rings::new(rules, entities.schema.every_kind(), audited_delay_ticks_max.max(1));
        // Packets in flight were written by the old ones.
        new.period_max = new.period_max.max(rings.period_max);
        new.set_thinned(rings.is_thinned(), entities.tick);
        *rings = new;
        bulk.outdate();
        entities.set_periods(&rules.kind_period_ticks);
        let Scene { entities, rings, .. } = &self.scene;
        views.into_iter().for_each(|view| view.forget_rings(rings.period_max, entities));
    }

    /// Encodes a component's value, once for everybody. Returns whether its bytes changed. Ids of entities
    /// that are gone are ignored.
    pub fn update<T: Replicate>(&mut self, kind: ComponentIndex, id: NetId, value: &T) -> bool {
        debug_assert_eq!(self.scene.entities.schema.kind_of::<T>(), Some(kind), "the kind is another component's");
        self.scene.entities.update(kind, id, value)
    }

    /// Takes a component away from an entity that lives on.
    pub fn remove(&mut self, kind: ComponentIndex, id: NetId) {
        self.scene.entities.remove(kind, id);
    }

    /// Entities that had a NaN or an infinity in a component or a place this tick, up to 64 of them, for the
    /// server to put into quarantine. What clients get instead is the lower end of the range.
    pub fn poisoned(&self) -> &[NetId] {
        self.scene.entities.poisoned()
    }

    /// The component of the first of [`poisoned`](Self::poisoned); none if that was the entity's place.
    pub fn first_poisoned_component(&self) -> Option<ComponentIndex> {
        self.scene.entities.first_poisoned_component()
    }

    /// The first value this tick that was outside its declared range, and whose it is.
    pub fn first_clamped(&self) -> Option<(ComponentIndex, NetId)> {
        self.scene.entities.first_clamped()
    }

    /// In how many ticks from one in which something changed the last client has had its turn to hear of it (ticks, >= 1),
    /// if nothing is lost and budgets do: turns of far rings, of components that are told of seldom, and of relevant sets.
    pub fn settles_in(&self) -> u32 {
        let Scene { entities, rings, settings, .. } = &self.scene;
        // One that stands is looked at half as often.
        let interest = if is_small(entities) { 1 } else { settings.period_ticks.saturating_mul(2) };
        rings.period_max.saturating_add(entities.period_max() - 1).max(interest).max(1)
    }

    /// The view of a client that comes in. `epoch` tells its stay here from its stays elsewhere; it is in every
    /// message.
    pub fn new_view(&mut self, epoch: u8) -> View {
        let turn = self.turns.iter().position(|taken| !taken).unwrap_or(self.turns.len());
        if turn == self.turns.len() {
            self.turns.push(false);
        }
        self.turns[turn] = true;
        View::new(epoch, turn as u32, &self.scene.entities, &self.scene.settings)
    }

    /// A client leaves. Returns what was counted of it since its counts were last taken.
    pub fn remove_view(&mut self, view: View) -> ReplicationStats {
        if let Some(taken) = self.turns.get_mut(view.turn as usize) {
            *taken = false;
        }
        view.counts
    }

    /// How far clients see where no rule says otherwise.
    pub fn own_radii(&self) -> InterestRadii {
        self.scene.own_radii
    }

    /// How far clients see now, and how much they are told.
    pub fn settings(&self) -> &InterestSettings {
        &self.scene.settings
    }

    /// Whether any entity is visibility-filtered, so that `filter_visibility` has something to ask.
    pub fn has_visibility_filtered(&self) -> bool {
        self.scene.entities.filtered_count > 0
    }

    /// Makes ready for `filter_visibility`. Once per tick, after the changes.
    pub fn prepare_visibility_filter(&mut self) {
        let scene = &mut self.scene;
        scene.finder.rebuild(&mut scene.entities, scene.settings.cell_m);
    }

    /// Asks, for each visibility-filtered entity that this client would otherwise hear of, whether it may see it. Once
    /// per tick, after `prepare_visibility_filter` and before `refresh`; not asked in a tick, it may not. What a client
    /// may not see it is told nothing more of, but for a despawn of what it held. Its own entity is not asked about.
    ///
    /// Costs a look into a grid, about 0.3 us, and the questions.
    pub fn filter_visibility(
        &self,
        view: &mut View,
        scratch: &mut ViewScratch,
        may_see: &mut dyn FnMut(NetId) -> bool,
    ) {
        let scene = &self.scene;
        view.filtered_at = Some(scene.entities.tick);
        if scene.entities.filtered_count == 0 {
            return;
        }
        let ViewScratch { allowed, filtered_near, .. } = scratch;
        allowed.clear();
        view.each_filtered_near(scene, filtered_near, |id| {
            if may_see(id) {
                allowed.push(id.slot);
            }
        });
        view.set_allowed(allowed, &scene.entities);
    }

    /// As `filter_visibility`, with one question about all of the client's candidates: their ids, in slot order, and as
    /// many bits, all 0. Bit `i % 64` of word `i / 64` says whether it may see the one at `i`; bits beyond the last one are
    /// not looked at. Without a candidate nothing is asked. Never allocates once its lists have grown.
    pub fn filter_visibility_in_batch(
        &self,
        view: &mut View,
        scratch: &mut ViewScratch,
        may_see: &mut dyn FnMut(&[NetId], &mut [u64]),
    ) {
        let scene = &self.scene;
        view.filtered_at = Some(scene.entities.tick);
        if scene.entities.filtered_count == 0 {
            return;
        }
        let ViewScratch { allowed, filtered_near, candidates, answers, .. } = scratch;
        allowed.clear();
        candidates.clear();
        answers.clear();
        view.each_filtered_near(scene, filtered_near, |id| candidates.push(id));
        answers.resize(candidates.len().div_ceil(64), 0);
        if !candidates.is_empty() {
            may_see(candidates, answers);
        }
        let is_allowed = |at: &usize| answers[at / 64] >> (at % 64) & 1 == 1;
        allowed.extend((0..candidates.len()).filter(is_allowed).map(|at| candidates[at].slot));
        view.set_allowed(allowed, &scene.entities);
    }

    /// Has the updates of this tick put together in `buffers`, and at its end gives them back: a world needs none between
    /// two ticks. Before the tick's first `settle`, and after its last message was written.
    pub fn swap_buffers(&mut self, buffers: &mut UpdateBuffers) {
        std::mem::swap(&mut self.scene.bulk, &mut buffers.0);
        self.scene.bulk.outdate();
    }

    /// Ends the changes of the tick, before any view is refreshed. Cheap when nothing has changed since it was last
    /// called.
    pub fn settle(&mut self) {
        self.scene.prepare();
        let scene = &mut self.scene;
        scene.finder.rebuild(&mut scene.entities, scene.settings.cell_m);
    }

    /// Whether it is a client's turn to have its relevant set rebuilt; what cannot wait has been looked at then. Once
    /// per tick, after `settle`.
    pub fn wants_refresh(&self, view: &mut View) -> bool {
        let entities = &self.scene.entities;
        if entities.filtered_count > 0 && view.filtered_at != Some(entities.tick) {
            view.set_allowed(&[], entities);
        }
        view.wants_refresh(&self.scene)
    }

    /// Rebuilds a client's relevant set, if it is its turn. Once per tick, after `settle`.
    pub fn refresh(&self, view: &mut View, scratch: &mut ViewScratch) {
        if self.wants_refresh(view) {
            view.refresh(&self.scene, &mut scratch.found);
        }
    }

    /// Writes the next message of this tick for a client, at most `out` long, and returns its length; 0 when
    /// there is nothing (more) to say. `input` is the number of the client's last input that this tick took
    /// in; when it is new it is told even if nothing else is, and where the client's own entity is new, with that. What
    /// the message holds is counted in `traffic`. After `settle`.
    pub fn write_snapshot(&self, view: &mut View, traffic: &mut Traffic, input: u16, out: &mut [u8]) -> usize {
        view.write_snapshot(&self.scene, traffic, input, out)
    }

    /// Names the packet that the message written last for this client went into. Without it the message
    /// counts as lost.
    pub fn sent(&self, view: &mut View, packet: u16) {
        view.sent(packet, &self.scene);
    }

    /// A packet counts as lost: what it carried last is owed again. If it arrives all the same, no harm is done.
    pub fn lost(&self, view: &mut View, packet: u16) {
        view.lost(packet, &self.scene);
    }

    /// Whether a client is told of an entity: it is relevant to it, and no visibility filter denies it. As of the last
    /// `refresh` for what came; what died, became owner-only or is denied counts at once.
    pub fn hears(&self, view: &View, id: NetId) -> bool {
        view.hears(id, &self.scene.entities)
    }

    /// Where an entity is (m), if it has a place.
    pub fn place_of(&self, id: NetId) -> Option<[f32; 2]> {
        match self.scene.entities.get(id)?.relevance {
            Relevance::At(place) => Some(place),
            Relevance::Everywhere | Relevance::OwnerOnly => None,
        }
    }

    /// Where a client looks from (m), if it looks from anywhere.
    pub fn place_of_view(&self, view: &View) -> Option<[f32; 2]> {
        view.look_from(&self.scene.entities)
    }

    /// Appends an audit sample (`view::audit_sample`) about one entity to `out`; false when there is none to send. Call
    /// it before the tick's `settle`.
    pub fn write_audit_sample(&mut self, view: &mut View, traffic: &mut Traffic, out: &mut Vec<u8>) -> bool {
        self.write_audit_sample_from(view, traffic, &mut |id, entities| entities.slots[id.slot as usize].present, out)
    }

    /// As `write_audit_sample`, with the exact values read from `source` now: what replication missed is then not
    /// missed by the audit sample.
    pub(crate) fn write_audit_sample_from(
        &mut self,
        view: &mut View,
        traffic: &mut Traffic,
        source: &mut ExactSource<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let begin = out.len();
        let written = view.write_audit_sample(&mut self.scene, source, out);
        if written {
            let bytes = (out.len() - begin) as u64;
            traffic.add_overhead(Overhead::AuditSample, Counts { packets: 1, bytes, updates: 1 });
        }
        written
    }

    /// Test switch: breaks the encoder, to show that clients notice.
    pub fn set_fault(&mut self, fault: Fault) {
        self.scene.entities.fault = fault;
        // Some are faults of what interest knows.
        self.scene.entities.arrangement += 1;
    }

    #[cfg(test)]
    pub(crate) fn entities_count(&self) -> usize {
        self.scene.entities.alive_count()
    }

    /// Counts since the last call, without those of the views (`View::take_counts`).
    pub fn take_stats(&mut self) -> ReplicationStats {
        std::mem::take(&mut self.scene.entities.counts)
    }

    /// For tests and simulations, after every step.
    ///
    /// # Panics
    /// If what is told contradicts itself.
    pub fn check(&self) {
        self.scene.entities.check();
    }

    /// Bytes held on the heap, without the views.
    pub fn heap_bytes(&self) -> usize {
        self.scene.heap_bytes() + self.turns.capacity()
    }
}

/// One thread changes it, and then many read it at once.
const _: fn() = || {
    fn goes_anywhere<T: Send + Sync + 'static>() {}
    goes_anywhere::<WorldReplication>();
    goes_anywhere::<View>();
    goes_anywhere::<ViewScratch>();
};

#[cfg(test)]
mod tests;
