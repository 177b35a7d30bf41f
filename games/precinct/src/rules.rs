//! Rules: who may hurt whom. The one place that says so, asked by shots, by NPCs that look for an enemy
//! and by bots.
//!
//! | world     | players shoot NPCs | NPCs shoot players | players shoot players |
//! |-----------|--------------------|--------------------|-----------------------|
//! | hideout   | yes                | yes                | no                    |
//! | hub       | no                 | no                 | no                    |
//! | dark zone | yes                | yes                | yes                   |
//!
//! The two NPC factions are each other's enemies everywhere. NPCs of one faction never hurt each other:
//! a stray shot is stopped by a friend and does nothing.

use crate::components::{Character, Faction};

/// The rules of one kind of world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Players neither hurt nor are hurt.
    pub players_are_safe: bool,
    pub players_fight_players: bool,
    /// NPCs have bare hands.
    pub no_weapons: bool,
}

impl Rules {
    pub const HIDEOUT: Self = Self { players_are_safe: false, players_fight_players: false, no_weapons: false };
    pub const HUB: Self = Self { players_are_safe: true, players_fight_players: false, no_weapons: true };
    pub const DARK_ZONE: Self = Self { players_are_safe: false, players_fight_players: true, no_weapons: false };

    /// Whether a hit by one does anything to the other. They are two different entities.
    pub fn may_hurt(&self, attacker: Side, target: Side) -> bool {
        if self.players_are_safe && !(attacker.npc && target.npc) {
            return false;
        }
        if attacker.faction != target.faction {
            return true;
        }
        self.players_fight_players && !attacker.npc && !target.npc
    }
}

/// Which side somebody stands on, as far as rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    pub npc: bool,
    pub faction: Faction,
}

impl From<&Character> for Side {
    fn from(character: &Character) -> Self {
        Self { npc: character.npc, faction: character.faction }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_above_is_the_truth() {
        let player = Side { npc: false, faction: Faction::Agents };
        let rioter = Side { npc: true, faction: Faction::Rioters };
        let cleaner = Side { npc: true, faction: Faction::Cleaners };
        for (rules, player_npc, npc_player, player_player) in [
            (Rules::HIDEOUT, true, true, false),
            (Rules::HUB, false, false, false),
            (Rules::DARK_ZONE, true, true, true),
        ] {
            assert_eq!(rules.may_hurt(player, rioter), player_npc);
            assert_eq!(rules.may_hurt(cleaner, player), npc_player);
            assert_eq!(rules.may_hurt(player, player), player_player);
            assert!(rules.may_hurt(rioter, cleaner));
            assert!(!rules.may_hurt(rioter, rioter));
        }
    }
}
