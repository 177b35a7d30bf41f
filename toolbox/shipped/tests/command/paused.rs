//! The server's process is stopped and goes on, as when its host is suspended: nobody is let go for it, and the ticks that
//! were left out are counted, not made up for.

use std::time::Duration;

use nix::{
    sys::time::TimeSpec,
    time::{ClockId, clock_gettime, clock_settime},
};
use throng_platform::testing::not_permitted;

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
    let awake = || server.wait_for_status("worlds_awake", |worlds| worlds > 0.0);
    for pause in pauses {
        let awake_before = awake();
        let (window, ()) = window(&server, || {
            server.signal(Signal::SIGSTOP);
            std::thread::sleep(pause);
            server.signal(Signal::SIGCONT);
        });
        println!("{pause:?}: {window:?}");
        let missed = window.missed_share * window.ticks;
        // The slowest of its worlds tick 20 times a second; those without players do not tick at all. Players who travel
        // meet in one world, and while they do others sleep.
        let awake = awake_before.min(awake());
        assert!(missed >= awake * 20.0 * (pause.as_secs_f64() - 0.5), "of {awake} worlds: {window:?}");
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

/// The date of the whole host, which is set right again when this is dropped, by the clock that nobody can set.
struct Date {
    /// Real time less time since the start, as it was and is to be.
    right: Duration,
}

impl Date {
    /// `None` where the date may not be set, which is said.
    fn new() -> Option<Self> {
        let date = Self { right: time_of(ClockId::CLOCK_REALTIME) - time_of(ClockId::CLOCK_BOOTTIME) };
        match date.jump_to(date.now()) {
            Ok(()) => Some(date),
            Err(error) => {
                not_permitted(&format!("the date cannot be set ({error}), which takes CAP_SYS_TIME"));
                None
            }
        }
    }

    fn now(&self) -> Duration {
        self.right + time_of(ClockId::CLOCK_BOOTTIME)
    }

    fn jump_to(&self, unix: Duration) -> nix::Result<()> {
        clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(unix))
    }
}

impl Drop for Date {
    fn drop(&mut self) {
        self.jump_to(self.now()).expect("it could be set before");
    }
}

fn time_of(clock: ClockId) -> Duration {
    clock_gettime(clock).expect("a clock of every host").into()
}

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Sets the date of this host, and sets it right afterwards: nothing else should run on it meanwhile that minds.
fn the_date_is_set(hold: Duration, dates: &[fn(Duration) -> Duration]) {
    let settings = settings_file("paused-date", &bearing(SILENCE_S)).display().to_string();
    let server = Server::start(&["--players", "32", "--npcs", "64", "--config", &settings]);
    let bots = swarm(&server, 600, 1, PLAYERS);
    server.wait_for_status("players", |players| players == PLAYERS as f64);
    let Some(date) = Date::new() else { return };
    for to in dates {
        let (window, ()) = window(&server, || {
            date.jump_to(to(date.now())).expect("it could be set before");
            std::thread::sleep(hold);
            date.jump_to(date.now()).expect("it could be set before");
        });
        println!("{window:?}");
        assert!(window.missed_share < 0.5, "worlds go by another clock: {window:?}");
        server.wait_for_status("players", |players| players == PLAYERS as f64);
    }
    drop(date);
    bots.signal(Signal::SIGINT);
    let finished = bots.finish(Duration::from_secs(60));
    let saw = finished.json();
    assert!(finished.status.success(), "{saw}");
    assert_eq!((&saw["disconnects"], &saw["state_errors"]), (&0.into(), &0.into()), "{saw}");
    assert!(server.stop().status.success());
}

#[test]
#[ignore = "full form: sets the date of the host, takes 2 min"]
fn r28_the_date_is_set_twenty_times() {
    // The kernel refuses a date that is closer to 1970 than the host has been up.
    let earliest = |_| time_of(ClockId::CLOCK_BOOTTIME) + Duration::from_secs(1);
    let dates: [fn(Duration) -> Duration; 5] =
        [|now| now + HOUR, |now| now - HOUR, |now| now + DAY, |now| now - DAY, earliest];
    (0..4).for_each(|_| the_date_is_set(Duration::from_secs(3), &dates));
}
