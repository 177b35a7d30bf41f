//! Promise (R27): however many log in at once, all come in, in the order in which they proved themselves, no faster
//! than the rate that is set, and those who play notice nothing.
//!
//! By counts alone: which client came into the world in which tick, and whose input reached which tick.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bevy_ecs::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_net::protocol::ClientId;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_simulator::{Simulation, SimulationSettings};

/// The world ticks at 20 Hz, and frames lie on a grid of 60 Hz.
const FRAMES_PER_TICK: usize = 3;

/// What the world saw.
#[derive(Default)]
struct Seen {
    arrived: Vec<(u32, ClientId)>,
    departed: usize,
    /// Inputs of those who play, by tick.
    inputs: BTreeMap<u32, usize>,
}

#[derive(Resource, Clone, Default)]
struct Log(Arc<Mutex<Seen>>);

impl Log {
    fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Pack)]
struct Step;

impl ClientInput for Step {}

struct Hall(Log);

impl WorldKind for Hall {
    fn name(&self) -> &str {
        "hall"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().input::<Step>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.0.clone()).add_systems(Update, note);
    }
}

fn note(log: Res<Log>, tick: Res<TickInfo>, arrivals: Res<Arrivals>, departures: Res<Departures>, steps: Inputs<Step>) {
    log.with(|seen| {
        seen.arrived.extend(arrivals.0.iter().map(|arrival| (tick.tick, arrival.client_id)));
        seen.departed += departures.0.len();
        *seen.inputs.entry(tick.tick).or_default() += steps.read().count();
    });
}

/// Sends an input with every thought.
struct Playing;

impl Behaviour for Playing {
    fn think(&mut self, now: Nanos, client: &mut Client, _: &mut Xoshiro256PlusPlus) {
        let _ = client.send_input(now, &Step);
    }
}

/// Is there.
struct Watching;

impl Behaviour for Watching {
    fn think(&mut self, _: Nanos, _: &mut Client, _: &mut Xoshiro256PlusPlus) {}
}

#[derive(Clone, Copy)]
struct Storm {
    players: usize,
    newcomers: usize,
    joins_per_frame_max: u32,
    /// Silence that a token bears: shorter than the last newcomer waits.
    timeout_s: u32,
    join_queue_max: u32,
}

/// Runs the storm; says what was not as promised.
fn check(storm: Storm, seed: u64) -> Result<(), String> {
    let Storm { players, newcomers, joins_per_frame_max, timeout_s, join_queue_max } = storm;
    let mut settings = SimulationSettings {
        tap_received: true,
        ..SimulationSettings::new(Hall(Log::default()).protocol().schema(), seed)
    };
    settings.server.server.clients_max = (players + newcomers) as u32;
    settings.server.server.joins_per_frame_max = joins_per_frame_max;
    settings.server.server.join_queue_max = join_queue_max;
    settings.server.server.timeout_s = timeout_s;
    settings.token_timeout_s = timeout_s;
    let log = Log::default();
    let (mut simulation, _) = Simulation::new(&settings, |server| {
        let hall = server.add_kind(Hall(log.clone()))?;
        server.create_world(hall, 1)
    })
    .map_err(|error| error.to_string())?;

    // So few at once that the shortest line holds them.
    for group in 0..players.div_ceil(3) {
        for _ in 3 * group..players.min(3 * group + 3) {
            simulation.join(Box::new(Playing));
        }
        simulation.run_for(0.1);
    }
    simulation.run_for(1.0);
    expect("players before the storm", simulation.totals().playing, players as u64)?;
    simulation.run_for(2.0);
    let quiet_from = log.with(|seen| *seen.inputs.keys().next_back().expect("it ticks"));
    simulation.run_for(2.0);

    for _ in 0..newcomers {
        simulation.join(Box::new(Watching));
    }
    let joins_per_tick_max = joins_per_frame_max as usize * FRAMES_PER_TICK;
    let seconds_needed = newcomers as f64 / joins_per_tick_max as f64 / 20.0;
    assert!(seconds_needed > f64::from(timeout_s), "the storm is longer than a client bears silence");
    let everybody = (players + newcomers) as u64;
    // Twice as long as the rate takes, and time for the handshakes.
    simulation.run_until(2.0 * seconds_needed + 5.0, |simulation| simulation.totals().playing == everybody);
    simulation.run_for(1.0);

    let totals = simulation.totals();
    expect("clients in the world", totals.playing, everybody)?;
    expect("disconnects", totals.disconnects, 0)?;
    expect("protocol errors", totals.protocol_errors, 0)?;
    let report = simulation.server_mut().report();
    expect("ticks missed", report.ticks_missed, 0)?;
    expect("sent away", report.refused_queue_full, 0)?;
    log.with(|seen| {
        expect("departures", seen.departed as u64, 0)?;
        // The last tick may not have been reached by everybody's input yet.
        let last = *seen.inputs.keys().next_back().expect("it ticks");
        for (tick, &inputs) in seen.inputs.range(quiet_from + 1..last) {
            expect(&format!("inputs of players in tick {tick}"), inputs as u64, players as u64)?;
        }
        for tick in seen.arrived.chunk_by(|one, next| one.0 == next.0) {
            let arrived = tick.len();
            if arrived > joins_per_tick_max {
                return Err(format!("{arrived} came in in tick {}, and {joins_per_tick_max} may", tick[0].0));
            }
        }
        let arrived: Vec<ClientId> = seen.arrived.iter().map(|(_, client)| *client).collect();
        in_order(&arrived, &order_of_proof(&mut simulation))
    })
}

fn in_order(arrived: &[ClientId], proven: &[ClientId]) -> Result<(), String> {
    expect("came in", arrived.len() as u64, proven.len() as u64)?;
    match arrived.iter().zip(proven).position(|(arrived, proven)| arrived != proven) {
        Some(place) => Err(format!("number {place} was {:?}, and {:?} came in", proven[place], arrived[place])),
        None => Ok(()),
    }
}

fn expect(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found}, not {expected}")) }
}

/// The clients in the order of their first responses: nobody forges any here, so each proves who it is.
fn order_of_proof(simulation: &mut Simulation) -> Vec<ClientId> {
    const RESPONSE: u8 = 3;
    let (mut seen, mut proven) = (HashSet::new(), Vec::new());
    simulation.take_received(|player, datagram| {
        if datagram[0] & 0x0F == RESPONSE && seen.insert(player) {
            proven.push(client_of(player));
        }
    });
    proven
}

/// Player `index` is client `index + 1`.
fn client_of(player: usize) -> ClientId {
    ClientId(player as u64 + 1)
}

const SMALL: Storm = Storm { players: 30, newcomers: 300, joins_per_frame_max: 1, timeout_s: 3, join_queue_max: 4_096 };

#[test]
fn a_small_storm_comes_in_in_order_and_disturbs_nobody() {
    check(SMALL, 1).unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// The negative control: a server without a line to speak of is found out.
#[test]
fn a_server_without_a_line_is_found_out() {
    let wrong = check(Storm { join_queue_max: 3, ..SMALL }, 1).expect_err("most are sent away");
    assert!(wrong.starts_with("clients in the world"), "{wrong}");
}

#[test]
fn who_overtakes_is_found_out() {
    let [first, second, third] = [1, 2, 3].map(ClientId);
    assert!(in_order(&[first, third, second], &[first, second, third]).is_err());
    assert!(in_order(&[first, second], &[first, second, third]).is_err());
}

#[test]
#[ignore = "the full size: 3,500 at once beside 500 who play"]
fn r27_a_storm_of_log_ins_comes_in_in_order_and_disturbs_nobody() {
    let storm = Storm { players: 500, newcomers: 3_500, joins_per_frame_max: 8, timeout_s: 5, join_queue_max: 4_096 };
    for seed in 1..=3 {
        check(storm, seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}
