//! The small size runs, and both styles leave the same worlds: the program fails if they do not.

use std::process::Command;

#[test]
fn the_small_size_runs_and_both_styles_do_the_same_work() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench-systems")).args(["--small", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["hash"].as_str().map(str::len), Some(16));
    assert!(figures["walkers_hurt"].as_u64().unwrap() > 0, "the worlds did their work: {figures}");
    let numbers = ["one_system_ns_per_world_and_tick", "plain_ns_per_world_and_tick", "ratio"];
    assert!(numbers.iter().all(|name| figures[name].is_number()), "{figures}");
    assert_eq!(figures["ratio_spread"].as_array().map(Vec::len), Some(2));
}
