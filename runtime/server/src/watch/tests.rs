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
    // The oldest of the ring is the one that may be written over next.
    assert_eq!((frames.len() as u64 + lost, frames.len()), (3_000, FRAMES_KEPT - 1));
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
