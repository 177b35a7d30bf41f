//! Tick budgets: what the rules let a subsystem take in the mean tick of a window, to stand beside what it took
//! ([`crate::tick_time`]).
//!
//! Rules speak of frames and of ticks of one kind of world; a report has one figure for each subsystem, per tick of all worlds. A
//! subsystem's budget is here what the rules allow in the frames and ticks that there were, divided by all ticks:
//!
//! ```text
//! a kind with a budget per tick     that x ticks of the kind
//! a kind with a budget per frame    that x frames
//! everything else                   the subsystem's own budget x frames; if kinds have budgets, what was taken and no more than that
//! ```
//!
//! So what lies above its budget took more, on average of the window, than the rules allow; a single frame over its budget is the
//! recorder's matter, not this one's.
//!
//! Pure; called once for a report.

use throng_profiler::rules::Rules;

/// What rules are applied to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BudgetWindow<'a> {
    /// Frames that were recorded, and ticks of all worlds in them.
    pub frames: u64,
    pub ticks: u64,
    /// Of these ticks, how many were of each kind.
    pub ticks_of_kinds: &'a [(&'a str, f64)],
}

impl BudgetWindow<'_> {
    /// What a subsystem may take (µs per tick) that took `taken_ns`, so much of it in worlds of each kind; none if the rules say
    /// nothing of it.
    pub fn budget_us(
        &self,
        rules: &Rules,
        subsystem: &str,
        taken_ns: u64,
        taken_in_kinds_ns: &[(&str, u64)],
    ) -> Option<f64> {
        let said = |budgets: &[(String, u64)]| {
            budgets.iter().find(|(name, _)| name == subsystem).map(|(_, budget_ns)| *budget_ns as f64)
        };
        let per_frame = |budgets| said(budgets).map(|budget_ns| budget_ns * self.frames as f64);
        let ticks_of =
            |kind: &str| self.ticks_of_kinds.iter().find(|(name, _)| *name == kind).map_or(0.0, |(_, ticks)| *ticks);
        let (mut allowed_ns, mut rest_ns, mut has_kinds) = (0.0, taken_ns as f64, false);
        for of in &rules.kind_budgets {
            let per_tick = said(&of.per_tick_ns).map(|budget_ns| budget_ns * ticks_of(&of.kind));
            let Some(of_kind_ns) = per_tick.or_else(|| per_frame(&of.subsystems_ns)) else { continue };
            let taken = taken_in_kinds_ns.iter().filter(|(kind, _)| *kind == of.kind);
            rest_ns -= taken.map(|(_, ns)| *ns as f64).sum::<f64>();
            (allowed_ns, has_kinds) = (allowed_ns + of_kind_ns, true);
        }
        allowed_ns += match (has_kinds, per_frame(&rules.subsystem_budgets_ns)) {
            (false, budget_ns) => budget_ns?,
            (true, budget_ns) => rest_ns.max(0.0).min(budget_ns.unwrap_or(f64::INFINITY)),
        };
        Some(allowed_ns / 1e3 / self.ticks.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use throng_profiler::rules::KindBudgets;

    use super::*;

    fn named(name: &str, ns: u64) -> Vec<(String, u64)> {
        vec![(name.to_owned(), ns)]
    }

    /// 10 frames, and 100 ticks: 80 of matches, 20 of a lobby.
    #[track_caller]
    fn check(rules: &Rules, taken_ns: u64, in_matches_ns: u64, expect_us: Option<f64>) {
        let window = BudgetWindow { frames: 10, ticks: 100, ticks_of_kinds: &[("match", 80.0), ("lobby", 20.0)] };
        assert_eq!(window.budget_us(rules, "ai", taken_ns, &[("match", in_matches_ns)]), expect_us);
    }

    #[test]
    fn a_budget_of_a_frame_is_spread_over_its_ticks() {
        let mut rules = Rules::default();
        check(&rules, 9_000, 0, None);
        rules.subsystem_budgets_ns = named("ai", 50_000);
        // 10 x 50 of 100 ticks.
        check(&rules, 9_000, 0, Some(5.0));
        rules.subsystem_budgets_ns = named("net", 50_000);
        check(&rules, 9_000, 0, None);
    }

    #[test]
    fn what_one_kind_may_take_is_allowed_in_its_own_ticks_and_frames() {
        let of_match = |per_tick, per_frame| {
            let budgets = KindBudgets {
                kind: "match".into(),
                per_tick_ns: per_tick,
                subsystems_ns: per_frame,
                ..KindBudgets::default()
            };
            let mut rules = Rules::default();
            rules.kind_budgets = vec![budgets];
            rules
        };
        // 80 x 10 in matches, and the 200 that the lobby took.
        let mut rules = of_match(named("ai", 10_000), named("ai", 1));
        check(&rules, 1_200_000, 1_000_000, Some(10.0));
        // The lobby took more than 10 x 5.
        rules.subsystem_budgets_ns = named("ai", 5_000);
        check(&rules, 1_200_000, 1_000_000, Some(8.5));
        // 10 x 30, and nothing else took anything.
        check(&of_match(Vec::new(), named("ai", 30_000)), 1_000_000, 1_000_000, Some(3.0));
        check(&of_match(named("net", 30_000), Vec::new()), 1_000_000, 1_000_000, None);
    }
}
