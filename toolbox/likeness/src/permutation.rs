//! Permutation test: whether two sides are farther apart than the same players shuffled between them.
//!
//! Intervals of few players are as good as the guess of how players are spread. Where nine in ten do about the same and one does hardly
//! anything, three may well have two of those among them, and no deviation tells. A permutation needs no guess: if both sides play alike, each
//! way to share out all players is as likely as what was recorded. So what was recorded must be among the rarest (Fisher, The Design of
//! Experiments; Pitman, 1937; that what was recorded counts as a permutation is of Phipson and Smyth, 2010).
//!
//! A pure function of numbers. Cost: some 10 ms, and only for what would be named without it.

use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Of so many permutations beyond what was recorded it is decided.
const BEYOND: f64 = 5.0;
const PERMUTATIONS_MAX: usize = 200_000;
/// Sums that are so near each other are the same ones, added up in another order.
const SAME: f64 = 1e-9;

/// What a player did, and in how much time (s).
pub(crate) type Part = (f64, f64);

/// Whether permutations that are as far apart are as rare as the level says. Where there are too few for that, whether none is farther apart:
/// then it is left to the interval.
pub(crate) fn is_beyond_permutations(a: &[Part], b: &[Part], level: f64) -> bool {
    let (fewer, more) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let sum = |parts: &[Part]| parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let mut parts = [fewer, more].concat();
    let all = sum(&parts);
    let difference = |own: Part| (own.0 / own.1 - (all.0 - own.0) / (all.1 - own.1)).abs();
    let recorded = difference(sum(fewer));
    let count = ((BEYOND / level).ceil() as usize).min(PERMUTATIONS_MAX);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut as_far, mut farther) = (1, 0);
    for _ in 0..count {
        let (drawn, _) = parts.partial_shuffle(&mut rng, fewer.len());
        let permuted = difference(sum(drawn));
        as_far += usize::from(permuted >= recorded * (1.0 - SAME));
        farther += usize::from(permuted > recorded * (1.0 + SAME));
    }
    let ways: f64 = (0..fewer.len()).map(|index| (parts.len() - index) as f64 / (index + 1) as f64).product();
    // Of two sides of one size each permutation has its mirror.
    let are_few = 2.0 / ways > level;
    as_far as f64 <= level * (count + 1) as f64 || (are_few && farther == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_among_permutations_is_beyond_them() {
        let parts = |values: &[f64]| -> Vec<Part> { values.iter().map(|value| (*value, 1.0)).collect() };
        let many: Vec<f64> = (0..40).map(|number| 10.0 + f64::from(number) * 0.01).collect();
        let check = |few: &[f64], many: &[f64], expect: bool| {
            assert_eq!(is_beyond_permutations(&parts(few), &parts(many), 0.001), expect, "{few:?}");
            assert_eq!(
                is_beyond_permutations(&parts(many), &parts(few), 0.001),
                expect,
                "{few:?}, the other way round"
            );
        };
        check(&[10.1, 10.2, 10.3], &many, false);
        check(&[11.0, 11.0, 11.0], &many, true);
        check(&[9.0, 9.0, 9.0], &many, true);
        // One who is beyond all others is one of forty-one: the interval says whether far enough.
        check(&[11.0], &many, true);
        check(&[10.3], &many, false);
        // One of forty hardly does it. Two of three may be such.
        let lazy: Vec<f64> =
            many.iter().enumerate().map(|(number, value)| if number % 10 == 0 { 1.0 } else { *value }).collect();
        check(&[1.0, 1.0, 10.2], &lazy, false);
        check(&[9.0; 6], &[10.0; 6], true);
    }
}
