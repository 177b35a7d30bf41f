//! The promise: what a player asks for is done in the world in which it was asked, or in none; a client hears of its
//! journey late, and asks the old world until then. What is for any world is heard wherever the player is.
//!
//! Every player says with each request in which world it believes to be, and goes to and fro on a slow line.

use std::sync::{Arc, OnceLock};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, ids::WorldId, prelude::*, server::ServerError};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

/// In the world with this number.
#[derive(Pack, Debug, Clone, Copy)]
struct Buy(u32);

impl ClientRequest for Buy {
    const PER_S_MAX: u16 = 100;
}

/// Said in the world with this number, to whoever hears it.
#[derive(Pack, Debug, Clone, Copy)]
struct Cheer(u32);

impl ClientRequest for Cheer {
    const PER_S_MAX: u16 = 100;
    const FOR_ANY_WORLD: bool = true;
}

#[derive(Pack, Debug, Clone, Copy)]
struct Cross;

impl ClientRequest for Cross {}

#[derive(Pack)]
#[pack(name = "test.nothing")]
struct Nothing;

type Banks = Arc<OnceLock<[WorldId; 2]>>;

/// One bank of a river; the other is like it.
struct Bank(Banks);

#[derive(Resource)]
struct River(Banks);

/// What was asked here, and in the belief that it was elsewhere.
#[derive(Resource, Default)]
struct Asked {
    crossings: u64,
    buys: [u64; 2],
    cheers: [u64; 2],
}

impl WorldKind for Bank {
    fn name(&self) -> &str {
        "bank"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().request::<Buy>().request::<Cheer>().request::<Cross>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.accept_transfers::<Nothing>();
        world.insert_resource(River(self.0.clone())).init_resource::<Asked>().add_systems(Update, serve);
    }
}

fn serve(
    tick: Res<TickInfo>,
    (buys, cheers, crossings): (Requests<Buy>, Requests<Cheer>, Requests<Cross>),
    river: Res<River>,
    mut asked: ResMut<Asked>,
    mut outbox: ResMut<Outbox>,
) {
    let is_elsewhere = |world: u32| usize::from(world != tick.world.number());
    buys.read().for_each(|(_, &Buy(world))| asked.buys[is_elsewhere(world)] += 1);
    cheers.read().for_each(|(_, &Cheer(world))| asked.cheers[is_elsewhere(world)] += 1);
    for (sender, Cross) in crossings.read() {
        let banks = river.0.get().expect("known before the first frame");
        let other = banks[usize::from(banks[0] == tick.world)];
        outbox.travel(sender.client, other, &Nothing).expect("it has no limits");
        asked.crossings += 1;
    }
}

/// Asks with every thought, and crosses once a second.
#[derive(Default)]
struct Ferryman {
    thoughts: u32,
}

impl Behaviour for Ferryman {
    fn think(&mut self, _: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        let Some(world) = client.world().map(|world| world.id) else { return };
        self.thoughts += 1;
        if self.thoughts.is_multiple_of(20) {
            client.request(&Cross).expect("there is room");
        }
        client.request(&Buy(world)).expect("there is room");
        client.request(&Cheer(world)).expect("there is room");
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

#[test]
fn what_was_asked_before_a_journey_is_not_done_by_the_next_world() {
    let banks = Banks::default();
    let impairment = Impairment { delay: Nanos::from_millis(60), ..Impairment::NONE };
    let schema = Bank(banks.clone()).protocol().schema();
    let settings = SimulationSettings { impairment, ..SimulationSettings::new(schema, 3) };
    let build = |server: &mut Server| -> Result<[WorldId; 2], ServerError> {
        let bank = server.add_kind(Bank(banks.clone()))?;
        let worlds = [server.create_world(bank, 1)?, server.create_world(bank, 2)?];
        banks.set(worlds).expect("set once");
        Ok(worlds)
    };
    let (mut simulation, worlds) = Simulation::new(&settings, build).unwrap();
    (0..3).for_each(|_| _ = simulation.join(Box::<Ferryman>::default()));
    simulation.run_for(30.0);

    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.protocol_errors), (3, 0, 0), "{totals:#?}");
    let server = simulation.server_mut();
    let [stale, refused] = ["net.requests_stale", "net.messages_refused"].map(|name| server.count_of(name));
    let mut asked = Asked::default();
    for world in worlds {
        let here = server.world_mut(world).expect("it is there").ecs().resource::<Asked>();
        asked.crossings += here.crossings;
        (0..2).for_each(|index| asked.buys[index] += here.buys[index]);
        (0..2).for_each(|index| asked.cheers[index] += here.cheers[index]);
    }
    assert!(asked.crossings > 40, "{}", asked.crossings);
    assert_eq!(asked.buys[1], 0, "of {} here", asked.buys[0]);
    assert!(asked.buys[0] > 10 * asked.crossings, "{} and {}", asked.buys[0], asked.crossings);
    // At least two in the round trip of 120 ms after each crossing, at 20 a second; the last may be on their way.
    let at_least = 2 * (asked.crossings - 3);
    assert!(stale >= at_least, "{stale} after {} crossings", asked.crossings);
    assert!(asked.cheers[1] >= at_least, "{:?} after {} crossings", asked.cheers, asked.crossings);
    assert_eq!(refused, 0);
}
