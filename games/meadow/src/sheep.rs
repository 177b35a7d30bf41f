//! Sheep: NPCs that graze, and run from players who come near.

use throng::prelude::*;

use crate::{
    players::{Ground, Player},
    protocol::{Position, Sort},
};

/// Nearer than this a player is too near (m).
const FEAR_M: f32 = 5.0;
/// How fast sheep run, slower than players (m/s).
const RUN_M_PER_S: f32 = 4.0;
/// How fast they go from one tuft of grass to the next (m/s).
const GRAZE_M_PER_S: f32 = 1.0;

#[derive(Component, Pack)]
pub struct Sheep;

/// So many sheep.
pub struct SheepPlugin {
    pub count: u32,
    pub are_asleep: bool,
}

impl WorldPlugin for SheepPlugin {
    fn build(&self, world: &mut WorldBuilder) {
        let count = self.count;
        let come = move |ground: Res<Ground>, mut rng: ResMut<WorldRng>, mut commands: Commands| {
            for _ in 0..count {
                let place = Position::anywhere(&mut rng.0, ground.half_m);
                commands.spawn((Replicated::default(), Sort::Sheep, Sheep, place));
            }
        };
        world.checkpoint::<Sheep>().add_systems(Startup, come);
        if !self.are_asleep {
            world.add_systems(Update, (graze, flee).chain());
        }
    }
}

fn graze(
    tick: Res<TickInfo>,
    ground: Res<Ground>,
    mut rng: ResMut<WorldRng>,
    mut sheep: Query<&mut Position, With<Sheep>>,
) {
    throng::gauge!("npcs", sheep.iter().len());
    for mut place in &mut sheep {
        // Most of the time they eat.
        if rng.0.random_bool(0.1) {
            let way = [rng.0.random_range(-1.0..1.0), rng.0.random_range(-1.0..1.0)];
            *place = ground.step(*place, way, GRAZE_M_PER_S * tick.dt_s);
        }
    }
}

/// Each looks at every player: right for hundreds. For thousands there are neighbour lists, in the crate `throng-query`.
fn flee(
    tick: Res<TickInfo>,
    ground: Res<Ground>,
    players: Query<&Position, (With<Player>, Without<Sheep>)>,
    mut sheep: Query<&mut Position, With<Sheep>>,
) {
    for mut place in &mut sheep {
        let Some(player) = players.iter().find(|player| player.distance_m(&place) < FEAR_M) else { continue };
        let away = [place.x - player.x, place.z - player.z];
        *place = ground.step(*place, away, RUN_M_PER_S * tick.dt_s);
    }
}
