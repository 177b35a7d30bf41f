//! Aiming: where somebody is for who aims at it, which for a player is where that saw it.

use super::Zone;
use crate::landscape::distance_m2;

impl Zone<'_> {
    /// Where a target is for an actor: for a player where that saw it, for an NPC where it is.
    pub fn place_for(&mut self, index: u32, target: u32) -> [f32; 2] {
        let (now, place) = (self.now(), self.actors[target].place);
        if !self.actors[index].is_player() {
            return place;
        }
        let (player, who) = (self.actors[index].player, self.actors.who(target));
        let limits = *self.aims.limits();
        let Some(moment) = self.roster.judge(player, &limits, now) else { return place };
        self.aims.place_at(player, who, moment.admitted.at).unwrap_or(place)
    }

    /// Whether a target is so near to an actor (m), as that sees it.
    pub fn is_in_reach(&mut self, index: u32, target: u32, reach_m: f32) -> bool {
        let place = self.place_for(index, target);
        distance_m2(self.actors[index].place, place) <= reach_m * reach_m
    }
}
