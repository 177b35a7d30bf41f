//! Bench: what worlds cost: memory and time to create, asleep, and two thousand of them awake.
//!
//! - `empty`: worlds with no system and no entity: memory and time each, and the time from an empty process to the
//!   first tick of all.
//! - `dormant`: the same worlds with nobody connected: share of a core while the server sleeps.
//! - `awake`: worlds with ten entities that move every tick, at 20 Hz: missed ticks and cores.
//!
//! Runs the shipped server on a loopback socket.

use bevy_ecs::prelude::*;
use harness::BenchArguments;
use throng::{prelude::*, report::ServerReport, settings::Settings};
use throng_net::protocol::PrivateKey;
use throng_platform::{
    allocator::CountingAllocator,
    clock::{Clock, MonotonicClock},
    process,
    signals::StopFlag,
    threads::{Priority, spawn_named},
    time::Nanos,
};
use throng_replication::{
    Replicate,
    ecs::{Placed, Replicated},
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Component, Clone, Replicate)]
struct Place {
    #[replicate(min = -64.0, max = 64.0, step = 0.01)]
    x: f32,
    #[replicate(min = -64.0, max = 64.0, step = 0.01)]
    z: f32,
}

impl Placed for Place {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// A world of `entities` that circle; with none it may sleep.
struct Circling {
    entities: u32,
}

fn circle(tick: Res<TickInfo>, mut places: Query<&mut Place>) {
    let (sin, cos) = (tick.tick as f32 * 0.1).sin_cos();
    for (index, mut place) in places.iter_mut().enumerate() {
        place.x = sin * (index + 1) as f32;
        place.z = cos * (index + 1) as f32;
    }
}

impl WorldKind for Circling {
    fn name(&self) -> &str {
        "circling"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        if self.entities == 0 { Protocol::new() } else { Protocol::new().component::<Place>() }
    }

    fn build(&self, world: &mut WorldBuilder) {
        if self.entities == 0 {
            return;
        }
        world.placed_by::<Place>().add_systems(Update, circle);
        for index in 0..self.entities {
            world.world_mut().spawn((Replicated::default(), Place { x: index as f32, z: 0.0 }));
        }
    }

    fn dormant_when_empty(&self) -> bool {
        self.entities == 0
    }
}

struct Outcome {
    create_us_per_world: f64,
    bytes_per_world: f64,
    rss_mb: f64,
    start_to_first_tick_ms: f64,
    report: ServerReport,
}

/// A server with `worlds` of `entities` for `seconds`.
fn run(worlds: u32, entities: u32, seconds: u64) -> Result<Outcome, Box<dyn std::error::Error>> {
    let clock = MonotonicClock::new();
    let mut settings = Settings::default();
    settings.server.address = "127.0.0.1:0".parse()?;
    let schema = Protocol::new().component::<Place>().schema();
    let mut server = throng::Server::bind(&settings, schema, PrivateKey::new([1; 32]))?;
    let kind = server.add_kind(Circling { entities })?;
    let rss_before = process::rss_bytes();
    let created_at = clock.now();
    for seed in 0..worlds {
        server.create_world(kind, seed.into())?;
    }
    let create = clock.now().saturating_sub(created_at);
    let stop = StopFlag::new()?;
    let timer = {
        let stop = stop.clone();
        spawn_named("timer", Priority::Normal, move || {
            std::thread::sleep(std::time::Duration::from_secs(seconds));
            stop.request();
        })?
    };
    server.trace_ticks(true);
    let ran_at = clock.now();
    let report = server.run(&stop, &mut |_| {})?;
    timer.join().map_err(|_| "the timer panicked")?;
    let (records, _) = server.take_tick_trace();
    let mut first: Vec<Option<Nanos>> = vec![None; worlds as usize];
    for record in records {
        first[record.world.index()].get_or_insert(record.finished);
    }
    let last_first = first.into_iter().flatten().max().unwrap_or_default();
    // The server's clock starts with it, at `clock`'s start to within a millisecond.
    let start_to_first_tick_ms = last_first.max(ran_at).as_millis_f64();
    Ok(Outcome {
        create_us_per_world: create.as_secs_f64() * 1e6 / f64::from(worlds),
        bytes_per_world: (process::rss_bytes().saturating_sub(rss_before)) as f64 / f64::from(worlds),
        rss_mb: process::rss_bytes() as f64 / 1e6,
        start_to_first_tick_ms,
        report,
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = BenchArguments::read();
    throng_platform::allocator::keep_memory();
    let (empty_worlds, awake_worlds, seconds) = if arguments.small { (50, 100, 1) } else { (1_000, 2_000, 10) };
    let empty = run(empty_worlds, 0, seconds)?;
    let awake = run(awake_worlds, 10, seconds)?;
    let figures = serde_json::json!({
        "empty": {
            "worlds": empty_worlds,
            "create_us_per_world": empty.create_us_per_world,
            "bytes_per_world": empty.bytes_per_world,
            "server_rss_mb": empty.rss_mb,
            "start_to_first_tick_of_all_ms": empty.start_to_first_tick_ms,
        },
        "dormant": {
            "worlds": empty_worlds,
            "cpu_cores": empty.report.server_cpu_cores,
            "frames_per_s": empty.report.frames as f64 / empty.report.seconds,
        },
        "awake": {
            "worlds": awake_worlds,
            "entities_each": 10,
            "create_us_per_world": awake.create_us_per_world,
            "bytes_per_world": awake.bytes_per_world,
            "ticks": awake.report.ticks,
            "ticks_missed": awake.report.ticks_missed,
            "tick_lateness_ms_max": awake.report.tick_lateness_ms.max,
            "cpu_cores": awake.report.server_cpu_cores,
            "idle_tail_share": awake.report.idle_tail_share,
            "allocations_per_frame": awake.report.allocations_per_frame,
        },
    });
    arguments.print("worlds", figures);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_size_runs() {
        let asleep = run(5, 0, 1).unwrap();
        let awake = run(5, 10, 1).unwrap();
        assert!(asleep.report.ticks <= 5, "worlds with nobody in them tick once and sleep");
        assert!(awake.report.ticks >= 50, "five worlds at 20 Hz: {} ticks", awake.report.ticks);
    }
}
