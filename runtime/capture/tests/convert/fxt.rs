//! Fuchsia traces, decoded by a strict reader that is written from the published specification and shares nothing with
//! the writer; and, where it is installed, by the Python package `fxt`, which is somebody else's.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::{env, fs, process};

use throng_capture::convert::Target;

use super::{captures, converted, sample};

/// Bits `from..=to` of a word.
fn bits(word: u64, from: u32, to: u32) -> u64 {
    word << (63 - to) >> (63 - to + from)
}

/// One record's words.
struct Words<'a> {
    words: &'a [u64],
}

impl Words<'_> {
    fn word(&mut self) -> u64 {
        let (first, rest) = self.words.split_first().expect("the record has more words");
        self.words = rest;
        *first
    }

    /// A UTF-8 string, padded with zeros to 8 byte alignment.
    fn stream(&mut self, len: u64) -> String {
        let bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| self.word().to_le_bytes()).collect();
        let (text, padding) = bytes.split_at(len as usize);
        assert!(padding.iter().all(|byte| *byte == 0), "zeros after a string");
        String::from_utf8(text.to_vec()).expect("UTF-8")
    }
}

#[derive(Default)]
struct Trace {
    strings: HashMap<u64, String>,
    threads: HashMap<u64, (u64, u64)>,
    processes: HashMap<u64, String>,
    /// Name and process.
    thread_names: HashMap<u64, (String, u64)>,
    events: Vec<Event>,
    switches: Vec<Switch>,
}

#[derive(Debug)]
struct Event {
    kind: &'static str,
    thread: u64,
    category: String,
    name: String,
    begin: u64,
    /// End, or number of the counter.
    last: u64,
    arguments: String,
}

#[derive(Debug, PartialEq)]
struct Switch {
    at: u64,
    core: u64,
    outgoing: u64,
    state: u64,
    incoming: u64,
    idle: String,
}

impl Trace {
    fn read(file: &[u8]) -> Trace {
        assert_eq!(file[..8], [0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0], "the magic number record");
        assert_eq!(file.len() % 8, 0);
        let words: Vec<u64> = file.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        let mut trace = Trace::default();
        let mut rest = &words[1..];
        let mut kinds = Vec::new();
        while let Some(&header) = rest.first() {
            let length = bits(header, 4, 15) as usize;
            assert!((1..=rest.len()).contains(&length), "a record of {length} words");
            let mut words = Words { words: &rest[1..length] };
            trace.record(header, &mut words);
            assert!(words.words.is_empty(), "a record has no more words than it needs: kind {}", bits(header, 0, 3));
            kinds.push(bits(header, 0, 3));
            rest = &rest[length..];
        }
        assert_eq!(kinds[..2], [0, 1], "the provider, then the clock");
        assert_eq!(kinds.iter().filter(|kind| **kind == 1).count(), 1, "one clock");
        trace
    }

    fn record(&mut self, header: u64, words: &mut Words<'_>) {
        match bits(header, 0, 3) {
            0 => {
                assert_eq!((bits(header, 16, 19), bits(header, 60, 63)), (1, 0), "provider info");
                assert_eq!(words.stream(bits(header, 52, 59)), "throng");
            }
            1 => {
                assert_eq!(bits(header, 16, 63), 0);
                assert_eq!(words.word(), 1_000_000_000, "ticks per second");
            }
            2 => {
                let index = bits(header, 16, 30);
                assert!(index > 0 && bits(header, 31, 31) == 0 && bits(header, 47, 63) == 0);
                let text = words.stream(bits(header, 32, 46));
                assert!(self.strings.insert(index, text).is_none(), "a string is registered once");
            }
            3 => {
                let index = bits(header, 16, 23);
                assert!(index > 0 && bits(header, 24, 63) == 0);
                assert!(self.threads.insert(index, (words.word(), words.word())).is_none());
            }
            4 => self.event(header, words),
            7 => self.object(header, words),
            8 => self.switch(header, words),
            other => panic!("a record of kind {other}"),
        }
    }

    fn event(&mut self, header: u64, words: &mut Words<'_>) {
        let begin = words.word();
        let (process, thread) = match bits(header, 24, 31) {
            0 => (words.word(), words.word()),
            index => self.threads[&index],
        };
        assert_eq!(self.thread_names[&thread].1, process);
        let category = self.string(bits(header, 32, 47), words);
        let name = self.string(bits(header, 48, 63), words);
        let arguments = self.arguments(bits(header, 20, 23), words);
        let (kind, last) = match bits(header, 16, 19) {
            0 => ("instant", 0),
            1 => ("counter", words.word()),
            4 => ("complete", words.word()),
            other => panic!("an event of kind {other}"),
        };
        self.events.push(Event { kind, thread, category, name, begin, last, arguments });
    }

    fn object(&mut self, header: u64, words: &mut Words<'_>) {
        assert_eq!(bits(header, 44, 63), 0);
        let id = words.word();
        let name = self.string(bits(header, 24, 39), words);
        let arguments = self.arguments(bits(header, 40, 43), words);
        let is_new = match bits(header, 16, 23) {
            1 => self.processes.insert(id, name).is_none() && arguments.is_empty(),
            2 => {
                let process = arguments.strip_prefix("process=object ").expect("its process").parse().unwrap();
                assert!(self.processes.contains_key(&process));
                self.thread_names.insert(id, (name, process)).is_none()
            }
            other => panic!("an object of kind {other}"),
        };
        assert!(is_new, "an object is named once");
    }

    fn switch(&mut self, header: u64, words: &mut Words<'_>) {
        assert_eq!(bits(header, 60, 63), 1, "a context switch");
        assert_eq!(bits(header, 40, 59), 0);
        let (at, outgoing, incoming) = (words.word(), words.word(), words.word());
        let idle = self.arguments(bits(header, 16, 19), words);
        let (core, state) = (bits(header, 20, 35), bits(header, 36, 39));
        assert!(self.switches.last().is_none_or(|before| before.at <= at), "in the order of time");
        self.switches.push(Switch { at, core, outgoing, state, incoming, idle });
    }

    fn string(&self, reference: u64, words: &mut Words<'_>) -> String {
        match reference {
            0 => String::new(),
            index if index < 0x8000 => self.strings[&index].clone(),
            inline => words.stream(inline & 0x7fff),
        }
    }

    /// `name=value name=value`
    fn arguments(&self, count: u64, words: &mut Words<'_>) -> String {
        let mut told = Vec::new();
        let mut names = HashSet::new();
        for _ in 0..count {
            let before = words.words.len();
            let header = words.word();
            let name = self.string(bits(header, 16, 31), words);
            let high = bits(header, 32, 63);
            let has_high = [1, 2, 6, 9].contains(&bits(header, 0, 3));
            assert!(has_high || high == 0, "unused bits are zero");
            let value = match bits(header, 0, 3) {
                1 => (high as u32).cast_signed().to_string(),
                2 => high.to_string(),
                4 => {
                    let value = words.word();
                    assert!(u32::try_from(value).is_err(), "a small number has a small argument");
                    value.to_string()
                }
                5 => f64::from_bits(words.word()).to_string(),
                6 => format!("{:?}", self.string(high, words)),
                8 => format!("object {}", words.word()),
                9 => (high == 1).to_string(),
                other => panic!("an argument of kind {other}"),
            };
            assert_eq!((before - words.words.len()) as u64, bits(header, 4, 15), "the argument's own length");
            told.push(format!("{name}={value}"));
            assert!(names.insert(name));
        }
        told.join(" ")
    }

    fn check_nesting(&self) {
        let mut open: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
        for event in self.events.iter().filter(|event| event.kind == "complete") {
            let around = open.entry(event.thread).or_default();
            assert!(event.last >= event.begin, "{event:?}");
            while around.last().is_some_and(|(_, end)| *end <= event.begin) {
                around.pop();
            }
            let (begin, end) = around.last().copied().unwrap_or((0, u64::MAX));
            assert!(event.begin >= begin && event.last <= end, "it nests: {event:?}");
            around.push((event.begin, event.last));
        }
    }
}

#[test]
fn every_capture_gives_a_sound_trace() {
    for capture in captures() {
        let trace = Trace::read(&converted(&capture, Target::Fxt));
        trace.check_nesting();
        assert_eq!(trace.thread_names.len(), capture.threads.len() + 1, "each thread and the frames have a name");
    }
}

#[test]
fn full_tables_are_no_limit() {
    let mut capture = sample::small();
    let (thread, site) = (capture.threads[1].clone(), capture.sites[0].clone());
    capture
        .threads
        .extend((0..300).map(|index| throng_capture::model::Thread { tid: 1_000 + index, ..thread.clone() }));
    let sites =
        (0..40_000).map(|line| throng_capture::model::Site { line, name: format!("site.{line}"), ..site.clone() });
    capture.sites = sites.collect();
    let event = |site| throng_capture::model::Event::Scope { site, begin_ns: 1_000_000, end_ns: 1_000_000 };
    capture.threads[0].events = (0..40_000).map(event).collect();
    let trace = Trace::read(&converted(&capture, Target::Fxt));
    let complete =
        |name: &str| trace.events.iter().filter(|event| event.kind == "complete" && event.name == name).count();
    assert_eq!((complete("site.0"), complete("site.39999")), (1, 1));
    let last = trace.events.iter().rfind(|event| event.kind == "complete").unwrap();
    assert_eq!((last.thread, last.name.as_str()), (1_299, "site.3"));
}

#[test]
fn a_trace_says_what_the_capture_says() {
    let trace = Trace::read(&converted(&sample::small(), Target::Fxt));
    assert_eq!(trace.processes[&1], "throng 0.1.0 (abc1234) precinct");
    let mut names: Vec<_> = trace.thread_names.iter().map(|(id, (name, _))| (*id, name.as_str())).collect();
    names.sort();
    assert_eq!(names, [(1, "frames"), (100, "frame"), (101, "long 0")]);
    let told = trace.events.iter().map(|event| {
        let Event { kind, thread, category, name, begin, last, arguments } = event;
        format!("{kind} {thread} {category}/{name} {begin} {last} {arguments}")
    });
    let expected = r#"
complete 1 frame/frame 99 1000000 1900000 number=99 budget_ns=500000
complete 100 other/frame 1000000 1900000 allocations=1 frees=0 allocated_bytes=64 place="runtime/server/src/frame.rs:10" budget_ns=16000000
complete 100 gameplay/world.tick 1060000 1600000 world=7 tick=42 place="runtime/server/src/game_world.rs:20"
complete 100 replication/replication.interest 1100000 1200000 world=7 tick=42 allocations=3 frees=1 allocated_bytes=4096 place="runtime/replication/src/interest.rs:30" budget_ns=90000
complete 100 replication/replication.interest 1200000 1250000 world=7 tick=42 place="runtime/replication/src/interest.rs:30" budget_ns=90000
complete 100 lock/wait for lock levels 1290000 1510000 world=7 tick=42 holder="long 0, query.path"
counter 100 counter/clients 1620000 0 value=12.5
complete 101 ai/query.path 1100000 2000000 is_open=true place="runtime/query/src/path.rs:40"
instant 101 memory/page fault 1150000 0 
instant 101 memory/large allocation 1160000 0 bytes=9000000
instant 100 log/throng::front_door 1550000 0 level="warn" text="\"Mallory\" at 203.0.113.9:4000 sent junk"
instant 1 trigger/trigger: lock-wait 1510000 0 about="levels" note="waited too long" measured=220000 allowed=100000
counter 1 memory/live bytes: query.path 1000000 1 bytes=1000
counter 1 memory/live bytes: query.path 1500000 1 bytes=9001000
counter 1 memory/live bytes: outside scopes 1000000 2 bytes=5000
counter 1 memory/live bytes: outside scopes 1500000 2 bytes=4000"#;
    assert_eq!(told.collect::<Vec<_>>().join("\n"), expected.trim_start());

    // 0 is the idle thread; 3 is blocked. The worker's first loss is left out, since nothing says which core it had.
    let switch = |at, core, outgoing, state, incoming, idle: &str| Switch {
        at,
        core,
        outgoing,
        state,
        incoming,
        idle: format!("{idle}=-2147483648"),
    };
    assert_eq!(
        trace.switches,
        [
            switch(1_000_000, 0, 0, 0, 100, "outgoing_weight"),
            switch(1_300_000, 0, 100, 3, 0, "incoming_weight"),
            switch(1_500_000, 1, 0, 0, 100, "outgoing_weight"),
            switch(1_500_000, 0, 0, 0, 101, "outgoing_weight"),
        ]
    );
}

/// Counts what the package finds: records by class, and threads that have spans.
const READER: &str = r#"
import collections, sys
from fxt.reader import parse_records
with open(sys.argv[1], "rb") as file:
    result = parse_records(file)
assert not result.had_unexpected_eof, result.eof_error
counts = collections.Counter()
for provider in result.records_by_provider.values():
    for record in provider.records:
        counts[type(record).__name__] += 1
print(" ".join(f"{name}={count}" for name, count in sorted(counts.items())))
"#;

#[test]
#[ignore = "needs Python 3 with the package fxt: pip install fxt==0.3.0"]
fn another_reader_finds_the_same_records() {
    for (capture, index) in captures().iter().zip(0..) {
        let file = converted(capture, Target::Fxt);
        let path = env::temp_dir().join(format!("throng-{}-{index}.fxt", process::id()));
        fs::write(&path, &file).expect("the folder for temporary files can be written");
        let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let output = Command::new(python).args(["-c", READER]).arg(&path).output().expect("python3 is missing");
        fs::remove_file(&path).expect("it is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let trace = Trace::read(&file);
        let count = |kind: &str| trace.events.iter().filter(|event| event.kind == kind).count();
        let counts = [
            ("ContextSwitchRecord", trace.switches.len()),
            ("CounterEventRecord", count("counter")),
            ("DurationCompleteEventRecord", count("complete")),
            ("InstantEventRecord", count("instant")),
            ("KernelObjectRecord", trace.thread_names.len() + trace.processes.len()),
        ];
        let counts = counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}={count}"));
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(found.trim(), counts.collect::<Vec<_>>().join(" "));
    }
}
