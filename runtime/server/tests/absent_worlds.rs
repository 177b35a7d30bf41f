//! The promise: a world that hangs or is slow costs its worker, not the tick of the others.
//!
//! Real clock, real threads; the slow worlds sleep, so that the machine's cores are not the point.

use std::time::Duration;

use bevy_ecs::prelude::*;
use throng::{prelude::*, report::ServerReport, server::Server, settings::Settings};
use throng_net::protocol::PrivateKey;
use throng_platform::signals::StopFlag;
use throng_replication::SchemaBuilder;

/// Ticks at `rate` and sleeps `nap` in the ticks that `naps_at` names.
struct Napper {
    name: &'static str,
    rate: Hertz,
    nap: Duration,
    naps_at: fn(u32) -> bool,
}

#[derive(Resource)]
struct Nap(Duration, fn(u32) -> bool);

fn take_nap(tick: Res<TickInfo>, nap: Res<Nap>) {
    if (nap.1)(tick.tick) {
        std::thread::sleep(nap.0);
    }
}

impl WorldKind for Napper {
    fn name(&self) -> &str {
        self.name
    }

    fn tick_rate(&self) -> Hertz {
        self.rate
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(Nap(self.nap, self.naps_at)).add_systems(take_nap);
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// Runs 20 lively worlds of 128 Hz and 20 of 20 Hz beside one `odd` world for two seconds; gives each world's missed
/// ticks.
fn run_beside(odd: Napper, workers: u16) -> (Vec<u64>, ServerReport) {
    let mut settings = Settings::default();
    settings.server.address = "127.0.0.1:0".parse().unwrap();
    settings.server.workers = throng::settings::Workers::Count(workers);
    let mut server = Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([1; 32])).unwrap();
    let never: fn(u32) -> bool = |_| false;
    let odd = server.add_kind(odd).unwrap();
    let quick =
        server.add_kind(Napper { name: "quick", rate: Hertz(128), nap: Duration::ZERO, naps_at: never }).unwrap();
    let steady =
        server.add_kind(Napper { name: "steady", rate: Hertz(20), nap: Duration::ZERO, naps_at: never }).unwrap();
    server.create_world(odd, 0).unwrap();
    for seed in 0..20 {
        server.create_world(quick, seed).unwrap();
        server.create_world(steady, seed).unwrap();
    }
    let stop = StopFlag::new().unwrap();
    let stop_later = stop.clone();
    let timer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        stop_later.request();
    });
    let report = server.run(&stop, &mut |_| {}).unwrap();
    timer.join().unwrap();
    (server.ticks_missed_by_world(), report)
}

/// If the 20 quick worlds waited for the odd one, they would miss more than 3,000 ticks: 192 each for a hang of 1.5 s,
/// 4 in every 50 ms beside a world that takes 40 ms. A machine that stalls for a tenth of a second costs some 300.
fn assert_others_tick(missed: &[u64]) {
    let others: u64 = missed[1..].iter().sum();
    assert!(others <= 800, "worlds beside the odd one missed {others} ticks: {missed:?}");
}

#[test]
fn a_hung_world_costs_its_worker_and_no_other_tick() {
    let hung = Napper { name: "hung", rate: Hertz(20), nap: Duration::from_millis(1500), naps_at: |tick| tick == 5 };
    let (missed, report) = run_beside(hung, 2);
    assert_others_tick(&missed);
    assert!(missed[0] >= 20, "the hung world itself misses what it slept through, but missed {}", missed[0]);
    assert!(report.world_hangs >= 1);
}

#[test]
fn what_a_world_misses_counts_though_it_never_comes_back() {
    let gone = Napper { name: "gone", rate: Hertz(20), nap: Duration::from_millis(2500), naps_at: |tick| tick == 10 };
    let (_, report) = run_beside(gone, 2);
    assert!(report.ticks_missed >= 15, "1.5 s of 20 Hz went by, and {} misses were reported", report.ticks_missed);
}

#[test]
fn a_40_ms_world_beside_128_hz_ones_is_in_time_itself_and_delays_nobody() {
    let slow = Napper { name: "slow", rate: Hertz(20), nap: Duration::from_millis(40), naps_at: |_| true };
    let (missed, _) = run_beside(slow, 2);
    assert_others_tick(&missed);
    assert!(missed[0] <= 10, "40 ms fit into a period of 50 ms, but {} of 40 ticks were missed", missed[0]);
}

#[test]
fn a_panicking_world_is_parked_and_the_others_go_on() {
    struct Bomb;
    impl WorldKind for Bomb {
        fn name(&self) -> &str {
            "bomb"
        }
        fn tick_rate(&self) -> Hertz {
            Hertz(20)
        }
        fn build(&self, world: &mut WorldBuilder) {
            world.add_systems(|tick: Res<TickInfo>| assert!(tick.tick < 3, "a bug in a game"));
        }
        fn dormant_when_empty(&self) -> bool {
            false
        }
    }
    let mut settings = Settings::default();
    settings.server.address = "127.0.0.1:0".parse().unwrap();
    let mut server = Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([1; 32])).unwrap();
    let bomb = server.add_kind(Bomb).unwrap();
    let steady =
        server.add_kind(Napper { name: "steady", rate: Hertz(20), nap: Duration::ZERO, naps_at: |_| false }).unwrap();
    server.create_world(bomb, 0).unwrap();
    server.create_world(steady, 0).unwrap();
    let stop = StopFlag::new().unwrap();
    let stop_later = stop.clone();
    let timer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        stop_later.request();
    });
    let report = server.run(&stop, &mut |_| {}).unwrap();
    timer.join().unwrap();
    assert_eq!(report.worlds_parked, 1);
    assert!(report.ticks >= 12, "the steady world went on: {} ticks", report.ticks);
}
