//! Settling: when a run has become what it is going to be for hours.
//!
//! Watched are the players in each kind of world, packets in and out, and resident memory. A figure stands still when
//! the mean of the later half of the last [`STILL_FOR_S`] seconds is within [`MOVED_SHARE_MAX`] of the mean of the
//! earlier half. Halves, since a single second's count jumps about while nothing changes at all. Players of a kind are
//! held against all players: of three in the dark zone, one who leaves is a third, and says nothing about the run.
//!
//! A game may say that a run needs longer than it takes these figures to stand still: players of a game of rounds all buy
//! at first, and by and by each match at another time.
//!
//! Where players are few, chance moves more than that: a count of `n` who decide each for themselves moves by some
//! `sqrt(n)`. So half of `1 / sqrt(n)` is allowed where it is more, which is so below 625 players.
//!
//! Pure: it is given the seconds. Cost: two passes over 30 of them, once a second.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::seconds::Second;

/// A run is settled when nothing has moved for so long (s).
pub const STILL_FOR_S: usize = 30;
/// Farther than this is a movement, where players are many.
pub const MOVED_SHARE_MAX: f64 = 0.02;

/// How a run came to rest before its window opened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settling {
    /// Nothing moved any more. If not: the window opened because the longest wait was over.
    pub is_settled: bool,
    /// From the moment when the last bot was in to the opening of the window (s).
    pub after_s: f64,
    /// The longest that this was allowed to take (s).
    pub s_max: u32,
    /// The least that it takes, by the game's word (s).
    pub s_min: u32,
    /// How far each figure moved in the last [`STILL_FOR_S`] before the window, as a share; none if the wait was shorter
    /// than that. The key is that of a second's status, and `players_by_kind.` with a kind's name.
    pub moved_share: BTreeMap<String, f64>,
    /// How far each may.
    pub moved_share_max: f64,
}

impl Settling {
    pub(crate) fn new(players: u32, s_min: u32, s_max: u32) -> Self {
        let of_chance = 0.5 / f64::from(players.max(1)).sqrt();
        Self { s_min, s_max, moved_share_max: MOVED_SHARE_MAX.max(of_chance), ..Self::default() }
    }

    /// Looks at the seconds since the last bot was in; whether they have settled.
    pub(crate) fn look(&mut self, seconds: &[Second]) -> bool {
        let Some(first) = seconds.len().checked_sub(STILL_FOR_S) else { return false };
        self.moved_share = moved_shares(&seconds[first..]);
        let stands_still = self.moved_share.values().all(|share| *share <= self.moved_share_max);
        self.is_settled = stands_still && seconds.len() >= self.s_min as usize;
        self.is_settled
    }

    /// What moved farthest; none if nothing moved.
    pub fn farthest(&self) -> Option<(&str, f64)> {
        let shares = self.moved_share.iter().map(|(key, share)| (key.as_str(), *share));
        shares.filter(|(_, share)| *share > 0.0).max_by(|one, other| one.1.total_cmp(&other.1))
    }
}

impl std::fmt::Display for Settling {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { is_settled, after_s, .. } = self;
        let word = if *is_settled { "settled" } else { "NOT settled" };
        write!(out, "{word} {after_s:.0} s after the last bot was in")?;
        match self.farthest() {
            Some((key, share)) if !is_settled => write!(out, ": {key} still moved by {:.1} %", share * 100.0),
            _ => Ok(()),
        }
    }
}

/// How far each figure moved from the earlier half of `seconds` to the later one.
fn moved_shares(seconds: &[Second]) -> BTreeMap<String, f64> {
    type Figure = fn(&Second) -> f64;
    let halves = seconds.split_at(seconds.len() / 2);
    let moved = |value: &dyn Fn(&Second) -> f64, whole: &dyn Fn(&Second) -> f64| {
        let way = (mean(halves.1, value) - mean(halves.0, value)).abs();
        if way > 0.0 { way / mean(seconds, whole) } else { 0.0 }
    };
    let figures: [(&str, Figure); 3] = [
        ("packets_in", |second| second.packets_in as f64),
        ("packets_out", |second| second.packets_out as f64),
        ("rss_mb", |second| second.rss_mb),
    ];
    let mut shares: BTreeMap<String, f64> =
        figures.iter().map(|(key, value)| ((*key).to_owned(), moved(value, value))).collect();
    for kind in Second::kinds(seconds) {
        let share = moved(&|second| second.players_of(kind), &|second| second.players as f64);
        shares.insert(format!("players_by_kind.{kind}"), share);
    }
    shares
}

fn mean(seconds: &[Second], value: &dyn Fn(&Second) -> f64) -> f64 {
    seconds.iter().map(value).sum::<f64>() / seconds.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of 1,000 players of whom `away(second)` are in the hub, with 20 packets a second for each and 20 more in
    /// the hub.
    fn seconds(count: u64, away: impl Fn(u64) -> u64) -> Vec<Second> {
        let second = |second| {
            let hub = away(second);
            Second {
                second,
                players: 1_000,
                players_by_kind: [("hideout".to_owned(), 1_000 - hub), ("hub".to_owned(), hub)].into(),
                packets_in: 20_000,
                packets_out: 20_000 + 20 * hub,
                rss_mb: 400.0,
                ..Second::default()
            }
        };
        (0..count).map(second).collect()
    }

    #[track_caller]
    fn check(seconds: &[Second], players: u32, is_settled: bool, farthest: &str) {
        let mut settling = Settling::new(players, 0, 300);
        assert_eq!(settling.look(seconds), is_settled, "{settling:?}");
        assert_eq!(settling.farthest().map_or("", |(key, _)| key), farthest, "{settling:?}");
    }

    #[test]
    fn a_run_is_settled_when_nothing_has_moved_for_long_enough() {
        check(&seconds(29, |_| 250), 1_000, false, "");
        check(&seconds(30, |second| 250 + second % 3), 1_000, true, "");
    }

    #[test]
    fn players_who_leave_home_packets_and_memory_keep_it_from_settling() {
        check(&seconds(60, |second| second * 3), 1_000, false, "players_by_kind.hub");
        let mut more_packets = seconds(60, |_| 250);
        more_packets.iter_mut().for_each(|second| second.packets_out += 60 * second.second);
        check(&more_packets, 1_000, false, "packets_out");
        let mut more_memory = seconds(60, |_| 250);
        more_memory.iter_mut().for_each(|second| second.rss_mb += second.second as f64);
        check(&more_memory, 1_000, false, "rss_mb");
    }

    #[test]
    fn what_happened_before_the_last_half_minute_is_forgotten() {
        check(&seconds(90, |second| second.min(55) * 4), 1_000, true, "");
    }

    #[test]
    fn few_players_may_move_as_chance_moves_them() {
        // From one half to the other 4 % of the players move.
        let moving = seconds(30, |second| if second < 15 { 200 } else { 240 });
        check(&moving, 1_000, false, "players_by_kind.hub");
        check(&moving, 100, true, "players_by_kind.hub");
        assert_eq!(Settling::new(625, 0, 0).moved_share_max, MOVED_SHARE_MAX);
    }

    #[test]
    fn a_game_that_needs_longer_is_waited_for() {
        let mut settling = Settling::new(1_000, 45, 300);
        assert!(!settling.look(&seconds(44, |_| 250)), "{settling:?}");
        assert!(settling.look(&seconds(45, |_| 250)), "{settling:?}");
    }

    #[test]
    fn it_reads_as_a_sentence() {
        let mut settling = Settling { after_s: 300.2, ..Settling::new(1_000, 0, 300) };
        settling.look(&seconds(60, |second| second * 3));
        let words = settling.to_string();
        assert!(words.starts_with("NOT settled 300 s after the last bot was in: players_by_kind.hub still moved"));
        settling.is_settled = true;
        assert_eq!(settling.to_string(), "settled 300 s after the last bot was in");
    }
}
