//! The promise: every missed tick is counted, and it is counted as the host's where the host's records show that it took
//! a core away for 25 ms or more, and nowhere else.
//!
//! The shipped server's own loop on a clock that the test moves: a host that steals moves it while the frame thread
//! sleeps, a world that is slow moves it in its tick.

use std::sync::{Arc, Mutex};

use bevy_ecs::prelude::*;
use throng::{
    prelude::*,
    questions::Behind,
    report::{ServerReport, ServerStatus},
    server::{Environment, Server},
    settings::Settings,
    testing::{self, SleptClock, TestKind},
};
use throng_platform::{
    clock::{Clock, ManualClock},
    signals::StopFlag,
    steal::{CoreStall, ManualSteal},
    time::Nanos,
};
use throng_replication::SchemaBuilder;

/// At this time nobody runs for a while: whoever sleeps then is woken late.
#[derive(Clone, Copy)]
struct Pause {
    at: Nanos,
    length: Nanos,
    /// What the host's records say of it.
    stolen: Nanos,
    /// A heartbeat notes it.
    is_noted: bool,
}

/// The clock of a host that pauses once.
fn pausing(clock: ManualClock, steal: ManualSteal, pause: Option<Pause>) -> SleptClock {
    let pause = Mutex::new(pause);
    SleptClock::new(clock.clone()).when_woken(move |at| {
        if let Some(pause) = pause.lock().unwrap().take_if(|pause| pause.at <= at) {
            let begin = clock.now();
            clock.advance(pause.length);
            steal.steal(1, pause.stolen);
            if pause.is_noted {
                steal.stall(CoreStall { core: 0, begin, end: clock.now() });
            }
        }
    })
}

/// The clock, and what the tick that is slow takes of it.
#[derive(Resource)]
struct Slow(ManualClock, Nanos);

/// The tick that is slow: two seconds after the start.
const SLOW_TICK: u32 = 256;

fn be_slow(tick: Res<TickInfo>, slow: Res<Slow>) {
    if tick.tick == SLOW_TICK {
        slow.0.advance(slow.1);
    }
}

/// Three seconds of one world of 128 Hz that is slow for once, on a host that pauses once; and when it was behind.
fn run(slow_for: Nanos, pause: Option<Pause>) -> (ServerReport, Vec<ServerStatus>, Option<Behind>) {
    let (clock, steal) = (ManualClock::new(), ManualSteal::new(2));
    let host = pausing(clock.clone(), steal.clone(), pause);
    let environment = Environment { steal: Box::new(steal), ..testing::environment(Arc::new(host)) };
    let mut server = Server::with_environment(&Settings::default(), SchemaBuilder::new().build(), environment);
    let build = move |world: &mut WorldBuilder| {
        world.insert_resource(Slow(clock.clone(), slow_for)).add_systems(Update, be_slow);
    };
    let field = server.add_kind(TestKind::new("field", Hertz(128), build)).unwrap();
    server.create_world(field, 1).unwrap();
    let control = server.control();
    let mut watcher = control.published().watch();
    let (mut statuses, mut behind) = (Vec::new(), None);
    let report = server.run(&StopFlag::new().unwrap(), &mut |status| {
        if let Some(second) = watcher.second() {
            behind = second.worlds[0].behind;
        }
        statuses.push(status.clone());
        if status.second == 3 {
            control.stop();
        }
    });
    (report.unwrap(), statuses, behind)
}

const NO_TIME: Nanos = Nanos::ZERO;

fn paused_ms(length: u64, stolen: u64) -> Option<Pause> {
    let [length, stolen] = [length, stolen].map(Nanos::from_millis);
    Some(Pause { at: Nanos::from_millis(1_500), length, stolen, is_noted: false })
}

#[track_caller]
fn check(slow_for: Nanos, pause: Option<Pause>, missed: u64, of_host: u64) {
    let (report, statuses, behind) = run(slow_for, pause);
    assert_eq!(behind.is_some(), missed > 0, "{behind:?}");
    assert_eq!((report.ticks_missed, report.ticks_missed_host), (missed, of_host));
    assert_eq!(
        (report.counters["server.ticks_missed"], report.counters["server.ticks_missed_host"]),
        (missed, of_host)
    );
    assert_eq!(statuses.iter().map(|status| status.ticks_missed_host).sum::<u64>(), of_host);
}

#[test]
fn a_steady_server_misses_nothing() {
    check(NO_TIME, None, 0, 0);
    // A period of 128 Hz is 7.8 ms.
    check(Nanos::from_millis(7), None, 0, 0);
}

#[test]
fn ticks_that_a_host_stole_are_the_hosts() {
    check(NO_TIME, paused_ms(40, 40), 5, 5);
    let (_, statuses, _) = run(NO_TIME, paused_ms(40, 40));
    let took: Vec<f64> = statuses.iter().map(|status| status.host_took_ms_max).collect();
    assert_eq!(took, [0.0, 0.0, 40.0, 0.0], "it is told in the second in which it happened");
}

#[test]
fn ticks_that_a_slow_world_missed_are_our_own() {
    check(Nanos::from_millis(50), None, 5, 0);
}

/// From the first tick that was missed, which was due one period after the slow one, to the end of the next that ran.
#[test]
fn a_world_is_behind_from_the_first_missed_tick_on() {
    let (.., behind) = run(Nanos::from_millis(50), None);
    let Behind { since, until } = behind.expect("it was behind");
    let ms = |range: std::ops::Range<u64>, at: Nanos| range.contains(&(at.as_micros() / 1_000));
    assert!(ms(2_007..2_017, since) && ms(2_050..2_067, until), "{behind:?}");
}

#[test]
fn a_pause_that_no_record_tells_of_is_our_own() {
    check(NO_TIME, paused_ms(40, 0), 5, 0);
}

/// Red without a heartbeat: such a pause of a virtual machine leaves no record of steal.
#[test]
fn ticks_missed_while_a_core_stood_still_are_the_hosts_and_the_stall_is_counted() {
    let noted = |length| paused_ms(length, 0).map(|pause| Pause { is_noted: true, ..pause });
    check(NO_TIME, noted(40), 5, 5);
    check(NO_TIME, noted(20), 2, 0);
    let (report, ..) = run(NO_TIME, noted(40));
    let counted = ["host.stalls", "host.stall_ms", "host.stall_longest_ms"].map(|name| report.counters[name]);
    assert_eq!(counted, [1, 40, 40]);
}

#[test]
fn a_theft_of_20_ms_is_our_own() {
    check(NO_TIME, paused_ms(20, 20), 2, 0);
}

/// The theft ends with the late start of the very tick that is slow: it is an excuse for the first, not for both.
#[test]
fn a_theft_excuses_no_slow_world_after_it() {
    let [at, length] = [1_995, 40].map(Nanos::from_millis);
    check(Nanos::from_millis(500), Some(Pause { at, length, stolen: length, is_noted: false }), 5 + 63, 5);
}
