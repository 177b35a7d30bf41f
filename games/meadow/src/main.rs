//! Meadow: players walk about among sheep. A game in one file, to begin from, with every command of the toolbox.
//!
//! `cargo run --release -p meadow -- demo`

use std::process::ExitCode;

use bevy_ecs::prelude::*;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use throng::{
    prelude::*,
    settings::{Checks, Section},
};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_cli::{Game, GameOption};
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::{
    Replicate,
    ecs::{Placed, Replicated},
};

fn main() -> ExitCode {
    throng_cli::main(game())
}

fn game() -> Game {
    Game::with_settings(
        "meadow",
        || protocol().schema(),
        |server, arguments, settings: &MeadowSettings| {
            let meadow = Meadow {
                sheep: arguments.npcs,
                speed_m_per_s: arguments.options.value("speed").unwrap_or(settings.speed_m_per_s),
                are_asleep: arguments.options.has("at-night"),
            };
            let kind = server.add_kind(meadow)?;
            server.create_world(kind, settings.seed)?;
            Ok(())
        },
    )
    .about("a meadow to walk about on, with sheep")
    .version(env!("CARGO_PKG_VERSION"))
    .players(50, 1_000)
    .npcs(200, 5_000)
    .option(GameOption::switch("at-night", "Let the sheep sleep"))
    .option(GameOption::value::<f32>("speed", "M_PER_S", "How fast players walk, instead of the settings"))
    .bots(|_options, _scenario| |_bot: usize| Walker::default())
}

/// `[game]` of the settings file.
#[derive(Debug, Deserialize)]
#[serde(default)]
struct MeadowSettings {
    /// How fast players walk [m/s, 0.1 to 20]. Default 6.
    speed_m_per_s: f32,
    /// Seeds the meadow. Default 1.
    seed: u64,
}

impl Default for MeadowSettings {
    fn default() -> Self {
        Self { speed_m_per_s: 6.0, seed: 1 }
    }
}

impl Section for MeadowSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("speed_m_per_s", self.speed_m_per_s, 0.1..=20.0, "m/s");
    }
}

/// Half of the meadow's side (m).
const HALF_M: f32 = 100.0;

#[derive(Component, Clone, Copy, Debug, Replicate)]
struct Position {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    z: f32,
}

impl Placed for Position {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

impl Position {
    fn anywhere(rng: &mut impl Rng) -> Self {
        Self { x: rng.random_range(-HALF_M..HALF_M), z: rng.random_range(-HALF_M..HALF_M) }
    }

    fn go(&mut self, [x, z]: [f32; 2], way_m: f32) {
        self.x = (self.x + x * way_m).clamp(-HALF_M, HALF_M);
        self.z = (self.z + z * way_m).clamp(-HALF_M, HALF_M);
    }
}

/// Where a player wants to go: west or east, south or north, 127 at full speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pack)]
struct Walk(i8, i8);

impl ClientInput for Walk {}

/// What clients and the meadow say to each other.
fn protocol() -> Protocol {
    Protocol::new().component::<Position>().input::<Walk>()
}

/// Whose it is, and where that one wants to go.
#[derive(Component)]
struct Player {
    client: ClientKey,
    wish: Walk,
}

#[derive(Component)]
struct Sheep;

/// In metres per second.
#[derive(Resource)]
struct Speed(f32);

struct Meadow {
    sheep: u32,
    speed_m_per_s: f32,
    are_asleep: bool,
}

impl WorldKind for Meadow {
    fn name(&self) -> &str {
        "meadow"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Position>();
        world.insert_resource(Speed(self.speed_m_per_s));
        world.add_systems(Update, (come_and_go, listen, walk).chain());
        if !self.are_asleep {
            world.add_systems(Update, wander.after(walk));
        }
        for _ in 0..self.sheep {
            let place = Position::anywhere(&mut world.world_mut().resource_mut::<WorldRng>().0);
            world.world_mut().spawn((Replicated::default(), place, Sheep));
        }
    }
}

fn come_and_go(
    arrivals: Res<Arrivals>,
    departures: Res<Departures>,
    players: Query<(Entity, &Player)>,
    mut rng: ResMut<WorldRng>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let player = Player { client: arrival.client, wish: Walk::default() };
        let entity = commands.spawn((Replicated::default(), Position::anywhere(&mut rng.0), player)).id();
        outbox.set_player(arrival.client, entity);
    }
    for (entity, _) in players.iter().filter(|(_, player)| departures.0.contains(&player.client)) {
        commands.entity(entity).despawn();
    }
}

fn listen(walks: Inputs<Walk>, mut players: Query<&mut Player>) {
    for (sender, wish) in walks.read() {
        let Some(Ok(mut player)) = sender.entity.map(|own| players.get_mut(own)) else { continue };
        player.wish = wish;
    }
}

fn walk(tick: Res<TickInfo>, speed: Res<Speed>, mut players: Query<(&Player, &mut Position)>) {
    for (player, mut place) in &mut players {
        let Walk(x, z) = player.wish;
        if player.wish != Walk::default() {
            let [x, z] = [x, z].map(|part| f32::from(part) / 127.0);
            place.go([x, z], speed.0 * tick.dt_s / x.hypot(z).max(1.0));
        }
    }
}

fn wander(tick: Res<TickInfo>, mut rng: ResMut<WorldRng>, mut sheep: Query<&mut Position, With<Sheep>>) {
    for mut place in &mut sheep {
        // Most of the time they eat.
        if rng.0.random_bool(0.1) {
            place.go([rng.0.random_range(-1.0..1.0), rng.0.random_range(-1.0..1.0)], tick.dt_s);
        }
    }
}

/// A bot that walks, now here, now there.
#[derive(Default)]
struct Walker {
    wish: Walk,
    turns: u64,
}

impl Behaviour for Walker {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        if rng.random_bool(0.05) {
            self.wish = Walk(rng.random(), rng.random());
            self.turns += 1;
        }
        // Between two worlds inputs are refused; the next turn is soon.
        let _ = client.send_input(now, &self.wish);
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new().with("turns", self.turns)
    }
}
