//! The promise: who travels to a world that is no more, or to one that cannot read what it carries, is back where it
//! was, with all of it, and stays connected; and the game and the client are told.
//!
//! A hero tries again and again to leave a field for three worlds that do not take it.

use std::sync::{Arc, OnceLock};

use bevy_ecs::prelude::*;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{ids::WorldId, prelude::*, server::ServerError};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_pack::{HasSchema, List, Pack, Text};
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

/// Where the hero wants to go.
#[derive(Pack)]
#[pack(name = "test.go")]
struct Go(u8);

impl ClientRequest for Go {
    const PER_S_MAX: u16 = 100;
}

#[derive(Debug, Clone, PartialEq, Pack)]
#[pack(name = "test.hero", version = 2)]
struct Hero {
    name: Text<16>,
    #[pack(max = 100)]
    health: u8,
    #[pack(since = 2, default)]
    items: List<u16, 8>,
}

/// What a program knew that has not been brought up to date.
mod first_version {
    use super::*;

    #[derive(Pack)]
    #[pack(name = "test.hero")]
    pub struct Hero {
        pub name: Text<16>,
        #[pack(max = 100)]
        pub health: u8,
    }
}

#[derive(Pack)]
#[pack(name = "test.parcel")]
struct Parcel(u8);

fn ada() -> Hero {
    Hero { name: Text::new("Ada").unwrap(), health: 81, items: vec![7, 40_000].try_into().unwrap() }
}

type Destinations = Arc<OnceLock<[WorldId; 3]>>;

struct Field(Destinations);

#[derive(Resource)]
struct Roads(Destinations);

/// Who is here, and what came of the journeys.
#[derive(Resource, Default)]
struct Heroes {
    here: Vec<(ClientKey, Hero)>,
    sent: [u32; 3],
    came_back: u32,
    /// Why, in order.
    refused: Vec<RefusedTravel>,
}

impl WorldKind for Field {
    fn name(&self) -> &str {
        "field"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().request::<Go>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.accept_transfers::<Hero>();
        world
            .insert_resource(Roads(self.0.clone()))
            .init_resource::<Heroes>()
            .add_systems(Update, (welcome, set_out).chain());
    }
}

fn welcome(arrivals: Res<Arrivals>, mut heroes: ResMut<Heroes>) {
    for Arrival { client, from, transfer, refused, .. } in &arrivals.0 {
        assert_eq!(*from, None, "nobody comes here from another world");
        assert_eq!(refused.is_some(), transfer.is_some(), "who is back is told why, and nobody else is");
        heroes.came_back += u32::from(transfer.is_some());
        heroes.refused.extend(*refused);
        let hero = transfer.as_ref().map_or_else(ada, |transfer| transfer.read::<Hero>().expect("checked at the door"));
        heroes.here.push((*client, hero));
    }
}

fn set_out(wishes: Requests<Go>, roads: Res<Roads>, mut heroes: ResMut<Heroes>, mut outbox: ResMut<Outbox>) {
    for (sender, &Go(number)) in wishes.read() {
        let Some(index) = heroes.here.iter().position(|(client, _)| *client == sender.client) else { continue };
        let (client, hero) = heroes.here.swap_remove(index);
        let number = usize::from(number);
        outbox.travel(client, roads.0.get().expect("known before the first frame")[number], &hero).unwrap();
        heroes.sent[number] += 1;
    }
}

/// A world that takes travellers with a `T`.
struct Inn<T>(std::marker::PhantomData<fn(T)>);

#[derive(Resource, Default)]
struct GuestsCount(usize);

impl<T: HasSchema + 'static> WorldKind for Inn<T> {
    fn name(&self) -> &str {
        "inn"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(30)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.accept_transfers::<T>().init_resource::<GuestsCount>();
        world.add_systems(Update, |arrivals: Res<Arrivals>, mut guests: ResMut<GuestsCount>| {
            guests.0 += arrivals.0.len()
        });
    }
}

struct Wanderer;

impl Behaviour for Wanderer {
    fn think(&mut self, _: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        // Refused before the first world, and unheard on the way.
        let _ = client.request(&Go(rng.random_range(0..3)));
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

#[test]
fn who_is_not_taken_is_back_with_everything() {
    let destinations = Destinations::default();
    let settings = SimulationSettings::new(Protocol::new().request::<Go>().schema(), 4);
    let build = |server: &mut throng::Server| -> Result<WorldId, ServerError> {
        let field = server.add_kind(Field(destinations.clone()))?;
        let parcels = server.add_kind(Inn::<Parcel>(Default::default()))?;
        let old = server.add_kind(Inn::<first_version::Hero>(Default::default()))?;
        let gone = server.add_kind(Inn::<Hero>(Default::default()))?;
        // Newcomers go into the first world.
        let field = server.create_world(field, 4)?;
        let worlds = [server.create_world(parcels, 1)?, server.create_world(old, 2)?, server.create_world(gone, 3)?];
        drop(server.control().retire_world(worlds[2]));
        destinations.set(worlds).expect("set once");
        Ok(field)
    };
    let (mut simulation, field) = Simulation::new(&settings, build).unwrap();
    (0..10).for_each(|_| _ = simulation.join(Box::new(Wanderer)));
    simulation.run_for(60.0);

    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.protocol_errors), (10, 0, 0), "{totals:#?}");
    let [parcels, old, gone] = *destinations.get().expect("set above");
    let told: u64 = simulation.players().iter().map(|player| player.client().stats().travels_refused).sum();
    let server = simulation.server_mut();
    assert!(server.world_mut(gone).is_none(), "it was retired");
    for inn in [parcels, old] {
        assert_eq!(server.world_mut(inn).expect("it is there").ecs().resource::<GuestsCount>().0, 0);
    }
    let [refused, unreadable] =
        ["server.travels_refused", "server.transfers_refused"].map(|name| server.count_of(name));
    let heroes = server.world_mut(field).expect("it is there").ecs().resource::<Heroes>();
    println!("{:?} sent, {} came back", heroes.sent, heroes.came_back);
    assert!(heroes.sent.iter().all(|sent| *sent > 100), "{:?}", heroes.sent);
    // Some are on their way just now.
    assert!(heroes.came_back + 10 >= heroes.sent.iter().sum());
    for RefusedTravel { to, reason } in &heroes.refused {
        let is_gone = *to == gone;
        assert!(is_gone || [parcels, old].contains(to), "{to}");
        let expect = if is_gone { TravelRefusal::NoSuchWorld } else { TravelRefusal::TransferUnreadable };
        assert_eq!(*reason, expect, "{to}");
    }
    let came_back = u64::from(heroes.came_back);
    assert!((came_back..=came_back + 10).contains(&(refused + unreadable)), "{refused} + {unreadable}");
    assert!(told <= came_back && told + 20 >= came_back, "clients hear of {told}");
    assert!(heroes.here.iter().all(|(_, hero)| *hero == ada()), "{:?}", heroes.here);
}
