//! Which numbers of instances are measured: a sweep from one to the most, then a closer look where the budget fails.
//!
//! The sweep has so many points at even distances and ends when two have failed, since beyond them instances starve each
//! other. One failure does not end it, so that the curve shows what comes behind it. Between the last number that held and the first that did not the gap is halved until they are neighbours. A run
//! that only forecasts ends with the first number that loads the host more than the share that it is to load.

use std::collections::BTreeMap;

/// Whether a number of instances held, and what it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Verdict {
    pub holds: bool,
    /// Of the host's cores that the instances may use.
    pub load_share: f64,
}

/// The plan of what to measure.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// Ascending.
    sweep: Vec<u32>,
    load_share_max: Option<f64>,
}

/// So many that fail end the sweep.
const FAILED_MAX: usize = 2;

impl Search {
    /// `points` numbers from 1 to `instances_max`, both included.
    pub fn new(instances_max: u32, points: u32, load_share_max: Option<f64>) -> Self {
        let (last, steps) = (instances_max.max(1), points.clamp(2, instances_max.max(2)) - 1);
        let at = |step: u32| 1 + (u64::from(last - 1) * u64::from(step) / u64::from(steps)) as u32;
        let mut sweep: Vec<u32> = (0..=steps).map(at).collect();
        sweep.dedup();
        Self { sweep, load_share_max }
    }

    /// The next number to measure; `None` = it is done.
    pub fn next(&self, found: &BTreeMap<u32, Verdict>) -> Option<u32> {
        let most = found.keys().next_back().copied().unwrap_or(0);
        let is_loaded = |found: &Verdict| self.load_share_max.is_some_and(|max| found.load_share > max);
        let goes_on = found.values().filter(|one| !one.holds).count() < FAILED_MAX && !found.values().any(is_loaded);
        let next = self.sweep.iter().copied().find(|&instances| instances > most).filter(|_| goes_on);
        next.or_else(|| {
            let (held, failed) = (held(found), first_failed(found)?);
            (failed - held > 1).then(|| held + (failed - held) / 2)
        })
    }
}

/// The most instances that held: no fewer failed.
pub(crate) fn held(found: &BTreeMap<u32, Verdict>) -> u32 {
    found.iter().take_while(|(_, found)| found.holds).last().map_or(0, |(&instances, _)| instances)
}

/// The fewest that did not.
pub(crate) fn first_failed(found: &BTreeMap<u32, Verdict>) -> Option<u32> {
    found.iter().find(|(_, found)| !found.holds).map(|(&instances, _)| instances)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures a host that holds so many.
    fn search(search: &Search, holds: u32, load_each: f64) -> (Vec<u32>, BTreeMap<u32, Verdict>) {
        let (mut asked, mut found) = (Vec::new(), BTreeMap::new());
        while let Some(instances) = search.next(&found) {
            assert!(found.insert(instances, at(instances, holds, load_each)).is_none(), "{instances} twice");
            asked.push(instances);
        }
        (asked, found)
    }

    fn at(instances: u32, holds: u32, load_each: f64) -> Verdict {
        Verdict { holds: instances <= holds, load_share: f64::from(instances) * load_each }
    }

    #[test]
    fn every_answer_is_found_exactly() {
        for max in [1, 2, 7, 40, 168] {
            for points in [2, 3, 12, 500] {
                for holds in 0..=max + 1 {
                    let (asked, found) = self::search(&Search::new(max, points, None), holds, 0.0);
                    assert_eq!(held(&found), holds.min(max), "{max} {points}: {asked:?}");
                    assert_eq!(first_failed(&found), (holds < max).then_some(holds + 1), "{max} {points}: {asked:?}");
                }
            }
        }
    }

    #[test]
    fn the_sweep_has_even_steps_and_ends_behind_the_second_failure() {
        let (asked, _) = search(&Search::new(23, 12, None), 23, 0.0);
        assert_eq!(asked, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]);
        let (asked, _) = search(&Search::new(23, 12, None), 8, 0.0);
        assert_eq!(asked, [1, 3, 5, 7, 9, 11, 8], "9 and 11 failed, and between 7 and 9 there is one");
    }

    #[test]
    fn a_run_that_only_forecasts_ends_at_half_load() {
        let (asked, _) = search(&Search::new(40, 40, Some(0.5)), 100, 0.1);
        assert_eq!(asked, [1, 2, 3, 4, 5, 6]);
    }
}
