//! The promises: what is written is read back the same, whatever it is; what is not a capture gives an error that names
//! the place.

use std::io;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::model::*;
use crate::sample;

use super::section::HEADER_BYTES;

fn written(capture: &Capture) -> Vec<u8> {
    let mut file = Vec::new();
    write(capture, &mut file).expect("it can be written");
    file
}

fn check_round_trip(capture: &Capture) {
    let file = written(capture);
    assert_eq!(&read(&file).expect("it can be read"), capture);
}

#[test]
fn captures_come_back_as_they_were() {
    check_round_trip(&Capture::default());
    check_round_trip(&sample::small());
    check_round_trip(&sample::hostile());
    // Several sections per thread.
    check_round_trip(&sample::busy(40_000, 1));
}

#[test]
fn a_scope_takes_at_most_5_2_bytes() {
    let capture = sample::busy(50_000, 2);
    let scopes: usize = capture.threads.iter().map(|thread| thread.events.len()).sum();
    let bytes_per_scope = written(&capture).len() as f64 / scopes as f64;
    println!("{scopes} scopes, {bytes_per_scope:.3} bytes per scope, everything in the file counted");
    assert!(bytes_per_scope <= 5.2, "{bytes_per_scope:.3}");
}

#[test]
fn every_site_may_be_common_or_rare() {
    let mut capture = sample::small();
    capture.sites = (0..300).map(|line| Site { line, ..Site::default() }).collect();
    let scope = |site, begin_ns, end_ns| Event::Scope { site, begin_ns, end_ns };
    let shapes =
        |site: u32| [scope(site, 0, 5), scope(site, 7, 9), scope(site, 1, 20), scope(site, 20, 25), scope(site, 9, 3)];
    capture.threads[0].events = (0..300).flat_map(shapes).collect();
    check_round_trip(&capture);
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let file = written(&sample::small());
    for len in 0..file.len() {
        let error = read(&file[..len]).expect_err("a part of a capture is none");
        let place = match error {
            ReadError::NotACapture => 0,
            ReadError::CutShort { offset } => offset,
            other => panic!("{len} bytes: {other}"),
        };
        assert!(place <= len, "{len} bytes: at {place}");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let file = written(&sample::small());
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&damaged).is_err(), "bit {bit}");
    }
}

/// Gives every section the checksum of what it holds now, so that a mutation gets behind it.
fn seal(file: &mut [u8]) {
    let mut at = MAGIC.len() + 2;
    while let Some(header) = file.get(at..at + HEADER_BYTES) {
        let length = u32::from_le_bytes(header[1..5].try_into().unwrap()) as usize;
        let Some(payload) = file.get(at + HEADER_BYTES..).and_then(|rest| rest.get(..length)) else { return };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..5]);
        hasher.update(payload);
        let checksum = hasher.finalize().to_le_bytes();
        file[at + 5..at + HEADER_BYTES].copy_from_slice(&checksum);
        at += HEADER_BYTES + length;
    }
}

#[test]
fn a_byte_of_any_value_behind_the_checksums_is_read_or_refused() {
    let file = written(&sample::small());
    let (mut taken, mut refused) = (0, 0);
    for at in MAGIC.len() + 2..file.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, file[at] ^ 1, file[at].wrapping_add(16)] {
            let mut mutated = file.clone();
            mutated[at] = value;
            seal(&mut mutated);
            match read(&mutated) {
                Ok(capture) => {
                    taken += 1;
                    check_round_trip_bits(&capture);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        taken > 1_000 && refused > 1_000,
        "the mutations get behind the checksums: {taken} taken, {refused} refused"
    );
}

/// As `check_round_trip`, for captures that may hold values that differ from themselves (NaN).
fn check_round_trip_bits(capture: &Capture) {
    let file = written(capture);
    assert_eq!(written(&read(&file).expect("it can be read")), file);
}

fn check_refused(file: &[u8], expected: &str) {
    assert_eq!(read(file).expect_err("it is refused").to_string(), expected);
}

#[test]
fn errors_say_where_and_what_to_do() {
    let good = written(&Capture::default());
    let end = good.len();
    check_refused(b"", "this is not a capture: it does not begin with `throng-capture`");
    check_refused(b"\x7fELF.................", "this is not a capture: it does not begin with `throng-capture`");
    let mut newer = good.clone();
    newer[14] = 9;
    check_refused(&newer, "at byte 14: version 9 is not known, only 1 to 2; open it with the `throng` that wrote it");
    check_refused(
        &good[..end - 1],
        &format!("at byte {}: the file ends in the middle; it was cut short, copy it again", end - 1),
    );
    check_refused(&[&good[..], &[0]].concat(), &format!("at byte {end}: bytes after the end of the capture"));
    let mut damaged = good.clone();
    damaged[16 + HEADER_BYTES + 2] ^= 4;
    check_refused(
        &damaged,
        "at byte 16: the section that begins here is damaged (its checksum differs); copy the file again",
    );
    let mut twice = [&good[..end - HEADER_BYTES], &good[16..]].concat();
    check_refused(&twice, &format!("at byte {}: a section of kind 1 cannot stand here", end - HEADER_BYTES));
    twice[16] = 77;
    seal(&mut twice);
    check_refused(&twice, "at byte 16: a section of kind 77 cannot stand here");
}

#[test]
fn what_refers_to_nothing_is_not_written() {
    let check = |change: fn(&mut Capture), expected: &str| {
        let mut capture = sample::small();
        change(&mut capture);
        let error = write(&capture, &mut Vec::new()).expect_err("it is refused");
        assert_eq!(error.to_string(), expected);
    };
    check(|capture| capture.sites.truncate(1), "something refers to site 2, but the capture has only 1");
    check(|capture| capture.locks.clear(), "something refers to lock 0, but the capture has only 0");
    check(
        |capture| capture.host_threads.truncate(1),
        "something refers to thread of the host 1, but the capture has only 1",
    );
    check(|capture| capture.counters.clear(), "something refers to counter 0, but the capture has only 0");
    check(|capture| capture.logs[0].thread = 5, "something refers to thread 5, but the capture has only 2");
    check(
        |capture| capture.memory.at_ns.clear(),
        "a row of live bytes has 2 values for 0 moments; give it one for each",
    );
    check(
        |capture| capture.logs[0].text = "x".repeat(maximum::TEXT_BYTES + 1),
        "a log text is longer than 1048576 bytes; cut it before recording",
    );
    check(
        |capture| capture.threads.resize(5_000, Thread::default()),
        "the capture holds more than 4096 threads; record for a shorter time",
    );
}

// Arbitrary captures: sound indices, and any value at all in everything else.

fn any_time() -> impl Strategy<Value = u64> {
    prop_oneof![0..1_000_u64, any::<u64>(), Just(0), Just(u64::MAX), Just(u64::MAX / 2)]
}

fn any_float() -> impl Strategy<Value = f32> {
    // NaN differs from itself; that its bits are kept is shown by the mutations above.
    any::<f32>().prop_filter("it equals itself", |value| !value.is_nan())
}

const SITES: u32 = 100;

fn any_event() -> impl Strategy<Value = Event> {
    let time = any_time;
    let holder = (0..2_u32, option::of(0..SITES), any::<Option<u32>>()).prop_map(|(thread, site, world)| Holder {
        thread,
        site,
        world,
    });
    let switch = prop_oneof![
        any::<u32>().prop_map(|core| Switch::Running { core }),
        Just(Switch::Preempted),
        Just(Switch::Blocked),
    ];
    prop_oneof![
        4 => (0..SITES, time(), time()).prop_map(|(site, begin_ns, end_ns)| Event::Scope { site, begin_ns, end_ns }),
        1 => (0..SITES, time()).prop_map(|(site, begin_ns)| Event::OpenScope { site, begin_ns }),
        1 => (time(), any::<Option<u32>>(), any::<u32>())
            .prop_map(|(at_ns, world, tick)| Event::World { at_ns, world, tick }),
        1 => (any::<u32>(), any::<u32>(), time())
            .prop_map(|(count, frees, bytes)| Event::Allocations { count, frees, bytes }),
        1 => (0..3_u32, time(), time(), option::of(holder))
            .prop_map(|(lock, begin_ns, end_ns, holder)| Event::LockWait { lock, begin_ns, end_ns, holder }),
        1 => (time(), switch).prop_map(|(at_ns, change)| Event::Switch { at_ns, change }),
        1 => time().prop_map(|at_ns| Event::PageFault { at_ns }),
        1 => (time(), time()).prop_map(|(at_ns, bytes)| Event::LargeAllocation { at_ns, bytes }),
        1 => (time(), 0..3_u32, any_float()).prop_map(|(at_ns, counter, value)| Event::Count { at_ns, counter, value }),
    ]
}

prop_compose! {
    fn any_about()(
        texts in any::<[String; 4]>(),
        (cores, world, has_free_text) in any::<(u32, Option<u32>, bool)>(),
        numbers in [any_time(), any_time(), any_time(), any_time(), any_time(), any_time(), any_time(), any_time()],
        kind in prop::sample::select(&TriggerKind::ALL[..]),
        switches in prop::sample::select(vec![
            SwitchSource::None,
            SwitchSource::Schedstat,
            SwitchSource::PerfEvent,
            SwitchSource::CpuWide,
        ]),
        switches_why_not in any::<String>(),
    ) -> About {
        let [build, game, name, note] = texts;
        let [saved_unix_s, begin_ns, end_ns, frame, records_lost, measured, allowed, at_ns] = numbers;
        let trigger = Trigger { kind, name, measured, allowed, world, at_ns, note };
        About {
            build,
            game,
            cores,
            saved_unix_s,
            trigger,
            begin_ns,
            end_ns,
            frame,
            switches,
            switches_why_not,
            records_lost,
            has_free_text,
        }
    }
}

prop_compose! {
    fn any_thread()(
        name in any::<String>(),
        tid in any::<u32>(),
        class in prop::sample::select(vec![ThreadClass::Other, ThreadClass::Frame, ThreadClass::ShortTask, ThreadClass::LongTask]),
        events in vec(any_event(), 0..60),
    ) -> Thread {
        Thread { name, tid, class, events }
    }
}

prop_compose! {
    fn any_frame()(
        numbers in [any_time(), any_time(), any_time(), any_time()],
        threads in vec((0..2_u32, any_time(), any_time(), any_time()), 0..3),
    ) -> Frame {
        let [number, begin_ns, end_ns, budget_ns] = numbers;
        let part = |(thread, running_ns, waiting_ns, blocked_ns)| FrameThread { thread, running_ns, waiting_ns, blocked_ns };
        Frame { number, begin_ns, end_ns, budget_ns, threads: threads.into_iter().map(part).collect() }
    }
}

prop_compose! {
    /// Of a host with two threads.
    fn any_core()(number in any::<u32>(), runs in vec((any_time(), option::of(0..2_u32)), 0..9)) -> Core {
        Core { number, runs: runs.into_iter().map(|(at_ns, thread)| CoreRun { at_ns, thread }).collect() }
    }
}

prop_compose! {
    fn any_host_thread()(
        (pid, tid, name, process) in any::<(u32, u32, String, String)>(),
        owner in prop::sample::select(vec![Owner::Foreign, Owner::Own, Owner::Idle]),
    ) -> HostThread {
        HostThread { pid, tid, owner, name, process }
    }
}

prop_compose! {
    fn any_capture()(
        about in any_about(),
        site in (any::<[String; 4]>(), any::<u32>(), any::<Option<u64>>()),
        names in any::<[String; 3]>(),
        threads in [any_thread(), any_thread()],
        worlds in vec((any::<u32>(), any::<String>(), any::<u16>()), 0..4),
        frames in vec(any_frame(), 0..4),
        logs in vec((any_time(), 0..2_u32, any::<[String; 3]>()), 0..4),
        at_ns in vec(any_time(), 3),
        rows in vec((option::of(0..SITES), vec(any_time(), 3)), 0..4),
        processes in vec((any::<u32>(), any::<String>(), any_float()), 0..4),
        (host_threads, cores, stalls) in (
            [any_host_thread(), any_host_thread()],
            vec(any_core(), 0..3),
            vec((any::<u32>(), any_time(), any_time()), 0..3),
        ),
    ) -> Capture {
        let ([name, subsystem, category, file], line, budget_ns) = site;
        let site = Site { name, subsystem, category, file, line, budget_ns };
        Capture {
            about,
            sites: vec![site; SITES as usize],
            threads: threads.into(),
            worlds: worlds.into_iter().map(|(id, name, tick_hz)| World { id, name, tick_hz }).collect(),
            locks: names.clone().map(|name| Lock { name }).into(),
            counters: names.map(|name| Counter { name }).into(),
            frames,
            logs: logs
                .into_iter()
                .map(|(at_ns, thread, [level, target, text])| LogLine { at_ns, thread, level, target, text })
                .collect(),
            memory: Memory { at_ns, by_site: rows.into_iter().map(|(site, bytes)| LiveBytes { site, bytes }).collect() },
            processes: processes.into_iter().map(|(pid, name, cores)| ProcessShare { pid, name, cores }).collect(),
            host_threads: host_threads.into(),
            cores,
            host_stalls: stalls
                .into_iter()
                .map(|(core, begin_ns, end_ns)| HostStall { core, begin_ns, end_ns })
                .collect(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_capture_comes_back_as_it_was(capture in any_capture()) {
        check_round_trip(&capture);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let mut file = written(&sample::small());
        let at = 16 + at.index(file.len() - 16);
        let len = bytes.len().min(file.len() - at);
        file[at..at + len].copy_from_slice(&bytes[..len]);
        seal(&mut file);
        if let Ok(capture) = read(&file) {
            check_round_trip_bits(&capture);
        }
    }
}

#[test]
fn what_takes_too_much_memory_is_refused_with_the_figure() {
    let capture = sample::busy(40_000, 3);
    let file = written(&capture);
    let events: usize = capture.threads.iter().map(|thread| thread.events.len()).sum();
    let of_events = (events * size_of::<Event>()) as u64;
    let error = read_within(&file, of_events).expect_err("sites and threads come on top");
    assert!(matches!(error, ReadError::TooMuchMemory { maximum_bytes, .. } if maximum_bytes == of_events), "{error}");
    assert!(error.to_string().ends_with(&format!("takes more than {} MiB of memory", of_events >> 20)), "{error}");
    assert_eq!(read_within(&file, of_events + 100_000), Ok(capture));
}

#[test]
fn parts_of_frames_and_rows_of_live_bytes_count_as_well() {
    let frame = Frame { threads: vec![FrameThread::default(); 1_000], ..Frame::default() };
    let threads = vec![Thread::default()];
    let frames = Capture { frames: vec![frame; 100], threads, ..Capture::default() };
    let row = LiveBytes { site: None, bytes: vec![0; 1_000] };
    let memory = Memory { at_ns: vec![0; 1_000], by_site: vec![row; 300] };
    let rows = Capture { memory, ..Capture::default() };
    for capture in [frames, rows] {
        let file = written(&capture);
        assert!(matches!(read_within(&file, 2_000_000), Err(ReadError::TooMuchMemory { .. })));
        assert_eq!(read_within(&file, 4_000_000), Ok(capture));
    }
}

/// Counts what is read of a file.
struct Counted<'a> {
    file: io::Cursor<&'a [u8]>,
    bytes: usize,
}

impl io::Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(into)?;
        self.bytes += len;
        Ok(len)
    }
}

impl io::Seek for Counted<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn summary_of(file: &[u8]) -> (io::Result<Summary>, usize) {
    let mut counted = Counted { file: io::Cursor::new(file), bytes: 0 };
    let summary = read_summary(&mut counted);
    (summary, counted.bytes)
}

#[test]
fn a_summary_is_read_without_the_events() {
    let capture = Capture { worlds: sample::small().worlds, ..sample::busy(40_000, 4) };
    let file = written(&capture);
    let (summary, bytes) = summary_of(&file);
    let summary = summary.expect("it can be read");
    assert_eq!((&summary.about, summary.world.as_ref()), (&capture.about, capture.worlds.first()));
    assert!(bytes < 8_000 && file.len() > 500_000, "{bytes} of {} bytes were read", file.len());
    let elsewhere = Capture { worlds: vec![World { id: 9, ..World::default() }], ..sample::small() };
    assert_eq!(summary_of(&written(&elsewhere)).0.expect("it can be read").world, None);
}

#[test]
fn a_file_without_a_summary_is_refused_as_by_the_reader() {
    let file = written(&sample::small());
    for len in 0..file.len() {
        let error = summary_of(&file[..len]).0.expect_err("a part of a capture is none").to_string();
        let is_told = error.contains("cut short") || error.contains("not a capture");
        assert!(is_told, "{len} bytes: {error}");
    }
    let longer = [&file[..], &[0]].concat();
    assert!(summary_of(&longer).0.is_err_and(|error| error.to_string().contains("bytes after the end")));
    let mut damaged = file.clone();
    damaged[16 + HEADER_BYTES + 2] ^= 4;
    assert!(summary_of(&damaged).0.is_err_and(|error| error.to_string().contains("damaged")));
    for at in 16..file.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut mutated = file.clone();
            mutated[at] = byte;
            seal(&mut mutated);
            let (summary, read) = (summary_of(&mutated).0, read(&mutated));
            assert!(summary.is_ok() || read.is_err(), "byte {at} as {byte}: {summary:?}, {read:?}");
        }
    }
}
