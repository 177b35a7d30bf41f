//! The promise (R17): whatever a game can create can be sent, and nobody who looks at it is thrown out for it. What cannot be
//! sent cannot be declared.
//!
//! A vault is full of entities as large as any may be, all of them of concern to everybody, and whoever comes in is shown
//! an inventory as large as a message may be. Observers come and go, on a line that loses packets.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::{Server, prelude::*};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_net::transport::Impairment;
use throng_pack::{List, Pack};
use throng_platform::time::Nanos;
use throng_replication::{ENTITY_BYTES_MAX, MESSAGE_BYTES_MAX, Replicate, Text, ecs::Replicated};
use throng_simulator::{Simulation, SimulationSettings};

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
        world.add_systems(Startup, fill).add_systems(Update, (rub, welcome).chain());
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

fn welcome(arrivals: Res<Arrivals>, mut outbox: ResMut<Outbox>, mut commands: Commands) {
    for arrival in &arrivals.0 {
        let words = words(arrival.client.0 as usize);
        let player = (Replicated::default(), Engraving(words), Inscription(words), Provenance(words), Curse(words));
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
    let worlds = |server: &mut Server| {
        let vault = server.add_kind(kind())?;
        server.create_world(vault, 1)
    };
    let (mut simulation, _) = Simulation::new(&settings, worlds).expect("what is largest can be made");
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
