//! Captures that were saved while a world was in its tick: its process died, or it is stuck.

use super::*;

/// Worker 0 in a tick of world 17, with what is open, in any order.
fn in_a_tick(kind: TriggerKind) -> Capture {
    let mut events = vec![world(at(0.0), Some(17), 812)];
    events.extend([(INFLICT, 1.0), (TICK, 0.5)].map(|(site, ms)| Event::OpenScope { site, begin_ns: at(ms) }));
    let mut capture = faulty(kind, "", 0, 0, vec![]);
    capture.threads[WORKER_0].events.extend(events);
    capture.about.trigger.world = Some(17);
    capture
}

#[test]
fn a_crash_names_the_world_and_the_open_scopes() {
    let mut capture = in_a_tick(TriggerKind::Crash);
    capture.about.trigger.name = "worker-0".into();
    capture.about.trigger.note = "SIGSEGV".into();
    check(
        &capture,
        "the process died: SIGSEGV; world 17 (hideout) was running; worker-0 was in server.tick > game.inflict",
        &[],
    );
}

#[test]
fn a_stuck_tick_is_told_with_what_it_is_in() {
    let mut capture = in_a_tick(TriggerKind::StuckTick);
    capture.about.trigger.name = "world.tick".into();
    capture.about.trigger.measured = 80 * MS;
    capture.about.trigger.allowed = 75 * MS;
    check(
        &capture,
        "world 17 (hideout) was in one tick for 80 ms and went on, in server.tick > game.inflict on worker-0",
        &["trigger: stuck-tick world.tick, 80 ms measured, 75 ms allowed, world 17 (hideout), frame 812"],
    );
    // The six innermost of many.
    let deeper = (0..6).map(|depth| Event::OpenScope { site: AI, begin_ns: at(2.0 + f64::from(depth)) });
    let mut deep = capture.clone();
    deep.threads[WORKER_0].events.extend(deeper);
    let verdict = tell(&deep, &Options::default()).expect("the frame is there").verdict;
    let six = [const { "ai.think" }; 6].join(" > ");
    assert!(verdict.ends_with(&format!("went on, in {six} on worker-0")), "{verdict}");
    // Nothing that is open is known where the capture came too late.
    capture.about.trigger.world = Some(3);
    check(&capture, "world 3 (hub) was in one tick for 80 ms and went on", &[]);
}
