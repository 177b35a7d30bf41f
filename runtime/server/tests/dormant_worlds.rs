//! The promise: a dormant world wakes nobody. While all are, workers sleep in the kernel, and the frame's thread wakes
//! once a second, whether there is one world or a thousand. Nobody looks at the host then, until a world is awake again.
//! Counted by the kernel, and not timed.

use std::{
    collections::BTreeMap,
    fs,
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

use throng::{server::Server, settings::Settings, testing};
use throng_net::protocol::PrivateKey;
use throng_platform::{
    process::cpu_time,
    signals::StopFlag,
    testing::not_permitted,
    threads::{Priority, spawn_named},
    time::Nanos,
};
use throng_replication::{ReplicationRules, SchemaBuilder};

/// Looked at for so long, and in the full form.
const SECONDS: u64 = 3;
const SECONDS_FULL: u64 = 60;

/// What threads did while all worlds were dormant.
struct Idle {
    frames_sleeps: u64,
    workers_sleeps: Vec<u64>,
    /// Of all who look at the host: the heartbeat of each core and the reader of who has the cores, where they are permitted.
    host_sleeps: u64,
    /// Of the recorder's own thread.
    recorder_sleeps: u64,
    /// Of the whole process, whatever else ran in it.
    all_sleeps: u64,
    cpu: Nanos,
}

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

/// Of all who look at the host, by their names.
fn host_sleeps(sleeps: &BTreeMap<String, u64>) -> u64 {
    let looks_at_host = |name: &str| name.starts_with("heartbeat-") || name == "recorder-cores";
    sleeps.iter().filter(|(name, _)| looks_at_host(name)).map(|(_, sleeps)| sleeps).sum()
}

/// Waits for it.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let give_up_at = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < give_up_at, "never {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// What a real host with so many worlds, all dormant, does in so many seconds. Afterwards all of them are woken, and fall
/// asleep again.
fn idle_with(worlds_count: u64, seconds: u64) -> Idle {
    const TOML: &str = "[server]\naddress = \"127.0.0.1:0\"\nadmin_address = \"off\"\nworkers = 2\n";
    let settings = Settings::parse("throng.toml", TOML).unwrap();
    let schema = SchemaBuilder::new().build();
    let mut server = Server::bind(&settings, schema.clone(), PrivateKey::new([7; 32])).unwrap();
    let empty = server.add_kind(testing::empty()).unwrap();
    for seed in 0..worlds_count {
        server.create_world(empty, seed).unwrap();
    }
    server.start_recorder(&settings, None, String::new()).unwrap();
    let (control, (statuses, told)) = (server.control(), channel());
    let frames = spawn_named("frames", Priority::Normal, move || {
        server.run(&StopFlag::new().unwrap(), &mut |status| drop(statuses.send(status.clone()))).unwrap();
    });
    let frames = frames.unwrap();
    let asleep = told.iter().find(|status| status.worlds_awake == 0 && status.second > 0).expect("it runs");
    assert_eq!(asleep.worlds as u64, worlds_count);
    // They look on for a second, and then rest with the next frame.
    told.iter().find(|status| status.second > asleep.second + 2).expect("it runs");

    let (before, cpu_before) = (sleeps_by_thread(), cpu_time());
    thread::sleep(Duration::from_secs(seconds));
    let (after, cpu) = (sleeps_by_thread(), cpu_time() - cpu_before);
    let of = |name: &str| after[name] - before[name];
    let host_sleeps_then = host_sleeps(&after) - host_sleeps(&before);
    let all_sleeps = before.keys().filter(|name| after.contains_key(*name)).map(|name| of(name)).sum();
    let idle = Idle {
        frames_sleeps: of("frames"),
        workers_sleeps: vec![of("worker-0"), of("worker-1")],
        host_sleeps: host_sleeps_then,
        recorder_sleeps: of("recorder"),
        all_sleeps,
        cpu,
    };
    // Mail for every world.
    control.set_replication_rules(ReplicationRules::for_schema(&schema));
    for name in ["heartbeat-", "recorder-cores"] {
        let lookers: Vec<_> = after.iter().filter(|(looker, _)| looker.starts_with(name)).collect();
        if lookers.is_empty() {
            not_permitted(&format!("no thread {name}"));
        }
        let has_looked = |(looker, before): &(&String, &u64)| sleeps_by_thread()[*looker] >= **before + 10;
        wait_until("looks again", || lookers.iter().all(has_looked));
    }
    wait_until("rests again", || {
        let before = host_sleeps(&sleeps_by_thread());
        thread::sleep(Duration::from_millis(100));
        host_sleeps(&sleeps_by_thread()) == before
    });
    control.stop();
    frames.join().unwrap();
    idle
}

#[test]
fn dormant_worlds_wake_nobody_however_many_there_are() {
    for worlds_count in [1, 1_000] {
        let idle = idle_with(worlds_count, SECONDS);
        let Idle { frames_sleeps, workers_sleeps, host_sleeps, recorder_sleeps, .. } = idle;
        assert_eq!((workers_sleeps, host_sleeps), (vec![0, 0], 0), "{worlds_count} worlds");
        // Once a second, and one more if the first and the last of them are both within.
        let wanted = 1..=SECONDS + 1;
        assert!(wanted.contains(&frames_sleeps), "{worlds_count} worlds: {frames_sleeps} times in {SECONDS} s");
        assert!(wanted.contains(&recorder_sleeps), "{worlds_count} worlds: {recorder_sleeps} times in {SECONDS} s");
    }
}

/// The full form: a minute with one world, without which no server runs, and one with a thousand. The second has no wake-up
/// more than the first.
/// `cargo test -p throng --test dormant_worlds -- --ignored --nocapture`
#[test]
#[ignore = "takes two minutes"]
fn p7_a_thousand_dormant_worlds_add_no_wake_up() {
    let [one, thousand] = [1, 1_000].map(|worlds_count| {
        let idle = idle_with(worlds_count, SECONDS_FULL);
        let per_s = |count: u64| count as f64 / SECONDS_FULL as f64;
        println!(
            "{worlds_count:>5} dormant worlds: {:.1} ms of CPU time in {SECONDS_FULL} s ({:.3} % of a core); voluntary \
             switches a second: {:.2} of the frame's thread, {:.2} of workers, {:.2} of all threads",
            idle.cpu.as_secs_f64() * 1e3,
            idle.cpu.as_secs_f64() / SECONDS_FULL as f64 * 100.0,
            per_s(idle.frames_sleeps),
            per_s(idle.workers_sleeps.iter().sum()),
            per_s(idle.all_sleeps),
        );
        idle
    });
    // The window may hold one second's look more or less.
    assert!(thousand.frames_sleeps <= one.frames_sleeps + 1, "{} and {}", one.frames_sleeps, thousand.frames_sleeps);
    assert_eq!((one.workers_sleeps, thousand.workers_sleeps), (vec![0, 0], vec![0, 0]));
    assert_eq!((one.host_sleeps, thousand.host_sleeps), (0, 0));
}
