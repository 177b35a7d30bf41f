//! Flowers: players pick them, and for each that is picked another one grows elsewhere.

use throng::{
    console::{Cell, Column, TextTable},
    prelude::*,
};

use crate::{
    players::{Ground, REACH_M},
    protocol::{Basket, Pick, Position, Sort},
};

#[derive(Component, Pack)]
pub struct Flower;

/// So many flowers.
pub struct FlowersPlugin(pub u32);

impl WorldPlugin for FlowersPlugin {
    fn build(&self, world: &mut WorldBuilder) {
        let count = self.0;
        let sow = move |ground: Res<Ground>, mut rng: ResMut<WorldRng>, mut commands: Commands| {
            (0..count).for_each(|_| sow_one(&ground, &mut rng, &mut commands));
        };
        world.checkpoint::<Flower>().add_systems(Startup, sow).add_systems(Update, pick);
    }
}

fn sow_one(ground: &Ground, rng: &mut WorldRng, commands: &mut Commands) {
    let place = Position::anywhere(&mut rng.0, ground.half_m);
    commands.spawn((Replicated::default(), Sort::Flower, Flower, place));
}

/// The console's `flowers.sow`: a system that is run once, with the arguments as its input, and answers with a table.
pub fn sow(
    In(count): In<i64>,
    flowers: Query<(), With<Flower>>,
    ground: Res<Ground>,
    mut rng: ResMut<WorldRng>,
    mut commands: Commands,
) -> CommandResult {
    (0..count).for_each(|_| sow_one(&ground, &mut rng, &mut commands));
    let mut table = TextTable::new([Column::integer("flowers", "flowers")]);
    table.row(&[Cell::Integer(flowers.iter().count() as i64 + count)]);
    Ok(table)
}

fn pick(
    asked: Requests<Pick>,
    ground: Res<Ground>,
    mut rng: ResMut<WorldRng>,
    mut players: Query<(&Position, &mut Basket), Without<Flower>>,
    mut flowers: Query<(Entity, &mut Position), With<Flower>>,
    mut outbox: ResMut<Outbox>,
) {
    for (sender, Pick) in asked.read() {
        let Some(Ok((own, mut basket))) = sender.entity.map(|own| players.get_mut(own)) else { continue };
        let within_reach = flowers.iter_mut().find(|(_, place)| place.distance_m(own) <= REACH_M);
        let Some((flower, mut place)) = within_reach else { continue };
        basket.flowers = basket.flowers.saturating_add(1);
        *place = Position::anywhere(&mut rng.0, ground.half_m);
        outbox.teleported(flower);
        // It fails for values outside of their type's limits, and a basket has none.
        let _ = outbox.send(sender.client, &*basket);
        count!("flowers.picked");
    }
}
