//! Habits: a kind for each, and what it says.

use bevy_ecs::prelude::*;
use throng_replication::{InterestSettings, SchemaBuilder};
use throng_world::{prelude::*, testing::TestWorld, world_builder::Kind};

/// What was said, in order.
#[derive(Resource, Default)]
pub struct Log(pub Vec<&'static str>);

pub fn say(word: &'static str) -> impl FnMut(ResMut<Log>) + Clone {
    move |mut log| log.0.push(word)
}

struct Habits(fn(&mut WorldBuilder));

impl WorldKind for Habits {
    fn name(&self) -> &str {
        "habits"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        (self.0)(world.init_resource::<Log>());
    }
}

/// A world that has not ticked.
pub fn made(build: fn(&mut WorldBuilder)) -> TestWorld {
    TestWorld::new(Habits(build), &SchemaBuilder::new().build(), 1)
}

pub fn ticked(build: fn(&mut WorldBuilder), ticks: u32) -> TestWorld {
    let mut world = made(build);
    // A system that fails is to fail the test in each build.
    world.panic_on_failure(true);
    world.ticks(ticks);
    world
}

/// Ticks a world so often and looks at what was said.
pub fn check(build: fn(&mut WorldBuilder), ticks: u32, expect: impl Fn(&[&'static str])) -> TestWorld {
    let world = ticked(build, ticks);
    expect(&world.ecs().resource::<Log>().0);
    world
}

/// Why no world can be made of this.
pub fn refusal(build: fn(&mut WorldBuilder)) -> String {
    let mut kind = Kind::new(WorldKindId(0), Box::new(Habits(build)));
    let schema = SchemaBuilder::new().build();
    let made = kind.build_world(WorldId::new(0, 0), 1, None, &schema, &InterestSettings::default());
    made.err().expect("it is refused").to_string()
}
