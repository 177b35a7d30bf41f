//! The history of live memory: bytes per scope at the last 600 moments.
//!
//! Written once a second by the recorder and read when a capture is saved or a leak is looked for. A scope takes memory
//! here from the moment it first has live bytes, and never more than its 600 values.

use crate::site::{SITES_MAX, SiteId};

use super::leak::{Leak, grows_steadily};
use super::site_at;

/// Ten minutes at one moment a second.
pub(super) const MOMENTS_MAX: usize = 600;

/// Live bytes by scope over time, estimated from samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Moments on the recorder's clock, oldest first. (ns)
    pub at_ns: Vec<u64>,
    /// Scopes that had live memory at any of them, the one with most at the last moment first.
    pub by_site: Vec<LiveBytes>,
}

/// One scope's live memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveBytes {
    /// `None`: allocated outside of every scope.
    pub site: Option<SiteId>,
    /// One value per moment of [`View::at_ns`].
    pub bytes: Vec<u64>,
}

pub(super) struct History {
    /// Rings: moment m is at place m % 600 of each.
    at_ns: Box<[u64]>,
    by_place: Vec<Option<Box<[u64]>>>,
    /// Moments noted since the start.
    moments: usize,
}

impl History {
    pub(super) fn new() -> History {
        History { at_ns: vec![0; MOMENTS_MAX].into(), by_place: vec![None; SITES_MAX + 1], moments: 0 }
    }

    /// Notes a moment: live bytes by place, as in `MemoryObserver::live_bytes`.
    pub(super) fn note(&mut self, now_ns: u64, live_bytes: impl Iterator<Item = u64>) {
        let at = self.moments % MOMENTS_MAX;
        self.at_ns[at] = now_ns;
        for (series, bytes) in self.by_place.iter_mut().zip(live_bytes) {
            match series {
                Some(series) => series[at] = bytes,
                None if bytes > 0 => {
                    let mut fresh: Box<[u64]> = vec![0; MOMENTS_MAX].into();
                    fresh[at] = bytes;
                    *series = Some(fresh);
                }
                None => {}
            }
        }
        self.moments += 1;
    }

    pub(super) fn view(&self) -> View {
        let mut by_site: Vec<LiveBytes> = self
            .series()
            .map(|(site, series)| LiveBytes { site, bytes: self.kept().map(|at| series[at]).collect() })
            .filter(|live| live.bytes.iter().any(|&bytes| bytes > 0))
            .collect();
        by_site.sort_by_key(|live| std::cmp::Reverse(live.bytes.last().copied()));
        View { at_ns: self.kept().map(|at| self.at_ns[at]).collect(), by_site }
    }

    /// See [`super::leak()`].
    pub(super) fn leak(&self, window_s: u64, growth_bytes_min: u64) -> Option<Leak> {
        let window_ns = window_s.saturating_mul(1_000_000_000);
        let last_ns = self.at_ns[self.kept().last()?];
        let first_ns = last_ns.saturating_sub(window_ns);
        // Nine tenths of the window will do, as moments do not fall on its edge.
        let oldest_ns = self.at_ns[self.kept().next()?];
        if last_ns.saturating_sub(oldest_ns) < window_ns / 10 * 9 {
            return None;
        }
        let in_window = || self.kept().filter(|&at| self.at_ns[at] >= first_ns);
        self.series()
            .filter_map(|(site, series)| {
                let growth = grows_steadily(in_window().map(|at| (self.at_ns[at], series[at])), growth_bytes_min)?;
                Some(Leak {
                    site,
                    from_bytes: growth.from_bytes,
                    to_bytes: growth.to_bytes,
                    bytes_per_s: growth.bytes_per_s,
                })
            })
            .max_by_key(|leak| leak.bytes_per_s)
    }

    fn series(&self) -> impl Iterator<Item = (Option<SiteId>, &[u64])> {
        let series = self.by_place.iter().enumerate();
        series.filter_map(|(place, series)| Some((site_at(place), series.as_deref()?)))
    }

    /// Places of the moments that are still there, oldest first.
    fn kept(&self) -> impl Iterator<Item = usize> + Clone {
        (self.moments.saturating_sub(MOMENTS_MAX)..self.moments).map(|moment| moment % MOMENTS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn scopes_come_with_their_values_at_all_moments() {
        let mut history = History::new();
        assert_eq!(history.view(), View::default());
        history.note(5, [0, 10, 0, 7].into_iter());
        history.note(6, [0, 20, 0, 30].into_iter());
        history.note(7, [1, 0, 0, 30].into_iter());
        let of = |site: Option<u32>, bytes: [u64; 3]| LiveBytes { site: site.map(SiteId), bytes: bytes.to_vec() };
        assert_eq!(
            history.view(),
            View {
                at_ns: vec![5, 6, 7],
                by_site: vec![of(Some(3), [7, 30, 30]), of(None, [0, 0, 1]), of(Some(1), [10, 20, 0])],
            }
        );
    }

    #[test]
    fn only_the_last_moments_are_kept() {
        let mut history = History::new();
        for moment in 0..2_000 {
            history.note(moment * S, [if moment == 0 { 99 } else { 0 }, moment].into_iter());
        }
        let view = history.view();
        assert_eq!(view.at_ns, (1_400..2_000).map(|moment| moment * S).collect::<Vec<_>>());
        assert_eq!(view.by_site.len(), 1, "what was live before them is not in it");
        assert_eq!(view.by_site[0].bytes, (1_400..2_000).collect::<Vec<_>>());
    }

    #[test]
    fn the_fastest_leak_is_named_once_the_window_is_over() {
        let mut history = History::new();
        let mut found = Vec::new();
        for second in 0..200 {
            let leak = [50_000_000, second * 400_000, 1_000_000 + second * 900_000, second % 7 * 1_000_000];
            history.note(second * S, leak.into_iter());
            if let Some(leak) = history.leak(60, 8_000_000) {
                found.push((second, leak));
            }
        }
        assert_eq!(found[0].0, 54, "not before nine tenths of the window");
        for (second, leak) in &found {
            assert_eq!(leak.site, Some(SiteId(2)));
            assert!((890_000..910_000).contains(&leak.bytes_per_s), "{leak:?} at {second}");
            assert!(leak.to_bytes - leak.from_bytes >= 8_000_000);
        }
        assert_eq!(found.len(), 146);
    }

    #[test]
    fn a_history_without_moments_has_no_leak() {
        assert_eq!(History::new().leak(0, 0), None);
    }
}
