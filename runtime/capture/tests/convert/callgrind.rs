//! Callgrind text, read by the program that it is for: `callgrind_annotate` (Debian's package `valgrind`).

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, process};

use throng_capture::call_tree::CallTree;
use throng_capture::convert::Target;

use super::{captures, converted, sample};

/// What `callgrind_annotate` says of a file with this in it.
fn annotated(name: &str, text: &[u8], options: &[&str]) -> String {
    let path: PathBuf = env::temp_dir().join(format!("throng-{}-{name}.callgrind.out", process::id()));
    fs::write(&path, text).expect("the folder for temporary files can be written");
    let output = Command::new("callgrind_annotate").args(options).arg("--threshold=100").arg(&path).output();
    fs::remove_file(&path).expect("it is there");
    let output = output.expect("callgrind_annotate is missing: `cargo xtask setup` installs it (Debian: valgrind)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.trim().is_empty(), "{name}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The costs in a line of the annotation, without separators and percentages.
fn costs(line: &str) -> Vec<u64> {
    let words = line.split_whitespace().filter(|word| !word.starts_with('(') && !word.ends_with(')'));
    let words = words.map_while(|word| if word == "." { Some(0) } else { word.replace(',', "").parse().ok() });
    words.collect()
}

fn check_totals(name: &str, text: &str, expected: &[u64]) {
    let line = text.lines().find(|line| line.contains("PROGRAM TOTALS")).unwrap_or_else(|| panic!("no totals: {text}"));
    assert_eq!(costs(line), expected, "{name}: {line}");
}

#[test]
fn callgrind_annotate_finds_the_same_totals() {
    for (capture, index) in captures().iter().zip(0..) {
        let name = format!("capture{index}");
        let totals = CallTree::from_capture(capture).totals();
        // It does not compute with numbers beyond 2^53, which the hostile one has.
        if totals.iter().all(|total| *total < 1 << 53) && totals.iter().any(|total| *total > 0) {
            check_totals(&name, &annotated(&name, &converted(capture, Target::Callgrind), &[]), &totals);
        }
    }
}

#[test]
fn callgrind_annotate_takes_any_names() {
    let mut capture = sample::hostile();
    capture.threads[1].events.clear();
    let text = annotated("hostile", &converted(&capture, Target::Callgrind), &[]);
    check_totals("hostile", &text, &CallTree::from_capture(&capture).totals());
    assert!(text.contains("world.ticka\";b\\n"), "{text}");
}

#[test]
fn functions_and_their_callees_have_their_own_costs() {
    let text = converted(&sample::small(), Target::Callgrind);
    let own = annotated("own", &text, &[]);
    let of = |text: &str, function: &str| costs(text.lines().find(|line| line.contains(function)).unwrap_or_default());
    assert_eq!(of(&own, ":world.tick"), [170_000, 170_000, 0, 0, 0, 0]);
    assert_eq!(of(&own, ":replication.interest"), [150_000, 150_000, 0, 0, 3, 4_096]);
    assert_eq!(of(&own, ":wait for lock levels"), [220_000, 20_000, 0, 200_000, 0, 0]);
    let inclusive = annotated("inclusive", &text, &["--inclusive=yes"]);
    assert_eq!(of(&inclusive, ":world.tick"), [540_000, 340_000, 0, 200_000, 3, 4_096]);
    assert_eq!(of(&inclusive, ":long 0"), [1_000_000, 900_000, 100_000, 0, 0, 0]);
}
