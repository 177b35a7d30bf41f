//! Stretches: what was done in each sixteenth of a recording's time, and how much of its ups and downs two recordings have in common.
//!
//! What comes and goes on both sides at once, such as rounds or everybody's first minute, makes them no more unlike. So stretches are held
//! against each other in pairs, the first with the first, as in a paired test (Student, The Probable Error of a Mean, 1908). Sides that
//! have no such schedule in common lose nothing by it on average: what each is off by on its own then adds up as it does without pairs.
//!
//! A schedule is the same one only where both sides are recorded for as long, and where their players are there at the same times: of a
//! shorter recording the first minute is a larger part. And a world goes its own way for as long as it lasts, so of a single one only its ups
//! and downs tell how far another might be off, whatever they come from. So only what is spread over worlds is held in pairs: of precinct
//! `casts` are, which come from everybody's own hideout, and the time of `rewind` is not, nearly all of which one crowded world takes.
//!
//! Pure functions of profiles. Cost: some microseconds a measure.

use crate::{
    permutation::Part,
    profile::{BINS, Measure, Profile},
};

/// Stretches of time.
pub(crate) const STRETCHES: usize = 16;
pub(crate) const BINS_EACH: usize = BINS / STRETCHES;
const _: () = assert!(BINS_EACH * STRETCHES == BINS);
/// Fewer stretches with anybody in them say nothing.
pub(crate) const STRETCHES_MIN: usize = 6;
/// Over so many worlds what happens in one of them evens out.
const WORLDS_MIN: f64 = 16.0;
/// Two sides whose lengths, or times in which they are there, differ by a larger share than this have no schedule in common.
pub(crate) const SCHEDULE_DIFFERENCE_MAX: f64 = 0.05;

/// What was done in each, and in how much time of all players together (s).
pub(crate) type Stretches = [Part; STRETCHES];

pub(crate) fn stretches(profile: &Profile, measure: &Measure) -> Stretches {
    let mut stretches = [(0.0, 0.0); STRETCHES];
    for player in &profile.players {
        for (bin, seconds) in player.exposure_s(measure.sort).iter().enumerate() {
            stretches[bin / BINS_EACH].1 += seconds;
        }
        for (bin, value) in player.values.get(measure).into_iter().flatten().enumerate() {
            stretches[bin / BINS_EACH].0 += value;
        }
    }
    stretches
}

/// What holding stretches in pairs makes of the errors of both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InPairs {
    /// What the errors that time makes are to be multiplied by [0 to 1.42]: less than 1 where ups and downs are of both.
    pub factor: f64,
    /// Degrees of freedom of them then.
    pub degrees: u32,
}

/// `None`: each side is to be taken alone.
pub(crate) fn in_pairs(sides: [&Profile; 2], measure: &Measure, stretches: &[Stretches; 2]) -> Option<InPairs> {
    let [a, b] = sides.map(|side| side.length_s);
    let is_spread = sides.iter().all(|side| side.worlds.spread(measure) >= WORLDS_MIN);
    let is_as_long = (a - b).abs() <= SCHEDULE_DIFFERENCE_MAX * a.max(b);
    if !is_spread || !is_as_long || presence_distance(stretches) > SCHEDULE_DIFFERENCE_MAX {
        return None;
    }
    let deviations = stretches.map(|stretches| deviations(&stretches));
    let (mut own, mut together, mut pairs) = (0.0, 0.0, 0);
    for (a, b) in deviations[0].iter().zip(&deviations[1]) {
        let squares: f64 = [a, b].into_iter().flatten().map(|deviation| deviation * deviation).sum();
        own += squares;
        together += if let (Some(a), Some(b)) = (a, b) { (b - a).powi(2) } else { squares };
        pairs += u32::from(a.is_some() && b.is_some());
    }
    (pairs >= STRETCHES_MIN as u32 && own > 0.0)
        .then(|| InPairs { factor: (together / own).sqrt(), degrees: pairs - 1 })
}

/// Which part of their time two sides are there in other stretches than each other [0 to 1].
fn presence_distance(stretches: &[Stretches; 2]) -> f64 {
    let [of_a, of_b] = stretches.map(|stretches| stretches.iter().map(|part| part.1).sum::<f64>());
    let pairs = stretches[0].iter().zip(&stretches[1]);
    pairs.map(|(a, b)| (a.1 / of_a - b.1 / of_b).abs()).sum::<f64>() / 2.0
}

/// By how much each moves the rate of all, as a share of that. `None`: nobody was there.
fn deviations(stretches: &Stretches) -> [Option<f64>; STRETCHES] {
    let (total, exposure) = stretches.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    stretches.map(|(value, seconds)| (seconds > 0.0 && total > 0.0).then(|| value / total - seconds / exposure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        profile::{PlayerProfile, Sort},
        worlds::tests::each_in_its_own,
    };

    /// Of sides that are as long as that and in so many worlds.
    fn pairs(
        lengths_s: [f64; 2],
        worlds: usize,
        a: impl Fn(usize) -> Part,
        b: impl Fn(usize) -> Part,
    ) -> Option<InPairs> {
        let measure = Measure::new(Sort::Packets, "inputs");
        let values = [(measure.clone(), vec![1.0; BINS])].into();
        let player = PlayerProfile { played_s: vec![1.0; BINS], values, ..PlayerProfile::default() };
        let worlds = each_in_its_own(&vec![player; worlds]);
        let sides = lengths_s.map(|length_s| Profile { length_s, worlds: worlds.clone(), ..Profile::default() });
        in_pairs([&sides[0], &sides[1]], &measure, &[std::array::from_fn(a), std::array::from_fn(b)])
    }

    fn factor(a: impl Fn(usize) -> Part, b: impl Fn(usize) -> Part) -> f64 {
        let found = pairs([300.0; 2], 16, a, b).unwrap();
        assert_eq!(found.degrees, 15);
        found.factor
    }

    fn rising(at: usize) -> Part {
        (10.0 + at as f64, 1.0)
    }

    #[test]
    fn what_both_sides_have_in_common_is_taken_off() {
        assert!(factor(rising, |at| (20.0 + 2.0 * at as f64, 1.0)) < 1e-9, "both rise alike, whatever their rates are");
        let opposite = factor(rising, |at| (25.0 - at as f64, 1.0));
        assert!((opposite - 2.0_f64.sqrt()).abs() < 1e-9, "they are farther apart than each alone");
        // One is up in every other stretch, one in every other pair: nothing in common.
        let unlike = factor(|at| (10.0 + (at % 2) as f64, 1.0), |at| (10.0 + (at / 2 % 2) as f64, 1.0));
        assert!((unlike - 1.0).abs() < 1e-9);
        // What has no other is as it was: one of sixteen keeps what it is off by.
        let short = |at: usize| (10.0 + at as f64, if at < 15 { 1.0 } else { 0.0 });
        let found = pairs([300.0; 2], 16, |at| (10.0 + at as f64, if at < 15 { 1.0 } else { 0.1 }), short).unwrap();
        assert!(found.degrees == 14 && found.factor > 0.1, "{found:?}");
    }

    #[test]
    fn sides_without_a_schedule_in_common_are_taken_alone() {
        assert_eq!(pairs([300.0; 2], 15, rising, rising), None, "a world goes its own way");
        assert_eq!(pairs([300.0, 600.0], 16, rising, rising), None, "the first minute is a larger part of one of them");
        assert!(pairs([300.0, 290.0], 16, rising, rising).is_some());
        let late = |at: usize| (10.0 + at as f64, if at < 5 { 0.0 } else { 1.0 });
        assert_eq!(pairs([300.0; 2], 16, rising, late), None, "they were there at other times");
        assert_eq!(pairs([300.0; 2], 16, |_| (0.0, 1.0), |_| (0.0, 1.0)), None);
        assert_eq!(pairs([300.0; 2], 16, |_| (0.0, 0.0), |_| (0.0, 0.0)), None);
    }
}
