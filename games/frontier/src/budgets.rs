//! Budgets: what the game's subsystems may take in a frame, for operators whose rules say nothing of them.
//!
//! Measured is the mean of a tick's time with 3,000 players and 10,000 NPCs on 2 cores that the bots share: 1.2 ms to walk,
//! 0.7 to publish, 0.5 for the players, 0.35 and less for who notices whom, for blows and for thoughts. All run one after the
//! other on the world's thread, within a frame as a rule. [`Server::suggest_usual`] makes budgets of that: 10 ms of the
//! period's 50 each, which no lost core breaks and a search that compares everybody with everybody does; more from
//! 20,000 NPCs on.
//!
//! `net` and `replication` are the engine's, and follow the players: 27.9 and 20.7 ms of a tick with 3,000, on all workers
//! together. A tick fills all workers for as many frames as it needs, so of the three frames of a period one may have
//! all of it, and no usual frame has more. Their budget is four times the mean frame, which is four thirds of a tick: a usual
//! frame does not break it on any number of workers, and a tick that costs twice as much does where it fits into a frame.
//! Where it does not, as with 3,000 players on 2 workers, it fills more frames and no one of them more; then the budget of
//! `world.tick` tells.

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

/// Of a tick, for each player (us), on all workers together.
const OF_TICK_PER_PLAYER_US: [(&str, f64); 2] = [("net", 9.3), ("replication", 6.9)];

/// Frames of the grid in a period of 20 Hz.
const FRAMES_PER_TICK: f64 = 3.0;

/// Gives the server the budgets of a world that is made for so many players and NPCs.
pub(crate) fn suggest(server: &mut Server, players: usize, npcs: usize) {
    for (subsystem, us) in OF_TICK_PER_PLAYER_US {
        server.suggest_usual(subsystem, us * players as f64 / FRAMES_PER_TICK);
    }
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

    fn budget_us(players: usize, npcs: usize, subsystem: &str) -> u64 {
        let settings = FrontierSettings { players, npcs, ..FrontierSettings::default() };
        let simulation = SimulationSettings::new(crate::schema(), 1);
        let (mut simulation, _) = Simulation::new(&simulation, |server| crate::build(server, &settings)).unwrap();
        let rules = simulation.server_mut().suggested_budgets().complete(Rules::default());
        let found = rules.subsystem_budgets_ns.into_iter().find(|(named, _)| named == subsystem);
        found.unwrap_or_else(|| panic!("{subsystem} has no budget")).1 / 1_000
    }

    #[test]
    fn each_of_the_games_subsystems_has_a_fifth_of_the_period() {
        for (subsystem, _) in PER_NPC_US {
            assert_eq!(budget_us(2_000, 2_000, subsystem), 10_000, "{subsystem}");
        }
    }

    #[test]
    fn a_larger_world_has_larger_budgets() {
        assert_eq!(budget_us(2_000, 30_000, "frontier.npc.walk"), 14_880);
    }

    /// Promise: a frame that has all of a tick breaks no budget of the engine's, and one with twice as much does.
    #[test]
    fn a_whole_tick_in_one_frame_breaks_no_budget_and_twice_its_cost_does() {
        for (subsystem, us) in OF_TICK_PER_PLAYER_US {
            for players in [2_000, 3_000, 6_000] {
                let of_tick_us = us * f64::from(players);
                let budget_us = budget_us(players as usize, 2_000, subsystem) as f64;
                assert!(budget_us > 1.2 * of_tick_us && budget_us < 1.6 * of_tick_us, "{subsystem}: {budget_us}");
            }
            assert_eq!(budget_us(20, 2_000, subsystem), 10_000, "no smaller than what a lost core breaks");
        }
    }
}
