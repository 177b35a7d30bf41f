//! Seeing: whether one actor sees another, and who is concealed.

use super::Zone;
use crate::{actors::dirty, components::Kind, concealment::is_seen};

impl Zone<'_> {
    /// Whether one sees the other over the ground between them.
    pub fn is_line_clear(&mut self, one: u32, other: u32) -> bool {
        throng::count!("lines_of_sight");
        self.land.0.is_line_clear(self.actors[one].place, self.actors[other].place)
    }

    /// Whether one notices the other: not concealed from it, and in line of sight.
    pub fn sees(&mut self, one: u32, other: u32) -> bool {
        let concealed = self.actors[other].concealed;
        if concealed {
            throng::count!("lines_of_sight");
            return is_seen(&self.actors, &self.land.0, one, other);
        }
        self.is_line_clear(one, other)
    }

    /// Begins or ends somebody's concealment.
    pub fn conceal(&mut self, index: u32, concealed: bool) {
        let row = &mut self.actors[index];
        if row.concealed == concealed {
            return;
        }
        row.concealed = concealed;
        let entity = row.entity;
        if row.look.kind != Kind::Trap {
            self.actors.sneaking.set(index, concealed);
        }
        self.actors.mark(index, dirty::EFFECTS);
        self.deeds.conceal(entity, concealed);
    }
}
