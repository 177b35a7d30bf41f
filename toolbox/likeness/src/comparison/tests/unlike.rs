//! Promise: whatever players differ by, equal sides have something named in clearly less than one pair of a hundred, also where three are
//! held against forty; where there are hardly any permutations, in not much more. By counts of pairs with fixed seeds.

use super::*;
use crate::worlds::tests::shared_by;

/// How players differ in a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spread {
    /// By sums: evenly around the average.
    Even(f64),
    /// By factors: some do it many times as often.
    Factors(f64),
    /// One in ten hardly does it.
    Idle,
}

const MEASURES: [(&str, Spread); 12] = [
    ("even 1", Spread::Even(0.05)),
    ("even 2", Spread::Even(0.15)),
    ("even 3", Spread::Even(0.3)),
    ("even 4", Spread::Even(0.3)),
    ("even 5", Spread::Even(0.4)),
    ("even 6", Spread::Even(0.4)),
    ("factors 1", Spread::Factors(0.1)),
    ("factors 2", Spread::Factors(0.3)),
    ("factors 3", Spread::Factors(0.7)),
    ("factors 4", Spread::Factors(1.0)),
    ("idle 1", Spread::Idle),
    ("idle 2", Spread::Idle),
];

impl Spread {
    fn draw(self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        match self {
            Self::Even(deviation) => (1.0 + deviation * normal(rng)).max(0.05),
            Self::Factors(deviation) => (deviation * normal(rng)).exp(),
            Self::Idle if rng.random_bool(0.1) => 0.15,
            Self::Idle => 1.0,
        }
    }
}

/// `more`: a measure that is done by 15 % more.
fn unlike(seed: u64, players: usize, more: &str) -> Profile {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    // A deviation of 1, cheaper than a normal one: there are many bins.
    let noise = |rng: &mut Xoshiro256PlusPlus| (rng.random::<f64>() - 0.5) * 12.0_f64.sqrt();
    let mut players: Vec<PlayerProfile> = (0..players)
        .map(|_| PlayerProfile { played_s: vec![BIN_S; BINS], own_s: vec![BIN_S; BINS], ..PlayerProfile::default() })
        .collect();
    for (name, spread) in MEASURES {
        let expected = 2.0 * BIN_S * if name == more { 1.15 } else { 1.0 };
        let minutes: Vec<f64> = (0..BINS).map(|_| 1.0 + 0.02 * normal(&mut rng)).collect();
        for player in &mut players {
            let own = expected * spread.draw(&mut rng);
            let bin = |minute: &f64| (own * minute + (own * minute).sqrt() * noise(&mut rng)).round().max(0.0);
            player.values.insert(Measure::new(Sort::Counts, name), minutes.iter().map(bin).collect());
        }
    }
    let worlds = each_in_its_own(&players);
    Profile { length_s: BIN_S * BINS as f64, players, worlds, company: 0.0 }
}

/// In how many of so many equal pairs something is named.
fn alarms(pairs: u64, a: usize, b: usize) -> usize {
    let of_pair = |seed: &u64| Comparison::of(&unlike(*seed, a, ""), &unlike(seed + 1_000_000, b, "")).named;
    let named: Vec<Vec<String>> = (0..pairs).map(|seed| of_pair(&seed)).filter(|named| !named.is_empty()).collect();
    println!("{a} players and {b}: something is named in {} of {pairs} pairs: {named:?}", named.len());
    named.len()
}

#[test]
fn equal_sides_have_something_named_in_one_pair_of_a_hundred_at_most() {
    // Three of thirteen are 286 permutations, which are few to tell by.
    for (a, b, most) in [(3, 40, 10), (10, 10, 10), (5, 40, 10), (3, 10, 20)] {
        let alarms = alarms(2_000, a, b);
        assert!(alarms <= most, "{a} players and {b}: {alarms} of 2,000");
    }
}

/// One of forty-one is 41 permutations, which are too few to tell by.
#[test]
fn one_beside_forty_has_something_named_in_two_pairs_of_a_hundred_at_most() {
    let alarms = alarms(2_000, 1, 40);
    assert!(alarms <= 40, "{alarms} of 2,000");
}

/// Worlds of four players each, with one schedule for all, and ways of their own: from world to world they differ by 15 % for as long as
/// they last, and by 30 % from minute to minute.
fn of_worlds(seed: u64, count: usize, more: f64) -> Profile {
    const SIZE: usize = 4;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut players = Vec::new();
    for _ in 0..count {
        let mut world = |bin: usize| [0.1, 0.7, 1.4, 1.8, 1.0][bin % 5] * (1.0 + 0.3 * normal(&mut rng)).max(0.0);
        let minutes: Vec<f64> = (0..BINS).map(&mut world).collect();
        let lasting = (1.0 + 0.15 * normal(&mut rng)).max(0.05) * more;
        for _ in 0..SIZE {
            let casts = minutes.iter().map(|minute| by_chance(&mut rng, 50.0 * minute * lasting)).collect();
            players.push(PlayerProfile {
                played_s: vec![BIN_S; BINS],
                own_s: vec![BIN_S; BINS],
                values: BTreeMap::from([(Measure::new(Sort::Counts, "casts"), casts)]),
                ..PlayerProfile::default()
            });
        }
    }
    let worlds = shared_by(&players, SIZE);
    Profile { length_s: BIN_S * BINS as f64, players, worlds, company: 0.0 }
}

/// Those who share a world are no four draws, and a world that differs for as long as it lasts is no up and down.
#[test]
fn equal_sides_of_shared_worlds_have_something_named_in_one_pair_of_a_hundred_at_most() {
    let found = |seed: u64, more: f64| {
        let found = Comparison::of(&of_worlds(seed, 20, 1.0), &of_worlds(seed + 1_000_000, 40, more));
        assert!(found.rows[0].in_pairs, "{found:?}");
        found.named.len()
    };
    let alarms: usize = (0..2_000).map(|seed| found(seed, 1.0)).sum();
    assert!(alarms <= 20, "{alarms} of 2,000");
    let named: usize = (0..100).map(|seed| found(seed, 1.3)).sum();
    assert!(named >= 95, "{named} of 100");
}

#[test]
fn what_is_done_by_15_percent_more_is_named_in_two_hundred_pairs_of_two_hundred() {
    let (name, spread) = MEASURES[0];
    assert_eq!(spread, Spread::Even(0.05));
    for seed in 0..200 {
        let (usual, busier) = (unlike(seed, PLAYERS, ""), unlike(seed + 1_000_000, PLAYERS, name));
        let named = Comparison::of(&usual, &busier).named;
        assert!(named.iter().any(|named| named == name), "seed {seed}: {named:?}");
    }
}
