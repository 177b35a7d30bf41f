//! Visibility: who sees an actor that sneaks, and who sees a trap.
//!
//! A sneaker is seen by those within a few metres, by its party, and by whoever looks its way in line of sight from not
//! far. A trap is found only from close by. One rule decides what monsters notice and which clients hear of the entity:
//! replication asks [`may_see`] for every client near it, every tick.
//!
//! Pure: it reads rows and the map, and gives the same answer however often it is asked. Cost: some 20 ns, and 60 ns
//! where a line of sight is looked along.

use bevy_ecs::{entity::Entity, world::World};
use throng::prelude::*;

use crate::{
    actors::{Actors, Slot},
    components::Kind,
    landscape::{Land, Landscape, distance_m2},
};

/// Nearer than this everybody sees it. (m)
pub const REVEAL_M: f32 = 4.0;
/// Nearer than this it is seen by who looks its way. (m)
pub const AHEAD_M: f32 = 18.0;
/// Cosine of half the angle that counts as ahead: 50 degrees each way.
const AHEAD_COS: f32 = 0.64;

/// Whether one sees the other, who is visibility-filtered.
pub fn is_seen(actors: &Actors, landscape: &Landscape, viewer: u32, other: u32) -> bool {
    let (eye, hidden) = (&actors[viewer], &actors[other]);
    let maker = hidden.owner.map_or(0, |owner| actors[owner.index].party);
    let own = viewer == other || hidden.owner.is_some_and(|owner| actors.resolve(owner) == Some(viewer));
    let party = eye.party != 0 && (eye.party == hidden.party || eye.party == maker);
    let away_m2 = distance_m2(eye.place, hidden.place);
    if own || party || away_m2 <= REVEAL_M * REVEAL_M {
        return true;
    }
    if away_m2 > AHEAD_M * AHEAD_M || hidden.kind() == Kind::Trap {
        return false;
    }
    let (sin, cos) = eye.heading.sin_cos();
    let along_m = (hidden.place[0] - eye.place[0]) * sin + (hidden.place[1] - eye.place[1]) * cos;
    along_m >= AHEAD_COS * away_m2.sqrt() && landscape.is_line_clear(eye.place, hidden.place)
}

/// The replication's question: whether a client may see an entity that is visibility-filtered. Whoever has no player
/// sees nothing of it.
pub fn may_see(world: &World, viewer: Viewer, entity: Entity) -> bool {
    let slot = |entity: Entity| world.get::<Slot>(entity).map(|slot| slot.0);
    let (Some(eye), Some(hidden)) = (viewer.player.and_then(slot), slot(entity)) else { return false };
    is_seen(world.resource::<Actors>(), &world.resource::<Land>().0, eye, hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{actors::Actors, components::Look};

    #[test]
    fn who_sneaks_is_seen_from_near_ahead_or_by_its_party_and_no_other() {
        let landscape = Landscape::load();
        let town = landscape.towns()[0];
        let mut actors = Actors::default();
        let look = Look { kind: Kind::Player, level: 1, variety: 0 };
        let eye = actors.add(look, town, 0.0);
        let hidden = actors.add(look, town, 0.0);
        let mut check = |aside: [f32; 2], party: u16, expect: bool| {
            actors[hidden].place = [town[0] + aside[0], town[1] + aside[1]];
            (actors[eye].party, actors[hidden].party) = (party, 7);
            assert_eq!(is_seen(&actors, &landscape, eye, hidden), expect, "{aside:?} {party}");
        };
        check([0.0, -3.9], 0, true);
        check([0.0, -4.1], 0, false);
        check([0.0, 17.9], 0, true);
        check([0.0, 18.1], 0, false);
        check([9.0, 0.0], 0, false);
        check([3.0, 9.0], 0, true);
        check([0.0, -40.0], 7, true);
        check([0.0, -40.0], 8, false);
    }
}
