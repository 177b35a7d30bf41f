//! Spread: over how many worlds something is, as many as would each have the same share of it if they were even.
//!
//! The inverse of Simpson's index of the worlds' shares (Hill, Diversity and Evenness, 1973): of ten even worlds ten, of one that has nearly all
//! of it little more than one.

use std::collections::BTreeMap;

use crate::{measures::Measures, profile::Measure};

/// Over how many worlds what a profile holds is spread.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    /// The time that was played.
    pub played: f64,
    /// What worlds counted and took, by measure.
    pub of_worlds: BTreeMap<Measure, f64>,
}

impl Spread {
    /// A measure of players is spread as their time is.
    pub(crate) fn of(&self, measure: &Measure) -> f64 {
        if measure.sort.is_of_worlds() { self.of_worlds.get(measure).copied().unwrap_or(0.0) } else { self.played }
    }
}

/// What a group of players has of a world.
#[derive(Clone, Default)]
pub(crate) struct WorldSums {
    pub played_s: f64,
    /// What the world counted and took while the group had it for itself, by measure.
    values: Vec<f64>,
}

impl WorldSums {
    pub fn add(&mut self, measure: usize, value: f64) {
        if measure >= self.values.len() {
            self.values.resize(measure + 1, 0.0);
        }
        self.values[measure] += value;
    }
}

/// Sums over worlds, and sums of squares.
#[derive(Clone, Default)]
pub(crate) struct SpreadSums {
    played: (f64, f64),
    values: Vec<(f64, f64)>,
}

impl SpreadSums {
    fn add(&mut self, world: &WorldSums) {
        let more = |sums: &mut (f64, f64), value: f64| *sums = (sums.0 + value, sums.1 + value * value);
        more(&mut self.played, world.played_s);
        self.values.resize(self.values.len().max(world.values.len()), (0.0, 0.0));
        self.values.iter_mut().zip(&world.values).for_each(|(sums, value)| more(sums, *value));
    }

    pub fn spread(&self, measures: &Measures) -> Spread {
        let of_worlds = self.values.iter().enumerate().filter(|(_, (sum, _))| *sum > 0.0);
        let of_worlds = of_worlds.map(|(number, sums)| (measures.get(number).clone(), worlds(*sums)));
        Spread { played: worlds(self.played), of_worlds: of_worlds.collect() }
    }
}

/// Takes a world's sums, of each group, into theirs.
pub(crate) fn add_world(spreads: &mut [SpreadSums], world: &[WorldSums]) {
    spreads.iter_mut().zip(world).for_each(|(spread, sums)| spread.add(sums));
}

fn worlds((sum, squares): (f64, f64)) -> f64 {
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Sort;

    #[test]
    fn what_is_even_is_as_many_worlds_as_there_are_and_what_one_has_is_one() {
        let mut measures = Measures::new();
        let [casts, rewind] = ["casts", "rewind"].map(|name| Measure::new(Sort::Counts, name));
        let [of_casts, of_rewind] = [&casts, &rewind].map(|measure| measures.number(measure.clone()));
        let mut spreads = vec![SpreadSums::default()];
        for number in 0..10 {
            let mut world = WorldSums { played_s: 5.0, ..WorldSums::default() };
            world.add(of_casts, 7.0);
            world.add(of_rewind, if number == 3 { 99.0 } else { 0.1 });
            add_world(&mut spreads, &[world]);
        }
        let spread = spreads[0].spread(&measures);
        let is_near = |value: f64, expect: f64| (value - expect).abs() < 0.1;
        assert!(is_near(spread.played, 10.0) && is_near(spread.of(&casts), 10.0), "{spread:?}");
        assert!(is_near(spread.of(&rewind), 1.0), "{spread:?}");
        // What players do themselves is where they are; what no world counted is nowhere.
        assert!(is_near(spread.of(&Measure::new(Sort::Packets, "inputs")), 10.0));
        assert_eq!(spread.of(&Measure::new(Sort::Counts, "paths")), 0.0);
    }
}
