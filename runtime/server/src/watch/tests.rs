//! Those who watch are told each frame once, what they were too slow for is counted, and nothing is gathered for nobody.

use throng_platform::clock::ManualClock;

use super::*;
use crate::metrics::PublishedMetrics;

fn published() -> (Arc<PublishedMetrics>, ManualClock) {
    let clock = ManualClock::new();
    (Arc::new(PublishedMetrics::new(Arc::new(clock.clone()))), clock)
}

fn told(watcher: &mut Watcher) -> (Vec<(u64, u32)>, u64) {
    let mut frames = Vec::new();
    let lost = watcher.frames(|number, us| frames.push((number, us)));
    (frames, lost)
}

#[test]
fn a_watcher_is_told_the_frames_since_he_came_each_once() {
    let (published, _) = published();
    assert_eq!(published.watchers_count(), 0);
    published.watched().frame(1, Nanos::from_micros(5));
    let mut watcher = published.watch();
    assert_eq!(told(&mut watcher), (vec![], 0));
    published.watched().frame(7, Nanos::from_micros(900));
    published.watched().frame(8, Nanos::from_secs(60));
    assert_eq!(told(&mut watcher), (vec![(7, 900), (8, LENGTH_US_MAX as u32)], 0));
    assert_eq!(told(&mut watcher), (vec![], 0));
    assert_eq!(published.watchers_count(), 1);
    drop(watcher);
    assert!(!published.watched().is_watched());
}

#[test]
fn who_looks_too_seldom_is_told_how_many_frames_are_lost() {
    let (published, _) = published();
    let mut watcher = published.watch();
    (0..3_000).for_each(|number| published.watched().frame(number, Nanos::from_micros(number)));
    let (frames, lost) = told(&mut watcher);
    assert_eq!((frames.len() as u64 + lost, frames.len()), (3_000, FRAMES_KEPT));
    assert_eq!((frames[0], frames.last()), ((lost, lost as u32), Some(&(2_999, 2_999))));
}

#[test]
fn a_second_is_told_once_and_none_from_before() {
    let (published, clock) = published();
    let second = |at| WatchedSecond {
        at,
        seconds: 1.0,
        workers: 1,
        frames: 0,
        status: ServerStatus::default(),
        worlds: Vec::new(),
        subsystems: Vec::new(),
        kinds: Vec::new(),
    };
    let publish = |at: Nanos| published.watched().publish(second(at));
    publish(Nanos::from_secs(1));
    clock.set(Nanos::from_secs(2));
    let mut watcher = published.watch();
    assert!(watcher.second().is_none(), "it was over before");
    publish(Nanos::from_secs(3));
    assert_eq!(watcher.second().map(|second| second.at), Some(Nanos::from_secs(3)));
    assert!(watcher.second().is_none());
}

/// Promise: who comes late is told the last five minutes, the oldest first, though nobody watched then.
#[test]
fn the_last_seconds_are_kept_for_who_comes_later() {
    let (published, _) = published();
    assert!(published.past_seconds().is_empty());
    let past = |second: u64| PastSecond {
        at: Nanos::from_secs(second),
        second,
        players: second * 2,
        worlds_overloaded: 3,
        frame_ms_max: second as f64 / 4.0,
        frame_budget_ms: 16.6,
        ticks_missed: 5,
        bytes_out_per_s: u64::MAX,
        cpu_cores: 0.7,
        rss_mb: 80.5,
        host: [Some(0.0), None, Some(1.5), None, Some(second as f64)],
    };
    (1..=3).for_each(|second| published.watched().keep_second(past(second)));
    assert_eq!(published.past_seconds(), [1, 2, 3].map(past));
    (4..=1_000).for_each(|second| published.watched().keep_second(past(second)));
    let kept: Vec<_> = (1_001 - SECONDS_KEPT as u64..=1_000).map(past).collect();
    assert_eq!(published.past_seconds(), kept);
    assert!(!published.watched().is_watched());
}

#[test]
fn a_second_is_kept_with_what_its_status_and_the_host_say() {
    let status = ServerStatus { second: 7, players: 9, ticks_missed: 4, rss_mb: 2.5, ..ServerStatus::default() };
    let told = |name: &str| (name == "outside.host_steal_cores").then_some(0.25);
    let kept = PastSecond::of(Nanos(5), &status, told);
    let host = [None, None, None, None, Some(0.25)];
    let expect =
        PastSecond { at: Nanos(5), second: 7, players: 9, ticks_missed: 4, rss_mb: 2.5, host, ..PastSecond::default() };
    assert_eq!(kept, expect);
    let known = |name| throng_platform::accounts::FIGURES.iter().any(|figure| figure.name == name);
    assert!(HOST_FIGURES_KEPT.into_iter().all(known));
}
