//! The promise: a system that fails has a line in the log, with its world, its kind, its name and what is missing: at
//! once, and then one in ten seconds with how often it failed since.

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

#[test]
fn what_fails_has_a_line_with_its_names_and_then_one_in_ten_seconds() {
    let begin = ticks::now();
    let subscriber = tracing_subscriber::registry().with(CategoryFilter).with(Lines::new());
    let _kept_for_the_test = subscriber.set_default();
    let clock = ManualClock::new();
    let environment = testing::environment(Arc::new(SleptClock::new(clock.clone())));
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let build = |world: &mut WorldBuilder| _ = world.add_systems(Update, (graze, shear).chain());
    let dry = server.add_kind(TestKind::new("dry", Hertz(20), build)).unwrap();
    let world = server.create_world(dry, 1).unwrap();
    server.prepare(Nanos::ZERO).unwrap();
    server.world_mut(world).expect("it has been made").panic_on_failure(false);
    for frame in 0.. {
        let at = server.start_of_frame(frame);
        if at >= Nanos::from_secs(11) {
            break;
        }
        clock.set(at);
        server.frame(frame);
    }
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
