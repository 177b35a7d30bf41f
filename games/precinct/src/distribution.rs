//! Distribution: how many NPCs each world gets, so that together there are exactly as many as asked for.
//!
//! All of them are there when all players are. One hideout for every player, and as many more as it takes that no
//! hideout has more than [`HIDEOUT_NPCS_MAX`]; the hub gets 2 %, the dark zone 4 %, the hideouts share the rest evenly,
//! the first ones one more where it does not come out even.
//!
//! With 1,000 players and 20,000 NPCs: 400 in the hub, 800 in the dark zone, 18 or 19 in each of 1,000 hideouts.

/// NPCs of a hideout at most: what one place to fight for can hold.
pub const HIDEOUT_NPCS_MAX: usize = 40;
const HUB_PERCENT: usize = 2;
const DARK_ZONE_PERCENT: usize = 4;

/// NPCs by world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distribution {
    pub hideouts: usize,
    pub hub_npcs: usize,
    pub dark_zone_npcs: usize,
    hideout_npcs: usize,
}

impl Distribution {
    /// Spreads `npcs` over the worlds of a server for `players`.
    pub fn new(players: usize, npcs: usize) -> Self {
        let hub_npcs = npcs * HUB_PERCENT / 100;
        let dark_zone_npcs = npcs * DARK_ZONE_PERCENT / 100;
        let hideouts = players.max(npcs.div_ceil(HIDEOUT_NPCS_MAX)).max(1);
        Self { hideouts, hub_npcs, dark_zone_npcs, hideout_npcs: npcs - hub_npcs - dark_zone_npcs }
    }

    /// NPCs of one hideout.
    pub fn npcs_of_hideout(&self, index: usize) -> usize {
        self.hideout_npcs / self.hideouts + usize::from(index < self.hideout_npcs % self.hideouts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_of_a_thousand_players() {
        let day = Distribution::new(1_000, 20_000);
        assert_eq!((day.hideouts, day.hub_npcs, day.dark_zone_npcs), (1_000, 400, 800));
        assert_eq!((day.npcs_of_hideout(0), day.npcs_of_hideout(999)), (19, 18));
    }

    /// Promise: exactly as many NPCs as asked for, in worlds that are about equally full, for any sizes.
    #[test]
    fn the_sum_is_exact() {
        let players = [1, 2, 3, 7, 10, 50, 99, 100, 999, 1_000, 1_001, 2_500, 4_000];
        let npcs = (0..200).chain((200..40_000).step_by(997)).chain([19_999, 20_000, 20_001, 40_000]);
        for npcs in npcs {
            for players in players {
                let day = Distribution::new(players, npcs);
                let hideouts: Vec<usize> = (0..day.hideouts).map(|index| day.npcs_of_hideout(index)).collect();
                assert!(day.hideouts >= players);
                assert_eq!(hideouts.iter().sum::<usize>() + day.hub_npcs + day.dark_zone_npcs, npcs);
                let (most, fewest) = (hideouts.iter().max().unwrap(), hideouts.iter().min().unwrap());
                assert!(most - fewest <= 1);
                assert!(*most <= HIDEOUT_NPCS_MAX, "{players} players, {npcs} npcs: {most} in one hideout");
            }
        }
    }
}
