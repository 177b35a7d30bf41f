//! Districts on the shipped server: with its own threads for long tasks, and on the simulator with bots.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bevy_ecs::prelude::*;
use glam::Vec3;
use precinct::{
    PrecinctBot,
    bot::BotGuide,
    district::{self, District, DistrictPlan, FarPose, level, streaming, streaming::Streets},
    passport::PlayerClient,
};
use throng::{
    Server,
    lifecycle::NewWorld,
    prelude::*,
    settings::{Settings, Workers},
};
use throng_net::protocol::PrivateKey;
use throng_platform::signals::StopFlag;
use throng_query::nav::sectors::{StoreLimits, sector::dropped_on_this_thread};
use throng_simulator::{Simulation, SimulationSettings};

/// What is seen of a district from outside.
#[derive(Resource, Clone, Default)]
struct Watch {
    has_left: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
    streamed: Arc<AtomicU64>,
    orphaned: Arc<AtomicU64>,
    /// Sectors that threads which tick have dropped.
    dropped_in_ticks: Arc<AtomicU64>,
}

/// A district with players in thirty places, all of whom leave while what they need is still being streamed.
struct LeftBehind {
    district: District,
    watch: Watch,
}

impl WorldKind for LeftBehind {
    fn name(&self) -> &str {
        district::DISTRICT
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        district::protocol()
    }

    fn build(&self, world: &mut WorldBuilder) {
        self.district.build(world);
        world.insert_resource(self.watch.clone());
        world.add_systems(Update, come_and_go.before(streaming::take_sectors));
        world.add_systems(Update, look.after(streaming::stream));
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn come_and_go(
    tick: Res<TickInfo>,
    watch: Res<Watch>,
    streets: Res<Streets>,
    players: Query<Entity, With<PlayerClient>>,
    mut commands: Commands,
) {
    if tick.tick == 0 {
        for number in 0..30 {
            let feet = Vec3::new((number % 6) as f32 * 300.0 - 750.0, 0.0, (number / 6) as f32 * 300.0 - 600.0);
            commands.spawn((FarPose::new(feet, 0.0), PlayerClient(ClientKey(number))));
        }
    }
    if streets.sectors.counts().streamed >= 20 && !watch.has_left.swap(true, Ordering::Relaxed) {
        players.iter().for_each(|player| commands.entity(player).despawn());
    }
}

fn look(watch: Res<Watch>, streets: Res<Streets>) {
    let counts = streets.sectors.counts();
    watch.streamed.store(counts.streamed, Ordering::Relaxed);
    watch.orphaned.store(counts.orphaned, Ordering::Relaxed);
    watch.dropped_in_ticks.fetch_max(dropped_on_this_thread(), Ordering::Relaxed);
    let is_over = watch.has_left.load(Ordering::Relaxed) && streets.sectors.is_empty();
    watch.is_over.store(is_over, Ordering::Relaxed);
}

/// Promise (D4): a half-streamed sector that lost its player is dropped by a long task, never by a tick, and nothing of it is
/// left.
#[test]
fn half_streamed_sectors_whose_players_have_left_are_dropped_by_long_tasks() {
    let mut settings = Settings::default();
    settings.server.address = ([127, 0, 0, 1], 0).into();
    settings.server.workers = Workers::Count(1);
    let mut server = Server::bind(&settings, precinct::schema(), PrivateKey::new([7; 32])).unwrap();
    let store = level::store_with(StoreLimits { idle_bytes_max: 0, ..StoreLimits::default() });
    let watch = Watch::default();
    let district = District { store: store.clone(), keep_awake: true };
    let kind = server.add_kind(LeftBehind { district, watch: watch.clone() }).unwrap();
    let plan = NewWorld::new(kind, 1).with(&DistrictPlan { ordinal: 0, npcs: 0 }).unwrap();
    server.create_world_as(plan).unwrap();
    let control = server.control();
    let running = std::thread::spawn(move || server.run(&StopFlag::new().unwrap(), &mut |_| {}).map(drop));
    let begin = Instant::now();
    let is_done = || watch.is_over.load(Ordering::Relaxed) && store.counts().resident == 0;
    while !is_done() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // While the world is still there: it is not its end that has dropped them.
    let counts = store.counts();
    control.stop();
    running.join().unwrap().unwrap();
    let [streamed, orphaned, in_ticks] =
        [&watch.streamed, &watch.orphaned, &watch.dropped_in_ticks].map(|count| count.load(Ordering::Relaxed));
    println!("{streamed} streamed, {orphaned} orphaned: {counts:?}");
    assert!(streamed >= 20 && orphaned >= 1, "{streamed} streamed, {orphaned} orphaned");
    assert_eq!((counts.resident, counts.bytes), (0, 0), "nothing remains");
    assert_eq!(counts.dropped, counts.baked);
    assert!(counts.baked < 100, "what nobody waited for any more was not baked: {counts:?}");
    assert_eq!(in_ticks, 0, "no tick has dropped any");
}

/// Promise: bots play in districts, over sides of sectors that are streamed and blown up, and nothing they are told is wrong.
#[test]
fn bots_wander_and_blow_things_up() {
    let settings = SimulationSettings::new(precinct::schema(), 5);
    let build = |server: &mut Server| district::build(server, 2 * district::BAND, 60, false);
    let (mut simulation, districts) = Simulation::new(&settings, build).unwrap();
    let guide = BotGuide::load();
    for _ in 0..2 * district::BAND {
        simulation.join(Box::new(PrecinctBot::new(guide.clone())));
    }
    simulation.run_for(30.0);
    let totals = simulation.totals();
    assert_eq!(totals.playing, 2 * district::BAND as u64, "{totals:#?}");
    assert_eq!((totals.state_errors, totals.protocol_errors, totals.counter("violations")), (0, 0, 0), "{totals:#?}");
    assert!(totals.counter("charges") > 10, "{totals:#?}");
    assert!(totals.counter("metres_wandered") > 500, "{totals:#?}");
    let mut held = 0;
    for world in districts.worlds {
        let ecs = simulation.server_mut().world_mut(world).expect("it is at home between frames").ecs();
        let sectors = &ecs.resource::<Streets>().sectors;
        sectors.check();
        held += sectors.resident().count();
    }
    let counts = districts.store.counts();
    assert!(counts.damaged_baked > 0 && counts.refused == 0, "{counts:?}");
    assert_eq!(counts.failed, 0, "{:?}", districts.store.failure());
    assert!(held >= 20, "{held}: {counts:?}");
}
