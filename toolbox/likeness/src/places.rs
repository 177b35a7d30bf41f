//! Places: whether players of two profiles spend their time in the same places.
//!
//! Time is added up by cells of the ground, and the distance is the part of the time that would have to be spent elsewhere (total
//! variation). Chance makes some of it: so players are shuffled between the two sides two thousand times (a permutation test), and what the
//! distance is then is taken off. Where players of both sides are few, spells of a player's time are shuffled instead, which says how these
//! would play on. Where those of one side alone are few, players are shuffled all the same, since each is where it likes to be. So it
//! stays unclear of one beside thirty: whatever it does, in one permutation of thirty-one it stands where it did.
//!
//! Players who go together are one draw and not several, which shuffling them one by one does not know: a thousand of one world, some of
//! them in parties, were 56 % of the time elsewhere than the same thousand another time, where permutations made 40 %. So as many of a side are
//! drawn as there would be parties, if whoever is in a player's cell is of its own (the effective sample size of Kish, Survey Sampling, 1965). That is
//! on the safe side of those who meet in places that all like; and of a crowd no more are counted than go together.

use std::collections::{BTreeMap, HashMap};

use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use crate::{
    estimate::PLAYERS_MIN,
    profile::{Cell, PlayerProfile, Profile, SPELLS},
    verdict::Verdict,
};

/// So much of the time elsewhere is told.
const ELSEWHERE_MIN: f64 = 0.10;
const PERMUTATIONS: usize = 2_000;
/// The distance must be beyond all but so many permutations.
const BEYOND_MAX: usize = 2;
/// With longer lists of cells there are fewer permutations, but never fewer than a quarter.
const STEPS_MAX: usize = 400_000_000;
/// Places that are told.
const TOLD_MAX: usize = 8;

/// A place, and how much of the time is spent there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceShare {
    pub cell: Cell,
    /// The share of the first side's time [0 to 1].
    pub a: f64,
    /// The share of the second side's time [0 to 1].
    pub b: f64,
}

/// What is found of places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacesRow {
    /// How much of the time `b` spends elsewhere than `a` [0 to 1].
    pub elsewhere: f64,
    /// How much chance alone makes of it [0 to 1].
    pub by_chance: f64,
    pub verdict: Verdict,
    /// How many cells anybody was in.
    pub cells: usize,
    /// Where the difference is largest: the first few, the largest first.
    pub most: Vec<PlaceShare>,
}

/// `None`: nobody of one side has a place.
pub(crate) fn compare(a: &Profile, b: &Profile) -> Option<PlacesRow> {
    let [of_a, of_b] = [a, b].map(|side| side.players.iter().filter(|player| !player.places.is_empty()).count());
    if of_a == 0 || of_b == 0 {
        return None;
    }
    let few = of_a.max(of_b) < PLAYERS_MIN;
    let units = Units::of_both([a, b], few);
    let mut sums = Sums::of(units.cells.len());
    let elsewhere = sums.distance(units.all.iter().map(|(is_b, unit)| (*is_b, unit)));
    let most = places_told(&units.cells, &sums.shares());
    let mut permuted = permuted_distances(&units, units.parties([a, b], few), &mut sums);
    let beyond = permuted.iter().filter(|distance| **distance >= elsewhere).count();
    let is_certain = beyond * PERMUTATIONS <= BEYOND_MAX * permuted.len();
    let by_chance = throng_history::changes::median(&mut permuted);
    let verdict = verdict(elsewhere, by_chance, is_certain);
    Some(PlacesRow { elsewhere, by_chance, verdict, cells: units.cells.len(), most })
}

/// Seconds by cell of what is shuffled as one.
type Unit = Vec<(u32, f64)>;

/// What both sides are shuffled in.
struct Units<'p> {
    /// With whether it is of the second side.
    all: Vec<(bool, Unit)>,
    /// By their numbers in the units.
    cells: Vec<&'p Cell>,
}

impl<'p> Units<'p> {
    fn of_both([a, b]: [&'p Profile; 2], few: bool) -> Self {
        let mut units = Units { all: Vec::new(), cells: Vec::new() };
        let mut numbers: HashMap<&Cell, u32> = HashMap::new();
        for (is_b, side) in [(false, a), (true, b)] {
            for unit in side.players.iter().flat_map(|player| units_of(player, few)) {
                let numbered = unit.into_iter().map(|(cell, seconds)| {
                    let number = *numbers.entry(cell).or_insert_with(|| {
                        units.cells.push(cell);
                        units.cells.len() as u32 - 1
                    });
                    (number, seconds)
                });
                let numbered = numbered.collect();
                units.all.push((is_b, numbered));
            }
        }
        units
    }

    /// How many parties each side would make [>= 1].
    fn parties(&self, [a, b]: [&Profile; 2], few: bool) -> [usize; 2] {
        let of_b = self.all.iter().filter(|(is_b, _)| *is_b).count();
        [(self.all.len() - of_b, a), (of_b, b)].map(|(units, side)| {
            let together = if few { 1.0 } else { 1.0 + side.company };
            ((units as f64 / together).round() as usize).max(1)
        })
    }
}

/// The distances of sides of so many units, drawn from those of both.
fn permuted_distances(units: &Units<'_>, [parties_a, parties_b]: [usize; 2], sums: &mut Sums) -> Vec<f64> {
    let steps = units.all.iter().map(|(_, unit)| unit.len()).sum::<usize>() + 2 * units.cells.len();
    let count = (STEPS_MAX / steps.max(1)).clamp(PERMUTATIONS / 4, PERMUTATIONS);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut order: Vec<usize> = (0..units.all.len()).collect();
    let permuted = (0..count).map(|_| {
        order.shuffle(&mut rng);
        let drawn = order.iter().take(parties_a + parties_b).enumerate();
        sums.distance(drawn.map(|(place, unit)| (place >= parties_a, &units.all[*unit].1)))
    });
    permuted.collect()
}

/// `is_certain`: hardly any permutation is as far.
fn verdict(elsewhere: f64, by_chance: f64, is_certain: bool) -> Verdict {
    match (elsewhere - by_chance > ELSEWHERE_MIN, is_certain) {
        (true, true) => Verdict::Elsewhere,
        (true, false) => Verdict::Unclear,
        // Less than a tenth is less than a tenth, but where chance alone makes much of it that says little.
        (false, _) if by_chance > 2.0 * ELSEWHERE_MIN => Verdict::Unclear,
        (false, _) => Verdict::Within,
    }
}

/// Where the difference is largest.
fn places_told(cells: &[&Cell], shares: &[(f64, f64)]) -> Vec<PlaceShare> {
    let place = |(cell, (a, b)): (&&Cell, &(f64, f64))| PlaceShare { cell: Cell::clone(cell), a: *a, b: *b };
    let mut most: Vec<PlaceShare> = cells.iter().zip(shares).map(place).collect();
    most.sort_by(|one, other| (other.a - other.b).abs().total_cmp(&(one.a - one.b).abs()));
    most.truncate(TOLD_MAX);
    most
}

/// A player's seconds by cell; in spells where all are few. Sorted, so that the same recordings give the same numbers.
fn units_of(player: &PlayerProfile, few: bool) -> Vec<BTreeMap<&Cell, f64>> {
    let mut units: Vec<BTreeMap<&Cell, f64>> = vec![BTreeMap::new(); if few { SPELLS } else { 1 }];
    for ((spell, cell), seconds) in &player.places {
        let unit = if few { usize::from(*spell).min(SPELLS - 1) } else { 0 };
        *units[unit].entry(cell).or_default() += f64::from(*seconds);
    }
    units.retain(|unit| !unit.is_empty());
    units
}

/// Seconds of the two sides by cell.
struct Sums {
    cells: Vec<[f64; 2]>,
    all: [f64; 2],
}

impl Sums {
    fn of(cells: usize) -> Self {
        Self { cells: vec![[0.0; 2]; cells], all: [0.0; 2] }
    }

    /// Of units with the side that each is of.
    fn distance<'u>(&mut self, units: impl Iterator<Item = (bool, &'u Unit)>) -> f64 {
        self.cells.iter_mut().for_each(|cell| *cell = [0.0; 2]);
        self.all = [0.0; 2];
        for (is_b, unit) in units {
            let side = usize::from(is_b);
            for (cell, seconds) in unit {
                self.cells[*cell as usize][side] += seconds;
                self.all[side] += seconds;
            }
        }
        self.shares().iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
    }

    fn shares(&self) -> Vec<(f64, f64)> {
        let [all_a, all_b] = self.all.map(|seconds| seconds.max(f64::MIN_POSITIVE));
        self.cells.iter().map(|[a, b]| (a / all_a, b / all_b)).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;
    use crate::profile::{BINS, spell_of};

    /// Players who go from cell to cell of a row, around a favourite each.
    fn walkers(seed: u64, count: usize, shift: i32) -> Profile {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let players = (0..count).map(|_| {
            let home = rng.random_range(0..10);
            let mut player = PlayerProfile::default();
            for second in 0..BINS * 10 {
                let x_m = 8 * (home + rng.random_range(0..6) + shift);
                let cell = Cell { kind: "field".into(), x_m, z_m: 0 };
                *player.places.entry((spell_of(second / 10), cell)).or_default() += 1;
            }
            player
        });
        Profile { length_s: 480.0, players: players.collect(), ..Profile::default() }
    }

    #[test]
    fn the_same_places_are_found_and_others_are_told() {
        for seed in 0..20 {
            let row = compare(&walkers(seed, 20, 0), &walkers(seed + 100, 30, 0)).unwrap();
            assert!(!row.verdict.is_named(), "seed {seed}: {row:?}");
            let row = compare(&walkers(seed, 20, 0), &walkers(seed + 100, 30, 6)).unwrap();
            assert_eq!(row.verdict, Verdict::Elsewhere, "seed {seed}: {row:?}");
            assert!(row.elsewhere - row.by_chance > 0.1 && !row.most.is_empty());
        }
    }

    /// Parties of so many, each with places of its own.
    fn parties(seed: u64, count: usize, size: usize) -> Profile {
        let alone = walkers(seed, count, 0);
        let players = alone.players.into_iter().flat_map(|player| std::iter::repeat_n(player, size));
        Profile {
            length_s: alone.length_s,
            players: players.collect(),
            company: (size - 1) as f64,
            ..Profile::default()
        }
    }

    #[test]
    fn players_who_go_together_are_one_draw() {
        let pair = |seed| compare(&parties(seed, 20, 6), &parties(seed + 100, 20, 6)).unwrap();
        let mut found: Vec<PlacesRow> = (0..40).map(pair).collect();
        found.iter_mut().for_each(|row| row.most.clear());
        assert!(found.iter().all(|row| !row.verdict.is_named()), "{found:#?}");
        let alone = |seed| Profile { company: 0.0, ..parties(seed, 20, 6) };
        let named = (0..40).filter(|seed| compare(&alone(*seed), &alone(seed + 100)).unwrap().verdict.is_named());
        assert!(named.count() >= 5, "one by one they would hardly be told apart");
        let mut far = parties(1, 20, 6);
        for player in &mut far.players {
            let places = std::mem::take(&mut player.places).into_iter();
            let moved = |((spell, cell), seconds)| ((spell, Cell { z_m: 80, ..cell }), seconds);
            player.places = places.map(moved).collect();
        }
        assert_eq!(compare(&far, &parties(2, 20, 6)).unwrap().verdict, Verdict::Elsewhere);
    }

    #[test]
    fn few_beside_many_are_not_elsewhere_for_what_each_of_them_likes() {
        for few in [1, 3, 5] {
            for seed in 0..10 {
                let row = compare(&walkers(seed, few, 0), &walkers(seed + 100, 30, 0)).unwrap();
                assert!(!row.verdict.is_named(), "{few} players, seed {seed}: {row:?}");
            }
        }
        let verdict = |few: usize| compare(&walkers(1, few, 40), &walkers(2, 30, 0)).unwrap().verdict;
        assert_eq!((verdict(1), verdict(3)), (Verdict::Unclear, Verdict::Elsewhere));
    }

    #[test]
    fn a_tenth_beyond_chance_is_elsewhere_if_it_is_certain() {
        let check = |elsewhere: f64, by_chance: f64, is_certain: bool, expect: Verdict| {
            assert_eq!(verdict(elsewhere, by_chance, is_certain), expect, "{elsewhere}, {by_chance}, {is_certain}");
        };
        check(0.16, 0.05, true, Verdict::Elsewhere);
        check(0.16, 0.05, false, Verdict::Unclear);
        check(0.14, 0.05, true, Verdict::Within);
        check(0.29, 0.21, true, Verdict::Unclear);
        check(0.32, 0.21, true, Verdict::Elsewhere);
    }

    #[test]
    fn of_one_player_spells_of_time_speak() {
        let far = compare(&walkers(1, 1, 0), &walkers(2, 1, 40)).unwrap();
        assert!(far.elsewhere > 0.99 && far.verdict == Verdict::Elsewhere, "{far:?}");
        let same = compare(&walkers(1, 1, 0), &walkers(1, 1, 0)).unwrap();
        assert_eq!((same.elsewhere, same.verdict.is_named()), (0.0, false));
        assert_eq!(compare(&walkers(1, 1, 0), &Profile::default()), None);
    }
}
