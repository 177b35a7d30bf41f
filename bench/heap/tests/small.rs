//! The small size runs with every allocator and prints what it promises.

use std::process::Command;

#[test]
fn the_small_size_runs_with_every_allocator() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench-heap")).args(["--small", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = figures["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 18, "six allocators on 1, 2 and 4 threads");
    for row in rows {
        assert!(row["operations_per_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["page_faults"].as_f64().unwrap() >= 0.0, "{row}");
    }
    assert!(figures["cannot_show"].as_str().unwrap().contains("cores"));
}
