//! World: the kind of world that is measured, and its game: what moved, moves.

use bevy_ecs::prelude::*;
use peers_scenario::{Load, Pose as ScenePose, SIGHT_M, Scene, Terms};
use throng_platform::time::Nanos;
use throng_replication::{InterestSettings, ecs::Replicated};
use throng_world::prelude::*;

use crate::components::{Health, Number, Pose};

/// 20 ticks a second.
pub const TICK: Nanos = Nanos::from_millis(50);

/// A world filled with the scene as it is at tick 0.
pub struct Field {
    interest: InterestSettings,
    poses: Vec<ScenePose>,
    health: Vec<u16>,
}

impl Field {
    pub fn new(terms: &Terms, scene: &Scene) -> Self {
        let count = terms.entities as usize;
        let (poses, health) = (scene.poses[..count].to_vec(), scene.health[..count].to_vec());
        Self { interest: interest(terms), poses, health }
    }
}

/// Everything within sight is held at any time: sets are rebuilt every 4 ticks, in which two entities come nearer
/// by 1.5 m at most. No tiers, no budget: whoever is in sight is told of at every tick.
fn interest(terms: &Terms) -> InterestSettings {
    InterestSettings {
        enter_radius_m: SIGHT_M + if terms.load == Load::W1 { 1.5 } else { 0.0 },
        leave_radius_m: SIGHT_M + 2.0,
        budget_bytes_per_tick: 1 << 20,
        ..InterestSettings::default()
    }
}

impl WorldKind for Field {
    fn name(&self) -> &str {
        "field"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        crate::components::protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Pose>();
        world.interest(self.interest.clone());
        world.add_systems(Update, (welcome, play).chain()).init_resource::<Changes>();
        let ecs = world.world_mut();
        let rows = self.poses.iter().zip(&self.health).zip(0..);
        let spawned = rows.map(|((&pose, &points), number)| {
            ecs.spawn((Replicated::default(), Pose::from(pose), Health { points }, Number { number })).id()
        });
        let entities = Entities(spawned.collect());
        world.insert_resource(entities);
    }
}

/// By their numbers in the scene.
#[derive(Resource)]
struct Entities(Vec<Entity>);

/// What the next tick writes, by numbers of the scene.
#[derive(Resource, Default)]
pub struct Changes {
    poses: Vec<(u32, ScenePose)>,
    health: Vec<(u32, u16)>,
}

impl Changes {
    /// Takes over what has changed in the scene.
    pub fn take(&mut self, scene: &Scene) {
        self.poses.clear();
        self.poses.extend(scene.moved.iter().map(|&number| (number, scene.poses[number as usize])));
        self.health.clear();
        self.health.extend(scene.hurt.iter().map(|&number| (number, scene.health[number as usize])));
    }
}

/// Each client owns the entity of its number.
fn welcome(arrivals: Res<Arrivals>, entities: Res<Entities>, mut outbox: ResMut<Outbox>) {
    for arrival in &arrivals.0 {
        outbox.set_player(arrival.client, entities.0[arrival.client.0 as usize]);
    }
}

fn play(changes: Res<Changes>, entities: Res<Entities>, mut rows: Query<(&mut Pose, &mut Health)>) {
    for &(number, changed) in &changes.poses {
        if let Ok((mut pose, _)) = rows.get_mut(entities.0[number as usize]) {
            *pose = changed.into();
        }
    }
    for &(number, points) in &changes.health {
        if let Ok((_, mut health)) = rows.get_mut(entities.0[number as usize]) {
            health.points = points;
        }
    }
}
