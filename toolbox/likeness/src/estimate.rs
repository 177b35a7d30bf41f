//! Estimate: how often something is for each second that somebody plays, and how far that may be off.
//!
//! A rate is a sum over a time, so its error comes from how far parts of the recording are from it. Parts are taken in two ways, and the
//! larger error holds: players, since another recording would be of other people, and sixteen stretches of time, since what happens in a
//! shared world happens to all who are there, and a person goes on with what it does. Where players are few they are taken to be as far
//! apart as those of the other side; where both are few, time alone speaks: that says how these would play on, and nothing of others.
//!
//! Where stretches of both sides are held in pairs ([`stretches`](crate::stretches)), worlds are a third way, since a world that differs for
//! as long as it lasts is no up and down.

use crate::{
    permutation::Part,
    profile::{Measure, PlayerProfile, Profile},
    stretches::{InPairs, STRETCHES_MIN, Stretches, in_pairs, stretches},
};

/// Fewer players than that say nothing of how far players are apart.
pub(crate) const PLAYERS_MIN: usize = 6;

/// A rate with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// For each second that a player plays.
    pub rate: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of that.
    pub degrees: u32,
    /// What was counted in all.
    pub total: f64,
    /// In how much time of all players together (s).
    pub exposure_s: f64,
    pub players: usize,
    /// The standard deviation of players, as a share of the rate. `None` where they are few.
    pub deviation_share: Option<f64>,
    /// Whether stretches of time were held against those of the other side in pairs.
    pub is_in_pairs: bool,
}

impl Estimate {
    /// Its error as a share of the rate, beside this other side's. Of few, time tells how these few would play on, and the other side how
    /// far such few are from all: both are in it, one on top of the other.
    pub fn error_share(&self, other: &Self) -> f64 {
        (self.error / self.rate).hypot(self.borrowed(other).unwrap_or(0.0))
    }

    /// The same in units of the rate. What is the other side's comes with the rate of that.
    pub fn error_beside(&self, other: &Self) -> f64 {
        self.error.hypot(self.borrowed(other).unwrap_or(0.0) * other.rate)
    }

    /// Degrees of freedom of that: of several sources the least, which is on the safe side of what Welch and Satterthwaite make of them.
    pub fn degrees_beside(&self, other: &Self) -> u32 {
        let of_others = self.borrowed(other).map(|_| other.players as u32 - 1);
        of_others.map_or(self.degrees, |degrees| degrees.min(self.degrees))
    }

    /// How far so many players are from all, by how far those of the other side are apart: where these are too few to tell.
    fn borrowed(&self, other: &Self) -> Option<f64> {
        let deviation_share = other.deviation_share.filter(|_| self.deviation_share.is_none())?;
        Some(deviation_share / (self.players.max(1) as f64).sqrt())
    }

    /// Whether this is beyond doubt more than nothing, beside a side that never had it: at the least rate that may be meant, those
    /// few players, in the time that they had, would have come by it but for one time in `1 / level`. `quantile`: how many errors the
    /// least rate is away.
    pub fn is_missed_by(&self, none: &Self, quantile: f64, level: f64) -> bool {
        let among_players = self.deviation_share.unwrap_or(0.0) * self.rate / (none.players.max(1) as f64).sqrt();
        let least = self.rate - quantile * self.error.max(among_players);
        // What comes in lumps, as time does and bytes, comes as rarely as its lumps: of counts that come by chance one by one the
        // variance is what was counted, of lumps so many times more.
        let lump = (self.error.powi(2) * self.exposure_s / self.rate).max(1.0);
        least * none.exposure_s / lump > -level.ln()
    }
}

/// How often a measure was in two profiles that are held against each other. `None`: too little was played to say.
pub(crate) fn estimates(sides: [&Profile; 2], measure: &Measure) -> [Option<Estimate>; 2] {
    let by_time = sides.map(|side| stretches(side, measure));
    let pairs = in_pairs(sides, measure, &by_time);
    [0, 1].map(|side| estimate(sides[side], measure, &by_time[side], pairs))
}

fn estimate(profile: &Profile, measure: &Measure, by_time: &Stretches, pairs: Option<InPairs>) -> Option<Estimate> {
    let by_player = by_player(profile, measure);
    let by_time: Vec<Part> = by_time.iter().copied().filter(|part| part.1 > 0.0).collect();
    let total: f64 = by_player.iter().map(|part| part.0).sum();
    let exposure_s: f64 = by_player.iter().map(|part| part.1).sum();
    let rate = total / exposure_s;
    let error_of_total = |parts: &[Part]| variance_of_total(parts, rate).sqrt();
    let of =
        |parts: &[Part], least: usize| (parts.len() >= least).then(|| (error_of_total(parts), parts.len() as u32 - 1));
    let of_time = of(&by_time, STRETCHES_MIN);
    let errors = match pairs {
        None => [of_time, of(&by_player, PLAYERS_MIN), None],
        Some(InPairs { factor, degrees }) => {
            let of_time = of_time.map(|(error, of_own)| (error * factor, degrees.min(of_own)));
            [of_time, of(&by_player, PLAYERS_MIN), profile.worlds.error(measure)]
        }
    };
    let (largest, degrees) = errors.into_iter().flatten().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let players = by_player.len();
    let is_enough = players >= PLAYERS_MIN && rate > 0.0;
    let deviation_share = is_enough.then(|| error_of_total(&by_player) / exposure_s * (players as f64).sqrt() / rate);
    let (error, is_in_pairs) = (largest / exposure_s, pairs.is_some());
    rate.is_finite().then_some(Estimate {
        rate,
        error,
        degrees,
        total,
        exposure_s,
        players,
        deviation_share,
        is_in_pairs,
    })
}

/// What each player who played did, and in how much time (s).
pub(crate) fn by_player(profile: &Profile, measure: &Measure) -> Vec<Part> {
    let of_player = |player: &PlayerProfile| {
        let exposure: f64 = player.exposure_s(measure.sort).iter().sum();
        (player.values.get(measure).map_or(0.0, |values| values.iter().sum()), exposure)
    };
    profile.players.iter().map(of_player).filter(|part| part.1 > 0.0).collect()
}

/// The variance of a total, by how far its parts are from the rate (Cochran, Sampling Techniques, 6.4, for the error of a ratio of sums).
pub(crate) fn variance_of_total(parts: &[Part], rate: f64) -> f64 {
    let count = parts.len() as f64;
    let squares: f64 = parts.iter().map(|(value, seconds)| (value - rate * seconds).powi(2)).sum();
    squares * count / (count - 1.0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        profile::{BINS, Sort},
        stretches::BINS_EACH,
    };

    fn player(each_bin: impl Fn(usize) -> f64) -> PlayerProfile {
        let values = BTreeMap::from([(Measure::new(Sort::Packets, "inputs"), (0..BINS).map(each_bin).collect())]);
        PlayerProfile { played_s: vec![2.0; BINS], own_s: vec![1.0; BINS], values, places: BTreeMap::new() }
    }

    fn of(players: Vec<PlayerProfile>) -> Option<Estimate> {
        let side = Profile { length_s: 96.0, players, ..Profile::default() };
        let [estimate, _] = estimates([&side, &side], &Measure::new(Sort::Packets, "inputs"));
        estimate
    }

    #[test]
    fn players_who_differ_and_time_that_differs_make_a_rate_uncertain() {
        let even = of(vec![player(|_| 40.0); 8]).unwrap();
        assert_eq!((even.rate, even.error, even.total), (20.0, 0.0, 40.0 * 48.0 * 8.0));
        // Each is as it is all the time.
        let players = (0..8).map(|number| player(move |_| if number % 2 == 0 { 30.0 } else { 50.0 })).collect();
        let unlike = of(players).unwrap();
        assert_eq!((unlike.rate, unlike.degrees), (20.0, 7));
        assert!((unlike.error - 5.0 / 7.0_f64.sqrt()).abs() < 1e-9, "{unlike:?}");
        // All do the same together, now more and now less.
        let in_time = of(vec![player(|bin| if (bin / BINS_EACH).is_multiple_of(2) { 30.0 } else { 50.0 }); 8]).unwrap();
        assert!(in_time.degrees == 15 && (in_time.error - 5.0 / 15.0_f64.sqrt()).abs() < 1e-9, "{in_time:?}");
    }

    #[test]
    fn what_one_side_never_had_is_missed_if_it_would_have_come_to_that() {
        let has = |rate: f64, error: f64, deviation_share: Option<f64>| Estimate {
            rate,
            error,
            degrees: 39,
            total: rate * 48_000.0,
            exposure_s: 48_000.0,
            players: 40,
            deviation_share,
            is_in_pairs: false,
        };
        let none = |players: usize| Estimate {
            rate: 0.0,
            error: 0.0,
            degrees: 15,
            total: 0.0,
            exposure_s: 1_200.0 * players as f64,
            players,
            deviation_share: None,
            is_in_pairs: false,
        };
        let check = |has: Estimate, players: usize, expect: bool| {
            assert_eq!(has.is_missed_by(&none(players), 3.5, 0.001), expect, "{has:?}, {players} players have none");
        };
        // Once in twenty minutes, by chance: of one player nobody can say, of forty it is certain.
        let once = has(1.0 / 1_200.0, 1.0 / 1_200.0 / 40.0_f64.sqrt(), Some(1.0));
        check(once, 1, false);
        check(once, 40, true);
        // Once a second, by all alike: one is enough. If only every other does it at all, one is not.
        check(has(1.0, 0.01, Some(0.06)), 1, true);
        check(has(1.0, 0.16, Some(1.0)), 1, false);
        check(has(1.0, 0.16, Some(1.0)), 40, true);
        // A few lumps are a few, however much each of them counts: here forty of 5,000.
        check(has(25.0 / 6.0, 0.66, None), 1, false);
        check(has(25.0 / 6.0, 0.66, None), 40, true);
    }

    #[test]
    fn who_has_hardly_played_says_nothing() {
        assert_eq!(of(Vec::new()), None);
        let mut short = player(|_| 1.0);
        short.played_s = (0..BINS).map(|bin| if bin < 3 { 2.0 } else { 0.0 }).collect();
        assert_eq!(of(vec![short; 2]), None);
        assert!(of(vec![player(|_| 1.0)]).is_some(), "one who played all the time does");
    }
}
