//! The promise: a simulation is the same again for the same seed, is another one for another seed, and does to
//! datagrams what it is asked to; and a world that reads what it should not is found by a replay.
//!
//! The game is a meadow on which players push marbles about.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bevy_ecs::prelude::*;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng::prelude::*;
use throng::server::ServerError;
use throng::{Server, ids::WorldId};
use throng_bots::{Behaviour, BehaviourCounters};
use throng_client::{Client, DisconnectReason};
use throng_net::transport::Impairment;
use throng_pack::Pack;
use throng_platform::time::Nanos;
use throng_replication::Replicate;
use throng_replication::ecs::{Placed, Replicated};
use throng_simulator::{Fingerprint, Simulation, SimulationRecording, SimulationSettings, Totals, first_difference};

#[derive(Component, Replicate, Debug, Clone, Copy)]
struct Marble {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    z: f32,
}

impl Placed for Marble {
    fn place(&self) -> [f32; 2] {
        [self.x, self.z]
    }
}

/// Hundredths of a metre.
#[derive(Pack, Debug, Clone, Copy)]
struct Push {
    x: i8,
    z: i8,
}

impl ClientInput for Push {}

#[derive(Component)]
struct Owner(ClientKey);

/// A number that comes from outside of every world, as a clock's would.
#[derive(Resource, Clone)]
struct Outside(Arc<AtomicU32>);

#[derive(Default)]
struct Meadow {
    outside: Option<Outside>,
    /// Hints in every other tick that the next one will cost more.
    hints: bool,
}

impl WorldKind for Meadow {
    fn name(&self) -> &str {
        "meadow"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn protocol(&self) -> Protocol {
        Protocol::new().component::<Marble>().input::<Push>()
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.placed_by::<Marble>().add_systems(Update, (come_and_go, push, roll).chain());
        if let Some(outside) = &self.outside {
            world.insert_resource(outside.clone()).add_systems(Update, look_outside);
        }
        if self.hints {
            world.add_systems(Update, hint);
        }
    }
}

fn come_and_go(
    arrivals: Res<Arrivals>,
    departures: Res<Departures>,
    mut outbox: ResMut<Outbox>,
    marbles: Query<(Entity, &Owner)>,
    mut commands: Commands,
) {
    for arrival in &arrivals.0 {
        let marble = commands.spawn((Replicated::default(), Marble { x: 0.0, z: 0.0 }, Owner(arrival.client))).id();
        outbox.set_player(arrival.client, marble);
    }
    for (marble, _) in marbles.iter().filter(|(_, owner)| departures.0.contains(&owner.0)) {
        commands.entity(marble).despawn();
    }
}

fn push(pushes: Inputs<Push>, mut marbles: Query<&mut Marble>) {
    for (sender, push) in pushes.read() {
        let Some(Ok(mut marble)) = sender.entity.map(|own| marbles.get_mut(own)) else { continue };
        marble.x = (marble.x + f32::from(push.x) / 100.0).clamp(-99.0, 99.0);
        marble.z = (marble.z + f32::from(push.z) / 100.0).clamp(-99.0, 99.0);
    }
}

fn roll(mut rng: ResMut<WorldRng>, mut marbles: Query<&mut Marble>) {
    for mut marble in &mut marbles {
        marble.x = (marble.x + rng.0.random_range(-0.1..0.1)).clamp(-99.0, 99.0);
    }
}

/// What no system may do.
fn look_outside(tick: Res<TickInfo>, outside: Res<Outside>, mut marbles: Query<&mut Marble>) {
    if tick.tick == 50 {
        let seen = outside.0.fetch_add(1, Ordering::Relaxed);
        marbles.iter_mut().for_each(|mut marble| marble.z = seen as f32);
    }
}

fn hint(tick: Res<TickInfo>, mut outbox: ResMut<Outbox>) {
    if tick.tick.is_multiple_of(2) {
        outbox.hint_next_tick(Nanos::from_millis(1));
    }
}

#[derive(Default)]
struct Pusher {
    thoughts: u64,
}

impl Behaviour for Pusher {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        self.thoughts += 1;
        let [x, z] = rng.random::<[u8; 2]>().map(|byte| byte as i8);
        let _ = client.send_input(now, &Push { x, z });
    }

    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::new().with("thoughts", self.thoughts)
    }
}

fn settings(seed: u64) -> SimulationSettings {
    let schema = Meadow::default().protocol().schema();
    SimulationSettings { hash: true, ..SimulationSettings::new(schema, seed) }
}

fn meadow(outside: Option<Outside>) -> impl FnOnce(&mut Server) -> Result<WorldId, ServerError> {
    one_world(Meadow { outside, hints: false })
}

fn one_world(meadow: Meadow) -> impl FnOnce(&mut Server) -> Result<WorldId, ServerError> {
    move |server| {
        let meadow = server.add_kind(meadow)?;
        server.create_world(meadow, 1)
    }
}

const POOR: Impairment = Impairment {
    loss: 0.05,
    duplication: 0.05,
    reordering: 0.1,
    reorder_delay: Nanos::from_millis(50),
    corruption: 0.01,
    delay: Nanos::from_millis(30),
    jitter: Nanos::from_millis(30),
    ..Impairment::NONE
};

fn play(settings: &SimulationSettings, players: usize) -> Simulation {
    let (mut simulation, _) = Simulation::new(settings, meadow(None)).unwrap();
    for _ in 0..players {
        simulation.join(Box::<Pusher>::default());
    }
    simulation
}

#[test]
fn the_same_seed_is_the_same_simulation_with_any_number_of_workers() {
    let run = |seed: u64, workers_count: usize| {
        let settings = SimulationSettings { workers_count, impairment: POOR, tap_received: true, ..settings(seed) };
        let mut simulation = play(&settings, 10);
        let mut received = Vec::new();
        for frame in 0..600 {
            simulation.step();
            simulation.take_received(|player, datagram| received.push((frame, player, datagram.to_vec())));
        }
        (simulation.hashes().to_vec(), received, simulation.totals())
    };
    let (hashes, received, totals) = run(1, 1);
    assert!(hashes.len() >= 190, "{} ticks", hashes.len());
    assert_eq!((totals.playing, totals.state_errors), (10, 0), "{totals:#?}");
    assert!(received.len() > 1_000, "{} datagrams", received.len());
    let (hashes_again, received_again, totals_again) = run(1, 4);
    assert_eq!(first_difference(&hashes, &hashes_again), None);
    assert!(received == received_again, "other datagrams came");
    assert_eq!(totals, totals_again);
    assert!(first_difference(&hashes, &run(2, 1).0).is_some(), "another seed is another game");
}

/// Promise: a fingerprint is the same for the same game, and another one where only bytes on the wire differ.
#[test]
fn a_fingerprint_tells_games_apart() {
    let run = |workers_count: usize, stranger: bool| {
        let mut simulation = play(&SimulationSettings { workers_count, tap: true, ..settings(6) }, 5);
        if stranger {
            simulation.impair(Impairment { delay: Nanos::from_millis(100), ..Impairment::default() });
        }
        Fingerprint::of(&mut simulation, 300)
    };
    let fingerprint = run(1, false);
    assert_eq!(run(3, false), fingerprint);
    let other = run(1, true);
    assert_ne!(other, fingerprint, "{other} and {fingerprint}");
}

#[test]
fn a_replay_finds_what_a_world_should_not_have_read() {
    let play = |outside: Option<Outside>| {
        let recording = SimulationRecording::new(&settings(3));
        let (mut simulation, _) = Simulation::new(recording.settings(), meadow(outside)).unwrap();
        simulation.join(Box::<Pusher>::default());
        simulation.run_for(5.0);
        simulation.end_recording();
        (recording, simulation.hashes().to_vec())
    };
    let (recording, hashes) = play(None);
    assert!(hashes.len() > 90, "{} ticks", hashes.len());
    [1, 2].into_iter().for_each(|threads| recording.check(threads, &hashes, meadow(None)));

    let outside = Outside(Arc::default());
    let (recording, _) = play(Some(outside.clone()));
    let report = recording.replay(2, meadow(Some(outside))).unwrap();
    let [divergence] = &report.divergences[..] else { panic!("the replay saw another number: {report:?}") };
    assert_eq!((divergence.world, divergence.equal_at, divergence.ticks), (WorldId::new(0, 0), Some(50), 51));
    let [entity] = &divergence.entities[..] else { panic!("there is one marble: {divergence}") };
    assert_eq!(entity.components, divergence.components);
}

#[test]
fn thoughts_come_at_their_rate_and_players_leave() {
    let mut simulation = play(&SimulationSettings { think_hz: 30, ..settings(4) }, 4);
    simulation.run_for(2.0);
    let before = simulation.totals().counter("thoughts");
    simulation.run_for(10.0);
    assert_eq!(simulation.totals().counter("thoughts") - before, 4 * 10 * 30);

    simulation.leave(2);
    simulation.run_for(1.0);
    let totals = simulation.totals();
    assert_eq!((totals.playing, totals.left, totals.disconnects), (3, 1, 0), "{totals:#?}");
    assert_eq!(simulation.players()[0].client().replicas().len(), 3, "its marble is gone");
}

#[test]
fn impairments_hold_from_when_they_are_set() {
    let mut simulation = play(&settings(5), 2);
    simulation.run_for(2.0);
    let updates = |simulation: &Simulation| simulation.totals().entity_updates;
    let before = updates(&simulation);
    simulation.impair(Impairment { loss: 1.0, ..Impairment::default() });
    simulation.run_for(3.0);
    assert!(updates(&simulation) <= before + 4, "the network is dark");
    simulation.impair(Impairment::default());
    simulation.run_for(2.0);
    assert!(updates(&simulation) > before + 50, "the network is back");
    assert_eq!(simulation.totals().playing, 2);

    simulation.impair(Impairment { loss: 1.0, ..Impairment::default() });
    simulation.run_for(15.0);
    let totals: Totals = simulation.totals();
    assert_eq!((totals.playing, totals.disconnects), (0, 2), "{totals:#?}");
    assert_eq!(simulation.players()[1].end(), Some(DisconnectReason::TimedOut));
}

/// Promise: a world is expected to cost more in the tick that takes players in, so much for each of them, and in no
/// other. The clock stands still while worlds run, so that nothing else costs anything.
#[test]
fn players_who_come_in_raise_the_estimate_of_that_tick_alone() {
    let mut simulation = play(&settings(7), 0);
    let mut raised_by_joins_of = |newcomers: usize| {
        (0..newcomers).for_each(|_| _ = simulation.join(Box::<Pusher>::default()));
        simulation.server_mut().trace_ticks(true);
        simulation.run_for(3.0);
        let (records, _) = simulation.server_mut().take_tick_trace();
        let raised: Vec<Nanos> = records.iter().map(|record| record.estimate).filter(|ns| *ns > Nanos::ZERO).collect();
        assert!(records.len() > 40 && raised.len() <= newcomers, "{raised:?} of {} ticks", records.len());
        raised.into_iter().sum::<Nanos>()
    };
    let one = raised_by_joins_of(1);
    assert!(one > Nanos::ZERO);
    assert_eq!(raised_by_joins_of(4), Nanos(4 * one.0));
    assert_eq!(raised_by_joins_of(0), Nanos::ZERO);
}

#[test]
fn hints_change_nothing_in_what_a_world_computes() {
    let run = |hints: bool| {
        let meadow = Meadow { hints, ..Meadow::default() };
        let (mut simulation, _) = Simulation::new(&settings(8), one_world(meadow)).unwrap();
        (0..4).for_each(|_| _ = simulation.join(Box::<Pusher>::default()));
        simulation.run_for(3.0);
        (simulation.hashes().to_vec(), simulation.totals())
    };
    let ((hashes, totals), (hinted, hinted_totals)) = (run(false), run(true));
    assert!(hashes.len() > 40);
    assert_eq!((first_difference(&hashes, &hinted), totals), (None, hinted_totals));
}
