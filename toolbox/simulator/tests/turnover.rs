//! The promise: worlds come and go while a server runs, and nobody else notices. Ids are never confused, what is sent
//! to a world that is no more is counted, and who was on the way there keeps what he carries.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    Server,
    directory::{Directory, Placement},
    ids::WorldId,
    lifecycle::{NewWorld, Pending, WorldError},
    prelude::*,
    server::ServerControl,
};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::{Client, DisconnectReason};
use throng_net::protocol::{ClientId, UserData};
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::{Replicate, ecs::Replicated};
use throng_simulator::{Simulation, SimulationSettings};

#[derive(Component, Replicate, Clone, Copy)]
struct Hat(u8);

/// What a player carries.
#[derive(Debug, Clone, PartialEq, Pack)]
#[pack(name = "test.bag")]
struct Bag {
    coins: u32,
}

/// What only another build would carry.
#[derive(Debug, Clone, PartialEq, Pack)]
#[pack(name = "test.strange_bag")]
struct StrangeBag {
    pearls: u64,
}

#[derive(Debug, Pack)]
#[pack(name = "test.hello")]
struct Hello;

/// Who is here, and what they carry.
#[derive(Resource, Default)]
struct Here(Vec<(ClientKey, Bag)>);

/// What a test wants this world to do in its next tick.
#[derive(Resource, Default)]
struct Wish(Option<WishKind>);

enum WishKind {
    Send(WorldId),
    SendStrange(WorldId),
    Greet(WorldId),
    Panic,
}

/// Messages that came.
#[derive(Resource, Default)]
struct Heard(usize);

struct Hall {
    rate: Hertz,
    name: &'static str,
}

impl WorldKind for Hall {
    fn name(&self) -> &str {
        self.name
    }

    fn tick_rate(&self) -> Hertz {
        self.rate
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Hat>().input::<Nod>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        let begins_with = world.parameters::<Bag>().map(|bag| bag.expect("a bag"));
        world.accept_transfers::<Bag>();
        world.init_resource::<Here>().init_resource::<Wish>().init_resource::<Heard>();
        world.insert_resource(Floor(begins_with.map_or(0, |bag| bag.coins)));
        world.add_systems(Update, (enter, obey).chain());
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

/// Coins that lie on the floor from the start: what the world was asked for with.
#[derive(Resource)]
struct Floor(u32);

fn enter(
    arrivals: Res<Arrivals>,
    departures: Res<Departures>,
    messages: Res<WorldMessages>,
    mut here: ResMut<Here>,
    mut heard: ResMut<Heard>,
    mut outbox: ResMut<Outbox>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let bag = arrival.transfer.as_ref().map_or(Bag { coins: 7 }, |transfer| transfer.read().expect("checked"));
        here.0.push((arrival.client, bag));
        let player = commands.spawn((Replicated::default(), Hat(1))).id();
        outbox.set_player(arrival.client, player);
    }
    here.0.retain(|(client, _)| !departures.0.contains(client));
    heard.0 += messages.0.iter().filter(|message| message.is::<Hello>()).count();
}

fn obey(tick: Res<TickInfo>, mut wish: ResMut<Wish>, mut here: ResMut<Here>, mut outbox: ResMut<Outbox>) {
    match wish.0.take() {
        Some(WishKind::Send(to)) => {
            for (client, bag) in here.0.drain(..) {
                outbox.travel(client, to, &bag).unwrap();
            }
        }
        Some(WishKind::SendStrange(to)) => {
            let (client, bag) = here.0.remove(0);
            outbox.travel(client, to, &StrangeBag { pearls: bag.coins.into() }).unwrap();
        }
        Some(WishKind::Greet(to)) => outbox.post(tick.world, to, &Hello).unwrap(),
        Some(WishKind::Panic) => panic!("a bug in a game"),
        None => {}
    }
}

#[derive(Pack)]
#[pack(name = "test.nod")]
struct Nod;

impl ClientInput for Nod {}

struct Quiet;

impl Behaviour for Quiet {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &Nod);
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

/// Who has left and which worlds have ended, as a directory is told.
type Told = Arc<Mutex<(Vec<ClientId>, Vec<WorldId>)>>;

/// Everybody begins in the lobby, while it is open.
struct Register {
    lobby: WorldId,
    told: Told,
    is_open: Arc<AtomicBool>,
}

impl Directory for Register {
    fn place(&mut self, _: ClientId, _: &UserData) -> Placement {
        if self.is_open.load(Ordering::Relaxed) { Placement::World(self.lobby) } else { Placement::Refuse("closed") }
    }

    fn left(&mut self, client_id: ClientId) {
        self.told.lock().unwrap().0.push(client_id);
    }

    fn world_ended(&mut self, world: WorldId) {
        self.told.lock().unwrap().1.push(world);
    }
}

/// A server with one hall at 20 Hz, one at 128 Hz, and players in the first.
struct House {
    simulation: Simulation,
    control: ServerControl,
    hall: WorldKindId,
    lobby: WorldId,
    fast: WorldId,
}

impl House {
    fn with_players(players: usize) -> Self {
        let schema = Protocol::new().component::<Hat>().input::<Nod>().schema();
        let settings = SimulationSettings { hash: true, ..SimulationSettings::new(schema, 5) };
        let (mut simulation, (hall, lobby, fast)) = Simulation::new(&settings, |server: &mut Server| {
            let hall = server.add_kind(Hall { rate: Hertz(20), name: "hall" })?;
            let fast = server.add_kind(Hall { rate: Hertz(128), name: "fast" })?;
            Ok((hall, server.create_world(hall, 1)?, server.create_world(fast, 2)?))
        })
        .unwrap();
        (0..players).for_each(|_| _ = simulation.join(Box::new(Quiet)));
        simulation.run_for(3.0);
        assert_eq!(simulation.totals().playing, players as u64);
        let control = simulation.server_mut().control();
        Self { simulation, control, hall, lobby, fast }
    }

    fn create(&self) -> Pending<WorldId> {
        self.control.create_world(NewWorld::new(self.hall, 3))
    }

    /// Runs frames until a request is answered.
    fn answer<T>(&mut self, pending: &Pending<T>) -> Result<T, WorldError> {
        for _ in 0..1_000 {
            self.simulation.step();
            if let Some(answer) = pending.try_take() {
                return answer;
            }
        }
        panic!("nobody answered");
    }

    fn wish(&mut self, world: WorldId, wish: WishKind) {
        let world = self.simulation.server_mut().world_mut(world).expect("it is there");
        world.ecs_mut().resource_mut::<Wish>().0 = Some(wish);
    }

    fn bags(&mut self, world: WorldId) -> Vec<Bag> {
        let world = self.simulation.server_mut().world_mut(world).expect("it is there");
        world.ecs().resource::<Here>().0.iter().map(|(_, bag)| bag.clone()).collect()
    }

    fn counter(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }
}

#[test]
fn a_world_that_is_asked_for_ticks_at_its_own_rate_from_its_own_start() {
    let mut house = House::with_players(1);
    let before = house.simulation.hashes().len();
    let asked = Bag { coins: 99 };
    let pending = house.control.create_world(NewWorld::new(house.hall, 3).with(&asked).unwrap());
    let world = house.answer(&pending).unwrap();
    let floor = house.simulation.server_mut().world_mut(world).unwrap().ecs().resource::<Floor>().0;
    assert_eq!(floor, 99, "what it was asked for with");
    house.simulation.run_for(10.0);
    let ticks = |world: WorldId| house.simulation.hashes()[before..].iter().filter(|hash| hash.world == world).count();
    assert!((199..=201).contains(&ticks(world)), "20 Hz on the grid of 128 Hz: {}", ticks(world));
    assert!((1_280..1_290).contains(&ticks(house.fast)), "{}", ticks(house.fast));
    assert!(house.simulation.server_mut().ticks_missed_by_world().iter().all(|&missed| missed == 0));
}

#[test]
fn thousands_of_worlds_come_and_go_and_no_id_is_confused() {
    let mut house = House::with_players(20);
    let worlds_before = house.simulation.server_mut().worlds_count();
    let mut seen = HashSet::from([house.lobby, house.fast]);
    for _ in 0..20 {
        let asked: Vec<_> = (0..100).map(|_| house.create()).collect();
        let made: Vec<WorldId> = asked.iter().map(|pending| house.answer(pending).unwrap()).collect();
        assert!(made.iter().all(|world| seen.insert(*world)), "an id came twice");
        assert!(made.iter().all(|world| world.index() < 102), "places are used again");
        let retired: Vec<_> = made.iter().map(|world| house.control.retire_world(*world)).collect();
        retired.iter().for_each(|pending| house.answer(pending).unwrap());
    }
    assert_eq!(house.simulation.server_mut().worlds_count(), worlds_before);
    assert_eq!((house.counter("server.worlds_created"), house.counter("server.worlds_retired")), (2_000, 2_000));
    assert!(house.simulation.server_mut().ticks_missed_by_world().iter().all(|&missed| missed == 0));
    let totals = house.simulation.totals();
    assert_eq!((totals.playing, totals.state_errors, totals.protocol_errors), (20, 0, 0), "{totals:#?}");
}

#[test]
fn a_message_to_a_world_that_is_no_more_is_counted_and_reaches_nobody() {
    let mut house = House::with_players(1);
    let pending = house.create();
    let old = house.answer(&pending).unwrap();
    let pending = house.control.retire_world(old);
    house.answer(&pending).unwrap();
    let pending = house.create();
    let new = house.answer(&pending).unwrap();
    assert_eq!((old.index(), old == new), (new.index(), false), "the same place");
    house.wish(house.lobby, WishKind::Greet(old));
    house.simulation.run_for(0.2);
    house.wish(house.lobby, WishKind::Greet(new));
    house.simulation.run_for(0.2);
    let heard = house.simulation.server_mut().world_mut(new).unwrap().ecs().resource::<Heard>().0;
    assert_eq!((heard, house.counter("world.messages_undeliverable")), (1, 1));
    let pending = house.control.retire_world(old);
    assert_eq!(house.answer(&pending), Err(WorldError::NoSuchWorld(old)));
}

#[test]
fn who_is_sent_to_a_world_that_is_no_more_stays_with_all_he_carries() {
    let mut house = House::with_players(2);
    let pending = house.create();
    let world = house.answer(&pending).unwrap();
    let pending = house.control.retire_world(world);
    house.answer(&pending).unwrap();
    house.wish(house.lobby, WishKind::Send(world));
    house.simulation.run_for(1.0);
    assert_eq!(house.bags(house.lobby), [Bag { coins: 7 }, Bag { coins: 7 }]);
    assert_eq!((house.counter("server.travels_refused"), house.simulation.totals().playing), (2, 2));
}

#[test]
fn who_carries_what_a_world_cannot_read_is_turned_back_and_told_apart() {
    let mut house = House::with_players(1);
    let pending = house.create();
    let world = house.answer(&pending).unwrap();
    house.wish(house.lobby, WishKind::SendStrange(world));
    house.simulation.run_for(1.0);
    // The lobby cannot read it either: nobody has him, and he is told.
    assert_eq!(house.counter("server.transfers_refused"), 2);
    assert_eq!((house.bags(world), house.bags(house.lobby)), (vec![], vec![]));
}

#[test]
fn clients_of_a_world_that_is_retired_are_told_and_free_their_places() {
    let mut house = House::with_players(3);
    let pending = house.create();
    let world = house.answer(&pending).unwrap();
    house.wish(house.lobby, WishKind::Send(world));
    house.simulation.run_for(1.0);
    assert_eq!(house.bags(world).len(), 3);
    let pending = house.control.retire_world(world);
    house.answer(&pending).unwrap();
    assert_eq!((house.counter("server.disconnects"), house.simulation.server_mut().worlds_count()), (3, 2));
    house.simulation.run_for(2.0);
    assert!(house.simulation.players().iter().all(|player| player.end().is_some() || player.was_in_world()));
}

/// Three players in a world that panics, and one in the lobby; the directory takes those three in again, or does not.
/// Gives how their connections ended.
fn panic_beside_the_lobby(takes_in: bool) -> Vec<Option<DisconnectReason>> {
    let mut house = House::with_players(3);
    let (lobby, told, is_open) = (house.lobby, Told::default(), Arc::new(AtomicBool::new(true)));
    house.simulation.server_mut().set_directory(Register { lobby, told: told.clone(), is_open: is_open.clone() });
    let pending = house.create();
    let world = house.answer(&pending).unwrap();
    house.wish(lobby, WishKind::Send(world));
    house.simulation.run_for(1.0);
    // Comes later, and stays in the lobby.
    house.simulation.join(Box::new(Quiet));
    house.simulation.run_for(1.0);
    assert_eq!((house.bags(world).len(), house.bags(lobby).len()), (3, 1));

    is_open.store(takes_in, Ordering::Relaxed);
    house.wish(world, WishKind::Panic);
    house.simulation.run_for(0.5);
    let (placed, gone) = if takes_in { (3, 0) } else { (0, 3) };
    assert_eq!((house.counter("server.worlds_parked"), house.counter("server.disconnects")), (1, gone));
    assert_eq!((house.counter("server.clients_placed_again"), house.bags(lobby).len()), (placed, 1 + placed as usize));
    let (mut left, ended) = std::mem::take(&mut *told.lock().unwrap());
    left.sort_unstable();
    assert_eq!((left, ended), (vec![ClientId(1), ClientId(2), ClientId(3)], vec![world]), "each once");
    let ends = house.simulation.players().iter().map(|player| player.end()).collect();

    // Nobody gets there any more, newcomers come in, and the others have missed nothing.
    is_open.store(true, Ordering::Relaxed);
    house.wish(lobby, WishKind::Send(world));
    house.simulation.run_for(0.5);
    (0..3).for_each(|_| _ = house.simulation.join(Box::new(Quiet)));
    house.simulation.run_for(3.0);
    assert_eq!((house.bags(lobby).len(), house.counter("server.travels_refused")), (4 + placed as usize, 1 + placed));
    let totals = house.simulation.totals();
    assert_eq!((totals.playing, totals.state_errors, totals.protocol_errors), (4 + placed, 0, 0), "{totals:#?}");
    assert!(house.simulation.server_mut().ticks_missed_by_world().iter().all(|&missed| missed == 0));
    ends
}

#[test]
fn clients_of_a_world_that_panics_go_on_where_the_directory_places_them() {
    assert_eq!(panic_beside_the_lobby(true), [None; 4]);
}

#[test]
fn clients_of_a_world_that_panics_are_told_if_the_directory_has_no_place_for_them() {
    let closed = Some(DisconnectReason::ClosedByServer);
    assert_eq!(panic_beside_the_lobby(false), [closed, closed, closed, None], "by a goodbye, and not by silence");
}

/// Whoever comes in the very frame in which a world's end is asked for once waited in it for ever.
#[test]
fn a_world_that_ends_while_clients_are_on_their_way_ends_and_each_is_at_home_or_told() {
    for frames in 0..16 {
        let mut house = House::with_players(3);
        let pending = house.create();
        let world = house.answer(&pending).unwrap();
        house.wish(house.lobby, WishKind::Send(world));
        house.simulation.run_for(f64::from(frames) / 60.0);
        let pending = house.control.retire_world(world);
        house.answer(&pending).unwrap();
        house.simulation.run_for(0.5);
        let told = house.counter("server.disconnects") as usize;
        assert_eq!(house.bags(house.lobby).len() + told, 3, "after {frames} frames");
        assert_eq!(house.simulation.server_mut().worlds_count(), 2);
    }
}

#[test]
fn what_cannot_be_made_is_answered_with_a_reason() {
    let mut house = House::with_players(0);
    let pending = house.control.create_world(NewWorld::new(WorldKindId(77), 1));
    assert_eq!(house.answer(&pending), Err(WorldError::NoSuchKind(WorldKindId(77))));
    // A kind that panics on what it is asked for with.
    let pending = house.control.create_world(NewWorld::new(house.hall, 1).with(&StrangeBag { pearls: 1 }).unwrap());
    assert_eq!(house.answer(&pending), Err(WorldError::Panicked("hall".into())));
    let pending = house.create();
    assert!(house.answer(&pending).is_ok(), "others are made all the same");
}
