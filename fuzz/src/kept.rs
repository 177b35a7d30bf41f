//! A kind of world that keeps its state in checkpoints, for the target `checkpoint`.

use throng::{prelude::*, world::testing::TestWorld};

#[derive(Component, Clone, Copy, Debug, PartialEq, Replicate, Pack)]
#[pack(name = "fuzz.place")]
pub struct Place {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    pub x: f32,
}

/// Whom it follows, and what it carries.
#[derive(Component, Pack)]
#[pack(name = "fuzz.follower")]
pub struct Follower {
    leader: Option<EntityLink>,
    items: List<u16, 8>,
}

#[derive(Resource, Default, Pack)]
#[pack(name = "fuzz.tally")]
pub struct Tally {
    born: u32,
    names: List<Text<12>, 4>,
}

pub struct Keeping;

impl WorldKind for Keeping {
    fn name(&self) -> &str {
        "keeping"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Place>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Place>().checkpoint::<Follower>().checkpoint::<Tally>();
        world.init_resource::<Tally>().add_systems(Startup, |mut commands: Commands| {
            for x in 0..6_u8 {
                commands.spawn((Replicated::default(), Place { x: x.into() }));
            }
        });
        world.add_systems(Update, (come, turn_over).chain());
    }
}

fn come(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let player = commands.spawn((Replicated::default(), Place { x: 0.0 })).id();
        outbox.set_player(arrival.client, player);
    }
}

/// One dies, one is born.
fn turn_over(places: Query<Entity, With<Place>>, mut tally: ResMut<Tally>, mut commands: Commands) {
    let mut places = places.iter();
    if let Some(oldest) = places.next() {
        commands.entity(oldest).despawn();
    }
    let leader = places.next().map(EntityLink::from);
    tally.born = tally.born.wrapping_add(1);
    commands.spawn((Replicated::default(), Place { x: 1.0 }, Follower { leader, items: List::default() }));
}

/// A world that was just built.
pub fn world() -> TestWorld {
    TestWorld::new(Keeping, &Keeping.protocol().schema(), 1)
}
