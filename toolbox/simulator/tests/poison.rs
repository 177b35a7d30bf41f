//! The promise (R17): whatever a game can create can be sent and saved, and nobody who looks at it is thrown out for it. What cannot
//! be sent cannot be declared.
//!
//! A vault is full of entities as large as any may be, all of them of concern to everybody, and whoever comes in is shown
//! an inventory as large as a message may be, and has belongings as large as a transfer may be. Observers come and go, on a line that
//! loses packets. Everything is saved meanwhile, and is there again after a restart.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, lifecycle::NewWorld, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_pack::{List, Pack, envelope};
use throng_persistence::{Embedded, Key, Reads, Store, disk::MemoryDisk};
use throng_platform::time::Nanos;
use throng_replication::{ENTITY_BYTES_MAX, MESSAGE_BYTES_MAX, Replicate, Text, ecs::Replicated};
use throng_simulator::{Simulation, SimulationSettings};
use throng_world::transfer::TRANSFER_BYTES_MAX;

/// Of a label; four of them, each with a byte for its length, are all that an entity may take.
const LETTERS: usize = ENTITY_BYTES_MAX / 4 - 1;

macro_rules! label {
    ($($name:ident),+) => {
        $(#[derive(Component, Replicate, Clone, Copy, PartialEq)]
        struct $name(Text<LETTERS>);)+
    };
}

label!(Engraving, Inscription, Provenance, Curse);

/// Of an inventory: as many as fit a message at their longest, with a few bytes for its head.
const ITEMS: usize = MESSAGE_BYTES_MAX / 5 - 8;

#[derive(Pack)]
#[pack(name = "poison.inventory")]
struct Inventory {
    items: List<u32, ITEMS>,
}

impl ClientMessage for Inventory {}

/// Of what a player has: as many as fit a transfer at their longest, with a few bytes for its head.
const BELONGINGS: usize = TRANSFER_BYTES_MAX / 5 - 20;

/// What a player travels with and is saved as.
#[derive(Component, Pack, Clone, Debug, PartialEq)]
#[pack(name = "poison.belongings")]
struct Belongings {
    items: List<u32, BELONGINGS>,
}

/// The vault's number, under which it is saved.
const SAVE_ID: u64 = 1;

/// Every word of what lies in the vault, in the order of the words, so that the same vault is the same bytes.
struct VaultState;

type Labels<'a> = (&'a Engraving, &'a Inscription, &'a Provenance, &'a Curse);

impl WorldState for VaultState {
    fn save(&self, ecs: &mut World, players: &[Entity]) -> Result<Vec<u8>, String> {
        let mut things = ecs.query::<(Entity, Labels<'_>)>();
        let lying = things.iter(ecs).filter(|(entity, _)| !players.contains(entity));
        let mut all: Vec<[&str; 4]> = lying.map(|(_, (e, i, p, c))| [&*e.0, &*i.0, &*p.0, &*c.0]).collect();
        all.sort_unstable();
        Ok(all.concat().concat().into_bytes())
    }

    fn load(&self, ecs: &mut World, bytes: &[u8]) -> Result<(), String> {
        let built: Vec<Entity> = ecs.query_filtered::<Entity, With<Curse>>().iter(ecs).collect();
        built.into_iter().for_each(|entity| _ = ecs.despawn(entity));
        let text = str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let words = |at: usize| Text::new(text.get(at..at + LETTERS)?);
        for at in (0..bytes.len()).step_by(4 * LETTERS) {
            let [Some(e), Some(i), Some(p), Some(c)] = [0, 1, 2, 3].map(|label| words(at + label * LETTERS)) else {
                return Err("it ends in the middle".into());
            };
            ecs.spawn((Replicated::default(), Engraving(e), Inscription(i), Provenance(p), Curse(c)));
        }
        Ok(())
    }
}

struct Vault {
    entities: usize,
}

#[derive(Resource)]
struct Size(usize);

impl WorldKind for Vault {
    fn name(&self) -> &str {
        "vault"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        let labels = Protocol::new().component::<Engraving>().component::<Inscription>().component::<Provenance>();
        labels.component::<Curse>().message::<Inventory>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(Size(self.entities));
        world.add_systems(Startup, fill).add_systems(Update, (bury, rub, welcome).chain());
        world.save_players(|ecs, player| ecs.get::<Belongings>(player.entity?).cloned()).save_world(VaultState);
    }
}

/// As many bytes as there may be, and others each time.
fn words(number: usize) -> Text<LETTERS> {
    let letter = char::from(b'a' + (number % 26) as u8);
    Text::new(&String::from(letter).repeat(LETTERS)).expect("it fits to the letter")
}

fn fill(size: Res<Size>, mut commands: Commands) {
    for number in 0..size.0 {
        let words = words(number);
        commands.spawn((Replicated::default(), Engraving(words), Inscription(words), Provenance(words), Curse(words)));
    }
}

/// In each tick one in a hundred has other words.
fn rub(tick: Res<TickInfo>, mut curses: Query<&mut Curse>) {
    for (number, mut curse) in curses.iter_mut().enumerate().skip(tick.tick as usize % 100).step_by(100) {
        curse.0 = words(number + tick.tick as usize);
    }
}

fn bury(departures: Res<Departures>, inbox: Res<Inbox>, mut commands: Commands) {
    for client in &departures.0 {
        inbox.players().entity(*client).into_iter().for_each(|player| commands.entity(player).despawn());
    }
}

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let words = words(arrival.client.0 as usize);
        let mine = |place: usize| u32::MAX - arrival.client_id.0 as u32 - place as u32;
        let new =
            || Belongings { items: List::try_from((0..BELONGINGS).map(mine).collect::<Vec<_>>()).expect("as many") };
        let has = arrival.transfer.as_ref().map_or_else(new, |transfer| transfer.read().expect("as it was saved"));
        let labels = (Engraving(words), Inscription(words), Provenance(words), Curse(words));
        let player = (Replicated::default(), labels, has);
        outbox.set_player(arrival.client, commands.spawn(player).id());
        let items = List::try_from(vec![u32::MAX; ITEMS]).expect("as many as may be");
        outbox.send(arrival.client, &Inventory { items }).expect("what can be declared can be sent");
    }
}

#[derive(Default)]
struct Observer {
    inventories: u64,
    entities_max: u64,
}

impl Behaviour for Observer {
    fn think(&mut self, _: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        for message in client.messages() {
            let inventory: Inventory = message.read().expect("there are no other messages");
            self.inventories += u64::from(inventory.items.len() == ITEMS);
        }
        self.entities_max = self.entities_max.max(client.replicas().len() as u64);
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new().with("inventories", self.inventories).with("entities_max", self.entities_max)
    }
}

/// In some seconds at the usual budget of two packets a tick, beside an inventory.
const ENTITIES_SEEN_MIN: u64 = 100;

/// Observers come, look for a while, and go, and others after them.
fn observers_come_and_go(entities: usize, observers: usize, waves: usize, look_s: f64) {
    let kind = || Vault { entities };
    let impairment = Impairment { loss: 0.02, delay: Nanos::from_millis(30), ..Impairment::NONE };
    let settings = SimulationSettings { impairment, ..SimulationSettings::new(kind().protocol().schema(), 17) };
    let disk = MemoryDisk::default();
    let open = || {
        let store = Embedded::on(Box::new(disk.clone())).expect("it is whole");
        let reads = store.reader();
        let worlds = |server: &mut Server| {
            server.save_in(Box::new(store))?;
            let vault = server.add_kind(kind())?;
            server.create_world_as(NewWorld::new(vault, 1).saved_as(SAVE_ID))
        };
        let (simulation, vault) = Simulation::new(&settings, worlds).expect("what is largest can be made");
        (simulation, vault, reads)
    };
    let (mut simulation, _, reads) = open();
    let mut inventories = 0;
    for wave in 0..waves {
        let joined: Vec<_> = (0..observers).map(|_| simulation.join(Box::new(Observer::default()))).collect();
        simulation.run_for(look_s);
        let totals = simulation.totals();
        assert_eq!(totals.playing, observers as u64, "wave {wave}: nobody is thrown out: {totals:#?}");
        assert_eq!(totals.state_errors, 0, "wave {wave}");
        inventories += observers as u64;
        assert_eq!(totals.counter("inventories"), inventories, "wave {wave}: whole, and to each");
        assert!(
            totals.counter("entities_max") >= ENTITIES_SEEN_MIN,
            "wave {wave}: they see what there is: {totals:#?}"
        );
        for player in joined {
            assert_eq!(simulation.players()[player].end(), None);
            simulation.leave(player);
        }
        simulation.run_for(2.0);
    }
    let report = simulation.server_mut().report();
    assert_eq!(report.counters["server.impossible_states"], 0);
    assert_eq!((report.counters["server.worlds_parked"], report.counters["world.systems_failed"]), (0, 0));

    let saved = simulation.server_mut().control().save_now();
    assert!(simulation.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved");
    let refusals = ["saves.cuts_failed", "saves.players_left_out", "saves.refused", "saves.put_off"];
    assert_eq!(refusals.map(|name| simulation.server_mut().count_of(name)), [0; 4]);
    let all = observers * waves;
    let before = saved_on(&*reads);
    assert_eq!((before.0.len(), before.1.len()), (all, entities * 4 * LETTERS));
    drop((simulation, reads));

    let (mut simulation, vault, reads) = open();
    let world = simulation.server_mut().world_mut(vault).expect("it is there").ecs_mut();
    assert_eq!(VaultState.save(world, &[]).expect("it can be packed"), before.1, "the vault is as it was");
    (0..observers).for_each(|_| _ = simulation.join(Box::new(Observer::default())));
    simulation.run_for(look_s);
    assert_eq!(simulation.totals().playing, observers as u64);
    let counts = ["saves.players_loaded", "saves.records_unreadable", "saves.players_left_out"];
    assert_eq!(counts.map(|name| simulation.server_mut().count_of(name)), [observers as u64, 0, 0]);
    let saved = simulation.server_mut().control().save_now();
    assert!(simulation.run_until(5.0, |_| saved.try_take().is_some_and(|saved| saved.is_ok())), "it is saved again");
    assert_eq!(saved_on(&*reads).0, before.0, "everybody has what they had");
}

/// What players have, and what lies in the vault.
fn saved_on(reads: &dyn Reads) -> (Vec<(u128, Belongings)>, Vec<u8>) {
    let mut players = Vec::new();
    let all = Key::player(0)..=Key::player(u64::MAX);
    let read = reads.range(all, &mut |key, record| {
        let bytes = record.expect("it is whole").value;
        players.push((key.id, envelope::read(&bytes[10..]).expect("belongings")));
    });
    read.expect("it can be read");
    let vault = reads.get(Key::world(SAVE_ID)).expect("it can be read").expect("it is there").value;
    let heading = 2 + usize::from(vault[1]);
    (players, vault[heading..].to_vec())
}

#[test]
fn r17_nobody_is_thrown_out_for_what_he_looks_at() {
    observers_come_and_go(400, 8, 2, 12.0);
}

#[test]
#[ignore = "full form: takes some minutes"]
fn r17_ten_thousand_of_the_largest_and_a_hundred_who_look() {
    observers_come_and_go(10_000, 100, 3, 30.0);
}

/// Promise: what could not be sent cannot be declared, and whoever tries is told by name, at the start.
#[test]
#[should_panic(expected = "an entity takes up to 1250 bytes; 1000 are possible")]
fn an_entity_that_fits_no_packet_cannot_be_declared() {
    #[derive(Component, Replicate, Clone, Copy)]
    struct Addendum(Text<LETTERS>);
    let _ = Vault { entities: 0 }.protocol().component::<Addendum>().schema();
}
