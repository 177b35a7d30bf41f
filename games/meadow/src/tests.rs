//! What the game promises: tried on one world, by its systems alone, and on a whole system with bots and a bad network.

use throng::{
    Server,
    net::transport::Impairment,
    persistence::{Embedded, disk::MemoryDisk},
    platform::time::Nanos,
    prelude::*,
    world::testing::{TestWorld, goes_on_alike_after_a_load},
};
use throng_simulator::{Simulation, SimulationSettings};

use crate::{
    bot::Bot,
    flowers::Flower,
    players::{Player, SPEED},
    protocol::{Basket, GoThrough, Pick, Position, Walk, protocol},
    sheep::Sheep,
    worlds::{self, Barn, FIELD_DOOR, Field, Plan},
};

const PLAN: Plan = Plan { sheep: 20, are_asleep: false, seed: 1 };
const CLIENT: ClientKey = ClientKey(7);
const ELSEWHERE: WorldId = WorldId::new(5, 0);

/// A field with one player in it, who has just come.
fn field() -> TestWorld {
    let mut world = TestWorld::new(Field { plan: PLAN, barn: ELSEWHERE }, &protocol().schema(), 1);
    world.arrive(CLIENT);
    world.tick();
    world
}

fn place_all<T: Component>(world: &mut TestWorld, place: Position) {
    let mut places = world.ecs_mut().query_filtered::<&mut Position, With<T>>();
    places.iter_mut(world.ecs_mut()).for_each(|mut own| *own = place);
}

fn places<T: Component>(world: &mut TestWorld) -> Vec<Position> {
    let mut places = world.ecs_mut().query_filtered::<&Position, With<T>>();
    places.iter(world.ecs()).copied().collect()
}

#[test]
fn a_player_walks_as_its_client_wants() {
    let mut world = field();
    world.input(CLIENT, &Walk { x: 127, z: 0 });
    world.ticks(20);
    let place = places::<Player>(&mut world)[0];
    assert!((place.x - 6.0).abs() < 0.01 && place.z == FIELD_DOOR.z, "{place:?} after a second at 6 m/s");
}

#[test]
fn an_operator_changes_how_fast_players_walk() {
    let mut world = field();
    world.tune(&SPEED, 3.0);
    world.input(CLIENT, &Walk { x: 127, z: 0 });
    world.ticks(20);
    let place = places::<Player>(&mut world)[0];
    assert!((place.x - 3.0).abs() < 0.01, "{place:?} after a second at 3 m/s");
}

#[test]
fn an_operator_lets_flowers_grow() {
    let mut world = field();
    let before = places::<Flower>(&mut world).len();
    let told = world.command("flowers.sow 5").map(|mut table| table.json().to_owned());
    assert_eq!(told, Ok(format!("[{{\"flowers\":{}}}]", before + 5)));
    assert_eq!(places::<Flower>(&mut world).len(), before + 5);
    let refused = world.command("flowers.sow 500").map(|_| ());
    assert_eq!(refused, Err("count: 500 is too high; it may be 1 to 100".to_owned()));
}

#[test]
fn a_flower_within_reach_is_picked_and_the_player_told() {
    let mut world = field();
    place_all::<Flower>(&mut world, Position { x: -50.0, z: -50.0 });
    world.request(CLIENT, &Pick);
    world.tick();
    assert_eq!(world.told::<Basket>(CLIENT), [], "all are out of reach");
    place_all::<Flower>(&mut world, FIELD_DOOR);
    world.request(CLIENT, &Pick);
    world.tick();
    assert_eq!(world.told::<Basket>(CLIENT), [Basket { flowers: 1 }]);
    assert_eq!(world.counted().of("flowers.picked"), 1);
}

#[test]
fn sheep_run_from_players() {
    let mut world = field();
    place_all::<Sheep>(&mut world, Position { x: 1.0, z: 20.0 });
    world.ticks(40);
    let nearest_m = |place: &Position| place.distance_m(&FIELD_DOOR);
    assert!(places::<Sheep>(&mut world).iter().all(|place| nearest_m(place) > 4.0));
}

#[test]
fn who_goes_through_the_door_is_gone_here_and_comes_with_its_basket_there() {
    let mut world = field();
    place_all::<Player>(&mut world, Position { x: 50.0, z: 50.0 });
    world.request(CLIENT, &GoThrough);
    world.tick();
    assert_eq!(places::<Player>(&mut world).len(), 1, "the door is far");
    place_all::<Player>(&mut world, FIELD_DOOR);
    world.request(CLIENT, &GoThrough);
    world.tick();
    assert_eq!((places::<Player>(&mut world), world.counted().of("journeys")), (vec![], 1));

    let mut barn = TestWorld::new(Barn, &protocol().schema(), 1);
    barn.arrive_from(CLIENT, ELSEWHERE, &Basket { flowers: 3 }).expect("the barn takes baskets");
    barn.tick();
    assert_eq!(barn.told::<Basket>(CLIENT), [Basket { flowers: 3 }]);
}

/// What is not registered for it would be lost, and named here.
#[test]
fn worlds_go_on_alike_when_they_are_made_again_after_a_panic() {
    let play = |world: &mut TestWorld, tick: u32| {
        if tick == 5 {
            world.arrive(CLIENT);
        } else if tick > 10 {
            world.input(CLIENT, &Walk { x: (tick % 127) as i8, z: 30 });
            world.request(CLIENT, &Pick);
        }
    };
    let field = || TestWorld::new(Field { plan: PLAN, barn: ELSEWHERE }, &protocol().schema(), 1);
    let barn = || TestWorld::new(Barn, &protocol().schema(), 1);
    goes_on_alike_after_a_load(field, 100, 200, play);
    goes_on_alike_after_a_load(barn, 100, 200, play);
}

/// A second server on the same disk is the restart.
#[test]
fn who_comes_back_after_a_restart_has_its_basket() {
    let disk = MemoryDisk::default();
    let settings = SimulationSettings::new(protocol().schema(), 1);
    let start = || {
        let store = Embedded::on(Box::new(disk.clone())).expect("a store");
        let build = |server: &mut Server| {
            server.save_in(Box::new(store))?;
            worlds::open(server, &PLAN)
        };
        let (mut simulation, ()) = Simulation::new(&settings, build).expect("worlds");
        (0..8).for_each(|_| _ = simulation.join(Box::new(Bot::default())));
        simulation
    };
    let mut simulation = start();
    simulation.run_for(60.0);
    let saved = simulation.server_mut().control().save_now();
    assert!(simulation.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is on disk");
    let before = flowers(&mut simulation);
    drop(simulation);

    let mut simulation = start();
    simulation.run_for(3.0);
    assert_eq!(simulation.server_mut().count_of("saves.players_loaded"), 8);
    assert!(before > 0 && flowers(&mut simulation) >= before, "{before} flowers were in their baskets");
}

/// All that is in baskets.
fn flowers(simulation: &mut Simulation) -> u32 {
    let server = simulation.server_mut();
    let worlds: Vec<WorldId> = server.worlds().map(|(id, ..)| id).collect();
    let mut flowers = 0;
    for world in worlds {
        let Some(world) = server.world_mut(world) else { continue };
        let mut baskets = world.ecs_mut().query::<&Basket>();
        flowers += baskets.iter(world.ecs()).map(|basket| u32::from(basket.flowers)).sum::<u32>();
    }
    flowers
}

/// The server that ships and real clients, on a virtual clock: a minute takes about a second.
#[test]
fn bots_play_over_a_bad_network_and_see_nothing_wrong() {
    let impairment = Impairment { loss: 0.05, delay: Nanos::from_millis(40), ..Impairment::NONE };
    let settings = SimulationSettings { impairment, ..SimulationSettings::new(protocol().schema(), 1) };
    let (mut simulation, ()) = Simulation::new(&settings, |server| worlds::open(server, &PLAN)).expect("worlds");
    for _ in 0..8 {
        simulation.join(Box::new(Bot::default()));
    }
    simulation.run_for(60.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects, totals.state_errors), (8, 0, 0), "{totals:#?}");
    assert!(totals.counter("flowers") > 0 && totals.counter("journeys") > 0, "{totals:#?}");
}
