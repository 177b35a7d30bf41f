//! Captures of any shape, as a foreign or broken writer may make them: each has a story that can be told.

use proptest::prelude::*;

use super::*;

fn any_index() -> impl Strategy<Value = u32> {
    prop_oneof![0..4u32, any::<u32>()]
}

fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![0..1_000u64, any::<u64>()]
}

fn any_event() -> impl Strategy<Value = Event> {
    let holder =
        (any_index(), any::<Option<u32>>()).prop_map(|(thread, world)| Holder { thread, site: Some(thread), world });
    prop_oneof![
        (any_index(), any_time(), any_time()).prop_map(|(site, begin_ns, end_ns)| scope(site, begin_ns, end_ns)),
        (any_index(), any_time()).prop_map(|(site, begin_ns)| Event::OpenScope { site, begin_ns }),
        (any_time(), prop::option::of(any_index()), any::<u32>()).prop_map(|(at_ns, id, tick)| world(at_ns, id, tick)),
        (any::<u32>(), any::<u32>(), any::<u64>()).prop_map(|(count, frees, bytes)| Event::Allocations {
            count,
            frees,
            bytes
        }),
        (any_index(), any_time(), any_time(), prop::option::of(holder))
            .prop_map(|(lock, begin_ns, end_ns, holder)| Event::LockWait { lock, begin_ns, end_ns, holder }),
        (any_time(), 0..3usize, any_index()).prop_map(|(at_ns, change, core)| switch(
            at_ns,
            [Switch::Running { core }, Switch::Preempted, Switch::Blocked][change]
        )),
        any_time().prop_map(|at_ns| Event::PageFault { at_ns }),
        (any_time(), any::<u64>()).prop_map(|(at_ns, bytes)| Event::LargeAllocation { at_ns, bytes }),
        (any_time(), any_index(), any::<f32>()).prop_map(|(at_ns, counter, value)| Event::Count {
            at_ns,
            counter,
            value
        }),
    ]
}

prop_compose! {
    fn any_trigger()(
        kind in prop::sample::select(TriggerKind::ALL.to_vec()),
        name in "(a|b|\\PC{0,8})",
        measured in any_time(),
        allowed in any_time(),
        world in prop::option::of(any_index()),
        at_ns in any_time(),
        note in ".{0,200}",
    ) -> Trigger {
        Trigger { kind, name, measured, allowed, world, at_ns, note }
    }
}

prop_compose! {
    fn any_frame()(
        number in any_time(),
        begin_ns in any_time(),
        end_ns in any_time(),
        budget_ns in any_time(),
        threads in prop::collection::vec((any_index(), any::<[u64; 3]>()), 0..3),
    ) -> Frame {
        let threads = threads
            .into_iter()
            .map(|(thread, [running_ns, waiting_ns, blocked_ns])| FrameThread { thread, running_ns, waiting_ns, blocked_ns })
            .collect();
        Frame { number, begin_ns, end_ns, budget_ns, threads }
    }
}

prop_compose! {
    fn any_capture()(
        trigger in any_trigger(),
        times in any::<[u64; 4]>(),
        switches in prop::sample::select(vec![SwitchSource::CpuWide, SwitchSource::PerfEvent, SwitchSource::Schedstat]),
        threads in prop::collection::vec(
            ("(a|b|\\PC{0,60})", 0..4usize, prop::collection::vec(any_event(), 0..30)),
            0..4,
        ),
        sites in prop::collection::vec(("(a|b|.{0,9})", "(a|b)", any::<Option<u64>>()), 0..4),
        frames in prop::collection::vec(any_frame(), 0..5),
        live in prop::collection::vec((prop::option::of(any_index()), prop::collection::vec(any::<u64>(), 0..5)), 0..3),
        moments in prop::collection::vec(any::<u64>(), 0..4),
        logs in prop::collection::vec((any_time(), any_index(), ".{0,300}"), 0..3),
        process in (any::<u32>(), ".{0,20}", any::<f32>()),
        (runs, stalls) in (
            prop::collection::vec((any_time(), prop::option::of(any_index())), 0..30),
            prop::collection::vec((0..3u32, any_time(), any_time()), 0..3),
        ),
    ) -> Capture {
        let classes = [ThreadClass::Frame, ThreadClass::ShortTask, ThreadClass::LongTask, ThreadClass::Other];
        let [begin_ns, end_ns, frame, saved_unix_s] = times;
        Capture {
            about: About { trigger, begin_ns, end_ns, frame, saved_unix_s, switches, ..About::default() },
            sites: sites
                .into_iter()
                .map(|(name, subsystem, budget_ns)| Site { name, subsystem, budget_ns, ..Site::default() })
                .collect(),
            threads: threads
                .into_iter()
                .map(|(name, class, events)| Thread { name, tid: 1, class: classes[class], events })
                .collect(),
            worlds: vec![World { id: 1, name: "a".into(), tick_hz: 20 }],
            locks: vec![Lock { name: "a".into() }],
            frames,
            logs: logs
                .into_iter()
                .map(|(at_ns, thread, text)| LogLine { at_ns, thread, level: "warn".into(), target: "a".into(), text })
                .collect(),
            memory: Memory {
                at_ns: moments,
                by_site: live.into_iter().map(|(site, bytes)| LiveBytes { site, bytes }).collect(),
            },
            host_threads: [Owner::Foreign, Owner::Own, Owner::Idle]
                .map(|owner| HostThread { owner, process: process.1.clone(), ..HostThread::default() })
                .to_vec(),
            processes: vec![ProcessShare { pid: process.0, name: process.1, cores: process.2 }],
            cores: vec![Core {
                number: 0,
                runs: runs.into_iter().map(|(at_ns, thread)| CoreRun { at_ns, thread }).collect(),
            }],
            host_stalls: stalls
                .into_iter()
                .map(|(core, begin_ns, end_ns)| HostStall { core, begin_ns, end_ns })
                .collect(),
            ..Capture::default()
        }
    }
}

proptest! {
    #[test]
    fn no_capture_is_too_strange_for_a_story(capture in any_capture()) {
        let text = story_of(&capture);
        prop_assert!(text.chars().all(|char| char == '\n' || !char.is_control()));
        let story = tell(&capture, &Options::default()).expect("only an unknown frame is an error");
        prop_assert!(serde_json::to_string(&story).is_ok());
    }
}
