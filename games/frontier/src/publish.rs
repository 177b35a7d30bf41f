//! Publish: writes rows that have changed to the components that clients are told.
//!
//! Replicated components are written only here, once a tick, and only where the value differs: health that moved within
//! a percent is no change, and what has not changed is not sent. With `no_throttles` health also goes out in points,
//! each time it changes.
//!
//! Cost: 60 ns per actor that changed.

use bevy_ecs::{prelude::*, query::QueryData};
use throng::prelude::*;
use throng_replication::ecs::Replicated;

use crate::{
    actors::{Actors, dirty},
    components::{Animation, Effects, Name, Points, Pose, Vitals},
    roster::Roster,
};

/// What is written.
#[derive(QueryData)]
#[query_data(mutable)]
pub struct Shown {
    pose: &'static mut Pose,
    vitals: &'static mut Vitals,
    animation: &'static mut Animation,
    effects: &'static mut Effects,
    points: Option<&'static mut Points>,
    name: Option<&'static mut Name>,
}

/// Writes what has changed.
pub fn write(tick: Res<TickInfo>, roster: Res<Roster>, mut actors: ResMut<Actors>, mut entities: Query<Shown>) {
    let actors = &mut *actors;
    let mut changed = std::mem::take(&mut actors.changed);
    for index in changed.drain(..) {
        let row = &mut actors[index];
        let what = std::mem::take(&mut row.dirty);
        let Ok(mut shown) = entities.get_mut(row.entity) else { continue };
        if what & dirty::POSE != 0 {
            let [x, z] = row.place;
            shown.pose.set_if_neq(Pose { x, z, heading: row.heading });
        }
        if what & dirty::VITALS != 0 {
            shown.vitals.set_if_neq(row.vitals());
            if let Some(points) = &mut shown.points {
                points.set_if_neq(Points { points: row.health.clamp(0, u16::MAX.into()) as u16 });
            }
        }
        if what & dirty::ANIMATION != 0 {
            shown.animation.set_if_neq(row.animation);
        }
        if what & dirty::EFFECTS != 0 {
            shown.effects.set_if_neq(row.effects(tick.tick));
        }
        if what & dirty::NAME != 0
            && let (Some(name), Some(text)) = (&mut shown.name, roster.name(row.player))
        {
            name.set_if_neq(Name { text });
        }
    }
    actors.changed = changed;
}

/// Learns what clients call those who are new: replication names them at the end of their first tick.
pub fn learn_names(mut actors: ResMut<Actors>, entities: Query<&Replicated>) {
    if actors.unnamed.is_empty() {
        return;
    }
    let actors = &mut *actors;
    let mut unnamed = std::mem::take(&mut actors.unnamed);
    unnamed.retain(|&index| {
        let id = entities.get(actors[index].entity).ok().and_then(Replicated::id);
        if let Some(id) = id {
            actors.name(index, id);
        }
        id.is_none()
    });
    actors.unnamed = unnamed;
}
