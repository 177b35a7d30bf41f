//! Between ticks: what a host, a test or a tool asks of a world, and sets in it, while it does not tick.

use std::sync::Arc;

use bevy_ecs::prelude::*;
use rand::RngCore;
use throng_metrics::game::WorldGauges;
use throng_platform::time::Nanos;
use throng_profiler::KindNumber;
use throng_replication::{StateParts, View, ecs::Collector, rules::InterestRadii, traffic::TrafficRow};
use throng_scheduler::Hertz;

use super::{GameWorld, own};
use crate::{
    client_cost::ClientCost,
    declared::Declared,
    ids::{WorldId, WorldKindId},
    report::TickReport,
    testing::Told,
    tick_resources::WorldRng,
    tunable::{TunedInWorld, TunedValues},
};

impl GameWorld {
    /// Gives what was sent since the last call, by kind and cause.
    pub fn take_traffic(&mut self, row: impl FnMut(TrafficRow)) {
        self.sent.take(row);
    }

    /// Gives what each client took since the last call. Cost: a look at every client.
    pub fn take_client_costs(&mut self, cost: impl FnMut(ClientCost)) {
        let now = self.now;
        self.clients.iter_mut().filter_map(|client| client.take_cost(now)).for_each(cost);
    }

    /// The game's gauges as this world last set them, for a host that takes the world out of its sums.
    pub fn gauges_mut(&mut self) -> &mut WorldGauges {
        &mut self.gauges
    }

    /// How long the host has found the last tick to take, for whoever counts it in the next one
    /// ([`TickInfo::last_tick_took`](crate::tick_resources::TickInfo)).
    pub fn note_tick_took(&mut self, took: Nanos) {
        self.last_tick_took = took;
    }

    /// Adds allocations that the host has counted around the tick.
    pub fn count_allocations(&mut self, count: u64) {
        self.report.stats.allocations += count;
        self.report.stats.allocations_in_tick = self.report.stats.allocations;
    }

    /// What the last tick did and asks for.
    pub fn report_mut(&mut self) -> &mut TickReport {
        &mut self.report
    }

    pub fn id(&self) -> WorldId {
        self.id
    }

    pub fn kind(&self) -> WorldKindId {
        self.kind
    }

    /// Its kind as the recorder numbers it.
    pub fn recorded_kind(&self) -> KindNumber {
        self.recorded_kind
    }

    /// Its kind's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn rate(&self) -> Hertz {
        self.rate
    }

    /// Whether its last tick is over. A panic may have left it in the middle.
    pub fn has_finished_tick(&self) -> bool {
        !self.is_in_tick
    }

    /// Ticks done.
    pub fn ticks(&self) -> u32 {
        self.tick
    }

    /// As if it had ticked so often.
    #[cfg(test)]
    pub(crate) fn set_ticks(&mut self, ticks: u32) {
        self.tick = ticks;
    }

    /// Whether it rests while nobody has anything to say.
    pub fn is_reactive(&self) -> bool {
        self.reactive.is_some()
    }

    /// So many ticks are left out before the next step, as its report allows. A world that is not reactive leaves none out.
    pub fn skip(&mut self, ticks: u32) {
        if let Some(reactive) = &mut self.reactive {
            reactive.skip(ticks);
        }
    }

    pub fn clients_count(&self) -> usize {
        self.clients.len()
    }

    /// Whether a system that fails panics, as in a debug build, or is told of in the report, as in a release build.
    pub fn panic_on_failure(&mut self, panics: bool) {
        self.systems.panic_on_failure(panics);
    }

    /// From now on every tick leaves a hash of the world's state in its report: about 50 ns for each component that
    /// counts.
    pub fn want_hash(&mut self, wanted: bool) {
        self.hash_wanted = wanted;
    }

    /// How far clients see here where no rule says otherwise.
    pub fn own_radii(&self) -> InterestRadii {
        self.replication.own_radii()
    }

    /// One number for the world's state as it is now: the same for the same state.
    pub(crate) fn state_hash(&mut self) -> u64 {
        self.collector.hash_state(&mut self.ecs, self.tick)
    }

    /// The same with what each component and each entity have in it, and one number for the world's source of chance. About
    /// 60 ns for each component that counts; allocates until `parts` has its size.
    pub fn hash_in_parts(&mut self, parts: &mut StateParts) -> (u64, u64) {
        let random = self.ecs.resource::<WorldRng>().0.clone().next_u64();
        (self.collector.hash_state_in_parts(&mut self.ecs, self.tick, parts), random)
    }

    /// One entity's hash in each component that counts, with the component's name: of those that it has.
    pub fn hash_of_entity(&mut self, entity: Entity) -> Vec<(&'static str, u64)> {
        let mut columns = Vec::new();
        self.collector.hash_of_entity(&mut self.ecs, entity, &mut columns);
        self.collector.hashed().zip(columns).filter(|(_, hash)| *hash != 0).collect()
    }

    /// Where it is kept what clients without a connection are told, for tests.
    pub(crate) fn told_mut(&mut self) -> &mut Told {
        self.told.get_or_insert_default()
    }

    pub(crate) fn told(&self) -> Option<&Told> {
        self.told.as_deref()
    }

    /// What clients may say here.
    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// What holds for tunables from the next tick on.
    pub fn set_tuned(&mut self, values: &Arc<TunedValues>) {
        // A world in which nothing was ever set keeps nothing.
        if **values != TunedValues::default() || self.ecs.contains_resource::<TunedInWorld>() {
            self.ecs.insert_resource(TunedInWorld(values.clone()));
            if let Some(mut log) = self.log() {
                log.tunables(values);
            }
        }
    }

    /// The world's entities and resources, for tests and tools that look in between ticks.
    pub fn ecs_mut(&mut self) -> &mut World {
        &mut self.ecs
    }

    pub fn ecs(&self) -> &World {
        &self.ecs
    }

    /// Clients' names for entities, for tests and tools.
    pub fn collector(&self) -> &Collector {
        &self.collector
    }

    /// Asserts what must hold between two ticks; for tests and the simulator.
    pub fn check(&self) {
        self.clients.check();
        self.clients.as_slice().iter().filter_map(|client| client.view.as_ref()).for_each(View::check);
        self.replication.check();
        assert!(self.scratch.is_back(), "the worker has its scratch");
        assert_eq!(Arc::strong_count(&self.replication), 1, "nothing is lent");
    }

    /// Test switch: breaks what clients are told, to show that broken copies do not go unseen.
    pub fn break_replication(&mut self, fault: throng_replication::Fault) {
        own(&mut self.replication).set_fault(fault);
    }
}
