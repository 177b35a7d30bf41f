//! Promise: what the guide shows is the code that there is. Each block of Rust in its first pages stands in a file of this
//! package, and what the reader is told to write stands here, is compiled and runs.

use std::{fs, path::Path};

use throng::{prelude::*, world::testing::TestWorld};

use crate::{
    players::{Ground, PlayersPlugin},
    protocol::{FIELD_HALF_M, Position, protocol},
    sheep::{Sheep, SheepPlugin},
};

#[allow(dead_code, reason = "a part of the game, of which this test uses some")]
#[path = "../src/players.rs"]
mod players;
#[allow(dead_code, reason = "a part of the game, of which this test uses some")]
#[path = "../src/protocol.rs"]
mod protocol;
#[allow(dead_code, reason = "a part of the game, of which this test uses some")]
#[path = "../src/sheep.rs"]
mod sheep;

/// As the reader writes it first: each sheep looks at all others.
mod slow {
    use super::*;

    /// How far sheep look for others (m), and how fast they go to them (m/s).
    const HERD_M: f32 = 10.0;
    const HERD_M_PER_S: f32 = 0.5;

    /// Sheep keep together: each goes towards the middle of those near it.
    pub fn flock(tick: Res<TickInfo>, ground: Res<Ground>, mut sheep: Query<&mut Position, With<Sheep>>) {
        let all: Vec<Position> = sheep.iter().copied().collect();
        for mut place in &mut sheep {
            let (mut count, mut x, mut z) = (0.0, 0.0, 0.0);
            for other in all.iter().filter(|other| other.distance_m(&place) < HERD_M) {
                (count, x, z) = (count + 1.0, x + other.x, z + other.z);
            }
            let way = [x / count - place.x, z / count - place.z];
            *place = ground.step(*place, way, HERD_M_PER_S * tick.dt_s);
        }
    }
}

/// As the capture makes the reader write it.
mod quick {
    use super::*;

    /// The field is cut into squares (m), and sheep go to the middle of those in theirs (m/s).
    const SQUARE_M: f32 = 10.0;
    const SQUARES: usize = 20;
    const HERD_M_PER_S: f32 = 0.5;

    /// Sheep keep together: each goes towards the middle of those in its square.
    pub fn flock(tick: Res<TickInfo>, ground: Res<Ground>, mut sheep: Query<&mut Position, With<Sheep>>) {
        let index = |at: f32| (((at + ground.half_m) / SQUARE_M) as usize).min(SQUARES - 1);
        let mut herds = [[(0.0, 0.0, 0.0); SQUARES]; SQUARES];
        for place in &sheep {
            let (count, x, z) = &mut herds[index(place.x)][index(place.z)];
            (*count, *x, *z) = (*count + 1.0, *x + place.x, *z + place.z);
        }
        for mut place in &mut sheep {
            let (count, x, z) = herds[index(place.x)][index(place.z)];
            let way = [x / count - place.x, z / count - place.z];
            *place = ground.step(*place, way, HERD_M_PER_S * tick.dt_s);
        }
    }
}

/// A field with sheep that keep together, the one way or the other.
struct Herds {
    is_quick: bool,
}

impl WorldKind for Herds {
    fn name(&self) -> &str {
        "herds"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let door = Position { x: 0.0, z: 0.0 };
        let ground = Ground { half_m: FIELD_HALF_M, door, leads_to: None };
        world.add_plugins((PlayersPlugin(ground), SheepPlugin { count: 400, are_asleep: true }));
        if self.is_quick {
            world.add_systems(Update, quick::flock);
        } else {
            world.add_systems(Update, slow::flock);
        }
    }
}

#[test]
fn sheep_that_keep_together_stand_closer() {
    let nearest_m = |world: &mut TestWorld| {
        let mut places = world.ecs_mut().query_filtered::<&Position, With<Sheep>>();
        let places: Vec<Position> = places.iter(world.ecs()).copied().collect();
        let nearest = |one: &Position| {
            let others = places.iter().filter(|other| *other != one);
            others.map(|other| other.distance_m(one)).fold(f32::INFINITY, f32::min)
        };
        places.iter().map(nearest).sum::<f32>() / places.len() as f32
    };
    for is_quick in [false, true] {
        let mut world = TestWorld::new(Herds { is_quick }, &protocol().schema(), 1);
        world.tick();
        let before_m = nearest_m(&mut world);
        world.ticks(100);
        let after_m = nearest_m(&mut world);
        assert!(after_m < 0.9 * before_m, "{before_m} m before, {after_m} m after");
    }
}

#[test]
fn each_block_of_the_guide_stands_in_a_file() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = vec![lines_of(&package.join("tests/guide.rs"))];
    for entry in fs::read_dir(package.join("src")).expect("a folder") {
        sources.push(lines_of(&entry.expect("an entry").path()));
    }
    let mut blocks_count = 0;
    for page in ["README.md", "first-hour.md"] {
        let path = package.join("../../docs/guide").join(page);
        for block in rust_blocks(&read(&path)) {
            blocks_count += 1;
            let stands = |source: &Vec<String>| source.windows(block.len()).any(|lines| lines == block);
            assert!(sources.iter().any(stands), "{page}: no file has this block:\n{}", block.join("\n"));
        }
    }
    assert!(blocks_count >= 5, "only {blocks_count} blocks were found");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Without indentation and empty lines.
fn trimmed<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines.map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn lines_of(path: &Path) -> Vec<String> {
    trimmed(read(path).lines())
}

fn rust_blocks(page: &str) -> Vec<Vec<String>> {
    let begins = page.split("```rust\n").skip(1);
    begins.map(|rest| trimmed(rest.split("```").next().unwrap_or_default().lines())).collect()
}
