//! What wakes a server that nobody plays on: counted by the kernel, thread by thread, and not timed.

use std::{collections::BTreeMap, fs, time::Duration};

use crate::{
    child::{PATIENCE, Server, alone, settings_file, wait_until},
    lifecycle::{get, metric},
};

/// How often each thread of a process has gone to sleep in the kernel, by its name; those of one name together.
pub fn sleeps_by_thread(pid: u32) -> BTreeMap<String, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let mut sleeps = BTreeMap::new();
    for thread in threads.flatten() {
        // A thread may have ended meanwhile.
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let (Some(name), Some(count)) = (value("Name:"), value("voluntary_ctxt_switches:")) else { continue };
        *sleeps.entry(name.to_owned()).or_default() += count.parse::<u64>().expect("a count");
    }
    sleeps
}

/// Looked at for so long.
const SECONDS: u64 = 3;

/// Promise: of a server that nobody plays on the workers sleep for as long as all worlds do, and so do those who look at the
/// host; the frame's thread wakes once a second, and all that watches over the server less than twenty times. That a thousand worlds are as one is shown in
/// `runtime/server/tests/dormant_worlds.rs`.
#[test]
fn a_server_that_nobody_plays_on_sleeps() {
    let _alone = alone();
    let settings = settings_file("idle", "[saves]\nperiod_s = 1\n");
    let settings = settings.to_str().expect("a plain path");
    let server = Server::start(&["--config", settings, "--players", "1", "--npcs", "20000"]);
    // Each world is saved once after it was made, for which it wakes; over the period all of them are.
    let mut cuts = 0.0;
    let saved = wait_until(PATIENCE, || {
        std::thread::sleep(Duration::from_secs(2));
        let (_, figures) = get(server.admin_address, "/metrics");
        let before = std::mem::replace(&mut cuts, metric(&figures, "throng_saves_cuts_total"));
        (cuts > 0.0 && cuts == before).then_some(())
    });
    assert!(saved.is_some(), "worlds are saved again and again: {cuts} times");
    server.wait_for_status("worlds_awake", |awake| awake == 0.0);
    let second = server.wait_for_status("second", |_| true);
    // What is done once after the last world fell asleep is over.
    server.wait_for_status("second", |now| now > second);
    let (_, figures) = get(server.admin_address, "/metrics");
    let dormant = metric(&figures, "throng_server_worlds_dormant");
    assert!(dormant > 2.0 && dormant == metric(&figures, "throng_server_worlds"), "{figures}");
    // And the answer to that, too. Whoever looks at the host does so for a second more.
    server.wait_for_status("second", |now| now > second + 2.0);
    let (_, figures) = get(server.admin_address, "/metrics");
    assert_eq!(metric(&figures, "throng_host_heartbeats"), 0.0, "{figures}");
    let second = server.wait_for_status("second", |_| true);
    server.wait_for_status("second", |now| now > second + 1.0);

    let before = sleeps_by_thread(server.pid());
    std::thread::sleep(Duration::from_secs(SECONDS));
    let mut sleeps = sleeps_by_thread(server.pid());
    for (name, before) in before {
        sleeps.entry(name).and_modify(|count| *count -= before);
    }
    let workers: Vec<_> = sleeps.iter().filter(|(name, _)| name.starts_with("worker-")).collect();
    assert!(!workers.is_empty() && workers.iter().all(|&(_, &count)| count == 0), "{sleeps:?}");
    assert!(sleeps["throng"] <= SECONDS + 1, "the frame's thread: {sleeps:?}");
    let all: u64 = sleeps.values().sum();
    assert!(all <= 20 * SECONDS, "{all} in {SECONDS} s: {sleeps:?}");
    assert!(server.stop().status.success());
}
