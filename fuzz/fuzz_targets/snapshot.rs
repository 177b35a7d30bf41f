//! Snapshots and audit samples at a client: a server that says what it likes.
//!
//! Promise: a message is taken or refused; what a client then holds is finite, in range and no more than it said it
//! would hold; counts only grow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_fuzz::{
    components::{check_copies, check_exact, large_schema, small_schema},
    script::Script,
};
use throng_replication::Replicas;

const REPLICAS_MAX: usize = 256;

fuzz_target!(|input: &[u8]| {
    let mut script = Script::new(input);
    let schema = if script.u8() & 1 == 0 { small_schema() } else { large_schema() };
    let mut replicas = Replicas::with_limit(schema, REPLICAS_MAX);
    let mut counts = *replicas.counts();
    while let Some(operation) = script.operation() {
        match operation & 7 {
            0..=3 => _ = replicas.apply(script.block()),
            4..=5 => {
                let now_tick = script.u32();
                let sample = script.block();
                check_exact(sample);
                let _ = replicas.hold_audit_sample(sample, now_tick);
            }
            6 => replicas.check_audit_samples(),
            _ => _ = replicas.enter_epoch(script.u8()),
        }
        assert!(replicas.len() <= REPLICAS_MAX);
        assert_eq!(replicas.len(), replicas.ids().filter(|id| replicas.contains(*id)).count());
        let after = *replicas.counts();
        assert!(after.updates_applied >= counts.updates_applied && after.state_checks >= counts.state_checks);
        assert!(after.state_errors <= after.state_checks);
        counts = after;
    }
    check_copies(&replicas);
    while replicas.take_state_error().is_some() {}
});
