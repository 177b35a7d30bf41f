//! Components and helpers that several tests share.

pub mod model_test;

use std::sync::Arc;

use throng_metrics::Counters;

use crate::{
    Replicate,
    listeners::Listeners,
    source::rules::ResolvedRules,
    stats::ReplicationStats,
    view::{client_view::View, interest::InterestSettings, traffic::Traffic},
    wire::{
        ids::NetId,
        schema::{Schema, SchemaBuilder},
    },
    world::{ViewScratch, WorldReplication},
};

/// 3 x 14 + 7 bits: 7 bytes.
#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Pose {
    #[replicate(min = -150.0, max = 150.0, step = 0.02)]
    pub place: [f32; 3],
    #[replicate(angle, bits = 7)]
    pub heading: f32,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Health {
    #[replicate(bits = 10)]
    pub points: u16,
}

#[derive(Copy, Clone, Debug, PartialEq, Replicate)]
pub enum Mood {
    Calm,
    Wary,
    Angry,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Flag {
    pub raised: bool,
    pub mood: Mood,
}

/// Pose, health and flag, in this order.
pub fn schema() -> Arc<Schema> {
    SchemaBuilder::new().component::<Pose>().component::<Health>().component::<Flag>().build()
}

pub fn pose(x: f32) -> Pose {
    Pose { place: [x, 0.0, 0.0], heading: 0.0 }
}

/// A client of a [`TestWorld`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewId(pub u32);

/// A world with its clients, named by number, what went out to them, and the scratch memory of the thread that serves
/// them.
pub struct TestWorld {
    world: WorldReplication,
    pub views: Vec<Option<View>>,
    pub traffic: Traffic,
    pub scratch: ViewScratch,
    listeners: Listeners,
    stats: ReplicationStats,
}

impl std::ops::Deref for TestWorld {
    type Target = WorldReplication;

    fn deref(&self) -> &WorldReplication {
        &self.world
    }
}

impl std::ops::DerefMut for TestWorld {
    fn deref_mut(&mut self) -> &mut WorldReplication {
        &mut self.world
    }
}

impl TestWorld {
    pub fn new(schema: Arc<Schema>, settings: InterestSettings) -> Self {
        Self {
            traffic: Traffic::new(&schema),
            scratch: ViewScratch::default(),
            world: WorldReplication::new(schema, settings),
            views: Vec::new(),
            listeners: Listeners::default(),
            stats: ReplicationStats::default(),
        }
    }

    /// Without its clients.
    pub fn into_world(self) -> WorldReplication {
        self.world
    }

    pub fn add_client(&mut self, epoch: u8) -> ViewId {
        let index = self.views.iter().position(Option::is_none).unwrap_or(self.views.len());
        if index == self.views.len() {
            self.views.push(None);
        }
        self.views[index] = Some(self.world.new_view(epoch));
        self.listeners.outdate();
        ViewId(index as u32)
    }

    pub fn remove_client(&mut self, view: ViewId) {
        let view = self.views[view.0 as usize].take().expect("the client is there");
        self.stats.merge(&self.world.remove_view(view));
        self.listeners.outdate();
    }

    pub fn view(&self, view: ViewId) -> &View {
        self.views[view.0 as usize].as_ref().expect("the client is there")
    }

    pub fn view_mut(&mut self, view: ViewId) -> &mut View {
        self.views[view.0 as usize].as_mut().expect("the client is there")
    }

    pub fn set_view(&mut self, view: ViewId, centre: [f32; 2]) {
        self.view_mut(view).look_at(centre);
    }

    pub fn set_own(&mut self, view: ViewId, own: Option<NetId>) {
        self.view_mut(view).set_own(own);
    }

    pub fn set_view_team(&mut self, view: ViewId, team: Option<u16>) {
        self.view_mut(view).set_team(team);
    }

    pub fn set_budget(&mut self, view: ViewId, bytes_per_tick: u32) {
        self.view_mut(view).set_budget(bytes_per_tick);
    }

    pub fn set_rules(&mut self, rules: &ResolvedRules, ticks_per_s: f32) {
        self.world.set_rules(rules, ticks_per_s, self.views.iter_mut().flatten());
    }

    pub fn set_thinned(&mut self, is_thinned: bool) {
        self.world.set_thinned(is_thinned);
    }

    /// In every second tick all of a client's are asked about at once, which is to be the same.
    pub fn filter_visibility(&mut self, may_see: &mut dyn FnMut(ViewId, NetId) -> bool) {
        self.world.prepare_visibility_filter();
        let in_batches = self.world.tick() % 2 == 1;
        for (index, view) in (0..).zip(&mut self.views) {
            let Some(view) = view else { continue };
            if in_batches {
                self.world.filter_visibility_in_batch(view, &mut self.scratch, &mut |ids, answers| {
                    for (at, id) in ids.iter().enumerate() {
                        answers[at / 64] |= u64::from(may_see(ViewId(index), *id)) << (at % 64);
                    }
                });
            } else {
                self.world.filter_visibility(view, &mut self.scratch, &mut |id| may_see(ViewId(index), id));
            }
        }
    }

    pub fn refresh_interest(&mut self) {
        self.world.settle();
        self.views.iter_mut().flatten().for_each(|view| self.world.refresh(view, &mut self.scratch));
    }

    /// Serves a client that may have seen changes since the last `refresh_interest`.
    pub fn write_snapshot(&mut self, view: ViewId, input: u16, out: &mut [u8]) -> usize {
        self.world.settle();
        let view = self.views[view.0 as usize].as_mut().expect("the client is there");
        self.world.write_snapshot(view, &mut self.traffic, input, out)
    }

    pub fn sent(&mut self, view: ViewId, packet: u16) {
        self.world.sent(self.views[view.0 as usize].as_mut().expect("the client is there"), packet);
    }

    pub fn acked(&mut self, view: ViewId, packet: u16) {
        self.view_mut(view).acked(packet);
    }

    pub fn lost(&mut self, view: ViewId, packet: u16) {
        self.world.lost(self.views[view.0 as usize].as_mut().expect("the client is there"), packet);
    }

    pub fn write_audit_sample(&mut self, view: ViewId, out: &mut Vec<u8>) -> bool {
        let view = self.views[view.0 as usize].as_mut().expect("the client is there");
        self.world.write_audit_sample(view, &mut self.traffic, out)
    }

    pub fn hears(&self, view: ViewId, id: NetId) -> bool {
        self.world.hears(self.view(view), id)
    }

    pub fn relevant(&self, view: ViewId) -> impl Iterator<Item = NetId> + '_ {
        self.view(view).relevant().filter(|id| self.world.contains(*id))
    }

    /// Appends the clients that look from within `range_m` of a place.
    pub fn views_near(&mut self, place: [f32; 2], range_m: f32, out: &mut Vec<ViewId>) {
        self.listeners.build(&self.world, self.views.iter().map(Option::as_ref));
        let mut near = Vec::new();
        self.listeners.near(place, range_m, &mut near);
        out.extend(near.into_iter().map(ViewId));
    }

    pub fn take_stats(&mut self) -> ReplicationStats {
        let mut stats = std::mem::take(&mut self.stats);
        self.views.iter_mut().flatten().for_each(|view| stats.merge(&view.take_counts()));
        stats.merge(&self.world.take_stats());
        stats
    }

    pub fn check(&self) {
        self.world.check();
        self.views.iter().flatten().for_each(View::check);
    }
}
