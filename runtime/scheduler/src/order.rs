//! The order of the list, and how long a frame gets by it.
//!
//! Longest task first is Graham's rule: never worse than 4/3 of the best schedule, and with many tasks
//! per worker within a few percent of it, because the small ones fill what the large ones left uneven.
//! Sorting 2,000 entries takes some 50 us, in place.

use std::cmp::Reverse;

use throng_platform::time::Nanos;

/// One place in the list: a task and what decides when it is taken.
pub(crate) struct Entry<T> {
    pub task: Box<T>,
    pub deadline: Nanos,
    pub cost: Nanos,
    /// Counts submissions, so that equals start in the order they came, on every run.
    pub sequence: u64,
}

/// Sorts so that the next task to start is the last entry, where it can be popped.
pub(crate) fn sort<T>(list: &mut [Entry<T>]) {
    // Unstable, because a stable sort allocates; no two keys are equal.
    list.sort_unstable_by_key(|entry| (Reverse(entry.deadline), entry.cost, Reverse(entry.sequence)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// When the last worker would finish, if `workers` take tasks of these costs in this order.
    ///
    /// A model of the pool with free scheduling: whichever worker is idle first takes the next task.
    fn simulate_makespan(costs_in_order: impl IntoIterator<Item = Nanos>, workers: usize) -> Nanos {
        assert!(workers > 0);
        let mut busy_until = vec![Nanos::ZERO; workers];
        for cost in costs_in_order {
            let first_idle = busy_until.iter_mut().min().expect("there is a worker");
            *first_idle += cost;
        }
        busy_until.into_iter().max().expect("there is a worker")
    }

    fn entries(deadlines_and_costs: &[(u64, u64)]) -> Vec<Entry<()>> {
        let entry = |(sequence, (deadline, cost)): (u64, &(u64, u64))| Entry {
            task: Box::new(()),
            deadline: Nanos(*deadline),
            cost: Nanos(*cost),
            sequence,
        };
        (0..).zip(deadlines_and_costs).map(entry).collect()
    }

    /// Sequence numbers in the order in which the tasks would start.
    fn starts(deadlines_and_costs: &[(u64, u64)]) -> Vec<u64> {
        let mut list = entries(deadlines_and_costs);
        sort(&mut list);
        list.iter().rev().map(|entry| entry.sequence).collect()
    }

    #[test]
    fn the_earliest_deadline_starts_first_then_the_costliest_then_the_first_to_come() {
        assert_eq!(starts(&[(2, 9), (1, 5), (1, 7), (3, 99)]), [2, 1, 0, 3]);
        assert_eq!(starts(&[(1, 5), (1, 5), (1, 5)]), [0, 1, 2]);
        assert_eq!(starts(&[]), [0; 0]);
    }

    #[test]
    fn a_makespan_by_hand() {
        let costs = |costs: &[u64]| costs.iter().map(|ns| Nanos(*ns)).collect::<Vec<_>>();
        assert_eq!(simulate_makespan(costs(&[7, 5, 3, 2, 2]), 2), Nanos(10));
        assert_eq!(simulate_makespan(costs(&[1, 1, 1, 1, 8]), 2), Nanos(10), "the costliest last is the worst");
        assert_eq!(simulate_makespan(costs(&[]), 4), Nanos::ZERO);
    }

    /// Promise: with the costs known, a frame of many worlds ends within 5 % of the best possible,
    /// which is no shorter than the longest task nor than an even share of the total.
    #[test]
    fn costliest_first_is_within_five_percent_of_the_best_possible() {
        let mut worst = 1.0_f64;
        for seed in 0..200 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let worlds = rng.random_range(200..2_000);
            // Most worlds are quiet, some are in a fight: a tail of up to 60 times the cheapest.
            let cost_ns = |rng: &mut Xoshiro256PlusPlus| match rng.random_range(0..10) {
                0 => rng.random_range(500_000..1_200_000_u64),
                _ => rng.random_range(20_000..200_000),
            };
            let costs: Vec<(u64, u64)> = (0..worlds).map(|_| (0, cost_ns(&mut rng))).collect();
            let mut list = entries(&costs);
            sort(&mut list);
            let in_order: Vec<Nanos> = list.iter().rev().map(|entry| entry.cost).collect();
            for workers in [1, 2, 4, 8, 16] {
                let total: Nanos = in_order.iter().copied().sum();
                let best_possible = in_order[0].0.max(total.0.div_ceil(workers));
                let makespan = simulate_makespan(in_order.iter().copied(), workers as usize);
                let ratio = makespan.0 as f64 / best_possible as f64;
                assert!((1.0..=1.05).contains(&ratio), "{ratio} for seed {seed} with {workers} workers");
                worst = worst.max(ratio);
            }
        }
        assert!(worst < 1.05, "{worst}");
    }
}
