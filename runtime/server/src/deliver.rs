//! Deliver: what was told this tick goes to those who are to hear it.
//!
//! Who that is follows from the event's audience, its kind's range in the rules, and from interest: clients near a place are found in a
//! grid, and of an entity only those hear to whom it is relevant and from whom it is not concealed. The message is put into the queue of
//! each one's connection and leaves with this tick's packets.
//!
//! Runs on the world's own thread, between the systems and the packets. Allocates nothing once its lists have grown. Cost: about
//! 0.2 µs to find 50 clients, and one copy for each.

use bevy_ecs::prelude::*;
use throng_replication::{ResolvedRules, ViewId, WorldReplication, ecs::Collector, event_throttle::EventThrottle};

use crate::{
    client_seat::Seats,
    events::{Audience, Events, Said},
    game_world::GameWorld,
};

/// What delivery needs from tick to tick.
#[derive(Default)]
pub(crate) struct Delivery {
    views: Vec<ViewId>,
    throttle: EventThrottle,
}

impl GameWorld {
    /// Puts what was told this tick into the queues of those who are to hear it.
    pub(crate) fn deliver_events(&mut self) {
        let Self { ecs, seats, replication, collector, events, delivery, rules, stats, .. } = self;
        let mut told = ecs.resource_mut::<Events>();
        if told.is_empty() {
            return;
        }
        std::mem::swap(&mut *told, events);
        seats.index_views();
        for (said, message) in events.iter_mut() {
            let period = rules.event_period_ticks[said.kind.index()];
            if let Audience::Around(source) = said.audience
                && !delivery.throttle.allows(said.kind, source.to_bits(), self.tick, period)
            {
                stats.events_throttled += 1;
                continue;
            }
            delivery.views.clear();
            find_listeners(said, rules, ecs, collector, replication, seats, &mut delivery.views);
            let is_reliable = replication.schema().events()[said.kind.index()].reliable;
            for view in &delivery.views {
                let Some(seat) = seats.of_view(*view) else { continue };
                message[1] = seat.epoch;
                if !is_reliable {
                    // A full queue drops its oldest, counted by the connection.
                    let _ = seat.connection.send_unreliable(message);
                } else if seat.connection.send_reliable(message).is_err() {
                    seat.leave("its reliable messages pile up");
                }
            }
            let copies = delivery.views.len() as u64;
            replication.traffic_mut().add_event(said.kind, said.cause, copies, message.len() as u64);
            stats.events += 1;
            stats.event_copies += copies;
        }
        events.clear();
    }
}

fn find_listeners(
    said: &Said,
    rules: &ResolvedRules,
    ecs: &World,
    collector: &Collector,
    replication: &mut WorldReplication,
    seats: &mut Seats,
    views: &mut Vec<ViewId>,
) {
    let range_m2 = rules.event_range_m2[said.kind.index()];
    let range_m = range_m2.is_finite().then(|| range_m2.sqrt());
    match (said.audience, range_m) {
        (Audience::Near(place), Some(range_m)) => replication.views_near(place, range_m, views),
        (Audience::Everyone, _) | (Audience::Near(_), None) => views.extend(replication.views()),
        (Audience::Around(entity), _) => {
            if let Some(id) = collector.net_id(ecs, entity) {
                replication.views_that_hear(id, range_m, views);
            }
        }
        (Audience::Team(team), _) => replication.views_of_team(team, views),
        (Audience::Client(client), _) => views.extend(seats.get_mut(client).map(|seat| seat.view)),
    }
}
