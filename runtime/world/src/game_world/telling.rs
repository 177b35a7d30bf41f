//! Telling: what a tick has changed and said becomes what there is to tell, before the first packet is written.
//!
//! Changes are collected and encoded once for all clients; the game's filter says who may know of what; events go into the
//! queues of those who hear them; and some clients get an audit sample, which is put together past the encoder. After that
//! nothing changes until all clients are told (`batches`).
//!
//! On the world's own thread. Allocates nothing in a steady tick.

use bevy_ecs::prelude::Entity;
use throng_profiler::{Phases, log_category, log_warn, site};
use throng_replication::{NetId, ecs::Replicated};

use super::{GameWorld, own};
use crate::{
    client::Client,
    deliver::Scene,
    events::Events,
    scratch::Scratch,
    visibility::{MaySee, Viewer, VisibilityFilter},
};

log_category!(
    /// What a game's components hold that cannot be sent as it is.
    VALUES = "replication.values"
);

/// How often a client that is to have them is sent an audit sample to hold its copy against. (s)
const AUDIT_PERIOD_S: f32 = 0.5;

impl GameWorld {
    /// Walks the change marks of every replicated column once and encodes what changed, once.
    pub(super) fn collect_changes(&mut self) {
        let replication = own(&mut self.replication);
        replication.begin_tick(self.tick);
        self.collector.collect(&mut self.ecs, replication);
        self.tell_of_bad_values();
        self.quarantine_poisoned();
        self.ecs.clear_trackers();
    }

    /// Names the component of which the game has made a value that cannot be sent as it is: one a tick, the first.
    fn tell_of_bad_values(&self) {
        let (kind, world) = (&*self.name, self.id.number());
        let schema = self.replication.schema();
        if let Some((component, id)) = self.replication.first_clamped() {
            let (component, entity) = (schema.name_of(component), self.collector.entity_of(id));
            log_warn!(
                VALUES,
                kind,
                world,
                component,
                ?entity,
                "a value is outside its declared range, and clients see the nearer end of that"
            );
        }
        if let Some(&id) = self.replication.poisoned().first() {
            let component = self.replication.first_poisoned_component();
            let component = component.map_or("the entity's place", |component| schema.name_of(component));
            let entity = self.collector.entity_of(id);
            log_warn!(
                VALUES,
                kind,
                world,
                component,
                ?entity,
                "a value is NaN or infinite, and clients see its entity vanish"
            );
        }
    }

    /// An entity with a value that is no finite number is taken out of replication in the tick that made it: clients
    /// see it go. The entity stays in the world, where its game may find and mend it.
    fn quarantine_poisoned(&mut self) {
        let Self { replication, collector, ecs, .. } = self;
        for &id in replication.poisoned() {
            let Some(entity) = collector.entity_of(id) else { continue };
            if let Ok(mut entity) = ecs.get_entity_mut(entity) {
                entity.remove::<Replicated>();
            }
        }
    }

    /// Asks the game's filter who may see what is visibility-filtered.
    pub(super) fn filter_visibility(&mut self, phases: &mut Phases) {
        let Self { visibility_filter, replication, clients, collector, ecs, scratch, .. } = self;
        if clients.is_empty() || !replication.has_visibility_filtered() {
            return;
        }
        phases.next(site!("replication.visibility"));
        own(replication).prepare_visibility_filter();
        for client in clients.iter_mut() {
            let viewer = Viewer { client: client.key, player: client.player, team: client.team };
            let Some(view) = &mut client.view else { continue };
            let Scratch { views, candidates, .. } = &mut **scratch;
            if let Some(VisibilityFilter::Batch(filter)) = visibility_filter {
                replication.filter_visibility_in_batch(view, views, &mut |ids, words| {
                    candidates.clear();
                    // Whoever is told of is an entity of the world. Should one not be, it is nobody.
                    let entity_of = |id: &NetId| collector.entity_of(*id).unwrap_or(Entity::PLACEHOLDER);
                    candidates.extend(ids.iter().map(entity_of));
                    filter(ecs, viewer, candidates, &mut MaySee::new(words, ids.len()));
                });
                continue;
            }
            replication.filter_visibility(view, views, &mut |id| {
                let Some(entity) = collector.entity_of(id) else { return false };
                match visibility_filter {
                    Some(VisibilityFilter::Each(filter)) => filter(ecs, viewer, entity),
                    _ => true,
                }
            });
        }
    }

    /// Puts what was told this tick into the queues of those who are to hear it.
    pub(super) fn deliver_events(&mut self, phases: &mut Phases) {
        let mut events = self.ecs.resource_mut::<Events>();
        if events.told.is_empty() {
            return;
        }
        phases.next(site!("replication.events"));
        let mut told = std::mem::take(&mut events.told);
        let Self { ecs, clients, replication, collector, delivery, rules, report, sent, scratch, .. } = self;
        if let Some(traffic) = sent.traffic_mut() {
            let scene = Scene { ecs, collector, replication, rules };
            delivery.deliver(&mut told, &scene, clients, &mut scratch.hearing, traffic, &mut report.stats);
        }
        told.clear();
        // Back for its memory.
        ecs.resource_mut::<Events>().told = told;
    }

    /// Tells some of the clients that are to be told, each in its turn, what one entity really looks like. First it is settled what is
    /// relevant to them in this tick: else an audit sample would be about what has just gone out of sight.
    pub(super) fn write_audit_samples(&mut self, phases: &mut Phases) {
        let audit_period = ((AUDIT_PERIOD_S * f32::from(self.rate.0)) as u32).max(1);
        let Self { clients, collector, replication, ecs, tick, sent, scratch, .. } = self;
        let Some(traffic) = sent.traffic_mut() else { return };
        let Scratch { views, audit_sample, .. } = &mut **scratch;
        let mut is_first = true;
        let tick = *tick;
        let is_due =
            |client: &Client| client.is_audited && tick.wrapping_add(client.key.0).is_multiple_of(audit_period);
        for client in clients.iter_mut().filter(|client| is_due(client)) {
            let Some(view) = &mut client.view else { continue };
            if std::mem::take(&mut is_first) {
                phases.next(site!("replication.audit_samples"));
            }
            audit_sample.clear();
            let replication = own(replication);
            replication.settle();
            replication.refresh(view, views);
            if collector.write_audit_sample(ecs, replication, view, traffic, audit_sample) {
                // A full queue drops its oldest audit sample: one check less, never a wrong one.
                let _ = client.connection.send_unreliable(audit_sample);
            }
        }
    }
}
