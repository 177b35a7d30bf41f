//! The promise: a dormant world wakes nobody. While all are, workers sleep in the kernel, and the frame's thread wakes
//! once a second, whether there is one world or a thousand. Counted by the kernel, and not timed.

use std::{collections::BTreeMap, fs, sync::mpsc::channel, thread, time::Duration};

use throng::{server::Server, settings::Settings, testing};
use throng_net::protocol::PrivateKey;
use throng_platform::{
    signals::StopFlag,
    threads::{Priority, spawn_named},
};
use throng_replication::SchemaBuilder;

/// Looked at for so long.
const SECONDS: u64 = 3;

/// How often each thread of this process has gone to sleep in the kernel, by its name.
fn sleeps_by_thread() -> BTreeMap<String, u64> {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let statuses = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let of_thread = |status: String| {
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        Some((value("Name:")?.to_owned(), value("voluntary_ctxt_switches:")?.parse().ok()?))
    };
    statuses.filter_map(of_thread).collect()
}

/// Sleeps of the frame's thread and of the workers in [`SECONDS`], on a real host with so many worlds, all dormant.
fn sleeps_with(worlds_count: u64) -> (u64, Vec<u64>) {
    const TOML: &str =
        "[server]\naddress = \"127.0.0.1:0\"\nadmin_address = \"off\"\nworkers = 2\nhost_heartbeat = false\n";
    let settings = Settings::parse("throng.toml", TOML).unwrap();
    let mut server = Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([7; 32])).unwrap();
    let empty = server.add_kind(testing::empty()).unwrap();
    for seed in 0..worlds_count {
        server.create_world(empty, seed).unwrap();
    }
    let (control, (statuses, told)) = (server.control(), channel());
    let frames = spawn_named("frames", Priority::Normal, move || {
        server.run(&StopFlag::new().unwrap(), &mut |status| drop(statuses.send(status.clone()))).unwrap();
    });
    let frames = frames.unwrap();
    let asleep = told.iter().find(|status| status.worlds_awake == 0 && status.second > 0).expect("it runs");
    assert_eq!(asleep.worlds as u64, worlds_count);

    let before = sleeps_by_thread();
    thread::sleep(Duration::from_secs(SECONDS));
    let after = sleeps_by_thread();
    let of = |name: &str| after[name] - before[name];
    let sleeps = (of("frames"), vec![of("worker-0"), of("worker-1")]);
    control.stop();
    frames.join().unwrap();
    sleeps
}

#[test]
fn dormant_worlds_wake_nobody_however_many_there_are() {
    for worlds_count in [1, 1_000] {
        let (frames, workers) = sleeps_with(worlds_count);
        assert_eq!(workers, [0, 0], "{worlds_count} worlds");
        // Once a second, and one more if the first and the last of them are both within.
        assert!((1..=SECONDS + 1).contains(&frames), "{worlds_count} worlds: {frames} times in {SECONDS} s");
    }
}
