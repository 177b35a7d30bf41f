//! NPCs: they perceive, choose, path and fight, cheaply enough for twenty thousand of them.
//!
//! ```text
//!   live, once a tick            a few times a second for each, staggered over the ticks
//!   ├─ population  stand up
//!   ├─ paths       walk the way   perception   neighbours, lines of sight, all lookers in one batch
//!   ├─ combat      pull triggers  body, brain  a step in the shared graph, within a node budget
//!   └─ census      count          paths        the queue of searches, within a node budget
//! ```
//!
//! What they work on is in [`row`], [`senses`] and [`path_queue`].
//!
//! Large data is shared: the behaviour graph, the level, the tables of places. Each NPC has one row of small
//! components, made once: an NPC that dies keeps its row and starts its next life in it. Its load level
//! ([`load_level`]) says how often it walks and thinks, by the distance of the nearest player; at every level it
//! perceives at least four times a second.
//!
//! All of it is one system with one query. Between two ticks of a world a thousand others are ticked, so the state of
//! each further query would cost some ten cache misses. Its scopes are the steps that have something to do.
//!
//! Cost of a hideout's whole tick with 19 NPCs, half of them fighting: 6 µs when ticked over and over, 18 µs as one of
//! 1,000 (2-core EPYC virtual machine, release build); so 20,000 NPCs at 20 Hz are about 0.4 cores. Memory per NPC:
//! about 400 bytes.

pub mod body;
pub mod brain;
pub mod census;
pub mod combat;
pub mod graph;
pub mod load_level;
pub mod path_queue;
pub mod paths;
pub mod perception;
pub mod places;
pub mod population;
pub mod row;
pub mod senses;

pub use brain::Brain;
pub use load_level::{LoadLevel, Pace};
pub use path_queue::PathFollow;
pub use places::Places;
pub use row::{Npc, NpcRow, NpcRowItem};
pub use senses::{Moment, Senses};

use bevy_ecs::prelude::*;
use throng::prelude::*;
use throng_profiler::{Phases, site};

use crate::{arena::Arena, scene::Scene};

/// What all NPCs of a world do in a tick.
pub fn live(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    mut arena: ResMut<Arena>,
    mut rng: ResMut<WorldRng>,
    mut npcs: Query<NpcRow>,
) {
    let (arena, rng) = (&mut **arena, &mut rng.0);
    let mut phases = Phases::split(site!("ai.move"));
    arena.sight.askers.clear();
    arena.shots.shooters.clear();
    for mut npc in &mut npcs {
        if !npc.vitals.alive && !population::stand_up(&tick, &scene, rng, &mut npc) {
            continue;
        }
        paths::follow(&tick, &scene, &mut arena.doors, &mut npc);
        arena.actors.place(*npc.slot, npc.entity, npc.standing.0, npc.character.into());
        if npc.pace.take_look(tick.tick, tick.rate.0) {
            arena.sight.askers.push(npc.slot.0.into());
        }
        if npc.weapon.burst > 0 {
            arena.shots.shooters.push(*npc.slot);
        }
    }
    if !arena.sight.askers.is_empty() {
        phases.next(site!("ai.perception"));
        perception::perceive(&tick, &scene, arena, &mut npcs);
        phases.next(site!("ai.think"));
        body::think(&tick, &scene, arena, rng, &mut npcs);
    }
    if arena.paths.has_work() {
        phases.next(site!("ai.paths"));
    }
    paths::solve(&scene, arena, &mut npcs);
    if !arena.shots.shooters.is_empty() {
        phases.next(site!("ai.combat"));
        combat::fire(&tick, arena, rng, &mut npcs);
    }
    if census::is_due(&tick) {
        phases.next(site!("ai.census"));
        census::count(&tick, &npcs);
    }
}
