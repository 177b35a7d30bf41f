//! Meetings: whether players keep company, or come to the same places each by itself.

use std::collections::BTreeMap;

use crate::profile::Cell;

/// How often players of a group meet.
#[derive(Clone, Default)]
pub(crate) struct Meetings {
    /// How many were in the same cell, over time (s).
    met_s: f64,
    /// By cell: how long somebody was there (s), and how many others were somewhere in that world meanwhile (s).
    cells: BTreeMap<Cell, (f64, f64)>,
}

impl Meetings {
    /// One is in a cell for so long, with so many `others` of its group in that world, of whom so many are in the same cell (`met`).
    pub fn add(&mut self, cell: Cell, seconds: u32, others: u32, met: u32) {
        let seconds = f64::from(seconds);
        self.met_s += f64::from(met) * seconds;
        let sums = self.cells.entry(cell).or_default();
        *sums = (sums.0 + seconds, sums.1 + f64::from(others) * seconds);
    }

    /// How many others one has in its cell at a time, beyond those who would come there if all went their own ways.
    pub fn company(&self) -> f64 {
        let mut stays: BTreeMap<&str, f64> = BTreeMap::new();
        self.cells.iter().for_each(|(cell, (seconds, _))| *stays.entry(&*cell.kind).or_default() += seconds);
        let by_chance: f64 =
            self.cells.iter().map(|(cell, (seconds, others_s))| others_s * seconds / stays[&*cell.kind]).sum();
        let all: f64 = stays.values().sum();
        if all > 0.0 { ((self.met_s - by_chance) / all).max(0.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Twenty-four players in parties of so many, each somewhere else of a row of eight cells every second.
    fn company_of_parties(size: usize) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(size as u64);
        let mut meetings = Meetings::default();
        for _ in 0..1_000 {
            let parties: Vec<i32> = (0..24 / size).map(|_| rng.random_range(0..8)).collect();
            let cells: Vec<i32> = (0..24).map(|player| parties[player / size]).collect();
            for own in &cells {
                let met = cells.iter().filter(|cell| *cell == own).count() as u32 - 1;
                meetings.add(Cell { kind: "row".into(), x_m: *own, z_m: 0 }, 1, 23, met);
            }
        }
        meetings.company()
    }

    #[test]
    fn parties_keep_company_and_a_crowd_does_not() {
        assert!(company_of_parties(1) < 0.05, "three of 23 are in the same cell by chance");
        // Of a party of four three others, of whom chance would have brought three eighths.
        let company = company_of_parties(4);
        assert!((company - 3.0 * 7.0 / 8.0).abs() < 0.15, "{company}");
        assert_eq!(Meetings::default().company(), 0.0);
    }
}
