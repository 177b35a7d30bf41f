//! Matches of ten bots, played in the simulator on the server that ships.

use throng_net::transport::Impairment;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings, Totals};

use super::{BotGuide, DuelBot};
use crate::{DuelSettings, build, protocol::TICK_HZ, schema, teams::SEATS};

const ENDS: [&str; 5] =
    ["attackers_eliminated", "defenders_eliminated", "spikes_exploded", "spikes_defused", "times_run_out"];

/// So many matches at once, until so many rounds of each are over. Everything but what bots wait for is as it ships.
fn play(matches: usize, rounds: u64, impairment: Impairment) -> Totals {
    let game = DuelSettings { warm_up_s: 2.0, stagger_s: 0.0, buy_s: 6.0, over_s: 1.0, ..DuelSettings::default() };
    let settings = SimulationSettings { think_hz: TICK_HZ.into(), impairment, ..SimulationSettings::new(schema(), 1) };
    let (mut simulation, _) = Simulation::new(&settings, |server| build(server, &game)).expect("a lobby");
    let guide = BotGuide::load();
    for _ in 0..matches * SEATS {
        simulation.join(Box::new(DuelBot::new(guide.clone())));
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

/// Promise: each way for a round to end makes one round in twenty at least. Takes minutes: for who changes
/// [`balance`](super::balance).
#[test]
#[ignore = "two hundred rounds take minutes"]
fn each_end_makes_five_percent_of_the_rounds() {
    let shares = shares(&play(10, 20, Impairment::NONE));
    assert!(shares.iter().all(|share| *share >= 0.05), "{:?}", ENDS.iter().zip(shares).collect::<Vec<_>>());
}
