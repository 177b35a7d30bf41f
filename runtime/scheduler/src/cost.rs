//! What a task will probably cost, from what it cost before.
//!
//! A world that gets busy must move up the list at once, or it is the long one taken last; one that calms
//! down may stay too high for a while without harm. So the estimate goes up fast and comes down slowly.
//!
//! 16 bytes per task, integers only: the same measures give the same estimate on every host.

use throng_platform::time::Nanos;

/// The smoothed cost of one task.
#[derive(Copy, Clone, Debug, Default)]
pub struct CostEstimate {
    smoothed: Nanos,
    hinted: Nanos,
}

/// Shares of the difference that are taken over: a half upwards, so that two ticks reach three quarters of
/// a jump; a sixteenth downwards, under a second at 20 ticks a second.
const UP_DIVISOR: u64 = 2;
const DOWN_DIVISOR: u64 = 16;

impl CostEstimate {
    /// Nothing known: such a task counts as free and starts late, until it was measured or hinted at.
    pub fn new() -> CostEstimate {
        CostEstimate::default()
    }

    pub fn estimate(&self) -> Nanos {
        self.smoothed.saturating_add(self.hinted)
    }

    /// Adds what is known of the next run only: a player just joined, a wave of NPCs spawned.
    pub fn hint(&mut self, extra: Nanos) {
        self.hinted = self.hinted.saturating_add(extra);
    }

    /// Takes the cost of a run into account; hints given before it are spent.
    pub fn measured(&mut self, cost: Nanos) {
        self.hinted = Nanos::ZERO;
        self.smoothed = smoothed_after(self.smoothed, cost);
    }
}

/// What an estimate becomes with another measure; zero is one that nothing is known of.
pub(crate) fn smoothed_after(smoothed: Nanos, cost: Nanos) -> Nanos {
    // Rounded away from zero, so that small differences are not stuck for ever.
    if smoothed == Nanos::ZERO {
        cost
    } else if cost > smoothed {
        smoothed + Nanos((cost - smoothed).0.div_ceil(UP_DIVISOR))
    } else {
        smoothed - Nanos((smoothed - cost).0.div_ceil(DOWN_DIVISOR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(costs: impl IntoIterator<Item = u64>) -> Nanos {
        let mut cost = CostEstimate::new();
        for ns in costs {
            cost.measured(Nanos(ns));
        }
        cost.estimate()
    }

    #[test]
    fn the_first_measure_is_believed() {
        assert_eq!(after([]), Nanos::ZERO);
        assert_eq!(after([700]), Nanos(700));
    }

    #[test]
    fn it_goes_up_fast_and_comes_down_slowly() {
        assert_eq!(after([100, 900]), Nanos(500));
        assert_eq!(after([100, 900, 900]), Nanos(700));
        assert_eq!(after([900, 100]), Nanos(850));
        let after_a_second = after([900].into_iter().chain([100; 20]));
        assert!((Nanos(100)..Nanos(350)).contains(&after_a_second), "{after_a_second:?}");
    }

    #[test]
    fn a_steady_cost_is_reached_exactly_from_both_sides() {
        for start in [1, 1_000_000] {
            assert_eq!(after([start].into_iter().chain([5_000; 400])), Nanos(5_000));
        }
    }

    #[test]
    fn a_hint_lasts_until_the_next_measure() {
        let mut cost = CostEstimate::new();
        cost.measured(Nanos(100));
        cost.hint(Nanos(30));
        cost.hint(Nanos(20));
        assert_eq!(cost.estimate(), Nanos(150));
        cost.measured(Nanos(100));
        assert_eq!(cost.estimate(), Nanos(100));
    }
}
