//! Suggested budgets: what a game says that its subsystems may take, where an operator says nothing.

use throng_profiler::rules::Rules;

/// What a game says that its subsystems may take in a frame.
#[derive(Debug, Clone, Default)]
pub struct SuggestedBudgets(Vec<(String, u64)>);

impl SuggestedBudgets {
    pub(crate) fn add(&mut self, subsystem: &str, budget_ns: u64) {
        self.0.push((subsystem.into(), budget_ns));
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
}
