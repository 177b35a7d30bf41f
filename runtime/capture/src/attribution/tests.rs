//! Attribution against a model that looks at every single nanosecond, and by example.

use proptest::prelude::*;

use super::*;
use crate::model::{Frame, FrameThread, Lock, Site, Switch, SwitchSource, Thread, ThreadClass};

fn site(name: &str, subsystem: &str, category: &str) -> Site {
    Site { name: name.into(), subsystem: subsystem.into(), category: category.into(), ..Site::default() }
}

/// Sites `a.x`, `a.y`, `b.z` with one frame per pair of `frames` and one thread with `events`.
fn capture(frames: &[(u64, u64)], events: Vec<Event>) -> Capture {
    Capture {
        sites: vec![site("a.x", "a", "ai"), site("a.y", "a", "ai"), site("b.z", "b", "network")],
        locks: vec![Lock { name: "lock".into() }],
        threads: vec![Thread { name: "worker-0".into(), tid: 1, class: ThreadClass::ShortTask, events }],
        frames: (1..)
            .zip(frames)
            .map(|(number, &(begin_ns, end_ns))| Frame { number, begin_ns, end_ns, ..Frame::default() })
            .collect(),
        ..Capture::default()
    }
}

fn scope(site: u32, begin_ns: u64, end_ns: u64) -> Event {
    Event::Scope { site, begin_ns, end_ns }
}

fn switch(at_ns: u64, change: Switch) -> Event {
    Event::Switch { at_ns, change }
}

fn spent(running_ns: u64, waiting_ns: u64, blocked_ns: u64) -> Spent {
    Spent { running_ns, waiting_ns, blocked_ns }
}

/// Holds the exclusive times of the first thread in the first frame, `outside` last, against `expect`.
#[track_caller]
fn check(capture: &Capture, expect_sites: &[(u32, Spent)], expect_outside: Spent) {
    let attribution = Attribution::of(capture);
    let thread = &attribution.frames[0].threads[0];
    let sites: Vec<(u32, Spent)> =
        thread.sites.iter().map(|&(site, cost)| (site, cost.exclusive)).filter(|(_, it)| it.total_ns() > 0).collect();
    assert_eq!((&sites[..], thread.outside.exclusive), (expect_sites, expect_outside));
    assert_eq!(thread.spent().total_ns(), attribution.frames[0].wall_ns(), "the sum is the wall time");
}

#[test]
fn a_scope_has_its_time_without_the_scopes_inside_it() {
    let events = vec![scope(1, 20, 30), scope(2, 40, 45), scope(0, 10, 60), switch(90, Switch::Blocked)];
    check(
        &capture(&[(0, 100)], events),
        &[(0, spent(35, 0, 0)), (1, spent(10, 0, 0)), (2, spent(5, 0, 0))],
        spent(40, 0, 10),
    );
}

#[test]
fn inclusive_time_counts_recursion_once_and_groups_as_one() {
    let events = vec![scope(0, 20, 30), scope(1, 15, 35), scope(0, 10, 60)];
    let capture = capture(&[(0, 100)], events);
    let frame = &Attribution::of(&capture).frames[0];
    let inclusive = |costs: &Costs| costs.iter().map(|&(key, cost)| (key, cost.inclusive_ns)).collect::<Vec<_>>();
    assert_eq!(inclusive(&frame.sites), [(0, 50), (1, 20)]);
    assert_eq!(inclusive(&frame.subsystems), [(0, 50)], "a.x within a.y within a.x is 50 ns of a");
    assert_eq!(frame.sites[0].1.count, 2);
}

#[test]
fn a_scope_is_split_by_what_the_thread_was() {
    let events = vec![
        switch(20, Switch::Preempted),
        switch(50, Switch::Running { core: 1 }),
        switch(60, Switch::Blocked),
        switch(65, Switch::Running { core: 0 }),
        scope(0, 10, 70),
    ];
    check(&capture(&[(0, 100)], events), &[(0, spent(25, 30, 5))], spent(40, 0, 0));
}

#[test]
fn a_scope_longer_than_the_frame_is_cut_and_one_that_never_ended_goes_on() {
    let cut = vec![scope(1, 40, 120), scope(0, 5, 300)];
    check(&capture(&[(50, 150)], cut), &[(0, spent(30, 0, 0)), (1, spent(70, 0, 0))], spent(0, 0, 0));
    let open =
        vec![scope(2, 60, 70), Event::OpenScope { site: 1, begin_ns: 55 }, Event::OpenScope { site: 0, begin_ns: 5 }];
    check(
        &capture(&[(50, 100)], open),
        &[(0, spent(5, 0, 0)), (1, spent(35, 0, 0)), (2, spent(10, 0, 0))],
        spent(0, 0, 0),
    );
}

#[test]
fn inclusive_time_of_a_scope_over_several_frames_is_that_of_each_frame() {
    let capture = capture(&[(0, 100), (100, 200), (250, 300)], vec![scope(1, 120, 130), scope(0, 40, 260)]);
    let attribution = Attribution::of(&capture);
    let of_site_0: Vec<u64> = attribution.frames.iter().map(|frame| frame.sites[0].1.inclusive_ns).collect();
    assert_eq!(of_site_0, [60, 100, 10]);
    assert_eq!(attribution.frames[1].subsystems[0].1.inclusive_ns, 100);
}

#[test]
fn without_switches_the_sums_are_spread_and_lock_waits_stay_where_they_were() {
    let wait = Event::LockWait { lock: 0, begin_ns: 20, end_ns: 40, holder: None };
    let mut capture = capture(&[(0, 100)], vec![wait, scope(0, 10, 50)]);
    capture.about.switches = SwitchSource::Schedstat;
    capture.frames[0].threads = vec![FrameThread { thread: 0, running_ns: 40, waiting_ns: 20, blocked_ns: 40 }];
    // 80 ns are unknown; 40 : 20 : 20 of them ran, waited and were blocked.
    check(&capture, &[(0, spent(10, 5, 25))], spent(30, 15, 15));
    let attribution = Attribution::of(&capture);
    assert!(attribution.frames[0].threads[0].is_spread);
    assert_eq!(attribution.frames[0].sites[0].1.lock_wait_ns, 20);
}

#[test]
fn without_anything_scopes_ran_and_the_rest_slept() {
    check(&capture(&[(0, 100)], vec![scope(0, 10, 50)]), &[(0, spent(40, 0, 0))], spent(0, 0, 60));
}

#[test]
fn a_thread_without_events_is_known_by_its_sums_only() {
    let mut capture = capture(&[(0, 100)], vec![]);
    assert_eq!(Attribution::of(&capture).frames[0].threads, []);
    capture.frames[0].threads = vec![FrameThread { thread: 0, running_ns: 1, waiting_ns: 9, blocked_ns: 90 }];
    check(&capture, &[], spent(1, 9, 90));
}

#[test]
fn waits_after_wakeups_are_taken_from_the_ends_of_sleeps_as_the_sums_say() {
    let events = vec![
        switch(0, Switch::Running { core: 0 }),
        switch(10, Switch::Blocked),
        switch(40, Switch::Running { core: 0 }),
        scope(0, 5, 20),
        scope(1, 20, 45),
        switch(50, Switch::Preempted),
        switch(60, Switch::Running { core: 0 }),
        switch(70, Switch::Blocked),
        switch(80, Switch::Running { core: 0 }),
        switch(95, Switch::Blocked),
        switch(150, Switch::Running { core: 0 }),
    ];
    let mut capture = capture(&[(0, 100)], events);
    capture.frames[0].threads = vec![FrameThread { thread: 0, running_ns: 45, waiting_ns: 30, blocked_ns: 25 }];
    // 10 ns are known; the other 20 are half of the two sleeps of 30 and 10 ns: of the first from 25 to 40, in the
    // second scope. The sleep that goes on after the frame is none of its wakeups.
    check(&capture, &[(0, spent(5, 0, 10)), (1, spent(5, 15, 5))], spent(35, 15, 10));
    let stretches = Attribution::of_stretches(&capture, &[(20, 30)], &|_, _| true);
    assert_eq!(stretches[0].sites[0].1.exclusive, spent(0, 5, 5), "a part of the frame agrees with the whole");
}

#[test]
fn worlds_share_the_frame_by_their_marks() {
    let world = |at_ns, world, tick| Event::World { at_ns, world, tick };
    let events = vec![
        world(10, Some(17), 4),
        scope(0, 12, 30),
        world(30, Some(3), 9),
        scope(1, 31, 35),
        world(40, None, 0),
        world(50, Some(17), 5),
        world(60, None, 0),
    ];
    let capture = capture(&[(0, 100)], events);
    let attribution = Attribution::of(&capture);
    let worlds: Vec<(Option<u32>, u32, u64)> = attribution.frames[0]
        .worlds
        .iter()
        .map(|world| (world.world, world.tick, world.cost.exclusive.total_ns()))
        .collect();
    assert_eq!(worlds, [(None, 0, 60), (Some(17), 5, 30), (Some(3), 9, 10)]);

    let part =
        Attribution::of_part(&capture, &attribution.frames[0], &|site, _| site == Some(1)).expect("it has a length");
    assert_eq!(part.worlds.len(), 1, "only world 3 has time in site 1");
    assert_eq!((part.worlds[0].world, part.worlds[0].cost.exclusive.total_ns()), (Some(3), 4));
}

#[test]
fn counts_go_to_the_scope_and_frame_that_they_happened_in() {
    let events = vec![
        Event::PageFault { at_ns: 15 },
        Event::LargeAllocation { at_ns: 16, bytes: 300_000 },
        scope(1, 14, 20),
        Event::Allocations { count: 3, frees: 1, bytes: 300_100 },
        scope(0, 10, 30),
        Event::Allocations { count: 1, frees: 0, bytes: 8 },
        scope(2, 110, 120),
        Event::Allocations { count: 9, frees: 9, bytes: 900 },
    ];
    let capture = capture(&[(0, 100), (100, 200)], events);
    let attribution = Attribution::of(&capture);
    let bytes = |frame: usize| -> Vec<(u32, u64)> {
        attribution.frames[frame].sites.iter().map(|&(site, cost)| (site, cost.allocated_bytes)).collect()
    };
    assert_eq!((bytes(0), bytes(1)), (vec![(0, 8), (1, 300_100)], vec![(2, 900)]));
    assert_eq!(attribution.frames[0].sites[1].1.page_faults, 1);
    assert_eq!(attribution.large_allocations[0].site, Some(1));
}

#[test]
fn frames_that_overlap_or_are_empty_are_cut_to_what_fits() {
    let capture = capture(&[(50, 150), (0, 100), (120, 130), (300, 200)], vec![scope(0, 0, 1_000)]);
    let attribution = Attribution::of(&capture);
    let frames: Vec<_> = attribution.frames.iter().map(|frame| (frame.number, frame.begin_ns, frame.end_ns)).collect();
    assert_eq!((frames, attribution.frames_left_out), (vec![(2, 0, 100), (1, 100, 150)], 2));
}

#[test]
fn a_million_scopes_take_one_pass() {
    // 100,000 scopes of 8 children, in frames of 1,000 of them. A pass that went through the frame or the stack per
    // scope would not end.
    let mut events = Vec::new();
    for outer in 0..100_000u64 {
        events.extend((0..8).map(|inner| scope(1, outer * 100 + inner * 10 + 1, outer * 100 + inner * 10 + 9)));
        events.push(scope(0, outer * 100, outer * 100 + 90));
    }
    let frames: Vec<_> = (0..100u64).map(|frame| (frame * 100_000, (frame + 1) * 100_000)).collect();
    let capture = capture(&frames, events);
    let attribution = Attribution::of(&capture);
    assert!(attribution.frames.iter().all(|frame| frame.sites[1].1.count == 8_000));
}

/// One nanosecond of the model: innermost site, running/waiting/blocked as 0/1/2, world.
type Moment = (Option<u32>, usize, Option<u32>);

/// A thread that does what `steps` say, and what it was at each nanosecond.
fn play(steps: &[(u8, u8)]) -> (Vec<Event>, Vec<Moment>) {
    let mut events = vec![switch(0, Switch::Running { core: 0 })];
    let mut moments = Vec::new();
    let mut stack: Vec<(u32, u64)> = Vec::new();
    let (mut state, mut world) = (0, None);
    for &(kind, value) in steps {
        let at_ns = moments.len() as u64;
        match kind % 8 {
            0 | 1 => stack.push((u32::from(value) % 3, at_ns)),
            2 | 3 => {
                if let Some((site, begin_ns)) = stack.pop() {
                    events.push(scope(site, begin_ns, at_ns));
                }
            }
            4 => {
                state = usize::from(value) % 3;
                let change = [Switch::Running { core: 1 }, Switch::Preempted, Switch::Blocked][state];
                events.push(switch(at_ns, change));
            }
            5 => {
                world = (value % 4 > 0).then_some(u32::from(value) % 4);
                events.push(Event::World { at_ns, world, tick: 0 });
            }
            6 => events.push(Event::PageFault { at_ns }),
            _ => {}
        }
        let moment = (stack.last().map(|&(site, _)| site), state, world);
        moments.extend(std::iter::repeat_n(moment, usize::from(value % 7)));
    }
    events.extend(stack.iter().rev().map(|&(site, begin_ns)| Event::OpenScope { site, begin_ns }));
    (events, moments)
}

fn any_event() -> impl Strategy<Value = Event> {
    let time = prop_oneof![0..300u64, any::<u64>()];
    let index = prop_oneof![0..4u32, any::<u32>()];
    prop_oneof![
        (index.clone(), time.clone(), time.clone()).prop_map(|(site, begin_ns, end_ns)| Event::Scope {
            site,
            begin_ns,
            end_ns
        }),
        (index.clone(), time.clone()).prop_map(|(site, begin_ns)| Event::OpenScope { site, begin_ns }),
        (time.clone(), any::<Option<u32>>()).prop_map(|(at_ns, world)| Event::World { at_ns, world, tick: 0 }),
        (any::<u32>(), any::<u64>()).prop_map(|(count, bytes)| Event::Allocations { count, frees: count, bytes }),
        (index, time.clone(), time.clone()).prop_map(|(lock, begin_ns, end_ns)| Event::LockWait {
            lock,
            begin_ns,
            end_ns,
            holder: None
        }),
        (time.clone(), 0..3u8).prop_map(|(at_ns, change)| switch(
            at_ns,
            [Switch::Running { core: 0 }, Switch::Preempted, Switch::Blocked][usize::from(change)]
        )),
        time.prop_map(|at_ns| Event::PageFault { at_ns }),
    ]
}

proptest! {
    #[test]
    fn every_nanosecond_is_where_the_model_has_it(
        steps in prop::collection::vec(any::<(u8, u8)>(), 0..120),
        frames in prop::collection::vec((0..60u64, 0..40u64), 0..6),
    ) {
        let (events, moments) = play(&steps);
        let mut at_ns = 0;
        let frames: Vec<(u64, u64)> = frames
            .iter()
            .map(|(length, gap)| {
                let begin_ns = at_ns;
                at_ns = (at_ns + length).min(moments.len() as u64);
                let frame = (begin_ns, at_ns);
                at_ns = (at_ns + gap).min(moments.len() as u64);
                frame
            })
            .collect();
        let capture = capture(&frames, events);
        let attribution = Attribution::of(&capture);
        for frame in &attribution.frames {
            let mut sites = [[0u64; 3]; 4];
            let mut worlds = [0u64; 4];
            for &(site, state, world) in &moments[frame.begin_ns as usize..frame.end_ns as usize] {
                sites[site.map_or(3, |site| site as usize)][state] += 1;
                worlds[world.map_or(0, |world| world as usize)] += 1;
            }
            let mut got_sites = [[0u64; 3]; 4];
            let thread = &frame.threads[0];
            for (site, cost) in thread.sites.iter().copied().chain([(3, thread.outside)]) {
                let it = cost.exclusive;
                got_sites[site as usize] = [it.running_ns, it.waiting_ns, it.blocked_ns];
            }
            prop_assert_eq!(got_sites, sites);
            let mut got_worlds = [0u64; 4];
            for world in &frame.worlds {
                got_worlds[world.world.unwrap_or(0) as usize] = world.cost.exclusive.total_ns();
            }
            prop_assert_eq!(got_worlds, worlds);
        }
    }

    #[test]
    fn waits_of_the_sums_are_found_in_scopes_as_far_as_the_thread_slept(
        steps in prop::collection::vec(any::<(u8, u8)>(), 1..120),
        waiting_ns in 0..200u64,
    ) {
        let (events, moments) = play(&steps);
        let length_ns = moments.len() as u64;
        prop_assume!(length_ns > 0);
        let mut capture = capture(&[(0, length_ns)], events);
        let before = Attribution::of(&capture).frames.remove(0);
        capture.frames[0].threads = vec![FrameThread { thread: 0, running_ns: 0, waiting_ns, blocked_ns: 0 }];
        let after = Attribution::of(&capture).frames.remove(0);

        let switches: Vec<(u64, Switch)> = capture.threads[0]
            .events
            .iter()
            .filter_map(|event| if let Event::Switch { at_ns, change } = event { Some((*at_ns, *change)) } else { None })
            .collect();
        let ends_in_running = |pair: &&[(u64, Switch)]| {
            pair[0].1 == Switch::Blocked && matches!(pair[1].1, Switch::Running { .. })
        };
        let slept_ns: u64 = switches.windows(2).filter(ends_in_running).map(|pair| pair[1].0 - pair[0].0).sum();
        let (was, is) = (before.threads[0].spent(), after.threads[0].spent());
        prop_assert_eq!(is.waiting_ns, waiting_ns.min(was.waiting_ns + slept_ns).max(was.waiting_ns));
        prop_assert_eq!((is.running_ns, is.total_ns()), (was.running_ns, length_ns));
        for ((site, was), (same_site, is)) in before.threads[0].sites.iter().zip(&after.threads[0].sites) {
            prop_assert_eq!((site, was.exclusive.running_ns), (same_site, is.exclusive.running_ns));
            prop_assert_eq!(was.exclusive.total_ns(), is.exclusive.total_ns());
        }
        let mut of_worlds = Spent::default();
        after.worlds.iter().for_each(|world| of_worlds.add(&world.cost.exclusive));
        prop_assert_eq!(of_worlds, is);
        let mut of_parts = Spent::default();
        for wanted in [None, Some(0), Some(1), Some(2)] {
            let part = Attribution::of_part(&capture, &after, &|site, _| site == wanted).expect("it has a length");
            of_parts.add(&part.threads[0].spent());
        }
        prop_assert_eq!(of_parts, is);
    }

    #[test]
    fn any_events_add_up_to_the_wall_time(
        events in prop::collection::vec(any_event(), 0..60),
        frames in prop::collection::vec((0..300u64, 0..300u64), 1..5),
        sums in any::<[u64; 3]>(),
    ) {
        let mut capture = capture(&frames, events);
        let [running_ns, waiting_ns, blocked_ns] = sums;
        capture.frames[0].threads = vec![FrameThread { thread: 0, running_ns, waiting_ns, blocked_ns }];
        for frame in &Attribution::of(&capture).frames {
            for thread in &frame.threads {
                prop_assert_eq!(thread.spent().total_ns(), frame.wall_ns());
                for groups in [&thread.subsystems, &thread.categories] {
                    let sum: u64 = groups.iter().map(|(_, cost)| cost.exclusive.total_ns()).sum();
                    prop_assert_eq!(sum + thread.outside.exclusive.total_ns(), frame.wall_ns());
                }
            }
        }
    }
}
