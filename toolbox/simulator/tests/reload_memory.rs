//! The promise (R20): a world that panics and is made again leaves no byte of itself behind.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use bevy_ecs::prelude::*;
use throng::{Server, lifecycle::NewWorld, prelude::*};
use throng_pack::Pack;
use throng_platform::allocator::{AllocationObserver, CountingAllocator, set_observer};
use throng_simulator::{Simulation, SimulationSettings};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What is allocated now. Any thread adds; the test reads between frames, so relaxed order is enough.
struct Live(AtomicI64);

static LIVE: Live = Live(AtomicI64::new(0));

impl AllocationObserver for Live {
    fn allocated(&self, _block: *mut u8, bytes: usize) {
        self.0.fetch_add(bytes as i64, Ordering::Relaxed);
    }

    fn freed(&self, _block: *mut u8, bytes: usize) {
        self.0.fetch_sub(bytes as i64, Ordering::Relaxed);
    }
}

/// Panics that are still owed, by the one world of the test.
static OWED: AtomicU32 = AtomicU32::new(0);

#[derive(Component, Replicate, Pack, Clone, Copy)]
struct Number(u32);

struct Mine;

impl WorldKind for Mine {
    fn name(&self) -> &str {
        "mine"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Number>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.checkpoint::<Number>();
        world.add_systems(Startup, |mut commands: Commands| {
            (0..500).for_each(|number| _ = commands.spawn((Replicated::default(), Number(number))));
        });
        world.add_systems(Update, |mut numbers: Query<&mut Number>| {
            numbers.iter_mut().for_each(|mut number| number.0 = number.0.wrapping_mul(3));
            let owed = OWED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |owed| owed.checked_sub(1));
            assert!(owed.is_err(), "a bug in a game");
        });
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// Panics that are ten minutes apart are no reason to park a world.
const SECONDS_APART: f64 = 620.0;

/// What is allocated after each of some panics, or where they would have been.
fn live_after(panics: usize, each: u32) -> Vec<i64> {
    let settings = SimulationSettings::new(Mine.protocol().schema(), 20);
    let (mut simulation, ()) = Simulation::new(&settings, |server: &mut Server| {
        let kind = server.add_kind(Mine)?;
        server.create_world_as(NewWorld::new(kind, 1)).map(|_| ())
    })
    .expect("a world");
    let mut live = Vec::new();
    for _ in 0..panics {
        simulation.run_for(SECONDS_APART);
        OWED.store(each, Ordering::Relaxed);
        simulation.run_for(60.0);
        live.push(LIVE.0.load(Ordering::Relaxed));
    }
    assert_eq!(simulation.server_mut().count_of("server.worlds_reloaded"), panics as u64 * u64::from(each));
    live
}

#[test]
fn r20_a_panic_leaves_no_byte_behind() {
    // What a panic prints is kept by whoever runs tests, and its backtrace by the standard library.
    std::panic::set_hook(Box::new(|_| ()));
    set_observer(&LIVE).expect("nobody else observes");
    let (calm, faulty) = (live_after(6, 0), live_after(6, 1));
    // What a server notes as time goes by grows alike; the first panics leave what is kept for its memory.
    let grown = |live: &[i64]| live[5] - live[2];
    assert!(grown(&faulty) - grown(&calm) < 64, "{calm:?} without panics, {faulty:?} with them");
}
