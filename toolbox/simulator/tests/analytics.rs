//! The promise of analytics events: a whole server's frame allocates nothing for them, each one that a world emits is in a
//! file or counted as dropped, and a session's numbers have a gap for each that was dropped. Nor do they change what a world
//! computes.

use std::path::PathBuf;

use bevy_ecs::prelude::*;
use throng::{Server, analytics::read, prelude::*, server::ServerError, settings::AnalyticsSettings};
use throng_platform::allocator::CountingAllocator;
use throng_simulator::{Simulation, SimulationSettings, first_difference};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

analytics!(Stepped = "stepped", 1 { steps: u64, is_even: bool, height_m: f32 });

/// A world that tells of so many steps in each tick.
struct Stairs {
    steps: u64,
}

#[derive(Resource)]
struct Steps(u64, u64);

impl WorldKind for Stairs {
    fn name(&self) -> &str {
        "stairs"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(Steps(self.steps, 0)).add_systems(Update, step);
    }
}

fn step(mut steps: ResMut<Steps>, mut may_be_dormant: ResMut<MayBeDormant>) {
    // Nobody plays, and it goes on.
    may_be_dormant.0 = false;
    for _ in 0..steps.0 {
        steps.1 += 1;
        Stepped { steps: steps.1, is_even: steps.1.is_multiple_of(2), height_m: steps.1 as f32 * 0.25 }.emit();
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("throng-stairs-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

const WORLDS: u64 = 3;

fn simulation(steps: u64, analytics: &AnalyticsSettings, hash: bool) -> Simulation {
    let settings = SimulationSettings { hash, ..SimulationSettings::new(Protocol::new().schema(), 5) };
    let build = |server: &mut Server| -> Result<(), ServerError> {
        let kind = server.add_kind(Stairs { steps })?;
        for seed in 0..WORLDS {
            server.create_world(kind, seed)?;
        }
        server.start_analytics(analytics, None, "test").expect("the folder can be made");
        Ok(())
    };
    Simulation::new(&settings, build).expect("it can be set up").0
}

fn in_folder(folder: &std::path::Path, queue_kb: u32) -> AnalyticsSettings {
    AnalyticsSettings { folder: Some(folder.to_owned()), queue_kb, ..AnalyticsSettings::default() }
}

#[test]
fn a_frame_allocates_nothing_for_events_and_all_are_in_files() {
    let folder = folder("steady");
    let mut without = simulation(10, &AnalyticsSettings::default(), false);
    let mut simulation = simulation(10, &in_folder(&folder, 65_536), false);
    let [with, without] = [&mut simulation, &mut without].map(|simulation| {
        simulation.run_for(5.0);
        simulation.allocations_per_frame(200)
    });
    simulation.server_mut().end_analytics();
    let sums = ["analytics.events", "analytics.file_events"].map(|name| simulation.server_mut().count_of(name));
    let found = read::folder(&folder, |_| {}).unwrap();
    let (_, session) = found.sessions.iter().next().unwrap();
    println!("{with:?}, {found:?}");
    assert!(sums[0] > 4_000, "{sums:?}");
    assert_eq!((sums[1], found.events, session.missing), (sums[0], sums[0], 0));
    assert_eq!(with, without);
    assert!(with.iter().filter(|count| **count == 0).count() > 150, "{with:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_a_flood_loses_is_counted_and_the_numbers_have_that_gap() {
    let folder = folder("flood");
    // A virtual second takes a moment: the exporter, which looks ten times in a real one, cannot keep up.
    let mut simulation = simulation(2_000, &in_folder(&folder, 64), false);
    simulation.run_for(3.0);
    simulation.server_mut().end_analytics();
    let of = |simulation: &mut Simulation, name| simulation.server_mut().count_of(name);
    let (emitted, dropped) = (of(&mut simulation, "analytics.events"), of(&mut simulation, "analytics.dropped_page"));
    let found = read::folder(&folder, |_| {}).unwrap();
    let (_, session) = found.sessions.iter().next().unwrap();
    assert!(emitted.is_multiple_of(2_000 * WORLDS), "{emitted}: every tick's are counted");
    assert!(dropped > 0);
    assert_eq!(found.events + dropped, emitted);
    // Of a gap at the very end nobody knows but the counts.
    assert_eq!(session.missing + (emitted - 1 - session.last()), dropped);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_world_computes_the_same_whether_its_events_are_exported_or_not() {
    let folder = folder("same");
    let mut with = simulation(10, &in_folder(&folder, 4_096), true);
    let mut without = simulation(10, &AnalyticsSettings::default(), true);
    with.run_for(2.0);
    without.run_for(2.0);
    assert!(!with.hashes().is_empty());
    assert_eq!(first_difference(with.hashes(), without.hashes()), None);
    std::fs::remove_dir_all(folder).unwrap();
}
