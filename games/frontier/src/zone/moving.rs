//! Moving: where an actor is and where it looks.

use throng::prelude::*;

use super::Zone;
use crate::{actors::dirty, events::Teleport, landscape::within_edge};

impl Zone<'_> {
    /// Moves somebody to a place within the landscape's edge.
    pub fn walk_to(&mut self, index: u32, place: [f32; 2]) {
        let place = place.map(within_edge);
        let row = &mut self.actors[index];
        if row.place != place {
            row.place = place;
            self.actors.mark(index, dirty::POSE);
            self.neighbours.moved(index, place);
        }
    }

    pub fn turn_to(&mut self, index: u32, heading: f32) {
        if self.actors[index].heading != heading {
            self.actors[index].heading = heading;
            self.actors.mark(index, dirty::POSE);
        }
    }

    pub fn face(&mut self, index: u32, place: [f32; 2]) {
        let from = self.actors[index].place;
        let (x, z) = (place[0] - from[0], place[1] - from[1]);
        if x != 0.0 || z != 0.0 {
            self.turn_to(index, x.atan2(z).rem_euclid(std::f32::consts::TAU));
        }
    }

    /// Takes somebody elsewhere at once.
    pub fn teleport(&mut self, index: u32, place: [f32; 2]) {
        self.walk_to(index, place);
        let row = &self.actors[index];
        self.outbox.teleported(row.entity);
        if let Some(who) = row.id.filter(|_| row.is_player() && !row.filtered) {
            let to = row.place;
            self.events.send(&Teleport { who, to }, Audience::Everyone, "move.teleport");
        }
    }
}
