//! The small size, with every variant in a process of its own as in the real one.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_small_size_runs_every_variant_and_all_do_the_same_work() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench-scopes")).args(["--small", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["hash"].as_str().map(str::len), Some(16));
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows[0]["name"], "floor");
    assert!(rows.iter().all(|row| row["hot_ns"].is_number() && row["work_ns"].is_number()), "{rows:?}");
    assert!(result["off_ns"].is_number() && result["floor_ns"].is_number());
    for (key, name) in
        [("scope_over_floor", "scope"), ("nested_scope_over_floor", "nested"), ("phase_over_floor", "phases")]
    {
        // Without the feature `record` there are none of these, and their keys say so.
        let row = rows.iter().find(|row| row["name"] == name);
        assert_eq!(result.get(key), Some(row.map_or(&Value::Null, |row| &row["hot_over_floor"])), "{key}");
    }
}
