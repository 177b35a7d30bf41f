//! A kind of world that keeps its state in checkpoints, for the targets `checkpoint` and `replay`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use throng::{
    Server,
    prelude::*,
    recording::{Group, RecordingFiles, SegmentReader, segments_in},
    replay::ReplayGame,
    settings::Settings,
    testing::environment,
    world::testing::TestWorld,
};
use throng_platform::clock::{Clock, ManualClock};

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

const GAME: &str = "keeping";

/// The game whose servers have such worlds.
pub fn game(recording: &RecordingFiles) -> ReplayGame {
    let mut server = Server::for_replay(&Settings::default(), Keeping.protocol().schema(), recording.about());
    add_to(&mut server);
    server.into_replay()
}

fn add_to(server: &mut Server) -> WorldKindId {
    server.set_game(GAME);
    server.add_kind(Keeping).expect("there is none of that name")
}

/// Blocks of a recording of such a world, with its first tick and its state after that. `folder` is removed.
pub fn recorded_blocks(folder: &Path) -> Vec<u8> {
    let _ = fs::remove_dir_all(folder);
    let clock = ManualClock::new();
    let environment = environment(Arc::new(clock.clone()));
    let mut settings = Settings::default();
    (settings.recording.folder, settings.recording.hash_period_s) = (Some(folder.to_owned()), 0);
    let mut server = Server::with_environment(&settings, Keeping.protocol().schema(), environment);
    let kind = add_to(&mut server);
    server.create_world(kind, 1).expect("it can be built");
    server.prepare(clock.now()).expect("it can begin");
    clock.set(server.start_of_frame(0));
    server.frame(0);
    server.end_recording();
    let segment = segments_in(folder).expect("it was recorded").remove(0).path;
    let bytes = fs::read(segment).expect("it was recorded");
    fs::remove_dir_all(folder).expect("a folder of ours");
    let groups: Vec<Group> =
        SegmentReader::new(&bytes).expect("a segment").map(|group| group.expect("it is whole")).collect();
    groups.iter().flat_map(|group| group.with_ticks(|_, ticks, out| out.extend_from_slice(ticks.bytes()))).collect()
}

/// A folder of this process.
pub fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("throng-fuzz-{name}-{}", std::process::id()))
}
