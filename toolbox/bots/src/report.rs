//! What a swarm saw, in figures: the report at the end and the status of every second.
//!
//! Counts are totals since the swarm started. Rates and latencies belong to a span: in the report
//! it is the steady part of the run, after the last bot was sent in, and in a status it is the time
//! since the status before. Every key name carries its unit, because both end up as JSON that other
//! programs read.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use throng_net::protocol::DenialReason;
use throng_platform::time::Nanos;

use crate::tally::Tally;

/// What a whole run, or one interval of it, looked like from the players' side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SwarmReport {
    /// Time that the rates cover (s).
    pub seconds: f64,
    /// Bots that were to play.
    pub players_wanted: u64,
    /// Of these, those whose token asks for audit samples: they check what they are told.
    pub players_audited: u64,
    /// Bots that got into a world and are still connected.
    pub players_connected: u64,
    /// Bots that were in and lost their connection before the swarm ended it.
    pub disconnects: u64,
    /// Bots that never got in: no answer, refused, or still waiting for a world at the end.
    pub connect_failures: u64,
    /// Bots that stood in the server's line at the end, and that waited there for their world to be made.
    pub players_queued: u64,
    pub players_awaiting_world: u64,
    /// Attempts to come in beyond each bot's first, each with a fresh token.
    pub login_retries: u64,
    /// Attempts that the server turned down, by the reason it gave.
    pub login_refusals: BTreeMap<String, u64>,
    /// Attempts that ended without an answer.
    pub login_timeouts: u64,
    /// Longest way of a bot from being sent in to its first world, or to the end if it is not there yet (ms).
    pub login_took_ms_max: f64,
    /// Values that were checked against the server's exact state.
    pub state_checks: u64,
    /// Of these: wrong, missing, or still there when they should be gone.
    pub state_errors: u64,
    /// Bots that saw at least one state error.
    pub state_error_bots: u64,
    /// Checks that could not be decided because a newer value had already arrived.
    pub state_checks_superseded: u64,
    /// Messages from the server that could not be read.
    pub protocol_errors: u64,
    /// Times that a bot was sent to a world that did not take it, and was back where it was.
    pub travels_refused: u64,
    /// Time from handing over an input to the first snapshot that says it was applied. The bots'
    /// own batching adds up to 2 ms.
    pub input_to_update_ms: LatencyMs,
    /// Inputs that no snapshot ever answered.
    pub inputs_unanswered: u64,
    /// Cores that the threads used that drive the bots.
    pub cpu_cores: f64,
    /// Datagrams received by all bots.
    pub packets_in_per_s: f64,
    /// Datagrams sent by all bots.
    pub packets_out_per_s: f64,
    /// UDP payload bytes received by all bots.
    pub bytes_in_per_s: f64,
    /// UDP payload bytes sent by all bots.
    pub bytes_out_per_s: f64,
    /// Datagrams that the kernel refused to take; the connection treats them as lost.
    pub packets_refused: u64,
    /// Component values that arrived and were newer than what the bot had.
    pub entity_updates_per_s: f64,
    /// Everything received, headers and acks included, divided by the updates in it.
    pub bytes_per_entity_update: f64,
    /// Times that a bot was due and skipped, because its thread was a whole period behind. More than
    /// a few mean that this machine is too slow for so many bots, and that latencies are the bots'.
    pub thinks_skipped: u64,
    /// Share that was skipped of the times that a bot was due, over `seconds`.
    pub thinks_skipped_share: f64,
    /// The first few state errors in words; only in the report at the end.
    pub state_error_examples: Vec<String>,
    /// The game's own totals.
    pub counters: BTreeMap<String, u64>,
}

/// How a run is going: one line of JSON a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SwarmStatus {
    /// Time since the swarm started (s).
    pub elapsed_s: f64,
    /// Bots that have been sent in and are not in a world yet.
    pub players_joining: u64,
    /// Totals so far; rates and latencies since the last status.
    #[serde(flatten)]
    pub figures: SwarmReport,
}

/// Percentiles of many samples (ms); zeros when there were none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyMs {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
    /// How many samples these are taken from.
    pub samples: u64,
}

/// Latency samples, kept to 0.1 % from 1 µs to a minute.
pub(crate) struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are in order"))
    }

    /// Adds a sample; longer than a minute counts as a minute.
    pub fn record(&mut self, sample: Nanos) {
        self.0.saturating_record(sample.as_micros().max(1));
    }

    pub fn percentiles(&self) -> LatencyMs {
        let ms = |us: u64| us as f64 / 1_000.0;
        LatencyMs {
            p50: ms(self.0.value_at_quantile(0.5)),
            p99: ms(self.0.value_at_quantile(0.99)),
            max: ms(self.0.max()),
            samples: self.0.len(),
        }
    }

    /// Adds all samples of `other` to this one.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }
}

impl SwarmReport {
    /// What of the run fails it, a line each: bots that did not play to its end, could not read what they were told, or
    /// were told what is not so. None: everybody played.
    pub fn failures(&self) -> Vec<String> {
        let Self { players_wanted, players_connected, disconnects, connect_failures, protocol_errors, .. } = *self;
        let mut failures = Vec::new();
        if players_connected != players_wanted {
            failures.push(format!(
                "{players_connected} of {players_wanted} bots were playing at the end: {connect_failures} never got in, \
                 {disconnects} lost their connection"
            ));
        } else if disconnects > 0 {
            failures.push(format!("{disconnects} connections were lost"));
        }
        if protocol_errors > 0 {
            failures.push(format!(
                "{protocol_errors} messages of the server could not be read: do bots and server have the same build of the \
                 same game?"
            ));
        }
        if self.state_errors > 0 {
            failures.push(format!("{} of {} checked values were wrong", self.state_errors, self.state_checks));
        }
        failures
    }

    /// Totals as they stand in `now`, rates from the difference to `since`.
    pub(crate) fn between(since: &Tally, now: &Tally, latency: LatencyMs) -> Self {
        let seconds = now.at.saturating_sub(since.at).as_secs_f64();
        let per_s = |now: u64, since: u64| ratio((now - since) as f64, seconds);
        let updates = now.entity_updates - since.entity_updates;
        Self {
            seconds,
            players_wanted: now.players_wanted,
            players_audited: now.players_audited,
            players_connected: now.playing,
            disconnects: now.disconnects,
            connect_failures: now.connect_failures,
            players_queued: now.queued,
            players_awaiting_world: now.awaiting_world,
            login_retries: now.login_retries,
            login_refusals: refusals_by_name(&now.login_refusals),
            login_timeouts: now.login_timeouts,
            login_took_ms_max: now.login_took_max.as_millis_f64(),
            state_checks: now.state_checks,
            state_errors: now.state_errors,
            state_error_bots: now.state_error_bots,
            state_checks_superseded: now.state_checks_superseded,
            protocol_errors: now.protocol_errors,
            travels_refused: now.travels_refused,
            input_to_update_ms: latency,
            inputs_unanswered: now.inputs_unanswered,
            cpu_cores: ratio(now.cpu.saturating_sub(since.cpu).as_secs_f64(), seconds),
            packets_in_per_s: per_s(now.traffic.packets_in, since.traffic.packets_in),
            packets_out_per_s: per_s(now.traffic.packets_out, since.traffic.packets_out),
            bytes_in_per_s: per_s(now.traffic.bytes_in, since.traffic.bytes_in),
            bytes_out_per_s: per_s(now.traffic.bytes_out, since.traffic.bytes_out),
            packets_refused: now.traffic.packets_refused,
            entity_updates_per_s: per_s(now.entity_updates, since.entity_updates),
            bytes_per_entity_update: ratio((now.traffic.bytes_in - since.traffic.bytes_in) as f64, updates as f64),
            thinks_skipped: now.thinks_skipped,
            thinks_skipped_share: ratio(
                (now.thinks_skipped - since.thinks_skipped) as f64,
                (now.thinks_due - since.thinks_due) as f64,
            ),
            state_error_examples: Vec::new(),
            counters: now.counters.clone(),
        }
    }
}

/// Those that there were.
fn refusals_by_name(refusals: &[u64; DenialReason::ALL.len()]) -> BTreeMap<String, u64> {
    let named = DenialReason::ALL.into_iter().zip(refusals).filter(|(_, count)| **count > 0);
    named.map(|(reason, &count)| (reason.name().to_owned(), count)).collect()
}

/// A ratio that is 0 when there is nothing to divide by: JSON has no infinity.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Traffic;

    #[test]
    fn rates_are_differences_and_counts_are_totals() {
        let since = Tally {
            at: Nanos::from_secs(10),
            cpu: Nanos::from_secs(1),
            traffic: Traffic { packets_in: 100, bytes_in: 10_000, ..Traffic::default() },
            entity_updates: 1_000,
            state_checks: 5,
            thinks_due: 200,
            thinks_skipped: 10,
            ..Tally::default()
        };
        let now = Tally {
            at: Nanos::from_secs(20),
            cpu: Nanos::from_secs(3),
            traffic: Traffic { packets_in: 300, bytes_in: 40_000, ..Traffic::default() },
            entity_updates: 4_000,
            state_checks: 9,
            thinks_due: 600,
            thinks_skipped: 30,
            ..Tally::default()
        };
        let report = SwarmReport::between(&since, &now, LatencyMs::default());
        assert_eq!((report.seconds, report.cpu_cores), (10.0, 0.2));
        assert_eq!((report.packets_in_per_s, report.bytes_in_per_s), (20.0, 3_000.0));
        assert_eq!((report.entity_updates_per_s, report.bytes_per_entity_update), (300.0, 10.0));
        assert_eq!(report.state_checks, 9);
        assert_eq!((report.thinks_skipped, report.thinks_skipped_share), (30, 0.05));
    }

    #[test]
    fn a_span_of_nothing_is_zeros_not_infinities() {
        let report = SwarmReport::between(&Tally::default(), &Tally::default(), LatencyMs::default());
        assert_eq!(report, SwarmReport::default());
    }

    #[test]
    fn bots_that_could_not_play_fail_the_run_and_each_reason_is_told() {
        let played = SwarmReport { players_wanted: 5, players_connected: 5, state_checks: 9, ..SwarmReport::default() };
        let check = |report: SwarmReport, expect: &[&str]| {
            let failures = report.failures();
            assert_eq!(failures.len(), expect.len(), "{failures:?}");
            failures.iter().zip(expect).for_each(|(failure, part)| assert!(failure.contains(part), "{failure}"));
        };
        check(played.clone(), &[]);
        check(SwarmReport { protocol_errors: 94, ..played.clone() }, &["94 messages of the server could not be read"]);
        check(SwarmReport { disconnects: 2, ..played.clone() }, &["2 connections were lost"]);
        let few = SwarmReport { players_connected: 2, connect_failures: 3, state_errors: 1, ..played };
        check(few, &["2 of 5 bots were playing at the end: 3 never got in", "1 of 9 checked values were wrong"]);
    }

    #[test]
    fn percentiles_come_from_all_samples() {
        let [mut even, mut odd] = [LatencyHistogram::new(), LatencyHistogram::new()];
        for ms in 1..=100 {
            let thread = if ms % 2 == 0 { &mut even } else { &mut odd };
            thread.record(Nanos::from_millis(ms));
        }
        let mut whole = LatencyHistogram::new();
        whole.add(&even);
        whole.add(&odd);
        let LatencyMs { p50, p99, max, samples } = whole.percentiles();
        assert_eq!(samples, 100);
        for (found, expected) in [(p50, 50.0), (p99, 99.0), (max, 100.0)] {
            assert!((found - expected).abs() <= expected * 0.001, "{found} is not {expected}");
        }
    }

    #[test]
    fn a_status_is_one_flat_json_object_and_reads_back() {
        let mut status = SwarmStatus { elapsed_s: 3.0, players_joining: 2, ..SwarmStatus::default() };
        status.figures.counters.insert("shots".to_owned(), 7);
        let text = serde_json::to_string(&status).expect("a status is plain data");
        assert!(text.contains(r#""elapsed_s":3.0"#) && text.contains(r#""state_errors":0"#));
        assert!(text.contains(r#""input_to_update_ms":{"p50":0.0"#) && text.contains(r#""counters":{"shots":7}"#));
        assert_eq!(serde_json::from_str::<SwarmStatus>(&text).expect("our own text"), status);
    }
}
