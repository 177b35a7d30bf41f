//! Players: how they come, walk, travel and leave. Both worlds have these systems.

use throng::prelude::*;

use crate::protocol::{Basket, GoThrough, Position, Sort, Walk};

/// What an operator changes while the worlds run: `[game] speed_m_per_s`, and `tune.set speed_m_per_s` in the console.
pub static SPEED: Tunable<f32> = Tunable::new("speed_m_per_s", 6.0, 0.1..=20.0, "m/s", "how fast players walk");

/// How far a player reaches (m).
pub const REACH_M: f32 = 2.0;

/// The ground of a world, and its door.
#[derive(Resource, Clone, Copy)]
pub struct Ground {
    /// Half of its side (m).
    pub half_m: f32,
    /// Where players come in.
    pub door: Position,
    /// Where the door leads. `None`: to where the player came from.
    pub leads_to: Option<WorldId>,
}

impl Ground {
    /// The place so many metres away in this direction; at the edge, as far as it goes.
    pub fn step(&self, from: Position, [x, z]: [f32; 2], way_m: f32) -> Position {
        let scale = way_m / x.hypot(z).max(f32::EPSILON);
        let inside = |coordinate: f32| coordinate.clamp(-self.half_m, self.half_m);
        Position { x: inside(from.x + x * scale), z: inside(from.z + z * scale) }
    }
}

/// Whose player it is, and what that one wants.
#[derive(Component, Pack)]
pub struct Player {
    client: ClientKey,
    wish: Walk,
    came_from: Option<WorldId>,
}

/// The systems of players, on this ground.
pub struct PlayersPlugin(pub Ground);

impl WorldPlugin for PlayersPlugin {
    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Position>().accept_transfers::<Basket>().insert_resource(self.0);
        // What a world has when it is made again after a panic. The ground is always the same.
        world.checkpoint::<Position>().checkpoint::<Sort>().checkpoint::<Player>().checkpoint::<Basket>();
        world.transient::<Ground>();
        // What a player has when it comes back, after a restart too: it arrives with that as from another world.
        world.save_players(|ecs, player| ecs.get::<Basket>(player.entity?).copied());
        world.add_systems(Update, (come, leave, listen, walk, go_through).chain());
    }
}

fn come(arrivals: Res<Arrivals>, ground: Res<Ground>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let carried = arrival.transfer.as_ref().and_then(|transfer| transfer.read::<Basket>().ok());
        let basket = carried.unwrap_or_default();
        let player = Player { client: arrival.client, wish: Walk::default(), came_from: arrival.from };
        let entity = commands.spawn((Replicated::default(), Sort::Player, ground.door, player, basket)).id();
        outbox.set_player(arrival.client, entity);
        // It fails for values outside of their type's limits, and a basket has none.
        let _ = outbox.send(arrival.client, &basket);
    }
}

fn leave(departures: Res<Departures>, players: Query<(Entity, &Player)>, mut commands: Commands) {
    for (entity, _) in players.iter().filter(|(_, player)| departures.0.contains(&player.client)) {
        commands.entity(entity).despawn();
    }
}

fn listen(walks: Inputs<Walk>, mut players: Query<&mut Player>) {
    for (sender, &wish) in walks.read() {
        let Some(Ok(mut player)) = sender.entity.map(|own| players.get_mut(own)) else { continue };
        player.wish = wish;
    }
}

fn walk(tick: Res<TickInfo>, tuned: Tuned, ground: Res<Ground>, mut players: Query<(&Player, &mut Position)>) {
    for (player, mut place) in &mut players {
        // Who stands still has not changed, and costs no bytes.
        if player.wish != Walk::default() {
            let way = [player.wish.x, player.wish.z].map(|part| f32::from(part) / 127.0);
            let speed = tuned.get(&SPEED) * way[0].hypot(way[1]).min(1.0);
            *place = ground.step(*place, way, speed * tick.dt_s);
        }
    }
}

fn go_through(
    asked: Requests<GoThrough>,
    ground: Res<Ground>,
    players: Query<(Entity, &Player, &Position, &Basket)>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for (sender, GoThrough) in asked.read() {
        let Some(Ok((entity, player, place, basket))) = sender.entity.map(|own| players.get(own)) else { continue };
        let Some(to) = ground.leads_to.or(player.came_from) else { continue };
        // A client may ask from anywhere: whether it may is decided here.
        if place.distance_m(&ground.door) <= REACH_M && outbox.travel(sender.client, to, basket).is_ok() {
            commands.entity(entity).despawn();
            count!("journeys");
        }
    }
}
