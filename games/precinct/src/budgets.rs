//! Budgets: what subsystems may take in a frame of a Precinct server, for operators whose rules say nothing of them.
//!
//! They follow the load that the server is made for. Measured is the main job, 1,000 players and 20,000 NPCs on 2 cores
//! that the bots share: the mean of 216,000 frames, and the costliest of 76 frames in a row, since in every second frame
//! the dark zone ticks, in every third a third of the hideouts, and a worker may lose its core for a moment.
//!
//! | subsystem           | mean frame | costliest | budget at that load |
//! |---------------------|-----------:|----------:|--------------------:|
//! | `replication`       |     5.9 ms |   14.1 ms |             23.6 ms |
//! | `ai`                |     4.8 ms |   11.8 ms |             19.2 ms |
//! | `net`               |     4.5 ms |    9.7 ms |             18.0 ms |
//! | `precinct.players`  |     1.6 ms |    7.4 ms |             10.0 ms |
//! | `query`             |     1.5 ms |    5.2 ms |             10.0 ms |
//! | `precinct.arrivals` |     0.7 ms |    5.1 ms |             10.0 ms |
//! | `precinct.shooting` |     0.3 ms |    3.2 ms |             10.0 ms |
//!
//! [`Server::suggest_usual`] makes budgets of the means. A subsystem that doubles breaks its budget within a second, but for
//! shooting, which is seldom: that has to grow by a factor of three.

use throng::Server;

/// Of the mean frame, for each player that there is a hideout for (µs): half of them travel, and all send and are told.
const PER_PLAYER_US: [(&str, f64); 5] = [
    ("replication", 5.9),
    ("net", 4.5),
    ("precinct.players", 1.6),
    ("precinct.arrivals", 0.7),
    ("precinct.shooting", 0.3),
];
/// The same for each NPC: nobody else perceives, thinks and asks for paths.
const PER_NPC_US: [(&str, f64); 2] = [("ai", 0.24), ("query", 0.075)];

/// Gives the server the budgets of a load of so many players and NPCs.
pub(crate) fn suggest(server: &mut Server, players: usize, npcs: usize) {
    let of_players = PER_PLAYER_US.map(|(subsystem, us)| (subsystem, us * players as f64));
    let of_npcs = PER_NPC_US.map(|(subsystem, us)| (subsystem, us * npcs as f64));
    for (subsystem, usual_us) in of_players.into_iter().chain(of_npcs) {
        server.suggest_usual(subsystem, usual_us);
    }
}

#[cfg(test)]
mod tests {
    use throng_profiler::rules::Rules;
    use throng_simulator::{Simulation, SimulationSettings};

    use crate::server::PrecinctSettings;

    fn budgets_us(players: usize, npcs: usize) -> Vec<(String, u64)> {
        let settings = PrecinctSettings { players, npcs, ..PrecinctSettings::default() };
        let simulation = SimulationSettings::new(crate::schema(), 1);
        let (mut simulation, _) = Simulation::new(&simulation, |server| crate::build(server, &settings)).unwrap();
        let rules = simulation.server_mut().suggested_budgets().complete(Rules::default());
        rules.subsystem_budgets_ns.into_iter().map(|(subsystem, ns)| (subsystem, ns / 1_000)).collect()
    }

    /// Promise: the main job as it was measured breaks no budget, and one that takes twice as long does.
    #[test]
    fn the_main_job_breaks_no_budget_and_twice_its_cost_does() {
        const COSTLIEST_US: [(&str, u64); 7] = [
            ("replication", 14_053),
            ("ai", 11_793),
            ("net", 9_668),
            ("frame", 8_075),
            ("precinct.players", 7_372),
            ("query", 5_248),
            ("precinct.arrivals", 5_132),
        ];
        let budgets = budgets_us(1_000, 20_000);
        for (subsystem, costliest_us) in COSTLIEST_US {
            let (_, us) = budgets.iter().find(|(named, _)| named == subsystem).expect(subsystem);
            assert!((costliest_us + 1..2 * costliest_us).contains(us), "{subsystem}: {us}");
        }
    }

    #[test]
    fn a_small_server_is_given_no_smaller_budget_than_a_lost_core_breaks() {
        assert!(budgets_us(1, 0).iter().all(|(_, us)| *us == 10_000));
    }
}
