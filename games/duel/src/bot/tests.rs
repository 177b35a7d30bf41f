//! Matches of ten bots, played in the simulator on the server that ships.

use glam::Vec3;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings, Totals};

use super::{
    BotGuide, DuelBot, Manner,
    conduct::{Conduct, Thought},
    legs::flat_m,
    situation::Situation,
};
use crate::{
    DuelSettings, build,
    components::Phase,
    movement::{Motion, Wish, step},
    protocol::TICK_HZ,
    schema,
    teams::SEATS,
};

const ENDS: [&str; 5] =
    ["attackers_eliminated", "defenders_eliminated", "spikes_exploded", "spikes_defused", "times_run_out"];

fn play(matches: usize, rounds: u64, impairment: Impairment) -> Totals {
    play_like(Manner::default(), matches, rounds, impairment)
}

/// So many matches at once, until so many rounds of each are over. Everything but what bots wait for is as it ships.
fn play_like(manner: Manner, matches: usize, rounds: u64, impairment: Impairment) -> Totals {
    let game = DuelSettings { warm_up_s: 2.0, stagger_s: 0.0, buy_s: 6.0, over_s: 1.0, ..DuelSettings::default() };
    let settings = SimulationSettings { think_hz: TICK_HZ.into(), impairment, ..SimulationSettings::new(schema(), 1) };
    let (mut simulation, _) = Simulation::new(&settings, |server| build(server, &game)).expect("a lobby");
    let guide = BotGuide::load();
    for _ in 0..matches * SEATS {
        simulation.join(Box::new(DuelBot::new(guide.clone()).with_manner(manner)));
    }
    let wanted = rounds * (matches * SEATS) as u64;
    // No round takes longer than its time and a spike's.
    for _ in 0..rounds * 16 + 4 {
        simulation.run_for(10.0);
        if simulation.totals().counter("rounds") >= wanted {
            break;
        }
    }
    let totals = simulation.totals();
    assert!(totals.counter("rounds") >= wanted, "{totals:#?}");
    totals
}

/// The share of rounds that ended in each way.
fn shares(totals: &Totals) -> [f32; 5] {
    let rounds = totals.counter("rounds") as f32;
    let shares = ENDS.map(|end| totals.counter(end) as f32 / rounds);
    let of_players = rounds / SEATS as f32;
    println!("{of_players} rounds: {:?}", ENDS.iter().zip(shares).collect::<Vec<_>>());
    println!("{:?}", totals.counters);
    shares
}

/// Promise: bots play all of the game, over a bad network too, and are told nothing that cannot be.
#[test]
fn bots_play_rounds_that_end_in_every_way() {
    let impairment = Impairment { loss: 0.02, delay: Nanos::from_millis(15), ..Impairment::NONE };
    let totals = play(4, 10, impairment);
    totals.check_all_play(4 * SEATS, 60);
    assert_eq!((totals.disconnects, totals.state_errors), (0, 0), "{totals:#?}");
    let shares = shares(&totals);
    assert!(shares.iter().all(|share| *share > 0.0), "{:?}", ENDS.iter().zip(shares).collect::<Vec<_>>());
    for name in ["kills", "bought", "thrown", "hits"] {
        assert!(totals.counter(name) > 100, "{name}: {totals:#?}");
    }
    // They predict what comes, for three lost packets in a row are none.
    let [checks, corrections] = ["predictions_checked", "corrections"].map(|name| totals.counter(name));
    assert!(checks > 1_000_000 && corrections * 10_000 < checks, "{totals:#?}");
    assert!(totals.counter("corrected_cm_max") < 50, "{totals:#?}");
}

/// Promise: what a fit turns up or down goes up or down with it.
#[test]
fn bots_that_miss_more_shoot_more_and_bots_that_are_to_throw_nothing_do_not() {
    let shots_for_a_kill = [0.5, 3.0].map(|miss| {
        let totals = play_like(Manner { miss, throws: 0.0, ..Manner::default() }, 1, 5, Impairment::NONE);
        assert_eq!(totals.counter("thrown"), 0, "{totals:#?}");
        println!("missing by {miss}: {:?}", totals.counters);
        totals.counter("shots") as f32 / totals.counter("kills") as f32
    });
    assert!(shots_for_a_kill[1] > 1.3 * shots_for_a_kill[0], "{shots_for_a_kill:?}");
}

/// Promise: as above, of how much they walk.
#[test]
fn bots_that_stand_about_half_of_the_time_walk_half_as_far() {
    let dt_s = 1.0 / f32::from(TICK_HZ);
    let (guide, situation) = (BotGuide::load(), Situation::with(&[(0, Vec3::ZERO)]));
    let home = guide.map.zone(Phase::Buy, situation.side).expect("there is a base");
    let walked_m = |pace: f32| {
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut conduct, mut body) = (Conduct::default(), Motion::standing(home.center().with_y(0.0)));
        let mut walked_m = 0.0;
        for tick in 0..300 * u64::from(TICK_HZ) {
            let now = Nanos::from_millis(tick * 1_000 / u64::from(TICK_HZ));
            let (manner, situation) = (Manner { pace, ..Manner::default() }, &situation);
            let thought = Thought { now, dt_s, situation, guide: &guide, kit: None, manner };
            conduct.feel(&thought, body, 0);
            let input = conduct.stroll(&thought, home, rng);
            let before = body.at;
            step(&mut body, &Wish::from(&input), None, &guide.map, dt_s);
            walked_m += flat_m(before, body.at);
        }
        walked_m
    };
    let [none, half, usual] = [0.0, 0.5, 1.0].map(walked_m);
    assert!(none < 1.0 && (0.35..0.65).contains(&(half / usual)) && usual > 300.0, "{none}, {half} and {usual} m");
}

/// Promise: each way for a round to end makes one round in twenty at least. Takes minutes: for who changes
/// [`balance`](super::balance).
#[test]
#[ignore = "two hundred rounds take minutes"]
fn each_end_makes_five_percent_of_the_rounds() {
    let shares = shares(&play(10, 20, Impairment::NONE));
    assert!(shares.iter().all(|share| *share >= 0.05), "{:?}", ENDS.iter().zip(shares).collect::<Vec<_>>());
}
