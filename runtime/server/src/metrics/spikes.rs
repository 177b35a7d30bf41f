//! A spike of one frame reaches every scraper, however rarely it looks: on a virtual clock, through all that a server does
//! between a frame and an answer.

use std::sync::Arc;

use throng_platform::clock::ManualClock;
use throng_profiler::FrameFigures;

use super::*;

const FRAME: Nanos = Nanos(16_666_667);
const USUAL_US: u64 = 9_000;
const SPIKES: u64 = 100;
/// Just longer than the rarest scraper's interval, and never in step with any.
const SPIKE_EVERY: Nanos = Nanos(61_300_000_000);
/// Intervals (s) of scrapers side by side.
const INTERVALS_S: [u64; 7] = [5, 10, 15, 20, 30, 45, 60];

/// A scraper, and what it has seen of each series that a spike is in.
struct Scraper {
    every: Nanos,
    next_at: Nanos,
    seen_s: [Vec<f64>; 3],
}

const SERIES: [(&str, f64); 3] = [
    ("throng_server_frame_seconds_window_max", 1.0),
    ("throng_subsystem_frame_us_window_max{subsystem=\"spikes\"}", 1e-6),
    ("throng_world_tick_seconds_window_max{kind=\"hub\"}", 1.0),
];

/// The number of a subsystem of this test's own.
fn subsystem() -> usize {
    throng_profiler::site!("spikes.tick").id().expect("there is room for one more");
    let names = throng_profiler::site::subsystems();
    names.iter().position(|&name| name == "spikes").expect("it is registered")
}

impl Scraper {
    fn look(&mut self, text: &str) {
        for (&(name, unit), seen) in SERIES.iter().zip(&mut self.seen_s) {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let value: f64 = line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"));
            seen.push(value * unit);
        }
    }

    /// Spikes that it has not seen.
    fn missed(&self, heights_us: &[u64]) -> Vec<(usize, u64)> {
        let has_seen = |seen: &Vec<f64>, us: u64| seen.iter().any(|seconds| (seconds * 1e6).round() as u64 == us);
        let missed_by = |(place, seen): (usize, &Vec<f64>)| -> Vec<(usize, u64)> {
            heights_us.iter().filter(|&&us| !has_seen(seen, us)).map(|&us| (place, us)).collect()
        };
        self.seen_s.iter().enumerate().flat_map(missed_by).collect()
    }
}

/// Promise: of a hundred frames that are longer than any before, each is seen by each of seven scrapers, at intervals of 5
/// to 60 s: as a frame, as what the subsystem took in one frame, and as a tick of its kind of world. None sees less
/// because another has looked.
#[test]
fn a_hundred_spikes_of_one_frame_are_all_found_by_scrapers_at_5_to_60_s() {
    let clock = Arc::new(ManualClock::new());
    let published = PublishedMetrics::new(clock.clone());
    let mut metrics = ServerMetrics::new();
    let subsystem = subsystem();
    metrics.tell_kinds(&["hub".into()]);
    let heights_us: Vec<u64> = (1..=SPIKES).map(|number| 20_000 + 7_001 * number).collect();
    let mut scrapers = INTERVALS_S.map(|seconds| Scraper {
        every: Nanos::from_secs(seconds),
        // Each begins at a moment of its own.
        next_at: Nanos::from_millis(2_000 + 137 * seconds),
        seen_s: Default::default(),
    });

    let (mut now, mut publish_at, mut spikes) = (Nanos::ZERO, Nanos::from_secs(1), heights_us.iter().copied());
    let mut spike_at = SPIKE_EVERY;
    let end = Nanos(SPIKE_EVERY.0 * (SPIKES + 2));
    let (totals, status, game) = (Totals::default(), ServerStatus::default(), GameTotals::default());
    while now < end {
        now += FRAME;
        clock.set(now);
        let is_spike = now >= spike_at;
        let us = if is_spike { spikes.next().unwrap_or(USUAL_US) } else { USUAL_US };
        spike_at.0 += if is_spike { SPIKE_EVERY.0 } else { 0 };
        let took = Nanos(us * 1_000);
        let mut figures = FrameFigures::default();
        figures.subsystem_ns[subsystem] = took.0;
        metrics.subsystems(&figures);
        metrics.tick(&TickOfKind { kind: WorldKindId(0), took, lateness: Nanos::ZERO, missed: 0 });
        metrics.frame(took, now, &totals, &published);
        if now >= publish_at {
            publish_at += Nanos::from_secs(1);
            metrics.publish(now, &status, &totals, &LastSecond { counts: &totals, seconds: 1.0 }, &game, &published);
        }
        let due: Vec<&mut Scraper> = scrapers.iter_mut().filter(|scraper| now >= scraper.next_at).collect();
        if !due.is_empty() {
            let text = published.to_prometheus_text(Vec::new());
            for scraper in due {
                scraper.next_at += scraper.every;
                scraper.look(&text);
            }
        }
    }
    for (seconds, scraper) in INTERVALS_S.iter().zip(&scrapers) {
        let missed = scraper.missed(&heights_us);
        assert!(missed.is_empty(), "every {seconds} s: not seen (series, us): {missed:?}");
    }
}
