//! speedscope files, checked against the published schema (types, required fields, values that are allowed) and against
//! what the schema cannot say: indices exist, opens and closes balance, times do not go back.

use serde_json::Value;
use throng_capture::convert::Target;

use super::{captures, converted, sample};

fn fields<'a>(value: &'a Value, required: &[&str], optional: &[&str]) -> &'a serde_json::Map<String, Value> {
    let object = value.as_object().expect("an object");
    assert!(required.iter().all(|key| object.contains_key(*key)), "a required field is missing: {value}");
    assert!(object.keys().all(|key| required.contains(&key.as_str()) || optional.contains(&key.as_str())), "{value}");
    object
}

fn check_structure(file: &Value) {
    fields(file, &["$schema", "shared", "profiles"], &["name", "activeProfileIndex", "exporter"]);
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    assert!(file["name"].is_string() && file["exporter"].is_string());
    let frames = fields(&file["shared"], &["frames"], &[])["frames"].as_array().expect("a list");
    for frame in frames {
        fields(frame, &["name"], &["file", "line", "col"]);
        assert!(frame["name"].is_string());
        assert!(frame.get("file").is_none_or(Value::is_string) && frame.get("line").is_none_or(Value::is_u64));
    }
    let profiles = file["profiles"].as_array().expect("a list");
    assert!(profiles.is_empty() || file["activeProfileIndex"].as_u64().unwrap() < profiles.len() as u64);
    for profile in profiles {
        fields(profile, &["type", "name", "unit", "startValue", "endValue", "events"], &[]);
        assert_eq!((&profile["type"], &profile["unit"]), (&"evented".into(), &"nanoseconds".into()));
        assert!(profile["name"].is_string());
        let mut at_ns = profile["startValue"].as_u64().expect("a number");
        let mut open = Vec::new();
        for event in profile["events"].as_array().expect("a list") {
            fields(event, &["type", "frame", "at"], &[]);
            let (frame, now_ns) = (event["frame"].as_u64().unwrap(), event["at"].as_u64().unwrap());
            assert!(frame < frames.len() as u64);
            assert!(now_ns >= at_ns, "{event} goes back from {at_ns}");
            at_ns = now_ns;
            match event["type"].as_str().unwrap() {
                "O" => open.push(frame),
                "C" => assert_eq!(open.pop(), Some(frame), "the innermost closes first"),
                other => panic!("{other} is not a type of event"),
            }
        }
        assert!(open.is_empty(), "all that opens closes");
        assert!(at_ns <= profile["endValue"].as_u64().unwrap());
    }
}

#[test]
fn every_capture_gives_a_sound_file() {
    for capture in captures() {
        check_structure(&serde_json::from_slice(&converted(&capture, Target::Speedscope)).expect("it is JSON"));
    }
}

#[test]
fn a_file_says_what_the_capture_says() {
    let file: Value = serde_json::from_slice(&converted(&sample::small(), Target::Speedscope)).unwrap();
    let names =
        |index: &Value| file["shared"]["frames"][index.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_owned();
    let mut told = Vec::new();
    for profile in file["profiles"].as_array().unwrap() {
        told.push(format!("{} {} {}", profile["name"].as_str().unwrap(), profile["startValue"], profile["endValue"]));
        for event in profile["events"].as_array().unwrap() {
            told.push(format!("{} {} {}", event["type"].as_str().unwrap(), event["at"], names(&event["frame"])));
        }
    }
    let expected = "
frame (100) 1000000 2000000
O 1000000 frame
O 1060000 world.tick
O 1100000 replication.interest
C 1200000 replication.interest
O 1200000 replication.interest
C 1250000 replication.interest
O 1290000 wait for lock levels
C 1510000 wait for lock levels
C 1600000 world.tick
C 1900000 frame
long 0 (101) 1000000 2000000
O 1100000 query.path
C 2000000 query.path";
    assert_eq!(told.join("\n"), expected.trim_start());
}
