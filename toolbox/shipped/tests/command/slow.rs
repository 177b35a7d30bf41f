//! Consumers that take nothing: players whose process stands still, for a while or for good. The server keeps a bounded
//! amount for them, lets the dead go after their silence, and shows those who come back in time what has become of the
//! world; nobody else notices.

use std::time::{Duration, Instant};

use crate::{
    abuse::check_unharmed,
    address::{KEY, TIMEOUT_S, token, token_for},
    child::{Server, Signal, Started, alone, settings_file, throng},
    crowd::Crowd,
    figures::{check_ticks_kept, quiet_window, window},
    player::Player,
};

struct Form {
    size: [&'static str; 4],
    /// Play on beside.
    awake: usize,
    /// Stand still for half of the silence that is borne.
    napping: usize,
    /// Stand still for `still`.
    dead: usize,
    still: Duration,
    /// The silence that is borne: the setting, and the default where nothing else is said.
    silence_s: u32,
    more_missed_share_max: f64,
}

/// What the server may grow by for each that stands still: 64 MiB for a hundred.
const GROWN_BYTES_PER_CLIENT_MAX: i64 = (64 << 20) / 100;
/// From the end of the silence until the status says so.
const NOTICED_WITHIN: Duration = Duration::from_secs(4);

/// The text of a settings file in which the server bears so much silence.
pub fn bearing(silence_s: u32) -> String {
    format!("[server]\ntimeout_s = {silence_s}\n")
}

/// Bots in a process of their own, which can be stopped as a whole.
pub fn swarm(server: &Server, silence_s: u32, client_id_first: u64, players: usize) -> Started {
    let settings = settings_file(&format!("slow-{client_id_first}"), &bearing(silence_s));
    let (address, id, players) = (server.address.to_string(), client_id_first.to_string(), players.to_string());
    let arguments = ["bots", "--json", "--connect", &address, "--first-client-id", &id, "--players", &players];
    let mut command = throng(&arguments);
    command.env("THRONG_PRIVATE_KEY", KEY).arg("--config").arg(settings);
    Started::new(command)
}

fn players_that_stand_still(form: &Form) {
    let _alone = alone();
    // What players cost is to be seen: not the pages of 2 MiB, of which a dozen clients touch one, and not the recorder's
    // ring, which fills for the first time.
    let settings = settings_file("slow-server", &format!("{}huge_pages = false\n", bearing(600))).display().to_string();
    let server = Server::start(&[&form.size[..], &["--config", &settings, "--no-recorder"]].concat());
    let crowd = Crowd::start(server.address, form.awake);
    let napping = swarm(&server, form.silence_s, 1_000_000, form.napping);
    let dead = swarm(&server, form.silence_s, 2_000_000, form.dead);
    let all = (form.awake + form.napping + form.dead) as f64;
    server.wait_for_status("players", |players| players == all);
    // The negative control: somebody whose silence is borne for ten minutes is still there when the others have gone.
    let mut ghost = Player::enter(token_for(vec![server.address], 1, 600));
    // It owes no answer to what it was told on arrival: that silence would be borne for 10 s only.
    ghost.play_until(Duration::from_secs(1), |_| false);
    let quiet = quiet_window(&server, Duration::from_secs(2));
    let silence = Duration::from_secs(u64::from(form.silence_s));

    let (stopped, gone_after) = window(&server, || {
        let begin = Instant::now();
        napping.signal(Signal::SIGSTOP);
        dead.signal(Signal::SIGSTOP);
        std::thread::sleep(silence / 2);
        napping.signal(Signal::SIGCONT);
        let left = all + 1.0 - form.dead as f64;
        server.wait_for_status("players", |players| players == left);
        let gone_after = begin.elapsed();
        std::thread::sleep(form.still.saturating_sub(begin.elapsed()));
        gone_after
    });
    println!("quiet {quiet:?}\nstill {stopped:?}\n{} were gone after {gone_after:?}", form.dead);
    // The last word was said up to 50 ms before.
    let bounds = silence - Duration::from_millis(100)..silence + NOTICED_WITHIN;
    assert!(bounds.contains(&gone_after), "{gone_after:?}");
    let stood = (form.napping + form.dead) as i64;
    assert!(stopped.rss_grown_bytes <= stood * GROWN_BYTES_PER_CLIENT_MAX, "{stopped:?}");
    check_ticks_kept(&quiet, &stopped, form.more_missed_share_max);

    dead.signal(Signal::SIGCONT);
    // A swarm of which nobody is left ends by itself.
    let saw = dead.finish(Duration::from_secs(60)).json();
    assert_eq!((&saw["disconnects"], &saw["state_errors"]), (&form.dead.into(), &0.into()), "{saw}");
    napping.signal(Signal::SIGINT);
    let finished = napping.finish(Duration::from_secs(60));
    let saw = finished.json();
    assert!(finished.status.success(), "{saw}");
    assert_eq!((&saw["disconnects"], &saw["state_errors"]), (&0.into(), &0.into()), "{saw}");
    assert!(saw["state_checks"].as_u64() > Some(0), "{saw}");
    ghost.leave();
    check_unharmed(crowd, server);
}

#[test]
fn players_that_stand_still_are_let_go_and_nobody_else_notices() {
    players_that_stand_still(&Form {
        size: ["--players", "32", "--npcs", "64"],
        awake: 10,
        napping: 4,
        dead: 6,
        still: Duration::from_secs(5),
        silence_s: 3,
        more_missed_share_max: 0.05,
    });
}

#[test]
#[ignore = "full form: takes 11 min, and wants a release build"]
fn r19_a_hundred_of_two_hundred_players_stand_still() {
    players_that_stand_still(&Form {
        size: ["--players", "224", "--npcs", "448"],
        awake: 100,
        napping: 50,
        dead: 50,
        still: Duration::from_secs(600),
        silence_s: TIMEOUT_S as u32,
        more_missed_share_max: 0.01,
    });
}

/// Promise: what the server bears counts, where a token would bear more.
#[test]
fn nobody_is_silent_for_longer_than_the_server_bears() {
    let settings = settings_file("slow-setting", &bearing(2)).display().to_string();
    let server = Server::start(&["--players", "4", "--npcs", "80", "--config", &settings]);
    let mut silent = Player::enter(token_for(vec![server.address], 1, 600));
    silent.play_until(Duration::from_secs(1), |_| false);
    let begin = Instant::now();
    server.wait_for_status("players", |players| players == 1.0);
    server.wait_for_status("players", |players| players == 0.0);
    // For an answer that it owes it would be let go after 10 s.
    assert!(begin.elapsed() < Duration::from_secs(2) + NOTICED_WITHIN, "{:?}", begin.elapsed());
    assert!(server.stop().status.success());
}

/// Promise: a player whose program died, or whose address changed, is let in again at once, without waiting for the end
/// of the silence that is borne; the earlier session is gone, and its place with it.
#[test]
fn a_player_who_comes_back_after_a_crash_takes_the_old_session_over() {
    let server = Server::start(&["--players", "4", "--npcs", "80"]);
    let mut crashed = Player::enter(token_for(vec![server.address], 1, 600));
    crashed.play_until(Duration::from_millis(300), |_| false);
    let begin = Instant::now();
    let mut back = Player::enter(token_for(vec![server.address], 1, 600));
    assert!(begin.elapsed() < Duration::from_secs(u64::from(TIMEOUT_S as u32)), "{:?}", begin.elapsed());
    server.wait_for_status("players", |players| players == 1.0);
    let ended = crashed.play_until(Duration::from_secs(5), |player| !player.is_connected());
    assert!(ended, "it is told that its session is over");
    back.play_until(Duration::from_secs(1), |_| false);
    assert!(back.is_connected());
    back.leave();
    assert!(server.stop().status.success());
}

/// How long somebody who took nothing for `pause` needs until it is shown the present.
fn resync_after(player: &mut Player, pause: Duration, is_lost: bool) -> Duration {
    let tick_hz = f64::from(player.client.world().expect("it is in a world").tick_hz);
    let tick_before = player.client.newest_tick();
    let begin = Instant::now();
    std::thread::sleep(pause);
    if is_lost {
        player.lose_what_waits();
    }
    let resumed = Instant::now();
    let is_present = |player: &mut Player| {
        // A few ticks are on the way.
        let passed = (begin.elapsed().as_secs_f64() * tick_hz) as u32;
        player.client.newest_tick() + 4 >= tick_before + passed
    };
    assert!(player.play_until(Duration::from_secs(10), is_present), "it is shown the past");
    resumed.elapsed()
}

/// Promise: who comes back within the silence that is borne is shown the present within two seconds, whether what it
/// was sent meanwhile waited for it or is lost.
#[test]
fn who_comes_back_in_time_is_shown_the_present() {
    let server = Server::start(&["--players", "4", "--npcs", "80"]);
    let mut player = Player::enter(token(server.address, 1));
    for is_lost in [false, true] {
        player.play_until(Duration::from_secs(1), |_| false);
        let before = player.client.stats();
        let took = resync_after(&mut player, Duration::from_secs(3), is_lost);
        println!("what was sent is lost: {is_lost}; the present after {took:?}");
        assert!(took <= Duration::from_secs(2), "{took:?}");
        player.play_until(Duration::from_millis(1_500), |_| false);
        let after = player.client.stats();
        assert!(after.state_checks > before.state_checks, "nothing was checked: {after:?}");
        assert_eq!(after.state_errors, 0, "{after:?}");
        assert!(player.is_connected());
    }
    player.leave();
    assert!(server.stop().status.success());
}
