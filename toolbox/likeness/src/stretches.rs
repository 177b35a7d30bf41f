//! Stretches: what was done in each sixteenth of a recording's time, and how much of its ups and downs two recordings have in common.
//!
//! What comes and goes on both sides at once, such as rounds or everybody's first minute, makes them no more unlike. So stretches are held
//! against each other in pairs, the first with the first, as in a paired test (Student, The Probable Error of a Mean, 1908). Sides that
//! have no such schedule in common lose nothing by it: what each is off by on its own then adds up as it does without pairs.
//!
//! A world goes its own way for as long as it lasts, so of a single one only its ups and downs tell how far another might be off, whatever
//! they come from. So only what is spread over worlds is held in pairs: of precinct `casts` are, which come from everybody's own hideout, and
//! the time of `rewind` is not, nearly all of which one crowded world takes.

use crate::{
    deal::Part,
    profile::{BLOCKS, Measure, Profile},
};

/// Stretches of time.
pub(crate) const STRETCHES: usize = 16;
pub(crate) const BLOCKS_EACH: usize = BLOCKS / STRETCHES;
const _: () = assert!(BLOCKS_EACH * STRETCHES == BLOCKS);
/// Fewer stretches with anybody in them say nothing.
pub(crate) const STRETCHES_MIN: usize = 6;
/// Over so many worlds what happens in one of them evens out.
const WORLDS_MIN: f64 = 16.0;

/// What was done in each, and in how much time of all players together (s).
pub(crate) type Stretches = [Part; STRETCHES];

pub(crate) fn stretches(profile: &Profile, measure: &Measure) -> Stretches {
    let mut stretches = [(0.0, 0.0); STRETCHES];
    for player in &profile.players {
        for (block, seconds) in player.exposure_s(measure.sort).iter().enumerate() {
            stretches[block / BLOCKS_EACH].1 += seconds;
        }
        for (block, value) in player.values.get(measure).into_iter().flatten().enumerate() {
            stretches[block / BLOCKS_EACH].0 += value;
        }
    }
    stretches
}

/// By which factor the errors that time makes of two sides are too large, since some of it is of both: 1 if none is.
pub(crate) fn error_in_pairs(sides: [&Profile; 2], measure: &Measure, stretches: &[Stretches; 2]) -> f64 {
    if sides.iter().any(|side| side.spread.of(measure) < WORLDS_MIN) {
        return 1.0;
    }
    let off = stretches.map(|stretches| off_by(&stretches));
    let pairs: Vec<(f64, f64)> = off[0].iter().zip(&off[1]).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
    let own: f64 = pairs.iter().map(|(a, b)| a * a + b * b).sum();
    let apart: f64 = pairs.iter().map(|(a, b)| (b - a).powi(2)).sum();
    if pairs.len() < STRETCHES_MIN || own <= 0.0 { 1.0 } else { (apart / own).sqrt() }
}

/// By how much each puts the rate of all off, as a share of that. `None`: nobody was there.
fn off_by(stretches: &Stretches) -> [Option<f64>; STRETCHES] {
    let (total, exposure) = stretches.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    stretches.map(|(value, seconds)| (seconds > 0.0 && total > 0.0).then(|| value / total - seconds / exposure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{profile::Sort, spread::Spread};

    fn factor(worlds: f64, a: impl Fn(usize) -> Part, b: impl Fn(usize) -> Part) -> f64 {
        let spread = Spread { played: worlds, ..Spread::default() };
        let side = Profile { spread, ..Profile::default() };
        let measure = Measure::new(Sort::Packets, "inputs");
        error_in_pairs([&side, &side], &measure, &[std::array::from_fn(a), std::array::from_fn(b)])
    }

    #[test]
    fn what_both_sides_have_in_common_is_taken_off() {
        let rising = |at: usize| (10.0 + at as f64, 1.0);
        let often = |at: usize| (20.0 + 2.0 * at as f64, 1.0);
        assert!(factor(16.0, rising, often) < 1e-9, "both rise alike, whatever their rates are");
        assert_eq!(factor(15.0, rising, often), 1.0, "a world goes its own way");
        let falling = |at: usize| (25.0 - at as f64, 1.0);
        assert!(
            (factor(16.0, rising, falling) - 2.0_f64.sqrt()).abs() < 1e-9,
            "they are farther apart than each alone"
        );
        // One is up in every other stretch, one in every other pair: nothing in common.
        let (ones, twos) = (|at: usize| (10.0 + (at % 2) as f64, 1.0), |at: usize| (10.0 + (at / 2 % 2) as f64, 1.0));
        assert!((factor(16.0, ones, twos) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn where_there_are_few_pairs_each_side_is_alone() {
        let early = |at: usize| (10.0 + at as f64, if at < 10 { 1.0 } else { 0.0 });
        let late = |at: usize| (10.0 + at as f64, if at < 5 { 0.0 } else { 1.0 });
        assert_eq!(factor(16.0, early, late), 1.0);
        assert_eq!(factor(16.0, |_| (0.0, 1.0), early), 1.0);
        assert_eq!(factor(16.0, |_| (0.0, 0.0), |_| (0.0, 0.0)), 1.0);
    }
}
