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
    /// Entries of clients' sets that were looked at one by one. In a world in which nothing happens, none are.
    pub entries_visited: u64,
    /// Acknowledgements and losses of packets that carried no snapshot, or were answered before. They change nothing.
    pub answers_unknown: u64,
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
            self.stats.add(counts);
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
        scene.finder.rebuild(&scene.entities, scene.settings.cell_m);
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

    /// Takes in what changed, before any view looks at it.
    fn settle_scene(&mut self) {
        if self.scene.entities.concealed_count > 0 && self.concealed_at != Some(self.scene.entities.tick) {
            self.conceal(&mut |_, _| false);
        }
        self.scene.prepare();
        self.scene.finder.rebuild(&self.scene.entities, self.scene.settings.cell_m);
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
            self.stats.add(std::mem::take(&mut view.counts));
        }
        let counts = std::mem::take(&mut self.scene.entities.counts);
        self.stats.components_encoded += counts.encoded;
        self.stats.poisoned += counts.poisoned;
        self.stats.clamped += counts.clamped;
        self.stats.spawns_refused += counts.refused;
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

impl ReplicationStats {
    fn add(&mut self, counts: crate::view::ViewCounts) {
        self.entity_updates += counts.records;
        self.spawns += counts.spawns;
        self.despawns += counts.despawns;
        self.snapshots += counts.snapshots;
        self.snapshot_bytes += counts.bytes;
        self.truths += counts.truths;
        self.owed_again += counts.owed_again;
        self.entries_visited += counts.entries_visited;
        self.answers_unknown += counts.answers_unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rules::{KindRule, ReplicationRules, Tier},
        testing::{Health, pose, schema},
    };

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
        (world, views)
    }

    /// Rules with tiers of 1, 2 and 4 ticks and a component that is heard 6 m away.
    fn rules() -> ResolvedRules {
        let tier = |to_m, updates_per_s| Tier { to_m, updates_per_s };
        let rules = ReplicationRules {
            tiers: vec![tier(3.0, 20.0), tier(5.0, 10.0), tier(7.0, 5.0)],
            components: vec![KindRule::default(), KindRule { range_m: Some(6.0), updates_per_s_max: None }],
            keepalive_s: 1.0,
            ..ReplicationRules::default()
        };
        rules.resolved(20.0)
    }

    /// Everything a crowd is sent in 60 ticks, some of it lost, with its clients in so many parts; 0: all by the world itself.
    fn told_to_a_crowd(parts: usize) -> (Vec<(ViewId, Vec<u8>)>, crate::traffic::Counts) {
        fn serve(share: &mut Share, tick: u32) -> Vec<(ViewId, Vec<u8>)> {
            let ids: Vec<_> = share.ids().collect();
            let mut messages = Vec::new();
            for id in ids {
                let mut out = [0; 200];
                share.refresh(id);
                share.acked(id, tick as u16 - 1);
                (1..=3).for_each(|part| share.lost(id, tick as u16 - 1 + part * 1000));
                for part in 0..4 {
                    let len = share.write_snapshot(id, 0, &mut out);
                    share.sent(id, tick as u16 + part * 1000);
                    messages.push((id, out[..len].to_vec()));
                }
            }
            messages
        }
        let (mut world, views) = crowd();
        world.set_rules(&rules(), 20.0);
        let mut all = Vec::new();
        for tick in 1..60 {
            world.begin_tick(tick);
            for slot in 0..40 {
                let x = slot as f32 + ((tick * 3 + slot * 13) % 40).abs_diff(20) as f32 * 0.2;
                let id = NetId { slot, generation: 1 };
                world.set_place(id, [x, 0.0]);
                world.update(KindId(0), id, &pose(x));
                world.update(KindId(1), id, &Health { points: tick as u16 / 7 });
            }
            if parts == 0 {
                world.refresh_interest();
                let mut share = world.lend(&views);
                all.extend(serve(&mut share, tick));
                world.give_back(share);
                continue;
            }
            let lent: Vec<_> = views.chunks(views.len().div_ceil(parts)).map(|part| world.lend(part)).collect();
            let serving =
                lent.into_iter().map(|mut share| std::thread::spawn(move || (serve(&mut share, tick), share)));
            for thread in serving.collect::<Vec<_>>() {
                let (messages, share) = thread.join().unwrap();
                all.extend(messages);
                world.give_back(share);
            }
            world.check();
        }
        (all, world.traffic_mut().total())
    }

    /// Any number of threads writes the same bytes.
    #[test]
    fn shares_on_several_threads_write_what_one_writes() {
        let (alone, counts) = told_to_a_crowd(0);
        let bytes: usize = alone.iter().map(|(_, message)| message.len()).sum();
        assert_eq!(counts.bytes, bytes as u64);
        let mut hasher = crate::state_hash::StateHasher::new(0, 0);
        alone.iter().for_each(|(_, message)| hasher.write_bytes(message));
        // Faster but different is not faster: whoever changes this number says why.
        assert_eq!(hasher.finish(), 1905508069749457885);
        assert!(bytes > 100_000, "{bytes} bytes");
        for parts in [1, 2, 8] {
            assert!(told_to_a_crowd(parts) == (alone.clone(), counts), "in {parts} parts");
        }
    }

    /// One client at 0 and entities at these places, known to it.
    fn stage(places: &[f32], settings: InterestSettings) -> (WorldReplication, ViewId, Vec<NetId>) {
        let mut world = WorldReplication::new(schema(), settings);
        let view = world.add_client(0);
        world.set_view(view, [0.0; 2]);
        world.begin_tick(1);
        let ids = places.iter().map(|x| {
            let id = world.spawn().unwrap();
            world.set_place(id, [*x, 0.0]);
            world.update(KindId(0), id, &pose(0.0));
            world.update(KindId(1), id, &Health { points: 0 });
            id
        });
        let ids: Vec<_> = ids.collect();
        world.refresh_interest();
        let mut out = [0; 8000];
        assert!(world.write_snapshot(view, 0, &mut out) > 0);
        world.sent(view, 1);
        world.acked(view, 1);
        (world, view, ids)
    }

    /// What a client is told in a tick, as replicas make of it.
    fn tell(world: &mut WorldReplication, view: ViewId, replicas: &mut crate::Replicas) -> usize {
        world.refresh_interest();
        let mut out = [0; 8000];
        let len = world.write_snapshot(view, 0, &mut out);
        world.sent(view, world.tick() as u16);
        world.acked(view, world.tick() as u16);
        if len > 0 {
            replicas.apply(&out[..len]).unwrap();
        }
        len
    }

    #[test]
    fn entities_are_told_as_often_as_their_tier_says() {
        let (mut world, view, ids) = stage(&[1.0, 4.0, 6.5], InterestSettings::default());
        world.set_rules(&rules(), 20.0);
        let mut told = [[0; 2]; 3];
        let (mut entities_told, mut out) = (0, [0; 1200]);
        // The rules are new: everything is told once.
        for tick in 2..202 {
            world.begin_tick(tick);
            for id in &ids {
                world.update(KindId(0), *id, &pose(tick as f32 * 0.1));
                world.update(KindId(1), *id, &Health { points: tick as u16 });
            }
            world.refresh_interest();
            let len = world.write_snapshot(view, 0, &mut out);
            world.sent(view, tick as u16);
            world.acked(view, tick as u16);
            for (id, mask) in crate::trial::masks(&out[..len]) {
                entities_told += 1;
                told[id as usize][0] += u32::from(mask & 1 != 0);
                told[id as usize][1] += u32::from(mask & 2 != 0);
            }
        }
        let near = |count: u32, expect: u32| count.abs_diff(expect) <= 2;
        assert!(near(told[0][0], 200) && near(told[1][0], 100) && near(told[2][0], 50), "{told:?}");
        // The last is beyond the range of its health: once a second.
        assert!(near(told[0][1], 200) && near(told[1][1], 100) && near(told[2][1], 10), "{told:?}");
        assert!(entities_told < 370);
    }

    #[test]
    fn what_is_urgent_goes_at_once_and_travel_brings_what_waited() {
        let (mut world, view, ids) = stage(&[6.5, 6.6, 6.7, 6.8, 6.9], InterestSettings::default());
        world.set_rules(&rules(), 20.0);
        let masks = |world: &mut WorldReplication| {
            let mut out = [0; 1200];
            world.refresh_interest();
            let len = world.write_snapshot(view, 0, &mut out);
            world.sent(view, world.tick() as u16);
            world.acked(view, world.tick() as u16);
            crate::trial::masks(&out[..len])
        };
        // The keepalive has told what was told before.
        for tick in 2..40 {
            world.begin_tick(tick);
            masks(&mut world);
        }
        for tick in 40..60 {
            world.begin_tick(tick);
            world.update(KindId(0), ids[3], &pose(tick as f32));
            world.set_urgent(ids[3]);
            assert_eq!(masks(&mut world), [(3, 1)], "in tick {tick}");
        }
        world.begin_tick(60);
        ids.iter().for_each(|id| _ = world.update(KindId(0), *id, &pose(1.0)));
        assert!(masks(&mut world).len() < 4);
        world.begin_tick(61);
        world.set_view(view, [50.0, 0.0]);
        assert_eq!(masks(&mut world).len(), 5);
    }

    #[test]
    fn who_is_denied_leaves_at_once_and_comes_back_at_once() {
        // More than a small world: sets are rebuilt in turns.
        let places: Vec<f32> = (0..100).map(|index| index as f32 * 0.1).collect();
        let settings =
            InterestSettings { period_ticks: 50, budget_bytes_per_tick: 65_536, ..InterestSettings::default() };
        let (mut world, view, ids) = stage(&places, settings);
        let mut replicas = crate::Replicas::new(schema());
        let mut asked = 0;
        for (tick, may_see) in (2..).zip([true, true, false, false, true, false, true]) {
            world.begin_tick(tick);
            if tick == 2 {
                // From here on the replicas listen: everything is told again.
                ids.iter().for_each(|id| world.remove(KindId(1), *id));
            }
            world.set_concealed(ids[7], true);
            world.update(KindId(0), ids[7], &pose(tick as f32));
            world.conceal(&mut |_, id| {
                assert_eq!(id, ids[7]);
                asked += 1;
                may_see
            });
            tell(&mut world, view, &mut replicas);
            assert_eq!(replicas.contains(ids[7]), may_see, "in tick {tick}");
            assert_eq!(world.hears(view, ids[7]), may_see);
            let mut truth = Vec::new();
            (0..200).for_each(|_| _ = world.write_truth(view, &mut truth));
        }
        assert_eq!(asked, 7);
        // Not asked in a tick: denied.
        world.begin_tick(9);
        tell(&mut world, view, &mut replicas);
        assert!(!replicas.contains(ids[7]) && replicas.contains(ids[8]));
        // Nobody conceals it any more.
        for tick in 10..110 {
            world.begin_tick(tick);
            world.set_concealed(ids[7], false);
            tell(&mut world, view, &mut replicas);
        }
        assert!(replicas.contains(ids[7]));
        world.begin_tick(111);
        world.hide(ids[7]);
        tell(&mut world, view, &mut replicas);
        assert!(!replicas.contains(ids[7]));
    }

    /// A packet is given up between two messages of a tick: what it carried is owed again, and this tick's change is not
    /// lost over it.
    #[test]
    fn a_loss_between_two_messages_of_a_tick_loses_nothing_else() {
        let places: Vec<f32> = (0..60).map(|index| index as f32 * 0.1).collect();
        let settings =
            InterestSettings { packets_in_flight_max: 1, budget_bytes_per_tick: 65_536, ..InterestSettings::default() };
        let (mut world, view, ids) = stage(&places, settings);
        let mut out = [0; 100];
        world.begin_tick(2);
        world.update(KindId(1), ids[50], &Health { points: 5 });
        world.refresh_interest();
        assert!(world.write_snapshot(view, 0, &mut out) > 0);
        world.sent(view, 2);
        let mut masks = 0;
        for tick in 3..6 {
            world.begin_tick(tick);
            if tick == 3 {
                ids.iter().for_each(|id| _ = world.update(KindId(0), *id, &pose(9.0)));
            }
            world.refresh_interest();
            for part in 0..20 {
                let len = world.write_snapshot(view, 0, &mut out);
                world.sent(view, tick as u16 * 20 + part);
                let of_50 = crate::trial::masks(&out[..len]).into_iter().filter(|(slot, _)| *slot == 50);
                of_50.for_each(|(_, mask)| masks |= mask);
                world.acked(view, tick as u16 * 20 + part);
            }
        }
        assert_eq!(masks, 0b11);
    }

    /// What was told at an entity's turn far away, and lost, is owed again when the loss is known after it has come near.
    #[test]
    fn a_loss_is_made_good_whatever_ring_the_entity_is_in_by_then() {
        let (mut world, view, ids) = stage(&[5.0], InterestSettings::default());
        let tier = |to_m, updates_per_s| Tier { to_m, updates_per_s };
        let tiers = vec![tier(3.0, 20.0), tier(9.0, 2.5)];
        world.set_rules(&ReplicationRules { tiers, ..ReplicationRules::default() }.resolved(20.0), 20.0);
        let mut told = Vec::new();
        let mut out = [0; 1200];
        for tick in 2..30 {
            world.begin_tick(tick);
            match tick {
                9 => _ = world.update(KindId(1), ids[0], &Health { points: 5 }),
                17 => world.set_place(ids[0], [1.0, 0.0]),
                _ => {}
            }
            world.refresh_interest();
            if tick == 17 {
                world.lost(view, 16);
            }
            let len = world.write_snapshot(view, 0, &mut out);
            if crate::trial::masks(&out[..len]) == [(0, 2)] {
                told.push(tick);
            }
            world.sent(view, tick as u16);
            if tick != 16 {
                world.acked(view, tick as u16);
            }
        }
        assert_eq!(told, [16, 17]);
    }

    /// Even where interest is not looked at in between.
    #[test]
    fn nothing_of_what_is_hidden_goes_out_before_interest_is_refreshed() {
        for by_filter in [false, true] {
            let (mut world, view, ids) = stage(&[1.0, 2.0], InterestSettings::default());
            world.begin_tick(2);
            if by_filter {
                world.set_concealed(ids[0], true);
                world.conceal(&mut |_, _| true);
                assert_eq!(world.write_snapshot(view, 0, &mut [0; 1200]), 0);
                world.begin_tick(3);
                world.conceal(&mut |_, _| false);
            } else {
                world.hide(ids[0]);
            }
            ids.iter().for_each(|id| _ = world.update(KindId(0), *id, &pose(9.0)));
            assert!(!world.hears(view, ids[0]));
            let mut out = [0; 1200];
            let len = world.write_snapshot(view, 0, &mut out);
            assert_eq!(crate::trial::masks(&out[..len]), [(1, 1)]);
        }
    }

    #[test]
    fn listeners_are_found_by_place_team_and_entity() {
        let (mut world, views) = crowd();
        let ids: Vec<_> = (0..40).map(|slot| NetId { slot, generation: 1 }).collect();
        world.refresh_interest();
        let sorted = |mut views: Vec<ViewId>| {
            views.sort();
            views
        };
        let mut found = Vec::new();
        world.views_near([10.2, 0.0], 2.0, &mut found);
        assert_eq!(sorted(found), views[9..=12]);
        let mut found = Vec::new();
        world.views_that_hear(ids[0], Some(5.0), &mut found);
        assert_eq!(sorted(found), views[0..=5]);
        // Beyond the 8 m in which it is heard there is nobody to tell.
        for range_m in [Some(30.0), None] {
            let mut found = Vec::new();
            world.views_that_hear(ids[0], range_m, &mut found);
            assert_eq!(sorted(found), views[0..=8], "{range_m:?}");
        }
        world.begin_tick(1);
        world.set_concealed(ids[0], true);
        world.conceal(&mut |view, _| view == views[3]);
        world.refresh_interest();
        let mut found = Vec::new();
        world.views_that_hear(ids[0], Some(5.0), &mut found);
        assert_eq!(sorted(found), [views[0], views[3]]);
        world.set_view_team(views[5], Some(2));
        let mut found = Vec::new();
        world.views_of_team(2, &mut found);
        assert_eq!(found, [views[5]]);
    }

    /// What happens nowhere costs nothing: no entry is looked at, no byte written, whatever the number of entities.
    #[test]
    fn a_world_in_which_nothing_changes_costs_its_clients_alone() {
        for ruled in [false, true] {
            let (mut world, views) = crowd();
            for index in 0..3000 {
                let id = world.spawn().unwrap();
                world.set_place(id, [index as f32 * 0.01, 5.0]);
                world.update(KindId(0), id, &pose(1.0));
            }
            views.iter().for_each(|view| world.set_budget(*view, 1 << 20));
            if ruled {
                world.set_rules(&rules(), 20.0);
            }
            let mut out = vec![0; 1 << 16];
            let mut tick = |world: &mut WorldReplication, tick: u32| {
                world.begin_tick(tick);
                world.refresh_interest();
                for view in &views {
                    world.write_snapshot(*view, 0, &mut out);
                    world.sent(*view, tick as u16);
                    world.acked(*view, tick as u16);
                }
                world.take_stats()
            };
            let first = tick(&mut world, 1);
            assert!(first.spawns > 20_000 && first.entries_visited > 20_000);
            (2..30).for_each(|number| _ = tick(&mut world, number));
            for number in 30..60 {
                let stats = tick(&mut world, number);
                let expect = ReplicationStats { answers_unknown: 40, ..ReplicationStats::default() };
                assert_eq!(stats, expect, "in tick {number}");
            }
        }
    }

    /// A late client gets what others were told long ago.
    #[test]
    fn a_late_client_gets_the_exact_state() {
        let (mut world, _, ids) = stage(&[1.0, 4.0, 6.5, 30.0], InterestSettings::default());
        world.set_rules(&rules(), 20.0);
        world.begin_tick(2);
        ids.iter().for_each(|id| _ = world.update(KindId(1), *id, &Health { points: 77 }));
        (3..300).for_each(|tick| world.begin_tick(tick));
        let late = world.add_client(1);
        world.set_view(late, [0.0; 2]);
        let mut replicas = crate::Replicas::new(schema());
        tell(&mut world, late, &mut replicas);
        assert_eq!(replicas.len(), 4);
        assert!(replicas.iter::<Health>().all(|(_, health)| health.points == 77));
    }

    /// A client cannot make up what it got: unknown packets are counted, and change nothing.
    #[test]
    fn answers_to_packets_never_sent_are_counted_and_mean_nothing() {
        let mut world = WorldReplication::new(schema(), InterestSettings::default());
        let view = world.add_client(0);
        let id = world.spawn().unwrap();
        world.refresh_interest();
        let mut out = [0; 1200];
        assert!(world.write_snapshot(view, 0, &mut out) > 0);
        world.sent(view, 5);
        (100..200).for_each(|packet| world.acked(view, packet));
        world.lost(view, 4);
        assert_eq!(world.take_stats().answers_unknown, 101);
        // The spawn is not acknowledged: a change is a spawn again.
        world.begin_tick(1);
        world.update(KindId(0), id, &pose(1.0));
        assert!(world.write_snapshot(view, 0, &mut out) > 0);
        assert_eq!(world.take_stats().spawns, 1);
        world.acked(view, 5);
        assert_eq!(world.take_stats().answers_unknown, 0);
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
        assert!(bytes <= 10_240, "{bytes} bytes");
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
