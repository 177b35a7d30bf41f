//! The end of a server: what a world does is in its last save, or it does not do it.

use std::sync::atomic::AtomicU32;

use throng_platform::signals::StopFlag;

use super::*;

/// A store that fails so often before it writes.
struct Fails {
    store: Embedded,
    left: u32,
}

impl Store for Fails {
    fn apply(&mut self, orders: &[Order], refused: &mut RefusedKeys) -> Result<Vec<Outcome>, StoreError> {
        if self.left > 0 {
            self.left -= 1;
            return Err(StoreError::DiskFull);
        }
        self.store.apply(orders, refused)
    }

    fn settle(&mut self) -> Result<Option<Vec<Outcome>>, StoreError> {
        self.store.settle()
    }

    fn reader(&self) -> Arc<dyn Reads> {
        self.store.reader()
    }
}

#[derive(Resource, Clone, Default)]
struct Counts {
    ticks: Arc<AtomicU32>,
    /// As of the last save, and how many there were.
    saved: Arc<AtomicU32>,
    saves: Arc<AtomicU32>,
}

impl WorldState for Counts {
    fn save(&self, _: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        self.saves.fetch_add(1, Ordering::SeqCst);
        self.saved.store(self.ticks.load(Ordering::SeqCst), Ordering::SeqCst);
        Ok(Vec::new())
    }

    fn load(&self, _: &mut World, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// A server with a world that counts its ticks, and saves as `state` does.
fn host(store: Box<dyn Store>, counts: &Counts, state: impl WorldState + Clone) -> Host {
    let in_world = counts.clone();
    let kind = TestKind::new("counted", Hertz(20), move |world: &mut WorldBuilder| {
        world.save_world(state.clone()).insert_resource(in_world.clone());
        world.add_systems(throng_world::bevy_app::Update, |counts: Res<Counts>| {
            counts.ticks.fetch_add(1, Ordering::SeqCst);
        });
    });
    let clock = ManualClock::new();
    // Time for a worker to run what is due.
    let slept = SleptClock::new(clock.clone()).when_woken(|_| std::thread::sleep(Duration::from_millis(1)));
    let server = Server::with_environment(
        &Settings::default(),
        SchemaBuilder::new().build(),
        testing::environment(Arc::new(slept)),
    );
    let mut host = Host::with(server, clock, store, kind);
    host.server.create_world_as(NewWorld::new(host.kind, 0).saved_as(7)).unwrap();
    host.run(10);
    assert!(counts.ticks.load(Ordering::SeqCst) > 0);
    host
}

/// Whether saves are missing at the end, and how long that took on the server's clock.
fn end(host: &mut Host) -> (bool, Nanos) {
    let began = host.clock.now();
    host.server.control().stop();
    let report = host.server.run(&StopFlag::new().unwrap(), &mut |_| ()).unwrap();
    (report.saves_missing, host.clock.now() - began)
}

/// The disk is full for a while when the server ends, which takes frames: no world does anything after its last save, which
/// nobody would find at the next start, though others may have heard of it.
#[test]
fn no_world_does_anything_after_its_last_save() {
    let counts = Counts::default();
    let store = Embedded::on(Box::new(MemoryDisk::default())).unwrap();
    let mut host = host(Box::new(Fails { store, left: 4 }), &counts, counts.clone());
    let saves = counts.saves.load(Ordering::SeqCst);
    assert!(!end(&mut host).0, "the disk has room again, in time");
    assert_eq!(counts.saves.load(Ordering::SeqCst), saves + 1, "one save at the end");
    assert_eq!(counts.ticks.load(Ordering::SeqCst), counts.saved.load(Ordering::SeqCst), "ticks that are in no save");
}

/// It can never be saved.
#[derive(Clone)]
struct Unsavable;

impl WorldState for Unsavable {
    fn save(&self, _: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        Err("a bug of the game's".into())
    }

    fn load(&self, _: &mut World, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn a_world_that_cannot_be_saved_at_the_end_is_told_and_not_waited_for() {
    let mut host = host(in_memory(), &Counts::default(), Unsavable);
    let (saves_missing, after) = end(&mut host);
    assert!(saves_missing);
    assert!(after < Nanos::from_secs(5), "{after:?} of the 10 s that a flush may take");
}
