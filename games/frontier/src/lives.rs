//! Lives: the dead stand up again, NPCs at home, players at their hearths.
//!
//! Nobody is despawned by dying: a row and its entity stay, so dying allocates nothing and a world's population is the
//! same at every tick.
//!
//! Cost: 5 ns per dead actor and tick.

use crate::{components::Gesture, roster::HEARTH_SCATTER_M, zone::Zone};

/// How far from its home an NPC stands up. (m)
const HOME_SCATTER_M: f32 = 4.0;

/// Those whose time has come begin their next life.
pub fn rise(mut zone: Zone) {
    let dead = zone.batch(|actors| actors.dead.list());
    let now = zone.now();
    for &index in &dead {
        if zone.actors[index].expires_tick > now {
            continue;
        }
        let home = zone.minds.get(index).map(|mind| mind.home);
        let place = match home {
            Some(home) => zone.scatter(home, HOME_SCATTER_M),
            None => {
                let player = zone.actors[index].player;
                let hearth = zone.roster.hearth(player).unwrap_or_default();
                zone.scatter(hearth, HEARTH_SCATTER_M)
            }
        };
        zone.actors.dead.remove(index);
        let row = &mut zone.actors[index];
        row.alive = true;
        row.health = row.health_max;
        let (groups, from) = (row.groups(), row.place);
        zone.neighbours.insert(index, from, groups);
        zone.teleport(index, place);
        zone.actors.mark(index, u8::MAX);
        zone.actors.play(index, Gesture::Rise);
    }
    throng::gauge!("dead", zone.actors.dead.len());
    zone.scratch.give_back(dead);
}
