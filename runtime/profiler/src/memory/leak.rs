//! Leaks: live memory that grows through a whole window, and not by a start, a step or a wave.
//!
//! The window is cut into six parts of equal time. Of each part the **lowest** value counts: memory that comes and goes
//! returns to its floor, and a leak raises the floor. A leak raises it in every part, by at least a quarter of the
//! average, and from the last part's first half to its second as well, since the floor of a part is often its
//! beginning. So no leak is
//! - a plateau, or a start that levels off: the last parts do not rise;
//! - a step, such as a world being loaded: one part rises, five do not;
//! - a sawtooth whose teeth are shorter than a part: its floor stays.
//!
//! What rises slowly for longer than the window and then falls (a cache that is cleared every hour) looks like a leak
//! to a window of minutes; so does a leak that comes in lumps, less often than once a part, not look like one. For
//! both, look at the view of a longer time.

use crate::site::SiteId;

/// A scope whose live bytes grew steadily through the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leak {
    /// `None`: allocated outside of every scope.
    pub site: Option<SiteId>,
    /// The floor in the first and in the last sixth of the window.
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// How fast the floor rose.
    pub bytes_per_s: u64,
}

/// Steady growth of one series.
pub(super) struct Growth {
    pub(super) from_bytes: u64,
    pub(super) to_bytes: u64,
    pub(super) bytes_per_s: u64,
}

const PARTS: usize = 6;
/// The least that each part must rise, as a share of the average rise: one in this many.
const LEAST_RISE_SHARE: u64 = 4;

/// Whether values (moment in ns, bytes), oldest first, grow steadily by at least this much.
pub(super) fn grows_steadily(
    values: impl Iterator<Item = (u64, u64)> + Clone,
    growth_bytes_min: u64,
) -> Option<Growth> {
    let first_ns = values.clone().next()?.0;
    let last_ns = values.clone().last()?.0;
    let length_ns = last_ns.checked_sub(first_ns)?.max(1);
    let mut floors: [Option<(u64, u64)>; PARTS] = [None; PARTS];
    let mut floor_at_end = u64::MAX;
    for (at_ns, bytes) in values {
        // In u128, as a clock that went wild must not end the process.
        let half = (u128::from(at_ns.saturating_sub(first_ns)) * 2 * PARTS as u128 / u128::from(length_ns)) as usize;
        let floor = floors[(half / 2).min(PARTS - 1)].get_or_insert((at_ns, bytes));
        if bytes < floor.1 {
            *floor = (at_ns, bytes);
        }
        if half >= 2 * PARTS - 1 {
            floor_at_end = floor_at_end.min(bytes);
        }
    }
    // A part without a moment: there is nothing to say about steadiness.
    let [first, .., last] = floors;
    let ((from_ns, from_bytes), (to_ns, to_bytes)) = (first?, last?);
    let growth_bytes = to_bytes.checked_sub(from_bytes)?;
    if growth_bytes == 0 || growth_bytes < growth_bytes_min {
        return None;
    }
    let least_rise_bytes = growth_bytes / (PARTS as u64 - 1) / LEAST_RISE_SHARE;
    for pair in floors.windows(2) {
        let (before, after) = (pair[0]?.1, pair[1]?.1);
        if after.checked_sub(before)? <= least_rise_bytes {
            return None;
        }
    }
    if floor_at_end.checked_sub(to_bytes)? <= least_rise_bytes / 2 {
        return None;
    }
    let seconds = (to_ns - from_ns).max(1) as f64 / 1e9;
    Some(Growth { from_bytes, to_bytes, bytes_per_s: (growth_bytes as f64 / seconds) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    const MB: f64 = 1e6;

    /// MB/s of the leak that is seen in 120 s of this, if one is; `live_mb` by second.
    fn leak_mb_per_s(live_mb: impl Fn(f64) -> f64) -> Option<f64> {
        let values: Vec<(u64, u64)> =
            (0..=120).map(|second| (second * 1_000_000_000, (live_mb(second as f64) * MB) as u64)).collect();
        grows_steadily(values.into_iter(), 8_000_000).map(|growth| growth.bytes_per_s as f64 / MB)
    }

    /// Something between -1 and 1 that looks like noise.
    fn noise(second: f64) -> f64 {
        (second * 12.9898).sin() * 43_758.545_3 % 1.0
    }

    #[track_caller]
    fn is_leak(live_mb: impl Fn(f64) -> f64, expected_mb_per_s: f64) {
        let seen = leak_mb_per_s(live_mb).expect("a leak is seen");
        assert!((seen / expected_mb_per_s - 1.0).abs() < 0.15, "{seen} MB/s instead of {expected_mb_per_s}");
    }

    #[track_caller]
    fn is_none(live_mb: impl Fn(f64) -> f64) {
        assert_eq!(leak_mb_per_s(live_mb), None);
    }

    #[test]
    fn steady_growth_is_a_leak_under_noise_too() {
        is_leak(|second| 10.0 + 10.0 * second, 10.0);
        is_leak(|second| 200.0 + 0.5 * second + 2.0 * noise(second), 0.5);
        is_leak(|second| 200.0 + 0.5 * second + 20.0 * (second * TAU / 7.0).sin().abs(), 0.5);
        is_leak(|second| 5.0 + (second / 10.0).floor() * 5.0, 0.5);
    }

    #[test]
    fn a_sawtooth_on_a_rising_floor_is_a_leak_and_on_a_flat_one_is_not() {
        is_leak(|second| 50.0 + 2.0 * (second % 10.0) + 0.3 * second, 0.3);
        is_none(|second| 50.0 + 2.0 * (second % 10.0));
        is_none(|second| 50.0 + 10.0 * (second % 20.0));
    }

    #[test]
    fn what_does_not_grow_is_none() {
        is_none(|_| 0.0);
        is_none(|_| 300.0);
        is_none(|second| 300.0 + 30.0 * noise(second));
        is_none(|second| 300.0 - second);
        is_none(|second| 300.0 + 50.0 * (second * TAU / 60.0).sin());
    }

    #[test]
    fn growth_that_comes_at_once_or_stops_is_none() {
        is_none(|second| if second < 60.0 { 10.0 } else { 200.0 });
        is_none(|second| 200.0 * (1.0 - (-second / 15.0).exp()));
        is_none(|second| (second * 2.0).min(160.0));
        is_none(|second| (second * 2.0).min(200.0) + noise(second));
        is_none(|second| (second - 60.0).max(0.0) * 3.0);
        is_none(|second| 40.0 * (second / 40.0).floor());
    }

    #[test]
    fn growth_below_what_is_asked_for_is_none() {
        is_none(|second| 100.0 + second * 0.05);
    }

    #[test]
    fn too_few_moments_say_nothing() {
        assert!(grows_steadily([].into_iter(), 0).is_none());
        assert!(grows_steadily([(0, 1)].into_iter(), 0).is_none());
        assert!(grows_steadily([(0, 1), (100, 5_000)].into_iter(), 0).is_none());
        assert!(grows_steadily([(7, 1), (7, 9), (7, 10)].into_iter(), 0).is_none());
    }
}
