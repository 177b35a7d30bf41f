//! Seeing: whether one actor sees another, and about whom the visibility filter is asked.

use super::Zone;
use crate::{actors::dirty, components::Kind, visibility::is_seen};

impl Zone<'_> {
    /// Whether one sees the other over the ground between them.
    pub fn is_line_clear(&mut self, one: u32, other: u32) -> bool {
        throng::count!("lines_of_sight");
        self.land.0.is_line_clear(self.actors[one].place, self.actors[other].place)
    }

    /// Whether one notices the other: not filtered out for it, and in line of sight.
    pub fn sees(&mut self, one: u32, other: u32) -> bool {
        let place = self.actors[other].place;
        self.sees_at(one, other, place)
    }

    /// The same of where the other was seen. Who hides does so where it is.
    pub fn sees_at(&mut self, one: u32, other: u32, place: [f32; 2]) -> bool {
        throng::count!("lines_of_sight");
        if self.actors[other].filtered {
            return is_seen(&self.actors, &self.land.0, one, other);
        }
        self.land.0.is_line_clear(self.actors[one].place, place)
    }

    /// Begins or ends that the visibility filter is asked about somebody.
    pub fn set_filtered(&mut self, index: u32, filtered: bool) {
        let row = &mut self.actors[index];
        if row.filtered == filtered {
            return;
        }
        row.filtered = filtered;
        let entity = row.entity;
        if row.look.kind != Kind::Trap {
            self.actors.sneaking.set(index, filtered);
        }
        self.actors.mark(index, dirty::EFFECTS);
        self.deeds.set_filtered(entity, filtered);
    }
}
