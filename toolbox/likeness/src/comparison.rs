//! Comparison: two load profiles held against each other, measure by measure, and what differs by more than a tenth is named.
//!
//! A measure is named if its rates are more than [`LIMIT`] apart, the interval of their ratio has no room for none, and players shuffled between
//! the sides are hardly ever as far apart ([`permutation`](crate::permutation)). Intervals are at a level that holds for all measures at once (Bonferroni), so
//! that the same behaviour twice has anything named once in a hundred times at most; where one player is held against many, in two of a
//! hundred. It is `within` if all of the interval is within the
//! limit. What is neither is `unclear`: it may differ, and so little was played that nobody can say.
//!
//! Two intervals are taken, and the wider end of either holds: Student's of the ratio's logarithm, and Fieller's of the ratio itself (Some
//! Problems in Interval Estimation, 1954). Of many players both are the same. Of few whose rates are far apart the first is too narrow
//! below where players differ by sums, for it takes its error as a share of a rate that may be small by chance; and the second above, where
//! they differ by factors.
//!
//! Pure functions of profiles. Cost: milliseconds, and for places up to some seconds.

use std::collections::BTreeSet;

use serde::Serialize;
use throng::replay::ReplayReport;
use throng_history::student::student_two_sided;

use crate::{
    estimate::{Estimate, PLAYERS_MIN, by_player, estimates},
    lacking::{Lacking, remarks_of},
    permutation::is_beyond_permutations,
    places::{self, PlacesRow},
    profile::{Measure, Profile, Sort},
    profiling::Profiled,
    stretches::SCHEDULE_DIFFERENCE_MAX,
    verdict::Verdict,
};

/// Rates that are so far apart differ: the larger one is more than the smaller by so much.
pub const LIMIT: f64 = 0.10;
/// With which probability anything is named of the same behaviour.
const FALSE_ALARMS: f64 = 0.01;
/// Subsystems that take less of all time are left out: theirs is the clock's.
const TIME_SHARE_MIN: f64 = 0.005;
/// What was counted less often on both sides together says nothing.
const TOTAL_MIN: f64 = 20.0;

/// What is found of one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub measure: Measure,
    pub verdict: Verdict,
    /// The rate of the first side, in `measure.sort.unit()`. `None`: it played too little to say.
    pub a: Option<f64>,
    /// That of the second side, likewise.
    pub b: Option<f64>,
    /// By how much `b` is more than `a` (%). `None`: one of them is `None` or nothing.
    pub difference_percent: Option<f64>,
    /// The lower end of the interval in which that lies (%). `None` where there is no difference to tell.
    pub low_percent: Option<f64>,
    /// Its upper end (%). `None` also where `a` may be nothing, since then there is none.
    pub high_percent: Option<f64>,
    /// Whether stretches of time of both sides were held against each other in pairs.
    pub in_pairs: bool,
}

/// One side of a comparison: how long it is, and how many players it has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// How long its recording is, without the first seconds (s).
    #[serde(rename = "seconds")]
    pub length_s: f64,
    pub players: usize,
    /// How long all of them together were there (s).
    pub played_s: f64,
    /// Players at a time, on average over all of `length_s`: in what is missing there are none.
    pub players_at_a_time: f64,
    /// Which part of the time that they played was in worlds with players who are not of this side [0 to 1]. It is left out of counts and
    /// times.
    pub shared_share: f64,
}

/// Two profiles, held against each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub a: Side,
    pub b: Side,
    /// By sort; within one those that differ most first.
    pub rows: Vec<Row>,
    /// `None` where nobody had a place.
    pub places: Option<PlacesRow>,
    /// Which measures differ.
    pub named: Vec<String>,
    /// What must be known to read it.
    pub remarks: Vec<String>,
    /// If it is not empty, figures are of another play than what was recorded.
    #[serde(skip)]
    pub lacking: Vec<Lacking>,
}

impl Comparison {
    /// Compares two profiles, measure by measure. A pure function on the calling thread; allocates. Takes milliseconds, and up to some seconds
    /// where players were in many places.
    pub fn of(a: &Profile, b: &Profile) -> Self {
        let sides = [a, b].map(side_of);
        let mut rows = rows(a, b);
        rows.sort_by(|one, other| {
            let size = |row: &Row| row.difference_percent.map_or(f64::MAX, f64::abs);
            let is_quiet = |row: &Row| !row.verdict.is_named();
            let key = |row: &Row| (row.measure.sort, is_quiet(row));
            key(one).cmp(&key(other)).then(size(other).total_cmp(&size(one)))
        });
        let places = places::compare(a, b);
        let named = rows.iter().filter(|row| row.verdict.is_named()).map(|row| row.measure.name.to_string());
        let mut named: Vec<String> = named.collect();
        if places.as_ref().is_some_and(|places| places.verdict.is_named()) {
            named.push("places".to_owned());
        }
        let [a, b] = sides;
        let remarks = remarks(&a, &b);
        Self { a, b, rows, places, named, remarks, lacking: Vec::new() }
    }

    /// Compares two recordings as [`of`](Self::of) does, with what is to be said of their servers and replays. Each comes with what remarks
    /// call it: its path.
    pub fn of_recordings(recordings: [(&str, &Profiled<1>); 2]) -> Self {
        let [(_, a), (_, b)] = recordings;
        let mut comparison = Self::of(&a.profiles[0], &b.profiles[0]);
        if a.arguments != b.arguments {
            let (a, b) = (a.arguments.join(" "), b.arguments.join(" "));
            comparison.remarks.push(format!("the servers were started in other ways: `{a}` and `{b}`"));
        }
        recordings.into_iter().for_each(|(name, profiled)| comparison.note_replay(name, &profiled.replay));
        comparison
    }

    /// Compares both sides of a recording as [`of`](Self::of) does, with what is to be said of its replay. `name`: what remarks call it,
    /// its path.
    pub fn of_sides(name: &str, profiled: &Profiled<2>) -> Self {
        let [a, b] = &profiled.profiles;
        let mut comparison = Self::of(a, b);
        comparison.note_replay(name, &profiled.replay);
        comparison
    }

    fn note_replay(&mut self, name: &str, replay: &ReplayReport) {
        self.remarks.extend(remarks_of(name, replay));
        self.lacking.extend(Lacking::of(name, replay));
    }

    /// Whether nothing was found that differs.
    pub fn is_alike(&self) -> bool {
        self.named.is_empty()
    }

    /// What is found of each measure, places among them.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.rows.iter().map(|row| row.verdict).chain(self.places.iter().map(|places| places.verdict))
    }

    /// That too little was played to call the two alike, if nothing is known of more than half of all measures, or of those of packets.
    pub fn too_little(&self) -> Option<String> {
        let packets = self.rows.iter().filter(|row| row.measure.sort == Sort::Packets).map(|row| row.verdict);
        let (all, packets): (Vec<Verdict>, Vec<Verdict>) = (self.verdicts().collect(), packets.collect());
        if all.is_empty() {
            return Some("too little was played: there is no measure of it".to_owned());
        }
        [("all measures", all), ("those of packets", packets)].into_iter().find_map(|(which, verdicts)| {
            let unclear = verdicts.iter().filter(|verdict| **verdict == Verdict::Unclear).count();
            (2 * unclear > verdicts.len()).then(|| {
                format!("too little was played: nothing can be said of {unclear} of {} of {which}", verdicts.len())
            })
        })
    }
}

fn side_of(profile: &Profile) -> Side {
    let played_s = profile.played_s();
    let players_at_a_time = if profile.length_s > 0.0 { played_s / profile.length_s } else { 0.0 };
    let (length_s, shared_share) = (profile.length_s, profile.shared_share());
    Side { length_s, players: profile.players.len(), played_s, players_at_a_time, shared_share }
}

fn remarks(a: &Side, b: &Side) -> Vec<String> {
    let mut remarks = Vec::new();
    let (at_a, at_b) = (a.players_at_a_time, b.players_at_a_time);
    if at_a.min(at_b) * (1.0 + LIMIT) < at_a.max(at_b) {
        remarks.push(format!(
            "a has {at_a:.1} players at a time and b {at_b:.1}: what worlds cost anyhow is shared by other numbers, so counts and \
             times differ for that alone; record as many of both"
        ));
    }
    if (a.length_s - b.length_s).abs() > SCHEDULE_DIFFERENCE_MAX * a.length_s.max(b.length_s) {
        remarks.push(format!(
            "a is {:.0} s long and b {:.0} s: what comes early or late is another part of each, so intervals are wider; record for as long",
            a.length_s, b.length_s
        ));
    }
    for (name, side, other) in [("a", a, b), ("b", b, a)] {
        if side.players < PLAYERS_MIN {
            let meaning = if other.players < PLAYERS_MIN {
                "it is asked how these would play on, and not how others would"
            } else {
                "they are taken to be as far apart as those of the other side"
            };
            remarks.push(format!("{name} has {} players: {meaning}", side.players));
        }
        if side.shared_share > 0.0 {
            remarks.push(format!(
                "{:.0} % of the time of {name} is in worlds with players who are not of its side: their counts and times are nobody's",
                100.0 * side.shared_share
            ));
        }
    }
    remarks
}

fn rows(a: &Profile, b: &Profile) -> Vec<Row> {
    let measures: BTreeSet<&Measure> = a.measures().chain(b.measures()).collect();
    let estimates: Vec<(&Measure, [Option<Estimate>; 2])> =
        measures.into_iter().map(|measure| (measure, estimates([a, b], measure))).collect();
    let all_time = |side: usize| -> f64 {
        let times = estimates.iter().filter(|(measure, _)| measure.sort == Sort::Times);
        times.filter_map(|(_, sides)| sides[side]).map(|estimate| estimate.rate).sum()
    };
    let all_time = [0, 1].map(all_time);
    let is_small = |(measure, sides): &(&Measure, [Option<Estimate>; 2])| {
        let share =
            |side: usize| sides[side].map_or(0.0, |estimate| estimate.rate / all_time[side].max(f64::MIN_POSITIVE));
        let total: f64 = sides.iter().flatten().map(|estimate| estimate.total).sum();
        (measure.sort == Sort::Times && share(0).max(share(1)) < TIME_SHARE_MIN) || total <= 0.0
    };
    let estimates: Vec<_> = estimates.iter().filter(|row| !is_small(row)).collect();
    let level = FALSE_ALARMS / estimates.len().max(1) as f64;
    estimates
        .into_iter()
        .map(|(measure, sides)| {
            let is_beyond = || {
                let [a, b] = [a, b].map(|profile| by_player(profile, measure));
                // Of few on both sides time alone speaks.
                a.len().max(b.len()) < PLAYERS_MIN || is_beyond_permutations(&a, &b, level)
            };
            row(measure, sides, level, is_beyond)
        })
        .collect()
}

/// `is_beyond`: whether players shuffled between the sides are hardly ever as far apart; asked only of what would be named.
fn row(measure: &Measure, [a, b]: &[Option<Estimate>; 2], level: f64, is_beyond: impl Fn() -> bool) -> Row {
    let mut found = match (a, b) {
        (Some(a), Some(b)) => ratio(a, b, level),
        _ => Found { verdict: Verdict::Unclear, percent: None },
    };
    if found.verdict.is_named() && !is_beyond() {
        found.verdict = Verdict::Unclear;
    }
    let [difference_percent, low_percent, high_percent] = match found.percent {
        Some(percent) => percent.map(|percent| percent.is_finite().then_some(percent)),
        None => [None; 3],
    };
    let rate = |estimate: &Option<Estimate>| estimate.map(|estimate| estimate.rate);
    Row {
        measure: measure.clone(),
        verdict: found.verdict,
        a: rate(a),
        b: rate(b),
        difference_percent,
        low_percent,
        high_percent,
        in_pairs: a.is_some_and(|estimate| estimate.is_in_pairs),
    }
}

struct Found {
    verdict: Verdict,
    /// Difference, low and high.
    percent: Option<[f64; 3]>,
}

fn ratio(a: &Estimate, b: &Estimate, level: f64) -> Found {
    let quantile = student_two_sided(level, a.degrees_beside(b).min(b.degrees_beside(a)));
    let is_rare = a.total + b.total < TOTAL_MIN;
    let verdict_of = |low: f64, middle: f64, high: f64| {
        if !is_rare && low > 1.0 && middle > 1.0 + LIMIT {
            Verdict::More
        } else if !is_rare && high < 1.0 && middle < 1.0 / (1.0 + LIMIT) {
            Verdict::Less
        } else if low >= 1.0 / (1.0 + LIMIT) && high <= 1.0 + LIMIT {
            Verdict::Within
        } else {
            Verdict::Unclear
        }
    };
    // Where one of them has none at all there is no ratio; it is told if the other has it beyond doubt, and in the time of this one
    // it would have come to it.
    if a.rate <= 0.0 || b.rate <= 0.0 {
        let (verdict, has, none) = if a.rate > 0.0 { (Verdict::Less, a, b) } else { (Verdict::More, b, a) };
        let is_certain = !is_rare && has.is_missed_by(none, quantile, level);
        return Found { verdict: if is_certain { verdict } else { Verdict::Unclear }, percent: None };
    }
    let (shift, error) = ((b.rate / a.rate).ln(), a.error_share(b).hypot(b.error_share(a)));
    let [low, middle, high] = [-quantile, 0.0, quantile].map(|errors| (shift + errors * error).exp());
    let (least, most) = fieller((a.rate, quantile * a.error_beside(b)), (b.rate, quantile * b.error_beside(a)));
    let (low, high) = (low.min(least), high.max(most));
    Found {
        verdict: verdict_of(low, middle, high),
        percent: Some([middle, low, high].map(|ratio| 100.0 * (ratio - 1.0))),
    }
}

/// Between which ratios `b / a` lies (Fieller's), of two rates with half the width of the interval of each. Without an upper end if `a` may
/// be none.
fn fieller((a, a_half_width): (f64, f64), (b, b_half_width): (f64, f64)) -> (f64, f64) {
    let squares = |rate: f64, half_width: f64| rate.powi(2) - half_width.powi(2);
    let (least_a, least_b) = (squares(a, a_half_width), squares(b, b_half_width));
    let root = a * b + ((a * b).powi(2) - least_a * least_b).max(0.0).sqrt();
    (if least_b > 0.0 { least_b / root } else { 0.0 }, if least_a > 0.0 { root / least_a } else { f64::INFINITY })
}

#[cfg(test)]
mod tests;
