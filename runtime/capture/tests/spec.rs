//! The promise: the bytes in `docs/spec/capture.md` are the file of the capture that its comments tell, and are read
//! back as that.

use throng_capture::Capture;
use throng_capture::format::{maximum, read, read_summary, write};
use throng_capture::model::*;

const SPEC: &str = include_str!("../../../docs/spec/capture.md");

/// The bytes of the block "```golden NAME" in the document: two hexadecimal digits each, up to a `#` in a line.
fn golden(name: &str) -> Vec<u8> {
    let (_, rest) = SPEC.split_once(&format!("```golden {name}\n")).unwrap_or_else(|| panic!("no block `{name}`"));
    let (block, _) = rest.split_once("```").expect("the block ends");
    let bytes = block.lines().flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}

/// What the comments in the document tell.
fn told() -> Capture {
    let text = str::to_owned;
    let scope = |site, begin_ns, end_ns| Event::Scope { site, begin_ns, end_ns };
    let switch = |at_ns, change| Event::Switch { at_ns, change };
    let main = vec![
        scope(0, 1_000, 1_100),
        scope(0, 1_110, 1_150),
        Event::Allocations { count: 3, frees: 1, bytes: 200 },
        scope(1, 1_000, 1_400),
        Event::World { at_ns: 1_400, world: Some(5), tick: 9 },
        switch(1_420, Switch::Blocked),
        switch(1_700, Switch::Running { core: 1 }),
        Event::LockWait {
            lock: 0,
            begin_ns: 1_410,
            end_ns: 1_710,
            holder: Some(Holder { thread: 1, site: Some(0), world: None }),
        },
        Event::Count { at_ns: 1_720, counter: 0, value: 0.5 },
        scope(1, 1_750, 1_740),
        Event::OpenScope { site: 1, begin_ns: 1_800 },
    ];
    let worker = vec![
        Event::PageFault { at_ns: 1_200 },
        Event::LargeAllocation { at_ns: 1_200, bytes: 70_000 },
        switch(1_300, Switch::Preempted),
        Event::LockWait { lock: 0, begin_ns: 1_300, end_ns: 1_310, holder: None },
        Event::World { at_ns: 1_320, world: None, tick: 0 },
    ];
    Capture {
        about: About {
            build: text("t 1"),
            game: text("g"),
            cores: 2,
            saved_unix_s: 60,
            trigger: Trigger {
                kind: TriggerKind::LockWait,
                name: text("m"),
                measured: 300,
                allowed: 100,
                world: Some(5),
                at_ns: 1_710,
                note: String::new(),
            },
            begin_ns: 1_000,
            end_ns: 2_000,
            frame: 7,
            switches: SwitchSource::CpuWide,
            switches_why_not: String::from("hm"),
            records_lost: 0,
            has_free_text: true,
        },
        sites: vec![
            Site {
                name: text("a.b"),
                subsystem: text("a"),
                category: text("net"),
                file: text("f.rs"),
                line: 9,
                budget_ns: None,
            },
            Site { name: text("c"), subsystem: text("c"), budget_ns: Some(300), ..Site::default() },
        ],
        threads: vec![
            Thread { name: text("main"), tid: 100, class: ThreadClass::Frame, events: main },
            Thread { name: text("w"), tid: 101, class: ThreadClass::LongTask, events: worker },
        ],
        worlds: vec![World { id: 5, name: text("hub"), tick_hz: 20 }],
        locks: vec![Lock { name: text("m") }],
        frames: vec![Frame {
            number: 7,
            begin_ns: 1_000,
            end_ns: 1_900,
            budget_ns: 500,
            threads: vec![FrameThread { thread: 0, running_ns: 600, waiting_ns: 20, blocked_ns: 280 }],
        }],
        counters: vec![Counter { name: text("n") }],
        logs: vec![LogLine { at_ns: 1_500, thread: 0, level: text("warn"), target: text("a"), text: text("hm") }],
        memory: Memory {
            at_ns: vec![1_000, 1_500],
            by_site: vec![
                LiveBytes { site: Some(0), bytes: vec![64, 32] },
                LiveBytes { site: None, bytes: vec![1, 1] },
            ],
        },
        processes: vec![ProcessShare { pid: 9, name: text("cc"), cores: 1.5 }],
        host_threads: vec![
            HostThread { pid: 9, tid: 10, owner: Owner::Foreign, name: text("as"), process: text("cc") },
            HostThread { owner: Owner::Idle, ..HostThread::default() },
        ],
        cores: vec![Core {
            number: 1,
            runs: [(1_000, Some(1)), (1_420, Some(0)), (1_700, None)]
                .map(|(at_ns, thread)| CoreRun { at_ns, thread })
                .to_vec(),
        }],
        host_stalls: vec![HostStall { core: 1, begin_ns: 1_100, end_ns: 1_300 }],
    }
}

/// What version 1 could say of it.
fn told_by_version_1() -> Capture {
    let mut capture = Capture { host_threads: vec![], cores: vec![], host_stalls: vec![], ..told() };
    capture.about.switches = SwitchSource::PerfEvent;
    capture.about.switches_why_not.clear();
    capture
}

#[test]
fn the_writer_makes_the_documents_bytes() {
    let mut file = Vec::new();
    write(&told(), &mut file).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ");
    assert_eq!(hex(&file), hex(&golden("capture")), "the document (right) says otherwise");
}

#[test]
fn the_reader_reads_the_documents_bytes_as_the_document_says() {
    assert_eq!(read(&golden("capture")).unwrap(), told());
}

/// Files of version 1 are kept for years.
#[test]
fn a_file_of_version_1_is_read_as_what_it_could_say() {
    let file = golden("capture of version 1");
    assert_eq!(read(&file).unwrap(), told_by_version_1());
    let summary = read_summary(std::io::Cursor::new(&file)).unwrap();
    assert_eq!(summary.about, told_by_version_1().about);
    let mut newer = file.clone();
    newer[14] = 2;
    assert!(read(&newer).is_err(), "what it says of itself ends before what version 2 says");
}

/// Rows of the table of sections: kind and maximum.
#[test]
fn the_documents_maxima_are_the_codes() {
    let rows = SPEC.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let kind = cells.next()?.parse::<u8>().ok()?;
        // The table of tags has no fourth column.
        let maximum = cells.nth(2)?.split(' ').next()?.replace(',', "");
        let maximum = match maximum.strip_prefix("2^") {
            Some(exponent) => 1 << exponent.parse::<u32>().ok()?,
            None => maximum.parse::<usize>().ok()?,
        };
        Some((kind, maximum))
    });
    let expected = [
        (1, 1),
        (2, maximum::SITES),
        (3, 80),
        (4, maximum::WORLDS),
        (5, maximum::LOCKS),
        (6, maximum::COUNTERS),
        (7, maximum::THREADS),
        (8, maximum::EVENTS),
        (9, maximum::FRAMES),
        (10, maximum::LOGS),
        (11, maximum::MEMORY_MOMENTS),
        (12, maximum::MEMORY_ROWS),
        (13, maximum::PROCESSES),
        (15, maximum::HOST_THREADS),
        (16, maximum::CORES),
        (17, maximum::CORE_RUNS),
        (18, maximum::HOST_STALLS),
        (14, 1),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}
