//! A declared counter is in every place that it promises to be in.

use std::collections::BTreeMap;

use throng_metrics::game::{GameSums, WorldGauges, begin_tick};
use throng_metrics::{count, gauge};
use throng_platform::clock::ManualClock;

use super::*;

/// Counts of a frame with a number of its own in each field.
fn numbered(first: u64) -> Totals {
    let mut counts = Totals::default();
    let mut next = first;
    counts.each_mut(&mut |_, value| {
        *value = next;
        next += 1;
    });
    counts
}

fn stage() -> (ServerMetrics, PublishedMetrics) {
    (ServerMetrics::new(), PublishedMetrics::new(Arc::new(ManualClock::new())))
}

/// Promise: whatever is declared is in the totals, in Prometheus' text and in the console's rows, each with its own
/// value. (The report takes its map from the same visit, `measure`; the page has a test of its own, `page`.)
#[test]
fn every_counter_reaches_totals_prometheus_and_console() {
    let (mut metrics, published) = stage();
    let mut totals = Totals::default();
    for first in [100, 1_000] {
        let counts = numbered(first);
        totals.merge(&counts);
        metrics.frame(Nanos::from_millis(1), Nanos::from_secs(1), &counts, &published);
    }
    let last = LastSecond { counts: &numbered(1_000), seconds: 2.0 };
    let status = ServerStatus::default();
    metrics.publish(Nanos::from_secs(1), &status, &totals, &last, &GameTotals::default(), &published);

    let text = published.to_prometheus_text(Vec::new());
    let rows: BTreeMap<String, CounterRow> =
        published.counters().into_iter().map(|row| (row.name.clone(), row)).collect();
    let mut index = 0;
    totals.each(&mut |counter, total| {
        let (expect, suffix) = match counter.merge {
            Merge::Sum => (1_100 + 2 * index, "_total"),
            Merge::Max => (1_000 + index, "_window_max"),
        };
        assert_eq!(total, expect, "{}", counter.name);
        let name = format!("throng_{}{suffix}", counter.name.replace('.', "_"));
        let line = text.lines().find_map(|line| line.strip_prefix(&name)?.strip_prefix(' '));
        assert_eq!(line.and_then(|value| value.parse().ok()), Some(expect as f64), "{name} in\n{text}");
        let help = format!("# HELP {} {}", name.trim_end_matches("_total"), counter.help);
        assert!(text.contains(&help), "{help} in\n{text}");
        let row = &rows[counter.name];
        let per_s = (counter.merge == Merge::Sum).then_some((1_000 + index) as f64 / 2.0);
        assert_eq!((row.value, row.per_s, row.help), (expect as i64, per_s, counter.help), "{}", counter.name);
        index += 1;
    });
    assert_eq!(rows.len() as u64, index, "and nothing else is");
}

/// Promise: what strangers were refused for is told by reason, each since the start.
#[test]
fn refusals_of_the_handshake_are_told_by_reason() {
    use throng_net::protocol::{PrivateKey, ProtocolId, Reply, ServerHandshake, ServerHandshakeSettings};
    let (mut metrics, published) = stage();
    let address = std::net::SocketAddr::from(([10, 0, 0, 1], 1_000));
    let settings = ServerHandshakeSettings::new(ProtocolId(1), PrivateKey::new([7; 32]), vec![address], 1);
    let mut handshake = ServerHandshake::new(settings, [1; 32]);
    let totals = Totals::default();
    for second in 1..=3 {
        handshake.begin_frame(Nanos::from_secs(second), 1_000);
        // A request of plain netcode, and noise.
        handshake.handle(address, &mut [0; 1_078], &mut Reply::new());
        (0..2).for_each(|_| _ = handshake.handle(address, &mut [0xff; 20], &mut Reply::new()));
        metrics.refused(handshake.stats());
        let last = LastSecond { counts: &totals, seconds: 1.0 };
        let now = Nanos::from_secs(second);
        metrics.publish(now, &ServerStatus::default(), &totals, &last, &GameTotals::default(), &published);
    }
    let text = published.to_prometheus_text(Vec::new());
    for (reason, count) in [("plain_netcode_off", 3), ("malformed", 6), ("token_used", 0)] {
        let line = format!("throng_net_handshake_refused_total{{reason=\"{reason}\"}} {count}");
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

/// Promise: every struct that counts is a group of the totals, and no name is used twice.
#[test]
fn all_that_is_declared_is_in_the_totals_once() {
    let mut names: Vec<&str> = Totals::declared().iter().map(|counter| counter.name).collect();
    let parts = [
        throng_replication::ReplicationStats::declared(),
        throng_world::TickStats::declared(),
        crate::address_table::AdmissionCounts::declared(),
        crate::totals::ServerCounts::declared(),
    ];
    for counter in parts.iter().flatten() {
        assert!(names.contains(&counter.name), "`{}` reaches no total", counter.name);
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "a name is used twice");
}

/// Promise: what a game counts in one frame is seen for minutes after it, and so is how high a gauge stood.
#[test]
fn a_spike_of_one_frame_survives() {
    let (mut metrics, published) = stage();
    let (mut world, mut sums, mut game) = <(WorldGauges, GameSums, GameTotals)>::default();
    for frame in 0..3_000_u64 {
        let is_spike = frame == 700;
        let tick = begin_tick();
        count!("spike.casts", if is_spike { 900 } else { 2 });
        gauge!("spike.waiting", if is_spike { 55 } else { 1 });
        tick.end(&mut world, &mut sums);
        game.take(&mut sums);
        game.end_frame(|id, in_frame| metrics.game_counted(id, in_frame));
        game.gauges().for_each(|(id, value)| metrics.game_stands(id, value));
        metrics.frame(Nanos::from_millis(1), Nanos::from_millis(frame * 50), &Totals::default(), &published);
    }
    let totals = Totals::default();
    let last = LastSecond { counts: &totals, seconds: 1.0 };
    let now = Nanos::from_secs(150);
    metrics.publish(now, &ServerStatus::default(), &totals, &last, &game, &published);
    let text = published.to_prometheus_text(Vec::new());
    for line in [
        "throng_game_spike_casts_total 6898",
        "throng_game_spike_casts_frame_window_max 900.0",
        "throng_game_spike_waiting 1.0",
        "throng_game_spike_waiting_window_max 55.0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    let row = published.counters().into_iter().find(|row| row.name == "game.spike.casts").expect("a row");
    assert_eq!((row.value, row.per_s), (6_898, Some(6_898.0)));
}

/// Names that Prometheus cannot tell apart cost nobody a frame: the second is in the console and in reports.
#[test]
fn names_that_come_out_the_same_are_told_apart_by_the_console() {
    let (mut metrics, published) = stage();
    let (mut world, mut sums, mut game) = <(WorldGauges, GameSums, GameTotals)>::default();
    let tick = begin_tick();
    count!("same.name", 1);
    count!("same_name", 2);
    gauge!("same.name_frame", 3);
    tick.end(&mut world, &mut sums);
    game.take(&mut sums);
    game.end_frame(|id, in_frame| metrics.game_counted(id, in_frame));
    game.gauges().for_each(|(id, value)| metrics.game_stands(id, value));
    let totals = Totals::default();
    metrics.frame(Nanos::from_millis(1), Nanos::ZERO, &totals, &published);
    let last = LastSecond { counts: &totals, seconds: 1.0 };
    metrics.publish(Nanos::ZERO, &ServerStatus::default(), &totals, &last, &game, &published);
    assert_eq!(published.to_prometheus_text(Vec::new()).matches("\nthrong_game_same_name_total ").count(), 1);
    let rows = published.counters();
    for (name, value) in [("game.same.name", 1), ("game.same_name", 2), ("game.same.name_frame", 3)] {
        assert_eq!(rows.iter().find(|row| row.name == name).map(|row| row.value), Some(value), "{name}");
    }
}
