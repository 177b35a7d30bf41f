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

/// What a client or a world may come to hold in one scope without being called a leak. (bytes)
///
/// A hideout with its player and NPCs holds 280 KB in all its scopes together, and counts twice: as a client and as a
/// world. Too low: players who come in are called a leak. Too high: a leak shows only when they have been in for long.
const NEWCOMER_BYTES: u64 = 256 << 10;

pub(super) struct History {
    /// Rings: moment m is at place m % 600 of each.
    at_ns: Box<[u64]>,
    by_place: Vec<Option<Box<[u64]>>>,
    /// Clients and worlds at each moment, another ring.
    population: Box<[u64]>,
    /// Moments noted since the start.
    moments: usize,
}

impl History {
    pub(super) fn new() -> History {
        History {
            at_ns: vec![0; MOMENTS_MAX].into(),
            by_place: vec![None; SITES_MAX + 1],
            population: vec![0; MOMENTS_MAX].into(),
            moments: 0,
        }
    }

    /// Notes a moment: how many clients and worlds there are, and live bytes by place, as in
    /// `MemoryObserver::live_bytes`.
    pub(super) fn note(&mut self, now_ns: u64, population: u64, live_bytes: impl Iterator<Item = u64>) {
        let at = self.moments % MOMENTS_MAX;
        self.at_ns[at] = now_ns;
        self.population[at] = population;
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
        let since_ns = first_ns.saturating_sub(window_ns);
        let growth_bytes_min = growth_bytes_min.saturating_add(self.newcomers(since_ns).saturating_mul(NEWCOMER_BYTES));
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

    /// By how many clients and worlds there are more now than there were at any moment from then on.
    fn newcomers(&self, since_ns: u64) -> u64 {
        let since = self.kept().filter(|&at| self.at_ns[at] >= since_ns).map(|at| self.population[at]);
        let now = since.clone().last().unwrap_or_default();
        now - since.min().unwrap_or_default()
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
        history.note(5, 0, [0, 10, 0, 7].into_iter());
        history.note(6, 0, [0, 20, 0, 30].into_iter());
        history.note(7, 0, [1, 0, 0, 30].into_iter());
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
            history.note(moment * S, 0, [if moment == 0 { 99 } else { 0 }, moment].into_iter());
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
            history.note(second * S, 1_000, leak.into_iter());
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

    /// The first leak that is seen, if one is, and when: live bytes and population by second.
    fn first_leak(population: impl Fn(u64) -> u64, live_bytes: impl Fn(u64) -> [u64; 3]) -> Option<(u64, Leak)> {
        let mut history = History::new();
        (0..300).find_map(|second| {
            history.note(second * S, population(second), live_bytes(second).into_iter());
            Some((second, history.leak(30, 3_000_000)?))
        })
    }

    /// 1,000 players log in within a minute, each to a world of his own; and hold 40 KB each at once, and 150 KB more in
    /// another scope after they have played for 20 s.
    fn joined(second: u64) -> u64 {
        (second * 1_000 / 60).min(1_000)
    }

    fn held(second: u64) -> [u64; 3] {
        let grown: u64 = (0..20).map(|ago| joined(second.saturating_sub(ago)) * 150_000 / 20).sum();
        [0, joined(second) * 40_000, grown]
    }

    #[test]
    fn players_who_log_in_are_no_leak() {
        assert_eq!(first_leak(|second| 3 + 2 * joined(second), held), None);
        let told_of_nobody = first_leak(|_| 3, held);
        assert!(told_of_nobody.is_some(), "else this test would say nothing");
    }

    #[test]
    fn a_leak_shows_when_those_who_logged_in_have_been_there_for_two_windows() {
        let leaking = |second| [second * 600_000, held(second)[1], held(second)[2]];
        let (second, leak) = first_leak(|second| 3 + 2 * joined(second), leaking).expect("600 KB/s are a leak");
        assert_eq!(leak.site, None);
        assert!((60..=121).contains(&second), "seen after {second} s");
    }

    #[test]
    fn players_who_come_for_others_who_go_hide_no_leak() {
        let (second, leak) = first_leak(|second| 2_000 + second * 7 % 20, |second| [0, second * 600_000, 0]).unwrap();
        assert_eq!((leak.site, second), (Some(SiteId(1)), 27), "as soon as without them");
    }

    #[test]
    fn a_history_without_moments_has_no_leak() {
        assert_eq!(History::new().leak(0, 0), None);
    }
}
