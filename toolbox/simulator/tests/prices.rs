//! The promise of prices: whatever a client sends, its world does no more for it than its allowance says; nobody else
//! notices, and the same work is done on any number of workers.
//!
//! In a forge each input asks for some work, which the world does and counts. Work is counted in units, and no time is
//! measured.

use std::collections::BTreeMap;

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{ids::WorldId, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings, Totals, first_difference};

/// What an input can ask for at most.
const DEAREST: u8 = 50;
/// How many there must be for two batches, which are opened on two workers.
const SMITHS: usize = 140;
const SECONDS: u32 = 10;

/// So many units of work, at their price.
#[derive(Pack, Debug, Clone, Copy)]
struct Order(u8);

impl ClientInput for Order {
    const PER_S_MAX: u16 = 1_000;

    fn price(&self) -> u32 {
        self.0.into()
    }
}

/// The same at the price of an ordinary input.
#[derive(Pack, Debug, Clone, Copy)]
struct Favour(u8);

impl ClientInput for Favour {
    const PER_S_MAX: u16 = 1_000;
}

struct Forge;

/// Units of work done, by client, and what came of it.
#[derive(Resource, Default, Debug, Clone, PartialEq)]
struct Done {
    units: BTreeMap<ClientKey, u64>,
    work: u64,
}

impl WorldKind for Forge {
    fn name(&self) -> &str {
        "forge"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Order>().input::<Favour>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.init_resource::<Done>().add_systems(Update, smith);
    }
}

fn smith(orders: Inputs<Order>, favours: Inputs<Favour>, mut done: ResMut<Done>) {
    let orders = orders.read().map(|(sender, &Order(units))| (sender.client, units));
    let favours = favours.read().map(|(sender, &Favour(units))| (sender.client, units));
    for (client, units) in orders.chain(favours) {
        for unit in 0..u64::from(units) {
            done.work = done.work.rotate_left(7) ^ u64::from(client.0) ^ unit;
        }
        *done.units.entry(client).or_default() += u64::from(units);
    }
}

/// Sends as many inputs a thought, each for so much work.
struct Smith {
    inputs: u32,
    work: u8,
    has_price: bool,
}

impl Behaviour for Smith {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        for _ in 0..self.inputs {
            // Refused before the first world.
            let _ = if self.has_price {
                client.send_input(now, &Order(self.work))
            } else {
                client.send_input(now, &Favour(self.work))
            };
        }
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

struct Played {
    done: Done,
    totals: Totals,
    refused: u64,
    hashes: Vec<throng::inspection::WorldHash>,
}

impl Played {
    /// The units done for the one who is unlike the others, who came first.
    fn of_first(&self) -> u64 {
        *self.done.units.values().next().expect("it was there")
    }
}

/// Smiths with one unit a thought, and before them one who asks as told.
fn play(workers_count: usize, first: Smith) -> Played {
    let settings =
        SimulationSettings { workers_count, hash: true, ..SimulationSettings::new(Forge.protocol().schema(), 4) };
    let build = |server: &mut throng::Server| -> Result<WorldId, throng::server::ServerError> {
        let forge = server.add_kind(Forge)?;
        server.create_world(forge, 4)
    };
    let (mut simulation, forge) = Simulation::new(&settings, build).unwrap();
    simulation.join(Box::new(first));
    assert!(simulation.run_until(5.0, |simulation| simulation.totals().playing == 1));
    (0..SMITHS).for_each(|_| _ = simulation.join(Box::new(Smith { inputs: 1, work: 1, has_price: true })));
    simulation.run_for(SECONDS.into());
    let totals = simulation.totals();
    let hashes = simulation.hashes().to_vec();
    let server = simulation.server_mut();
    let refused = server.count_of("net.dear_messages_over_allowance");
    let done = server.world_mut(forge).expect("it is there").ecs().resource::<Done>().clone();
    Played { done, totals, refused, hashes }
}

/// Twenty of the dearest a second are what an allowance of 1,000 units has room for.
const PERMITTED: Smith = Smith { inputs: 1, work: DEAREST, has_price: true };

/// All units of `seconds`, a full allowance, and the time in which the others came in.
fn units_max(seconds: u32) -> u64 {
    1_000 * u64::from(seconds + 2)
}

#[test]
fn the_dearest_messages_cost_a_world_no_more_than_as_many_units_of_ordinary_ones() {
    let dear = play(1, PERMITTED);
    assert_eq!((dear.totals.disconnects, dear.refused), (0, 0), "{:?}", dear.totals);
    assert!(dear.of_first() <= units_max(SECONDS), "{}", dear.of_first());
    assert!(dear.of_first() >= 900 * u64::from(SECONDS), "its allowance is its own: {}", dear.of_first());
    let ordinary = play(1, Smith { inputs: 45, work: 1, has_price: true });
    assert_eq!(ordinary.totals.disconnects, 0, "{:?}", ordinary.totals);
    assert!(ordinary.of_first() * 5 >= dear.of_first() * 4, "{} and {}", ordinary.of_first(), dear.of_first());
}

#[test]
fn who_asks_for_more_than_its_allowance_is_refused_and_then_dismissed_alone() {
    for workers_count in [1, 2] {
        let played = play(workers_count, Smith { inputs: 10, work: DEAREST, has_price: true });
        assert!(played.refused > 0);
        assert_eq!((played.totals.disconnects, played.totals.playing), (1, SMITHS as u64), "{:?}", played.totals);
        assert!(played.of_first() <= units_max(0), "{}", played.of_first());
        let others: Vec<u64> = played.done.units.values().skip(1).copied().collect();
        assert_eq!(others.len(), SMITHS);
        assert!(others.iter().all(|units| *units >= 18 * u64::from(SECONDS - 2)), "nobody else is refused: {others:?}");
    }
}

/// The negative control: where every message costs the same, the same client has all that it asks for.
#[test]
fn without_prices_the_dearest_messages_are_had_at_the_rate_of_ordinary_ones() {
    let played = play(1, Smith { inputs: 10, work: DEAREST, has_price: false });
    assert_eq!((played.totals.disconnects, played.refused), (0, 0), "{:?}", played.totals);
    assert!(played.of_first() > 5 * units_max(SECONDS), "{}", played.of_first());
}

#[test]
fn what_is_refused_is_the_same_on_one_worker_and_on_two() {
    let greedy = || Smith { inputs: 2, work: DEAREST, has_price: true };
    let (alone, shared) = (play(1, greedy()), play(2, greedy()));
    assert!(alone.refused > 0);
    assert_eq!((&alone.done, alone.refused, &alone.totals), (&shared.done, shared.refused, &shared.totals));
    if let Some(difference) = first_difference(&alone.hashes, &shared.hashes) {
        panic!("{difference}");
    }
}
