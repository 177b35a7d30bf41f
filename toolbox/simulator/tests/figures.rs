//! What a server says of itself is what happened: game messages, messages between worlds, and what a game counts.

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng::{Server, ids::WorldId, report::ServerReport};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::Client;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::SchemaBuilder;
use throng_simulator::{Simulation, SimulationSettings};

/// Forty bytes, with two that say that it is a letter.
#[derive(Pack)]
#[pack(name = "test.letter")]
struct Letter([u8; 38]);

impl ClientMessage for Letter {}

/// Messages to the other world in the one tick that is too much for it; its mailbox takes 4,096.
const POSTS: usize = 5_000;
/// The tick in which the game has a spike.
const SPIKE_TICK: u32 = 150;

/// What one world sends another.
#[derive(Pack)]
#[pack(name = "test.note")]
struct Note;

struct Office;

impl WorldKind for Office {
    fn name(&self) -> &str {
        "office \"A\"\\\n"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().message::<Letter>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.add_systems(Update, write);
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn write(tick: Res<TickInfo>, arrivals: Res<Arrivals>, mut here: Local<Vec<ClientKey>>, mut outbox: ResMut<Outbox>) {
    here.extend(arrivals.0.iter().map(|arrival| arrival.client));
    for &client in &*here {
        outbox.send(client, &Letter([7; 38])).unwrap();
        throng::count!("letters");
    }
    throng::gauge!("clerks", here.len());
    if tick.world == WorldId::new(0, 0) && tick.tick == SPIKE_TICK {
        throng::count!("letters", 1_000);
        throng::gauge!("clerks", 77);
        (0..POSTS).for_each(|_| outbox.post(tick.world, WorldId::new(1, 0), &Note).unwrap());
    }
}

struct Reader;

impl Behaviour for Reader {
    fn think(&mut self, _now: Nanos, _client: &mut Client, _rng: &mut Xoshiro256PlusPlus) {}

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new()
    }
}

const PLAYERS: usize = 3;

/// Ten seconds of two offices, the players in the first.
fn office() -> ServerReport {
    let settings = SimulationSettings::new(Office.protocol().schema(), 7);
    let worlds = |server: &mut Server| {
        let office = server.add_kind(Office)?;
        server.create_world(office, 1)?;
        server.create_world(office, 2)
    };
    let (mut simulation, _) = Simulation::new(&settings, worlds).unwrap();
    (0..PLAYERS).for_each(|_| _ = simulation.join(Box::new(Reader)));
    simulation.run_for(10.0);
    assert_eq!(simulation.totals().playing, PLAYERS as u64);
    simulation.server_mut().report()
}

/// Promise: what the game sends is booked as the game's, and what is left for the transport is what it adds.
#[test]
fn game_messages_are_booked_as_the_games() {
    let report = office();
    let row = |kind: &str, cause: &str| {
        let rows = report.packets.iter().filter(|row| row.kind == kind && row.cause == cause);
        rows.map(|row| row.bytes_per_s * report.seconds).sum::<f64>()
    };
    let said = report.game_per_s["letters"] * report.seconds - 1_000.0;
    let booked = row("message", "game") / 40.0;
    // Worlds give up their rows once a second.
    let second = (20 * PLAYERS) as f64;
    assert!(said > 8.0 * second, "{said}");
    assert!((said - second..=said).contains(&booked), "{booked} of {said} messages: {:#?}", report.packets);
    let packets = report.packets_out_per_s * report.seconds;
    let around = row("transport", "headers") / packets;
    assert!(around < 40.0, "{around} bytes of each packet are told as the transport's: {:#?}", report.packets);
}

/// Promise: messages between worlds that were lost are counted as that, and not as datagrams.
#[test]
fn messages_that_find_a_full_mailbox_are_no_datagrams() {
    let report = office();
    assert_eq!(report.counters["world.messages_dropped"], POSTS as u64 - 4_096);
    let refused: u64 = report.datagrams_refused.values().sum();
    assert!(refused < 50, "{:?}", report.datagrams_refused);
}

/// A world that sleeps while nobody is in it, and says seldom how many fight.
struct Cellar;

impl WorldKind for Cellar {
    fn name(&self) -> &str {
        "cellar"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, world: &mut WorldBuilder) {
        let fight = |tick: Res<TickInfo>| {
            if tick.tick.is_multiple_of(20) {
                throng::gauge!("fighters", 5);
            }
        };
        world.add_systems(Update, fight);
    }
}

/// Promise: what a world last said stands for nothing once it sleeps, however seldom its game says it.
#[test]
fn gauges_of_a_world_that_everybody_has_left_are_zero() {
    let settings = SimulationSettings::new(SchemaBuilder::new().build(), 7);
    let cellar = |server: &mut Server| {
        let cellar = server.add_kind(Cellar)?;
        server.create_world(cellar, 1)
    };
    for (leaves, expect) in [(false, 5), (true, 0)] {
        let (mut simulation, _) = Simulation::new(&settings, cellar).unwrap();
        let player = simulation.join(Box::new(Reader));
        simulation.run_for(4.0);
        assert_eq!(simulation.totals().playing, 1);
        if leaves {
            simulation.leave(player);
            simulation.run_for(2.0);
        }
        let report = simulation.server_mut().report();
        assert_eq!((report.game_gauges["fighters"], report.game_gauges_max["fighters"]), (expect, 5));
    }
}

/// Promise: a spike of one tick is in the report, whatever the averages say; gauges are added up over worlds.
#[test]
fn the_worst_frame_of_a_games_counters_is_told() {
    let report = office();
    let spike = report.game_frame_max["letters"];
    assert!((1_000..1_010).contains(&spike), "{spike}");
    assert_eq!((report.game_gauges["clerks"], report.game_gauges_max["clerks"]), (PLAYERS as i64, 77));
}
