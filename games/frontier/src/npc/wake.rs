//! Wake: which camps have a player so near that their NPCs are worth the time.
//!
//! Twice a second all players are counted into the squares of [`Presence`](super::presence::Presence); a camp in whose
//! square or one beside it somebody is stays awake for the next second. So a camp wakes before a player can see it, and
//! its falling asleep is late rather than early.
//!
//! Cost: 2 ns a player and camp, twice a second. Allocates nothing.

use crate::zone::Zone;

const PERIOD_MS: u32 = 500;
const AWAKE_MS: u32 = 1_100;

/// Wakes the camps that players are near.
pub fn wake(mut zone: Zone) {
    if !zone.now().is_multiple_of(zone.ticks(PERIOD_MS)) {
        return;
    }
    let until = zone.now() + zone.ticks(AWAKE_MS);
    let (minds, actors) = (&mut *zone.minds, &zone.actors);
    minds.presence.clear();
    for player in zone.roster.actors() {
        minds.presence.add(actors[player].place);
    }
    let mut awake = 0;
    for (camp, &middle) in minds.camps.iter().enumerate() {
        if minds.presence.is_anybody_near(middle) {
            minds.awake_until[camp] = until;
            awake += 1;
        }
    }
    throng::gauge!("npcs", zone.minds.rows.len());
    throng::gauge!("camps_awake", awake);
}
