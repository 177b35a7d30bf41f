//! Chrome trace events, checked against "Trace Event Format": which fields of which type each phase has, and that
//! complete events of a thread nest.

use std::collections::HashMap;

use serde_json::Value;
use throng_capture::convert::Target;

use super::{captures, converted, sample};

/// Microseconds with three decimals, as nanoseconds; exact, so the text is read and not the float.
fn nanos(value: &Value) -> u128 {
    let (whole, decimals) = value.as_str().expect("read as text").split_once('.').expect("three decimals");
    assert_eq!(decimals.len(), 3);
    whole.parse::<u128>().unwrap() * 1_000 + decimals.parse::<u128>().unwrap()
}

/// The file, with times as texts.
fn parsed(text: &str) -> Value {
    let mut quoted = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for field in ["\"ts\":", "\"dur\":"] {
            // Only the field itself: in names quotes are escaped.
            if let Some(at) = line.find(&format!(",{field}")).map(|at| at + 1 + field.len()) {
                let len = line[at..].find([',', '}']).unwrap();
                line.replace_range(at..at + len, &format!("\"{}\"", &line[at..at + len]));
            }
        }
        quoted += &line;
        quoted.push('\n');
    }
    // Valid with numbers as well.
    serde_json::from_str::<Value>(text).expect("it is JSON");
    serde_json::from_str(&quoted).expect("it is JSON")
}

fn check_structure(trace: &Value) {
    assert_eq!(trace["displayTimeUnit"], "ns");
    assert!(trace["otherData"].as_object().unwrap().values().all(Value::is_string));
    let mut open: HashMap<u64, Vec<(u128, u128)>> = HashMap::new();
    for event in trace["traceEvents"].as_array().expect("a list") {
        let fields = event.as_object().expect("an object");
        assert!(event["name"].is_string() && event["pid"].is_u64() && event["args"].is_object(), "{event}");
        let thread = event["tid"].as_u64().expect("a thread");
        let phase = event["ph"].as_str().expect("a phase");
        let expected: &[&str] = match phase {
            "X" => &["cat", "ts", "dur"],
            "i" => &["cat", "ts", "s"],
            "C" => &["ts"],
            "M" => &[],
            other => panic!("{other} is not a phase that is written"),
        };
        let common = ["ph", "pid", "tid", "name", "args"];
        assert!(fields.keys().all(|key| common.contains(&key.as_str()) || expected.contains(&key.as_str())), "{event}");
        assert_eq!(fields.len(), common.len() + expected.len(), "{event}");
        let begin = if phase == "M" { 0 } else { nanos(&event["ts"]) };
        match phase {
            "X" => {
                let end = begin + nanos(&event["dur"]);
                let around = open.entry(thread).or_default();
                let before = around.last().map_or(0, |(begin, _)| *begin);
                assert!(begin >= before, "outer and earlier ones come first: {event}");
                while around.last().is_some_and(|(_, outer_end)| *outer_end <= begin) {
                    around.pop();
                }
                assert!(around.last().is_none_or(|(_, outer_end)| end <= *outer_end), "it nests: {event}");
                around.push((begin, end));
            }
            "i" => assert!(["g", "p", "t"].contains(&event["s"].as_str().unwrap()), "{event}"),
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}"),
            _ => {
                assert!(["process_name", "thread_name", "thread_sort_index"].contains(&event["name"].as_str().unwrap()))
            }
        }
    }
}

#[test]
fn every_capture_gives_a_sound_trace() {
    for capture in captures() {
        check_structure(&parsed(&String::from_utf8(converted(&capture, Target::Chrome)).unwrap()));
    }
}

#[test]
fn a_trace_says_what_the_capture_says() {
    let trace = parsed(&String::from_utf8(converted(&sample::small(), Target::Chrome)).unwrap());
    let told = trace["traceEvents"].as_array().unwrap().iter().map(|event| {
        let time = |field: &str| event[field].as_str().map_or_else(String::new, |time| format!(" {time}"));
        format!(
            "{} {} {}{}{} {}",
            event["ph"].as_str().unwrap(),
            event["tid"],
            event["name"],
            time("ts"),
            time("dur"),
            event["args"]
        )
    });
    let expected = r#"
M 1 "process_name" {"name":"throng 0.1.0 (abc1234) precinct"}
M 1 "thread_name" {"name":"frames"}
M 100 "thread_name" {"name":"frame"}
M 100 "thread_sort_index" {"sort_index":1}
M 101 "thread_name" {"name":"long 0"}
M 101 "thread_sort_index" {"sort_index":2}
X 1 "frame 99" 1000.000 900.000 {"budget_ns":500000,"over_ns":400000}
X 100 "frame" 1000.000 900.000 {"allocated_bytes":64,"allocations":1,"budget_ns":16000000,"frees":0,"place":"runtime/server/src/frame.rs:10"}
X 100 "world.tick" 1060.000 540.000 {"place":"runtime/server/src/game_world.rs:20","tick":42,"world":7}
X 100 "replication.interest" 1100.000 100.000 {"allocated_bytes":4096,"allocations":3,"budget_ns":90000,"frees":1,"place":"runtime/replication/src/interest.rs:30","tick":42,"world":7}
X 100 "replication.interest" 1200.000 50.000 {"budget_ns":90000,"place":"runtime/replication/src/interest.rs:30","tick":42,"world":7}
X 100 "wait for lock levels" 1290.000 220.000 {"holder":"long 0, query.path","tick":42,"world":7}
C 100 "clients" 1620.000 {"value":12.5}
X 101 "query.path" 1100.000 900.000 {"is_open":true,"place":"runtime/query/src/path.rs:40"}
i 101 "page fault" 1150.000 {}
i 101 "large allocation" 1160.000 {"bytes":9000000}
i 100 "throng::front_door" 1550.000 {"level":"warn","text":"\"Mallory\" at 203.0.113.9:4000 sent junk"}
i 1 "trigger: lock-wait" 1510.000 {"about":"levels","allowed":100000,"measured":220000,"note":"waited too long"}
C 1 "live bytes: query.path" 1000.000 {"bytes":1000}
C 1 "live bytes: query.path" 1500.000 {"bytes":9001000}
C 1 "live bytes: outside scopes" 1000.000 {"bytes":5000}
C 1 "live bytes: outside scopes" 1500.000 {"bytes":4000}"#;
    assert_eq!(told.collect::<Vec<_>>().join("\n"), expected.trim_start());
}
