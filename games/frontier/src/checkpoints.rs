//! Checkpoints: what of the world is there again when it is made again after a panic.
//!
//! Everything that a tick reads and that does not follow from the rest: actors and what they are busy with, minds, players
//! and what they hold, parties, aims, the changed land. Entities hold what is replicated. Who is near whom is found anew,
//! and so is land that was on its way from the store.
//!
//! Cost of taking one, for 10,000 NPCs and 2,000 players: a copy of some 4 MB (a sketch).

use bevy_ecs::prelude::*;
use throng::prelude::*;

use crate::{
    actors::{Actors, Slot},
    aims::Aims,
    arrivals::{self, Welcome},
    changes::Telling,
    components::{Animation, Effects, Look, Name, Points, Pose, Vitals},
    deeds::Deeds,
    land::Map,
    landscape::Land,
    neighbours::Neighbours,
    npc::Minds,
    parties::Parties,
    roster::{PlayerRow, Roster},
    saves::LandReader,
    zone::Scratch,
};

/// Says what checkpoints hold.
pub struct Checkpoints;

impl WorldPlugin for Checkpoints {
    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Pose>().checkpoint::<Vitals>().checkpoint::<Points>().checkpoint::<Animation>();
        world.checkpoint::<Effects>().checkpoint::<Look>().checkpoint::<Name>();
        world.checkpoint::<Slot>().checkpoint::<PlayerRow>();
        world
            .checkpoint_as(Actors::save, Actors::load)
            .checkpoint_as(Roster::save, Roster::load)
            .checkpoint_as(Parties::save, Parties::load)
            .checkpoint_part(Minds::save, Minds::load)
            .checkpoint_part(Deeds::save, Deeds::load)
            .checkpoint_part(Aims::save, Aims::load)
            .checkpoint_part(Map::save, Map::load);
        // They never change, hold nothing between two ticks, or are made again below.
        world.transient::<Land>().transient::<Telling>().transient::<Welcome>().transient::<LandReader>();
        world.transient::<Scratch>().transient::<Neighbours>();
        world.after_load(find_neighbours).after_load(let_go_of_those_left_out).after_load(ask_for_land);
    }
}

/// Players who are not loaded leave nothing behind.
fn let_go_of_those_left_out(world: &mut World) {
    for client in world.resource::<Departures>().0.clone() {
        if let Some(row) = world.resource::<Roster>().row_of(client) {
            arrivals::let_go(world, row);
        }
    }
}

fn find_neighbours(actors: Res<Actors>, minds: Res<Minds>, mut neighbours: ResMut<Neighbours>) {
    assert!(minds.rows.len() <= actors.len(), "each NPC has a row");
    neighbours.clear();
    for (index, row) in (0..).zip(actors.rows()).filter(|(_, row)| row.alive) {
        neighbours.insert(index, row.place, row.groups());
    }
}

/// What was on its way may have come to the world that is no more.
fn ask_for_land(mut map: ResMut<Map>) {
    map.ask_again();
}
