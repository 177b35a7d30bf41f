//! R16 for a match, the promise: no client holds an enemy whom its player could not see within the grace.
//!
//! The whole server and its bots. What each client holds is compared with where all of them say that they are, by brute
//! force, which knows nothing of cells, proofs and what the fog remembers. The unit tests of `sight` hold the fog
//! against it in each tick, and for lateness too; this is about everything between it and the client.

mod simulated;

use duel::{
    components::{Player, Pose, TeamVitals},
    map::Map,
    movement::Motion,
    protocol::MATCH,
    sight::{FOG, body},
};
use glam::Vec3;
use throng_client::Client;
use throng_query::{occlusion::Body, testing::BruteForce};
use throng_simulator::Simulation;

const BOTS: usize = 10;
/// What a client holds is this much older than where the others say that they are, at most (s).
const LATE_S: f32 = 0.05;

/// In so many steps one gets as far as one may.
const STEPS: u32 = 6;

/// A player as its own client has it.
struct Witness<'a> {
    client: &'a Client,
    player: Player,
    body: Body,
}

impl<'a> Witness<'a> {
    fn of(client: &'a Client) -> Option<Self> {
        let own = client.own_entity().filter(|_| client.world().is_some_and(|world| world.name == MATCH))?;
        let replicas = client.replicas();
        let (player, pose) = (*replicas.get::<Player>(own)?, replicas.get::<Pose>(own)?);
        let (_, vitals) = replicas.iter::<TeamVitals>().find(|(_, vitals)| vitals.team == player.team)?;
        let is_alive = vitals.of(player.seat).health > 0;
        Some(Self { client, player, body: body(is_alive.into(), &Motion::standing(pose.feet())) })
    }

    fn holds(&self, other: &Player) -> bool {
        self.client.replicas().iter::<Player>().any(|(_, held)| held.seat == other.seat)
    }
}

/// Whether the one may see the other within the grace: both of them as far as they may get, or either of them less far,
/// and on the ground or in a jump. What both can do at their most is looked at first, which is enough for nearly all.
fn may_see(map: &Map, brute: &mut BruteForce, viewer: &Body, other: &Body) -> bool {
    let mut sees = |shares: [f32; 2], ups_m: [f32; 2]| {
        let moved = |body: &Body, share: f32, up_m: f32| {
            let (feet, speed) = (body.feet + Vec3::Y * up_m, body.speed_m_per_s_max * share);
            Body { feet, speed_m_per_s_max: speed, ..*body }
        };
        let (eye, seen) = (moved(viewer, shares[0], ups_m[0]), moved(other, shares[1], ups_m[1]));
        brute.may_see_within(&map.geometry, &eye, &seen, FOG.reach_s() + LATE_S)
    };
    let shares = || (0..=STEPS).rev().map(|step| step as f32 / STEPS as f32);
    let both = |values: &mut dyn Iterator<Item = f32>| -> Vec<[f32; 2]> {
        let values: Vec<f32> = values.collect();
        values.iter().flat_map(|one| values.iter().map(|other| [*one, *other])).collect()
    };
    let (shares, ups) = (both(&mut shares()), both(&mut [0.0, FOG.rise_m].into_iter()));
    shares.iter().any(|shares| ups.iter().any(|ups| sees(*shares, *ups)))
}

/// Pairs of enemies of whom both live, and those of them of whom the one is told of the other.
fn check(simulation: &Simulation, map: &Map, brute: &mut BruteForce) -> [u64; 2] {
    let witnesses: Vec<Witness<'_>> = simulation.players().iter().filter_map(|one| Witness::of(one.client())).collect();
    let mut counts = [0; 2];
    for viewer in witnesses.iter().filter(|viewer| viewer.body.life > 0) {
        for other in witnesses.iter().filter(|other| other.player.team != viewer.player.team && other.body.life > 0) {
            counts[0] += 1;
            if !viewer.holds(&other.player) {
                continue;
            }
            counts[1] += 1;
            assert!(may_see(map, brute, &viewer.body, &other.body), "{:?} holds {:?}", viewer.body, other.body);
        }
    }
    counts
}

#[test]
fn r16_no_client_holds_an_enemy_whom_it_could_not_see() {
    let map = Map::load();
    let mut brute = BruteForce::default();
    let mut simulation = simulated::game_with_bots(&simulated::settings(6), simulated::short(), BOTS);
    simulation.run_for(3.0);
    let mut counts = [0; 2];
    for _ in 0..400 {
        (0..19).for_each(|_| simulation.step());
        let [pairs, held] = check(&simulation, &map, &mut brute);
        counts = [counts[0] + pairs, counts[1] + held];
    }
    let [pairs, held] = counts;
    assert!(pairs > 5_000 && held > 100 && held < pairs / 2, "{held} of {pairs} are told of");
    assert_eq!(simulation.totals().counter("violations"), 0);
}
