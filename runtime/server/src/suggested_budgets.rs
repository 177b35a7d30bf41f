//! Suggested budgets: what a game and the engine say that subsystems may take, where an operator says nothing.
//!
//! A budget is about all scopes of a subsystem in one frame, by the clock, waits for a core included. So one that is close
//! to what is usual would save a capture whenever a worker loses its core, and one that is far from it none when it should.

use throng_profiler::rules::Rules;

/// What subsystems may take in a frame.
#[derive(Debug, Clone)]
pub struct SuggestedBudgets(Vec<(String, u64)>);

/// A frame that is costly in the usual way takes 2.4 times the mean, since worlds of a rate tick in every second or third
/// frame: four times is none of these, and less than what such a frame takes when its cost has doubled.
const TIMES_USUAL: f64 = 4.0;
/// What a thread may wait for a core before that is a capture of its own (trigger `run-queue`): what is small is over its
/// budget for such a wait and no sooner. (us)
const LEAST_US: u64 = 10_000;

/// The serial parts of a frame; everything else is a game's, or depends on it. With 1,000 worlds and players they take 2.3
/// ms, 8.1 in the costliest of 76 frames, and more than half of a frame's 16.7 ms is then nobody else's. (us)
const FRAME_US: u64 = 10_000;

impl Default for SuggestedBudgets {
    /// The engine's own.
    fn default() -> Self {
        Self(vec![("frame".into(), FRAME_US * 1_000)])
    }
}

impl SuggestedBudgets {
    pub(crate) fn add(&mut self, subsystem: &str, budget_ns: u64) {
        self.0.push((subsystem.into(), budget_ns));
    }

    pub(crate) fn add_usual(&mut self, subsystem: &str, usual_us: f64) {
        self.add(subsystem, ((TIMES_USUAL * usual_us).round() as u64).max(LEAST_US) * 1_000);
    }

    /// An operator's rules, with these where they are silent.
    pub fn complete(&self, mut rules: Rules) -> Rules {
        for (subsystem, budget_ns) in &self.0 {
            if !rules.subsystem_budgets_ns.iter().any(|(named, _)| named == subsystem) {
                rules.subsystem_budgets_ns.push((subsystem.clone(), *budget_ns));
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_budget_comes_before_the_games() {
        let suggested = SuggestedBudgets(vec![("ai".into(), 1), ("combat".into(), 2)]);
        let mut rules = Rules::default();
        rules.subsystem_budgets_ns = vec![("ai".into(), 9)];
        let expect = vec![("ai".to_owned(), 9), ("combat".to_owned(), 2)];
        assert_eq!(suggested.complete(rules).subsystem_budgets_ns, expect);
    }

    #[test]
    fn a_budget_is_a_multiple_of_what_is_usual_and_no_less_than_a_wait_for_a_core() {
        let mut suggested = SuggestedBudgets(Vec::new());
        suggested.add_usual("ai", 4_800.0);
        suggested.add_usual("query", 1_500.0);
        let expect = vec![("ai".to_owned(), 19_200_000), ("query".to_owned(), 10_000_000)];
        assert_eq!(suggested.complete(Rules::default()).subsystem_budgets_ns, expect);
    }
}
