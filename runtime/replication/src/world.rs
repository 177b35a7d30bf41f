//! World replication: everything that one world has to tell, and to whom.
//!
//! Per tick, on the world's own thread and in this order: `begin_tick`; `spawn`, `update`, `remove`,
//! `set_place`, `despawn` for what changed; `refresh_interest`; and for each client `write_snapshot` until it
//! returns 0, with `sent` naming the packet that each message went into. `acked` and `lost` come whenever
//! the connection knows. Several threads share out the clients with `lend` (see `share`).
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

use throng_metrics::Counters;
use throng_platform::prefetch;

use crate::{
    entities::{EntitiesFull, Fault, NetId, Standing},
    interest::{Found, InterestSettings},
    listeners::Listeners,
    replicate::Replicate,
    rings::Rings,
    rules::ResolvedRules,
    scene::Scene,
    schema::{KindId, Schema},
    share::Share,
    stats::ReplicationStats,
    traffic::{Counts, Overhead, Traffic},
    truth::ExactSource,
    view::View,
};

/// Most slots a world may have; also the highest slot a client believes.
pub const SLOTS_MAX: u32 = 1 << 20;

/// A client of one world.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId(pub(crate) u32);

impl ViewId {
    /// Small and dense: the numbers of clients that left are given again.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A client's grace in seconds is 2; what a truth tells must be there within half of it.
const TRUTH_S_MAX: f32 = 1.0;

/// The replicated side of one world. No ECS inside (see `ecs`), no clock, no sockets.
pub struct WorldReplication {
    /// Empty while it is lent.
    scene: Scene,
    /// The scene while it is lent, else an empty one; made when it is first needed.
    lent: Option<Arc<Scene>>,
    shares_out: usize,
    /// Shares that came back, for their buffers.
    spare_shares: Vec<Share>,
    views: Vec<Option<Box<View>>>,
    found: Found,
    listeners: Listeners,
    /// Empty between calls of `conceal`.
    allowed: Vec<u32>,
    concealed_near: Vec<u32>,
    concealed_at: Option<u32>,
    stats: ReplicationStats,
    traffic: Traffic,
}

impl WorldReplication {
    pub fn new(schema: Arc<Schema>, settings: InterestSettings) -> Self {
        let settings = InterestSettings { entities_max: settings.entities_max.clamp(1, SLOTS_MAX), ..settings };
        let traffic = Traffic::new(&schema);
        Self {
            scene: Scene::new(schema, settings),
            lent: None,
            shares_out: 0,
            spare_shares: Vec::new(),
            views: Vec::new(),
            found: Found::default(),
            listeners: Listeners::default(),
            allowed: Vec::new(),
            concealed_near: Vec::new(),
            concealed_at: None,
            stats: ReplicationStats::default(),
            traffic,
        }
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.scene().entities.schema
    }

    /// Begins a tick. Ticks must rise; changes made before are no longer this tick's.
    ///
    /// # Panics
    /// If a share has not been given back: the program's own mistake.
    pub fn begin_tick(&mut self, tick: u32) {
        assert_eq!(self.shares_out, 0, "every share is given back before the next tick");
        self.scene.entities.begin_tick(tick);
    }

    pub fn tick(&self) -> u32 {
        self.scene().entities.tick
    }

    /// A new entity, without components, relevant to everybody until it has a place.
    pub fn spawn(&mut self) -> Result<NetId, EntitiesFull> {
        self.scene.entities.spawn()
    }

    /// Ends an entity. Returns whether it was there.
    pub fn despawn(&mut self, id: NetId) -> bool {
        self.scene.entities.despawn(id)
    }

    pub fn contains(&self, id: NetId) -> bool {
        self.scene().entities.get(id).is_some()
    }

    /// Where an entity is (m). NaN and infinities count as poison and change nothing.
    pub fn set_place(&mut self, id: NetId, place: [f32; 2]) {
        self.scene.entities.set_place(id, place);
    }

    /// The entity has no place: it is relevant to everybody.
    pub fn clear_place(&mut self, id: NetId) {
        self.scene.entities.set_standing(id, Standing::Everywhere);
    }

    /// The entity is relevant to its own client alone, until it has a place again.
    pub fn hide(&mut self, id: NetId) {
        self.scene.entities.set_standing(id, Standing::Hidden);
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

    /// The entity is told only to clients that `conceal` lets see it, and to its own. At once.
    pub fn set_concealed(&mut self, id: NetId, concealed: bool) {
        self.scene.entities.set_concealed(id, concealed);
    }

    /// What changes of the entity this tick goes at once to all who hold it, whatever the distance. For teleports.
    pub fn set_urgent(&mut self, id: NetId) {
        self.scene.entities.hurry(id);
        self.scene.entities.set_urgent(id);
    }

    /// From now on these rules hold. `ticks_per_s` is the world's rate. Between two ticks; allocates, and makes every
    /// client's copies current once.
    pub fn set_rules(&mut self, rules: &ResolvedRules, ticks_per_s: f32) {
        let Scene { entities, rings, bulk, .. } = &mut self.scene;
        let truth_ticks_max = (ticks_per_s * TRUTH_S_MAX) as u32;
        let mut new = Rings::new(rules, entities.schema.every_kind(), truth_ticks_max.max(1));
        // Packets in flight were written by the old ones.
        new.period_max = new.period_max.max(rings.period_max);
        *rings = new;
        bulk.outdate();
        entities.set_periods(&rules.kind_period_ticks);
        let Scene { entities, rings, .. } = &self.scene;
        self.views.iter_mut().flatten().for_each(|view| view.forget_rings(rings.period_max, entities));
    }

    /// Encodes a component's value, once for everybody. Returns whether its bytes changed. Ids of entities
    /// that are gone are ignored.
    pub fn update<T: Replicate>(&mut self, kind: KindId, id: NetId, value: &T) -> bool {
        debug_assert_eq!(self.scene.entities.schema.kind_of::<T>(), Some(kind), "the kind is another component's");
        self.scene.entities.update(kind, id, value)
    }

    /// Takes a component away from an entity that lives on.
    pub fn remove(&mut self, kind: KindId, id: NetId) {
        self.scene.entities.remove(kind, id);
    }

    /// Entities that had a NaN or an infinity in a component or a place this tick, up to 64 of them, for the
    /// server to put into quarantine. What clients get instead is the lower end of the range.
    pub fn poisoned(&self) -> &[NetId] {
        self.scene.entities.poisoned()
    }

    /// A client comes in. `epoch` tells its stay here from its stays elsewhere; it is in every message.
    pub fn add_client(&mut self, epoch: u8) -> ViewId {
        let view = Box::new(View::new(epoch, &self.scene.entities, &self.scene.settings));
        let index = self.views.iter().position(Option::is_none).unwrap_or(self.views.len());
        if index == self.views.len() {
            self.views.push(None);
        }
        self.views[index] = Some(view);
        self.listeners.outdate();
        ViewId(index as u32)
    }

    pub fn remove_client(&mut self, view: ViewId) {
        if let Some(counts) = self.views.get_mut(view.0 as usize).and_then(Option::take).map(|view| view.counts) {
            self.stats.merge(&counts);
            self.listeners.outdate();
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

    /// The client hears of all entities of this team, too, wherever they are. None: it is in no team.
    pub fn set_view_team(&mut self, view: ViewId, team: Option<u16>) {
        if let Some(view) = self.view_mut(view) {
            view.team = team.unwrap_or(0);
            view.refresh_now = true;
        }
    }

    /// What this client may be sent per tick, in place of the settings' budget. (bytes)
    pub fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32) {
        if let Some(view) = self.view_mut(view) {
            view.budget_bytes_per_tick = bytes_per_tick;
        }
    }

    /// How far clients see, and how much they are told.
    pub fn settings(&self) -> &InterestSettings {
        &self.scene().settings
    }

    /// Whether any entity is concealed, so that `conceal` has something to ask.
    pub fn has_concealed(&self) -> bool {
        self.scene().entities.concealed_count > 0
    }

    /// Asks, for each client and each concealed entity that it would otherwise hear of, whether it may see it. Once per
    /// tick, after the changes and before `refresh_interest`; not asked in a tick, it may not. Who may not see an entity
    /// is told nothing more of it, but for a despawn of what it held. The client's own entity is not asked about.
    ///
    /// Costs a look into a grid for each client, about 0.3 us, and the questions.
    pub fn conceal(&mut self, may_see: &mut dyn FnMut(ViewId, NetId) -> bool) {
        let Self { scene, views, allowed, concealed_near, .. } = self;
        self.concealed_at = Some(scene.entities.tick);
        if scene.entities.concealed_count == 0 {
            return;
        }
        scene.finder.rebuild(&mut scene.entities, scene.settings.cell_m);
        for (index, view) in views.iter_mut().enumerate() {
            let Some(view) = view else { continue };
            allowed.clear();
            scene.each_concealed_near(view, concealed_near, |id| {
                if may_see(ViewId(index as u32), id) {
                    allowed.push(id.slot);
                }
            });
            view.set_allowed(allowed, &scene.entities);
        }
    }

    /// Rebuilds the relevant sets whose turn it is. Once per tick, after the changes.
    pub fn refresh_interest(&mut self) {
        self.settle_scene();
        let Self { scene, views, found, .. } = self;
        for (index, view) in views.iter_mut().enumerate() {
            if let Some(view) = view {
                view.refresh(index as u32, scene, found);
            }
        }
    }

    /// Rebuilds one client's relevant set, if it is its turn: its part of `refresh_interest`.
    pub fn refresh(&mut self, view: ViewId) {
        self.settle_scene();
        let Self { scene, views, found, .. } = self;
        if let Some(entry) = views.get_mut(view.index()).and_then(Option::as_deref_mut) {
            entry.refresh(view.0, scene, found);
        }
    }

    /// As `Share::prefetch`.
    pub fn prefetch(&self, view: ViewId) {
        if let Some(Some(view)) = self.views.get(view.index()) {
            prefetch::value(&**view);
        }
    }

    /// As `Share::prefetch_lists`.
    pub fn prefetch_lists(&self, view: ViewId) {
        if let Some(Some(view)) = self.views.get(view.index()) {
            view.prefetch_lists();
        }
    }

    /// Takes in what changed, before any view looks at it.
    fn settle_scene(&mut self) {
        if self.scene.entities.concealed_count > 0 && self.concealed_at != Some(self.scene.entities.tick) {
            self.conceal(&mut |_, _| false);
        }
        self.scene.prepare();
        let scene = &mut self.scene;
        scene.finder.rebuild(&mut scene.entities, scene.settings.cell_m);
    }

    /// Writes the next message of this tick for a client, at most `out` long, and returns its length; 0 when
    /// there is nothing (more) to say. `input` is the number of the client's last input that this tick took
    /// in; when it is new it is told even if nothing else is.
    pub fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
        let Self { scene, views, traffic, .. } = self;
        let Some(view) = views.get_mut(view.0 as usize).and_then(Option::as_deref_mut) else { return 0 };
        scene.prepare();
        view.write_snapshot(scene, traffic, input, out)
    }

    /// Lends some clients, for another thread to do what is left of this tick for them. Clients that are not here are
    /// left out. Until the last share is back (`give_back`) nothing else may be asked of the world but what only
    /// reads. Does not allocate once as many shares as now have been made. After the changes of the tick.
    pub fn lend(&mut self, views: &[ViewId]) -> Share {
        if self.shares_out == 0 {
            self.settle_scene();
            let empty = || Arc::new(Scene::new(self.scene.entities.schema.clone(), self.scene.settings.clone()));
            let lent = self.lent.get_or_insert_with(empty);
            std::mem::swap(&mut self.scene, Arc::get_mut(lent).expect("no share is out"));
        }
        self.shares_out += 1;
        let mut share = self.spare_shares.pop().unwrap_or_default();
        let lent = self.lent.as_ref().expect("it was lent above").clone();
        let taken = views.iter().filter_map(|id| Some((*id, self.views.get_mut(id.0 as usize)?.take()?)));
        share.fill(lent, taken);
        share
    }

    /// Takes a share back. When it is the last, the world can be changed again.
    pub fn give_back(&mut self, mut share: Share) {
        if let Some(traffic) = &mut share.traffic {
            self.traffic.absorb(traffic);
        }
        for (id, view) in share.empty() {
            self.views[id.0 as usize] = Some(view);
        }
        self.spare_shares.push(share);
        self.shares_out -= 1;
        if self.shares_out == 0 {
            let lent = self.lent.as_mut().and_then(Arc::get_mut).expect("every share has let go of the scene");
            std::mem::swap(&mut self.scene, lent);
        }
    }

    fn scene(&self) -> &Scene {
        self.lent.as_deref().filter(|_| self.shares_out > 0).unwrap_or(&self.scene)
    }

    /// Names the packet that the message written last for this client went into. Without it the message
    /// counts as lost.
    pub fn sent(&mut self, view: ViewId, packet: u16) {
        let Self { scene, views, .. } = self;
        if let Some(view) = views.get_mut(view.0 as usize).and_then(Option::as_deref_mut) {
            view.sent(packet, scene);
        }
    }

    /// Clients that are here, by id.
    pub fn views(&self) -> impl Iterator<Item = ViewId> + '_ {
        let here = self.views.iter().enumerate().filter(|(_, view)| view.is_some());
        here.map(|(index, _)| ViewId(index as u32))
    }

    /// Whether a client is told of an entity: it is relevant to it, and not concealed from it. As of the last
    /// `refresh_interest` for what came; what died, was hidden or is denied counts at once.
    pub fn hears(&self, view: ViewId, id: NetId) -> bool {
        let view = self.views.get(view.0 as usize).and_then(Option::as_deref);
        view.is_some_and(|view| view.hears(id, &self.scene.entities))
    }

    /// Appends the clients that look from within `range_m` of a place. About 0.2 us with 50 near; the first question of a
    /// tick sorts all clients by place.
    pub fn views_near(&mut self, place: [f32; 2], range_m: f32, out: &mut Vec<ViewId>) {
        let Self { scene, views, listeners, .. } = self;
        listeners.build(views, &scene.entities, scene.settings.cell_m);
        listeners.near(place, range_m, out);
    }

    /// Appends the clients that hear of an entity and look from within `range_m` of it; all that hear of it without a
    /// range, or if it has no place. That is a look at every client.
    pub fn views_that_hear(&mut self, id: NetId, range_m: Option<f32>, out: &mut Vec<ViewId>) {
        let begin = out.len();
        let standing = self.scene.entities.get(id).map(|row| row.standing);
        match (range_m, standing) {
            (Some(range_m), Some(Standing::At(place))) => self.views_near(place, range_m, out),
            (_, None) => return,
            _ => out.extend(self.views()),
        }
        let mut kept = begin;
        for index in begin..out.len() {
            if self.hears(out[index], id) {
                out[kept] = out[index];
                kept += 1;
            }
        }
        out.truncate(kept);
    }

    /// Appends the clients of a team. A look at every client.
    pub fn views_of_team(&self, team: u16, out: &mut Vec<ViewId>) {
        let is_of_team = |view: &View| view.team == team && team != 0;
        let views = self.views.iter().enumerate();
        let of_team = views.filter(|(_, view)| view.as_deref().is_some_and(is_of_team));
        out.extend(of_team.map(|(index, _)| ViewId(index as u32)));
    }

    pub fn acked(&mut self, view: ViewId, packet: u16) {
        if let Some(view) = self.view_mut(view) {
            view.acked(packet);
        }
    }

    /// A packet counts as lost: what it carried last is owed again. If it arrives all the same, no harm is done.
    pub fn lost(&mut self, view: ViewId, packet: u16) {
        let Self { scene, views, .. } = self;
        if let Some(view) = views.get_mut(view.0 as usize).and_then(Option::as_deref_mut) {
            view.lost(packet, scene);
        }
    }

    /// Appends a truth (see `truth`) about one entity to `out`; false when there is none to tell.
    pub fn write_truth(&mut self, view: ViewId, out: &mut Vec<u8>) -> bool {
        self.write_truth_from(view, &mut |id, entities| entities.slots[id.slot as usize].present, out)
    }

    /// As `write_truth`, with the exact values read from `source` now: what replication missed is then not missed by the truth.
    pub(crate) fn write_truth_from(&mut self, view: ViewId, source: &mut ExactSource<'_>, out: &mut Vec<u8>) -> bool {
        let Self { scene, views, traffic, .. } = self;
        let Some(view) = views.get_mut(view.0 as usize).and_then(Option::as_deref_mut) else {
            return false;
        };
        let begin = out.len();
        let written = view.write_truth(scene, source, out);
        if written {
            let bytes = (out.len() - begin) as u64;
            traffic.add_overhead(Overhead::Truth, Counts { packets: 1, bytes, updates: 1 });
        }
        written
    }

    /// Test switch: breaks the encoder, to show that clients notice.
    pub fn set_fault(&mut self, fault: Fault) {
        self.scene.entities.fault = fault;
        // Some are faults of what interest knows.
        self.scene.entities.arrangement += 1;
    }

    /// Ids that a client should hold now; for tests and tools. May be `period_ticks` old.
    pub fn relevant(&self, view: ViewId) -> impl Iterator<Item = NetId> + '_ {
        let view = self.views.get(view.0 as usize).and_then(Option::as_deref);
        let entries = view.map_or(&[][..], |view| &view.entries);
        entries
            .iter()
            .filter(|entry| entry.is_relevant() && self.scene().entities.get(entry.id()).is_some())
            .map(|entry| entry.id())
    }

    /// Where an entity is (m), if it has a place.
    pub fn place_of(&self, id: NetId) -> Option<[f32; 2]> {
        match self.scene().entities.get(id)?.standing {
            Standing::At(place) => Some(place),
            Standing::Everywhere | Standing::Hidden => None,
        }
    }

    pub fn entities_count(&self) -> usize {
        self.scene().entities.alive_count()
    }

    /// What went out, by kind and cause, and what others count with it: empty it with `Traffic::take`.
    pub fn traffic_mut(&mut self) -> &mut Traffic {
        &mut self.traffic
    }

    /// Counts since the last call.
    pub fn take_stats(&mut self) -> ReplicationStats {
        for view in self.views.iter_mut().flatten() {
            self.stats.merge(&std::mem::take(&mut view.counts));
        }
        self.stats.merge(&std::mem::take(&mut self.scene.entities.counts));
        std::mem::take(&mut self.stats)
    }

    /// Bytes held on the heap.
    pub fn heap_bytes(&self) -> usize {
        let views = self.views.iter().flatten().map(|view| size_of::<View>() + view.heap_bytes());
        let spare = self.spare_shares.iter().map(Share::heap_bytes).sum::<usize>();
        self.scene.heap_bytes()
            + self.traffic.heap_bytes()
            + self.lent.as_ref().map_or(0, |lent| size_of::<Scene>() + lent.heap_bytes())
            + spare
            + self.found.heap_bytes()
            + self.listeners.heap_bytes()
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

#[cfg(test)]
mod tests;
