//! Budgets: what the game's subsystems may take in a frame, for operators whose rules say nothing of them.
//!
//! Measured is the mean of a tick's time with 3,000 players and 10,000 NPCs on 2 cores that the bots share: 1.2 ms to walk,
//! 0.7 to publish, 0.5 for the players, 0.35 and less for who notices whom, for blows and for thoughts. All run one after the
//! other on the world's thread, within a frame as a rule. [`Server::suggest_usual`] makes budgets of that: 10 ms of the
//! period's 50 each, which no lost core breaks and a search that compares everybody with everybody does; more from
//! 20,000 NPCs on.
//!
//! `net` and `replication` have none here. One world's tick fills all workers for as many frames as it needs: were it to take
//! twice as long, it would fill twice as many frames as well as now, and no one of them more. That is what the budget of
//! `world.tick` is for.

use throng::Server;

/// Of a tick, for each NPC (us). What the players take is among it: they are as many as the NPCs are made for.
const PER_NPC_US: [(&str, f64); 8] = [
    ("frontier.npc.walk", 0.124),
    ("frontier.publish", 0.069),
    ("frontier.players", 0.049),
    ("frontier.aggro", 0.035),
    ("frontier.yell", 0.024),
    ("frontier.combat", 0.024),
    ("frontier.npc.think", 0.018),
    ("frontier.sight", 0.016),
];

/// Gives the server the budgets of a world of so many NPCs.
pub(crate) fn suggest(server: &mut Server, npcs: usize) {
    for (subsystem, us) in PER_NPC_US {
        server.suggest_usual(subsystem, us * npcs as f64);
    }
}

#[cfg(test)]
mod tests {
    use throng_profiler::rules::Rules;
    use throng_simulator::{Simulation, SimulationSettings};

    use super::*;
    use crate::settings::FrontierSettings;

    fn budget_us(npcs: usize, subsystem: &str) -> u64 {
        let settings = FrontierSettings { npcs, ..FrontierSettings::default() };
        let simulation = SimulationSettings::new(crate::schema(), 1);
        let (mut simulation, _) = Simulation::new(&simulation, |server| crate::build(server, &settings)).unwrap();
        let rules = simulation.server_mut().suggested_budgets().complete(Rules::default());
        let found = rules.subsystem_budgets_ns.into_iter().find(|(named, _)| named == subsystem);
        found.unwrap_or_else(|| panic!("{subsystem} has no budget")).1 / 1_000
    }

    #[test]
    fn each_of_the_games_subsystems_has_a_fifth_of_the_period() {
        for (subsystem, _) in PER_NPC_US {
            assert_eq!(budget_us(2_000, subsystem), 10_000, "{subsystem}");
        }
    }

    #[test]
    fn a_larger_world_has_larger_budgets() {
        assert_eq!(budget_us(30_000, "frontier.npc.walk"), 14_880);
    }
}
