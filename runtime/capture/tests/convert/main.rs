//! The promise: each format is what its documentation says, also for names and times that no honest recorder would
//! give; and what is in the files is what is in the capture.

mod callgrind;
mod chrome;
mod fxt;
#[path = "../sample/mod.rs"]
mod sample;
mod speedscope;

use throng_capture::Capture;
use throng_capture::convert::{Target, convert};
use throng_capture::model::*;

fn converted(capture: &Capture, target: Target) -> Vec<u8> {
    let mut out = Vec::new();
    convert(capture, target, &mut out).expect("memory takes everything");
    out
}

/// An ordinary capture, a hostile one, a large one, an empty one, and one in which no index points anywhere.
fn captures() -> [Capture; 5] {
    let mut lost = sample::small();
    lost.sites.clear();
    lost.locks.clear();
    lost.counters.clear();
    lost.logs[0].thread = 9;
    lost.memory.by_site[0].bytes.clear();
    lost.threads[0].events.push(Event::LockWait {
        lock: 5,
        begin_ns: 1_950_000,
        end_ns: 1_960_000,
        holder: Some(Holder { thread: 77, site: Some(88), world: Some(99) }),
    });
    [sample::small(), sample::hostile(), sample::busy(3_000, 4), Capture::default(), lost]
}

#[test]
fn every_target_is_found_by_its_name() {
    for target in Target::ALL {
        assert_eq!(target.name().parse::<Target>().unwrap(), target);
    }
    let error = "pprof".parse::<Target>().unwrap_err().to_string();
    assert_eq!(error, "`pprof` is not a format; there are fxt, chrome, speedscope, callgrind and folded");
}

#[test]
fn text_formats_hold_no_control_characters() {
    for capture in captures() {
        for target in [Target::Chrome, Target::Speedscope, Target::Callgrind, Target::Folded] {
            let text = String::from_utf8(converted(&capture, target)).expect("it is UTF-8");
            assert!(!text.chars().any(|character| character != '\n' && character.is_control()), "{target:?}");
            assert!(!text.contains('\u{202e}'), "{target:?}");
        }
    }
}

#[test]
fn folded_stacks_add_up_to_the_threads_time() {
    let text = String::from_utf8(converted(&sample::small(), Target::Folded)).unwrap();
    let expected = "\
frame 100000
frame;frame 360000
frame;frame;world.tick 170000
frame;frame;world.tick;replication.interest 150000
frame;frame;world.tick;wait for lock levels 220000
long 0 100000
long 0;query.path 900000
";
    assert_eq!(text, expected);
    // A stack has as many parts as it has semicolons, whatever its names.
    let text = String::from_utf8(converted(&sample::hostile(), Target::Folded)).unwrap();
    for line in text.lines() {
        let (stack, cost) = line.rsplit_once(' ').expect("a cost");
        assert!(cost.parse::<u64>().is_ok_and(|cost| cost > 0), "{line}");
        assert!(stack.split(';').count() <= 7, "{line}");
    }
}
