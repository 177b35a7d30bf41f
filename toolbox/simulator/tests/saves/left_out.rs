//! What cannot be packed: one player who has what their type does not allow costs nobody else a save, and what they gave away is
//! not theirs again after a death; and a world that has it lets nobody out with what would be in two saves.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{
    directory::Everybody,
    lifecycle::NewWorld,
    prelude::*,
    server::{Server, ServerError},
};
use throng_bots::Behaviour;
use throng_client::Client;
use throng_net::protocol::ClientId;
use throng_pack::envelope;
use throng_persistence::{
    Embedded, Key, Kind, Reads, Store,
    conservation::{self, Count},
    disk::MemoryDisk,
};
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

const PLAYERS: usize = 3;
const PERIOD_S: u32 = 1;
/// What everybody comes with.
const COINS_AT_FIRST: u32 = 10;
const COIN: u32 = 1;
/// Of the simulator's first player; the others follow.
const CLIENT_ID_FIRST: usize = 1;

/// What a player has. A place that is no number cannot be saved.
#[derive(Debug, Clone, Copy, PartialEq, Component, Pack)]
#[pack(name = "hall.guest")]
struct Guest {
    age_ticks: u32,
    x_m: f32,
    coins: u32,
}

/// Who a guest is, whatever becomes of their connection.
#[derive(Debug, Clone, Copy, Component)]
struct Name(ClientId);

/// While it is set the hall cannot be saved.
#[derive(Resource, Default)]
struct IsCursed(bool);

struct HallState;

impl WorldState for HallState {
    fn save(&self, ecs: &mut World, _: &[Entity]) -> Result<Vec<u8>, String> {
        if ecs.resource::<IsCursed>().0 { Err("it is cursed".into()) } else { Ok(vec![1]) }
    }

    fn load(&self, _: &mut World, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

/// Why somebody who was sent away is back, in the order in which they came.
#[derive(Resource, Clone, Default)]
struct Refused(Arc<Mutex<Vec<TravelRefusal>>>);

fn welcome(arrivals: Res<Arrivals>, refused: Res<Refused>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for Arrival { client, client_id, transfer, refused: why, .. } in &arrivals.0 {
        refused.0.lock().unwrap().extend(why.map(|why| why.reason));
        let guest = transfer.as_ref().map_or_else(
            || {
                outbox.items_created(COIN, COINS_AT_FIRST.into());
                Guest { age_ticks: 0, x_m: 0.0, coins: COINS_AT_FIRST }
            },
            |transfer| transfer.read().unwrap(),
        );
        let entity = commands.spawn((Replicated::default(), Name(*client_id), guest)).id();
        outbox.set_player(*client, entity);
    }
}

fn bury(departures: Res<Departures>, inbox: Res<Inbox>, mut commands: Commands) {
    for client in &departures.0 {
        inbox.players().entity(*client).into_iter().for_each(|entity| commands.entity(entity).despawn());
    }
}

fn grow_old(mut guests: Query<&mut Guest>) {
    guests.iter_mut().for_each(|mut guest| guest.age_ticks += 1);
}

struct Hall {
    refused: Refused,
}

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }

    fn build(&self, world: &mut WorldBuilder) {
        let pack =
            |ecs: &mut World, player: PlayerToSave| player.entity.and_then(|entity| ecs.get::<Guest>(entity)).copied();
        world
            .insert_resource(self.refused.clone())
            .init_resource::<IsCursed>()
            .add_systems(Update, (bury, welcome, grow_old).chain())
            .save_players(pack)
            .save_world(HallState);
    }
}

struct Idle;

impl Behaviour for Idle {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

struct Scene {
    simulation: Simulation,
    worlds: [WorldId; 2],
    refused: Refused,
    reads: Arc<dyn Reads>,
}

impl Scene {
    /// Two halls; everybody is in the first and has been saved.
    fn new() -> Scene {
        let mut scene = Scene::on(&MemoryDisk::default());
        assert_eq!(scene.let_in(), PLAYERS);
        scene.run_periods(2);
        scene
    }

    /// Two halls, of what is on this disk, and nobody in them.
    fn on(disk: &MemoryDisk) -> Scene {
        let mut settings = SimulationSettings::new(Protocol::new().schema(), 1);
        settings.server.saves.period_s = PERIOD_S;
        let store = Embedded::on(Box::new(disk.clone())).unwrap();
        let (reads, refused) = (store.reader(), Refused::default());
        let of_kind = refused.clone();
        let build = |server: &mut Server| -> Result<[WorldId; 2], ServerError> {
            server.save_in(Box::new(store))?;
            let kind = server.add_kind(Hall { refused: of_kind })?;
            let worlds = [1, 2].map(|id| server.create_world_as(NewWorld::new(kind, id).saved_as(id)).unwrap());
            server.set_directory(Everybody(worlds[0]));
            Ok(worlds)
        };
        let (simulation, worlds) = Simulation::new(&settings, build).unwrap();
        Scene { simulation, worlds, refused, reads }
    }

    /// Everybody wants in; how many play.
    fn let_in(&mut self) -> usize {
        (0..PLAYERS).for_each(|_| _ = self.simulation.join(Box::new(Idle)));
        self.run_periods(3);
        self.guests(0)
    }

    fn run_periods(&mut self, periods: u32) {
        self.simulation.run_for(f64::from(periods * PERIOD_S) + 0.5);
    }

    fn ecs(&mut self, hall: usize) -> &mut World {
        self.simulation.server_mut().world_mut(self.worlds[hall]).unwrap().ecs_mut()
    }

    fn curse(&mut self, is_cursed: bool) {
        self.ecs(0).resource_mut::<IsCursed>().0 = is_cursed;
    }

    /// Client and entity of somebody in a hall.
    fn somebody(&mut self, hall: usize) -> (ClientKey, Entity) {
        let players = self.ecs(hall).resource::<Inbox>().players();
        players.iter().find_map(|(client, entity)| Some((client, entity?))).unwrap()
    }

    fn guests(&mut self, hall: usize) -> usize {
        let ecs = self.ecs(hall);
        ecs.query::<&Guest>().iter(ecs).count()
    }

    /// Somebody whose place is no number from now on, and who gives all coins to somebody else.
    fn spoil_one_who_gives(&mut self) -> ClientId {
        let (client, giver) = self.somebody(0);
        let ecs = self.ecs(0);
        let (_, taker) = ecs.resource::<Inbox>().players().iter().find(|(other, _)| *other != client).unwrap();
        let mut given = ecs.get_mut::<Guest>(giver).unwrap();
        given.x_m = f32::NAN;
        let coins = std::mem::take(&mut given.coins);
        ecs.get_mut::<Guest>(taker.unwrap()).unwrap().coins += coins;
        ecs.get::<Name>(giver).unwrap().0
    }

    /// Coins of all who are in the first hall.
    fn coins(&mut self) -> u32 {
        let ecs = self.ecs(0);
        ecs.query::<&Guest>().iter(ecs).map(|guest| guest.coins).sum()
    }

    fn send_to_other(&mut self) {
        let (client, entity) = self.somebody(0);
        let (there, ecs) = (self.worlds[1], self.ecs(0));
        let guest = *ecs.get::<Guest>(entity).unwrap();
        ecs.resource_mut::<Outbox>().travel(client, there, &guest).unwrap();
        ecs.despawn(entity);
    }

    /// All that is on the disk, counted.
    fn count_saved(&self) -> Count {
        let coins_of = |key: Key, bytes: &[u8], items: &mut dyn FnMut(u32, i64)| {
            if key.kind == Kind::Player {
                items(COIN, envelope::read::<Guest>(&bytes[10..]).unwrap().coins.into());
            }
        };
        conservation::check(&*self.reads, coins_of).unwrap()
    }

    /// The ages as of which they are saved, and the number of the hall in which each is.
    fn saved(&self) -> Vec<(u64, u32)> {
        let mut saved = Vec::new();
        self.reads
            .range(Key::player(0)..=Key::player(u64::MAX), &mut |_, record| {
                let bytes = record.unwrap().value;
                let guest: Guest = envelope::read(&bytes[10..]).unwrap();
                saved.push((u64::from_le_bytes(bytes[2..10].try_into().unwrap()), guest.age_ticks));
            })
            .unwrap();
        saved
    }

    fn count(&mut self, name: &str) -> u64 {
        self.simulation.server_mut().count_of(name)
    }
}

#[test]
fn a_player_who_cannot_be_packed_costs_nobody_else_a_save() {
    let mut scene = Scene::new();
    let before = scene.saved();
    assert_eq!(before.len(), PLAYERS);
    let (_, entity) = scene.somebody(0);
    scene.ecs(0).get_mut::<Guest>(entity).unwrap().x_m = f32::NAN;
    scene.run_periods(3);
    let after = scene.saved();
    let kept = before.iter().zip(&after).filter(|(before, after)| before == after).count();
    let newer = before.iter().zip(&after).filter(|(before, after)| before.1 < after.1).count();
    assert_eq!((kept, newer), (1, PLAYERS - 1), "{before:?} {after:?}");
    assert_eq!(scene.count("saves.cuts_failed"), 0);
    assert!(scene.count("saves.players_left_out") >= 2, "each time");
    assert_eq!(scene.count_saved().left_out.len(), 1);

    // Well again, and saved again.
    scene.ecs(0).get_mut::<Guest>(entity).unwrap().x_m = 1.0;
    scene.run_periods(2);
    assert!(scene.saved().iter().zip(&after).all(|(now, then)| now.1 > then.1));
    assert_eq!(scene.count("saves.players_quarantined"), 0);
    assert!(scene.count_saved().left_out.is_empty() && scene.count_saved().holds());
}

/// The promise: a death doubles nothing of what a player gave away whom saves were made without. They are not let in with what they
/// had before, unless the operator says so; and who did not leave them waits for nothing.
#[test]
fn what_a_player_gave_away_who_cannot_be_packed_is_not_doubled_by_a_death() {
    let disk = MemoryDisk::default();
    let mut scene = Scene::on(&disk);
    assert_eq!(scene.let_in(), PLAYERS);
    let giver = scene.spoil_one_who_gives();
    scene.run_periods(2);
    drop(scene);

    let all = PLAYERS as u32 * COINS_AT_FIRST;
    let mut scene = Scene::on(&disk);
    assert_eq!((scene.let_in(), scene.coins()), (PLAYERS - 1, all));
    let count = scene.count_saved();
    assert!(count.holds() && count.left_out == BTreeSet::from([Key::player(giver.0)]), "{count:?}");

    // Nobody is lost for ever: the operator has looked at it.
    let admitted = scene.simulation.server_mut().control().admit_player(giver);
    scene.run_periods(1);
    admitted.try_take().unwrap().unwrap();
    scene.simulation.join_again(giver.0 as usize - CLIENT_ID_FIRST, Box::new(Idle));
    scene.run_periods(3);
    assert_eq!((scene.guests(0), scene.coins()), (PLAYERS, all + COINS_AT_FIRST));
    assert!(scene.count_saved().left_out.is_empty(), "they are in the saves again");
}

/// The same when they are gone before the save in which others have it, and then the server ends in good order, or dies.
#[test]
fn what_a_player_gave_away_who_has_left_and_cannot_be_packed_is_not_doubled_by_a_restart() {
    let disk = MemoryDisk::default();
    let mut scene = Scene::on(&disk);
    assert_eq!(scene.let_in(), PLAYERS);
    let giver = scene.spoil_one_who_gives();
    scene.simulation.leave(giver.0 as usize - CLIENT_ID_FIRST);
    scene.run_periods(3);
    assert_eq!(scene.count("saves.players_quarantined"), 1);
    drop(scene);
    let mut scene = Scene::on(&disk);
    assert_eq!((scene.let_in(), scene.coins()), (PLAYERS - 1, PLAYERS as u32 * COINS_AT_FIRST));
    assert!(scene.count_saved().holds());
}

#[test]
fn who_leaves_and_cannot_be_packed_does_not_come_back_with_what_they_had_before() {
    let mut scene = Scene::new();
    let (_, entity) = scene.somebody(0);
    scene.ecs(0).get_mut::<Guest>(entity).unwrap().x_m = f32::NAN;
    let all: Vec<usize> = (0..PLAYERS).collect();
    all.iter().for_each(|player| scene.simulation.leave(*player));
    scene.run_periods(3);
    assert_eq!((scene.guests(0), scene.count("saves.players_quarantined")), (0, 1));
    let leases = |scene: &mut Scene| scene.simulation.server_mut().saves_status().map(|status| status.leases);
    assert_eq!(leases(&mut scene), Some(0), "what is on disk keeps them out, here and elsewhere");
    all.iter().for_each(|player| scene.simulation.join_again(*player, Box::new(Idle)));
    scene.run_periods(3);
    assert_eq!((scene.guests(0), leases(&mut scene)), (PLAYERS - 1, Some(PLAYERS - 1)));
}

#[test]
fn who_travels_from_a_world_that_cannot_be_saved_is_turned_back() {
    let mut scene = Scene::new();
    let before = scene.saved();
    scene.curse(true);
    scene.send_to_other();
    scene.run_periods(2);
    assert_eq!((scene.guests(0), scene.guests(1)), (PLAYERS, 0));
    assert_eq!(*scene.refused.0.lock().unwrap(), [TravelRefusal::NotSaved]);
    assert_eq!(scene.saved(), before, "nothing of it is saved");
    assert!(scene.count("saves.cuts_failed") > 0);

    scene.curse(false);
    scene.send_to_other();
    scene.run_periods(2);
    assert_eq!((scene.guests(0), scene.guests(1)), (PLAYERS - 1, 1));
    let mut halls: Vec<u64> = scene.saved().iter().map(|(hall, _)| *hall).collect();
    halls.sort_unstable();
    assert_eq!(halls, [1, 1, 2]);
}

#[test]
fn who_leaves_a_world_that_cannot_be_saved_is_saved_when_it_can() {
    let mut scene = Scene::new();
    let before = scene.saved();
    scene.curse(true);
    scene.run_periods(1);
    scene.simulation.leave(0);
    scene.run_periods(2);
    assert_eq!((scene.guests(0), scene.saved()), (PLAYERS - 1, before.clone()));
    scene.curse(false);
    scene.run_periods(2);
    let after = scene.saved();
    assert!(before.iter().zip(&after).all(|(before, after)| after.1 > before.1), "{before:?} {after:?}");
    let leases = scene.simulation.server_mut().saves_status().map(|status| status.leases);
    assert_eq!(leases, Some(PLAYERS - 1), "the lease of who left is given up");
}
