//! The promise: a system that fails has a line in the log, with its world, its kind, its name and what is missing: at
//! once, and then one in ten seconds with how often it failed since. In a debug build its world is parked instead.

use std::sync::Arc;

use throng::{
    prelude::*,
    server::Server,
    settings::Settings,
    testing::{self, SleptClock, TestKind},
};
use throng_platform::{clock::ManualClock, ticks, time::Nanos};
use throng_profiler::log::{CategoryFilter, Lines, lines_between};
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

#[derive(Resource)]
struct Grass;

fn graze(_: Res<Grass>) {}

/// A command that fails, and who gives it.
fn shear(mut commands: Commands) {
    fn shear_nobody(_: &mut World) -> Result {
        Err("there is no sheep".into())
    }
    commands.queue(shear_nobody);
}

/// A server with one world, in which both fail in each tick.
fn dry_server(clock: &ManualClock) -> (Server, WorldId) {
    let environment = testing::environment(Arc::new(SleptClock::new(clock.clone())));
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let build = |world: &mut WorldBuilder| _ = world.add_systems(Update, (graze, shear).chain());
    let dry = server.add_kind(TestKind::new("dry", Hertz(20), build)).unwrap();
    let world = server.create_world(dry, 1).unwrap();
    server.prepare(Nanos::ZERO).unwrap();
    (server, world)
}

fn run_for(server: &mut Server, clock: &ManualClock, length: Nanos) {
    for frame in 0.. {
        let at = server.start_of_frame(frame);
        if at >= length {
            break;
        }
        clock.set(at);
        server.frame(frame);
    }
}

#[test]
fn what_fails_has_a_line_with_its_names_and_then_one_in_ten_seconds() {
    let begin = ticks::now();
    let subscriber = tracing_subscriber::registry().with(CategoryFilter).with(Lines::new());
    let _kept_for_the_test = subscriber.set_default();
    let clock = ManualClock::new();
    let (mut server, world) = dry_server(&clock);
    server.world_mut(world).expect("it has been made").panic_on_failure(false);
    run_for(&mut server, &clock, Nanos::from_secs(11));
    assert_eq!(server.count_of("server.worlds_parked"), 0);
    let failed = server.count_of("world.systems_failed");
    assert!(failed > 2 * 10 * 20, "both in each tick, and there were {failed}");

    let lines = lines_between(begin, ticks::now());
    let told: Vec<&str> =
        lines.iter().map(|line| line.text()).filter(|line| line.contains("a system failed")).collect();
    let [graze, shear, graze_later, shear_later] = &told[..] else { panic!("{told:?}") };
    let check = |line: &str, names: &[&str]| assert!(names.iter().all(|name| line.contains(name)), "{line}");
    for (line, times) in [(graze, "times=1 "), (graze_later, "times=200 ")] {
        check(line, &["kind=\"dry\"", "graze", "Grass", times]);
    }
    for (line, times) in [(shear, "times=1 "), (shear_later, "times=200 ")] {
        check(line, &["kind=\"dry\"", "shear_nobody, command in ", "there is no sheep", times]);
    }
}

/// So a mistake is seen where it is made. A release build goes on, as above.
#[test]
fn in_a_debug_build_its_world_is_parked() {
    let clock = ManualClock::new();
    let (mut server, world) = dry_server(&clock);
    run_for(&mut server, &clock, Nanos::from_secs(1));
    let is_parked = cfg!(debug_assertions);
    assert_eq!(server.count_of("server.worlds_parked"), u64::from(is_parked));
    assert_eq!(server.world_mut(world).is_none(), is_parked);
    assert!(is_parked || server.count_of("world.systems_failed") > 0);
}
