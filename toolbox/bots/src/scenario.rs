//! Scenarios: the ways in which a game's bots can play, by name.
//!
//! A game lists its own beside its bots, the usual one first, then its worst cases: those moments of its life that cost
//! its server most. What bots do in them is the game's; what a swarm and a load run have to know is here.

/// One way to play a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// As it is asked for: lower case, words joined by hyphens.
    pub name: &'static str,
    /// What everybody does in it, in a line.
    pub about: &'static str,
    pub joins: Joins,
}

/// How bots come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// One after the other, as fast as the swarm was told.
    InTurn,
    /// All in the same moment. It is the log-ins that are tried, so a load run measures from the first of them on.
    AtOnce,
}

impl Scenario {
    /// The name of the first of every game.
    pub const USUAL: &str = "usual";

    /// What every game has: everybody in the same moment, who then plays as usual.
    pub const LOG_IN_AT_ONCE: Self = Self {
        name: "log-in-at-once",
        about: "everybody logs in in the same moment; measured from the first log-in on",
        joins: Joins::AtOnce,
    };

    /// The one with this name.
    pub fn find(scenarios: &[Self], name: &str) -> Result<Self, UnknownScenario> {
        let unknown = || UnknownScenario { name: name.to_owned(), known: scenarios.to_vec() };
        scenarios.iter().find(|scenario| scenario.name == name).copied().ok_or_else(unknown)
    }
}

/// A game has no such scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scenario `{name}`; there are{}", listed(.known))]
pub struct UnknownScenario {
    name: String,
    known: Vec<Scenario>,
}

fn listed(scenarios: &[Scenario]) -> String {
    scenarios.iter().map(|scenario| format!("\n  {:<16}{}", scenario.name, scenario.about)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_those_that_there_are() {
        let usual = Scenario { name: Scenario::USUAL, about: "as players play", joins: Joins::InTurn };
        let scenarios = [usual, Scenario::LOG_IN_AT_ONCE];
        assert_eq!(Scenario::find(&scenarios, "usual"), Ok(usual));
        let words = Scenario::find(&scenarios, "rush").unwrap_err().to_string();
        assert!(words.starts_with(
            "there is no scenario `rush`; there are\n  usual           as players play\n  log-in-at-once"
        ));
    }
}
