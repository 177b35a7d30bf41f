//! Suggested budgets: what a game and the engine say that subsystems may take, where an operator says nothing.
//!
//! A budget is about all scopes of a subsystem in one frame, by the clock, waits for a core included. So one that is close
//! to what is usual would save a capture whenever a worker loses its core, and one that is far from it none when it should.
//! What does not come from the game's figures follows from the rate of the fastest kind of world.
//!
//! A budget for one tick is the mean of many, which a lost core does not break: it is taken as the game says it.

use throng_profiler::{
    rules::{KindBudgets, Rules},
    world_kind::fitted,
};

/// What subsystems may take in a frame, and in a tick.
#[derive(Debug, Clone)]
pub struct SuggestedBudgets {
    of_frame: Vec<(String, OfFrame)>,
    /// The kind of world, the subsystem and what it may take in a tick (ns).
    per_tick: Vec<(String, String, u64)>,
    /// Of the kind of world that ticks most often (ns), if there is one.
    period_ns: Option<u64>,
}

/// What a subsystem may take in a frame (ns).
#[derive(Debug, Clone, Copy)]
enum OfFrame {
    Exactly(u64),
    /// This at rates up to 30 Hz, and the same share of a faster period.
    Fitted(u64),
    /// This, but no less than a wait for a core.
    AtLeastAWait(u64),
}

/// A frame that is costly in the usual way takes 2.4 times the mean, since worlds of a rate tick in every second or third
/// frame: four times is none of these, and less than what such a frame takes when its cost has doubled.
const TIMES_USUAL: f64 = 4.0;
/// What a thread may wait for a core before that is a capture of its own (trigger `run-queue`) at rates up to 30 Hz: what
/// is small is over its budget for such a wait and no sooner. (ns)
const LEAST_NS: u64 = 10_000_000;

/// The serial parts of a frame; everything else is a game's, or depends on it. With 1,000 worlds and players they take 2.3
/// ms, 8.1 in the costliest of 76 frames, and more than half of a frame's 16.7 ms is then nobody else's. At 128 Hz it is
/// 2.3 of 7.8 ms. (ns)
const FRAME_NS: u64 = 10_000_000;

impl Default for SuggestedBudgets {
    /// The engine's own.
    fn default() -> Self {
        let of_frame = vec![("frame".into(), OfFrame::Fitted(FRAME_NS))];
        Self { of_frame, per_tick: Vec::new(), period_ns: None }
    }
}

impl SuggestedBudgets {
    pub(crate) fn add(&mut self, subsystem: &str, budget_ns: u64) {
        self.of_frame.push((subsystem.into(), OfFrame::Exactly(budget_ns)));
    }

    pub(crate) fn add_usual(&mut self, subsystem: &str, usual_us: f64) {
        let budget_ns = (TIMES_USUAL * usual_us).round() as u64 * 1_000;
        self.of_frame.push((subsystem.into(), OfFrame::AtLeastAWait(budget_ns)));
    }

    pub(crate) fn add_per_tick(&mut self, kind: &str, subsystem: &str, budget_us: f64) {
        let budget_ns = ((budget_us * 1_000.0).round() as u64).max(1);
        self.per_tick.push((kind.into(), subsystem.into(), budget_ns));
    }

    /// The same for a server whose fastest kind of world has this period (ns).
    pub(crate) fn at_period(&self, period_ns: Option<u64>) -> Self {
        Self { period_ns, ..self.clone() }
    }

    /// An operator's rules, with these where they are silent.
    pub fn complete(&self, mut rules: Rules) -> Rules {
        for (subsystem, budget) in &self.of_frame {
            let budget_ns = match *budget {
                OfFrame::Exactly(budget_ns) => budget_ns,
                OfFrame::Fitted(budget_ns) => fitted(budget_ns, self.period_ns),
                OfFrame::AtLeastAWait(budget_ns) => budget_ns.max(fitted(LEAST_NS, self.period_ns)),
            };
            add_unless_named(&mut rules.subsystem_budgets_ns, subsystem, budget_ns);
        }
        for (kind, subsystem, budget_ns) in &self.per_tick {
            let of_kinds = &mut rules.kind_budgets;
            let place = of_kinds.iter().position(|budgets| budgets.kind == *kind).unwrap_or_else(|| {
                of_kinds.push(KindBudgets { kind: kind.clone(), ..KindBudgets::default() });
                of_kinds.len() - 1
            });
            add_unless_named(&mut of_kinds[place].per_tick_ns, subsystem, *budget_ns);
        }
        rules
    }
}

fn add_unless_named(budgets_ns: &mut Vec<(String, u64)>, subsystem: &str, budget_ns: u64) {
    if !budgets_ns.iter().any(|(named, _)| named == subsystem) {
        budgets_ns.push((subsystem.into(), budget_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> SuggestedBudgets {
        SuggestedBudgets { of_frame: Vec::new(), ..SuggestedBudgets::default() }
    }

    fn named(name: &str, ns: u64) -> (String, u64) {
        (name.to_owned(), ns)
    }

    #[test]
    fn an_operators_budget_comes_before_the_games() {
        let mut suggested = none();
        suggested.add("ai", 1);
        suggested.add("combat", 2);
        suggested.add_per_tick("duel", "ai", 0.5);
        suggested.add_per_tick("duel", "combat", 7.0);
        let mut rules = Rules::default();
        rules.subsystem_budgets_ns = vec![named("ai", 9)];
        rules.kind_budgets =
            vec![KindBudgets { kind: "duel".into(), per_tick_ns: vec![named("ai", 4)], ..KindBudgets::default() }];
        let rules = suggested.complete(rules);
        assert_eq!(rules.subsystem_budgets_ns, [named("ai", 9), named("combat", 2)]);
        assert_eq!(rules.kind_budgets.len(), 1);
        assert_eq!(rules.kind_budgets[0].per_tick_ns, [named("ai", 4), named("combat", 7_000)]);
    }

    #[test]
    fn a_budget_is_a_multiple_of_what_is_usual_and_no_less_than_a_wait_for_a_core() {
        let mut suggested = none();
        suggested.add_usual("ai", 4_800.0);
        suggested.add_usual("query", 1_500.0);
        let expect = vec![named("ai", 19_200_000), named("query", 10_000_000)];
        assert_eq!(suggested.complete(Rules::default()).subsystem_budgets_ns, expect);
    }

    /// Promise: at 128 Hz what is small has a budget that is less than a period, and what is not keeps its own.
    #[test]
    fn the_least_budget_follows_the_rate_of_the_fastest_kind() {
        let mut suggested = SuggestedBudgets::default();
        suggested.add("weather", 9_000_000);
        suggested.add_usual("ai", 4_800.0);
        suggested.add_usual("query", 100.0);
        let at =
            |hz: u64| suggested.at_period(Some(1_000_000_000 / hz)).complete(Rules::default()).subsystem_budgets_ns;
        let budgets = |frame, query| {
            [named("frame", frame), named("weather", 9_000_000), named("ai", 19_200_000), named("query", query)]
        };
        assert_eq!(at(20), budgets(10_000_000, 10_000_000));
        assert_eq!(at(30), budgets(10_000_000, 10_000_000));
        assert_eq!(at(128), budgets(2_343_750, 2_343_750));
    }

    /// Promise: a game's budgets of ticks are its own, parts of a microsecond included.
    #[test]
    fn a_tick_has_the_budget_that_the_game_gave_it() {
        let mut suggested = none();
        suggested.add_per_tick("duel", "rewind", 0.25);
        let rules = suggested.at_period(Some(7_812_500)).complete(Rules::default());
        let per_tick_ns = vec![named("rewind", 250)];
        assert_eq!(rules.kind_budgets, [KindBudgets { kind: "duel".into(), per_tick_ns, ..KindBudgets::default() }]);
    }
}
