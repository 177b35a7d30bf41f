//! The promise: how far players see is an operator's to change while they play, and what they are shown stays exact.

mod simulated;

use frontier::components::Pose;
use throng_replication::{ReplicationRules, rules::InterestRadii};
use throng_simulator::Simulation;

const BOTS: usize = 20;
const NPCS: usize = 900;
const LEAVE_M: f32 = 50.0;

/// How many entities clients hold that are farther away than that. (m)
fn held_beyond(simulation: &Simulation, metres: f32) -> usize {
    let beyond = simulation.players().iter().map(|player| {
        let replicas = player.client().replicas();
        let own = player.client().own_entity().and_then(|own| replicas.get::<Pose>(own)).copied();
        let is_far = |pose: &Pose| own.is_some_and(|own| (pose.x - own.x).hypot(pose.z - own.z) > metres);
        replicas.iter::<Pose>().filter(|(_, pose)| is_far(pose)).count()
    });
    beyond.sum()
}

#[test]
fn reloaded_radii_change_what_players_see_and_nothing_else() {
    let mut simulation = simulated::game_with_bots(&simulated::settings(5), BOTS, NPCS);
    simulation.run_for(6.0);
    let before = held_beyond(&simulation, LEAVE_M + 10.0);
    assert!(before > 10 * BOTS, "{before}");
    let (control, own) = {
        let server = simulation.server_mut();
        (server.control(), server.replication_rules().clone())
    };
    let radii = Some(InterestRadii { enter_m: 40.0, leave_m: LEAVE_M });
    control.set_replication_rules(ReplicationRules { radii, ..own.clone() });
    simulation.run_for(3.0);
    // Those of one's party are told wherever they are.
    let near = held_beyond(&simulation, LEAVE_M + 10.0);
    assert!(near < before / 10, "{near} of {before}");
    control.set_replication_rules(own);
    simulation.run_for(3.0);
    let again = held_beyond(&simulation, LEAVE_M + 10.0);
    assert!(again > before / 2, "{again} of {before}");
    let totals = simulation.totals();
    totals.check_all_play(BOTS, 8);
    assert_eq!(totals.state_errors, 0, "{totals:#?}");
}
