//! The promise: a supervisor hears of it when no worker gets anything done, though frames go on, and hears nothing of one
//! that hangs while another ticks the worlds.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use throng::{prelude::*, server::Server, settings::Settings, testing::TestKind};
use throng_admin::{AdminSource, HealthState};
use throng_net::protocol::PrivateKey;
use throng_platform::signals::StopFlag;
use throng_replication::SchemaBuilder;

/// So many worlds are to hang.
static TO_HANG: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

fn hang_if_told() {
    if TO_HANG.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
        while !IS_OVER.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn health_is_stuck_when_every_worker_hangs_and_not_before() {
    let mut settings = Settings::default();
    settings.server.address = "127.0.0.1:0".parse().unwrap();
    settings.server.workers = throng::settings::Workers::Count(2);
    let mut server = Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([1; 32])).unwrap();
    let build = |world: &mut WorldBuilder| {
        world.add_systems(Update, hang_if_told);
    };
    let kind = server.add_kind(TestKind::new("hanging", Hertz(20), build)).unwrap();
    for seed in 0..3 {
        server.create_world(kind, seed).unwrap();
    }
    let published = server.control().published();
    let stop = StopFlag::new().unwrap();
    let stop_later = stop.clone();
    let running = std::thread::spawn(move || server.run(&stop_later, &mut |_| {}));

    let is_stuck_within = |seconds: u64| {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < deadline {
            if published.health().state == HealthState::Stuck {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    };
    // A host that pauses for seconds makes frames late, and is none of the workers' doing.
    let are_workers_stuck_within = |seconds: u64| {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut longest = Duration::ZERO;
        while Instant::now() < deadline {
            longest = longest.max(published.workers_stuck_for().into());
            std::thread::sleep(Duration::from_millis(20));
        }
        longest > Duration::from_secs(3)
    };
    assert!(!are_workers_stuck_within(1));
    TO_HANG.store(1, Ordering::SeqCst);
    assert!(!are_workers_stuck_within(5), "one worker is left");
    TO_HANG.store(1, Ordering::SeqCst);
    assert!(is_stuck_within(30), "{:?}", published.health());
    let health = published.health();
    assert!(health.workers_stuck_ms > 3_000.0 && health.frame_age_ms < health.workers_stuck_ms, "{health:?}");
    IS_OVER.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(30);
    while published.health().state == HealthState::Stuck {
        assert!(Instant::now() < deadline, "{:?}", published.health());
        std::thread::sleep(Duration::from_millis(20));
    }
    stop.request();
    running.join().unwrap().unwrap();
}
