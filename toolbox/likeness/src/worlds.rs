//! Worlds: what was done in each world that a side was in.
//!
//! Players who share a world are less far apart than those of two, so worlds are held against each other as well as players: those of a kind
//! with their kind, since a hub is no hideout. Nothing tells how far a kind's only world might be off.
//!
//! Pure functions of sums. Cost: some microseconds a measure for a thousand worlds.

use std::{collections::BTreeMap, sync::Arc};

use crate::{estimate::variance_of_total, permutation::Part, profile::Measure};

/// The worlds of a profile.
#[derive(Debug, Clone, Default)]
pub struct Worlds {
    numbers: BTreeMap<Measure, usize>,
    worlds: Vec<WorldSums>,
}

/// What a side has of a world.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorldSums {
    pub kind: Arc<str>,
    /// Of all its players together (s).
    pub played_s: f64,
    /// The part of it while all who were there were of this side (s).
    pub own_s: f64,
    /// By number of the measure.
    values: Vec<f64>,
}

impl WorldSums {
    pub fn new(kind: Arc<str>) -> Self {
        Self { kind, ..Self::default() }
    }

    pub fn add(&mut self, measure: usize, value: f64) {
        if measure >= self.values.len() {
            self.values.resize(measure + 1, 0.0);
        }
        self.values[measure] += value;
    }
}

impl Worlds {
    /// With a number for each measure.
    pub(crate) fn new(measures: impl IntoIterator<Item = Measure>, worlds: Vec<WorldSums>) -> Self {
        Self { numbers: measures.into_iter().zip(0..).collect(), worlds }
    }

    /// Over how many worlds a measure is spread: as many as would each have the same share of it, if they were even [0 or >= 1]. The
    /// inverse of Simpson's index (Hill, Diversity and Evenness, 1973).
    pub fn spread(&self, measure: &Measure) -> f64 {
        let sums = |(sum, squares), (_, (value, _)): (&str, Part)| (sum + value, squares + value * value);
        let (sum, squares): (f64, f64) = self.parts(measure).fold((0.0, 0.0), sums);
        if squares > 0.0 { sum * sum / squares } else { 0.0 }
    }

    /// The standard error of a measure's total, by how far worlds are from their kind, with its degrees of freedom (Satterthwaite, An
    /// Approximate Distribution of Estimates of Variance Components, 1946). `None`: no two worlds of a kind differ.
    pub(crate) fn error(&self, measure: &Measure) -> Option<(f64, u32)> {
        let mut kinds: BTreeMap<&str, Vec<Part>> = BTreeMap::new();
        self.parts(measure).for_each(|(kind, part)| kinds.entry(kind).or_default().push(part));
        let (mut variance, mut each) = (0.0, 0.0);
        for parts in kinds.values().filter(|parts| parts.len() > 1) {
            let (value, seconds) = parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
            let of_kind = variance_of_total(parts, value / seconds);
            variance += of_kind;
            each += of_kind.powi(2) / (parts.len() - 1) as f64;
        }
        (each > 0.0).then(|| (variance.sqrt(), (variance.powi(2) / each) as u32))
    }

    /// What was done in each, and in how much time (s), with its kind.
    fn parts<'w>(&'w self, measure: &'w Measure) -> impl Iterator<Item = (&'w str, Part)> {
        let number = self.numbers.get(measure);
        let worlds = number.into_iter().flat_map(|number| self.worlds.iter().map(|world| (*number, world)));
        let parts = worlds.map(|(number, world)| {
            let exposure_s = if measure.sort.is_of_worlds() { world.own_s } else { world.played_s };
            (&*world.kind, (world.values.get(number).copied().unwrap_or(0.0), exposure_s))
        });
        parts.filter(|(_, (_, seconds))| *seconds > 0.0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::profile::{PlayerProfile, Sort};

    /// Everybody in a world of its own.
    pub(crate) fn each_in_its_own(players: &[PlayerProfile]) -> Worlds {
        shared_by(players, 1)
    }

    /// So many to a world.
    pub(crate) fn shared_by(players: &[PlayerProfile], size: usize) -> Worlds {
        let measures: Vec<Measure> = players[0].values.keys().cloned().collect();
        let world = |players: &[PlayerProfile]| {
            let mut world = WorldSums::new("own".into());
            for player in players {
                world.played_s += player.played_s.iter().sum::<f64>();
                world.own_s += player.own_s.iter().sum::<f64>();
                for (number, measure) in measures.iter().enumerate() {
                    world.add(number, player.values.get(measure).map_or(0.0, |values| values.iter().sum()));
                }
            }
            world
        };
        let worlds = players.chunks(size).map(world).collect();
        Worlds::new(measures, worlds)
    }

    /// A second in each of these, with so much done.
    fn worlds(values: &[(&str, f64)]) -> Worlds {
        let world = |(kind, value): &(&str, f64)| {
            let mut world = WorldSums { kind: (*kind).into(), played_s: 1.0, own_s: 1.0, values: Vec::new() };
            world.add(0, *value);
            world
        };
        Worlds::new([Measure::new(Sort::Counts, "casts")], values.iter().map(world).collect())
    }

    #[test]
    fn what_is_even_is_as_many_worlds_as_there_are_and_what_one_has_is_one() {
        let casts = Measure::new(Sort::Counts, "casts");
        assert!((worlds(&[("own", 7.0); 10]).spread(&casts) - 10.0).abs() < 1e-9);
        assert!((worlds(&[[("own", 0.1); 10].as_slice(), &[("hub", 99.0)]].concat()).spread(&casts) - 1.0).abs() < 0.1);
        assert_eq!(worlds(&[("own", 7.0)]).spread(&Measure::new(Sort::Counts, "paths")), 0.0);
    }

    #[test]
    fn worlds_are_held_against_those_of_their_kind() {
        let casts = Measure::new(Sort::Counts, "casts");
        let even = worlds(&[[("own", 7.0); 10].as_slice(), &[("hub", 99.0)]].concat());
        assert_eq!(even.error(&casts), None, "a hub is no hideout");
        // Five are 1 above their kind and five below: ten times 10 / 9.
        let unlike = [[("own", 6.0); 5], [("own", 8.0); 5]].concat();
        let (error, degrees) = worlds(&[unlike.as_slice(), &[("hub", 99.0)]].concat()).error(&casts).unwrap();
        assert!((error - (100.0_f64 / 9.0).sqrt()).abs() < 1e-9 && degrees == 9, "{error}, {degrees}");
        assert_eq!(Worlds::default().error(&casts), None);
    }
}
