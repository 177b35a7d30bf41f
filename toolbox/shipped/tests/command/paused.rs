//! The server's process is stopped and goes on, as when its host is suspended: nobody is let go for it, and the ticks that
//! were left out are counted, not made up for.

use std::time::Duration;

use crate::{
    child::{Server, Signal, settings_file},
    figures::window,
    slow::{bearing, swarm},
};

/// What the server bears of silence; each pause is longer.
const SILENCE_S: u32 = 2;
const PLAYERS: usize = 6;

fn a_stopped_server_goes_on(pauses: impl Iterator<Item = Duration>) {
    let settings = settings_file("paused-server", &bearing(SILENCE_S)).display().to_string();
    let server = Server::start(&["--players", "32", "--npcs", "64", "--config", &settings]);
    let bots = swarm(&server, 600, 1, PLAYERS);
    server.wait_for_status("players", |players| players == PLAYERS as f64);
    let worlds = server.wait_for_status("worlds", |worlds| worlds > 0.0);
    for pause in pauses {
        let (window, ()) = window(&server, || {
            server.signal(Signal::SIGSTOP);
            std::thread::sleep(pause);
            server.signal(Signal::SIGCONT);
        });
        println!("{pause:?}: {window:?}");
        let missed = window.missed_share * window.ticks;
        // The slowest of its worlds tick 20 times a second; those without players do not tick at all.
        assert!(missed >= PLAYERS as f64 * 20.0 * (pause.as_secs_f64() - 0.5), "of {worlds} worlds: {window:?}");
        server.wait_for_status("players", |players| players == PLAYERS as f64);
    }
    bots.signal(Signal::SIGINT);
    let finished = bots.finish(Duration::from_secs(60));
    let saw = finished.json();
    assert!(finished.status.success(), "{saw}");
    assert_eq!((&saw["disconnects"], &saw["state_errors"]), (&0.into(), &0.into()), "{saw}");
    assert!(server.stop().status.success());
}

#[test]
fn r28_a_stopped_server_goes_on_with_all_its_players() {
    a_stopped_server_goes_on([Duration::from_millis(2_500)].into_iter());
}

#[test]
#[ignore = "full form: takes 4 min"]
fn r28_a_server_is_stopped_twenty_times() {
    a_stopped_server_goes_on((1..=20).map(Duration::from_secs));
}
