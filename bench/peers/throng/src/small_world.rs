//! Small world: the kind of `W4`, and its game, which is as thin as one can be: what has moved is written.
//!
//! All worlds read the same list, so that handing them their values costs next to nothing: in a real game they come out
//! of the world itself.

use std::sync::{Arc, PoisonError, RwLock};

use bevy_ecs::prelude::*;
use peers_scenario::{Pose as ScenePose, Scene, WORLD_ENTITIES, WORLD_MOVERS};
use throng::prelude::*;
use throng_replication::ecs::Replicated;

use crate::components::{Health, Number, Pose};

/// Values of those that move, in all worlds, world after world. Written by the driver between two ticks, read in them.
#[derive(Clone, Resource)]
pub struct Moves(Arc<RwLock<Moved>>);

#[derive(Default)]
struct Moved {
    poses: Vec<ScenePose>,
    health: Vec<u16>,
}

impl Moves {
    pub fn new(scene: &Scene) -> Self {
        let moves = Self(Arc::default());
        moves.take(scene);
        moves
    }

    /// Takes over what is so now.
    pub fn take(&self, scene: &Scene) {
        let mut moved = self.0.write().unwrap_or_else(PoisonError::into_inner);
        moved.poses.clear();
        moved.health.clear();
        for world in scene.poses.chunks(WORLD_ENTITIES as usize) {
            moved.poses.extend_from_slice(&world[..WORLD_MOVERS as usize]);
        }
        for world in scene.health.chunks(WORLD_ENTITIES as usize) {
            moved.health.extend_from_slice(&world[..WORLD_MOVERS as usize]);
        }
    }
}

/// Worlds filled with the scene as it is at tick 0, each with its own part.
pub struct SmallWorld {
    poses: Vec<ScenePose>,
    health: Vec<u16>,
    moves: Moves,
}

impl SmallWorld {
    pub fn new(scene: &Scene, moves: Moves) -> Self {
        Self { poses: scene.poses.clone(), health: scene.health.clone(), moves }
    }
}

/// Its place among those that move.
#[derive(Component)]
struct Mover(u32);

/// The entity of the world's client.
#[derive(Resource)]
struct Player(Entity);

impl WorldKind for SmallWorld {
    fn name(&self) -> &str {
        "small"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        crate::components::protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Pose>();
        world.insert_resource(self.moves.clone()).add_systems(Update, play);
        let number = world.id().index() as u32;
        let mut entities = Vec::new();
        for place in 0..WORLD_ENTITIES {
            let number = number * WORLD_ENTITIES + place;
            let (pose, points) = (self.poses[number as usize], self.health[number as usize]);
            let components = (Replicated::default(), Pose::from(pose), Health { points }, Number { number });
            entities.push(world.world_mut().spawn(components).id());
        }
        for (place, entity) in (0..WORLD_MOVERS).zip(&entities) {
            world.world_mut().entity_mut(*entity).insert(Mover(number * WORLD_MOVERS + place));
        }
        world.insert_resource(Player(entities[0]));
    }
}

/// One system, since what a further one costs is the game's.
fn play(
    arrivals: Res<Arrivals>,
    player: Res<Player>,
    mut outbox: ResMut<Outbox>,
    moves: Res<Moves>,
    mut movers: Query<(&Mover, &mut Pose, &mut Health)>,
) {
    for arrival in &arrivals.0 {
        outbox.set_player(arrival.client, player.0);
    }
    let moved = moves.0.read().unwrap_or_else(PoisonError::into_inner);
    for (&Mover(place), mut pose, mut health) in &mut movers {
        *pose = moved.poses[place as usize].into();
        let points = moved.health[place as usize];
        if health.points != points {
            health.points = points;
        }
    }
}
