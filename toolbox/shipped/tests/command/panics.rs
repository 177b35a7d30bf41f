//! Reliability R20: worlds of a live server panic under their players, each in another way. Each goes on within two seconds as
//! it was before the tick that failed; no player is disconnected, and the other worlds miss no tick for it.
//!
//! Which hashes they go on to is shown on a virtual clock (`toolbox/simulator/tests/panics.rs`, `reloads.rs`), where all
//! worlds are home before the clock moves and none can be late. Here the clock is real and does not wait.

use std::time::Duration;

use crate::{
    child::{PATIENCE, Server, alone, wait_until},
    crowd::Crowd,
    figures::{Window, quiet_window, window},
    lifecycle::{get, metric},
    watchdog::field,
};

/// Each is about a hideout of its own, 15 s after it was made.
const PANICS: [&str; 6] = [
    "panics-out-of-range",
    "panics-not-there",
    "panics-lent-twice",
    "panics-without-text",
    "panics-in-drop",
    "panics-in-command",
];
const PLAYERS: usize = 8;
/// By the contract.
const BACK_WITHIN_MS: f64 = 2_000.0;
/// How much more of all ticks may be missed than when nothing panics: what the host takes in pieces too short to be told. A reload
/// that keeps all others waiting for a tenth of a second costs twice as many.
const MISSED_SHARE_MORE: f64 = 0.02;

#[test]
fn r20_worlds_that_panic_are_back_in_time_and_nobody_else_misses_a_tick() {
    let _alone = alone();
    let injected: Vec<&str> = PANICS.iter().flat_map(|panic| ["--inject", panic]).collect();
    let size = ["--players", "8", "--npcs", "40", "--workers", "2", "--all-awake"];
    let server = Server::start(&[&size[..], &injected].concat());
    let crowd = Crowd::start(server.address, PLAYERS);
    let reloads = |said: &str| -> Vec<String> {
        let lines = said.lines().filter(|line| line.contains("a world that panicked goes on as it was"));
        lines.map(str::to_owned).collect()
    };
    let (panicking, all_are_back) = window(&server, || {
        wait_until(PATIENCE, || (reloads(&server.said()).len() == PANICS.len()).then_some(())).is_some()
    });
    assert!(all_are_back, "not all go on:\n{}", server.said());
    let quiet = quiet_window(&server, Duration::from_secs(5));
    println!("panicking {panicking:?}\nquiet {quiet:?}");

    let missed = |window: &Window| window.missed_own / window.ticks;
    assert!(missed(&panicking) <= missed(&quiet) + MISSED_SHARE_MORE, "{panicking:?}\n{quiet:?}");
    for line in reloads(&server.said()) {
        let took_ms: f64 = field(&line, "took_ms").parse().expect("a number");
        println!("back after {took_ms} ms with {} players", field(&line, "players"));
        assert!(took_ms <= BACK_WITHIN_MS, "{line}");
        assert_eq!((field(&line, "kind"), field(&line, "is_log_lost")), ("hideout", "false"), "{line}");
    }
    // While they still play: whoever says goodbye is counted, too.
    assert_eq!(metric(&get(server.admin_address, "/metrics").1, "throng_server_disconnects_total"), 0.0);
    let saw = crowd.finish();
    assert_eq!((saw.disconnects, saw.state_errors, saw.protocol_errors), (0, 0, 0), "{saw:?}");
    assert!(saw.state_checks > 0, "{saw:?}");
    let ended = server.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    let count = |name: &str| ended.report["counters"][name].as_u64().unwrap_or_default();
    let panics = PANICS.len() as u64;
    let counts = ["server.worlds_parked", "server.worlds_reloaded", "server.parkings"].map(count);
    assert_eq!(counts, [panics, panics, 0], "each went out of service and came back, none for long");
}
