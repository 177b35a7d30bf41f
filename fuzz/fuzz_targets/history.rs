//! Files of a history, which may come from anywhere.
//!
//! Promise: each line is a record, told as none, or passed by; what was read is judged without a panic, and a change lies between
//! two commits of its series.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use throng_history::{
    changes,
    series::group,
    store::{Contents, FAULTS_TOLD_MAX, read_lines},
};

fuzz_target!(|bytes: &[u8]| {
    let mut contents = Contents::default();
    read_lines(Path::new("2026-11.jsonl"), bytes, &mut contents);
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(contents.records.len() + contents.faults_count <= lines);
    assert_eq!(contents.faults.len(), contents.faults_count.min(FAULTS_TOLD_MAX));
    for series in group(&contents.records) {
        for change in changes::find(&series, |record| &record.times_us) {
            assert!(change.good < change.bad && change.bad < series.commits.len(), "{change:?}");
            assert!(change.good < change.likely && change.likely <= change.bad, "{change:?}");
        }
    }
});
