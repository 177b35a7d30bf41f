//! The promise: a world that hangs or panics costs its own save and no other. Who asks for everything to be saved is told which
//! worlds are missing, and the others are saved when their time comes.
//!
//! The shipped frame and two real workers, on a clock that frames move: they wait some real milliseconds for worlds.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use bevy_ecs::prelude::*;
use throng::{
    lifecycle::NewWorld,
    prelude::*,
    server::{Environment, Server},
    settings::Settings,
    testing::{self, SleptClock, TestKind},
};
use throng_persistence::{Embedded, Key, Reads, disk::MemoryDisk};
use throng_platform::{clock::ManualClock, time::Nanos};
use throng_replication::SchemaBuilder;
use throng_world::saving::WorldState;

const HUNG: u64 = 1;
const WELL: [u64; 2] = [2, 3];
/// While a world hangs a frame lasts so many looks of a millisecond, for the others to come home.
const LOOKS: u64 = 20;

/// A world that hangs for as long as this is set.
#[derive(Resource, Clone, Default)]
struct Hang(Arc<AtomicBool>);

/// A world that panics in its next tick, or when it is saved.
#[derive(Resource, Clone, Default)]
struct Doom(Arc<AtomicU8>);

const IN_TICK: u8 = 1;
const IN_SAVE: u8 = 2;

#[derive(Resource, Default)]
struct Ticks(u64);

struct TicksState;

impl WorldState for TicksState {
    fn save(&self, ecs: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        if ecs.get_resource::<Doom>().is_some_and(|doom| doom.0.load(Ordering::SeqCst) == IN_SAVE) {
            return Err("this world cannot be saved".to_owned());
        }
        Ok(ecs.resource::<Ticks>().0.to_le_bytes().to_vec())
    }

    fn load(&self, _: &mut World, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn count(mut ticks: ResMut<Ticks>, hang: Option<Res<Hang>>, doom: Option<Res<Doom>>) {
    ticks.0 += 1;
    assert!(doom.is_none_or(|doom| doom.0.load(Ordering::SeqCst) != IN_TICK), "a bug in this world");
    while hang.as_ref().is_some_and(|hang| hang.0.load(Ordering::SeqCst)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Scene {
    server: Server,
    clock: ManualClock,
    hang: Hang,
    doom: Doom,
    frame: u64,
    reads: Arc<dyn Reads>,
}

impl Scene {
    fn new() -> Scene {
        let (clock, looks) = (ManualClock::new(), AtomicU64::new(0));
        let of_waits = clock.clone();
        let slept = SleptClock::new(clock.clone()).with_real_timeout(move |until| {
            if looks.fetch_add(1, Ordering::SeqCst) % LOOKS == LOOKS - 1 {
                of_waits.set(until);
                return Some(Duration::ZERO);
            }
            Some(Duration::from_millis(1))
        });
        let environment = Environment { workers_count: 2, ..testing::environment(Arc::new(slept)) };
        let mut settings = Settings::default();
        settings.saves.period_s = 1;
        let mut server = Server::with_environment(&settings, SchemaBuilder::new().build(), environment);
        let store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
        server.save_in(Box::new(store)).unwrap();
        let reads = server.saved().unwrap();
        let (hang, doom) = (Hang::default(), Doom::default());
        let of_world = (hang.clone(), doom.clone());
        let build = |world: &mut WorldBuilder| {
            world.init_resource::<Ticks>().add_systems(Update, count).save_world(TicksState);
        };
        let hung = server.add_kind(TestKind::new("hung", Hertz(20), move |world| {
            build(world.insert_resource(of_world.0.clone()).insert_resource(of_world.1.clone()));
        }));
        server.create_world_as(NewWorld::new(hung.unwrap(), 0).saved_as(HUNG)).unwrap();
        let well = server.add_kind(TestKind::new("well", Hertz(20), build)).unwrap();
        for id in WELL {
            server.create_world_as(NewWorld::new(well, 0).saved_as(id)).unwrap();
        }
        server.prepare(Nanos::ZERO).unwrap();
        Scene { server, clock, hang, doom, frame: 0, reads }
    }

    fn run(&mut self, frames: u64) {
        for _ in 0..frames {
            self.clock.set(self.server.start_of_frame(self.frame));
            self.server.frame(self.frame);
            self.frame += 1;
        }
    }

    /// The tick as of which it is saved.
    fn saved(&self, id: u64) -> Option<u64> {
        let saved = self.reads.get(Key::world(id)).unwrap()?;
        let state = saved.value.last_chunk::<8>().copied().unwrap();
        Some(u64::from_le_bytes(state))
    }
}

/// Its thread ends with the server.
impl Drop for Scene {
    fn drop(&mut self) {
        self.hang.0.store(false, Ordering::SeqCst);
    }
}

#[test]
fn who_wants_everything_saved_is_told_of_a_world_that_hangs_and_saving_goes_on() {
    let mut scene = Scene::new();
    scene.run(30);
    let saved = scene.server.control().save_now();
    scene.run(10);
    assert_eq!(saved.try_take().unwrap().unwrap().worlds_missing, [0; 0], "nothing hangs");

    scene.hang.0.store(true, Ordering::SeqCst);
    scene.run(10);
    let saved = scene.server.control().save_now();
    scene.run(20);
    let saved = saved.try_take().expect("it is answered though a world hangs").unwrap();
    assert_eq!(saved.worlds_missing.len(), 1, "{saved:?}");
    let before = [HUNG, WELL[0], WELL[1]].map(|id| scene.saved(id).unwrap());
    // More than their period.
    scene.run(80);
    let after = [HUNG, WELL[0], WELL[1]].map(|id| scene.saved(id).unwrap());
    assert_eq!(after[0], before[0], "it hangs");
    assert!(after[1] > before[1] && after[2] > before[2], "the others are saved as ever: {before:?} {after:?}");

    scene.hang.0.store(false, Ordering::SeqCst);
    scene.run(80);
    assert!(scene.saved(HUNG).unwrap() > before[0]);
}

#[test]
fn who_wants_everything_saved_is_told_of_a_world_that_loses_what_it_had_before_it_is_saved() {
    for (doom, why) in [(IN_TICK, "it panicked"), (IN_SAVE, "it cannot be saved")] {
        let mut scene = Scene::new();
        scene.run(30);
        let before = scene.server.control().save_now();
        scene.run(10);
        assert_eq!(before.try_take().unwrap().unwrap().worlds_missing, [0; 0], "all is well");
        let on_disk = scene.saved(HUNG).unwrap();

        scene.run(10);
        scene.doom.0.store(doom, Ordering::SeqCst);
        let saved = scene.server.control().save_now();
        scene.run(10);
        let saved = saved.try_take().expect("it is answered").unwrap();
        assert_eq!(saved.worlds_missing.len(), 1, "{why}: {saved:?}");
        assert_eq!(scene.saved(HUNG), Some(on_disk), "{why}: it is as at the save before");
    }
}
